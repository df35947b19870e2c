//! A store that remembers every batch it was given, so that the same keys can be committed without the engine.

use std::sync::Arc;

use bytes::Bytes;
use mayfly_storage::{
    Result,
    memory::MemoryStore,
    store::{Batch, BoxFuture, Cleared, Committed, Key, KeyRange, Snapshot, Stats, Store, Withered},
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

    fn snapshot(&self) -> BoxFuture<'_, Result<Arc<dyn Snapshot>>> {
        self.inner.snapshot()
    }

    fn commit(&self, batch: Batch) -> BoxFuture<'_, Result<Committed>> {
        self.batches.lock().push(batch.clone());
        self.inner.commit(batch)
    }

    fn clear<'a>(&'a self, range: &'a KeyRange, limit: usize) -> BoxFuture<'a, Result<Cleared>> {
        self.inner.clear(range, limit)
    }

    fn sync(&self) -> BoxFuture<'_, Result<()>> {
        self.inner.sync()
    }

    fn sweep(&self, withered: Vec<Withered>) -> BoxFuture<'_, Result<()>> {
        self.inner.sweep(withered)
    }

    fn stats(&self) -> Stats {
        self.inner.stats()
    }
}
