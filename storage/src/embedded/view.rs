//! Reading: a moment of both trees, and pages of it.
//!
//! The trees take in a group key by key. Reading them as they are would show half of it; so would a snapshot the
//! library makes meanwhile, for a flush that ends just then counts what is half applied as visible. So the
//! committer, which alone knows when a group is complete, leaves a [`Moment`] behind after each one, and every
//! read, also a single get, is of the latest moment.
//!
//! Holds: a read sees each group whole or not at all, and takes no lock that is held during a sync.

use std::{ops::Bound, sync::Arc};

use bytes::Bytes;
use fjall::{Guard, Readable};
use parking_lot::RwLock;
use tokio::{
    runtime::{Handle, RuntimeFlavor},
    task::block_in_place,
};

use super::trees::{PerSpace, Trees, failed};
use crate::{
    Result,
    batch::{check_key, check_scan},
    store::{BoxFuture, Direction, Key, KeyRange, Page, PageLimit, Snapshot},
};

/// Pages above this many rows leave the runtime's worker first, or they would hold it for milliseconds: a row takes
/// 0.5 to 4 µs (bench). Smaller ones are done before another thread could take over.
const INLINE_ROWS_MAX: usize = 1024;

/// The latest complete group.
#[derive(Clone)]
pub struct Moment(Arc<RwLock<Arc<fjall::Snapshot>>>);

impl Moment {
    /// The present. Only for who knows that no group is half written.
    pub fn of(trees: &Trees) -> Self {
        Self(Arc::new(RwLock::new(Arc::new(trees.db.snapshot()))))
    }

    /// Moves on to the present. Only for the committer, between groups.
    pub fn advance(&self, trees: &Trees) {
        let present = Arc::new(trees.db.snapshot());
        // The old one may be the last of its kind; let it go outside the lock.
        let _past = std::mem::replace(&mut *self.0.write(), present);
    }

    /// The value at `key`.
    pub fn get(&self, trees: &Trees, key: &Key) -> Result<Option<Bytes>> {
        get_at(&self.latest(), trees.of.of(key.space), key)
    }

    /// A view that stays at this moment.
    pub fn view(&self, trees: &Trees) -> View {
        View { at: self.latest(), trees: trees.of.clone() }
    }

    fn latest(&self) -> Arc<fjall::Snapshot> {
        self.0.read().clone()
    }
}

/// Both trees as they were at one moment.
pub struct View {
    at: Arc<fjall::Snapshot>,
    trees: PerSpace<fjall::Keyspace>,
}

impl View {
    /// The keys of `range` in ascending order, at most `rows_max`, and whether there are more. Fetches no values.
    pub fn keys(&self, range: &KeyRange, rows_max: usize) -> Result<(Vec<Bytes>, bool)> {
        check_scan(range, rows_max)?;
        let mut keys = Vec::new();
        if range.is_empty() {
            return Ok((keys, false));
        }
        for row in self.iter(range) {
            if keys.len() == rows_max {
                return Ok((keys, true));
            }
            keys.push(row.key().map_err(failed)?.into());
        }
        Ok((keys, false))
    }

    fn get(&self, key: &Key) -> Result<Option<Bytes>> {
        get_at(&self.at, self.trees.of(key.space), key)
    }

    fn scan(&self, range: &KeyRange, direction: Direction, limit: PageLimit) -> Result<Page> {
        check_scan(range, limit.rows)?;
        let mut page = Page::default();
        // The library asserts that a range is the right way round.
        if range.is_empty() {
            return Ok(page);
        }
        let mut rows = self.iter(range);
        match direction {
            Direction::Forward => fill(&mut page, &mut rows, limit)?,
            Direction::Reverse => fill(&mut page, &mut rows.rev(), limit)?,
        }
        Ok(page)
    }

    fn iter(&self, range: &KeyRange) -> fjall::Iter {
        let start = Bound::Included(range.start.as_slice());
        let end = range.end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        self.at.range::<&[u8], _>(self.trees.of(range.space), (start, end))
    }
}

fn get_at(at: &fjall::Snapshot, tree: &fjall::Keyspace, key: &Key) -> Result<Option<Bytes>> {
    check_key(key)?;
    Ok(at.get(tree, &key.bytes).map_err(failed)?.map(Bytes::from))
}

/// Takes rows until the limit, and one more without its value to know whether there are more.
fn fill(page: &mut Page, rows: &mut dyn Iterator<Item = Guard>, limit: PageLimit) -> Result<()> {
    let mut bytes = 0;
    for row in rows {
        if !page.rows.is_empty() && limit.is_reached(page.rows.len(), bytes) {
            // An error here is one of the next page.
            page.more = true;
            return Ok(());
        }
        let (key, value) = row.into_inner().map_err(failed)?;
        bytes += key.len() + value.len();
        page.rows.push((key.into(), value.into()));
    }
    Ok(())
}

/// Runs `work` where it may take its time: beside the runtime's workers if it is long and there are several.
pub fn unhurried<T>(rows_max: usize, work: impl FnOnce() -> T) -> T {
    let has_workers =
        || Handle::try_current().is_ok_and(|on| on.runtime_flavor() == RuntimeFlavor::MultiThread);
    if rows_max > INLINE_ROWS_MAX && has_workers() { block_in_place(work) } else { work() }
}

impl Snapshot for View {
    fn get<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Bytes>>> {
        Box::pin(async move { self.get(key) })
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Bytes>>>> {
        Box::pin(async move { unhurried(keys.len(), || keys.iter().map(|key| self.get(key)).collect()) })
    }

    fn scan<'a>(
        &'a self,
        range: &'a KeyRange,
        direction: Direction,
        limit: PageLimit,
    ) -> BoxFuture<'a, Result<Page>> {
        Box::pin(async move { unhurried(limit.rows, || self.scan(range, direction, limit)) })
    }
}
