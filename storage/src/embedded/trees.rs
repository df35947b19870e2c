//! The two trees under an embedded store, and the sizes they run with.
//!
//! Rows lie in compressed blocks. [`Space::Large`] keeps values that are larger than a block in files of their own, so
//! that merges move their keys only. Both trees share one block cache. Of the library, the tables are used: its journal stays
//! empty (`log.rs`), and so do its memtables (`layers.rs`).
//!
//! Holds: sizes stand here, with their reasons, and nowhere else.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::Arc,
};

use bytes::Bytes;
use fjall::{AbstractTree, AnyTree, Database, Keyspace, KeyspaceCreateOptions, compaction::Leveled};
use lsm_tree::{InternalValue, Slice, ValueType};

use super::{
    Compression, EmbeddedOptions,
    dead_rows::Forgetting,
    directory,
    layers::{Layers, Needed, Present},
    layout::{self, Layout, Separation},
    retire::Retired,
    seen::Seen,
};
use crate::{Error, Result, store::Space};

const SMALL: &str = "small";
const LARGE: &str = "large";

/// Rows that are compressed together. Documents of one collection repeat their names and much of their text, so a few of
/// them together take half of what they take one by one; and a point read unpacks them all.
///
/// For 150,000 documents of 1 KB of random words, as bytes of a document and CPU of a point read that finds nothing in
/// the caches: 670 and 10 µs one by one, 540 and 13 µs in 4 KB, 510 and 22 µs in 8 KB, 500 and 30 µs in 16 KB; of a
/// sentence that is repeated: 215 and 6 µs, 112 and 8 µs, 84 and 7 µs, 73 and 8 µs. Index entries gain 6 % by 16 KB.
const BLOCK_BYTES: PerSpace<u32> = PerSpace { small: 4 * 1024, large: 4 * 1024 };

/// Values from here on live in files of their own, compressed one by one.
///
/// Separation makes merges cheaper, the more so the more data there is; each value read in a walk dearer, as each is a
/// read of its own; and compression worse, as a value has only itself to repeat. So it begins where a value is a block
/// by itself anyway.
pub const SEPARATE_BYTES_MIN: u32 = 8 * 1024;

/// In directories of earlier versions values from here on do, until they are written again.
pub const SEPARATED_BEFORE_BYTES_MIN: u32 = 1024;

/// A file of values is written anew without its holes once they are half of it: a byte written for each that comes
/// back, and files take twice what lives in them at most. It happens when all tables that refer to the file are
/// merged, so mostly in `reclaim.rs`.
const HOLES_SHARE_MAX: f32 = 0.5;

/// Which of those files are written anew in one merge, oldest first: all. The library's own quarter means none at all
/// of up to three, and one living document then keeps 64 MB.
const HOLES_SHARE_OF_FILES: f32 = 1.0;

/// What one tree holds in memory before it is flushed, counted as bytes of keys and values and 80 for each entry.
///
/// Real use is two to three times this, and up to five can wait for their flush. Twice as much was no faster in the
/// bench, took 100 MB more, and doubled the longest stall; less means more and smaller files to compact.
const MEMTABLE_BYTES: u64 = 16 * 1024 * 1024;

/// Memtables of a tree that wait for their flush, and runs of tables that wait to be merged, before writes wait as well.
const SEALED_MAX: usize = 4;
const RUNS_MAX: usize = 30;

/// Threads of the library, which wants one. It has nothing to do, unless a directory has to be brought to the present format
/// (`former.rs`).
const WORKERS: usize = 1;

/// Tables that were flushed and not merged, at which they are, and the size of the tables that are made of them. The product
/// is the size of the first level, all of which is written again each time: so the fewer merges, the fewer bytes.
///
/// But whoever reads a range looks into each. With eight of them in the small tree too, a page of ten of its rows cost
/// twice as much beside writers. Documents are mostly read by their keys, where filters tell, and they are most of the bytes.
pub const FLUSHED_MAX: PerSpace<u8> = PerSpace { small: 4, large: 8 };
const TABLE_BYTES: PerSpace<u64> = PerSpace { small: 64 * 1024 * 1024, large: 32 * 1024 * 1024 };

/// Where a merge of a whole tree begins another table.
const TABLE_BYTES_OF_ALL: u64 = 64 * 1000 * 1000;

/// The size of tables, and with it of levels, at which the workers would find something to merge: never.
const TABLE_BYTES_NEVER: u64 = 1 << 50;

/// Groups are numbered from behind this one. A snapshot at the number 0 makes the library forget what others see: it takes
/// 0 for none when it looks for the oldest.
const SEQNO_BEFORE_ALL: u64 = 1;

/// One thing per space.
#[derive(Clone, Default)]
pub struct PerSpace<T> {
    pub small: T,
    pub large: T,
}

impl<T> PerSpace<T> {
    pub fn of(&self, space: Space) -> &T {
        match space {
            Space::Small => &self.small,
            Space::Large => &self.large,
        }
    }

    pub fn of_mut(&mut self, space: Space) -> &mut T {
        match space {
            Space::Small => &mut self.small,
            Space::Large => &mut self.large,
        }
    }
}

/// The open database. Cheap to clone; the files are closed with the last clone.
#[derive(Clone)]
pub struct Trees {
    pub db: Database,
    pub of: PerSpace<Keyspace>,
    pub layers: PerSpace<Arc<Present>>,
    pub forgetting: Forgetting,
    pub seen: Seen,
    pub retired: Retired,
}

impl Trees {
    /// Opens the trees in `folder`, making them if they are not there. `path` is what messages name.
    pub fn open(path: &Path, folder: &Path, options: &EmbeddedOptions) -> Result<Self> {
        // The library asserts things about its files while reading them; a damaged one must not end the process.
        match catch_unwind(AssertUnwindSafe(|| Self::try_open(folder, options))) {
            Ok(Ok(trees)) => Ok(trees),
            Ok(Err(fjall::Error::Locked)) => Err(directory::in_use(path)),
            Ok(Err(fjall::Error::Io(error))) => Err(directory::unusable(
                path,
                format_args!("cannot be opened: {error}. Check its permissions and free space"),
            )),
            Ok(Err(error)) => Err(directory::damaged(path, &error.to_string())),
            Err(_) => Err(directory::damaged(path, "its files do not fit together")),
        }
    }

    fn try_open(folder: &Path, options: &EmbeddedOptions) -> fjall::Result<Self> {
        let forgetting = Forgetting::default();
        let filters =
            PerSpace { small: forgetting.factory(Space::Small), large: forgetting.factory(Space::Large) };
        let filter_of =
            move |name: &str| Some(if name == SMALL { &filters.small } else { &filters.large }.clone());
        let layouts = PerSpace {
            small: layout(Space::Small, options.compression),
            large: layout(Space::Large, options.compression),
        };
        layout::renew(folder, &[(SMALL, layouts.small), (LARGE, layouts.large)])?;
        let db = Database::builder(folder)
            .with_compaction_filter_factories(Arc::new(filter_of))
            .cache_size(options.block_bytes())
            .worker_threads(WORKERS)
            .open()?;
        let small = db.keyspace(SMALL, || layouts.small.apply(usual_options()))?;
        let large = db.keyspace(LARGE, || layouts.large.apply(usual_options()))?;
        let retired = Retired::default();
        let present = |of: &Keyspace| Arc::new(Present::of(&of.tree, retired.clone()));
        let layers = PerSpace { small: present(&small), large: present(&large) };
        let of = PerSpace { small, large };
        let trees = Self { db, of, layers, forgetting, seen: Seen::default(), retired };
        trees.go_on_after(SEQNO_BEFORE_ALL);
        Ok(trees)
    }

    /// The number of the next group.
    pub fn next_seqno(&self) -> u64 {
        self.db.supervisor.seqno.next()
    }

    /// Puts one write of a group into memory. It counts as there once the group is [published](Self::publish).
    pub fn apply(&self, space: Space, key: Bytes, value: Option<Bytes>, seqno: u64) {
        let version = match value {
            Some(value) => InternalValue::from_components(key, value, seqno, ValueType::Value),
            None => InternalValue::new_tombstone(key, seqno),
        };
        self.layers.of(space).look().active.insert(version);
    }

    /// The latest value at a key. Only for the one who applies, and for tests.
    pub fn get(&self, space: Space, key: &[u8]) -> Result<Option<Slice>> {
        self.get_from(&self.layers.of(space).look(), space, key, u64::MAX)
    }

    /// Whether there is a value at a key. Fetches none.
    pub fn contains(&self, space: Space, key: &[u8]) -> Result<bool> {
        let found = self.layers.of(space).look().find(key, u64::MAX);
        found.map(|found| found.is_some()).map_err(|error| failed(error.into()))
    }

    /// The value at a key as it is in these layers before `seqno`.
    pub fn get_from(&self, layers: &Layers, space: Space, key: &[u8], seqno: u64) -> Result<Option<Slice>> {
        let value = |found| Layers::value_of(self.tree(space), found, seqno);
        let found = layers.find(key, seqno).and_then(|found| found.map(value).transpose());
        found.map_err(|error| failed(error.into()))
    }

    pub fn tree(&self, space: Space) -> &AnyTree {
        &self.of.of(space).tree
    }

    /// What a snapshot that is made now sees: all that was written before this. Only for who knows that no group is half
    /// written.
    pub fn visible_seqno(&self) -> u64 {
        self.db.supervisor.snapshot_tracker.get()
    }

    /// Says that all of a group is in memory.
    pub fn publish(&self, seqno: u64) {
        self.db.supervisor.snapshot_tracker.publish(seqno);
    }

    /// Goes on after `seqno`: for groups that were applied with the number they had before.
    pub fn go_on_after(&self, seqno: u64) {
        self.db.supervisor.seqno.fetch_max(seqno + 1);
        self.publish(seqno);
    }

    /// The last group that is in tables, of those that wrote to `space`. Merges may take it back.
    pub fn flushed_seqno(&self, space: Space) -> Option<u64> {
        self.of.of(space).tree.get_highest_persisted_seqno()
    }

    pub fn is_full(&self, space: Space) -> bool {
        self.layers.of(space).look().active.size() > MEMTABLE_BYTES
    }

    /// Has what is in memory flushed, some time soon. Whether there was anything. Only for the one who applies, between groups.
    pub fn seal(&self, space: Space) -> bool {
        self.layers.of(space).seal()
    }

    /// Makes a table of the memtable of `space` that waits longest. Whether there was one. Only one thread at a time.
    pub fn flush_oldest(&self, space: Space) -> Result<bool> {
        let (tree, layers) = (self.tree(space), self.layers.of(space));
        let Some(memtable) = layers.oldest_sealed() else { return Ok(false) };
        let seen_by_all = self.seen.by_all();
        let flush = || {
            let turn = tree.get_flush_lock();
            if let Some((tables, values)) = tree.flush_to_tables(Needed::of(memtable.iter(), seen_by_all))? {
                tree.register_tables(&tables, values.as_deref(), None, &[], seen_by_all)?;
            }
            drop(turn);
            Ok(())
        };
        flush().map_err(|error: lsm_tree::Error| Error::Failed(format!("flushing: {error}")))?;
        layers.tables_changed(tree, Some(&memtable));
        self.retired.push(memtable);
        Ok(true)
    }

    /// Merges what is most in need of it. Whether the tree is another one now.
    pub fn merge_some(&self, space: Space) -> Result<bool> {
        let before = self.tree(space).current_version().id();
        let (flushed, bytes) = (*FLUSHED_MAX.of(space), *TABLE_BYTES.of(space));
        let sizes = Leveled::default().with_l0_threshold(flushed).with_table_target_size(bytes);
        let merge = |tree: &AnyTree| tree.compact(Arc::new(sizes), self.seen.by_all());
        self.change_tables(space, merge)?;
        Ok(self.tree(space).current_version().id() != before)
    }

    /// Makes a single run of all tables.
    pub fn merge_all(&self, space: Space) -> Result<()> {
        self.change_tables(space, |tree| tree.major_compact(TABLE_BYTES_OF_ALL, self.seen.by_all()))
    }

    /// Does something that makes other tables of those that are there.
    pub fn change_tables(
        &self,
        space: Space,
        change: impl FnOnce(&AnyTree) -> lsm_tree::Result<()>,
    ) -> Result<()> {
        let changed = change(self.tree(space));
        self.layers.of(space).tables_changed(self.tree(space), None);
        changed.map_err(|error| Error::Failed(format!("merging: {error}")))
    }

    /// Whether tables are not made and merged as fast as they have to.
    pub fn is_behind(&self, space: Space) -> bool {
        let layers = self.layers.of(space).look();
        layers.sealed_count() >= SEALED_MAX || layers.flushed_runs() >= RUNS_MAX
    }
}

/// How the rows of a tree lie in its files.
fn layout(space: Space, compression: Compression) -> Layout {
    let separation = Separation {
        bytes_min: SEPARATE_BYTES_MIN,
        holes_share_max: HOLES_SHARE_MAX,
        share_of_files: HOLES_SHARE_OF_FILES,
    };
    Layout {
        compression,
        block_bytes: *BLOCK_BYTES.of(space),
        separation: (space == Space::Large).then_some(separation),
    }
}

/// What is the same for both.
fn usual_options() -> KeyspaceCreateOptions {
    let never = Leveled::default().with_l0_threshold(u8::MAX).with_table_target_size(TABLE_BYTES_NEVER);
    KeyspaceCreateOptions::default().max_memtable_size(MEMTABLE_BYTES).compaction_strategy(Arc::new(never))
}

/// What the library reports, as a failure of the medium.
pub fn failed(error: fjall::Error) -> Error {
    Error::Failed(error.to_string())
}
