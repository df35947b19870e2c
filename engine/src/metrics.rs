//! What the engine counts, per container. Gauges that need a look at the data are in `usage.rs`.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::RwLock;

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// Adds to it.
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    /// The sum so far.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Counts of one container since the process started.
#[derive(Debug, Default)]
pub struct ContainerMetrics {
    /// Operations that changed documents.
    pub writes: Count,
    /// Documents that purge removed.
    pub purged_documents: Count,
    /// Bytes of those.
    pub purged_bytes: Count,
}

/// Counts of all containers, by number.
#[derive(Debug, Default)]
pub struct Metrics {
    containers: RwLock<HashMap<u32, Arc<ContainerMetrics>>>,
}

impl Metrics {
    /// The counts of one container.
    pub fn of(&self, container: u32) -> Arc<ContainerMetrics> {
        if let Some(metrics) = self.containers.read().get(&container) {
            return metrics.clone();
        }
        self.containers.write().entry(container).or_default().clone()
    }

    /// Forgets a container that was dropped.
    pub(crate) fn forget(&self, container: u32) {
        self.containers.write().remove(&container);
    }
}
