//! How background work gives way to requests.
//!
//! Front-ends say when they are asked for something (`Load::enter`); whoever only looks on, as monitors and the portal do
//! all the time, is not counted, or nothing would ever be done while somebody watches. While requests come in, background
//! work is done in small slices, and after each it rests several times as long as that took; when nobody has asked for
//! anything for a moment, it goes on at once and takes more at a time. It is done aside (`aside.rs`), behind whoever
//! serves a request, so where processors are short a slice takes longer, and so does its rest: rests are for what a
//! priority does not reach, which are the thread that writes and the caches. Work that stays behind
//! gets more: a backlog that only grows would fill the disk.
//!
//! Holds: what is decided here depends on what is passed in and on the requests counted, not on a clock of its own.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use parking_lot::Mutex;

use crate::{
    clock::{Stopwatch, pause},
    per_thread::PerThread,
    purge::Pace,
};

/// Rest per unit of work while requests come in, by how long the work has been behind.
///
/// Under a load that never pauses, work that gives way more than it works falls behind for good: its share grows
/// with what it is behind, until it rests no more.
fn rest_factor(behind: Duration) -> u32 {
    match behind.as_secs() {
        0..2 => 8,
        2..5 => 4,
        5..10 => 2,
        10..20 => 1,
        _ => 0,
    }
}

/// Purge that is behind for so long takes more at a time.
const PRESSING: Duration = Duration::from_secs(2);

/// One rest is at most this long, so that one slow slice does not stop background work for ever.
const REST_MAX: Duration = Duration::from_secs(2);

/// Requests further apart than this leave time enough for a whole tick at full pace between them.
const QUIET: Duration = Duration::from_millis(500);

/// Counts requests that are running and that have come. At first as after a long silence: nobody waits.
#[derive(Debug, Default)]
pub struct Load {
    counts: PerThread<Counts>,
    seen: Mutex<Seen>,
}

/// Of the requests that one thread began; another may have ended them.
#[derive(Debug, Default)]
struct Counts {
    running: AtomicU64,
    arrived: AtomicU64,
}

/// What the last look at the counts saw.
#[derive(Debug, Default)]
struct Seen {
    arrived: u64,
    /// Since when no request was seen to come.
    quiet: Option<Stopwatch>,
}

/// A request that is running.
pub struct Busy<'a>(&'a Counts);

impl Load {
    /// Counts a request until the answer is dropped.
    pub fn enter(&self) -> Busy<'_> {
        let counts = self.counts.mine();
        counts.running.fetch_add(1, Relaxed);
        counts.arrived.fetch_add(1, Relaxed);
        Busy(counts)
    }

    /// Requests that have come since the start.
    pub fn arrived(&self) -> u64 {
        self.counts.all().map(|counts| counts.arrived.load(Relaxed)).sum()
    }

    /// The same, if none of them is running any more.
    pub fn all_answered(&self) -> Option<u64> {
        (!self.is_running()).then(|| self.arrived())
    }

    fn is_running(&self) -> bool {
        self.counts.all().any(|counts| counts.running.load(Relaxed) > 0)
    }

    /// How background work may go on now.
    pub fn pace(&self) -> Pace {
        let mut seen = self.seen.lock();
        let arrived = self.arrived();
        if seen.arrived != arrived || self.is_running() {
            *seen = Seen { arrived, quiet: Some(Stopwatch::start()) };
        }
        pace_after(seen.quiet.map(Stopwatch::elapsed))
    }

    /// The same for purge that has been behind for so long.
    pub fn purge_pace(&self, behind: Duration) -> Pace {
        match self.pace() {
            Pace::Gentle if behind >= PRESSING => Pace::Pressing,
            pace => pace,
        }
    }

    /// Rests after background work that took `worked` and has been behind for so long, if there is anybody to give way
    /// to.
    pub async fn give_way(&self, worked: Duration, behind: Duration) {
        match rest(self.pace(), worked, behind) {
            Some(rest) => pause(rest).await,
            None => tokio::task::yield_now().await,
        }
    }
}

/// The pace when the last request came so long ago; never, if it is not known.
fn pace_after(quiet: Option<Duration>) -> Pace {
    match quiet {
        Some(quiet) if quiet < QUIET => Pace::Gentle,
        _ => Pace::Full,
    }
}

/// How long to rest after work that took `worked` and has been behind for so long; `None` is not at all.
pub fn rest(pace: Pace, worked: Duration, behind: Duration) -> Option<Duration> {
    (pace == Pace::Gentle).then(|| (worked * rest_factor(behind)).min(REST_MAX))
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_answered_when_none_is_running() {
        let load = Load::default();
        assert_eq!(load.all_answered(), Some(0));
        let (one, other) = (load.enter(), load.enter());
        drop(one);
        assert_eq!((load.all_answered(), load.arrived()), (None, 2));
        drop(other);
        assert_eq!(load.all_answered(), Some(2));
    }

    #[test]
    fn work_that_stays_behind_rests_less() {
        let factors = [0, 2, 5, 19, 20, 100_000].map(|s| rest_factor(Duration::from_secs(s)));
        assert_eq!(factors, [8, 4, 2, 1, 0, 0]);
    }

    /// A running request, and one that has come and gone since the last look, both make work gentle.
    #[test]
    fn requests_make_work_gentle() {
        let load = Load::default();
        assert_eq!(load.pace(), Pace::Full);
        let busy = load.enter();
        assert_eq!(load.pace(), Pace::Gentle);
        drop(busy);
        drop(load.enter());
        assert_eq!(load.pace(), Pace::Gentle);
        assert_eq!(pace_after(Some(QUIET - Duration::from_nanos(1))), Pace::Gentle);
        assert_eq!(pace_after(Some(QUIET)), Pace::Full);
    }

    #[test]
    fn only_gentle_work_rests() {
        let second = Duration::from_secs(1);
        let rest = |pace, worked: u64| rest(pace, Duration::from_micros(worked), second);
        assert_eq!(rest(Pace::Full, 1000), None);
        assert_eq!(rest(Pace::Gentle, 1000), Some(Duration::from_millis(8)));
        assert_eq!(rest(Pace::Gentle, 1_000_000), Some(REST_MAX));
    }
}
