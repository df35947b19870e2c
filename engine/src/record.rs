//! The stored form of a document, and of its entry in the feed.
//!
//! ```text
//!   record   lsn:u64  format:u8  ordinal:u16  created lsn:u64  created ordinal:u16  life  body (BSON)
//!   feed     epoch:u32  size:u32  life  document
//! ```
//!
//! The lsn comes first because guards compare the first eight bytes: it is the record's version. It is not known
//! before the commit, so the store fills it in ([`SeqMark`]).

use bson::RawDocument;
use bytes::Bytes;
use mayfly_storage::store::{MarkAt, SeqMark};

use crate::{
    error::{Error, Result},
    keys::{DocumentKey, be_u64},
    ttl::Life,
};

/// The layout written by this version.
const FORMAT: u8 = 1;

const FORMAT_AT: usize = 8;
const ORDINAL_AT: usize = 9;
const CREATED_AT: usize = 11;

/// The place in commit order where a document was made; names it for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Birth {
    /// The commit.
    pub lsn: u64,
    /// Its place in the commit.
    pub ordinal: u16,
}

/// A stored document.
#[derive(Clone, Debug)]
pub struct Record {
    /// The commit of its last write: its version.
    pub lsn: u64,
    /// Its place in that commit.
    pub ordinal: u16,
    /// When it was made.
    pub birth: Birth,
    /// What decides how long it is visible.
    pub(crate) life: Life,
    body: Bytes,
}

/// What decides how long a document is visible, without the document: `Container::lasts` reads it.
#[derive(Clone, Debug)]
pub struct Lifetime(pub(crate) Life);

impl Record {
    /// Where the life stands in the stored bytes.
    pub(crate) const LIFE_AT: usize = 21;

    /// A record that is about to be written; `birth` is `None` for a new document.
    pub(crate) fn new(birth: Option<Birth>, ordinal: u16, life: Life, body: Bytes) -> Self {
        Self { lsn: 0, ordinal, birth: birth.unwrap_or(Birth { lsn: 0, ordinal }), life, body }
    }

    /// This record as of the commit `lsn`.
    pub(crate) fn committed(mut self, lsn: u64) -> Self {
        self.lsn = lsn;
        if self.birth.lsn == 0 {
            self.birth.lsn = lsn;
        }
        self
    }

    /// The document.
    pub fn body(&self) -> &RawDocument {
        // Checked when the record was made or decoded; an empty document is the only honest way out.
        RawDocument::from_bytes(&self.body).unwrap_or_else(|_| empty_document())
    }

    /// The document's bytes.
    pub fn body_bytes(&self) -> &Bytes {
        &self.body
    }

    /// The second of the last write: `_ts`.
    pub fn ts(&self) -> u64 {
        self.life.ts
    }

    /// What decides how long it is visible, for whoever keeps something made of it.
    pub fn lifetime(&self) -> Lifetime {
        Lifetime(self.life.clone())
    }

    /// Bytes that count as the document's size.
    pub fn size(&self) -> u32 {
        self.body.len() as u32
    }

    /// The stored bytes and where the commit writes its number.
    pub(crate) fn encode(&self) -> (Vec<u8>, Vec<SeqMark>) {
        let mut bytes = Vec::with_capacity(Self::LIFE_AT + 32 + self.body.len());
        bytes.extend_from_slice(&self.lsn.to_be_bytes());
        bytes.push(FORMAT);
        bytes.extend_from_slice(&self.ordinal.to_be_bytes());
        bytes.extend_from_slice(&self.birth.lsn.to_be_bytes());
        bytes.extend_from_slice(&self.birth.ordinal.to_be_bytes());
        debug_assert_eq!(bytes.len(), Self::LIFE_AT);
        self.life.encode(&mut bytes);
        bytes.extend_from_slice(&self.body);
        let mut marks = Vec::with_capacity(2);
        marks.push(SeqMark { advance: 0, at: MarkAt::Value(0) });
        if self.birth.lsn == 0 {
            marks.push(SeqMark { advance: 0, at: MarkAt::Value(CREATED_AT as u32) });
        }
        (bytes, marks)
    }

    /// Reads the life and the document's bytes only: for walks of all documents.
    pub(crate) fn decode_life(bytes: &[u8]) -> Result<(Life, &[u8])> {
        const DAMAGED: Error = Error::Corrupt("a record cannot be read");
        let (life, used) = bytes.get(Self::LIFE_AT..).and_then(Life::decode).ok_or(DAMAGED)?;
        Ok((life, &bytes[Self::LIFE_AT + used..]))
    }

    /// What stored bytes say, without making a record of them: a walk with a filter meets many that it does not want.
    pub(crate) fn glance(bytes: &[u8]) -> Result<(Life, &RawDocument)> {
        if bytes.get(FORMAT_AT).is_some_and(|format| *format != FORMAT) {
            return Err(Error::Corrupt("a record has a layout this version does not know"));
        }
        let (life, body) = Self::decode_life(bytes)?;
        Ok((life, RawDocument::from_bytes(body)?))
    }

    /// Reads stored bytes.
    pub(crate) fn decode(bytes: Bytes) -> Result<Self> {
        let (life, body) = Self::glance(&bytes)?;
        let body_at = bytes.len() - body.as_bytes().len();
        let ordinal = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        Ok(Self {
            lsn: be_u64(&bytes),
            ordinal: ordinal(ORDINAL_AT),
            birth: Birth { lsn: be_u64(&bytes[CREATED_AT..]), ordinal: ordinal(CREATED_AT + 8) },
            life,
            body: bytes.slice(body_at..),
        })
    }
}

/// What an entry in a queue of deadlines or dates says of its document: its size, and if the document stands in several
/// queues, or may, which version it is of and how long that lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DueEntry {
    pub size: u32,
    /// The version's place in the feed and its life. Documents without dates have none; nor have entries of layouts
    /// before 4.
    pub version: Option<((u64, u16), Life)>,
}

impl DueEntry {
    /// What an entry without a version has.
    pub const SIZE_LEN: usize = 4;
    const LSN_AT: usize = Self::SIZE_LEN;
    const ORDINAL_AT: usize = 12;
    const LIFE_AT: usize = 14;

    /// The entry of a version, as far as it does not need the number of its commit.
    pub fn encoded(record: &Record) -> Vec<u8> {
        let mut bytes = record.size().to_be_bytes().to_vec();
        if !record.life.dates.is_empty() {
            bytes.extend_from_slice(&record.lsn.to_be_bytes());
            bytes.extend_from_slice(&record.ordinal.to_be_bytes());
            record.life.encode(&mut bytes);
        }
        bytes
    }

    /// Where the number of the commit goes.
    pub fn marks(bytes: &[u8]) -> Vec<SeqMark> {
        let has_version = bytes.len() > Self::SIZE_LEN;
        let mark = SeqMark { advance: 0, at: MarkAt::Value(Self::LSN_AT as u32) };
        has_version.then_some(mark).into_iter().collect()
    }

    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let size = u32::from_be_bytes(*bytes.first_chunk()?);
        if bytes.len() == Self::SIZE_LEN {
            return Some(Self { size, version: None });
        }
        let lsn = be_u64(bytes.get(Self::LSN_AT..Self::ORDINAL_AT)?);
        let ordinal = u16::from_be_bytes(bytes.get(Self::ORDINAL_AT..Self::LIFE_AT)?.try_into().ok()?);
        let (life, _) = Life::decode(&bytes[Self::LIFE_AT..])?;
        Some(Self { size, version: Some(((lsn, ordinal), life)) })
    }
}

fn empty_document() -> &'static RawDocument {
    const EMPTY: &[u8] = &[5, 0, 0, 0, 0];
    RawDocument::from_bytes(EMPTY).expect("five bytes are the empty document")
}

/// A document's entry in the feed: enough to decide about its life without its record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedEntry {
    /// The index epoch whose entries this version has; 0 for none yet.
    pub epoch: u32,
    /// The document's size.
    pub size: u32,
    /// Its life.
    pub life: Life,
    /// Which document.
    pub document: DocumentKey,
}

impl FeedEntry {
    /// Where the life stands in the stored bytes.
    pub(crate) const LIFE_AT: usize = 8;

    /// The stored bytes.
    pub fn encode(&self) -> Vec<u8> {
        Self::encoded(self.epoch, self.size, &self.life, &self.document)
    }

    /// The stored bytes of an entry that says this.
    pub fn encoded(epoch: u32, size: u32, life: &Life, document: &DocumentKey) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(8 + 16 + document.as_bytes().len());
        bytes.extend_from_slice(&epoch.to_be_bytes());
        bytes.extend_from_slice(&size.to_be_bytes());
        life.encode(&mut bytes);
        bytes.extend_from_slice(document.as_bytes());
        bytes
    }

    /// Reads the size and the life only: for walks of the whole feed, where the rest would be read for nothing.
    pub fn decode_life(bytes: &[u8]) -> Result<(u32, Life)> {
        const DAMAGED: Error = Error::Corrupt("a feed entry cannot be read");
        let size = bytes.get(4..8).and_then(|word| word.try_into().ok()).map(u32::from_be_bytes);
        let (life, _) = bytes.get(8..).and_then(Life::decode).ok_or(DAMAGED)?;
        Ok((size.ok_or(DAMAGED)?, life))
    }

    /// Reads stored bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        const DAMAGED: Error = Error::Corrupt("a feed entry cannot be read");
        let word = |at: usize| {
            let word = bytes.get(at..at + 4).ok_or(DAMAGED)?;
            Ok::<_, Error>(u32::from_be_bytes([word[0], word[1], word[2], word[3]]))
        };
        let (epoch, size) = (word(0)?, word(4)?);
        let (life, used) = Life::decode(&bytes[Self::LIFE_AT..]).ok_or(DAMAGED)?;
        let document = DocumentKey::from_tail(&bytes[Self::LIFE_AT + used..])?;
        Ok(Self { epoch, size, life, document })
    }
}
