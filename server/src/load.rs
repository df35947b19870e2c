//! How background work gives way to requests.
//!
//! While requests come in, background work rests many times as long as it worked; while nobody asks for anything, it goes
//! on at once. At first it takes less than a hundredth of the time, so that not even the slowest hundredth of requests
//! meets it. Work that stays behind gets more, step by step: a backlog that only grows would fill the disk.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use mayfly_engine::clock::pause;

/// Rest per unit of work while requests come in, by how long the work has been behind.
fn rest_factor(behind: Duration) -> u32 {
    match behind.as_secs() {
        0..60 => 120,
        60..600 => 24,
        _ => 4,
    }
}

/// One rest is at most this long, so that a burst of requests does not stop background work for ever.
const REST_MAX: Duration = Duration::from_secs(2);

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

    /// Rests after background work that took `worked` and has been behind for so long, if there is anybody to give way
    /// to.
    pub async fn give_way(&self, worked: Duration, behind: Duration) {
        let arrived = self.arrived.load(Ordering::Relaxed);
        let busy =
            self.running.load(Ordering::Relaxed) > 0 || self.seen.swap(arrived, Ordering::Relaxed) != arrived;
        if busy {
            pause((worked * rest_factor(behind)).min(REST_MAX)).await;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_stays_behind_rests_less() {
        let factors = [0, 59, 60, 599, 600, 100_000].map(|s| rest_factor(Duration::from_secs(s)));
        assert_eq!(factors, [120, 120, 24, 24, 4, 4]);
    }
}
