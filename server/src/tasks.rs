//! Tasks with an owner, and the word to stop.
//!
//! Every task runs in a `TaskSet`; whoever holds the set can wait for all of them, first with patience and
//! then without. The word to stop has two strengths: finish what you are doing, and stop now.
//!
//! Holds: after `drain` returns, no task of the set is running.

use mayfly_engine::Elsewhere;
use parking_lot::Mutex;
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// A growing and shrinking set of tasks. Clones are the same set.
#[derive(Clone, Debug, Default)]
pub struct TaskSet(Arc<Mutex<JoinSet<()>>>);

impl TaskSet {
    /// Runs a task in the set.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.spawn_on(&Handle::current(), task);
    }

    /// The same in another runtime than that of the caller.
    pub fn spawn_on(&self, runtime: &Handle, task: impl Future<Output = ()> + Send + 'static) {
        let mut set = self.0.lock();
        // Results of finished tasks are kept until someone asks; ask here, so that they do not pile up.
        while set.try_join_next().is_some() {}
        set.spawn_on(task, runtime);
    }

    /// The runtime of the caller as a place for long work, which is then of this set.
    pub fn elsewhere(&self) -> Elsewhere {
        let (tasks, runtime) = (self.clone(), Handle::current());
        Elsewhere::new(move |work| tasks.spawn_on(&runtime, work))
    }

    /// Waits for every task, but no longer than `grace` and not past the word to stop now; then ends the rest.
    /// Says whether all ended by themselves.
    pub async fn drain(&self, grace: Duration, stopping: &mut Stopping) -> bool {
        let finished = tokio::select! {
            joined = tokio::time::timeout(grace, self.join_all()) => joined.is_ok(),
            () = stopping.at_once() => false,
        };
        self.0.lock().abort_all();
        self.join_all().await;
        finished
    }

    /// Waits for every task, however long it takes.
    pub async fn join_all(&self) {
        // The lock is held for a poll only: tasks of the set may spawn others while we wait.
        while poll_fn(|context| self.0.lock().poll_join_next(context)).await.is_some() {}
    }
}

/// HTTP/2 connections run each request as a task of its own; this way those have an owner too.
impl<F: Future<Output = ()> + Send + 'static> hyper::rt::Executor<F> for TaskSet {
    fn execute(&self, task: F) {
        self.spawn(task);
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Stop {
    No,
    Gracefully,
    AtOnce,
}

/// The side that says stop. Dropping it says stop at once.
#[derive(Debug)]
pub struct Stopper(watch::Sender<Stop>);

/// The side that listens.
#[derive(Clone, Debug)]
pub struct Stopping(watch::Receiver<Stop>);

/// A fresh pair.
pub fn stop_channel() -> (Stopper, Stopping) {
    let (sender, receiver) = watch::channel(Stop::No);
    (Stopper(sender), Stopping(receiver))
}

impl Stopper {
    /// Finish what you are doing.
    pub fn gracefully(&self) {
        self.0.send_if_modified(|stop| {
            let first = *stop == Stop::No;
            if first {
                *stop = Stop::Gracefully;
            }
            first
        });
    }

    /// Stop now.
    pub fn at_once(&self) {
        self.0.send_replace(Stop::AtOnce);
    }
}

impl Stopping {
    /// Resolves when stopping was asked for, in either strength.
    pub async fn requested(&mut self) {
        // An error means that the sender is gone, and with it everyone who could want us to go on.
        let _ = self.0.wait_for(|stop| *stop != Stop::No).await;
    }

    /// Resolves when stopping at once was asked for.
    pub async fn at_once(&mut self) {
        let _ = self.0.wait_for(|stop| *stop == Stop::AtOnce).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[tokio::test]
    async fn drain_waits_for_tasks_and_their_tasks() {
        let (stopper, mut stopping) = stop_channel();
        let (set, done) = (TaskSet::default(), Arc::new(AtomicBool::new(false)));
        let (inner_set, inner_done, mut inner_stopping) = (set.clone(), done.clone(), stopping.clone());
        set.spawn(async move {
            inner_stopping.requested().await;
            inner_set.spawn(async move { inner_done.store(true, Ordering::SeqCst) });
        });
        stopper.gracefully();
        assert!(set.drain(Duration::from_secs(5), &mut stopping).await);
        assert!(done.load(Ordering::SeqCst));
    }

    #[tokio::test]
    async fn drain_ends_what_does_not_end() {
        let (stopper, mut stopping) = stop_channel();
        let set = TaskSet::default();
        set.spawn(pending());
        assert!(!set.drain(Duration::from_millis(1), &mut stopping).await);
        set.spawn(pending());
        stopper.at_once();
        assert!(!set.drain(Duration::from_secs(60), &mut stopping).await);
    }
}
