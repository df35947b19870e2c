//! A store that remembers every batch it was given, so that the same keys can be committed without the engine.

use std::sync::Arc;

use bytes::Bytes;
use mayfly_storage::{
    Result,
    memory::MemoryStore,
    peers::Unshared,
    store::{Batch, BoxFuture, Committed, Key, KeyRange, Snapshot, Stats, Store},
    upkeep::{Cleared, Upkeep, Withered},
};
use parking_lot::Mutex;

/// A memory store with a list of what was committed.
#[derive(Default)]
pub struct Remembering {
    inner: MemoryStore,
    batches: Mutex<Vec<Batch>>,
}

impl Remembering {
    /// The batches since the last call.
    pub fn take(&self) -> Vec<Batch> {
        std::mem::take(&mut self.batches.lock())
    }
}

impl Store for Remembering {
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
        self.batches.lock().push(batch.clone());
        self.inner.commit(batch)
    }

    fn stats(&self) -> Stats {
        self.inner.stats()
    }
}

impl Upkeep for Remembering {
    fn clear<'a>(&'a self, range: &'a KeyRange, limit: usize) -> BoxFuture<'a, Result<Cleared>> {
        self.inner.clear(range, limit)
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
        self.inner.sweep(withered)
    }

    fn wither(&self, withered: Vec<Withered>) {
        self.inner.wither(withered);
    }
}

impl Unshared for Remembering {}
