//! Which records of the log are in memory alone, and so must stay in the log.
//!
//! Each tree has one memtable that takes writes, and sealed ones that wait to be flushed to a table. Only the committer seals,
//! between two groups, so a memtable has whole groups; and they are flushed in the order of sealing. So it is enough to know
//! the first record of each, and how many still wait.
//!
//! Holds: a record below the floor is in tables, in every tree it wrote to.

use std::collections::VecDeque;

use super::trees::{PerSpace, Trees};
use crate::store::Space;

#[derive(Default)]
pub struct Unflushed(PerSpace<Firsts>);

/// The first record in each memtable of a tree.
#[derive(Clone, Default)]
struct Firsts {
    active: Option<u64>,
    sealed: VecDeque<u64>,
}

impl Firsts {
    fn lowest(&self) -> Option<u64> {
        self.sealed.front().copied().or(self.active)
    }
}

impl Unflushed {
    /// To be called with every record that wrote to `space`.
    pub fn wrote(&mut self, space: Space, number: u64) {
        self.0.of_mut(space).active.get_or_insert(number);
    }

    /// To be called when the memtable of `space` was sealed.
    pub fn sealed(&mut self, space: Space) {
        let firsts = self.0.of_mut(space);
        firsts.sealed.extend(firsts.active.take());
    }

    /// Whether the memtable of `space` has the lowest record, so that the log would be shorter if it were sealed.
    pub fn is_holding(&self, space: Space) -> bool {
        let all = [&self.0.small, &self.0.large].map(Firsts::lowest).into_iter().flatten();
        let firsts = self.0.of(space);
        firsts.sealed.is_empty() && firsts.active.is_some() && firsts.active == all.min()
    }

    /// The lowest record that is in memory alone; `next` if there is none.
    pub fn floor(&mut self, trees: &Trees, next: u64) -> u64 {
        let lowest = [Space::Small, Space::Large].map(|space| {
            let firsts = self.0.of_mut(space);
            if !firsts.sealed.is_empty() {
                let waiting = trees.layers.of(space).look().sealed_count();
                firsts.sealed.drain(..firsts.sealed.len().saturating_sub(waiting));
            }
            firsts.lowest().unwrap_or(next)
        });
        lowest.into_iter().fold(next, u64::min)
    }
}
