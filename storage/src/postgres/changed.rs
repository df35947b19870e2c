//! What has just been committed here, so that what waited and relies on it otherwise is refused without asking the server.
//!
//! Only what is known to be old is refused. Between a commit and the moment its answer is read here another node may have
//! written to the same rows, and who waits may have seen that: then it is the server that decides.

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

    /// The first key that does not hold what a batch relies on. `is_older` if the batch came before this was sent; of one
    /// that came later it is only certain where it relies on a lower version, as versions go up.
    pub fn refuses<'a>(&self, batch: &'a Batch, is_older: bool) -> Option<&'a Key> {
        let broken = batch.guards.iter().find(|guard| {
            let found = self.0.get(&(guard.key.space, guard.key.bytes.clone()));
            found.is_some_and(|found| match (guard.expect, found) {
                (Expect::Version(version), Some(Some(found))) if !is_older => version < *found,
                (_, _) if !is_older => false,
                (Expect::Absent, found) => found.is_some(),
                (Expect::Version(version), found) => *found != Some(Some(version)),
            })
        });
        broken.map(|guard| &guard.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Advance, Counter, Guard, Slot};

    #[test]
    fn who_may_know_more_is_not_refused() {
        let key = Key { space: Space::Small, slot: Slot(1), bytes: b"counter".to_vec() };
        let mut changed = Changed::default();
        let advances = vec![Advance { counter: key.clone(), stamp: 0, tally: [0, 0] }];
        let raised = Committed { counters: vec![Counter { seq: 5, ..Counter::default() }] };
        changed.add(&Batch { advances, ..Batch::default() }, &raised);
        let refuses = |expect, is_older| {
            let guards = vec![Guard { key: key.clone(), expect }];
            changed.refuses(&Batch { guards, ..Batch::default() }, is_older).is_some()
        };
        for is_older in [false, true] {
            assert!(refuses(Expect::Version(4), is_older));
            assert!(!refuses(Expect::Version(5), is_older));
        }
        // Another node was there after us, before we read our answer; or removed the row.
        assert!(!refuses(Expect::Version(6), false) && refuses(Expect::Version(6), true));
        assert!(!refuses(Expect::Absent, false) && refuses(Expect::Absent, true));
    }
}
