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
//! Holds: a byte that is written has at most [`SHARE`] bytes of others written again for it here, and a tree that is too
//! large to be merged in a few seconds is left alone.

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

/// What the last look saw of each tree.
#[derive(Default)]
pub struct Settling {
    unsettled: PerSpace<u64>,
}

impl Settling {
    /// The trees that are worth a merge, and that nobody has written to since the last look.
    pub fn look(&mut self, trees: &Trees) -> Vec<Space> {
        let mut worth = Vec::new();
        for space in [Space::Small, Space::Large] {
            let amounts = Amounts::of(&trees.layers.of(space).look());
            let before = std::mem::replace(self.unsettled.of_mut(space), amounts.unsettled);
            let is_quiet = amounts.unsettled.abs_diff(before) <= GROWTH_MAX;
            if is_quiet && amounts.are_worth_a_merge() {
                worth.push(space);
            }
        }
        worth
    }
}

/// How much of a tree is where.
struct Amounts {
    /// In the largest run.
    settled: u64,
    /// In the memtable and in the other runs.
    unsettled: u64,
}

impl Amounts {
    fn of(layers: &Layers) -> Self {
        let sizes = layers.runs().map(|run| run.iter().map(|table| table.metadata.file_size).sum::<u64>());
        let (settled, all) = sizes.fold((0, 0), |(largest, all), size| (size.max(largest), all + size));
        Self { settled, unsettled: all - settled + layers.active.size() }
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
        let is_worth = |unsettled, settled| Amounts { settled, unsettled }.are_worth_a_merge();
        assert!(is_worth(UNSETTLED_MIN, 0) && is_worth(UNSETTLED_MIN, SHARE * UNSETTLED_MIN));
        assert!(!is_worth(UNSETTLED_MIN - 1, 0));
        assert!(!is_worth(UNSETTLED_MIN, SHARE * UNSETTLED_MIN + 1));
        assert!(!is_worth(SETTLED_MAX / 2 + 1, SETTLED_MAX / 2));
    }
}
