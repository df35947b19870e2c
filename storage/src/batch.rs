//! What a request must look like, and how a batch's sequence numbers are filled in.
//!
//! Every backend calls [`check_batch`] before anything else, so a wrong batch is refused the same way everywhere
//! and the code behind it may rely on the shape: offsets are inside their bytes, no key is written twice.
//!
//! Holds: a batch that passed is never refused as invalid later for its shape, and a backend never panics on one
//! that did not.

use std::{cmp::Ordering, collections::HashSet};

use ahash::RandomState;

use crate::{
    Error, Result,
    store::{Batch, Counter, KEY_BYTES_MAX, Key, KeyRange, MarkAt, PageLimit, Put, SeqMark, Space},
};

/// The longest value a backend must accept. Far above any document, far below what lengths on disk can say.
pub const VALUE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The width of a sequence number in a key or value.
const SEQ_LEN: usize = size_of::<u64>();

/// Refuses a batch that breaks the contract.
pub fn check_batch(batch: &Batch) -> Result<()> {
    for guard in &batch.guards {
        check_key(&guard.key)?;
    }
    for put in &batch.puts {
        check_key(&put.key)?;
        check_put(put, batch.advances.len())?;
    }
    for key in batch.deletes.iter().chain(batch.advances.iter().map(|advance| &advance.counter)) {
        check_key(key)?;
    }
    check_written_once(batch)
}

/// Refuses a key that no backend must accept.
pub fn check_key(key: &Key) -> Result<()> {
    match key.bytes.len() {
        0 => Err(Error::Invalid("an empty key")),
        1..=KEY_BYTES_MAX => Ok(()),
        _ => Err(Error::KeyTooLong { bytes_max: KEY_BYTES_MAX }),
    }
}

/// Refuses a range or limit that no backend must accept. A range without room for a key is fine: it is empty.
pub fn check_scan(range: &KeyRange, rows_max: usize) -> Result<()> {
    // One byte more than a key: "just past this key" is the key and a zero.
    let too_long = |bound: &Vec<u8>| bound.len() > KEY_BYTES_MAX + 1;
    if too_long(&range.start) || range.end.as_ref().is_some_and(too_long) {
        return Err(Error::Invalid("a range bound that is too long"));
    }
    if rows_max == 0 {
        return Err(Error::Invalid("a limit of no rows"));
    }
    Ok(())
}

fn check_put(put: &Put, advances: usize) -> Result<()> {
    if put.value.len() > VALUE_BYTES_MAX {
        return Err(Error::Invalid("a value that is too long"));
    }
    for mark in &put.marks {
        if usize::from(mark.advance) >= advances {
            return Err(Error::Invalid("a mark of an advance that is not there"));
        }
        let (at, len) = match mark.at {
            MarkAt::Key(at) => (at, put.key.bytes.len()),
            MarkAt::Value(at) => (at, put.value.len()),
        };
        if at as usize + SEQ_LEN > len {
            return Err(Error::Invalid("a mark outside its bytes"));
        }
    }
    Ok(())
}

/// Hashing finds out that no two keys have the same bytes, for a third of what sorting a load's thousands takes.
fn check_written_once(batch: &Batch) -> Result<()> {
    let counters = batch.advances.iter().map(|advance| &advance.counter);
    let keys = batch.puts.iter().map(|put| &put.key).chain(&batch.deletes).chain(counters);
    let count = batch.puts.len() + batch.deletes.len() + batch.advances.len();
    let mut seen = HashSet::with_capacity_and_hasher(count, RandomState::new());
    let mut keys = keys.map(|key| (key.space, key.bytes.as_slice()));
    match keys.all(|key| seen.insert(key)) {
        true => Ok(()),
        false => check_marked_apart(batch),
    }
}

/// Some keys have the same bytes: whether all of those get different numbers.
fn check_marked_apart(batch: &Batch) -> Result<()> {
    let mut written: Vec<Written<'_>> =
        Vec::with_capacity(batch.puts.len() + batch.deletes.len() + batch.advances.len());
    written.extend(batch.puts.iter().map(|put| Written { key: &put.key, marks: &put.marks }));
    written.extend(batch.deletes.iter().map(|key| Written { key, marks: &[] }));
    written.extend(batch.advances.iter().map(|advance| Written { key: &advance.counter, marks: &[] }));
    written.sort_unstable_by(Written::order);
    match written.windows(2).any(|pair| pair[0].order(&pair[1]) == Ordering::Equal) {
        true => Err(Error::Invalid("a key that is written twice")),
        false => Ok(()),
    }
}

/// One key that a batch writes. Two keys with the same bytes differ if other numbers will be filled into them.
struct Written<'a> {
    key: &'a Key,
    marks: &'a [SeqMark],
}

impl Written<'_> {
    fn order(&self, other: &Self) -> Ordering {
        let bytes = |written: &Self| -> (Space, &[u8]) { (written.key.space, &written.key.bytes) };
        bytes(self).cmp(&bytes(other)).then_with(|| self.key_marks().cmp(other.key_marks()))
    }

    fn key_marks(&self) -> impl Iterator<Item = (u32, u8)> {
        self.marks.iter().filter_map(|mark| match mark.at {
            MarkAt::Key(at) => Some((at, mark.advance)),
            MarkAt::Value(_) => None,
        })
    }
}

impl Put {
    /// The key and value with the sequence numbers of `counters` (one per advance) in their places.
    pub fn filled(self, counters: &[Counter]) -> (Key, Vec<u8>) {
        let Put { mut key, mut value, marks } = self;
        for mark in marks {
            let (bytes, at) = match mark.at {
                MarkAt::Key(at) => (&mut key.bytes, at as usize),
                MarkAt::Value(at) => (&mut value, at as usize),
            };
            let place = bytes.get_mut(at..at + SEQ_LEN);
            let counter = counters.get(usize::from(mark.advance));
            debug_assert!(place.is_some() && counter.is_some(), "marks are checked before a commit");
            if let (Some(place), Some(counter)) = (place, counter) {
                place.copy_from_slice(&counter.seq.to_be_bytes());
            }
        }
        (key, value)
    }
}

impl Batch {
    /// Bytes of keys and values to be written: how much room the batch takes in a group or a log.
    pub fn bytes(&self) -> usize {
        let puts: usize = self.puts.iter().map(|put| put.key.bytes.len() + put.value.len()).sum();
        let deletes: usize = self.deletes.iter().map(|key| key.bytes.len()).sum();
        let advances: usize =
            self.advances.iter().map(|advance| advance.counter.bytes.len() + Counter::LEN).sum();
        puts + deletes + advances
    }
}

impl PageLimit {
    /// Whether a page of `rows` rows and `bytes` bytes is full.
    pub fn is_reached(&self, rows: usize, bytes: usize) -> bool {
        rows >= self.rows || bytes >= self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Advance, Slot};

    fn key(bytes: &[u8]) -> Key {
        Key { space: Space::Small, slot: Slot(0), bytes: bytes.to_vec() }
    }

    fn put(bytes: &[u8], marks: Vec<SeqMark>) -> Put {
        Put { key: key(bytes), value: vec![0; 16], marks }
    }

    fn advance(bytes: &[u8]) -> Advance {
        Advance { counter: key(bytes), stamp: 0, tally: [0; 2] }
    }

    /// The same bytes twice are one key, unless other numbers will stand in them.
    #[test]
    fn keys_that_get_other_numbers_are_other_keys() {
        let mark = |advance| vec![SeqMark { advance, at: MarkAt::Key(1) }];
        let batch = |first, second| Batch {
            puts: vec![put(b"k________", first), put(b"k________", second)],
            advances: vec![advance(b"a"), advance(b"b")],
            ..Batch::default()
        };
        assert!(check_batch(&batch(mark(0), mark(1))).is_ok());
        assert!(check_batch(&batch(mark(0), mark(0))).is_err());
        assert!(check_batch(&batch(vec![], vec![])).is_err());
    }

    /// A mark's eight bytes end exactly at the end at the latest.
    #[test]
    fn marks_fit() {
        let batch = |at| Batch {
            puts: vec![put(b"k", vec![SeqMark { advance: 0, at: MarkAt::Value(at) }])],
            advances: vec![advance(b"a")],
            ..Batch::default()
        };
        assert!(check_batch(&batch(8)).is_ok());
        assert!(check_batch(&batch(9)).is_err());
        assert!(check_batch(&batch(u32::MAX)).is_err());
    }
}
