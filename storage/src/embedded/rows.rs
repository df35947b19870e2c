//! The rows of a tree from a key on, forward: what memtables and runs of tables hold, put together.
//!
//! ```text
//!   memtable   a9      c7 †d6            the newest version that the snapshot may see,
//!   run        a2  b3  c1                unless it is the mark of a delete:  a9  b3  c7
//!   run            b1      d1
//! ```
//!
//! Sources are kept in the order of the rows they are at. Most rows come from the lowest run, one after the other, and then
//! a row costs one comparison with the source behind.
//!
//! Holds: of each key the newest version that was written before a number, if that is no delete.

use std::{cmp::Ordering, ops::Bound};

use bytes::Bytes;
use fjall::AbstractTree;
use lsm_tree::{InternalValue, Memtable, Result, Slice, TreeId, ValueType, coding::Decode};

use super::{blocks::RunCursor, layers::Layers};
use crate::store::MayHold;

/// A snapshot of a tree.
#[derive(Clone, Copy)]
pub struct Of<'a> {
    pub tree: &'a fjall::AnyTree,
    /// It sees what was written before.
    pub seqno: u64,
}

/// What is asked of it.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    pub start: &'a [u8],
    /// Exclusive.
    pub end: Option<&'a [u8]>,
    /// Whether bytes may hold a value that is wanted; all are if it is not there.
    pub may_hold: Option<&'a MayHold<'a>>,
    pub fill: Fill,
}

/// What becomes of blocks and rows that were read from files.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Fill {
    /// They stay in the caches, for whoever asks next.
    Caches,
    /// They are let go, but for blocks of indexes, which the same walk needs again: background work reads many rows once.
    Nothing,
}

/// Where a walk stands.
pub struct Rows<'a> {
    of: Of<'a>,
    cache: Option<&'a lsm_tree::Cache>,
    /// Exclusive.
    end: Option<(Head, &'a [u8])>,
    sources: Vec<Source<'a>>,
    /// How their keys begin.
    heads: Vec<Head>,
    /// Those that have rows left, by the rows they are at.
    order: Vec<usize>,
}

/// The beginning of a key as two numbers. Where two of them differ, so do the keys, the same way: in most comparisons of
/// documents, no more is looked at, for what they have in common (the container, the hash of a partition key) is shorter.
type Head = [u128; 2];

#[expect(clippy::large_enum_variant, reason = "all but one are runs")]
enum Source<'a> {
    Memtable(MemtableCursor<'a>),
    Run(RunCursor<'a>),
}

/// A walk along the memtable. Its entries are of a type that the library does not name.
type MemtableCursor<'a> = Box<dyn Versions + 'a>;

/// One version of a key, where it is: a handle of our own on each would be counted up and down.
struct Version<'e> {
    key: &'e [u8],
    seqno: u64,
    kind: ValueType,
    value: &'e Slice,
}

/// Versions in order, and which of them a walk is at.
trait Versions {
    fn at(&self) -> Version<'_>;

    /// Goes on to the next version, of the same key or another one. False at the end.
    fn advance(&mut self) -> bool;

    /// Goes on to a version of another key. False at the end.
    fn next_key(&mut self) -> bool;
}

struct Entries<I: Iterator, R> {
    left: I,
    at: I::Item,
    read: R,
}

impl<I: Iterator, R: for<'e> Fn(&'e I::Item) -> Version<'e>> Versions for Entries<I, R> {
    fn at(&self) -> Version<'_> {
        (self.read)(&self.at)
    }

    fn advance(&mut self) -> bool {
        let next = self.left.next();
        let has_more = next.is_some();
        if let Some(next) = next {
            self.at = next;
        }
        has_more
    }

    fn next_key(&mut self) -> bool {
        while let Some(next) = self.left.next() {
            let is_other = (self.read)(&next).key != self.at().key;
            self.at = next;
            if is_other {
                return true;
            }
        }
        false
    }
}

impl<'a> Rows<'a> {
    /// At the first row of what is asked.
    pub fn new(of: Of<'a>, layers: &'a Layers, asked: Asked<'a>) -> Result<Self> {
        let id: TreeId = of.tree.id();
        let end = asked.end.map(|end| (head_of(end), end));
        let mut rows =
            Self { of, cache: None, end, sources: Vec::new(), heads: Vec::new(), order: Vec::new() };
        for memtable in layers.memtables().filter(|memtable| !memtable.is_empty()) {
            rows.add(along(memtable, asked.start).map(Source::Memtable))?;
        }
        for tables in layers.runs() {
            rows.cache = rows.cache.or(tables.first().map(|table| &*table.cache));
            rows.add(RunCursor::new(id, tables, asked)?.map(Source::Run))?;
        }
        let mut order = std::mem::take(&mut rows.order);
        order.sort_by(|one, other| rows.compare(*one, *other));
        Ok(Self { order, ..rows })
    }

    fn add(&mut self, source: Option<Source<'a>>) -> Result<()> {
        if let Some(mut source) = source
            && source.go_to_visible(self.of.seqno)?
        {
            let head = head_of(source.key());
            if !self.is_past(head, &source) {
                self.order.push(self.sources.len());
                self.sources.push(source);
                self.heads.push(head);
            }
        }
        Ok(())
    }

    /// Whether the row that a source is at is no more in the range.
    fn is_past(&self, head: Head, source: &Source<'a>) -> bool {
        self.end.is_some_and(|(end_head, end)| head >= end_head && source.key() >= end)
    }

    /// By key, and the newest version first.
    fn compare(&self, one: usize, other: usize) -> Ordering {
        let by_key = || self.sources[one].key().cmp(self.sources[other].key());
        let by_version = || self.sources[other].seqno().cmp(&self.sources[one].seqno());
        self.heads[one].cmp(&self.heads[other]).then_with(by_key).then_with(by_version)
    }

    fn has_same_key(&self, one: usize, other: usize) -> bool {
        self.heads[one] == self.heads[other] && self.sources[one].key() == self.sources[other].key()
    }

    /// Whether there is another row; it is the one that `take` gives.
    pub fn has_next(&mut self) -> Result<bool> {
        while let Some(first) = self.order.first() {
            if !self.sources[*first].kind().is_tombstone() {
                return Ok(true);
            }
            self.advance()?;
        }
        Ok(false)
    }

    /// The value of the row, whose key is added to `keys`; goes on to the next one.
    pub fn take(&mut self, keys: &mut Vec<u8>) -> Result<Bytes> {
        keys.extend_from_slice(self.key());
        let value = self.value()?;
        self.advance()?;
        Ok(value)
    }

    /// The key of the row.
    pub fn key(&self) -> &[u8] {
        self.order.first().map_or(&[], |first| self.sources[*first].key())
    }

    /// The value of the row.
    pub fn value(&self) -> Result<Bytes> {
        let Some(first) = self.order.first() else { return Ok(Bytes::new()) };
        let source = &self.sources[*first];
        match source.kind() {
            ValueType::Indirection => self.separate(source.key(), source.value()),
            _ => Ok(source.value()),
        }
    }

    /// The value of the row where it is, unless that is a file of its own.
    pub fn value_in_place(&self) -> Option<&[u8]> {
        let source = &self.sources[*self.order.first()?];
        (source.kind() != ValueType::Indirection).then(|| source.value_bytes())
    }

    /// Whether a value in place may be wanted, by what was said of its block.
    pub fn is_possible(&self) -> bool {
        match self.order.first().map(|first| &self.sources[*first]) {
            Some(Source::Run(cursor)) => cursor.is_possible(),
            _ => true,
        }
    }

    /// A value in a file of its own: from the cache, if it is there.
    fn separate(&self, key: &[u8], place: Bytes) -> Result<Bytes> {
        if let Some(cache) = self.cache {
            let handle = Decode::decode_from(&mut &place[..])?;
            if let Some(value) = cache.get_blob(self.of.tree.id(), &handle) {
                return Ok(value.into());
            }
        }
        let value = self.of.tree.get(key, self.of.seqno)?;
        Ok(value.ok_or(lsm_tree::Error::Unrecoverable)?.into())
    }

    /// Leaves the key it is at, in all sources.
    pub fn advance(&mut self) -> Result<()> {
        let Some((first, others)) = self.order.split_first() else { return Ok(()) };
        let alike = others.iter().take_while(|other| self.has_same_key(*first, **other)).count();
        for n in (0..=alike).rev() {
            let moved = self.order[n];
            let source = &mut self.sources[moved];
            let has_more = source.next_key(self.of.seqno)?;
            self.heads[moved] = head_of(source.key());
            if !has_more || self.is_past(self.heads[moved], &self.sources[moved]) {
                self.order.remove(n);
                continue;
            }
            let mut place = n;
            while let Some(next) = self.order.get(place + 1)
                && self.compare(*next, moved) == Ordering::Less
            {
                self.order[place] = *next;
                place += 1;
            }
            self.order[place] = moved;
        }
        Ok(())
    }
}

fn head_of(key: &[u8]) -> Head {
    const HALF: usize = size_of::<u128>();
    let mut head = [0; 2 * HALF];
    let len = key.len().min(head.len());
    head[..len].copy_from_slice(&key[..len]);
    let (high, low) = head.split_at(HALF);
    [high, low].map(|half| half.try_into().map_or(0, u128::from_be_bytes))
}

impl Source<'_> {
    fn key(&self) -> &[u8] {
        match self {
            Self::Memtable(cursor) => cursor.at().key,
            Self::Run(cursor) => cursor.key(),
        }
    }

    fn seqno(&self) -> u64 {
        match self {
            Self::Memtable(cursor) => cursor.at().seqno,
            Self::Run(cursor) => cursor.seqno(),
        }
    }

    fn kind(&self) -> ValueType {
        match self {
            Self::Memtable(cursor) => cursor.at().kind,
            Self::Run(cursor) => cursor.kind(),
        }
    }

    fn value(&self) -> Bytes {
        match self {
            Self::Memtable(cursor) => cursor.at().value.clone().into(),
            Self::Run(cursor) => cursor.value(),
        }
    }

    fn value_bytes(&self) -> &[u8] {
        match self {
            Self::Memtable(cursor) => cursor.at().value,
            Self::Run(cursor) => cursor.value_bytes(),
        }
    }

    /// Goes on to a version that a snapshot sees, if this is none. False at the end.
    fn go_to_visible(&mut self, seqno: u64) -> Result<bool> {
        while self.seqno() >= seqno {
            let has_more = match self {
                Self::Memtable(cursor) => cursor.advance(),
                Self::Run(cursor) => cursor.advance()?,
            };
            if !has_more {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Goes on to a version of another key that a snapshot sees. False at the end.
    fn next_key(&mut self, seqno: u64) -> Result<bool> {
        let has_more = match self {
            Self::Memtable(cursor) => cursor.next_key(),
            Self::Run(cursor) => cursor.next_key()?,
        };
        Ok(has_more && self.go_to_visible(seqno)?)
    }
}

/// From the first entry whose key is not below `start`.
fn along<'a>(memtable: &'a Memtable, start: &[u8]) -> Option<MemtableCursor<'a>> {
    // The library refuses an empty key; this is the smallest that is not.
    let start = if start.is_empty() { &[0] } else { start };
    // Of a key, the newest version comes first.
    let first = InternalValue::from_components(start, Slice::empty(), u64::MAX, ValueType::Tombstone).key;
    let mut left = memtable.items.range((Bound::Included(first), Bound::Unbounded));
    let at = left.next()?;
    Some(Box::new(walk(left, at, |entry| {
        let key = entry.key();
        Version { key: &key.user_key, seqno: key.seqno, kind: key.value_type, value: entry.value() }
    })))
}

/// For the compiler, which has to see that `read` borrows from what it is given.
fn walk<I: Iterator, R: for<'e> Fn(&'e I::Item) -> Version<'e>>(
    left: I,
    at: I::Item,
    read: R,
) -> Entries<I, R> {
    Entries { left, at, read }
}
