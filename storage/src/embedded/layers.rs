//! What a tree is made of: the memtable that takes writes, those that wait for their flush, and tables.
//!
//! ```text
//!   active  ▪▪ ▪  ▪ ▪      the committer puts writes in
//!   sealed  ▪▪▪▪▪▪▪▪▪      full; becomes a table (`flushing.rs`)
//!   runs    ▪ ▪▪ ▪▪ ▪      tables that follow each other, newest first; merges make others of them (`merging.rs`)
//!           ▪▪▪▪▪▪▪▪▪▪▪▪▪
//! ```
//!
//! The library has memtables too, and a lock on its set of them and of tables. It holds that lock while the last table of a
//! merge is synced and while a new set is written down: tens of milliseconds, a few times a second under load, and
//! each look at a row and each write takes it. So the memtables are ours, the library's stay empty, and what is read
//! is a set of handles that is replaced as a whole. Nobody who reads or commits waits for a lock that is held during a sync.
//!
//! Holds: rows move down only, and a set has each row at least once; a set that is kept shows what it showed before.

use std::sync::Arc;

use arc_swap::ArcSwap;
use fjall::{AbstractTree, AnyTree};
use lsm_tree::{
    InternalValue, Memtable, Result, SeqNo, Slice, Table, ValueType,
    table::filter::standard_bloom::Builder as Filter,
};
use parking_lot::Mutex;

use super::retire::Retired;

/// One set. Nothing in it changes but the active memtable, which grows.
pub struct Layers {
    pub active: Arc<Memtable>,
    /// Newest first.
    sealed: Vec<Arc<Memtable>>,
    tables: Arc<Tables>,
}

/// A set of tables, as the library has numbered it.
struct Tables {
    number: u64,
    runs: Vec<Vec<Table>>,
    /// How many of the runs are tables that were flushed and not merged.
    flushed_runs: usize,
}

impl Tables {
    fn of(tree: &AnyTree) -> Self {
        let version = tree.current_version();
        let runs = version.iter_levels().flat_map(|level| level.iter()).map(|run| run.to_vec()).collect();
        Self { number: version.id(), runs, flushed_runs: version.l0().run_count() }
    }
}

impl Layers {
    /// Memtables, newest first.
    pub fn memtables(&self) -> impl Iterator<Item = &Arc<Memtable>> {
        std::iter::once(&self.active).chain(&self.sealed)
    }

    pub fn sealed_count(&self) -> usize {
        self.sealed.len()
    }

    /// Runs of tables, newest first. The tables of one are in order and have no keys in common.
    pub fn runs(&self) -> impl Iterator<Item = &[Table]> {
        self.tables.runs.iter().map(Vec::as_slice)
    }

    /// Runs that wait to be merged.
    pub fn flushed_runs(&self) -> usize {
        self.tables.flushed_runs
    }

    /// The newest version of a key before `seqno`, if that is no delete.
    pub fn find(&self, key: &[u8], seqno: SeqNo) -> Result<Option<InternalValue>> {
        let in_memory = self.memtables().find_map(|memtable| memtable.get(key, seqno));
        let found = match in_memory {
            Some(found) => Some(found),
            None => self.find_in_tables(key, seqno)?,
        };
        Ok(found.filter(|found| !found.is_tombstone()))
    }

    fn find_in_tables(&self, key: &[u8], seqno: SeqNo) -> Result<Option<InternalValue>> {
        let hash = Filter::get_hash(key);
        for run in self.runs() {
            let at = run.partition_point(|table| **table.metadata.key_range.max() < *key);
            let table = run.get(at).filter(|table| **table.metadata.key_range.min() <= *key);
            if let Some(found) = table.map(|table| table.get(key, seqno, hash)).transpose()?.flatten() {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// The value that a version of a key stands for. Large ones lie in files, which the library reads.
    pub fn value_of(tree: &AnyTree, found: InternalValue, seqno: SeqNo) -> Result<Slice> {
        match found.key.value_type {
            ValueType::Indirection => {
                tree.get(&found.key.user_key, seqno)?.ok_or(lsm_tree::Error::Unrecoverable)
            }
            _ => Ok(found.value),
        }
    }
}

/// The present set of a tree.
pub struct Present {
    now: ArcSwap<Layers>,
    /// Held while the set is replaced: for no longer than that takes.
    turn: Mutex<()>,
    retired: Retired,
}

impl Present {
    /// Of a tree whose memtables are empty.
    pub fn of(tree: &AnyTree, retired: Retired) -> Self {
        let (active, tables) = (Arc::new(Memtable::new(0)), Arc::new(Tables::of(tree)));
        let now = ArcSwap::from_pointee(Layers { active, sealed: Vec::new(), tables });
        Self { now, turn: Mutex::new(()), retired }
    }

    /// For as long as a look takes.
    pub fn look(&self) -> impl std::ops::Deref<Target = Arc<Layers>> {
        self.now.load()
    }

    pub fn keep(&self) -> Arc<Layers> {
        self.now.load_full()
    }

    /// Begins another memtable, unless this one is empty. Only for the one who writes.
    pub fn seal(&self) -> bool {
        if self.look().active.is_empty() {
            return false;
        }
        self.replace(|before| {
            let sealed = std::iter::once(&before.active).chain(&before.sealed).cloned().collect();
            let active = Arc::new(Memtable::new(before.active.id() + 1));
            Layers { active, sealed, tables: before.tables.clone() }
        });
        true
    }

    /// The memtable that is to be flushed next.
    pub fn oldest_sealed(&self) -> Option<Arc<Memtable>> {
        self.look().sealed.last().cloned()
    }

    /// To be called when the tables of `tree` have changed, for one thing because `flushed` is among them.
    pub fn tables_changed(&self, tree: &AnyTree, flushed: Option<&Arc<Memtable>>) {
        let tables = Arc::new(Tables::of(tree));
        self.replace(|before| {
            // Somebody else may have been quicker with a later one, which has ours too.
            let tables = if tables.number >= before.tables.number { tables } else { before.tables.clone() };
            let is_left =
                |memtable: &&Arc<Memtable>| flushed.is_none_or(|flushed| !Arc::ptr_eq(flushed, memtable));
            let sealed = before.sealed.iter().filter(is_left).cloned().collect();
            Layers { active: before.active.clone(), sealed, tables }
        });
    }

    fn replace(&self, next: impl FnOnce(&Layers) -> Layers) {
        let turn = self.turn.lock();
        let before = self.now.load_full();
        self.now.store(Arc::new(next(&before)));
        drop(turn);
        self.retired.push(before);
    }
}

/// The versions of a memtable that have to be in its table: of each key the newest, and those that not everybody is past. Who
/// began to read before them has the memtable itself.
pub struct Needed<I> {
    versions: I,
    seen_by_all: SeqNo,
    last: Option<Slice>,
}

impl<I: Iterator<Item = InternalValue>> Needed<I> {
    /// `versions` are by key, and the newest first.
    pub fn of(versions: I, seen_by_all: SeqNo) -> Self {
        Self { versions, seen_by_all, last: None }
    }
}

impl<I: Iterator<Item = InternalValue>> Iterator for Needed<I> {
    type Item = Result<InternalValue>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let version = self.versions.next()?;
            let is_same_key = self.last.as_ref().is_some_and(|last| *last == version.key.user_key);
            if !is_same_key {
                self.last = Some(version.key.user_key.clone());
            } else if version.key.seqno < self.seen_by_all {
                continue;
            }
            return Some(Ok(version));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_that_nobody_can_ask_for_are_not_flushed() {
        let memtable = Memtable::new(0);
        for (key, seqno) in [("a", 3), ("a", 5), ("a", 9), ("b", 2), ("c", 7), ("c", 8), ("c", 4)] {
            memtable.insert(InternalValue::from_components(key, "value", seqno, ValueType::Value));
        }
        let flushed = Needed::of(memtable.iter(), 5);
        let flushed: Vec<_> = flushed.map(|version| version.unwrap().key.seqno).collect();
        assert_eq!(flushed, [9, 5, 2, 8, 7]);
    }
}
