//! How background work gives way to requests.
//!
//! While requests come in, background work rests many times as long as it worked, so it takes a few percent of the
//! machine; while nobody asks for anything, it goes on at once.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use mayfly_engine::clock::pause;

/// Rest per unit of work while requests come in. 24 leaves background work four percent of one core.
const REST_FACTOR: u32 = 24;

/// One rest is at most this long, so that a burst of requests does not stop background work for ever.
const REST_MAX: Duration = Duration::from_millis(500);

/// Counts requests that are running and that have come.
#[derive(Debug, Default)]
pub struct Load {
    running: AtomicU64,
    arrived: AtomicU64,
    seen: AtomicU64,
}

/// A request that is running.
pub struct Busy<'a>(&'a Load);

impl Load {
    /// Counts a request until the answer is dropped.
    pub fn enter(&self) -> Busy<'_> {
        self.running.fetch_add(1, Ordering::Relaxed);
        self.arrived.fetch_add(1, Ordering::Relaxed);
        Busy(self)
    }

    /// Rests after background work that took `worked`, if there is anybody to give way to.
    pub async fn give_way(&self, worked: Duration) {
        let arrived = self.arrived.load(Ordering::Relaxed);
        let busy =
            self.running.load(Ordering::Relaxed) > 0 || self.seen.swap(arrived, Ordering::Relaxed) != arrived;
        if busy {
            pause((worked * REST_FACTOR).min(REST_MAX)).await;
        } else {
            tokio::task::yield_now().await;
        }
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}
