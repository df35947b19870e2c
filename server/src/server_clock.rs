//! The clock of a shared store: all nodes go by the clock of one database server, and none by its own.
//!
//! Asking for each request would cost a round trip. A node keeps an estimate instead: how far the server's clock is from a
//! stopwatch here, and by how much that may be wrong.
//!
//! ```text
//!   asked ──▶ │◀─ half the round trip ─▶│◀─ half ─▶│ answered         offset = server − middle, ± half
//! ```
//!
//! Expiry turns on whole seconds. As long as the estimate and its error lie within one second, that second is the server's
//! own and nothing has to be asked; near the turn of a second the server is.
//!
//! Holds: the second that is told is the server's at some moment of the request. A server whose clock turns out to be
//! behind what it was is another clock ([`Clock::epoch`]), and time goes on from the horizon.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use mayfly_engine::{
    Clock, Timestamp,
    clock::{Sleep, Stopwatch, pause},
};
use mayfly_storage::postgres::ServerTime;
use parking_lot::Mutex;

/// How much two clocks may drift apart, in millionths. Ten times what a bad crystal does.
const DRIFT_PPM: u64 = 500;

/// An estimate that nobody has confirmed for so long is not relied on.
const AGE_MAX: Duration = Duration::from_secs(5);

/// Where the estimate's own time comes from: a stopwatch, but for tests.
type Local = Box<dyn Fn() -> Duration + Send + Sync>;

/// See the module.
pub struct ServerClock {
    time: ServerTime,
    local: Local,
    estimate: Mutex<Option<Estimate>>,
    epoch: AtomicU64,
}

#[derive(Clone, Copy, Debug)]
struct Estimate {
    /// Server minus local, in microseconds.
    offset: i64,
    /// By how much that may have been wrong when it was taken.
    error: u64,
    /// When, by the local clock, in microseconds.
    taken: u64,
    /// When it was last found to agree with the server.
    confirmed: u64,
}

impl Estimate {
    fn error_at(&self, local: u64) -> u64 {
        self.error + local.saturating_sub(self.taken) * DRIFT_PPM / 1_000_000
    }
}

impl ServerClock {
    /// Asks the server once; fails if it cannot be reached.
    pub async fn start(time: ServerTime) -> Result<Arc<Self>, mayfly_storage::Error> {
        let watch = Stopwatch::start();
        Self::with_local(time, Box::new(move || watch.elapsed())).await
    }

    /// With a local clock of the caller's.
    pub async fn with_local(time: ServerTime, local: Local) -> Result<Arc<Self>, mayfly_storage::Error> {
        let clock = Self { time, local, estimate: Mutex::new(None), epoch: AtomicU64::new(0) };
        clock.sample().await?;
        Ok(Arc::new(clock))
    }

    fn local_micros(&self) -> u64 {
        (self.local)().as_micros() as u64
    }

    /// Asks the server and corrects the estimate. Call about twice a second.
    pub async fn sample(&self) -> Result<Timestamp, mayfly_storage::Error> {
        let asked = self.local_micros();
        let server = self.time.ask().await?;
        let answered = self.local_micros();
        let error = answered.saturating_sub(asked) / 2 + 1;
        let middle = asked + answered.saturating_sub(asked) / 2;
        let fresh =
            Estimate { offset: server as i64 - middle as i64, error, taken: answered, confirmed: answered };
        let mut estimate = self.estimate.lock();
        *estimate = Some(match *estimate {
            None => fresh,
            Some(known) => {
                let known_error = known.error_at(answered);
                let apart = fresh.offset.abs_diff(known.offset);
                if apart > known_error + error {
                    // Another clock, or one that was set. Behind the old one it must not make time go back.
                    if fresh.offset < known.offset {
                        self.epoch.fetch_add(1, Ordering::AcqRel);
                    }
                    fresh
                } else if error <= known_error {
                    fresh
                } else {
                    Estimate { confirmed: answered, ..known }
                }
            }
        });
        Ok(Timestamp(server / 1000))
    }

    /// The server's time as estimated, and the error, both in microseconds; and how old the estimate is.
    fn estimated(&self) -> (u64, u64, Duration) {
        let local = self.local_micros();
        match *self.estimate.lock() {
            Some(estimate) => (
                local.saturating_add_signed(estimate.offset),
                estimate.error_at(local),
                Duration::from_micros(local.saturating_sub(estimate.confirmed)),
            ),
            None => (local, u64::MAX / 4, Duration::MAX),
        }
    }
}

impl Clock for ServerClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.estimated().0 / 1000)
    }

    fn certain(&self) -> Option<Timestamp> {
        const SECOND: u64 = 1_000_000;
        if !self.time.is_connected() {
            return None;
        }
        let (now, error, age) = self.estimated();
        let is_one_second = now.saturating_sub(error) / SECOND == (now + error) / SECOND;
        (is_one_second && age < AGE_MAX).then_some(Timestamp(now / 1000))
    }

    fn ask(&self) -> Pin<Box<dyn Future<Output = Timestamp> + Send + '_>> {
        Box::pin(async {
            match self.sample().await {
                Ok(now) => now,
                // The request will fail by itself if the server stays away.
                Err(_) => self.now(),
            }
        })
    }

    fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    fn sleep_until(&self, at: Timestamp) -> Sleep<'_> {
        Box::pin(async move {
            loop {
                let left = at.0.saturating_sub(self.now().0);
                if left == 0 {
                    return;
                }
                pause(Duration::from_millis(left.min(1000))).await;
            }
        })
    }
}
