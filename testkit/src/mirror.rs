//! Two stores that must never differ.
//!
//! Every call is made on both and the answers are compared: values, pages row by row, errors by kind and by what
//! they name. A difference panics with both answers. It proves a backend equal to the memory store under whatever
//! runs above.
//!
//! Holds: both stores see the same calls in the same order, whoever calls from wherever.

use std::{fmt::Debug, sync::Arc};

use bytes::Bytes;
use mayfly_storage::{
    Error, Result,
    store::{
        Batch, BoxFuture, Cleared, Committed, Direction, Key, KeyRange, Page, PageLimit, Snapshot, Stats,
        Store, Withered,
    },
};
use tokio::sync::Mutex;

/// A store that is two. The first one's answers are returned.
pub struct Mirror<A: ?Sized, B: ?Sized> {
    /// Held over both calls; otherwise two commits could reach the stores in different orders.
    turn: Mutex<()>,
    first: Arc<A>,
    second: Arc<B>,
}

impl<A: Store + ?Sized, B: Store + ?Sized> Mirror<A, B> {
    /// Both stores must hold the same at the start.
    pub fn new(first: Arc<A>, second: Arc<B>) -> Self {
        Self { turn: Mutex::new(()), first, second }
    }
}

impl<A: Store + ?Sized, B: Store + ?Sized> Store for Mirror<A, B> {
    fn get<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Bytes>>> {
        Box::pin(async move {
            let _turn = self.turn.lock().await;
            same(|| format!("get {key:?}"), self.first.get(key).await, self.second.get(key).await)
        })
    }

    fn snapshot(&self) -> BoxFuture<'_, Result<Arc<dyn Snapshot>>> {
        Box::pin(async move {
            let _turn = self.turn.lock().await;
            match (self.first.snapshot().await, self.second.snapshot().await) {
                (Ok(first), Ok(second)) => {
                    Ok(Arc::new(MirrorSnapshot { first, second }) as Arc<dyn Snapshot>)
                }
                (first, second) => {
                    same(|| "snapshot".to_owned(), first.map(drop), second.map(drop))?;
                    unreachable!("one of them failed, and they are the same")
                }
            }
        })
    }

    fn commit(&self, batch: Batch) -> BoxFuture<'_, Result<Committed>> {
        Box::pin(async move {
            let _turn = self.turn.lock().await;
            let (first, second) =
                (self.first.commit(batch.clone()).await, self.second.commit(batch.clone()).await);
            same(|| format!("commit {batch:?}"), first, second)
        })
    }

    fn clear<'a>(&'a self, range: &'a KeyRange, limit: usize) -> BoxFuture<'a, Result<Cleared>> {
        Box::pin(async move {
            let _turn = self.turn.lock().await;
            let what = || format!("clear {range:?} up to {limit}");
            same(what, self.first.clear(range, limit).await, self.second.clear(range, limit).await)
        })
    }

    fn sync(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let _turn = self.turn.lock().await;
            same(|| "sync".to_owned(), self.first.sync().await, self.second.sync().await)
        })
    }

    fn sweep(&self, withered: Vec<Withered>) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let _turn = self.turn.lock().await;
            let first = self.first.sweep(withered.clone()).await;
            same(|| "sweep".to_owned(), first, self.second.sweep(withered).await)
        })
    }

    /// Not passed on: each of the two might leave out other rows before the sweep.
    fn wither(&self, _: Vec<Withered>) {}

    /// Without a turn: it changes nothing, so the others need not wait for it.
    fn reclaim(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            same(|| "reclaim".to_owned(), self.first.reclaim().await, self.second.reclaim().await)
        })
    }

    /// The first one's; figures may differ.
    fn stats(&self) -> Stats {
        self.first.stats()
    }
}

struct MirrorSnapshot {
    first: Arc<dyn Snapshot>,
    second: Arc<dyn Snapshot>,
}

impl Snapshot for MirrorSnapshot {
    fn get<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Bytes>>> {
        Box::pin(async move {
            same(
                || format!("get {key:?} in a snapshot"),
                self.first.get(key).await,
                self.second.get(key).await,
            )
        })
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Bytes>>>> {
        Box::pin(async move {
            let what = || format!("get {keys:?} in a snapshot");
            same(what, self.first.get_many(keys).await, self.second.get_many(keys).await)
        })
    }

    fn scan<'a>(
        &'a self,
        range: &'a KeyRange,
        direction: Direction,
        limit: PageLimit,
    ) -> BoxFuture<'a, Result<Page>> {
        Box::pin(async move {
            let what = || format!("scan {range:?} {direction:?} {limit:?}");
            let first = self.first.scan(range, direction, limit).await;
            let second = self.second.scan(range, direction, limit).await;
            if let (Ok(first), Ok(second)) = (&first, &second) {
                for (number, (first, second)) in first.rows.iter().zip(&second.rows).enumerate() {
                    assert_eq!(first, second, "row {number} of {}", what());
                }
            }
            let shape = |page: &Page| (page.rows.len(), page.more);
            same(what, first.as_ref().map(shape).map_err(copy), second.as_ref().map(shape).map_err(copy))?;
            first
        })
    }
}

/// The first answer, after a comparison with the second.
fn same<T: Debug + PartialEq>(what: impl Fn() -> String, first: Result<T>, second: Result<T>) -> Result<T> {
    let equal = match (&first, &second) {
        (Ok(first), Ok(second)) => first == second,
        (Err(first), Err(second)) => kind(first) == kind(second),
        _ => false,
    };
    assert!(equal, "the stores differ in {}:\n  first:  {first:?}\n  second: {second:?}", what());
    first
}

/// An error without its wording.
fn kind(error: &Error) -> (u8, Option<&Key>, Option<u64>) {
    match error {
        Error::Conflict { key } => (0, Some(key), None),
        Error::Stale { stamp } => (1, None, Some(*stamp)),
        Error::Invalid(_) => (2, None, None),
        Error::Failed(_) => (3, None, None),
        Error::Poisoned => (4, None, None),
        Error::Unusable(_) => (5, None, None),
        Error::Unreachable(_) => (6, None, None),
        Error::Moved => (7, None, None),
        Error::KeyTooLong { .. } => (8, None, None),
        Error::Apart => (9, None, None),
    }
}

fn copy(error: &Error) -> Error {
    match error {
        Error::Conflict { key } => Error::Conflict { key: key.clone() },
        Error::Stale { stamp } => Error::Stale { stamp: *stamp },
        Error::Invalid(what) => Error::Invalid(what),
        Error::Failed(what) => Error::Failed(what.clone()),
        Error::Poisoned => Error::Poisoned,
        Error::Unusable(what) => Error::Unusable(what.clone()),
        Error::Unreachable(what) => Error::Unreachable(what.clone()),
        Error::Moved => Error::Moved,
        Error::KeyTooLong { bytes_max } => Error::KeyTooLong { bytes_max: *bytes_max },
        Error::Apart => Error::Apart,
    }
}

#[cfg(test)]
mod tests {
    use mayfly_storage::{
        MemoryStore, conformance,
        store::{Put, Slot, Space},
    };

    use super::*;

    /// A mirror of two good stores is a good store.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn conformance() {
        conformance::run_all(|| async {
            let mirror = Mirror::new(Arc::new(MemoryStore::new()), Arc::new(MemoryStore::new()));
            Arc::new(mirror) as Arc<dyn Store>
        })
        .await;
    }

    /// A store that lost something is noticed.
    #[tokio::test]
    #[should_panic(expected = "the stores differ in get")]
    async fn a_difference_is_noticed() {
        let (first, second) = (Arc::new(MemoryStore::new()), Arc::new(MemoryStore::new()));
        let key = Key { space: Space::Small, slot: Slot(0), bytes: vec![1] };
        let put = Put { key: key.clone(), value: vec![], marks: vec![] };
        first.commit(Batch { puts: vec![put], ..Batch::default() }).await.unwrap();
        let _ = Mirror::new(first, second).get(&key).await;
    }
}
