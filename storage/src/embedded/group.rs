//! One group of batches on its way into the trees: decides each batch, then gives all accepted ones out at once.
//!
//! A batch is judged against the trees as changed by the batches before it in the same group, which are not in
//! the trees yet. So the group keeps what it is about to write, by key, and looks there first. Counter rows that
//! were used lately stay in memory between groups: an advance of one costs no read.
//!
//! ```text
//!   look up a key:   this group's writes ──▶ counter rows in memory ──▶ rows that were read lately ──▶ the tree
//! ```
//!
//! Holds: one key has one write per group (all of them get the same number), and a refused batch
//! leaves no trace.

use std::collections::HashMap;

use ahash::RandomState;
use bytes::Bytes;

use super::{
    trees::{PerSpace, Trees},
    view::Moment,
};
use crate::{
    Error, Result,
    store::{Advance, Batch, Committed, Counter, Expect, Guard, Key, Space},
};

/// Counter rows kept in memory: one per slot that is written to, some 100 bytes each. Past this all are forgotten
/// and read again.
const COUNTERS_MAX: usize = 16 * 1024;

/// Every key of a group is hashed, some fifteen for a document: with the standard library's hasher that was a fifth of this
/// file's work. This one is seeded as well, so nobody can choose keys that collide.
type ByKey<T> = HashMap<Bytes, T, RandomState>;

/// What the committer carries from group to group.
#[derive(Default)]
pub struct Ledger {
    /// This group's writes: the value, or `None` for a delete. Never a key that is in `counters`.
    writes: PerSpace<ByKey<Option<Bytes>>>,
    counters: PerSpace<ByKey<Row>>,
    /// The length of the longest key that was ever among them: nearly every other key is longer.
    counter_key_bytes_max: usize,
    /// The keys of rows that this group raised.
    raised: Vec<(Space, Bytes)>,
}

struct Row {
    counter: Counter,
    /// Whether this group raised it, so that it is to be written.
    raised: bool,
}

impl Ledger {
    /// Accepts a checked batch into the group, or refuses it.
    pub fn admit(&mut self, moment: &Moment, trees: &Trees, batch: Batch) -> Result<Committed> {
        for guard in batch.guards {
            if !self.holds(moment, trees, &guard)? {
                return Err(Error::Conflict { key: guard.key });
            }
        }
        let mut counters = Vec::with_capacity(batch.advances.len());
        for advance in &batch.advances {
            counters.push(self.advanced(trees, advance)?);
        }
        // Nothing was changed up to here; nothing is refused from here on.
        for (advance, counter) in batch.advances.into_iter().zip(&counters) {
            self.raise(advance.counter, *counter);
        }
        for key in batch.deletes {
            self.write(key, None);
        }
        for put in batch.puts {
            let (key, value) = put.filled(&counters);
            self.write(key, Some(value.into()));
        }
        Ok(Committed { counters })
    }

    /// All that was accepted, to be written: by space, and in order, as neighbours in a tree are found faster one after the other.
    pub fn take(&mut self) -> PerSpace<Vec<(Bytes, Option<Bytes>)>> {
        let mut taken: PerSpace<Vec<_>> = PerSpace::default();
        for space in [Space::Small, Space::Large] {
            taken.of_mut(space).extend(self.writes.of_mut(space).drain());
        }
        for (space, key) in self.raised.drain(..) {
            // Not there, or done, if the row was deleted after it was raised, or deleted and raised again.
            let row = self.counters.of_mut(space).get_mut(&key).filter(|row| row.raised);
            if let Some(row) = row {
                row.raised = false;
                taken.of_mut(space).push((key, Some(Bytes::copy_from_slice(&row.counter.encode()))));
            }
        }
        for rows in [&mut self.counters.small, &mut self.counters.large] {
            if rows.len() > COUNTERS_MAX {
                rows.clear();
            }
        }
        taken.small.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        taken.large.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        taken
    }

    fn holds(&self, moment: &Moment, trees: &Trees, guard: &Guard) -> Result<bool> {
        let (space, bytes) = (guard.key.space, guard.key.bytes.as_slice());
        let written = self.writes.of(space).get(bytes).map(Option::as_deref);
        let row = self.counters.of(space).get(bytes);
        Ok(match guard.expect {
            Expect::Absent => match (written, row) {
                (Some(written), _) => written.is_none(),
                (None, Some(_)) => false,
                // Asks the filters first and fetches no value.
                (None, None) => !trees.contains(space, bytes)?,
            },
            Expect::Version(version) => {
                let is_it = |value: &[u8]| value.starts_with(&version.to_be_bytes());
                match (written, row) {
                    (Some(written), _) => written.is_some_and(is_it),
                    (None, Some(row)) => row.counter.seq == version,
                    // Who replaces a row has mostly just read it.
                    (None, None) => match moment.lately_read(&guard.key) {
                        Some(value) => is_it(&value),
                        None => trees.get(space, bytes)?.is_some_and(|value| is_it(&value)),
                    },
                }
            }
        })
    }

    fn advanced(&self, trees: &Trees, advance: &Advance) -> Result<Counter> {
        let (space, bytes) = (advance.counter.space, advance.counter.bytes.as_slice());
        let counter = match (self.writes.of(space).get(bytes), self.counters.of(space).get(bytes)) {
            (Some(written), _) => decoded(written.as_deref())?,
            (None, Some(row)) => row.counter,
            (None, None) => decoded(trees.get(space, bytes)?.as_deref())?,
        };
        counter.advanced(advance).ok_or(Error::Stale { stamp: counter.stamp })
    }

    fn raise(&mut self, key: Key, counter: Counter) {
        self.writes.of_mut(key.space).remove(key.bytes.as_slice());
        let rows = self.counters.of_mut(key.space);
        match rows.get_mut(key.bytes.as_slice()) {
            Some(row) if row.raised => row.counter = counter,
            _ => {
                let bytes = Bytes::from(key.bytes);
                self.counter_key_bytes_max = self.counter_key_bytes_max.max(bytes.len());
                self.raised.push((key.space, bytes.clone()));
                rows.insert(bytes, Row { counter, raised: true });
            }
        }
    }

    /// A counter row that is deleted with its whole range must be forgotten here too.
    fn write(&mut self, key: Key, value: Option<Bytes>) {
        if key.bytes.len() <= self.counter_key_bytes_max {
            self.counters.of_mut(key.space).remove(key.bytes.as_slice());
        }
        self.writes.of_mut(key.space).insert(key.bytes.into(), value);
    }
}

fn decoded(row: Option<&[u8]>) -> Result<Counter> {
    match row {
        None => Ok(Counter::default()),
        Some(bytes) => Counter::decode(bytes).ok_or(Error::Invalid("an advance of what is no counter")),
    }
}
