//! Putting in order what was written, once the writers have left.
//!
//! What is written lies in the memtable first, then in a few runs of tables that overlap, until enough has come to be merged.
//! A read looks into each of them. While writers go on, that is what cheap writes cost; once they have left it is paid
//! for nothing, again and again. So a tree that has not grown for a while is flushed and merged into a single run.
//!
//! ```text
//!   memtable  ▪▪ ▪  ▪ ▪
//!   runs      ▪ ▪▪ ▪▪ ▪      ──▶      ▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪
//!             ▪▪▪▪▪▪▪▪▪▪▪▪▪▪
//! ```
//!
//! Files that were merged or dropped stay as long as a reader from before may look into them, and the library removes them
//! only when it flushes. So a tree that has such files is flushed once more, again and again with longer pauses, until
//! the last such reader has left.
//!
//! Holds: a byte that is written has at most [`SHARE`] bytes of others written again for it here, and a tree that is too
//! large to be merged in a few seconds is left alone.

use std::fs;

use fjall::{AbstractTree, AnyTree, Keyspace};

use super::{
    layers::Layers,
    trees::{PerSpace, Trees},
};
use crate::store::Space;

/// Less than this beside the largest run is not worth a merge: it is found in the cache.
const UNSETTLED_MIN: u64 = 1 << 20;

/// How many times as large the largest run may be as what is merged into it.
const SHARE: u64 = 8;

/// A merge of this much takes some seconds. Merging in the usual way keeps larger trees in few runs.
const SETTLED_MAX: u64 = 1 << 30;

/// Whoever writes more than this between two looks has not left.
const GROWTH_MAX: u64 = 256 << 10;

/// Looks at most from one attempt to let go of versions to the next.
const LOOKS_MAX: u32 = 16;

/// Where a tree has its tables and the files of its values.
const FOLDERS: [&str; 2] = ["tables", "blobs"];

/// What the last look saw of each tree.
#[derive(Default)]
pub struct Settling {
    unsettled: PerSpace<u64>,
    held: PerSpace<Held>,
}

/// Trees that there is something to do for, and that nobody has written to since the last look.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Worth {
    /// They are flushed and merged into a single run.
    pub merge: Vec<Space>,
    /// They are flushed, so that files which nobody needs go.
    pub let_go: Vec<Space>,
}

impl Worth {
    pub fn is_nothing(&self) -> bool {
        self.merge.is_empty() && self.let_go.is_empty()
    }
}

impl Settling {
    /// What there is to do.
    pub fn look(&mut self, trees: &Trees) -> Worth {
        let mut worth = Worth::default();
        for space in [Space::Small, Space::Large] {
            let amounts = Amounts::of(trees.tree(space), &trees.layers.of(space).look());
            let before = std::mem::replace(self.unsettled.of_mut(space), amounts.unsettled);
            let is_quiet = amounts.unsettled.abs_diff(before) <= GROWTH_MAX;
            let held = self.held.of_mut(space);
            if !is_quiet || amounts.versions == 1 {
                *held = Held::default();
            }
            if is_quiet && amounts.are_worth_a_merge() {
                worth.merge.push(space);
            } else if is_quiet && held.are_worth_a_look() && has_files_of_before(trees.of.of(space)) {
                worth.let_go.push(space);
            }
        }
        worth
    }
}

/// When to look for files that only versions from before have.
#[derive(Default)]
struct Held {
    /// Looks until the next attempt, and those between the last two.
    left: u32,
    pause: u32,
}

impl Held {
    fn are_worth_a_look(&mut self) -> bool {
        if let Some(left) = self.left.checked_sub(1) {
            self.left = left;
            return false;
        }
        self.left = self.pause;
        self.pause = (self.pause * 2 + 1).min(LOOKS_MAX);
        true
    }
}

/// Whether there are files in the tree's folder that its present version does not have.
fn has_files_of_before(keyspace: &Keyspace) -> bool {
    let files = |folder| fs::read_dir(keyspace.path().join(folder)).map_or(0, Iterator::count);
    let present = keyspace.tree.table_count() + keyspace.tree.blob_file_count();
    FOLDERS.into_iter().map(files).sum::<usize>() > present
}

/// How much of a tree is where.
struct Amounts {
    /// In the largest run.
    settled: u64,
    /// In the memtable and in the other runs.
    unsettled: u64,
    /// The present version, and those from before that readers may still look at.
    versions: usize,
}

impl Amounts {
    fn of(tree: &AnyTree, layers: &Layers) -> Self {
        let sizes = layers.runs().map(|run| run.iter().map(|table| table.metadata.file_size).sum::<u64>());
        let (settled, all) = sizes.fold((0, 0), |(largest, all), size| (size.max(largest), all + size));
        let versions = 1 + tree.version_free_list_len();
        Self { settled, unsettled: all - settled + layers.active.size(), versions }
    }

    fn are_worth_a_merge(&self) -> bool {
        self.unsettled >= UNSETTLED_MIN
            && self.unsettled.saturating_mul(SHARE) >= self.settled
            && self.settled + self.unsettled <= SETTLED_MAX
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::{
        embedded::{EmbeddedOptions, EmbeddedStore},
        store::{Batch, Direction, Key, KeyRange, PageLimit, Put, Slot, Store},
        upkeep::Upkeep,
    };

    const ROWS: u32 = 3000;

    fn key_of(number: u32) -> Key {
        Key { space: Space::Large, slot: Slot(0), bytes: number.to_be_bytes().to_vec() }
    }

    async fn write(store: &EmbeddedStore, numbers: impl Iterator<Item = u32>, value: &[u8]) {
        let puts = numbers
            .map(|number| Put { key: key_of(number), value: value.to_vec(), marks: Vec::new() })
            .collect();
        store.commit(Batch { puts, ..Batch::default() }).await.unwrap();
    }

    /// Runs that a reader has to look into: not the one with the row that nobody can ask for (`reclaim.rs`).
    fn runs(store: &EmbeddedStore) -> usize {
        let rows = |run: &[lsm_tree::Table]| run.iter().map(|table| table.metadata.item_count).sum::<u64>();
        store.trees.layers.large.look().runs().filter(|run| rows(run) > 1).count()
    }

    #[tokio::test]
    async fn a_tree_is_put_in_order_once_it_is_quiet() {
        let folder = tempfile::tempdir().unwrap();
        let store = EmbeddedStore::open(folder.path(), EmbeddedOptions::default()).unwrap();
        write(&store, 0..ROWS, &[1; 500]).await;
        assert!(!store.compact_when_idle().await.unwrap(), "it has just grown");
        assert!(store.compact_when_idle().await.unwrap());
        assert_eq!(runs(&store), 1);
        write(&store, (0..ROWS).step_by(2), &[2; 900]).await;
        store.compact_when_idle().await.unwrap();
        assert!(store.compact_when_idle().await.unwrap());
        assert_eq!(runs(&store), 1);
        assert_eq!(store.trees.layers.large.look().active.size() / UNSETTLED_MIN, 0);
        let merged = fs::read_dir(store.trees.of.large.path().join("tables")).unwrap().count();
        assert_eq!(merged, 2, "the tables that were merged are gone");
        for _ in 0..3 {
            assert!(!store.compact_when_idle().await.unwrap(), "nothing is left to do");
        }
        let all = KeyRange { space: Space::Large, slot: Slot(0), start: vec![0], end: None };
        let snapshot = store.snapshot().await.unwrap();
        let limit = PageLimit { rows: ROWS as usize + 1, bytes: usize::MAX };
        let page = snapshot.scan(&all, Direction::Forward, limit).await.unwrap();
        let expected = |number: u32| if number.is_multiple_of(2) { vec![2; 900] } else { vec![1; 500] };
        assert!(page.rows.iter().map(|(_, value)| value.to_vec()).eq((0..ROWS).map(expected)));
    }

    #[test]
    fn little_beside_much_and_much_beside_more_are_left_alone() {
        let is_worth = |unsettled, settled| Amounts { settled, unsettled, versions: 1 }.are_worth_a_merge();
        assert!(is_worth(UNSETTLED_MIN, 0) && is_worth(UNSETTLED_MIN, SHARE * UNSETTLED_MIN));
        assert!(!is_worth(UNSETTLED_MIN - 1, 0));
        assert!(!is_worth(UNSETTLED_MIN, SHARE * UNSETTLED_MIN + 1));
        assert!(!is_worth(SETTLED_MAX / 2 + 1, SETTLED_MAX / 2));
    }
}
