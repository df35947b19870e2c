//! The door to the machine's clock: tasks drive real processes, and those take real time.
#![expect(clippy::disallowed_methods, reason = "this file is the door for the tasks")]

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Measures how long something took.
#[derive(Clone, Copy)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    pub fn start() -> Self {
        Self(Instant::now())
    }

    pub fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}

pub fn sleep(duration: Duration) {
    std::thread::sleep(duration);
}

pub fn unix_time() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
