//! Two stores that must never differ.
//!
//! Every call is made on both and the answers are compared: values, pages row by row, what a sieve met and
//! kept, errors by kind and by what they name. A difference panics with both answers. It proves a backend
//! equal to the memory store under whatever runs above.
//!
//! Between [`Upkeep::wither`] and the end of the sweep each store may show a withered row or not, and so may
//! a snapshot that is older than the sweep. Such rows, and nothing else, are left out of the comparison
//! ([`Tolerated`]).
//!
//! Holds: both stores see the same calls in the same order, whoever calls from wherever.

use std::{collections::BTreeMap, fmt::Debug, sync::Arc};

use bytes::Bytes;
use mayfly_storage::{
    Error, Result,
    peers::Peers,
    store::{
        Batch, BoxFuture, Committed, Direction, Keep, Key, KeyRange, MayHold, Page, PageLimit, Sieved, Slot,
        Snapshot, Space, Stats, Store,
    },
    upkeep::{Cleared, Upkeep, Withered},
};
use tokio::sync::Mutex;

/// A store that is two. The first one's answers are returned.
pub struct Mirror<A: ?Sized, B: ?Sized> {
    /// Held over both calls; otherwise two commits could reach the stores in different orders.
    turn: Mutex<()>,
    first: Arc<A>,
    second: Arc<B>,
    tolerated: parking_lot::Mutex<Tolerated>,
}

impl<A: Store + ?Sized, B: Store + ?Sized> Mirror<A, B> {
    /// Both stores must hold the same at the start.
    pub fn new(first: Arc<A>, second: Arc<B>) -> Self {
        Self { turn: Mutex::new(()), first, second, tolerated: parking_lot::Mutex::default() }
    }

    fn tolerated(&self) -> Tolerated {
        self.tolerated.lock().clone()
    }

    async fn snapshot_of(
        &self,
        first: BoxFuture<'_, Result<Arc<dyn Snapshot>>>,
        second: BoxFuture<'_, Result<Arc<dyn Snapshot>>>,
    ) -> Result<Arc<dyn Snapshot>> {
        let _turn = self.turn.lock().await;
        match (first.await, second.await) {
            (Ok(first), Ok(second)) => {
                Ok(Arc::new(MirrorSnapshot { first, second, tolerated: self.tolerated() }))
            }
            (first, second) => {
                same(|| "snapshot".to_owned(), first.map(drop), second.map(drop))?;
                unreachable!("one of them failed, and they are the same")
            }
        }
    }
}

impl<A: Store + ?Sized, B: Store + ?Sized> Store for Mirror<A, B> {
    fn get<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Bytes>>> {
        Box::pin(async move {
            let _turn = self.turn.lock().await;
            let (first, second) = (self.first.get(key).await, self.second.get(key).await);
            let tolerated = self.tolerated();
            same_by(|| format!("get {key:?}"), first, second, |value| tolerated.value(key, value))
        })
    }

    fn get_both<'a>(&'a self, keys: &'a [Key; 2]) -> BoxFuture<'a, Result<[Option<Bytes>; 2]>> {
        Box::pin(async move {
            let _turn = self.turn.lock().await;
            let (first, second) = (self.first.get_both(keys).await, self.second.get_both(keys).await);
            let tolerated = self.tolerated();
            let shown = |values: &[Option<Bytes>; 2]| tolerated.values(keys, values);
            same_by(|| format!("get both of {keys:?}"), first, second, shown)
        })
    }

    fn peek<'a>(&'a self, range: &'a KeyRange, rows: usize) -> BoxFuture<'a, Result<Vec<(Bytes, Bytes)>>> {
        Box::pin(async move {
            let _turn = self.turn.lock().await;
            let (first, second) = (self.first.peek(range, rows).await, self.second.peek(range, rows).await);
            let what = || format!("peek {range:?} for {rows} rows");
            // It says nothing about what follows, so a full one may have been cut short.
            let page = |found: Vec<(Bytes, Bytes)>| Page { more: found.len() >= rows, rows: found };
            let pages = (first.map(page), second.map(page));
            same_pages(what, range, Direction::Forward, pages, &self.tolerated()).map(|page| page.rows)
        })
    }

    fn snapshot(&self) -> BoxFuture<'_, Result<Arc<dyn Snapshot>>> {
        Box::pin(self.snapshot_of(self.first.snapshot(), self.second.snapshot()))
    }

    fn background_snapshot(&self) -> BoxFuture<'_, Result<Arc<dyn Snapshot>>> {
        Box::pin(self.snapshot_of(self.first.background_snapshot(), self.second.background_snapshot()))
    }

    fn commit(&self, batch: Batch) -> BoxFuture<'_, Result<Committed>> {
        Box::pin(async move {
            let _turn = self.turn.lock().await;
            let (first, second) =
                (self.first.commit(batch.clone()).await, self.second.commit(batch.clone()).await);
            same(|| format!("commit {batch:?}"), first, second)
        })
    }

    /// The first one's; figures may differ.
    fn stats(&self) -> Stats {
        self.first.stats()
    }
}

impl<A: Store + ?Sized, B: Store + ?Sized> Upkeep for Mirror<A, B> {
    fn clear<'a>(&'a self, range: &'a KeyRange, limit: usize) -> BoxFuture<'a, Result<Cleared>> {
        Box::pin(async move {
            let _turn = self.turn.lock().await;
            let what = || format!("clear {range:?} up to {limit}");
            same(what, self.first.clear(range, limit).await, self.second.clear(range, limit).await)
        })
    }

    fn sync(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let _turn = self.turn.lock().await;
            same(|| "sync".to_owned(), self.first.sync().await, self.second.sync().await)
        })
    }

    /// Without a turn: it changes nothing, so the others need not wait for it.
    fn reclaim(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            same(|| "reclaim".to_owned(), self.first.reclaim().await, self.second.reclaim().await)
        })
    }

    /// Whether one of them did something; a store without files never does.
    fn compact_when_idle(&self) -> BoxFuture<'_, Result<bool>> {
        Box::pin(async move {
            let (first, second) =
                (self.first.compact_when_idle().await, self.second.compact_when_idle().await);
            Ok(first? | second?)
        })
    }

    fn sweep(&self, withered: Vec<Withered>) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let _turn = self.turn.lock().await;
            self.tolerated().add(&withered);
            let first = self.first.sweep(withered.clone()).await;
            same(|| "sweep".to_owned(), first, self.second.sweep(withered).await)?;
            // Gone for good in both, but snapshots from before keep what they tolerate.
            *self.tolerated.lock() = Tolerated::default();
            Ok(())
        })
    }

    fn wither(&self, withered: Vec<Withered>) {
        self.tolerated().add(&withered);
        self.first.wither(withered.clone());
        self.second.wither(withered);
    }
}

impl<A: Store + ?Sized, B: Store + ?Sized> Peers for Mirror<A, B> {
    fn is_shared(&self) -> bool {
        agreed("whether they are shared", self.first.is_shared(), self.second.is_shared())
    }

    fn raise_floor<'a>(&'a self, slots: &'a [Slot], floor: u64) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let _turn = self.turn.lock().await;
            let what = || format!("raise the floor of {slots:?} to {floor}");
            let first = self.first.raise_floor(slots, floor).await;
            same(what, first, self.second.raise_floor(slots, floor).await)
        })
    }

    fn floor(&self, slot: Slot) -> u64 {
        agreed("the floor of a slot", self.first.floor(slot), self.second.floor(slot))
    }

    fn say(&self, word: u64) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.first.say(word).await;
            self.second.say(word).await;
        })
    }

    fn heard(&self, word: u64) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            tokio::select! {
                () = self.first.heard(word) => {}
                () = self.second.heard(word) => {}
            }
        })
    }

    fn tends(&self, slot: Slot) -> bool {
        agreed("who tends a slot", self.first.tends(slot), self.second.tends(slot))
    }
}

struct MirrorSnapshot {
    first: Arc<dyn Snapshot>,
    second: Arc<dyn Snapshot>,
    tolerated: Tolerated,
}

impl Snapshot for MirrorSnapshot {
    fn get<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Bytes>>> {
        Box::pin(async move {
            let (first, second) = (self.first.get(key).await, self.second.get(key).await);
            let shown = |value: &Option<Bytes>| self.tolerated.value(key, value);
            same_by(|| format!("get {key:?} in a snapshot"), first, second, shown)
        })
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Bytes>>>> {
        Box::pin(async move {
            let (first, second) = (self.first.get_many(keys).await, self.second.get_many(keys).await);
            let shown = |values: &Vec<Option<Bytes>>| self.tolerated.values(keys, values);
            same_by(|| format!("get {keys:?} in a snapshot"), first, second, shown)
        })
    }

    fn scan<'a>(
        &'a self,
        range: &'a KeyRange,
        direction: Direction,
        limit: PageLimit,
    ) -> BoxFuture<'a, Result<Page>> {
        Box::pin(async move {
            let what = || format!("scan {range:?} {direction:?} {limit:?}");
            let first = self.first.scan(range, direction, limit).await;
            let second = self.second.scan(range, direction, limit).await;
            same_pages(what, range, direction, (first, second), &self.tolerated)
        })
    }

    /// The caller judges each row once, as the first store shows it. The second is given the same verdicts,
    /// has to meet the same rows, and may not deny one that was kept.
    fn sieve<'a>(
        &'a self,
        range: &'a KeyRange,
        direction: Direction,
        limit: PageLimit,
        may_hold: Option<&'a MayHold<'_>>,
        keep: &'a mut Keep<'_>,
    ) -> BoxFuture<'a, Result<Sieved>> {
        Box::pin(async move {
            let what = || format!("sieve {range:?} {direction:?} {limit:?}");
            let mut verdicts: BTreeMap<Vec<u8>, (Vec<u8>, bool)> = BTreeMap::new();
            let mut judge = |key: &[u8], value: &[u8], is_possible: bool| {
                let is_kept = keep(key, value, is_possible);
                verdicts.insert(key.to_vec(), (value.to_vec(), is_kept));
                is_kept
            };
            let first = self.first.sieve(range, direction, limit, may_hold, &mut judge).await;
            let mut missed = Vec::new();
            let mut repeat = |key: &[u8], value: &[u8], is_possible: bool| match verdicts.get(key) {
                Some((met, is_kept)) => {
                    assert_eq!(met, value, "the value of {:?} in {}", key.escape_ascii(), what());
                    assert!(is_possible || !is_kept, "{:?} was denied in {}", key.escape_ascii(), what());
                    *is_kept
                }
                None => {
                    missed.push(Bytes::copy_from_slice(key));
                    false
                }
            };
            let second = self.second.sieve(range, direction, limit, may_hold, &mut repeat).await;
            let is_exact = !self.tolerated.is_about(range);
            assert!(!is_exact || missed.is_empty(), "only the second met {missed:?} in {}", what());
            let met = |sieved: &Sieved| (sieved.met, sieved.cut_after.clone());
            if let (true, Ok(first), Ok(second)) = (is_exact, &first, &second) {
                assert_eq!(met(first), met(second), "what was met in {}", what());
            }
            let kept =
                |sieved: &Sieved| Reached { rows: sieved.rows.clone(), last: sieved.cut_after.clone() };
            let reached = (first.as_ref().map(kept), second.as_ref().map(kept));
            let reached = (reached.0.map_err(copy), reached.1.map_err(copy));
            same_reached(what, range, direction, reached, &self.tolerated)?;
            first
        })
    }
}

/// Rows that a sweep removes, or will: until it has ended, each store may show them or not.
#[derive(Clone, Default)]
struct Tolerated(Arc<parking_lot::Mutex<Vec<Withered>>>);

impl Tolerated {
    fn add(&self, withered: &[Withered]) {
        self.0.lock().extend_from_slice(withered);
    }

    /// Whether a range may have such rows.
    fn is_about(&self, range: &KeyRange) -> bool {
        self.0.lock().iter().any(|rows| rows.range.space == range.space && rows.range.slot == range.slot)
    }

    fn has(&self, space: Space, slot: Slot, key: &[u8], value: &[u8]) -> bool {
        let is_in = |range: &KeyRange| {
            range.space == space
                && range.slot == slot
                && *key >= *range.start
                && range.end.as_deref().is_none_or(|end| key < end)
        };
        self.0.lock().iter().any(|rows| is_in(&rows.range) && rows.includes(value))
    }

    /// A value, if it is one that both must show.
    fn value(&self, key: &Key, value: &Option<Bytes>) -> Option<Bytes> {
        let is_shown = |value: &&Bytes| !self.has(key.space, key.slot, &key.bytes, value);
        value.as_ref().filter(is_shown).cloned()
    }

    fn values(&self, keys: &[Key], values: &[Option<Bytes>]) -> Vec<Option<Bytes>> {
        keys.iter().zip(values).map(|(key, value)| self.value(key, value)).collect()
    }
}

/// Rows of a walk, and the key after which it was cut short, if it was.
struct Reached {
    rows: Vec<(Bytes, Bytes)>,
    last: Option<Bytes>,
}

/// The first page, after a comparison with the second.
fn same_pages(
    what: impl Fn() -> String,
    range: &KeyRange,
    direction: Direction,
    (first, second): (Result<Page>, Result<Page>),
    tolerated: &Tolerated,
) -> Result<Page> {
    if let (false, Ok(first), Ok(second)) = (tolerated.is_about(range), &first, &second) {
        let shape = |page: &Page| (page.rows.len(), page.more);
        assert_eq!(shape(first), shape(second), "rows, and whether there are more, of {}", what());
    }
    let reached = |page: &Page| Reached {
        rows: page.rows.clone(),
        last: page.rows.last().filter(|_| page.more).map(|(key, _)| key.clone()),
    };
    let both = (first.as_ref().map(reached), second.as_ref().map(reached));
    same_reached(what, range, direction, (both.0.map_err(copy), both.1.map_err(copy)), tolerated)?;
    first
}

/// Compares two walks as far as both went.
fn same_reached(
    what: impl Fn() -> String,
    range: &KeyRange,
    direction: Direction,
    (first, second): (Result<Reached>, Result<Reached>),
    tolerated: &Tolerated,
) -> Result<()> {
    let (Ok(one), Ok(other)) = (&first, &second) else {
        return same(what, first.map(drop), second.map(drop));
    };
    let ends = one.last.iter().chain(&other.last);
    let common = match direction {
        Direction::Forward => ends.min(),
        Direction::Reverse => ends.max(),
    };
    let is_within = |key: &Bytes| match direction {
        Direction::Forward => common.is_none_or(|common| key <= common),
        Direction::Reverse => common.is_none_or(|common| key >= common),
    };
    let shown = |(key, value): &&(Bytes, Bytes)| {
        is_within(key) && !tolerated.has(range.space, range.slot, key, value)
    };
    let (mut one, mut other) = (one.rows.iter().filter(shown), other.rows.iter().filter(shown));
    for number in 0.. {
        match (one.next(), other.next()) {
            (None, None) => break,
            (first, second) => assert_eq!(first, second, "the stores differ in row {number} of {}", what()),
        }
    }
    Ok(())
}

/// What both say about themselves.
fn agreed<T: Debug + PartialEq>(what: &str, first: T, second: T) -> T {
    assert_eq!(first, second, "the stores differ in {what}");
    first
}

/// The first answer, after a comparison with the second.
fn same<T: Debug + PartialEq>(what: impl Fn() -> String, first: Result<T>, second: Result<T>) -> Result<T> {
    let equal = match (&first, &second) {
        (Ok(first), Ok(second)) => first == second,
        (Err(first), Err(second)) => kind(first) == kind(second),
        _ => false,
    };
    assert!(equal, "the stores differ in {}:\n  first:  {first:?}\n  second: {second:?}", what());
    first
}

/// The first answer, after a comparison of what both must show of it.
fn same_by<T, S: Debug + PartialEq>(
    what: impl Fn() -> String,
    first: Result<T>,
    second: Result<T>,
    shown: impl Fn(&T) -> S,
) -> Result<T> {
    let of = |answer: &Result<T>| answer.as_ref().map(&shown).map_err(copy);
    same(what, of(&first), of(&second))?;
    first
}

/// An error without its wording.
fn kind(error: &Error) -> (u8, Option<&Key>, Option<u64>) {
    match error {
        Error::Conflict { key } => (0, Some(key), None),
        Error::Stale { stamp } => (1, None, Some(*stamp)),
        Error::Invalid(_) => (2, None, None),
        Error::Failed(_) => (3, None, None),
        Error::Poisoned => (4, None, None),
        Error::Unusable(_) => (5, None, None),
        Error::Unreachable(_) => (6, None, None),
        Error::Moved => (7, None, None),
        Error::KeyTooLong { .. } => (8, None, None),
        Error::Apart => (9, None, None),
    }
}

fn copy(error: &Error) -> Error {
    match error {
        Error::Conflict { key } => Error::Conflict { key: key.clone() },
        Error::Stale { stamp } => Error::Stale { stamp: *stamp },
        Error::Invalid(what) => Error::Invalid(what),
        Error::Failed(what) => Error::Failed(what.clone()),
        Error::Poisoned => Error::Poisoned,
        Error::Unusable(what) => Error::Unusable(what.clone()),
        Error::Unreachable(what) => Error::Unreachable(what.clone()),
        Error::Moved => Error::Moved,
        Error::KeyTooLong { bytes_max } => Error::KeyTooLong { bytes_max: *bytes_max },
        Error::Apart => Error::Apart,
    }
}

#[cfg(test)]
mod tests {
    use mayfly_storage::{
        MemoryStore, conformance,
        store::{Put, Slot, Space},
    };

    use super::*;

    /// A mirror of two good stores is a good store.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn conformance() {
        conformance::run_all(|| async {
            let mirror = Mirror::new(Arc::new(MemoryStore::new()), Arc::new(MemoryStore::new()));
            Arc::new(mirror) as Arc<dyn Store>
        })
        .await;
    }

    fn key() -> Key {
        Key { space: Space::Small, slot: Slot(0), bytes: vec![1] }
    }

    fn all() -> KeyRange {
        KeyRange::prefix(Space::Small, Slot(0), vec![])
    }

    /// A mirror of a store with a row and one without.
    async fn unequal(value: &[u8]) -> Mirror<MemoryStore, MemoryStore> {
        let (first, second) = (Arc::new(MemoryStore::new()), Arc::new(MemoryStore::new()));
        let put = Put { key: key(), value: value.to_vec(), marks: vec![] };
        first.commit(Batch { puts: vec![put], ..Batch::default() }).await.unwrap();
        Mirror::new(first, second)
    }

    /// A store that lost something is noticed, by whatever reads.
    #[tokio::test]
    #[should_panic(expected = "the stores differ in get")]
    async fn a_difference_is_noticed() {
        let _ = unequal(b"").await.get(&key()).await;
    }

    #[tokio::test]
    #[should_panic(expected = "the stores differ in get both")]
    async fn a_difference_of_both_is_noticed() {
        let _ = unequal(b"").await.get_both(&[key(), key()]).await;
    }

    #[tokio::test]
    #[should_panic(expected = "peek")]
    async fn a_difference_of_first_rows_is_noticed() {
        let _ = unequal(b"").await.peek(&all(), 5).await;
    }

    #[tokio::test]
    #[should_panic(expected = "what was met in sieve")]
    async fn a_difference_of_a_sieve_is_noticed() {
        let snapshot = unequal(b"").await.snapshot().await.unwrap();
        let limit = PageLimit { rows: 5, bytes: usize::MAX };
        let _ = snapshot.sieve(&all(), Direction::Forward, limit, None, &mut |_, _, _| false).await;
    }

    /// A filter that denies what it keeps is noticed on any store.
    #[tokio::test]
    #[should_panic(expected = "was denied in sieve")]
    async fn a_kept_row_that_is_denied_is_noticed() {
        let store = Mirror::new(Arc::new(MemoryStore::new()), Arc::new(MemoryStore::new()));
        let put = Put { key: key(), value: vec![], marks: vec![] };
        store.commit(Batch { puts: vec![put], ..Batch::default() }).await.unwrap();
        let snapshot = store.snapshot().await.unwrap();
        let limit = PageLimit { rows: 5, bytes: usize::MAX };
        let deny = |_: &[u8]| false;
        let _ = snapshot.sieve(&all(), Direction::Forward, limit, Some(&deny), &mut |_, _, _| true).await;
    }

    /// A withered row may be gone from one store before the sweep, another may not.
    #[tokio::test]
    async fn withered_rows_may_be_gone_early() {
        let value = |number: u64| [&[7][..], &number.to_be_bytes()].concat();
        let withered = || vec![Withered { range: all(), lead: 7, through: 5 }];
        let mirror = unequal(&value(5)).await;
        let limit = PageLimit { rows: 5, bytes: usize::MAX };
        let before = mirror.snapshot().await.unwrap();
        mirror.wither(withered());
        assert!(mirror.get(&key()).await.unwrap().is_some());
        assert_eq!(before.scan(&all(), Direction::Forward, limit).await.unwrap().rows.len(), 1);
        mirror.sweep(withered()).await.unwrap();
        assert!(mirror.get(&key()).await.unwrap().is_none());
        assert_eq!(before.scan(&all(), Direction::Forward, limit).await.unwrap().rows.len(), 1);
    }

    #[tokio::test]
    #[should_panic(expected = "the stores differ in get")]
    async fn rows_that_are_not_withered_may_not_be_gone() {
        let value = [&[7][..], &6_u64.to_be_bytes()].concat();
        let mirror = unequal(&value).await;
        mirror.wither(vec![Withered { range: all(), lead: 7, through: 5 }]);
        let _ = mirror.get(&key()).await;
    }
}
