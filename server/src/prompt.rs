//! A future that is polled when it was woken: again at once if it wakes itself, and not because of others in its task.
//!
//! HTTP/1 gives a handler its request's body through a channel whose two ends are polled by one task: the handler asks, which
//! wakes the task that would read, which is this one; then the bytes wake the handler, which is this one again. To the
//! runtime a task that wakes itself is one that yields. It goes to the end of the queue, another thread is woken to
//! help and often takes the task along: for a request with a body twice, at more than the request's own cost.
//!
//! Beside a connection its task waits for other things, which hardly ever happen. To look at each of them for every request
//! takes a lock each time; so each has a bell of its own, and is left alone until it rings.
//!
//! Holds: no wake is lost. One during a poll is seen after it by the same thread; any other goes to the runtime. A future that
//! never stops waking itself gives way to others after [`TURNS_MAX`] polls.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    task::{Context, Poll, Wake, Waker},
};

use futures_util::task::AtomicWaker;

/// Polls in a row; a request with a body takes three.
const TURNS_MAX: usize = 8;

/// What stands between a future and the runtime's waker.
pub struct Prompt {
    bell: Arc<Bell>,
    waker: Waker,
}

struct Bell {
    rang: AtomicBool,
    is_polling: AtomicBool,
    runtime: AtomicWaker,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // In this order: who ends a poll stops polling first and looks at the bell then.
        self.rang.store(true, SeqCst);
        if !self.is_polling.load(SeqCst) {
            self.runtime.wake();
        }
    }
}

impl Prompt {
    /// For one future, which is to be polled a first time.
    pub fn new() -> Self {
        let (rang, is_polling) = (AtomicBool::new(true), AtomicBool::new(false));
        let bell = Arc::new(Bell { rang, is_polling, runtime: AtomicWaker::new() });
        let waker = Waker::from(bell.clone());
        Self { bell, waker }
    }

    /// Has the future polled the next time, for a reason it does not know of.
    pub fn ring(&self) {
        self.bell.rang.store(true, SeqCst);
    }

    /// Polls `future`, if it was woken, until it no longer wakes itself.
    pub fn poll<F: Future>(&self, mut future: Pin<&mut F>, context: &Context<'_>) -> Poll<F::Output> {
        self.bell.runtime.register(context.waker());
        if !self.bell.rang.load(SeqCst) {
            return Poll::Pending;
        }
        for _ in 0..TURNS_MAX {
            self.bell.is_polling.store(true, SeqCst);
            self.bell.rang.store(false, SeqCst);
            let polled = future.as_mut().poll(&mut Context::from_waker(&self.waker));
            self.bell.is_polling.store(false, SeqCst);
            if polled.is_ready() || !self.bell.rang.load(SeqCst) {
                return polled;
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::{future::poll_fn, pin::pin, sync::atomic::AtomicUsize, thread};

    use tokio::task::JoinSet;

    use super::*;

    #[derive(Default)]
    struct Runtime(AtomicUsize);

    impl Wake for Runtime {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, SeqCst);
        }
    }

    impl Runtime {
        fn wakes(&self) -> usize {
            self.0.load(SeqCst)
        }
    }

    /// Polls once, as a runtime does.
    fn polled<F: Future>(prompt: &Prompt, future: Pin<&mut F>, runtime: &Arc<Runtime>) -> Poll<F::Output> {
        prompt.poll(future, &Context::from_waker(&Waker::from(runtime.clone())))
    }

    #[test]
    fn one_that_wakes_itself_goes_on_at_once() {
        let mut turns = 0;
        let future = pin!(poll_fn(|context| {
            turns += 1;
            if turns == 3 {
                return Poll::Ready(turns);
            }
            context.waker().wake_by_ref();
            Poll::Pending
        }));
        let runtime = Arc::new(Runtime::default());
        assert_eq!(polled(&Prompt::new(), future, &runtime), Poll::Ready(3));
        assert_eq!(runtime.wakes(), 0, "the runtime has nothing to do with it");
    }

    #[test]
    fn one_that_never_stops_gives_way() {
        let turns = AtomicUsize::new(0);
        let future = pin!(poll_fn(|context| {
            turns.fetch_add(1, SeqCst);
            context.waker().wake_by_ref();
            Poll::<()>::Pending
        }));
        let runtime = Arc::new(Runtime::default());
        assert!(polled(&Prompt::new(), future, &runtime).is_pending());
        assert_eq!((turns.load(SeqCst), runtime.wakes()), (TURNS_MAX, 1));
    }

    #[test]
    fn one_that_was_not_woken_is_left_alone() {
        let turns = AtomicUsize::new(0);
        let mut future = pin!(poll_fn(|_| {
            turns.fetch_add(1, SeqCst);
            Poll::<()>::Pending
        }));
        let (prompt, runtime) = (Prompt::new(), Arc::new(Runtime::default()));
        for _ in 0..3 {
            assert!(polled(&prompt, future.as_mut(), &runtime).is_pending());
        }
        assert_eq!(turns.load(SeqCst), 1);
        prompt.ring();
        assert!(polled(&prompt, future, &runtime).is_pending());
        assert_eq!((turns.load(SeqCst), runtime.wakes()), (2, 0));
    }

    #[test]
    fn a_wake_from_elsewhere_reaches_the_runtime() {
        let waker = std::sync::Mutex::new(None);
        let mut future = pin!(poll_fn(|context| {
            *waker.lock().unwrap() = Some(context.waker().clone());
            Poll::<()>::Pending
        }));
        let (prompt, runtime) = (Prompt::new(), Arc::new(Runtime::default()));
        assert!(polled(&prompt, future.as_mut(), &runtime).is_pending());
        assert_eq!(runtime.wakes(), 0);
        let waker = waker.lock().unwrap().take().unwrap();
        thread::scope(|scope| scope.spawn(|| waker.wake()).join()).unwrap();
        assert_eq!(runtime.wakes(), 1);
        // The next poll is not made twice for it.
        assert!(polled(&prompt, future, &runtime).is_pending());
        assert_eq!(runtime.wakes(), 1);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn no_wake_is_lost_between_threads() {
        for _ in 0..20 {
            let (sender, mut receiver) = tokio::sync::mpsc::channel(1);
            let mut sends = JoinSet::new();
            sends.spawn(async move {
                for n in 0..5_000 {
                    sender.send(n).await.unwrap();
                }
            });
            let prompt = Prompt::new();
            let mut counts = pin!(async move {
                let mut count = 0;
                while receiver.recv().await.is_some() {
                    count += 1;
                }
                count
            });
            let count = poll_fn(|context| prompt.poll(counts.as_mut(), context));
            assert_eq!(tokio::time::timeout(std::time::Duration::from_secs(60), count).await, Ok(5_000));
            sends.join_all().await;
        }
    }
}
