//! Notes: what front-ends write down of what happened to containers and databases, for whoever was not there.
//!
//! A note means nothing to the engine. It is written with a change of the catalog, or on its own as one, so
//! that notes have an order, the catalog's, and are numbered by it; and one that comes with a change is there
//! if the change is. The oldest go when new ones come. A row at number 0 says how far they are forgotten:
//!
//! ```text
//!   number:u64  ordinal:u16   ─▶   second:u64  bytes
//!   0           0             ─▶   forgotten up to:u64  second of that one:u64  rows kept:u64
//! ```

use std::sync::Arc;

use bytes::Bytes;
use mayfly_storage::store::{Direction, Key, MarkAt, PageLimit, Put, SeqMark};

use crate::{
    catalog::{Catalog, Change},
    clock::Timestamp,
    engine::Engine,
    error::{Error, Result},
    keys::{CATALOG, Family, SEQ_IN_KEY, be_u64, sequence_of},
};

/// How long notes are kept, and how many.
const SECONDS: u64 = 24 * 60 * 60;
const NOTES_MAX: u64 = 10_000;

/// Notes forgotten with a new one.
const FORGOTTEN_MAX: usize = 100;

/// Notes read at a time.
const PAGE: PageLimit = PageLimit { rows: 1000, bytes: 4 << 20 };

/// A note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The change of the catalog it came with, and its place among the notes of that.
    pub number: (u64, u16),
    /// What it says.
    pub bytes: Bytes,
}

/// Some notes, in their order.
#[derive(Debug, Default)]
pub struct Notes {
    /// The notes.
    pub notes: Vec<Note>,
    /// The last change whose notes are forgotten; 0 if all are there.
    pub forgotten: u64,
    /// The second of that.
    pub forgotten_at: u64,
    /// Whether there were more.
    pub more: bool,
}

/// What the row at number 0 says.
#[derive(Clone, Copy, Default)]
struct Head {
    forgotten: u64,
    forgotten_at: u64,
    rows: u64,
}

impl Head {
    fn decode(bytes: &[u8]) -> Result<Self> {
        let word = |at: usize| bytes.get(at..at + 8).map(be_u64);
        let head = || Some(Self { forgotten: word(0)?, forgotten_at: word(8)?, rows: word(16)? });
        head().ok_or(Error::Corrupt("how far notes are forgotten"))
    }

    fn row(self) -> Put {
        let words = [self.forgotten, self.forgotten_at, self.rows];
        let value = words.into_iter().flat_map(u64::to_be_bytes).collect();
        Put { key: CATALOG.sequenced(Family::Note, 0, 0), value, marks: Vec::new() }
    }
}

impl Engine {
    /// Writes notes down that come with no change.
    pub async fn write_notes(&self, notes: &[Vec<u8>]) -> Result<()> {
        let notes: Arc<[Vec<u8>]> = notes.into();
        self.catalog()
            .change(move |catalog| {
                let notes = notes.clone();
                async move { catalog.note(&notes).await }
            })
            .await
    }

    /// Some notes after a change of the catalog.
    pub async fn notes(&self, after: u64) -> Result<Notes> {
        let snapshot = self.store().snapshot().await?;
        let head = snapshot.get(&CATALOG.sequenced(Family::Note, 0, 0)).await?;
        let head = head.as_deref().map(Head::decode).transpose()?.unwrap_or_default();
        let page = crate::feed::commits_after(&*snapshot, CATALOG, Family::Note, after, PAGE.rows).await?;
        let Head { forgotten, forgotten_at, .. } = head;
        let mut found = Notes { notes: Vec::new(), forgotten, forgotten_at, more: page.more };
        for (key, value) in page.rows {
            let bytes = value.get(8..).ok_or(Error::Corrupt("a note"))?;
            found.notes.push(Note { number: sequence_of(&key)?, bytes: value.slice_ref(bytes) });
        }
        Ok(found)
    }
}

impl Catalog {
    async fn note(&self, notes: &[Vec<u8>]) -> Result<Change<()>> {
        let (puts, deletes) = self.noting(notes).await?;
        let (guards, conflict) = (Vec::new(), Error::Contention);
        Ok(Change { guards, puts, deletes, conflict, publish: Box::new(|_, _| Ok(())) })
    }

    /// The rows of notes that come with a change, and those that go.
    pub async fn noting(&self, notes: &[Vec<u8>]) -> Result<(Vec<Put>, Vec<Key>)> {
        if notes.is_empty() {
            return Ok((Vec::new(), Vec::new()));
        }
        let now: Timestamp = self.told();
        let snapshot = self.snapshot().await?;
        let head = snapshot.get(&CATALOG.sequenced(Family::Note, 0, 0)).await?;
        let mut head = head.as_deref().map(Head::decode).transpose()?.unwrap_or_default();
        let mut range = CATALOG.range(Family::Note, &[]);
        range.start.extend_from_slice(&1_u64.to_be_bytes());
        let limit = PageLimit { rows: FORGOTTEN_MAX, ..PAGE };
        let oldest = snapshot.scan(&range, Direction::Forward, limit).await?;
        let mut deletes = Vec::new();
        let mut too_many = (head.rows + notes.len() as u64).saturating_sub(NOTES_MAX);
        for (key, value) in &oldest.rows {
            let second = be_u64(value.get(..8).ok_or(Error::Corrupt("a note"))?);
            let (number, ordinal) = sequence_of(key)?;
            // Those of one change go together.
            if too_many == 0 && second + SECONDS >= now.seconds() && number != head.forgotten {
                break;
            }
            too_many = too_many.saturating_sub(1);
            head.rows = head.rows.saturating_sub(1);
            (head.forgotten, head.forgotten_at) = (number, second);
            deletes.push(CATALOG.sequenced(Family::Note, number, ordinal));
        }
        head.rows += notes.len() as u64;
        let mut puts = vec![head.row()];
        for (ordinal, note) in notes.iter().enumerate() {
            let ordinal =
                u16::try_from(ordinal).map_err(|_| Error::bad_request("Too many notes at once."))?;
            let value = [&now.seconds().to_be_bytes()[..], note].concat();
            let mark = SeqMark { advance: 0, at: MarkAt::Key(SEQ_IN_KEY) };
            puts.push(Put {
                key: CATALOG.sequenced(Family::Note, u64::MAX, ordinal),
                value,
                marks: vec![mark],
            });
        }
        Ok((puts, deletes))
    }
}
