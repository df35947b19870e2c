//! The time that clients hand on to each other: a second and a number inside it, and it never goes back.

use std::sync::atomic::{AtomicU64, Ordering};

use bson::Timestamp as ClusterStamp;
use mayfly_engine::Timestamp;

/// The highest time told so far.
#[derive(Default)]
pub struct ClusterTime(AtomicU64);

impl ClusterTime {
    /// The time of a write that happens now: later than any before.
    pub fn tick(&self, now: Timestamp) -> ClusterStamp {
        let floor = now.seconds() << 32;
        let next = |last: u64| Some(last.max(floor) + 1);
        let last = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, next).unwrap_or_default();
        stamp(last.max(floor) + 1)
    }

    /// The latest time; not before the present second, so that it moves on without writes too.
    pub fn last(&self, now: Timestamp) -> ClusterStamp {
        let floor = (now.seconds() << 32) + 1;
        stamp(self.0.fetch_max(floor, Ordering::AcqRel).max(floor))
    }
}

fn stamp(time: u64) -> ClusterStamp {
    ClusterStamp { time: (time >> 32) as u32, increment: time as u32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_come_after_each_other_and_time_never_goes_back() {
        let time = ClusterTime::default();
        let now = Timestamp::from_seconds(100);
        let first = time.tick(now);
        let second = time.tick(now);
        assert!((first.time, first.increment) < (second.time, second.increment));
        assert_eq!(time.last(Timestamp::from_seconds(50)), second);
        assert_eq!(time.last(Timestamp::from_seconds(101)), ClusterStamp { time: 101, increment: 1 });
    }
}
