//! How long a connection may take to send the head of a request, with one timer for all its requests.
//!
//! hyper sets a deadline whenever it begins to wait for a head, and drops it when the head is there. Each of them as a timer of
//! the runtime's own would be put into its wheel and taken out again for every request. The deadlines of a connection
//! only move on, so one timer does: when it goes off, the head it was set for is there, and it is set for the one that is
//! awaited now, or it is not, and who waits is woken.
//!
//! Holds: a deadline that passes is told at once, while [`HeadTimer::run`] is polled beside the connection.

use std::{
    future::{Future, pending},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use hyper::rt::{Sleep, Timer};
use parking_lot::Mutex;
use tokio::time::{Instant as TokioInstant, sleep_until, timeout};

/// The timer of one connection. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct HeadTimer(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// When the head that is awaited has to be there.
    due: Option<Instant>,
    /// The last deadline that has passed.
    passed: Option<Instant>,
    /// Who waits.
    waker: Option<Waker>,
}

impl HeadTimer {
    /// Tells who waits when a deadline has passed, and never ends. `patience` is how far ahead deadlines are set.
    pub async fn run(&self, patience: Duration) {
        let mut waited_for = None;
        loop {
            let due = self.0.lock().due;
            match due {
                Some(_) if waited_for == due => self.pass(due),
                Some(at) => sleep_until(TokioInstant::from_std(at)).await,
                // One that is set meanwhile is later than that.
                None => drop(timeout(patience, pending::<()>()).await),
            }
            waited_for = due;
        }
    }

    fn pass(&self, due: Option<Instant>) {
        let mut state = self.0.lock();
        (state.due, state.passed) = (None, due);
        if let Some(waker) = &state.waker {
            waker.wake_by_ref();
        }
    }
}

impl Timer for HeadTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until(self.now() + duration)
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        self.0.lock().due = Some(deadline);
        Box::pin(Awaited { timer: self.clone(), deadline })
    }

    fn reset(&self, sleep: &mut Pin<Box<dyn Sleep>>, deadline: Instant) {
        *sleep = self.sleep_until(deadline);
        // The end of the one before has taken it back.
        self.0.lock().due = Some(deadline);
    }
}

/// A head that is awaited.
struct Awaited {
    timer: HeadTimer,
    deadline: Instant,
}

impl Future for Awaited {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.timer.0.lock();
        if state.passed.is_some_and(|passed| passed >= self.deadline) {
            return Poll::Ready(());
        }
        if !state.waker.as_ref().is_some_and(|known| known.will_wake(context.waker())) {
            state.waker = Some(context.waker().clone());
        }
        Poll::Pending
    }
}

impl Sleep for Awaited {}

impl Drop for Awaited {
    fn drop(&mut self) {
        self.timer.0.lock().due = None;
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the runtime's clock, which these tests move by hand")]
mod tests {
    use tokio::time::advance;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);

    fn deadline() -> Instant {
        TokioInstant::now().into_std() + PATIENCE
    }

    /// Runs a timer beside what is done with it.
    async fn with_timer<F: Future<Output = ()>>(test: impl FnOnce(HeadTimer) -> F) {
        let timer = HeadTimer::default();
        tokio::select! {
            () = timer.run(PATIENCE) => {}
            () = test(timer.clone()) => {}
        }
    }

    /// A head that comes after some seconds.
    async fn comes_after(timer: &HeadTimer, seconds: u64) {
        let head = timer.sleep_until(deadline());
        assert!(timeout(Duration::from_secs(seconds), head).await.is_err(), "{seconds}");
    }

    /// How long it takes until a head that does not come is late.
    async fn is_late_after(head: Pin<Box<dyn Sleep>>) -> u64 {
        let begun = TokioInstant::now();
        head.await;
        begun.elapsed().as_secs()
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_head_that_does_not_come_is_late() {
        with_timer(async |timer| {
            // Some of them long enough that the timer goes off for a head that came.
            for seconds in [1, 29, 5, 28, 1, 29, 29] {
                comes_after(&timer, seconds).await;
            }
            // No head is awaited while a request is being answered.
            advance(PATIENCE * 3).await;
            comes_after(&timer, 29).await;
            // Twice: one that was late in the moment it came does not end the watch.
            for _ in 0..2 {
                assert_eq!(is_late_after(timer.sleep_until(deadline())).await, 30);
                comes_after(&timer, 29).await;
            }
        })
        .await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_deadline_that_is_set_again_counts_from_then() {
        with_timer(async |timer| {
            let mut head = timer.sleep_until(deadline());
            advance(Duration::from_secs(20)).await;
            timer.reset(&mut head, deadline());
            assert_eq!(is_late_after(head).await, 30);
        })
        .await;
    }
}
