//! A store that fails when told to.
//!
//! A test arms a [`Fault`] on the nth call from now, runs something, and looks at what became of it. Running the
//! same thing with n = 1, 2, 3 … until nothing fails any more visits every place where it can fail.
//!
//! A failed commit was not applied. As the contract has it, [`Fault::Fail`] on a commit closes the store for
//! writes: later commits answer `Poisoned` until [`Faulty::heal`], which stands for opening it again.
//!
//! Holds: an unarmed one behaves exactly like the store inside.

use std::sync::Arc;

use bytes::Bytes;
use mayfly_storage::{
    Error, Result,
    peers::Peers,
    store::{
        Batch, BoxFuture, Committed, Direction, Keep, Key, KeyRange, MayHold, Page, PageLimit, Sieved, Slot,
        Snapshot, Space, Stats, Store,
    },
    upkeep::{Cleared, Upkeep, Withered},
};
use parking_lot::Mutex;

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The medium fails.
    Fail,
    /// A commit loses against someone else: on its first guard's key, or any key if it has none. Other calls fail.
    Conflict,
    /// A commit is there for all to see, and its own caller hears of it much later. Other calls fail.
    Late,
}

/// How many turns of other tasks a late answer takes.
const LATE_TURNS: usize = 1000;

/// Which calls are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calls {
    /// Every call of the store and its snapshots that can fail.
    All,
    /// Commits alone.
    Commits,
}

/// A store that fails when told to.
pub struct Faulty<S: ?Sized> {
    inner: Arc<S>,
    plan: Arc<Mutex<Plan>>,
}

#[derive(Default)]
struct Plan {
    armed: Option<(Fault, Calls, u64)>,
    is_poisoned: bool,
    calls: u64,
}

impl<S: Store + ?Sized> Faulty<S> {
    /// Fails never, until armed.
    pub fn new(inner: Arc<S>) -> Self {
        Self { inner, plan: Arc::default() }
    }

    /// Lets the `nth` call from now (the first is 1) fail, once.
    pub fn arm(&self, fault: Fault, calls: Calls, nth: u64) {
        self.plan.lock().armed = Some((fault, calls, nth));
    }

    /// Forgets an armed fault. Says whether it was still to come.
    pub fn disarm(&self) -> bool {
        self.plan.lock().armed.take().is_some()
    }

    /// Takes writes again after a failed commit.
    pub fn heal(&self) {
        self.plan.lock().is_poisoned = false;
    }

    /// Calls so far: how far to count when every one is to fail once.
    pub fn calls(&self) -> u64 {
        self.plan.lock().calls
    }

    async fn snapshot_of(
        &self,
        inner: BoxFuture<'_, Result<Arc<dyn Snapshot>>>,
    ) -> Result<Arc<dyn Snapshot>> {
        Plan::call(&self.plan)?;
        let inner = inner.await?;
        Ok(Arc::new(FaultySnapshot { inner, plan: self.plan.clone() }))
    }
}

impl Plan {
    /// The fault of this call, if it is its turn.
    fn next(&mut self, is_commit: bool) -> Option<Fault> {
        self.calls += 1;
        let (fault, calls, nth) = self.armed.as_mut()?;
        if *calls == Calls::Commits && !is_commit {
            return None;
        }
        *nth = nth.saturating_sub(1);
        let fault = *fault;
        (*nth == 0).then(|| {
            self.armed = None;
            fault
        })
    }

    fn call(plan: &Mutex<Self>) -> Result<()> {
        match plan.lock().next(false) {
            None => Ok(()),
            Some(_) => Err(injected()),
        }
    }

    /// How many turns of other tasks the answer is to be held back.
    fn commit(plan: &Mutex<Self>, batch: &Batch) -> Result<usize> {
        let mut plan = plan.lock();
        let fault = plan.next(true);
        if plan.is_poisoned {
            return Err(Error::Poisoned);
        }
        match fault {
            None => Ok(0),
            Some(Fault::Late) => Ok(LATE_TURNS),
            Some(Fault::Conflict) => Err(Error::Conflict { key: some_key(batch) }),
            Some(Fault::Fail) => {
                plan.is_poisoned = true;
                Err(injected())
            }
        }
    }
}

fn injected() -> Error {
    Error::Failed("a failure that the test asked for".to_owned())
}

fn some_key(batch: &Batch) -> Key {
    let guards = batch.guards.iter().map(|guard| &guard.key);
    let puts = batch.puts.iter().map(|put| &put.key);
    let any = guards.chain(puts).chain(&batch.deletes).next().cloned();
    any.unwrap_or(Key { space: Space::Small, slot: Slot(0), bytes: vec![0] })
}

impl<S: Store + ?Sized> Store for Faulty<S> {
    fn get<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Bytes>>> {
        Box::pin(async move {
            Plan::call(&self.plan)?;
            self.inner.get(key).await
        })
    }

    fn get_both<'a>(&'a self, keys: &'a [Key; 2]) -> BoxFuture<'a, Result<[Option<Bytes>; 2]>> {
        Box::pin(async move {
            Plan::call(&self.plan)?;
            self.inner.get_both(keys).await
        })
    }

    fn peek<'a>(&'a self, range: &'a KeyRange, rows: usize) -> BoxFuture<'a, Result<Vec<(Bytes, Bytes)>>> {
        Box::pin(async move {
            Plan::call(&self.plan)?;
            self.inner.peek(range, rows).await
        })
    }

    fn snapshot(&self) -> BoxFuture<'_, Result<Arc<dyn Snapshot>>> {
        Box::pin(self.snapshot_of(self.inner.snapshot()))
    }

    fn background_snapshot(&self) -> BoxFuture<'_, Result<Arc<dyn Snapshot>>> {
        Box::pin(self.snapshot_of(self.inner.background_snapshot()))
    }

    fn commit(&self, batch: Batch) -> BoxFuture<'_, Result<Committed>> {
        Box::pin(async move {
            let turns = Plan::commit(&self.plan, &batch)?;
            let committed = self.inner.commit(batch).await;
            for _ in 0..turns {
                tokio::task::yield_now().await;
            }
            committed
        })
    }

    fn stats(&self) -> Stats {
        self.inner.stats()
    }
}

impl<S: Store + ?Sized> Upkeep for Faulty<S> {
    fn clear<'a>(&'a self, range: &'a KeyRange, limit: usize) -> BoxFuture<'a, Result<Cleared>> {
        Box::pin(async move {
            Plan::call(&self.plan)?;
            self.inner.clear(range, limit).await
        })
    }

    fn sync(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            Plan::call(&self.plan)?;
            self.inner.sync().await
        })
    }

    fn sweep(&self, withered: Vec<Withered>) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            Plan::call(&self.plan)?;
            self.inner.sweep(withered).await
        })
    }

    fn reclaim(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            Plan::call(&self.plan)?;
            self.inner.reclaim().await
        })
    }

    fn compact_when_idle(&self) -> BoxFuture<'_, Result<bool>> {
        Box::pin(async move {
            Plan::call(&self.plan)?;
            self.inner.compact_when_idle().await
        })
    }

    fn wither(&self, withered: Vec<Withered>) {
        self.inner.wither(withered);
    }
}

impl<S: Store + ?Sized> Peers for Faulty<S> {
    fn is_shared(&self) -> bool {
        self.inner.is_shared()
    }

    fn raise_floor<'a>(&'a self, slots: &'a [Slot], floor: u64) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            Plan::call(&self.plan)?;
            self.inner.raise_floor(slots, floor).await
        })
    }

    fn say(&self, word: u64) -> BoxFuture<'_, ()> {
        self.inner.say(word)
    }

    fn heard(&self, word: u64) -> BoxFuture<'_, ()> {
        self.inner.heard(word)
    }

    fn tends(&self, slot: Slot) -> bool {
        self.inner.tends(slot)
    }

    fn floor(&self, slot: Slot) -> u64 {
        self.inner.floor(slot)
    }
}

struct FaultySnapshot {
    inner: Arc<dyn Snapshot>,
    plan: Arc<Mutex<Plan>>,
}

impl Snapshot for FaultySnapshot {
    fn get<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Bytes>>> {
        Box::pin(async move {
            Plan::call(&self.plan)?;
            self.inner.get(key).await
        })
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Bytes>>>> {
        Box::pin(async move {
            Plan::call(&self.plan)?;
            self.inner.get_many(keys).await
        })
    }

    fn scan<'a>(
        &'a self,
        range: &'a KeyRange,
        direction: Direction,
        limit: PageLimit,
    ) -> BoxFuture<'a, Result<Page>> {
        Box::pin(async move {
            Plan::call(&self.plan)?;
            self.inner.scan(range, direction, limit).await
        })
    }

    fn sieve<'a>(
        &'a self,
        range: &'a KeyRange,
        direction: Direction,
        limit: PageLimit,
        may_hold: Option<&'a MayHold<'_>>,
        keep: &'a mut Keep<'_>,
    ) -> BoxFuture<'a, Result<Sieved>> {
        Box::pin(async move {
            Plan::call(&self.plan)?;
            self.inner.sieve(range, direction, limit, may_hold, keep).await
        })
    }
}

#[cfg(test)]
mod tests {
    use mayfly_storage::{MemoryStore, conformance, store::Put};

    use super::*;

    fn faulty() -> Faulty<MemoryStore> {
        Faulty::new(Arc::new(MemoryStore::new()))
    }

    fn put() -> Batch {
        let key = Key { space: Space::Small, slot: Slot(0), bytes: vec![1] };
        Batch { puts: vec![Put { key, value: vec![], marks: vec![] }], ..Batch::default() }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn conformance() {
        conformance::run_all(|| async { Arc::new(faulty()) as Arc<dyn Store> }).await;
    }

    /// The nth commit fails, nothing is written, and writes stay closed until healed; reads go on.
    #[tokio::test]
    async fn fails_the_nth_commit() {
        let store = faulty();
        store.arm(Fault::Fail, Calls::Commits, 2);
        let key = put().puts[0].key.clone();
        store.get(&key).await.unwrap();
        store.commit(Batch::default()).await.unwrap();
        assert!(matches!(store.commit(put()).await, Err(Error::Failed(_))));
        assert!(matches!(store.commit(put()).await, Err(Error::Poisoned)));
        assert!(store.get(&key).await.unwrap().is_none());
        store.heal();
        store.commit(put()).await.unwrap();
        assert!(!store.disarm());
        assert_eq!(store.calls(), 6);
    }

    /// Any call can fail, also of a snapshot; a conflict comes once and closes nothing.
    #[tokio::test]
    async fn fails_the_nth_call() {
        let store = faulty();
        let key = put().puts[0].key.clone();
        let snapshot = store.snapshot().await.unwrap();
        store.arm(Fault::Fail, Calls::All, 2);
        snapshot.get(&key).await.unwrap();
        assert!(snapshot.get(&key).await.is_err());
        snapshot.get(&key).await.unwrap();
        store.arm(Fault::Conflict, Calls::Commits, 1);
        assert!(matches!(store.commit(put()).await, Err(Error::Conflict { key: found }) if found == key));
        store.commit(put()).await.unwrap();
    }
}
