//! The last half hour of what the server did, kept so that a chart has something to show when it is opened.
//!
//! A sample has the counters as they were; whoever draws them takes differences. Counters are those of clients:
//! administration and health checks are left out, or a chart would show itself being looked at.
//!
//! Holds: as many samples as fit the time, never more.

use std::{collections::VecDeque, time::Duration};

use mayfly_engine::{Clock, Engine, SystemClock, Usage};
use parking_lot::Mutex;
use serde::Serialize;

use crate::{
    memory,
    metrics::{BUCKETS_SECONDS, Metrics},
};

/// Time between two samples.
pub const EVERY: Duration = Duration::from_secs(2);

/// Half an hour.
const SAMPLES_MAX: usize = 900;

/// The server at one moment.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Sample {
    /// By the machine's clock.
    pub unix_seconds: u64,
    /// Requests answered since the start.
    pub requests: u64,
    /// Of those: refused as wrong.
    pub refused: u64,
    /// Of those: asked to come back later (429).
    pub throttled: u64,
    /// Of those: failed by our fault.
    pub failed: u64,
    /// Request units since the start.
    pub charge: f64,
    /// Requests by how long they took; one more than there are bounds.
    pub by_duration: [u64; BUCKETS_SECONDS.len() + 1],
    /// Living documents.
    pub documents: u64,
    /// Their bytes.
    pub document_bytes: u64,
    /// Documents that have expired, in all.
    pub expired: u64,
    /// Of those: removed by purge.
    pub purged: u64,
    /// Of those: not yet.
    pub backlog: u64,
    /// How long the oldest of the backlog has waited.
    pub lag_seconds: u64,
    /// Bytes of the store's files.
    pub disk_bytes: u64,
    /// Bytes of the process.
    pub memory_bytes: Option<u64>,
}

/// The samples of the last half hour, oldest first.
#[derive(Debug, Default)]
pub struct Samples(Mutex<VecDeque<Sample>>);

impl Samples {
    /// Takes one more.
    pub fn take(&self, metrics: &Metrics, usages: &[Usage], engine: &Engine) {
        let mut sample = Sample {
            unix_seconds: SystemClock.now().seconds(),
            disk_bytes: engine.store_stats().disk_bytes,
            memory_bytes: memory::resident_bytes(),
            ..Sample::default()
        };
        metrics.add_to(&mut sample);
        for usage in usages {
            sample.documents += usage.live.documents;
            sample.document_bytes += usage.live.bytes;
            sample.expired += usage.purged.documents + usage.backlog.documents;
            sample.purged += usage.purged.documents;
            sample.backlog += usage.backlog.documents;
            sample.lag_seconds = sample.lag_seconds.max(usage.lag_seconds);
        }
        self.push(sample);
    }

    fn push(&self, sample: Sample) {
        let mut samples = self.0.lock();
        if samples.len() == SAMPLES_MAX {
            samples.pop_front();
        }
        samples.push_back(sample);
    }

    /// Those taken after a second.
    pub fn after(&self, unix_seconds: u64) -> Vec<Sample> {
        let samples = self.0.lock();
        samples.iter().filter(|sample| sample.unix_seconds > unix_seconds).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_sample_makes_room() {
        let samples = Samples::default();
        for unix_seconds in 1..=SAMPLES_MAX as u64 + 5 {
            samples.push(Sample { unix_seconds, ..Sample::default() });
        }
        let kept = samples.after(0);
        assert_eq!((kept.len(), kept[0].unix_seconds), (SAMPLES_MAX, 6));
        assert_eq!(samples.after(SAMPLES_MAX as u64 + 3).len(), 2);
    }
}
