//! What has just been committed here, so that what waited and relies on it otherwise is refused without asking the server.

use std::collections::HashMap;

use crate::store::{Batch, Committed, Expect, Key, MarkAt, Space};

/// What guards find at keys that were just written: nothing, or a value with its version, if it is long enough for one.
#[derive(Default)]
pub struct Changed(HashMap<(Space, Vec<u8>), Option<Option<u64>>>);

impl Changed {
    pub fn add(&mut self, batch: &Batch, committed: &Committed) {
        let version = |value: &[u8]| value.first_chunk().map(|bytes| u64::from_be_bytes(*bytes));
        let name = |key: &Key| (key.space, key.bytes.clone());
        for put in &batch.puts {
            // The numbers that the commit filled in stand in the first bytes, or nowhere that a guard looks.
            let at_start = put.marks.iter().find(|mark| mark.at == MarkAt::Value(0));
            let filled = at_start.and_then(|mark| committed.counters.get(usize::from(mark.advance)));
            let is_known = put.marks.iter().all(|mark| match mark.at {
                MarkAt::Key(_) => false,
                MarkAt::Value(at) => at == 0 || at >= 8,
            });
            if is_known {
                let found = filled.map_or_else(|| version(&put.value), |counter| Some(counter.seq));
                self.0.insert(name(&put.key), Some(found));
            }
        }
        self.0.extend(batch.deletes.iter().map(|key| (name(key), None)));
        let counters = batch.advances.iter().zip(&committed.counters);
        self.0.extend(counters.map(|(advance, row)| (name(&advance.counter), Some(Some(row.seq)))));
    }

    /// The first key that does not hold what a batch relies on.
    pub fn refuses<'a>(&self, batch: &'a Batch) -> Option<&'a Key> {
        let broken = batch.guards.iter().find(|guard| {
            let found = self.0.get(&(guard.key.space, guard.key.bytes.clone()));
            found.is_some_and(|found| match guard.expect {
                Expect::Absent => found.is_some(),
                Expect::Version(version) => *found != Some(Some(version)),
            })
        });
        broken.map(|guard| &guard.key)
    }
}
