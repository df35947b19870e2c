//! One walk along a run: tables that follow each other, block by block.
//!
//! The library's own walk makes an owned key of each row, copies it through a heap and two filters and wraps it with
//! handles that all threads count: 0.6 µs a row. The blocks it keeps in its cache hold their rows in order, so this one
//! reads them there, and makes nothing of a row before it is known to be wanted.
//!
//! It rests on parts of the library that are public and not documented. The tests of `view.rs` compare it with a model.
//!
//! Holds: the rows from `start` on, in order, each version of a key for itself, the latest first.

use std::{cmp::Ordering, fs::File};

use bytes::Bytes;
use lsm_tree::{
    Error, GlobalTableId, Result, Slice, Table, TreeId, ValueType,
    table::{Block, BlockHandle, DataBlock, IndexBlock, block::BlockType, data_block::DataBlockParsedItem},
};

use super::rows::{Asked, Fill};

/// Blocks that are looked up in the index of a table at first, and at most: a short walk needs one, a long one should not
/// come back for each.
const LOOK_AHEAD: [usize; 2] = [2, 64];

/// Rows that are read of the first block at first. A short walk needs a few of each run, and a block has dozens of small ones.
const FIRST_ROWS: usize = 12;

/// A place in a run.
pub struct RunCursor<'a> {
    tree: TreeId,
    /// The table it is in, and those to come.
    tables: &'a [Table],
    asked: Asked<'a>,
    file: Option<File>,
    /// Blocks to come that were looked up, the next one last.
    ahead: Vec<BlockHandle>,
    /// The last block that was looked up in this table, and its last key.
    looked_up: Option<(BlockHandle, Slice)>,
    look_ahead: usize,
    block: Slice,
    /// Whether a value of the block may be wanted.
    is_possible: bool,
    /// The rows of the block; the first ones are behind.
    rows: Vec<DataBlockParsedItem>,
    /// The first block, while there may be more rows in it than were read.
    first: Option<BlockHandle>,
    at: usize,
    /// The key of the row it is at.
    key: Vec<u8>,
}

impl<'a> RunCursor<'a> {
    /// At the first row whose key is not below the start; none if there is no such row. The tables are in order and have no
    /// keys in common.
    pub fn new(tree: TreeId, tables: &'a [Table], asked: Asked<'a>) -> Result<Option<Self>> {
        let first = tables.partition_point(|table| **table.metadata.key_range.max() < *asked.start);
        let mut cursor = Self {
            tree,
            tables: &tables[first..],
            asked,
            file: None,
            ahead: Vec::new(),
            looked_up: None,
            look_ahead: LOOK_AHEAD[0],
            block: Slice::empty(),
            is_possible: true,
            rows: Vec::new(),
            first: None,
            at: 0,
            key: Vec::new(),
        };
        let has_rows = cursor.next_block()?;
        cursor.read_key();
        Ok(has_rows.then_some(cursor))
    }

    pub fn key(&self) -> &[u8] {
        &self.key
    }

    pub fn seqno(&self) -> u64 {
        let of_all = self.tables.first().map_or(0, Table::global_seqno);
        self.rows.get(self.at).map_or(0, |row| row.seqno + of_all)
    }

    pub fn kind(&self) -> ValueType {
        self.rows.get(self.at).map_or(ValueType::Tombstone, |row| row.value_type)
    }

    /// Whether a value that is in its block may be wanted.
    pub fn is_possible(&self) -> bool {
        self.is_possible
    }

    /// The bytes that stand for the value.
    pub fn value(&self) -> Bytes {
        let value = self.rows.get(self.at).and_then(|row| row.value.as_ref());
        value.map_or_else(Bytes::new, |value| self.block.slice(value.0..value.1).into())
    }

    /// The same where they are.
    pub fn value_bytes(&self) -> &[u8] {
        let value = self.rows.get(self.at).and_then(|row| row.value.as_ref());
        value.map_or(&[], |value| &self.block[value.0..value.1])
    }

    /// Goes on to the next version, of the same key or another one. False at the end.
    pub fn advance(&mut self) -> Result<bool> {
        let has_more = self.step()?;
        self.read_key();
        Ok(has_more)
    }

    /// Goes on to a version of another key. False at the end.
    pub fn next_key(&mut self) -> Result<bool> {
        while self.step()? {
            if !self.is_same_key() {
                self.read_key();
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Moves on by a row. Its key is not read yet.
    fn step(&mut self) -> Result<bool> {
        self.at += 1;
        if self.at < self.rows.len() { Ok(true) } else { self.next_block() }
    }

    /// Whether the row has the key that was read last.
    fn is_same_key(&self) -> bool {
        let Some(row) = self.rows.get(self.at) else { return false };
        let shared = row.prefix.as_ref().map_or(&[][..], |shared| &self.block[shared.0..shared.1]);
        let rest = &self.block[row.key.0..row.key.1];
        // Keys that follow each other mostly differ in their last byte.
        self.key.len() == shared.len() + rest.len()
            && (rest.is_empty() || self.key.last() == rest.last())
            && self.key.ends_with(rest)
            && self.key.starts_with(shared)
    }

    fn read_key(&mut self) {
        let Some(row) = self.rows.get(self.at) else { return };
        self.key.clear();
        if let Some(shared) = &row.prefix {
            self.key.extend_from_slice(&self.block[shared.0..shared.1]);
        }
        self.key.extend_from_slice(&self.block[row.key.0..row.key.1]);
    }

    /// Goes to the next block that has rows, in this table or the next one.
    fn next_block(&mut self) -> Result<bool> {
        while let Some(table) = self.tables.first() {
            let rest = self.first.take();
            if rest.is_none() && self.ahead.is_empty() {
                self.look_up(table)?;
            }
            let Some(handle) = rest.or_else(|| self.ahead.pop()) else {
                self.tables = &self.tables[1..];
                (self.file, self.looked_up) = (None, None);
                continue;
            };
            let compression = table.metadata.data_block_compression;
            let block = DataBlock::new(self.load(table, handle, BlockType::Data, compression)?);
            self.rows.clear();
            // From end to end, so that all of it comes from memory as fast as it can, and then is near.
            self.is_possible = self.asked.may_hold.is_none_or(|may_hold| may_hold(&block.inner.data));
            let mut rows = block.iter();
            // Only the first block of all begins below the start.
            if rest.is_some() {
                rows.seek(self.asked.start);
                self.rows.extend(rows.skip(FIRST_ROWS));
            } else if self.key.is_empty() {
                rows.seek(self.asked.start);
                // What follows the first row behind the end is not asked about.
                let is_asked = |row: &DataBlockParsedItem| {
                    self.asked.end.is_none_or(|end| is_below(row, &block.inner.data, end))
                };
                let mut is_cut = false;
                for row in rows {
                    let is_last = !is_asked(&row);
                    self.rows.push(row);
                    is_cut = !is_last && self.rows.len() == FIRST_ROWS;
                    if is_last || is_cut {
                        break;
                    }
                }
                self.first = is_cut.then_some(handle);
            } else {
                self.rows.extend(rows);
            }
            self.block = block.inner.data;
            self.at = 0;
            if !self.rows.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Looks up the next blocks of a table: in its index, or in a part of it that the index of indexes leads to.
    fn look_up(&mut self, table: &Table) -> Result<()> {
        let compression = table.metadata.index_block_compression;
        let from = self.looked_up.take();
        // Blocks may end with the same key, when that has many versions.
        let (key, behind) = from
            .as_ref()
            .map_or((self.asked.start, None), |(handle, key)| (&key[..], Some(*handle.offset())));
        let top = IndexBlock::new(self.load(table, table.regions.tli, BlockType::Index, compression)?);
        let has_parts = table.regions.index.is_some();
        let mut found = Vec::with_capacity(self.look_ahead);
        let mut last = None;
        let mut upper = top.iter();
        if upper.seek(key, u64::MAX) {
            while found.len() < self.look_ahead {
                let Some(entry) = upper.next() else { break };
                let handle = BlockHandle::new(entry.offset, entry.size);
                let part = match has_parts {
                    true => Some(IndexBlock::new(self.load(table, handle, BlockType::Index, compression)?)),
                    false => None,
                };
                let Some(part) = &part else {
                    if behind.is_none_or(|behind| *entry.offset > behind) {
                        found.push(handle);
                        last = Some((handle, top.as_slice().slice(entry.end_key.0..entry.end_key.1)));
                    }
                    continue;
                };
                let mut lower = part.iter();
                if !lower.seek(key, u64::MAX) {
                    continue;
                }
                for entry in lower {
                    if behind.is_some_and(|behind| *entry.offset <= behind) {
                        continue;
                    }
                    if found.len() == self.look_ahead {
                        break;
                    }
                    let handle = BlockHandle::new(entry.offset, entry.size);
                    found.push(handle);
                    last = Some((handle, part.as_slice().slice(entry.end_key.0..entry.end_key.1)));
                }
            }
        }
        drop(upper);
        found.reverse();
        self.ahead = found;
        self.looked_up = last.or(from);
        self.look_ahead = (self.look_ahead * 4).min(LOOK_AHEAD[1]);
        Ok(())
    }

    fn load(
        &mut self,
        table: &Table,
        handle: BlockHandle,
        kind: BlockType,
        compression: fjall::CompressionType,
    ) -> Result<Block> {
        let id = GlobalTableId::from((self.tree, table.id()));
        if let Some(block) = table.cache.get_block(id, handle.offset()) {
            return Ok(block);
        }
        let file = match self.file.take() {
            Some(file) => file,
            None => File::open(&*table.path)?,
        };
        let block = Block::from_file(&file, handle, compression)?;
        self.file = Some(file);
        if block.header.block_type != kind {
            return Err(Error::InvalidTag(("BlockType", block.header.block_type.into())));
        }
        if self.asked.fill == Fill::Caches || kind == BlockType::Index {
            table.cache.insert_block(id, handle.offset(), block.clone());
        }
        Ok(block)
    }
}

/// Whether the key of a row is below another one.
fn is_below(row: &DataBlockParsedItem, block: &[u8], end: &[u8]) -> bool {
    let shared = row.prefix.as_ref().map_or(&[][..], |shared| &block[shared.0..shared.1]);
    let (head, tail) = end.split_at(shared.len().min(end.len()));
    shared.cmp(head).then_with(|| block[row.key.0..row.key.1].cmp(tail)) == Ordering::Less
}
