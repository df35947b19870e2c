//! Walks over living documents, page by page, resumable.
//!
//! A scan visits the container's slots one after the other; inside a slot it goes in the order of its access path. Every
//! page is one snapshot and one `now`; the position it leaves is a few bytes that any process can go on from.
//!
//! An index that is not whole (being built, or lazy) is followed by a second leg over the feed, so an answer is never
//! wrong, only slower. Which documents belong to which leg is settled when the scan comes to a slot, by their commits,
//! and stays so while the index is built further between two pages.
//!
//! A scan of entries gives what the index itself says about a document, without its record, wherever the key says all.

mod count;
mod state;
mod walk;

pub(crate) use state::{each_row, indexed_through, last_commit};

use std::sync::Arc;

use bytes::Bytes;
use mayfly_storage::store::{Direction, PageLimit, Snapshot};
use mayfly_value::keycode::DecodedValue;

use crate::{
    access::{Access, IndexAccess, Reliance},
    clock::Timestamp,
    container::Container,
    engine::Engine,
    error::{Error, Result},
    keys::PREFIX_LEN,
    position::{After, IndexedAtStart, Leg, Position},
    record::Record,
    ttl::Cuts,
};
use walk::Walk;

/// A living document and where it was found.
#[derive(Clone, Debug)]
pub struct Found {
    /// The slot.
    pub slot: u16,
    /// The document.
    pub record: Record,
    /// Its hash and id, as keys have them: the order of documents that are otherwise equal.
    pub document: Bytes,
    place: Place,
}

/// A living document as an index has it.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The slot.
    pub slot: u16,
    /// Its values, one for each path of the index; or the document itself where the index does not say all.
    pub content: Content,
    /// Its hash and id, as keys have them.
    pub document: Bytes,
    place: Place,
}

/// What a scan of entries finds.
#[derive(Clone, Debug)]
pub enum Content {
    /// The values of the entry; undefined ones included.
    Values(Vec<DecodedValue>),
    /// The document.
    Record(Record),
}

/// Where a row was: all that a position is made of.
#[derive(Clone, Debug)]
struct Place {
    leg: Leg,
    index: Option<IndexedAtStart>,
    key: Bytes,
}

impl Place {
    fn position(&self, slot: u16) -> Position {
        let after = After::Key(self.key.get(PREFIX_LEN..).unwrap_or_default().to_vec());
        Position { slot, leg: self.leg, index: self.index, after }
    }
}

impl Found {
    /// Where to go on after it.
    pub fn position(&self) -> Position {
        self.place.position(self.slot)
    }
}

impl Entry {
    /// What it says, which is taken out.
    pub fn take_content(&mut self) -> Content {
        std::mem::replace(&mut self.content, Content::Values(Vec::new()))
    }

    /// Where to go on after it.
    pub fn position(&self) -> Position {
        self.place.position(self.slot)
    }
}

/// One page of a scan.
#[derive(Debug)]
pub struct ScanPage {
    /// Living documents.
    pub found: Vec<Found>,
    /// Where to go on; `None` at the end.
    pub next: Option<Position>,
    /// Entries looked at, dead ones included.
    pub scanned: usize,
}

/// One page of a scan of entries.
#[derive(Debug)]
pub struct EntryPage {
    /// Living documents.
    pub entries: Vec<Entry>,
    /// Where to go on; `None` at the end.
    pub next: Option<Position>,
    /// Entries looked at, dead ones included.
    pub scanned: usize,
}

impl Engine {
    /// One page of living documents: at most `limit.rows`, in the order of `access`, from `position` on.
    pub async fn scan(
        &self,
        container: &Container,
        access: &Access,
        direction: Direction,
        position: Option<Position>,
        limit: PageLimit,
        now: Timestamp,
    ) -> Result<ScanPage> {
        let opened = self.open(container, access, now).await?;
        let (rows, next, scanned) = opened.walk(access, direction).page(position, limit, true).await?;
        let found = rows.into_iter().filter_map(|row| {
            let Content::Record(record) = row.content else { return None };
            Some(Found { slot: row.slot, record, document: row.document, place: row.place })
        });
        Ok(ScanPage { found: found.collect(), next, scanned })
    }

    /// One page of the entries of an index on which the caller may rely.
    pub async fn scan_entries(
        &self,
        container: &Container,
        access: &IndexAccess,
        direction: Direction,
        position: Option<Position>,
        limit: PageLimit,
        now: Timestamp,
    ) -> Result<EntryPage> {
        if access.relies == Reliance::Nothing {
            return Err(Error::internal("entries of an index that may lack some"));
        }
        let access = Access::Index(access.clone());
        let opened = self.open(container, &access, now).await?;
        let (entries, next, scanned) = opened.walk(&access, direction).page(position, limit, false).await?;
        Ok(EntryPage { entries, next, scanned })
    }

    async fn open(&self, container: &Container, access: &Access, now: Timestamp) -> Result<Opened> {
        let snapshot = self.store().snapshot().await?;
        // After the snapshot: the entries of an index policy that has been replaced since the caller looked may be gone
        // already, while one that came after the snapshot only finds its index not built yet. Likewise a document that
        // does not fit the coverage is written after the coverage.
        let container = self.reload(container)?;
        if let Access::Index(access) = access {
            access.check(&container)?;
        }
        let cuts = container.ttl().cuts(now);
        Ok(Opened { snapshot, container, cuts })
    }
}

/// A moment of the store, and of the container.
struct Opened {
    snapshot: Arc<dyn Snapshot>,
    container: Arc<Container>,
    cuts: Cuts,
}

impl Opened {
    fn walk<'a>(&'a self, access: &'a Access, direction: Direction) -> Walk<'a> {
        Walk { container: &self.container, access, direction, cuts: &self.cuts, snapshot: &*self.snapshot }
    }
}
