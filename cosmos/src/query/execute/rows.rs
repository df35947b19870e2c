//! A page in the making: its rows, what was looked at for them, where the next one goes on.

use std::cmp::min;

use mayfly_engine::{Container, PageLimit};
use mayfly_sql::Value;

use super::{PAGE_BYTES_MAX, SCAN_ROWS};
use crate::{
    query::{
        source::{Item, Items, Source},
        texts::RowTexts,
        token::{From, Token},
    },
    resource::{ADDED_BYTES, container_rid},
};

/// Documents taken at first where a few may be enough.
const FIRST_ROWS: usize = 16;

/// A page in the making.
pub(super) struct Rows {
    pub rows: RowTexts,
    pub rows_max: usize,
    pub choice: u8,
    pub bytes: usize,
    pub scanned: usize,
    /// Entries or documents that the walk came by.
    pub walked: usize,
    pub scanned_bytes: u64,
    pub slot: u16,
    pub next: Option<Token>,
}

impl Rows {
    pub(super) fn new(container: &Container, rows_max: usize, choice: u8) -> Self {
        let (bytes, scanned, walked, scanned_bytes, slot) = (0, 0, 0, 0, 0);
        Self {
            rows: RowTexts::of(&container_rid(container)),
            rows_max,
            choice,
            bytes,
            scanned,
            walked,
            scanned_bytes,
            slot,
            next: None,
        }
    }

    /// Takes note of a document that is looked at.
    pub(super) fn looks_at(&mut self, item: &Item) {
        self.scanned += item.times as usize;
        self.scanned_bytes += item.size() as u64;
        self.slot = item.slot();
    }

    /// Makes room for the rows of some documents: about as many bytes as those have.
    pub(super) fn make_room<'i>(&mut self, items: impl Iterator<Item = &'i Item>) {
        let (mut rows, mut bytes) = (0, 0);
        for item in items {
            rows += 1;
            bytes += item.size() + ADDED_BYTES;
        }
        self.rows.reserve(rows, min(bytes, PAGE_BYTES_MAX));
    }

    /// Takes all of some rows.
    pub(super) fn add_all(&mut self, rows: &[Value<'_>]) {
        // Text and bytes of a value are about as long.
        self.rows.reserve(rows.len(), min(rows.iter().map(Value::size).sum(), PAGE_BYTES_MAX));
        rows.iter().for_each(|row| self.add(row));
    }

    /// Takes some documents, which are rows as they are.
    pub(super) fn add_documents<'i>(
        &mut self,
        source: &Source<'_>,
        items: impl Iterator<Item = &'i Item> + Clone,
    ) {
        self.make_room(items.clone());
        items.for_each(|item| self.add_by(|out| source.write_row(item, out)));
    }

    /// Takes note of documents that give no rows.
    pub(super) fn passes_over(&mut self, items: &Items) {
        self.walked += items.walked;
        self.scanned += items.refused;
        self.scanned_bytes += items.refused_bytes as u64;
    }

    pub(super) fn is_full(&self) -> bool {
        self.rows.len() >= self.rows_max || self.bytes >= PAGE_BYTES_MAX
    }

    /// Takes a document's rows, from the `skip`th on, as long as there is room.
    pub(super) fn take_from(&mut self, rows: &[Value<'_>], skip: u32) -> Pushed {
        for (n, row) in rows.iter().enumerate().skip(skip as usize) {
            if self.is_full() {
                return Pushed::Some(n as u32);
            }
            self.add(row);
        }
        Pushed::All
    }

    pub(super) fn add(&mut self, row: &Value<'_>) {
        self.add_by(|out| row.write_json(out));
    }

    pub(super) fn add_text(&mut self, text: &[u8]) {
        self.add_by(|out| out.extend_from_slice(text));
    }

    /// Takes the row that `write` writes.
    pub(super) fn add_by(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.bytes += self.rows.push(write);
    }

    pub(super) fn next_from(&mut self, progress: mayfly_sql::Progress, from: Option<From>) {
        self.next = from.map(|from| Token { choice: Some(self.choice), progress, from });
    }

    pub(super) fn ended(mut self, progress: mayfly_sql::Progress, from: Option<From>) -> Self {
        self.next_from(progress, from);
        self
    }
}

/// How much of a document's rows went into the page.
pub(super) enum Pushed {
    All,
    /// So many; the page is full.
    Some(u32),
}

/// How many documents to ask for next: as many as the page may need, then more and more while the filter lets few pass.
pub(super) struct Batch {
    rows: usize,
}

impl Batch {
    pub(super) fn new(wanted: usize, filters: bool) -> Self {
        let rows = if filters && wanted < SCAN_ROWS { wanted.max(FIRST_ROWS) } else { wanted };
        Self { rows: rows.clamp(1, SCAN_ROWS) }
    }

    pub(super) fn next(&mut self) -> PageLimit {
        let rows = self.rows;
        self.rows = (rows * 2).min(SCAN_ROWS);
        PageLimit { rows, bytes: PAGE_BYTES_MAX }
    }
}
