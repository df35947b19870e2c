//! A gate per collection: writers go through it together, whoever builds an index closes it behind them.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

/// All gates, by the number of the container.
#[derive(Default)]
pub struct Gates(Mutex<HashMap<u32, Arc<RwLock<()>>>>);

impl Gates {
    fn of(&self, container: u32) -> Arc<RwLock<()>> {
        self.0.lock().entry(container).or_default().clone()
    }

    /// Goes through to write; waits while somebody has closed it.
    pub async fn pass(&self, container: u32) -> OwnedRwLockReadGuard<()> {
        self.of(container).read_owned().await
    }

    /// Waits for those who write and keeps others out.
    pub async fn close(&self, container: u32) -> OwnedRwLockWriteGuard<()> {
        self.of(container).write_owned().await
    }
}
