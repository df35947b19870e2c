//! When purge may take what has expired: a while after the second was told in which it did.
//!
//! A request is told the time and then looks. One that was told the second before, on any node, may look a moment after the
//! second has turned; if purge had begun by then, it would find some of what it should see gone. So purge goes by a time
//! that was told long enough ago for all of them to have looked.
//!
//! ```text
//!   told     1000 ─── 1001 ─── 1002 ─── 1003          1002 is told, and purge goes by 1001
//!   ripe              1000 ─── 1001 ─── 1002
//! ```
//!
//! What counts is how long ago it was told and not what the clock says now: that one may stand still, or be moved by hand.
//!
//! Holds: what is ripe was told [`RIPE_AFTER`] ago or earlier.

use std::{collections::VecDeque, time::Duration};

use mayfly_engine::Timestamp;

/// How long it takes.
pub const RIPE_AFTER: Duration = Duration::from_secs(1);

/// Times closer to each other than this are not told apart.
const STEP: Duration = Duration::from_millis(20);

/// Times that were told, each with when that was by a clock that only runs.
#[derive(Debug, Default)]
pub struct Ripening(VecDeque<(Timestamp, Duration)>);

impl Ripening {
    /// Takes note of a time that was told just now.
    pub fn add(&mut self, told: Timestamp, now: Duration) {
        if self.0.back().is_none_or(|(_, at)| *at + STEP <= now) {
            self.0.push_back((told, now));
        }
    }

    /// The latest time that is ripe, if any.
    pub fn ripe(&mut self, now: Duration) -> Option<Timestamp> {
        while self.0.get(1).is_some_and(|(_, at)| *at + RIPE_AFTER <= now) {
            self.0.pop_front();
        }
        self.0.front().filter(|(_, at)| *at + RIPE_AFTER <= now).map(|(told, _)| *told)
    }

    /// How long until `time` is ripe, if it or a later one was told.
    pub fn until(&self, time: Timestamp, now: Duration) -> Option<Duration> {
        let (_, at) = self.0.iter().find(|(told, _)| *told >= time)?;
        Some((*at + RIPE_AFTER).saturating_sub(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn a_time_is_ripe_a_second_after_it_was_told() {
        let mut ripening = Ripening::default();
        assert_eq!(ripening.ripe(MS(0)), None);
        ripening.add(Timestamp(5000), MS(0));
        ripening.add(Timestamp(5600), MS(600));
        assert_eq!(ripening.ripe(MS(999)), None);
        assert_eq!(ripening.ripe(MS(1000)), Some(Timestamp(5000)));
        assert_eq!(ripening.ripe(MS(1599)), Some(Timestamp(5000)));
        assert_eq!(ripening.ripe(MS(1600)), Some(Timestamp(5600)));
        assert_eq!(ripening.ripe(MS(9000)), Some(Timestamp(5600)), "until a later one is");
    }

    #[test]
    fn a_clock_that_is_moved_by_hand_makes_nothing_ripe_sooner() {
        let mut ripening = Ripening::default();
        ripening.add(Timestamp(5000), MS(0));
        ripening.add(Timestamp(90_000), MS(500));
        assert_eq!(ripening.ripe(MS(1499)), Some(Timestamp(5000)));
        assert_eq!(ripening.until(Timestamp(80_000), MS(1400)), Some(MS(100)));
        assert_eq!(ripening.until(Timestamp(90_001), MS(1400)), None, "nobody was told so late a time");
        assert_eq!(ripening.ripe(MS(1500)), Some(Timestamp(90_000)));
    }

    #[test]
    fn no_more_times_are_kept_than_can_matter() {
        let mut ripening = Ripening::default();
        for ms in 0..10_000 {
            ripening.add(Timestamp(ms), MS(ms));
            ripening.ripe(MS(ms));
        }
        assert!(ripening.0.len() <= 52, "{}", ripening.0.len());
    }
}
