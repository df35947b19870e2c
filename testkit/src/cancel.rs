//! Futures that are dropped before they end, as a server drops a request whose client has left.
//!
//! A test runs an operation again and again, dropped before its first poll, after its first, its second …
//! until it comes to its end: [`cut`]. So that there is a place to drop it at before and after each call of
//! the store, [`Yielding`] returns
//! `Pending` once at each, and has itself polled again at once. What an operation left to tasks of its own is
//! waited for by [`tasks_end`], and what must not wait for ever by [`in_time`].
//!
//! Holds: no clock. All is counted in polls, on a runtime of one thread.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::Arc,
    task::Poll,
};

use bytes::Bytes;
use mayfly_storage::{
    Result,
    peers::Peers,
    store::{
        Batch, BoxFuture, Committed, Direction, Keep, Key, KeyRange, MayHold, Page, PageLimit, Sieved, Slot,
        Snapshot, Stats, Store,
    },
    upkeep::{Cleared, Upkeep, Withered},
};
use tokio::{runtime::Handle, task::yield_now};

/// Turns after which something waits for what never comes. No operation of a test takes a hundredth of them.
const TURNS_MAX: usize = 200_000;

/// Polls `work` so many times and drops it; what it came to, if it came to its end.
pub async fn cut<F: Future>(work: F, polls: usize) -> Option<F::Output> {
    let mut work = Box::pin(work);
    let mut left = polls;
    poll_fn(move |context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match work.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// What `work` comes to, or a panic with `what` if it waits for what never comes: a lock that was left
/// behind.
pub async fn in_time<F: Future>(what: &str, work: F) -> F::Output {
    let turns = async {
        for _ in 0..TURNS_MAX {
            yield_now().await;
        }
    };
    tokio::select! {
        biased;
        output = pin!(work) => output,
        () = turns => panic!("{what} waits for ever"),
    }
}

/// Waits until the runtime has no tasks but the one that asks, which is none where a test asks itself.
pub async fn tasks_end() {
    let metrics = Handle::current().metrics();
    let own = usize::from(tokio::task::try_id().is_some());
    in_time("a task", async {
        while metrics.num_alive_tasks() > own {
            yield_now().await;
        }
    })
    .await;
}

/// A store whose calls take two turns more than those of the store inside: one before, and one after.
pub struct Yielding<S: ?Sized>(Arc<S>);

impl<S: Store + ?Sized> Yielding<S> {
    /// Over another store.
    pub fn new(inner: Arc<S>) -> Self {
        Self(inner)
    }
}

/// Does `call` between two turns of others.
async fn between_turns<T>(call: impl Future<Output = T>) -> T {
    turn().await;
    let answer = call.await;
    turn().await;
    answer
}

/// `Pending` once. Unlike `yield_now` it is ready again at once, so that polls can be counted.
async fn turn() {
    let mut is_over = false;
    poll_fn(|context| {
        if std::mem::replace(&mut is_over, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

impl<S: Store + ?Sized> Store for Yielding<S> {
    fn get<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Bytes>>> {
        Box::pin(between_turns(self.0.get(key)))
    }

    fn get_both<'a>(&'a self, keys: &'a [Key; 2]) -> BoxFuture<'a, Result<[Option<Bytes>; 2]>> {
        Box::pin(between_turns(self.0.get_both(keys)))
    }

    fn snapshot(&self) -> BoxFuture<'_, Result<Arc<dyn Snapshot>>> {
        Box::pin(async {
            let inner = between_turns(self.0.snapshot()).await?;
            Ok(Arc::new(YieldingSnapshot(inner)) as Arc<dyn Snapshot>)
        })
    }

    fn background_snapshot(&self) -> BoxFuture<'_, Result<Arc<dyn Snapshot>>> {
        Box::pin(async {
            let inner = between_turns(self.0.background_snapshot()).await?;
            Ok(Arc::new(YieldingSnapshot(inner)) as Arc<dyn Snapshot>)
        })
    }

    fn peek<'a>(&'a self, range: &'a KeyRange, rows: usize) -> BoxFuture<'a, Result<Vec<(Bytes, Bytes)>>> {
        Box::pin(between_turns(self.0.peek(range, rows)))
    }

    fn commit(&self, batch: Batch) -> BoxFuture<'_, Result<Committed>> {
        Box::pin(between_turns(self.0.commit(batch)))
    }

    fn stats(&self) -> Stats {
        self.0.stats()
    }
}

impl<S: Store + ?Sized> Upkeep for Yielding<S> {
    fn clear<'a>(&'a self, range: &'a KeyRange, limit: usize) -> BoxFuture<'a, Result<Cleared>> {
        Box::pin(between_turns(self.0.clear(range, limit)))
    }

    fn sync(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(between_turns(self.0.sync()))
    }

    fn reclaim(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(between_turns(self.0.reclaim()))
    }

    fn compact_when_idle(&self) -> BoxFuture<'_, Result<bool>> {
        Box::pin(between_turns(self.0.compact_when_idle()))
    }

    fn sweep(&self, withered: Vec<Withered>) -> BoxFuture<'_, Result<()>> {
        Box::pin(between_turns(self.0.sweep(withered)))
    }

    fn wither(&self, withered: Vec<Withered>) {
        self.0.wither(withered);
    }
}

impl<S: Store + ?Sized> Peers for Yielding<S> {
    fn is_shared(&self) -> bool {
        self.0.is_shared()
    }

    fn raise_floor<'a>(&'a self, slots: &'a [Slot], floor: u64) -> BoxFuture<'a, Result<()>> {
        Box::pin(between_turns(self.0.raise_floor(slots, floor)))
    }

    fn say(&self, word: u64) -> BoxFuture<'_, ()> {
        Box::pin(between_turns(self.0.say(word)))
    }

    fn heard(&self, word: u64) -> BoxFuture<'_, ()> {
        self.0.heard(word)
    }

    fn tends(&self, slot: Slot) -> bool {
        self.0.tends(slot)
    }

    fn floor(&self, slot: Slot) -> u64 {
        self.0.floor(slot)
    }
}

struct YieldingSnapshot(Arc<dyn Snapshot>);

impl Snapshot for YieldingSnapshot {
    fn get<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Bytes>>> {
        Box::pin(between_turns(self.0.get(key)))
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Bytes>>>> {
        Box::pin(between_turns(self.0.get_many(keys)))
    }

    fn scan<'a>(
        &'a self,
        range: &'a KeyRange,
        direction: Direction,
        limit: PageLimit,
    ) -> BoxFuture<'a, Result<Page>> {
        Box::pin(between_turns(self.0.scan(range, direction, limit)))
    }

    fn sieve<'a>(
        &'a self,
        range: &'a KeyRange,
        direction: Direction,
        limit: PageLimit,
        may_hold: Option<&'a MayHold<'_>>,
        keep: &'a mut Keep<'_>,
    ) -> BoxFuture<'a, Result<Sieved>> {
        Box::pin(between_turns(self.0.sieve(range, direction, limit, may_hold, keep)))
    }
}

#[cfg(test)]
mod tests {
    use mayfly_storage::{MemoryStore, conformance};

    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn conformance() {
        let store = || async { Arc::new(Yielding::new(Arc::new(MemoryStore::new()))) as Arc<dyn Store> };
        conformance::run_all(store).await;
    }

    /// A commit is dropped before it is made, after it is made, and not at all.
    #[tokio::test]
    async fn a_commit_is_cut_on_both_sides() {
        for (polls, commits, is_told) in [(0, 0, false), (1, 0, false), (2, 1, false), (3, 1, true)] {
            let store = Yielding::new(Arc::new(MemoryStore::new()));
            let told = cut(store.commit(Batch::default()), polls).await;
            assert_eq!((store.stats().commits, told.is_some()), (commits, is_told), "after {polls} polls");
        }
    }

    #[tokio::test]
    async fn tasks_are_waited_for() {
        let (ended, mut end) = tokio::sync::oneshot::channel();
        let mut tasks = tokio::task::JoinSet::new();
        tasks.spawn(async move {
            for _ in 0..10 {
                yield_now().await;
            }
            let _ = ended.send(());
        });
        tasks_end().await;
        assert!(end.try_recv().is_ok());
    }

    #[tokio::test]
    #[should_panic(expected = "this waits for ever")]
    async fn what_never_ends_is_told() {
        in_time("this", std::future::pending::<()>()).await;
    }
}
