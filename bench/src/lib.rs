//! Measuring Mayfly: what the benches share.
//!
//! Figures are ratios taken in one run on one machine; absolute ones say more about the machine. `docs/performance.md`
//! has the last ones with the commands that gave them.
#![expect(clippy::disallowed_methods, reason = "a bench measures time")]

pub mod bulk;
pub mod churn;
pub mod documents;
pub mod http;
pub mod latency;
pub mod mongo;
pub mod mongod;
pub mod postgres;
pub mod processes;
pub mod query;
pub mod replay;
pub mod rest;
pub mod subject;
pub mod world;

use std::{
    future::Future,
    time::{Duration, Instant},
};

/// Runs `work` and says how long it took.
pub async fn timed<T>(work: impl Future<Output = T>) -> (T, Duration) {
    let start = Instant::now();
    let done = work.await;
    (done, start.elapsed())
}

/// Runs `work(n)` for n in `0..count` on `writers` tasks and returns operations per second.
pub async fn spread<F, W>(count: usize, writers: usize, work: F) -> f64
where
    F: Fn(usize) -> W + Clone + Send + 'static,
    W: Future<Output = ()> + Send + 'static,
{
    let start = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for writer in 0..writers {
        let work = work.clone();
        tasks.spawn(async move {
            for n in (writer..count).step_by(writers) {
                work(n).await;
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.expect("a bench task does not panic");
    }
    count as f64 / start.elapsed().as_secs_f64()
}

/// The middle one of several measurements.
pub fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}
