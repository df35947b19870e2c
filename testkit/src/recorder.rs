//! What was written, in the order it was written.
//!
//! A golden test runs a request through the engine on a [`Recorder`] and prints [`Recorder::take`]: exactly which
//! keys and values the request cost. Refused batches write nothing and leave no line.
//!
//! Holds: a line says what is in the store afterwards, sequence numbers filled in.

use std::{
    fmt::{self, Display, Formatter},
    sync::Arc,
};

use bytes::Bytes;
use mayfly_storage::{
    Result,
    peers::Peers,
    store::{
        Batch, BoxFuture, Committed, Counter, Key, KeyRange, Slot, Snapshot, Space, Stats, Store, Urgency,
    },
    upkeep::{Cleared, Upkeep, Withered},
};
use parking_lot::Mutex;

/// One physical write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// A batch begins; its writes follow.
    Commit(Urgency),
    /// A value was put.
    Put(Key, Vec<u8>),
    /// A key was deleted, whether or not it was there.
    Delete(Key),
    /// A counter was raised to this.
    Advance(Key, Counter),
    /// Up to so many keys of a range were cleared; so many were.
    Clear(KeyRange, usize),
    /// The withered rows of a range were removed.
    Sweep(Withered),
}

/// A store that remembers what is written to it.
pub struct Recorder<S: ?Sized> {
    inner: Arc<S>,
    writes: Mutex<Vec<Write>>,
}

impl<S: Store + ?Sized> Recorder<S> {
    /// Records from now on.
    pub fn new(inner: Arc<S>) -> Self {
        Self { inner, writes: Mutex::default() }
    }

    /// Everything written since the last time.
    pub fn take(&self) -> Vec<Write> {
        std::mem::take(&mut self.writes.lock())
    }

    async fn record(&self, batch: Batch) -> Result<Committed> {
        let copy = batch.clone();
        let committed = self.inner.commit(batch).await?;
        let mut writes = self.writes.lock();
        writes.push(Write::Commit(copy.urgency));
        writes.extend(copy.puts.into_iter().map(|put| {
            let (key, value) = put.filled(&committed.counters);
            Write::Put(key, value)
        }));
        writes.extend(copy.deletes.into_iter().map(Write::Delete));
        let advanced = copy.advances.into_iter().zip(&committed.counters);
        writes.extend(advanced.map(|(advance, counter)| Write::Advance(advance.counter, *counter)));
        Ok(committed)
    }
}

impl<S: Store + ?Sized> Store for Recorder<S> {
    fn get<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Bytes>>> {
        self.inner.get(key)
    }

    fn get_both<'a>(&'a self, keys: &'a [Key; 2]) -> BoxFuture<'a, Result<[Option<Bytes>; 2]>> {
        self.inner.get_both(keys)
    }

    fn peek<'a>(&'a self, range: &'a KeyRange, rows: usize) -> BoxFuture<'a, Result<Vec<(Bytes, Bytes)>>> {
        self.inner.peek(range, rows)
    }

    fn snapshot(&self) -> BoxFuture<'_, Result<Arc<dyn Snapshot>>> {
        self.inner.snapshot()
    }

    fn background_snapshot(&self) -> BoxFuture<'_, Result<Arc<dyn Snapshot>>> {
        self.inner.background_snapshot()
    }

    fn commit(&self, batch: Batch) -> BoxFuture<'_, Result<Committed>> {
        Box::pin(self.record(batch))
    }

    fn stats(&self) -> Stats {
        self.inner.stats()
    }
}

impl<S: Store + ?Sized> Upkeep for Recorder<S> {
    fn clear<'a>(&'a self, range: &'a KeyRange, limit: usize) -> BoxFuture<'a, Result<Cleared>> {
        Box::pin(async move {
            let cleared = self.inner.clear(range, limit).await?;
            self.writes.lock().push(Write::Clear(range.clone(), cleared.keys));
            Ok(cleared)
        })
    }

    fn sync(&self) -> BoxFuture<'_, Result<()>> {
        self.inner.sync()
    }

    fn reclaim(&self) -> BoxFuture<'_, Result<()>> {
        self.inner.reclaim()
    }

    fn compact_when_idle(&self) -> BoxFuture<'_, Result<bool>> {
        self.inner.compact_when_idle()
    }

    fn sweep(&self, withered: Vec<Withered>) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            self.inner.sweep(withered.clone()).await?;
            self.writes.lock().extend(withered.into_iter().map(Write::Sweep));
            Ok(())
        })
    }

    fn wither(&self, withered: Vec<Withered>) {
        self.inner.wither(withered);
    }
}

impl<S: Store + ?Sized> Peers for Recorder<S> {
    fn is_shared(&self) -> bool {
        self.inner.is_shared()
    }

    fn raise_floor<'a>(&'a self, slots: &'a [Slot], floor: u64) -> BoxFuture<'a, Result<()>> {
        self.inner.raise_floor(slots, floor)
    }

    fn say(&self, word: u64) -> BoxFuture<'_, ()> {
        self.inner.say(word)
    }

    fn heard(&self, word: u64) -> BoxFuture<'_, ()> {
        self.inner.heard(word)
    }

    fn tends(&self, slot: Slot) -> bool {
        self.inner.tends(slot)
    }

    fn floor(&self, slot: Slot) -> u64 {
        self.inner.floor(slot)
    }
}

impl Display for Write {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Write::Commit(Urgency::Foreground) => write!(f, "commit"),
            Write::Commit(Urgency::Background) => write!(f, "commit in the background"),
            Write::Put(key, value) => write!(f, "  put {} = {}", At(key), value.escape_ascii()),
            Write::Delete(key) => write!(f, "  delete {}", At(key)),
            Write::Advance(key, Counter { seq, stamp, tally: [first, second] }) => {
                write!(f, "  advance {} to {seq}, stamp {stamp}, tallies {first} and {second}", At(key))
            }
            Write::Clear(range, keys) => {
                let end = range.end.as_deref().unwrap_or(b"end").escape_ascii();
                write!(f, "clear {} to {end}: {keys} keys", range.start.escape_ascii())
            }
            Write::Sweep(Withered { range, lead, through }) => {
                let end = range.end.as_deref().unwrap_or(b"end").escape_ascii();
                let start = range.start.escape_ascii();
                write!(f, "sweep {start} to {end}: what begins with {lead} and at most {through}")
            }
        }
    }
}

/// A key as it is printed.
struct At<'a>(&'a Key);

impl Display for At<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let space = match self.0.space {
            Space::Small => "small",
            Space::Large => "large",
        };
        write!(f, "{space}/{}/{}", self.0.slot.0, self.0.bytes.escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use mayfly_storage::{
        MemoryStore, conformance,
        store::{Advance, Expect, Guard, MarkAt, Put, SeqMark},
    };

    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn conformance() {
        conformance::run_all(|| async {
            Arc::new(Recorder::new(Arc::new(MemoryStore::new()))) as Arc<dyn Store>
        })
        .await;
    }

    /// Writes appear as they are in the store; refused ones do not.
    #[tokio::test]
    async fn prints_what_was_written() {
        let recorder = Recorder::new(Arc::new(MemoryStore::new()));
        let key = |bytes: &[u8]| Key { space: Space::Small, slot: Slot(3), bytes: bytes.to_vec() };
        let batch = Batch {
            guards: vec![Guard { key: key(b"c"), expect: Expect::Absent }],
            puts: vec![Put {
                key: key(b"f________"),
                value: b"v".to_vec(),
                marks: vec![SeqMark { advance: 0, at: MarkAt::Key(1) }],
            }],
            deletes: vec![key(b"d")],
            advances: vec![Advance { counter: key(b"c"), stamp: 5, tally: [1, 10] }],
            ..Batch::default()
        };
        recorder.commit(batch.clone()).await.unwrap();
        assert!(recorder.commit(batch).await.is_err());
        recorder.clear(&KeyRange::prefix(Space::Small, Slot(3), b"c".to_vec()), 9).await.unwrap();
        let lines: Vec<String> = recorder.take().iter().map(Write::to_string).collect();
        assert_eq!(
            lines,
            [
                "commit",
                r"  put small/3/f\x00\x00\x00\x00\x00\x00\x00\x01 = v",
                "  delete small/3/d",
                "  advance small/3/c to 1, stamp 5, tallies 1 and 10",
                "clear c to d: 1 keys",
            ]
        );
        assert!(recorder.take().is_empty());
    }
}
