//! Rows that were read lately, whole: what is found here need not be looked for in the trees.
//!
//! There a row is looked for in memory, in the filters and indexes of several tables and in a block of one, and a large value is
//! read from a file of its own and unpacked. Here it is one look.
//!
//! Each row is kept with the number of the moment it was read at. Who writes a key notes the number of the moment that will
//! show the write, before there is that moment, at a place that the key's hash tells. A row that is kept is right for who reads
//! at a moment if it was not read after that, and no write was noted after it was read. Nothing has to be taken out in
//! time, and no lock is held over a read; keys that share a place are read again without need, no more.
//!
//! Merges drop dead rows without a note. That is in order, for nobody shows a dead row to a client: who finds one here and who
//! finds none decide alike. A write that was refused because of a key is a note as well: who tries again sees what the trees
//! have. When ranges were discarded, all that was read before is void.
//!
//! Holds: a row from here is what the trees show at the reader's moment, but for rows that are dead.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use ahash::RandomState;
use bytes::Bytes;
use quick_cache::{Weighter, sync::Cache};

/// Places for notes. A write makes as small a share of the rows void.
const PLACES: usize = 1 << 16;

/// Larger ones would push out many others, and finding them is the lesser part of their cost.
const VALUE_BYTES_MAX: usize = 64 * 1024;

/// What a row takes beside its bytes: its entry, and the heads of two allocations.
const ROW_BYTES: usize = 160;

/// Usual rows, to size the tables by.
const USUAL_ROW_BYTES: u64 = 1024;

/// Rows with the moments they were read at.
pub struct HotRows {
    rows: Cache<Box<[u8]>, Hot, Weight>,
    /// The moment of the last write, by the key's hash.
    written: Box<[AtomicU64]>,
    hasher: RandomState,
    /// What was read before is void.
    valid_from: AtomicU64,
}

#[derive(Clone)]
struct Hot {
    read_at: u64,
    value: Bytes,
}

#[derive(Clone)]
struct Weight;

impl Weighter<Box<[u8]>, Hot> for Weight {
    fn weight(&self, key: &Box<[u8]>, row: &Hot) -> u64 {
        (key.len() + row.value.len() + ROW_BYTES) as u64
    }
}

impl HotRows {
    /// No rows yet, and at most so many bytes of them.
    pub fn new(bytes: u64) -> Self {
        Self {
            rows: Cache::with_weighter((bytes / USUAL_ROW_BYTES) as usize, bytes, Weight),
            written: (0..PLACES).map(|_| AtomicU64::new(0)).collect(),
            hasher: RandomState::new(),
            valid_from: AtomicU64::new(0),
        }
    }

    /// The row that the trees show at this moment, if it is known.
    pub fn find(&self, key: &[u8], at: u64) -> Option<Bytes> {
        let row = self.rows.get(key)?;
        let since = self.place(key).load(SeqCst).max(self.valid_from.load(SeqCst));
        (row.read_at <= at && since <= row.read_at).then_some(row.value)
    }

    /// Keeps a row that was read at a moment.
    pub fn keep(&self, key: &[u8], at: u64, value: &Bytes) {
        // It may be a small part of a block, and is not to hold all of that.
        if value.len() <= VALUE_BYTES_MAX {
            self.rows.insert(key.into(), Hot { read_at: at, value: Bytes::copy_from_slice(value) });
        }
    }

    /// Notes a write of a key that the moment `at` will show, the next one.
    pub fn wrote(&self, key: &[u8], at: u64) {
        self.place(key).store(at, SeqCst);
        self.rows.remove(key);
    }

    /// Makes all void that was read before a moment.
    pub fn forget_before(&self, at: u64) {
        self.valid_from.fetch_max(at, SeqCst);
    }

    fn place(&self, key: &[u8]) -> &AtomicU64 {
        &self.written[self.hasher.hash_one(key) as usize % PLACES]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(found: Option<Bytes>) -> Option<String> {
        found.map(|value| String::from_utf8(value.to_vec()).unwrap())
    }

    #[test]
    fn a_row_is_right_from_when_it_was_read_until_it_is_written() {
        let rows = HotRows::new(1 << 20);
        assert_eq!(rows.find(b"key", 5), None);
        rows.keep(b"key", 5, &Bytes::from_static(b"old"));
        let at = |moment| text(rows.find(b"key", moment));
        assert_eq!([at(4), at(5), at(9)], [None, Some("old".into()), Some("old".into())]);

        rows.wrote(b"key", 10);
        assert_eq!([at(9), at(10)], [None, None]);
        // Who still reads at an older moment keeps what is right for nobody else.
        rows.keep(b"key", 9, &Bytes::from_static(b"old"));
        assert_eq!([at(9), at(10)], [None, None]);
        rows.keep(b"key", 10, &Bytes::from_static(b"new"));
        assert_eq!([at(9), at(10)], [None, Some("new".into())]);

        rows.forget_before(11);
        assert_eq!([at(10), at(11)], [None, None]);
        rows.keep(b"key", 11, &Bytes::from_static(b"new"));
        assert_eq!(at(11), Some("new".into()));
    }

    #[test]
    fn it_holds_no_more_than_it_may() {
        let rows = HotRows::new(100_000);
        rows.keep(b"large", 1, &Bytes::from(vec![0; VALUE_BYTES_MAX + 1]));
        assert_eq!(rows.find(b"large", 1), None);
        for n in 0..1000_u32 {
            rows.keep(&n.to_be_bytes(), 1, &Bytes::from(vec![0; 1000]));
        }
        assert!(rows.rows.weight() <= 100_000);
        let kept = (0..1000_u32).filter(|n| rows.find(&n.to_be_bytes(), 1).is_some()).count();
        assert!((20..=86).contains(&kept), "{kept}");
    }
}
