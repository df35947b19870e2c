//! What everybody who reads is past: older versions of a row are of no use to anyone and go with flushes and merges.
//!
//! The library counts its snapshots too, and looks at them when a memtable is sealed by it, or ten thousand were closed. Ours
//! are made by the committer with each group and have to be known exactly.
//!
//! Holds: the number never passes one that is still seen; and whoever begins to see sees no less than the latest before.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;

/// The numbers that are seen, and by how many.
#[derive(Clone, Default)]
pub struct Seen(Arc<Mutex<BTreeMap<u64, usize>>>);

impl Seen {
    /// Sees what was written before `seqno`, until it is dropped.
    pub fn at(&self, seqno: u64) -> Sight {
        *self.0.lock().entry(seqno).or_default() += 1;
        Sight { seen: self.clone(), seqno }
    }

    /// What was written before this, everybody sees. Nothing is known while nobody sees anything.
    pub fn by_all(&self) -> u64 {
        let seen = self.0.lock();
        // One less, as the library reckons: it looks for the tables of a snapshot among those that are older than it.
        seen.first_key_value().map_or(0, |(lowest, _)| lowest.saturating_sub(1))
    }
}

/// One who sees.
pub struct Sight {
    seen: Seen,
    seqno: u64,
}

impl Sight {
    /// It sees what was written before.
    pub fn seqno(&self) -> u64 {
        self.seqno
    }
}

impl Drop for Sight {
    fn drop(&mut self) {
        let mut seen = self.seen.0.lock();
        if let Some(count) = seen.get_mut(&self.seqno) {
            *count -= 1;
            if *count == 0 {
                seen.remove(&self.seqno);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_counts_until_its_last_holder_is_gone() {
        let seen = Seen::default();
        assert_eq!(seen.by_all(), 0);
        let (first, second, third) = (seen.at(5), seen.at(5), seen.at(9));
        assert_eq!(seen.by_all(), 4);
        drop(first);
        assert_eq!(seen.by_all(), 4);
        drop(second);
        assert_eq!(seen.by_all(), 8);
        drop(third);
        assert_eq!(seen.by_all(), 0);
    }
}
