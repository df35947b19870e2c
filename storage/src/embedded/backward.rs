//! The rows of a tree up to a key, backward: what memtables and runs of tables hold, put together.
//!
//! It is asked for less often than the way forward (`rows.rs`) and for fewer rows, so it is simple: every version is made, and of
//! each key the newest that may be seen is kept.
//!
//! Holds: the same rows as the walk forward, the other way round.

use std::{iter::Peekable, ops::Bound};

use bytes::Bytes;
use fjall::AnyTree;
use lsm_tree::{InternalValue, Memtable, Result, SeqNo, Slice, Table, ValueType};

use super::layers::Layers;

type Source<'a> = Peekable<Box<dyn Iterator<Item = Result<InternalValue>> + 'a>>;

/// A walk.
pub struct Backward<'a> {
    tree: &'a AnyTree,
    seqno: SeqNo,
    /// Each by keys, the highest first; of a key, the oldest version first.
    sources: Vec<Source<'a>>,
}

impl<'a> Backward<'a> {
    /// From the last row below `end` down to the one at `start`, as they are before `seqno`.
    pub fn new(
        tree: &'a AnyTree,
        layers: &'a Layers,
        seqno: SeqNo,
        start: &'a [u8],
        end: Option<&'a [u8]>,
    ) -> Self {
        let memtables = layers.memtables().filter(|memtable| !memtable.is_empty());
        let memtables = memtables.map(|memtable| along_memtable(memtable, start, end).peekable());
        let runs = layers.runs().map(|tables| along_run(tables, start, end).peekable());
        Self { tree, seqno, sources: memtables.chain(runs).collect() }
    }

    /// The highest key that is left.
    fn next_key(&mut self) -> Result<Option<Slice>> {
        let mut highest: Option<Slice> = None;
        for source in &mut self.sources {
            match source.peek() {
                Some(Ok(version)) if highest.as_ref().is_none_or(|key| *key < version.key.user_key) => {
                    highest = Some(version.key.user_key.clone());
                }
                Some(Ok(_)) | None => {}
                Some(Err(_)) => return source.next().transpose().map(|_| None),
            }
        }
        Ok(highest)
    }

    /// The newest version of the key that may be seen. Leaves the key behind.
    fn take(&mut self, key: &Slice) -> Result<Option<InternalValue>> {
        let mut newest: Option<InternalValue> = None;
        for source in &mut self.sources {
            let is_of_key = |version: &Result<InternalValue>| {
                version.as_ref().map_or(true, |version| version.key.user_key == *key)
            };
            while let Some(version) = source.next_if(is_of_key) {
                let version = version?;
                let is_newer = newest.as_ref().is_none_or(|newest| newest.key.seqno < version.key.seqno);
                if version.key.seqno < self.seqno && is_newer {
                    newest = Some(version);
                }
            }
        }
        Ok(newest)
    }

    fn next_row(&mut self) -> Result<Option<(Bytes, Bytes)>> {
        while let Some(key) = self.next_key()? {
            if let Some(found) = self.take(&key)?.filter(|found| !found.is_tombstone()) {
                let value = Layers::value_of(self.tree, found, self.seqno)?;
                return Ok(Some((key.into(), value.into())));
            }
        }
        Ok(None)
    }
}

impl Iterator for Backward<'_> {
    type Item = Result<(Bytes, Bytes)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_row().transpose()
    }
}

fn along_memtable<'a>(
    memtable: &'a Memtable,
    start: &[u8],
    end: Option<&[u8]>,
) -> Box<dyn Iterator<Item = Result<InternalValue>> + 'a> {
    // The library refuses an empty key; this is the smallest that is not. Of a key, the newest version comes first.
    let before = |key: &[u8]| {
        let key = if key.is_empty() { &[0] } else { key };
        InternalValue::from_components(key, Slice::empty(), u64::MAX, ValueType::Tombstone).key
    };
    let end = end.map_or(Bound::Unbounded, |end| Bound::Excluded(before(end)));
    let entries = memtable.items.range((Bound::Included(before(start)), end));
    Box::new(
        entries
            .rev()
            .map(|entry| Ok(InternalValue { key: entry.key().clone(), value: entry.value().clone() })),
    )
}

fn along_run<'a>(
    tables: &'a [Table],
    start: &'a [u8],
    end: Option<&'a [u8]>,
) -> Box<dyn Iterator<Item = Result<InternalValue>> + 'a> {
    let first = tables.partition_point(|table| **table.metadata.key_range.max() < *start);
    let is_before_end = |table: &Table| end.is_none_or(|end| **table.metadata.key_range.min() < *end);
    let behind = tables.partition_point(is_before_end);
    let bounds = (
        Bound::Included(Slice::from(start)),
        end.map_or(Bound::Unbounded, |end| Bound::Excluded(Slice::from(end))),
    );
    let tables = tables.get(first..behind).unwrap_or_default();
    Box::new(tables.iter().rev().flat_map(move |table| table.range(bounds.clone()).rev()))
}
