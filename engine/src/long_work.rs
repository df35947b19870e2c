//! Work that turns out to take long goes on elsewhere, so that what is quick need not wait behind it.
//!
//! Nobody can tell beforehand how long a request takes. So each begins where its connection is served, and most end there at
//! their first poll. One that has used its share and gives others a turn does not come back: it goes on in a
//! runtime whose workers share all such work, and its connection waits for nothing but the answer. Between the two the
//! system divides the cores, as often as it has to.
//!
//! Holds: work goes on only while somebody waits for its result, and is a task of whoever owns tasks.

use std::{
    fmt,
    future::{Future, poll_fn},
    panic::{AssertUnwindSafe, resume_unwind},
    pin::Pin,
    sync::Arc,
    task::Poll,
    time::Duration,
};

use futures_util::{FutureExt as _, future::BoxFuture};
use tokio::sync::oneshot;

use crate::clock::Stopwatch;

/// What work may take where it began: many times what a point read or a small query does, and little for whoever is next.
const SHARE: Duration = Duration::from_millis(1);

/// Where long work goes on. Clones are the same place.
#[derive(Clone)]
pub struct Elsewhere {
    spawn: Arc<dyn Fn(BoxFuture<'static, ()>) + Send + Sync>,
    /// What work may take before it goes there.
    share: Duration,
}

impl Elsewhere {
    /// A place where `spawn` runs tasks.
    pub fn new(spawn: impl Fn(BoxFuture<'static, ()>) + Send + Sync + 'static) -> Self {
        Self { spawn: Arc::new(spawn), share: SHARE }
    }

    /// Does `work`, which begins with `watch`, and there if it is long. `None` if it was ended there.
    pub async fn if_long<F>(&self, watch: Stopwatch, work: F) -> Option<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send,
    {
        let mut work = Box::pin(work);
        if let Some(output) = within(self.share, watch, work.as_mut()).await {
            return Some(output);
        }
        let (mut result, awaited) = oneshot::channel();
        (self.spawn)(Box::pin(async move {
            tokio::select! {
                output = AssertUnwindSafe(work).catch_unwind() => drop(result.send(output)),
                () = result.closed() => {}
            }
        }));
        // Whoever waits hears of a panic as if it had happened here.
        awaited.await.ok().map(|output| output.unwrap_or_else(|panic| resume_unwind(panic)))
    }
}

impl fmt::Debug for Elsewhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Elsewhere(..)")
    }
}

/// What comes of work, unless it takes more than its share.
async fn within<F: Future>(share: Duration, watch: Stopwatch, mut work: Pin<&mut F>) -> Option<F::Output> {
    let mut spent = Duration::ZERO;
    let mut first = Some(watch);
    poll_fn(|context| {
        let watch = first.take().unwrap_or_else(Stopwatch::start);
        match work.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending => {
                spent += watch.elapsed();
                if spent > share { Poll::Ready(None) } else { Poll::Pending }
            }
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::{
        future::pending,
        thread::{self, ThreadId},
    };

    use parking_lot::Mutex;
    use tokio::{
        runtime::{Builder, Runtime},
        task::JoinSet,
    };

    use super::*;

    /// Gives others some turns, and says which thread it was on after each.
    async fn threads(turns: usize) -> Vec<ThreadId> {
        let mut threads = vec![thread::current().id()];
        for _ in 0..turns {
            tokio::task::yield_now().await;
            threads.push(thread::current().id());
        }
        threads
    }

    /// A thread that is not that of the test.
    fn elsewhere(share: Duration) -> (Elsewhere, Runtime) {
        let runtime = Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let (handle, tasks) = (runtime.handle().clone(), Mutex::new(JoinSet::new()));
        let spawn = move |task| {
            tasks.lock().spawn_on(task, &handle);
        };
        (Elsewhere { share, ..Elsewhere::new(spawn) }, runtime)
    }

    #[tokio::test]
    async fn only_what_takes_long_leaves() {
        let here = thread::current().id();
        for (share, leaves) in [(Duration::MAX, false), (Duration::ZERO, true)] {
            let (elsewhere, runtime) = elsewhere(share);
            let threads = elsewhere.if_long(Stopwatch::start(), threads(4)).await.unwrap();
            assert_eq!(threads[0], here);
            assert!(threads[1..].iter().all(|thread| (*thread != here) == leaves), "{threads:?}");
            runtime.shutdown_background();
        }
    }

    #[tokio::test]
    async fn what_nobody_waits_for_is_given_up() {
        let (elsewhere, runtime) = elsewhere(Duration::ZERO);
        let ((kept, dropped), (left, has_left)) = (oneshot::channel::<()>(), oneshot::channel());
        let work = async move {
            let _kept = kept;
            threads(1).await;
            let _ = left.send(());
            pending::<()>().await;
        };
        tokio::select! {
            _ = elsewhere.if_long(Stopwatch::start(), work) => unreachable!("it never ends"),
            told = has_left => told.unwrap(),
        }
        assert!(dropped.await.is_err());
        runtime.shutdown_background();
    }

    #[tokio::test]
    async fn a_panic_reaches_who_waits() {
        let (elsewhere, runtime) = elsewhere(Duration::ZERO);
        let work = async {
            threads(1).await;
            panic!("no");
        };
        let panic =
            AssertUnwindSafe(elsewhere.if_long(Stopwatch::start(), work)).catch_unwind().await.unwrap_err();
        assert_eq!(panic.downcast_ref(), Some(&"no"));
        runtime.shutdown_background();
    }

    #[tokio::test]
    async fn who_waits_is_told_of_an_end() {
        let (elsewhere, runtime) = elsewhere(Duration::ZERO);
        let waiting = elsewhere.if_long(Stopwatch::start(), pending::<()>());
        let ending = async {
            tokio::task::yield_now().await;
            runtime.shutdown_background();
        };
        assert_eq!(tokio::join!(waiting, ending).0, None);
    }
}
