//! The server's own readings of time: certificate dates at start, uptime, and how long a request took.
//!
//! Nothing that a client can see of a document depends on these; the engine has a clock of its own. Requests
//! are measured to the response head.
//!
//! Holds: this is the only file of the crate that reads a clock.
#![expect(clippy::disallowed_methods, reason = "the one door to the clock in this crate")]

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Seconds since 1970 by the machine's clock; 0 if that is set before 1970.
pub fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Measures from its making.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts now.
    pub fn start() -> Stopwatch {
        Stopwatch(Instant::now())
    }

    /// Time since the start.
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}
