//! The door for time: the only place that reads the wall clock.
//!
//! Everything that decides takes `now` as an argument; whoever needs a `now` asks the [`Clock`] it was built
//! with. [`SystemClock`] is the machine's; [`AdjustableClock`] can be frozen, set and advanced, and serves both
//! tests and `--dev-clock`, so that nobody who tests expiry has to sleep.
#![expect(clippy::disallowed_methods, reason = "this file is the door the ban list points to")]

use std::{
    future::Future,
    pin::Pin,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use parking_lot::Mutex;
use tokio::sync::watch;

/// A point in time: milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// From whole seconds since the Unix epoch.
    pub const fn from_seconds(seconds: u64) -> Self {
        Self(seconds.saturating_mul(1000))
    }

    /// Whole seconds since the Unix epoch, rounded down: the resolution of `_ts`.
    pub const fn seconds(self) -> u64 {
        self.0 / 1000
    }

    /// This much later.
    pub const fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration.as_millis() as u64))
    }
}

/// A future that ends at a point in time.
pub type Sleep<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Where time comes from.
pub trait Clock: Send + Sync + 'static {
    /// The current time. May go back: the engine's timeline does not.
    fn now(&self) -> Timestamp;

    /// Ends when `now()` has reached `at`, or at once if it has.
    fn sleep_until(&self, at: Timestamp) -> Sleep<'_>;

    /// The current time, if the clock can tell which second it is. One that stands on another machine is known only within
    /// some error; near the turn of a second it has to be asked.
    fn certain(&self) -> Option<Timestamp> {
        Some(self.now())
    }

    /// The current time, asked where the clock stands. As good as [`Clock::now`] if nobody answers.
    fn ask(&self) -> Pin<Box<dyn Future<Output = Timestamp> + Send + '_>> {
        Box::pin(async { self.now() })
    }

    /// Changes when another clock has taken this one's place, which may be behind it.
    fn epoch(&self) -> u64 {
        0
    }
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(since.as_millis() as u64)
    }

    fn sleep_until(&self, at: Timestamp) -> Sleep<'_> {
        Box::pin(async move {
            // The wall clock may be stepped while we sleep, so look at it again at least every second.
            loop {
                let left = at.0.saturating_sub(self.now().0);
                if left == 0 {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(left.min(1000))).await;
            }
        })
    }
}

/// A clock that can be frozen, set and advanced.
///
/// It runs along with the machine's clock, shifted, until it is frozen; a frozen clock moves only by hand.
#[derive(Debug)]
pub struct AdjustableClock {
    state: Mutex<Adjustment>,
    changed: watch::Sender<()>,
}

#[derive(Clone, Copy, Debug)]
enum Adjustment {
    Running { shift_ms: i64 },
    Frozen { at: Timestamp },
}

impl AdjustableClock {
    /// Runs with the machine's clock until told otherwise.
    pub fn running() -> Self {
        Self::with(Adjustment::Running { shift_ms: 0 })
    }

    /// Stands still at `at`.
    pub fn frozen(at: Timestamp) -> Self {
        Self::with(Adjustment::Frozen { at })
    }

    fn with(state: Adjustment) -> Self {
        Self { state: Mutex::new(state), changed: watch::Sender::new(()) }
    }

    /// Moves the clock forward.
    pub fn advance(&self, by: Duration) {
        self.change(|state, _| match state {
            Adjustment::Running { shift_ms } => {
                Adjustment::Running { shift_ms: shift_ms.saturating_add(by.as_millis() as i64) }
            }
            Adjustment::Frozen { at } => Adjustment::Frozen { at: at.plus(by) },
        });
    }

    /// Moves the clock forward to `at`, unless it is there already. A clock that is new, over a store that
    /// was used up to `at` by one that had been moved, goes on from there.
    pub fn catch_up(&self, at: Timestamp) {
        self.change(|state, machine| match state {
            _ if state.read(machine) >= at => state,
            Adjustment::Running { .. } => Adjustment::Running { shift_ms: shift(at, machine) },
            Adjustment::Frozen { .. } => Adjustment::Frozen { at },
        });
    }

    /// How far this clock is ahead of the machine's.
    pub fn ahead_of_machine(&self) -> Duration {
        let machine = SystemClock.now();
        Duration::from_millis(self.state.lock().read(machine).0.saturating_sub(machine.0))
    }

    /// Sets the clock, also backwards. It goes on running, or standing still, as it did.
    pub fn set(&self, to: Timestamp) {
        self.change(|state, machine| match state {
            Adjustment::Running { .. } => Adjustment::Running { shift_ms: shift(to, machine) },
            Adjustment::Frozen { .. } => Adjustment::Frozen { at: to },
        });
    }

    /// Stops the clock where it is.
    pub fn freeze(&self) {
        self.change(|state, machine| Adjustment::Frozen { at: state.read(machine) });
    }

    /// Lets the clock run on from where it is.
    pub fn resume(&self) {
        self.change(|state, machine| Adjustment::Running { shift_ms: shift(state.read(machine), machine) });
    }

    /// Whether the clock stands still.
    pub fn is_frozen(&self) -> bool {
        matches!(*self.state.lock(), Adjustment::Frozen { .. })
    }

    fn change(&self, next: impl FnOnce(Adjustment, Timestamp) -> Adjustment) {
        {
            let mut state = self.state.lock();
            *state = next(*state, SystemClock.now());
        }
        self.changed.send_replace(());
    }
}

/// What has to be added to the machine's time to get `to`.
fn shift(to: Timestamp, machine: Timestamp) -> i64 {
    to.0 as i64 - machine.0 as i64
}

impl Adjustment {
    fn read(self, machine: Timestamp) -> Timestamp {
        match self {
            Self::Running { shift_ms } => Timestamp(machine.0.saturating_add_signed(shift_ms)),
            Self::Frozen { at } => at,
        }
    }
}

impl Clock for AdjustableClock {
    fn now(&self) -> Timestamp {
        self.state.lock().read(SystemClock.now())
    }

    fn sleep_until(&self, at: Timestamp) -> Sleep<'_> {
        Box::pin(async move {
            let mut changed = self.changed.subscribe();
            loop {
                let left = at.0.saturating_sub(self.now().0);
                if left == 0 {
                    return;
                }
                if self.is_frozen() {
                    if changed.changed().await.is_err() {
                        return;
                    }
                } else {
                    let nap = tokio::time::sleep(Duration::from_millis(left.min(1000)));
                    tokio::select! {
                        () = nap => {}
                        _ = changed.changed() => {}
                    }
                }
            }
        })
    }
}

/// Measures how long something took. For figures, never for decisions about data.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts now.
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Time since the start.
    pub fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}

/// A short pause by the machine's timer, for background work that gives way. Not a deadline.
pub async fn pause(duration: Duration) {
    tokio::time::sleep(duration).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_catches_up_and_never_falls_back() {
        let clock = AdjustableClock::frozen(Timestamp::from_seconds(100));
        clock.catch_up(Timestamp::from_seconds(90));
        assert_eq!(clock.now(), Timestamp::from_seconds(100));
        clock.catch_up(Timestamp::from_seconds(110));
        assert_eq!((clock.now(), clock.is_frozen()), (Timestamp::from_seconds(110), true));

        let clock = AdjustableClock::running();
        let year = Duration::from_secs(365 * 86_400);
        let at = SystemClock.now().plus(year);
        clock.catch_up(at);
        assert!(clock.now() >= at && !clock.is_frozen());
        assert!(clock.ahead_of_machine().abs_diff(year) < Duration::from_secs(60));
    }
}
