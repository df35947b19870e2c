//! Dropping withered rows where the library merges anyway.
//!
//! The library asks a filter about every row it merges. Ours knows what is withered while somebody sweeps or is about
//! to, and keeps everything otherwise. What it drops is replaced by the mark of a delete, which hides older versions of the key, and
//! goes itself when everything is merged.
//!
//! Holds: a row is judged by its own value alone, so one that was written again stays.

use std::{panic::AssertUnwindSafe, sync::Arc};

use fjall::compaction::filter::{
    CompactionFilter, CompactionFilterResult, Context, Factory, ItemAccessor, Verdict,
};
use parking_lot::Mutex;

use crate::{store::Space, upkeep::Withered};

/// What is withered at present, for both trees.
#[derive(Clone)]
pub struct Sweeping(Arc<AssertUnwindSafe<Mutex<Arc<Vec<Withered>>>>>);

impl Default for Sweeping {
    fn default() -> Self {
        Self(Arc::new(AssertUnwindSafe(Mutex::default())))
    }
}

impl Sweeping {
    /// Drops these rows in every merge until the answer is dropped.
    pub fn begin(&self, withered: Vec<Withered>) -> Swept {
        *self.0.lock() = Arc::new(withered);
        Swept(self.clone())
    }

    /// Drops these rows, too, in every merge until a sweep ends.
    pub fn foresee(&self, withered: Vec<Withered>) {
        let mut known = self.0.lock();
        let stays = |rows: &&Withered| withered.iter().all(|new| new.range != rows.range);
        let mut all: Vec<_> = known.iter().filter(stays).cloned().collect();
        all.extend(withered);
        *known = Arc::new(all);
    }

    /// The filters of one tree.
    pub fn factory(&self, space: Space) -> Arc<dyn Factory> {
        Arc::new(Filters { space, sweeping: self.clone() })
    }
}

/// Ends a sweep.
pub struct Swept(Sweeping);

impl Drop for Swept {
    fn drop(&mut self) {
        *self.0.0.lock() = Arc::default();
    }
}

struct Filters {
    space: Space,
    sweeping: Sweeping,
}

impl Factory for Filters {
    fn name(&self) -> &str {
        "withered"
    }

    fn make_filter(&self, _: &Context) -> Box<dyn CompactionFilter> {
        let all = self.sweeping.0.lock().clone();
        Box::new(Filter(all.iter().filter(|rows| rows.range.space == self.space).cloned().collect()))
    }
}

struct Filter(Vec<Withered>);

impl CompactionFilter for Filter {
    fn filter_item(&mut self, item: ItemAccessor<'_>, _: &Context) -> CompactionFilterResult {
        let key = item.key();
        let is_inside = |rows: &&Withered| {
            let range = &rows.range;
            **key >= range.start[..] && range.end.as_ref().is_none_or(|end| **key < end[..])
        };
        for rows in self.0.iter().filter(is_inside) {
            if rows.includes(&item.value()?) {
                return Ok(Verdict::Remove);
            }
        }
        Ok(Verdict::Keep)
    }
}
