//! Reading: a moment of both trees, and pages of it.
//!
//! Every read goes through a moment, also a single get: the trees take in a group key by key, and only a moment
//! sees none of it until all of it is there.
//!
//! Holds: reads take no lock that the committer holds while it syncs.

use std::ops::Bound;

use bytes::Bytes;
use fjall::{Guard, Readable};
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

/// Pages above this many rows leave the runtime's worker first. Below, the move costs more than the work: some
/// 20 µs against 1 to 2 µs a row.
const INLINE_ROWS_MAX: usize = 1024;

/// Both trees as they were at one moment.
pub struct View {
    moment: fjall::Snapshot,
    trees: PerSpace<fjall::Keyspace>,
}

impl View {
    pub fn now(trees: &Trees) -> Self {
        Self { moment: trees.db.snapshot(), trees: trees.of.clone() }
    }

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
        get_at(&self.moment, self.trees.of(key.space), key)
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
        self.moment.range::<&[u8], _>(self.trees.of(range.space), (start, end))
    }
}

/// The value at `key` at the present moment. Like a view of one key, without the copies that a view keeps.
pub fn get_now(trees: &Trees, key: &Key) -> Result<Option<Bytes>> {
    get_at(&trees.db.snapshot(), trees.of.of(key.space), key)
}

fn get_at(moment: &fjall::Snapshot, tree: &fjall::Keyspace, key: &Key) -> Result<Option<Bytes>> {
    check_key(key)?;
    Ok(moment.get(tree, &key.bytes).map_err(failed)?.map(Bytes::from))
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
