//! How long a connection may take to send the head of a request, with one timer for all its requests.
//!
//! hyper sets a deadline whenever it begins to wait for a head, and drops it when the head is there. Each of them as a timer of
//! the runtime's own would be put into its wheel and taken out again for every request. The deadlines of a connection
//! only move on, so one timer does: when it goes off, the head it was set for is there, and it is set for the one that is
//! awaited now, or it is not, and the connection is late.
//!
//! Holds: a deadline that passes is told at once, by whoever polls [`HeadTimer::late`] beside the connection.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
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
    is_late: bool,
}

impl HeadTimer {
    /// Ends when a deadline has passed. `patience` is how far ahead deadlines are set.
    pub async fn late(&self, patience: Duration) {
        let mut waited_for = None;
        loop {
            let due = self.0.lock().due;
            match due {
                Some(at) if waited_for == due => {
                    self.0.lock().is_late = true;
                    tracing::debug!(?at, "the head of a request did not come in time");
                    return;
                }
                Some(at) => sleep_until(TokioInstant::from_std(at)).await,
                // One that is set meanwhile is later than that.
                None => drop(timeout(patience, std::future::pending::<()>()).await),
            }
            waited_for = due;
        }
    }
}

impl Timer for HeadTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until(self.now() + duration)
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        self.0.lock().due = Some(deadline);
        Box::pin(Awaited(self.clone()))
    }

    fn reset(&self, sleep: &mut Pin<Box<dyn Sleep>>, deadline: Instant) {
        *sleep = self.sleep_until(deadline);
    }
}

/// A head that is awaited. Who made it is polled again when it is late.
struct Awaited(HeadTimer);

impl Future for Awaited {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if self.0.0.lock().is_late { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Sleep for Awaited {}

impl Drop for Awaited {
    fn drop(&mut self) {
        self.0.0.lock().due = None;
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the runtime's clock, which these tests move by hand")]
mod tests {
    use std::task::Waker;

    use tokio::time::advance;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);

    fn is_over(sleep: &mut Pin<Box<dyn Sleep>>) -> bool {
        sleep.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    /// Waits for a head for some seconds; whether it was said to be late.
    async fn wait(timer: &HeadTimer, seconds: u64) -> bool {
        let mut head = timer.sleep_until(TokioInstant::now().into_std() + PATIENCE);
        advance(Duration::from_secs(seconds)).await;
        tokio::task::yield_now().await;
        is_over(&mut head)
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_head_that_does_not_come_is_late() {
        let timer = HeadTimer::default();
        let mut late = std::pin::pin!(timer.late(PATIENCE));
        let heads = async {
            // Long enough that the timer goes off for heads that came.
            for seconds in [1, 29, 5, 28, 0, 29, 29] {
                assert!(!wait(&timer, seconds).await, "{seconds}");
            }
            // No head is awaited while a request is being answered.
            advance(PATIENCE * 3).await;
            assert!(!wait(&timer, 29).await);
            let _head = timer.sleep_until(TokioInstant::now().into_std() + PATIENCE);
            std::future::pending::<()>().await;
        };
        let begun = TokioInstant::now();
        tokio::select! {
            () = &mut late => {}
            () = heads => {}
        }
        let spent = 1 + 29 + 5 + 28 + 29 + 29 + 90 + 29 + 30;
        assert_eq!(begun.elapsed().as_secs(), spent);
    }
}
