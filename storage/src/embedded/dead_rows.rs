//! Dead rows are left out where tables are merged.
//!
//! The library asks a filter about each row that it merges. Ours knows which rows nobody asks for any more: those that
//! the engine calls dead ([`DeadRows`]), and ranges that are being discarded. Space comes back with merges that are
//! made anyway; to delete such rows one by one would cost a mark each, and a merge to get rid of the marks.
//!
//! What is dropped leaves the mark of a delete, which hides older values of the key and goes itself in the lowest
//! level; unless those are dead too. A value in a file of its own is not read for this, so its row stays until it is
//! deleted.
//!
//! Holds: a row is judged by its own value alone, so one that was written again stays.

use std::{
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use fjall::compaction::filter::{
    CompactionFilter, CompactionFilterResult, Context, Factory, ItemAccessor, Verdict as FilterVerdict,
};
use parking_lot::Mutex;

use crate::{
    store::{KeyRange, Space},
    upkeep::{DeadRows, Verdict},
};

/// What is dead at present, for both trees.
#[derive(Clone, Default)]
pub struct Forgetting(Arc<AssertUnwindSafe<State>>);

#[derive(Default)]
struct State {
    known: Mutex<Known>,
    /// Bytes of dropped values in the tree that has documents.
    dropped_bytes: AtomicU64,
}

#[derive(Clone, Default)]
struct Known {
    dead: Option<Arc<dyn DeadRows>>,
    discarded: Arc<Vec<KeyRange>>,
}

impl Forgetting {
    /// Drops these rows in every merge from now on.
    pub fn forget(&self, dead: Arc<dyn DeadRows>) {
        self.0.known.lock().dead = Some(dead);
    }

    /// Drops all rows of these ranges in every merge until the answer is dropped. One at a time.
    pub fn discard(&self, ranges: Vec<KeyRange>) -> Discarding {
        self.0.known.lock().discarded = Arc::new(ranges);
        Discarding(self.clone())
    }

    /// Bytes of values that were dropped because they are dead, in the tree that has documents.
    pub fn dropped_bytes(&self) -> u64 {
        self.0.dropped_bytes.load(Relaxed)
    }

    /// The filters of one tree.
    pub fn factory(&self, space: Space) -> Arc<dyn Factory> {
        Arc::new(Filters { space, forgetting: self.clone() })
    }
}

/// Ends a discard.
pub struct Discarding(Forgetting);

impl Drop for Discarding {
    fn drop(&mut self) {
        self.0.0.known.lock().discarded = Arc::default();
    }
}

struct Filters {
    space: Space,
    forgetting: Forgetting,
}

impl Factory for Filters {
    fn name(&self) -> &str {
        "dead rows"
    }

    fn make_filter(&self, _: &Context) -> Box<dyn CompactionFilter> {
        let known = self.forgetting.0.known.lock().clone();
        Box::new(Filter { space: self.space, known, forgetting: self.forgetting.clone(), dropped_bytes: 0 })
    }
}

struct Filter {
    space: Space,
    known: Known,
    forgetting: Forgetting,
    dropped_bytes: u64,
}

impl CompactionFilter for Filter {
    fn filter_item(&mut self, item: ItemAccessor<'_>, _: &Context) -> CompactionFilterResult {
        let key = item.key();
        if self.known.discarded.iter().any(|range| range.space == self.space && range.contains(key)) {
            return Ok(FilterVerdict::Destroy);
        }
        let Some(dead) = self.known.dead.as_ref().filter(|_| !item.is_indirection()) else {
            return Ok(FilterVerdict::Keep);
        };
        let value = item.value()?;
        let verdict = match dead.judge(self.space, key, &value) {
            Verdict::Keep => return Ok(FilterVerdict::Keep),
            Verdict::Drop => FilterVerdict::Remove,
            Verdict::DropAll => FilterVerdict::Destroy,
        };
        if self.space == Space::Large {
            self.dropped_bytes += value.len() as u64;
        }
        Ok(verdict)
    }

    fn finish(self: Box<Self>) {
        self.forgetting.0.dropped_bytes.fetch_add(self.dropped_bytes, Relaxed);
    }
}
