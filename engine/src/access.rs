//! Access paths: which documents could matter, and in which order.
//!
//! A path may give more than was asked for, never less: the language above filters exactly. What it may rely on beyond
//! that (that an index lists every document, or that its order is the order of the values) it has to say, and the
//! walk refuses if it does not hold any more.

use std::ops::Bound;

use mayfly_storage::store::{KeyRange, prefix_end};
use mayfly_value::{keycode, partition::Epk};

use crate::{
    container::Container,
    error::{Error, Result},
    keys::{DocumentKey, Family, Shard},
};

/// Effective partition keys in `start..end`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HashRange {
    /// Inclusive.
    pub start: Epk,
    /// Exclusive; `None` is past every key.
    pub end: Option<Epk>,
}

impl HashRange {
    /// All of them.
    pub fn all() -> Self {
        Self { start: Epk(Vec::new()), end: None }
    }

    /// Exactly one: a logical partition.
    pub fn one(hash: &Epk) -> Self {
        let end = [&hash.0[..], &[0]].concat();
        Self { start: hash.clone(), end: Some(Epk(end)) }
    }

    /// Whether `hash` is inside.
    pub fn contains(&self, hash: &Epk) -> bool {
        hash.0 >= self.start.0 && self.end.as_ref().is_none_or(|end| hash.0 < end.0)
    }

    /// Whether nothing is outside.
    pub fn is_all(&self) -> bool {
        self.start.0.is_empty() && self.end.is_none()
    }

    /// The slots of `container` that may hold such keys.
    pub fn slots(&self, container: &Container) -> Vec<u16> {
        let bounds = container.slot_bounds();
        let overlaps = |slot: &usize| {
            let below_end = self.end.as_ref().is_none_or(|end| bounds[*slot].0 < end.0);
            let above_start = bounds.get(slot + 1).is_none_or(|next| self.start.0 < next.0);
            below_end && above_start
        };
        (0..bounds.len()).filter(overlaps).map(|slot| slot as u16).collect()
    }

    /// The documents of these hashes among keys that go on from `prefix` with a document.
    pub(crate) fn documents(&self, prefix: &[u8], whole: &mut KeyRange) {
        whole.start = prefix.to_vec();
        keycode::push_bytes(&mut whole.start, &self.start.0);
        whole.end = match &self.end {
            Some(end) => {
                let mut bytes = prefix.to_vec();
                keycode::push_bytes(&mut bytes, &end.0);
                Some(bytes)
            }
            None => prefix_end(prefix),
        };
    }
}

/// Which documents could matter, and in which order.
#[derive(Clone, Debug)]
pub enum Access {
    /// All documents of a range of hashes, by hash and id.
    Records(HashRange),
    /// All documents of a range of hashes, by their last write. Within a slot that is the order of `_ts`.
    Writes(HashRange),
    /// Documents with entries in an index, by value.
    Index(IndexAccess),
}

impl Access {
    /// Documents with a value in a range at an indexed path.
    pub fn index(path: Vec<u8>, low: Bound<Vec<u8>>, high: Bound<Vec<u8>>, within: HashRange) -> Self {
        let ranges = vec![ValueRange { low, high }];
        let (also, relies, across) = (Vec::new(), Reliance::Nothing, Across::SlotBySlot);
        Self::Index(IndexAccess { index: IndexName::Path(path), ranges, also, within, relies, across })
    }

    pub(crate) fn within(&self) -> &HashRange {
        match self {
            Self::Records(within) | Self::Writes(within) => within,
            Self::Index(access) => &access.within,
        }
    }
}

/// A part of an index.
#[derive(Clone, Debug)]
pub struct IndexAccess {
    /// Which index.
    pub index: IndexName,
    /// Values, as the key codec writes them; ascending, none overlaps another.
    pub ranges: Vec<ValueRange>,
    /// Entries that a document must have as well.
    pub also: Vec<Lookup>,
    /// Only these hashes.
    pub within: HashRange,
    /// What the caller takes for granted about the index.
    pub relies: Reliance,
    /// How it goes over several slots.
    pub across: Across,
}

/// How a walk goes over several slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Across {
    /// One after the other, each in the order of the index.
    SlotBySlot,
    /// Through all of them at once, in the order of the index. Only on an index that the caller may rely on.
    InOrder,
}

/// One of a container's indexes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexName {
    /// The values at a path, as the key codec writes the path.
    Path(Vec<u8>),
    /// A composite index, by its place in the policy.
    Composite(u16),
    /// The words of a text, by the place of the full-text index in the policy. A value is the key of a stem.
    Text(u16),
}

/// Values between two ends. An end stands for all values whose encoding begins with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueRange {
    /// The lower end.
    pub low: Bound<Vec<u8>>,
    /// The upper end.
    pub high: Bound<Vec<u8>>,
}

impl ValueRange {
    /// Every value.
    pub fn all() -> Self {
        Self { low: Bound::Unbounded, high: Bound::Unbounded }
    }

    /// One value, or all that begin with it.
    pub fn one(value: Vec<u8>) -> Self {
        Self { low: Bound::Included(value.clone()), high: Bound::Included(value) }
    }

    /// The first `count` whole values that all of the range has in common, if it has.
    pub fn prefix(&self, count: usize) -> Option<Vec<u8>> {
        let bytes = match &self.low {
            Bound::Included(bytes) | Bound::Excluded(bytes) => bytes,
            Bound::Unbounded => return None,
        };
        let mut end = 0;
        for _ in 0..count {
            end += keycode::skip_value(bytes.get(end..)?).ok()?;
        }
        bytes.get(..end).map(<[u8]>::to_vec)
    }

    pub(crate) fn single(&self) -> Option<&[u8]> {
        match (&self.low, &self.high) {
            (Bound::Included(low), Bound::Included(high)) if low == high => Some(low),
            _ => None,
        }
    }
}

/// One value in an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lookup {
    /// Which index.
    pub index: IndexName,
    /// The whole value.
    pub value: Vec<u8>,
}

/// What a caller takes for granted about an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reliance {
    /// Nothing: documents that have no entries yet are found in another way.
    Nothing,
    /// Of this epoch, and every document that has a value in the ranges has its entry; all values are plain.
    Complete {
        /// The index epoch the caller planned with.
        epoch: u32,
    },
    /// Every document has an entry, too, with its whole value.
    Covered {
        /// The index epoch the caller planned with.
        epoch: u32,
    },
}

impl IndexName {
    /// The fields of a key of this index, and its family.
    pub(crate) fn prefix(&self, epoch: u32) -> (Family, Vec<u8>) {
        let mut fields = epoch.to_be_bytes().to_vec();
        match self {
            Self::Path(path) => {
                fields.extend_from_slice(path);
                (Family::Index, fields)
            }
            Self::Composite(number) => {
                fields.extend_from_slice(&number.to_be_bytes());
                (Family::Composite, fields)
            }
            Self::Text(number) => {
                fields.extend_from_slice(&number.to_be_bytes());
                (Family::Text, fields)
            }
        }
    }

    /// Bytes of a key before its values, without what all keys begin with.
    pub(crate) fn prefix_len(&self) -> usize {
        match self {
            Self::Path(path) => 4 + path.len(),
            Self::Composite(_) | Self::Text(_) => 6,
        }
    }

    /// How many values a key has.
    pub(crate) fn values(&self, container: &Container) -> Result<usize> {
        match self {
            Self::Path(_) | Self::Text(_) => Ok(1),
            Self::Composite(number) => match container.composites.get(usize::from(*number)) {
                Some(composite) => Ok(composite.parts.len()),
                None => Err(Error::IndexChanged),
            },
        }
    }
}

impl IndexAccess {
    /// The keys of a slot to look at, ascending.
    pub(crate) fn key_ranges(&self, shard: Shard, epoch: u32) -> Vec<KeyRange> {
        let (family, fields) = self.index.prefix(epoch);
        let whole = shard.range(family, &fields);
        let at = |value: &[u8]| [&whole.start[..], value].concat();
        let has_one_value = !matches!(self.index, IndexName::Composite(_));
        let ranges = self.ranges.iter().map(|range| {
            let mut keys = whole.clone();
            if let (Some(value), true) = (range.single(), has_one_value) {
                // Within one value entries lie by document, so the hashes narrow them further.
                self.within.documents(&at(value), &mut keys);
                return keys;
            }
            keys.start = match &range.low {
                Bound::Included(value) => at(value),
                Bound::Excluded(value) => prefix_end(&at(value)).unwrap_or_default(),
                Bound::Unbounded => whole.start.clone(),
            };
            keys.end = match &range.high {
                Bound::Included(value) => prefix_end(&at(value)),
                Bound::Excluded(value) => Some(at(value)),
                Bound::Unbounded => whole.end.clone(),
            };
            keys
        });
        ranges.filter(|range| !range.is_empty()).collect()
    }

    /// Refuses to go on if what the caller relies on does not hold.
    pub(crate) fn check(&self, container: &Container) -> Result<()> {
        let state = &container.row.index;
        let holds = match self.relies {
            Reliance::Nothing => true,
            Reliance::Complete { epoch } => state.ready && state.epoch == epoch && container.covered.plain,
            Reliance::Covered { epoch } => {
                let covered = match &self.index {
                    IndexName::Path(path) => container.covered.has(path),
                    IndexName::Composite(_) | IndexName::Text(_) => container.covered.plain,
                };
                state.ready && state.epoch == epoch && covered
            }
        };
        if holds { Ok(()) } else { Err(Error::IndexChanged) }
    }
}

/// The records of a range of hashes.
pub(crate) fn record_range(shard: Shard, hashes: &HashRange) -> KeyRange {
    let mut range = shard.range(Family::Record, &[]);
    if !hashes.is_all() {
        let prefix = range.start.clone();
        hashes.documents(&prefix, &mut range);
    }
    range
}

impl Lookup {
    /// The key of a document's entry.
    pub(crate) fn key(&self, shard: Shard, epoch: u32, document: &DocumentKey) -> mayfly_storage::store::Key {
        match &self.index {
            IndexName::Path(path) => shard.index(epoch, path, &self.value, document),
            IndexName::Composite(number) => shard.composite(epoch, *number, &self.value, document),
            IndexName::Text(number) => shard.text(epoch, *number, &self.value, document),
        }
    }
}

impl Container {
    /// Whether the index has all documents, at this moment, with JSON's types only; and its epoch.
    pub fn complete_index(&self) -> Option<u32> {
        (self.row.index.ready && self.covered.plain).then_some(self.row.index.epoch)
    }

    /// Whether every document has a whole scalar at a path, in the index.
    pub fn covers(&self, path: &[u8]) -> bool {
        self.row.index.ready && self.covered.has(path)
    }

    /// The full-text index of the text at a path.
    pub fn text_index(&self, path: &[&str]) -> Option<u16> {
        let place = self.texts.iter().position(|(text, _)| text.segments().iter().eq(path.iter()))?;
        u16::try_from(place).ok()
    }

    /// The vector index at a path.
    pub fn vector_index(&self, path: &[String]) -> Option<u16> {
        let place = self.vectors.iter().position(|vector| vector.segments() == path)?;
        u16::try_from(place).ok()
    }

    /// The epoch of the index, if every document has its entries.
    pub fn whole_index(&self) -> Option<u32> {
        self.row.index.ready.then_some(self.row.index.epoch)
    }

    /// The composite indexes: the segments of each path and whether it descends.
    pub fn composite_indexes(&self) -> impl Iterator<Item = Vec<(&[String], bool)>> {
        self.composites.iter().map(|composite| {
            composite.parts.iter().map(|(path, descending)| (path.segments(), *descending)).collect()
        })
    }
}
