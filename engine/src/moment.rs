//! Moments: an order of what happens that holds over nodes and restarts.
//!
//! A moment is a second, the millisecond in it and a number, in one word. The time of all nodes is the same clock's, so moments
//! of different nodes compare as well as they know that clock; what a node has seen of another's it goes on from
//! ([`Moments::observe`]), so what follows from something is later than it.
//!
//! ```text
//!   second:u32  millisecond:u12  number:u20
//! ```

use std::sync::atomic::{AtomicU64, Ordering};

use crate::{clock::Timestamp, engine::Engine};

const MILLISECOND: u32 = 20;
const SECOND: u32 = 32;

/// The first moment of a time.
fn first(time: Timestamp) -> u64 {
    time.seconds() << SECOND | (time.0 % 1000) << MILLISECOND
}

/// The first moment of a second, as near as is known.
pub(crate) fn of_second(seconds: u64) -> u64 {
    seconds << SECOND | 1
}

/// The highest moment so far.
#[derive(Default)]
pub(crate) struct Moments(AtomicU64);

impl Moments {
    /// A moment later than all before.
    pub fn tick(&self, now: Timestamp) -> u64 {
        let floor = first(now);
        let next = |last: u64| Some(last.max(floor) + 1);
        let last = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, next).unwrap_or_default();
        last.max(floor) + 1
    }

    /// The latest moment; not before the present second, so that it moves on by itself.
    pub fn last(&self, now: Timestamp) -> u64 {
        let floor = of_second(now.seconds());
        self.0.fetch_max(floor, Ordering::AcqRel).max(floor)
    }

    /// A moment that everything so far is before or at, and all that begins on this node from now on is after.
    pub fn present(&self, now: Timestamp) -> u64 {
        let floor = first(now) + 1;
        self.0.fetch_max(floor, Ordering::AcqRel).max(floor)
    }

    /// Goes on from a moment of another node.
    pub fn observe(&self, moment: u64) {
        self.0.fetch_max(moment, Ordering::AcqRel);
    }
}

impl Engine {
    /// A moment later than all before: for something that happens now.
    pub fn next_moment(&self, now: Timestamp) -> u64 {
        self.moments().tick(now)
    }

    /// The latest moment; not before the present second, so that it moves on by itself.
    pub fn last_moment(&self, now: Timestamp) -> u64 {
        self.moments().last(now)
    }

    /// A moment that everything so far is before or at, and all that begins on this node from now on is after.
    pub fn present_moment(&self, now: Timestamp) -> u64 {
        self.moments().present(now)
    }

    /// Lets all moments from now on be later than one of another node.
    pub fn observe_moment(&self, moment: u64) {
        self.moments().observe(moment);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_come_after_each_other_and_never_go_back() {
        let moments = Moments::default();
        let now = Timestamp(100_250);
        let first = moments.tick(now);
        assert_eq!(first, 100 << 32 | 250 << 20 | 1);
        let second = moments.tick(now);
        assert!(first < second);
        assert_eq!(moments.last(Timestamp::from_seconds(50)), second);
        assert_eq!(moments.last(Timestamp::from_seconds(101)), 101 << 32 | 1);
        assert_eq!(moments.present(Timestamp(101_007)), 101 << 32 | 7 << 20 | 1);
        moments.observe(102 << 32);
        assert_eq!(moments.tick(now), 102 << 32 | 1);
    }
}
