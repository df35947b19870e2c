//! The embedded store does what the memory store does: random operations give equal answers, also after reopening.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use bytes::Bytes;
use mayfly_storage::{
    EmbeddedOptions, EmbeddedStore, Error, MemoryStore,
    store::{
        Advance, Batch, Direction, Expect, Guard, Key, KeyRange, MarkAt, MayHold, PageLimit, Put, SeqMark,
        Slot, Snapshot, Space, Store, Urgency,
    },
    upkeep::Upkeep,
};
use proptest::prelude::*;
use tempfile::TempDir;

#[derive(Clone, Debug)]
enum Op {
    Commit(Batch),
    /// Several at once: they meet in one group, in this order.
    CommitTogether(Vec<Batch>),
    Scan(KeyRange, Direction, PageLimit),
    /// Values of this version, or of any with these bytes in them.
    Sieve(KeyRange, Direction, PageLimit, u8),
    GetBoth([Key; 2]),
    Peek(KeyRange, usize),
    Clear(KeyRange, usize),
    TakeSnapshot,
    Sync,
    Reclaim,
    Reopen,
}

/// Few short keys, so that operations meet; the slot follows from the bytes, as callers promise.
fn key() -> impl Strategy<Value = Key> {
    (space(), 0..2u8, 0..6u8).prop_map(|(space, slot, name)| {
        let pad = [name; 8];
        Key { space, slot: Slot(slot.into()), bytes: [&[slot, name], &pad[..]].concat() }
    })
}

fn space() -> impl Strategy<Value = Space> {
    prop_oneof![Just(Space::Small), Just(Space::Large)]
}

fn counter() -> impl Strategy<Value = Key> {
    (space(), 0..2u8).prop_map(|(space, slot)| Key { space, slot: Slot(slot.into()), bytes: vec![slot, 9] })
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    // A version of few values, then some bytes; sometimes too short for a version, sometimes long.
    let tail = prop_oneof![8 => 0..20usize, 1 => 600..3000usize, 1 => 8100..9000usize];
    prop_oneof![
        8 => (0..3u64, tail).prop_map(|(version, tail)| [&version.to_be_bytes()[..], &vec![b'v'; tail]].concat()),
        1 => proptest::collection::vec(any::<u8>(), 0..8),
    ]
}

fn mark() -> impl Strategy<Value = SeqMark> {
    // In a key behind the slot's byte, which must stay; one more does not fit and is refused.
    let at = prop_oneof![3 => Just(MarkAt::Key(2)), 1 => Just(MarkAt::Key(3)), 3 => (0..12u32).prop_map(MarkAt::Value)];
    (0..2u8, at).prop_map(|(advance, at)| SeqMark { advance, at })
}

fn batch() -> impl Strategy<Value = Batch> {
    let expect = prop_oneof![Just(Expect::Absent), (0..4u64).prop_map(Expect::Version)];
    let guard =
        (prop_oneof![3 => key(), 1 => counter()], expect).prop_map(|(key, expect)| Guard { key, expect });
    let marks = prop_oneof![4 => Just(vec![]), 1 => proptest::collection::vec(mark(), 1..3)];
    let put = (key(), value(), marks).prop_map(|(key, value, marks)| Put { key, value, marks });
    let advance = (counter(), 0..4u64, -5..5i64).prop_map(|(counter, stamp, tally)| Advance {
        counter,
        stamp,
        tally: [tally, -tally],
    });
    let urgency = prop_oneof![Just(Urgency::Foreground), Just(Urgency::Background)];
    (
        prop_oneof![2 => Just(vec![]), 1 => proptest::collection::vec(guard, 1..3)],
        proptest::collection::vec(put, 0..4),
        proptest::collection::vec(key(), 0..3),
        proptest::collection::vec(advance, 0..3),
        urgency,
    )
        .prop_map(|(guards, puts, deletes, advances, urgency)| Batch {
            guards,
            puts,
            deletes,
            advances,
            urgency,
        })
}

fn range() -> impl Strategy<Value = KeyRange> {
    // A slot's keys begin with its number, and so does each range in it.
    (space(), 0..2u8, 0..8u8, proptest::option::of(0..8u8)).prop_map(|(space, slot, start, end)| KeyRange {
        space,
        slot: Slot(slot.into()),
        start: vec![slot, start],
        end: Some(end.map_or(vec![slot + 1], |end| vec![slot, end])),
    })
}

fn op() -> impl Strategy<Value = Op> {
    let direction = prop_oneof![Just(Direction::Forward), Just(Direction::Reverse)];
    let limit = (1..6usize, prop_oneof![Just(usize::MAX), 0..100usize])
        .prop_map(|(rows, bytes)| PageLimit { rows, bytes });
    prop_oneof![
        10 => batch().prop_map(Op::Commit),
        5 => proptest::collection::vec(batch(), 2..6).prop_map(Op::CommitTogether),
        5 => (range(), direction.clone(), limit.clone())
            .prop_map(|(range, direction, limit)| Op::Scan(range, direction, limit)),
        4 => (range(), direction, limit, 0..3u8)
            .prop_map(|(range, direction, limit, version)| Op::Sieve(range, direction, limit, version)),
        4 => (key(), key()).prop_map(|(one, other)| Op::GetBoth([one, other])),
        2 => (range(), 1..6usize).prop_map(|(range, rows)| Op::Peek(range, rows)),
        1 => (range(), 1..5usize).prop_map(|(range, limit)| Op::Clear(range, limit)),
        2 => Just(Op::TakeSnapshot),
        1 => Just(Op::Sync),
        1 => Just(Op::Reclaim),
        1 => Just(Op::Reopen),
    ]
}

/// Both stores, and snapshots of both from the same moments.
struct Pair {
    folder: TempDir,
    embedded: Arc<EmbeddedStore>,
    memory: MemoryStore,
    snapshots: Vec<(Arc<dyn Snapshot>, Arc<dyn Snapshot>)>,
}

fn open(folder: &TempDir) -> Arc<EmbeddedStore> {
    Arc::new(EmbeddedStore::open(folder.path(), EmbeddedOptions::default()).unwrap())
}

impl Pair {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        Self { embedded: open(&folder), folder, memory: MemoryStore::new(), snapshots: Vec::new() }
    }

    async fn perform(self, op: Op) -> Self {
        match op {
            Op::Commit(batch) => {
                let expected = self.memory.commit(batch.clone()).await;
                same(self.embedded.commit(batch).await, expected);
            }
            Op::CommitTogether(batches) => self.commit_together(batches).await,
            Op::Scan(range, direction, limit) => {
                let (embedded, memory) = self.snapshot_both().await;
                for (embedded, memory) in self.snapshots.iter().chain([&(embedded, memory)]) {
                    let expected = memory.scan(&range, direction, limit).await.unwrap();
                    let found = embedded.scan(&range, direction, limit).await.unwrap();
                    assert_eq!((found.rows, found.more), (expected.rows, expected.more));
                }
            }
            Op::Sieve(range, direction, limit, version) => {
                let (embedded, memory) = self.snapshot_both().await;
                for (embedded, memory) in self.snapshots.iter().chain([&(embedded, memory)]) {
                    let expected = sieved(&**memory, &range, direction, limit, version).await;
                    assert_eq!(sieved(&**embedded, &range, direction, limit, version).await, expected);
                }
            }
            Op::GetBoth(keys) => {
                same(self.embedded.get_both(&keys).await, self.memory.get_both(&keys).await);
            }
            Op::Peek(range, rows) => {
                same(self.embedded.peek(&range, rows).await, self.memory.peek(&range, rows).await);
            }
            Op::Clear(range, limit) => {
                let expected = self.memory.clear(&range, limit).await;
                same(self.embedded.clear(&range, limit).await, expected);
            }
            Op::TakeSnapshot => {
                let both = self.snapshot_both().await;
                let background = (
                    self.embedded.background_snapshot().await.unwrap(),
                    self.memory.background_snapshot().await.unwrap(),
                );
                let snapshots = self.snapshots.into_iter().chain([both, background]).collect();
                return Self { snapshots, ..self };
            }
            Op::Sync => self.embedded.sync().await.unwrap(),
            Op::Reclaim => self.embedded.reclaim().await.unwrap(),
            Op::Reopen => {
                // Snapshots keep the directory; they end with their store.
                let Self { folder, embedded, memory, snapshots } = self;
                drop(snapshots);
                drop(embedded);
                return Self { embedded: open(&folder), folder, memory, snapshots: Vec::new() };
            }
        }
        self
    }

    /// All are queued before one is decided, most of the time: then they form one group. Foreground goes first.
    async fn commit_together(&self, batches: Vec<Batch>) {
        let mut waiting: Vec<_> =
            batches.into_iter().map(|batch| Batch { urgency: Urgency::Foreground, ..batch }).collect();
        let answers: Vec<_> = {
            let mut commits: Vec<_> =
                waiting.iter().map(|batch| self.embedded.commit(batch.clone())).collect();
            // Polled once each, in order, which queues them in order.
            let mut answers: Vec<Option<_>> = commits.iter().map(|_| None).collect();
            for (commit, answer) in commits.iter_mut().zip(&mut answers) {
                *answer = poll_once(commit).await;
            }
            let mut all = Vec::new();
            for (commit, answer) in commits.into_iter().zip(answers) {
                all.push(match answer {
                    Some(answer) => answer,
                    None => commit.await,
                });
            }
            all
        };
        for (batch, answer) in waiting.drain(..).zip(answers) {
            same(answer, self.memory.commit(batch).await);
        }
    }

    async fn snapshot_both(&self) -> (Arc<dyn Snapshot>, Arc<dyn Snapshot>) {
        (self.embedded.snapshot().await.unwrap(), self.memory.snapshot().await.unwrap())
    }

    async fn check_all(&self) {
        for space in [Space::Small, Space::Large] {
            for slot in 0..2u8 {
                let range = KeyRange::prefix(space, Slot(slot.into()), vec![slot]);
                let limit = PageLimit { rows: 1000, bytes: usize::MAX };
                let (embedded, memory) = self.snapshot_both().await;
                let expected = memory.scan(&range, Direction::Forward, limit).await.unwrap();
                let found = embedded.scan(&range, Direction::Forward, limit).await.unwrap();
                assert_eq!(found.rows, expected.rows);
                for (bytes, value) in expected.rows {
                    let key = Key { space, slot: Slot(slot.into()), bytes: bytes.to_vec() };
                    assert_eq!(self.embedded.get(&key).await.unwrap(), Some(value));
                }
            }
        }
    }
}

/// What a sieve for values of one version met and kept, and where it was cut.
async fn sieved(
    snapshot: &dyn Snapshot,
    range: &KeyRange,
    direction: Direction,
    limit: PageLimit,
    version: u8,
) -> (Vec<Vec<u8>>, Vec<(Bytes, Bytes)>, Option<Bytes>) {
    let wanted = u64::from(version).to_be_bytes();
    let may_hold = |bytes: &[u8]| bytes.windows(8).any(|some| some == wanted);
    let mut met = Vec::new();
    let mut keep = |key: &[u8], value: &[u8], is_possible: bool| {
        met.push([key, value].concat());
        assert!(is_possible || !value.starts_with(&wanted));
        is_possible && value.starts_with(&wanted)
    };
    let may_hold = Some(&may_hold as &MayHold<'_>);
    let sieved = snapshot.sieve(range, direction, limit, may_hold, &mut keep).await.unwrap();
    assert_eq!(sieved.met, met.len());
    (met, sieved.rows, sieved.cut_after)
}

async fn poll_once<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    let mut future = std::pin::Pin::new(future);
    std::future::poll_fn(move |context| {
        std::task::Poll::Ready(match future.as_mut().poll(context) {
            std::task::Poll::Ready(output) => Some(output),
            std::task::Poll::Pending => None,
        })
    })
    .await
}

/// Equal answers, errors by kind and by what they name.
fn same<T: PartialEq + std::fmt::Debug>(found: Result<T, Error>, expected: Result<T, Error>) {
    match (found, expected) {
        (Ok(found), Ok(expected)) => assert_eq!(found, expected),
        (Err(found), Err(expected)) => assert_eq!(format!("{found:?}"), format!("{expected:?}")),
        (found, expected) => panic!("{found:?} instead of {expected:?}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn equal_to_memory(ops in proptest::collection::vec(op(), 1..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut pair = Pair::new();
            for op in ops {
                pair = pair.perform(op).await;
            }
            pair.check_all().await;
            pair.perform(Op::Reopen).await.check_all().await;
        });
    }
}
