//! What a crash would leave, for every moment of a run.
//!
//! [`CrashImages`] is a memory store that keeps its content after every commit. A test runs its workload once and
//! then, for each [`CrashPoint`], opens the image that a crash at that point could leave and checks it. All points
//! of a run of n commits cost n pointers.
//!
//! ```text
//!   commits      1F   2B   3B   4F   5B        F foreground, B background
//!   crash after 3:  1, 2 or 3 survive          background commits may be lost, as a whole suffix
//!   crash after 4:  only 4                     a durable commit carries all before it
//! ```
//!
//! Holds: images are ordered as the commits were acknowledged, and an image never changes.

use std::sync::Arc;

use bytes::Bytes;
use mayfly_storage::{
    MemoryStore, Result,
    peers::Unshared,
    store::{Batch, BoxFuture, Committed, Key, KeyRange, Snapshot, Stats, Store, Urgency},
    upkeep::{Cleared, Upkeep, Withered},
};
use tokio::sync::Mutex;

/// A crash and one of the states it may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrashPoint {
    /// Changes that were acknowledged before the crash.
    pub acknowledged: usize,
    /// Changes that are there afterwards; the first ones.
    pub survived: usize,
}

/// A store whose every past state can be opened.
pub struct CrashImages {
    live: MemoryStore,
    /// Held over a change and its image, so that images are in the order of the changes.
    past: Mutex<Past>,
}

struct Past {
    /// After 0, 1, 2 … changes.
    images: Vec<MemoryStore>,
    /// How many changes were durable at that time; the durable image is the one with this number.
    durable: Vec<usize>,
}

impl Past {
    fn add(&mut self, image: MemoryStore, urgency: Urgency) {
        let durable = match urgency {
            Urgency::Foreground => self.images.len(),
            Urgency::Background => self.durable.last().copied().unwrap_or(0),
        };
        self.images.push(image);
        self.durable.push(durable);
    }
}

impl CrashImages {
    /// Starts from the content of `store`, which counts as durable.
    pub fn new(store: &MemoryStore) -> Self {
        let past = Past { images: vec![store.fork()], durable: vec![0] };
        Self { live: store.fork(), past: Mutex::new(past) }
    }

    /// Changes so far: accepted batches, and each key that a clear removed, as a clear is not atomic.
    pub async fn changes(&self) -> usize {
        self.past.lock().await.images.len() - 1
    }

    /// A fresh store with the state after `changes` changes; `None` if there were not as many.
    pub async fn after(&self, changes: usize) -> Option<MemoryStore> {
        self.past.lock().await.images.get(changes).map(MemoryStore::fork)
    }

    /// A fresh store with what is durable now, the least that a crash leaves.
    pub async fn durable(&self) -> MemoryStore {
        let past = self.past.lock().await;
        let durable = past.durable.last().copied().unwrap_or(0);
        past.images[durable].fork()
    }

    /// Every crash of the run so far with every state it may leave.
    pub async fn points(&self) -> Vec<CrashPoint> {
        let past = self.past.lock().await;
        let at = |(acknowledged, durable): (usize, &usize)| {
            (*durable..=acknowledged).map(move |survived| CrashPoint { acknowledged, survived })
        };
        past.durable.iter().enumerate().flat_map(at).collect()
    }
}

impl Store for CrashImages {
    fn get<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Bytes>>> {
        self.live.get(key)
    }

    fn get_both<'a>(&'a self, keys: &'a [Key; 2]) -> BoxFuture<'a, Result<[Option<Bytes>; 2]>> {
        self.live.get_both(keys)
    }

    fn peek<'a>(&'a self, range: &'a KeyRange, rows: usize) -> BoxFuture<'a, Result<Vec<(Bytes, Bytes)>>> {
        self.live.peek(range, rows)
    }

    fn snapshot(&self) -> BoxFuture<'_, Result<Arc<dyn Snapshot>>> {
        self.live.snapshot()
    }

    fn background_snapshot(&self) -> BoxFuture<'_, Result<Arc<dyn Snapshot>>> {
        self.live.background_snapshot()
    }

    fn commit(&self, batch: Batch) -> BoxFuture<'_, Result<Committed>> {
        Box::pin(async move {
            let mut past = self.past.lock().await;
            let urgency = batch.urgency;
            let committed = self.live.commit(batch).await?;
            past.add(self.live.fork(), urgency);
            Ok(committed)
        })
    }

    fn stats(&self) -> Stats {
        self.live.stats()
    }
}

impl Upkeep for CrashImages {
    /// One key at a time, so that a crash can come between any two.
    fn clear<'a>(&'a self, range: &'a KeyRange, limit: usize) -> BoxFuture<'a, Result<Cleared>> {
        Box::pin(async move {
            let mut past = self.past.lock().await;
            let mut cleared = Cleared { keys: 0, more: true };
            while cleared.more && cleared.keys < limit.max(1) {
                let one = self.live.clear(range, limit.min(1)).await?;
                if one.keys > 0 {
                    past.add(self.live.fork(), Urgency::Background);
                }
                cleared = Cleared { keys: cleared.keys + one.keys, more: one.more };
            }
            Ok(cleared)
        })
    }

    fn sync(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let mut past = self.past.lock().await;
            let changes = past.images.len() - 1;
            if let Some(durable) = past.durable.last_mut() {
                *durable = changes;
            }
            Ok(())
        })
    }

    fn sweep(&self, withered: Vec<Withered>) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let mut past = self.past.lock().await;
            for rows in withered {
                self.live.sweep(vec![rows]).await?;
                past.add(self.live.fork(), Urgency::Background);
            }
            Ok(())
        })
    }

    fn reclaim(&self) -> BoxFuture<'_, Result<()>> {
        self.live.reclaim()
    }

    fn compact_when_idle(&self) -> BoxFuture<'_, Result<bool>> {
        self.live.compact_when_idle()
    }

    fn wither(&self, withered: Vec<Withered>) {
        self.live.wither(withered);
    }
}

impl Unshared for CrashImages {}

#[cfg(test)]
mod tests {
    use mayfly_storage::{
        conformance,
        store::{Put, Slot, Space},
    };

    use super::*;

    fn key(name: u8) -> Key {
        Key { space: Space::Small, slot: Slot(0), bytes: vec![name] }
    }

    fn put(name: u8, urgency: Urgency) -> Batch {
        let put = Put { key: key(name), value: vec![], marks: vec![] };
        Batch { puts: vec![put], urgency, ..Batch::default() }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn conformance() {
        conformance::run_all(|| async { Arc::new(CrashImages::new(&MemoryStore::new())) as Arc<dyn Store> })
            .await;
    }

    /// The run drawn at the head of this file.
    #[tokio::test]
    async fn background_commits_may_be_lost_as_a_suffix() {
        use Urgency::{Background, Foreground};
        let store = CrashImages::new(&MemoryStore::new());
        for (name, urgency) in
            [(1, Foreground), (2, Background), (3, Background), (4, Foreground), (5, Background)]
        {
            store.commit(put(name, urgency)).await.unwrap();
        }
        let points = store.points().await;
        let survivors = |acknowledged| -> Vec<usize> {
            let of = points.iter().filter(|point| point.acknowledged == acknowledged);
            of.map(|point| point.survived).collect()
        };
        assert_eq!(survivors(3), [1, 2, 3]);
        assert_eq!(survivors(4), [4]);
        assert_eq!(survivors(5), [4, 5]);
        for point in points {
            let image = store.after(point.survived).await.unwrap();
            for name in 1..=5u8 {
                let is_there = image.get(&key(name)).await.unwrap().is_some();
                assert_eq!(is_there, usize::from(name) <= point.survived);
            }
        }
        assert!(store.durable().await.get(&key(5)).await.unwrap().is_none());
        store.sync().await.unwrap();
        assert!(store.durable().await.get(&key(5)).await.unwrap().is_some());
        assert!(store.after(6).await.is_none());
    }

    /// A crash can come in the middle of a clear, and never changes an image.
    #[tokio::test]
    async fn clears_are_not_atomic() {
        let store = CrashImages::new(&MemoryStore::new());
        for name in 0..4 {
            store.commit(put(name, Urgency::Foreground)).await.unwrap();
        }
        let range = KeyRange::prefix(Space::Small, Slot(0), vec![]);
        let cleared = store.clear(&range, 3).await.unwrap();
        assert_eq!(cleared, Cleared { keys: 3, more: true });
        assert_eq!(store.changes().await, 7);
        let between = store.after(5).await.unwrap();
        assert!(between.get(&key(0)).await.unwrap().is_none());
        assert!(between.get(&key(1)).await.unwrap().is_some());
    }
}
