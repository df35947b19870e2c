//! How long single operations take, as percentiles.
#![expect(clippy::disallowed_methods, reason = "a bench measures time")]

use std::{
    future::Future,
    time::{Duration, Instant},
};

/// Durations of many operations.
#[derive(Debug, Default)]
pub struct Latencies(Vec<u64>);

/// What most people look at.
#[derive(Clone, Copy, Debug)]
pub struct Summary {
    /// Half were at least this fast.
    pub p50: Duration,
    /// All but one in a hundred were at least this fast.
    pub p99: Duration,
    /// Operations per second.
    pub per_second: f64,
}

impl Latencies {
    /// Runs `work(n)` for n = 0, 1, 2 … for as long as `go_on` says, resting `pause` in between.
    pub async fn measure<W: Future<Output = ()>>(
        mut go_on: impl FnMut() -> bool,
        pause: Duration,
        mut work: impl FnMut(usize) -> W,
    ) -> Summary {
        let mut latencies = Self::default();
        let start = Instant::now();
        let mut n = 0;
        while go_on() {
            let begun = Instant::now();
            work(n).await;
            latencies.push(begun.elapsed());
            n += 1;
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
        }
        latencies.summary(start.elapsed())
    }

    /// Adds one.
    pub fn push(&mut self, took: Duration) {
        self.0.push(took.as_nanos() as u64);
    }

    /// Adds all of another.
    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The percentiles, and the rate over so long a time.
    pub fn summary(mut self, elapsed: Duration) -> Summary {
        self.0.sort_unstable();
        let at = |percent: usize| {
            let index = (self.0.len() * percent / 100).min(self.0.len().saturating_sub(1));
            Duration::from_nanos(self.0.get(index).copied().unwrap_or(0))
        };
        Summary { p50: at(50), p99: at(99), per_second: self.0.len() as f64 / elapsed.as_secs_f64() }
    }
}
