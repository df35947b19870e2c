//! All versions and deletes, for containers that keep them.
//!
//! Beside the feed, which has one entry per living document, such a container has a log with one event per change,
//! expiries included, kept for as many minutes as its definition says.
//!
//! ```text
//!   kind:u8  ts:u64  expired at:u64  previous lsn:u64  document:len u16 + bytes  current:len u32 + BSON  previous:…  moment:u64
//! ```
//!
//! Events of earlier versions end before the moment.

use bson::RawDocument;
use bytes::Bytes;

use crate::{
    clock::Timestamp,
    error::{Error, Result},
    keys::{DocumentKey, be_u64},
    moment,
    record::Record,
};

/// What happened to a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// It was made.
    Create,
    /// It was written again.
    Replace,
    /// Someone deleted it.
    Delete,
    /// Its time was up.
    Expire,
    /// Parts of it were changed.
    Update,
}

impl EventKind {
    const ALL: [Self; 5] = [Self::Create, Self::Replace, Self::Delete, Self::Expire, Self::Update];
}

/// A change of a document.
#[derive(Clone, Debug)]
pub struct Event {
    /// What happened.
    pub kind: EventKind,
    /// The second it was written down.
    pub ts: u64,
    /// Its place in the order of everything that happens, as far as the node that wrote it knew: later ones of a slot are not
    /// always later by this.
    pub moment: u64,
    /// When the document expired; only for [`EventKind::Expire`].
    pub expired_at: Option<Timestamp>,
    /// The commit of the version before.
    pub previous_lsn: u64,
    pub(crate) document: DocumentKey,
    current: Bytes,
    previous: Bytes,
}

impl Event {
    pub(crate) fn new(
        kind: EventKind,
        ts: u64,
        document: &DocumentKey,
        previous: Option<&Record>,
        current: Option<&Record>,
    ) -> Self {
        let body = |record: Option<&Record>| record.map_or_else(Bytes::new, |r| r.body_bytes().clone());
        Self {
            kind,
            ts,
            moment: moment::of_second(ts),
            expired_at: None,
            previous_lsn: previous.map_or(0, |record| record.lsn),
            document: document.clone(),
            current: body(current),
            previous: body(previous),
        }
    }

    pub(crate) fn expired(ts: u64, document: &DocumentKey, record: &Record, at: Option<Timestamp>) -> Self {
        Self { expired_at: at, ..Self::new(EventKind::Expire, ts, document, Some(record), None) }
    }

    /// The document after the change.
    pub fn current(&self) -> Option<&RawDocument> {
        RawDocument::from_bytes(&self.current).ok()
    }

    /// The document before the change.
    pub fn previous(&self) -> Option<&RawDocument> {
        RawDocument::from_bytes(&self.previous).ok()
    }

    /// As it is stored, with its moment.
    pub(crate) fn encode(&self, moment: u64) -> Vec<u8> {
        let document = self.document.as_bytes();
        let mut bytes = Vec::with_capacity(64 + document.len() + self.current.len() + self.previous.len());
        bytes.push(self.kind as u8);
        bytes.extend_from_slice(&self.ts.to_be_bytes());
        bytes.extend_from_slice(&self.expired_at.map_or(0, |at| at.0).to_be_bytes());
        bytes.extend_from_slice(&self.previous_lsn.to_be_bytes());
        bytes.extend_from_slice(&(document.len() as u16).to_be_bytes());
        bytes.extend_from_slice(document);
        for body in [&self.current, &self.previous] {
            bytes.extend_from_slice(&(body.len() as u32).to_be_bytes());
            bytes.extend_from_slice(body);
        }
        bytes.extend_from_slice(&moment.to_be_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &Bytes) -> Result<Self> {
        Self::read(bytes).ok_or(Error::Corrupt("a log entry cannot be read"))
    }

    fn read(bytes: &Bytes) -> Option<Self> {
        let kind = *EventKind::ALL.get(usize::from(*bytes.first()?))?;
        let word = |at: usize| bytes.get(at..at + 8).map(be_u64);
        let (ts, expired_at, previous_lsn) = (word(1)?, word(9)?, word(17)?);
        let mut at = 25;
        let mut field = |width: usize| {
            let length = bytes.get(at..at + width)?.iter().fold(0, |n, byte| n << 8 | usize::from(*byte));
            let field =
                (bytes.len() >= at + width + length).then(|| bytes.slice(at + width..at + width + length));
            at += width + length;
            field
        };
        let (document, current, previous) = (field(2)?, field(4)?, field(4)?);
        Some(Self {
            kind,
            ts,
            moment: word(at).unwrap_or(moment::of_second(ts)),
            expired_at: (expired_at > 0).then_some(Timestamp(expired_at)),
            previous_lsn,
            document: DocumentKey::from_tail(&document).ok()?,
            current,
            previous,
        })
    }
}

#[cfg(test)]
mod tests {
    use mayfly_value::partition::Epk;

    use super::*;
    use crate::keys::DocumentId;

    #[test]
    fn an_event_has_its_moment_and_one_of_an_earlier_version_that_of_its_second() {
        let document = DocumentKey::new(&Epk(vec![1, 2]), &DocumentId::text("a"));
        let event = Event::new(EventKind::Delete, 7, &document, None, None);
        let stored = Bytes::from(event.encode(7 << 32 | 9));
        assert_eq!(Event::decode(&stored).unwrap().moment, 7 << 32 | 9);
        let old = stored.slice(..stored.len() - 8);
        assert_eq!(Event::decode(&old).unwrap().moment, 7 << 32 | 1);
        assert!(Event::decode(&old.slice(..old.len() - 1)).is_err());
    }
}
