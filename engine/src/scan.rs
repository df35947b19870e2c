//! Walks over living documents, page by page, resumable.
//!
//! A scan gives the container's slots one after the other; inside a slot it goes in the order of its access
//! path. One of an index may go through all slots at once, in the order of the index
//! ([`crate::Across::InOrder`]). Every page is one snapshot and one `now`; the position it leaves is a few
//! bytes that any process can go on from.
//!
//! An index that is not whole (being built, or lazy) is followed by a second leg over the feed, so an answer
//! is never wrong, only slower. Which documents belong to which leg is settled when the scan comes to a slot,
//! by their commits, and stays so while the index is built further between two pages.
//!
//! A client that asks for no order gets the documents of a slot by birth, where they are few
//! (`scan/by_birth.rs`).
//!
//! A scan of entries gives what the index itself says about a document, without its record, wherever the key
//! says all.

mod by_birth;
mod cores;
mod count;
mod in_order;
mod once;
mod row;
mod state;
mod texts;
mod vectors;
mod walk;
mod wide;

pub(crate) use state::{each_row, indexed_through, last_commit};
pub use texts::{DocumentPlace, Search, TextAnswer, TextQuestion};
pub use vectors::Neighbours;

use std::sync::Arc;

use bson::RawDocument;
use bytes::Bytes;
use mayfly_storage::store::{Direction, MayHold, PageLimit, Snapshot};
use mayfly_value::keycode::DecodedValue;

use crate::{
    access::{Access, Across, IndexAccess, Reliance},
    clock::Timestamp,
    container::Container,
    engine::Engine,
    error::{Error, Result},
    keys::PREFIX_LEN,
    position::{After, IndexedAtStart, Leg, Position},
    record::{Birth, Record},
    ttl::Cuts,
};
use walk::{WIDTH_MAX, Walk};

/// Documents that the first page of a filtered walk looks at: enough to see whether few pass, so that threads
/// may help with the rest.
const FIRST_ENTRIES: usize = 2048;

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
    /// How many entries in a row say the same, if such were to be merged. This is the last of them.
    pub times: u64,
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
    /// Only in a walk by birth.
    birth: Option<Birth>,
}

impl Place {
    fn position(&self, slot: u16) -> Position {
        if let Some(birth) = self.birth {
            return Position::after_birth(slot, birth);
        }
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

/// What says that a document is not wanted, before all of it is looked at.
#[derive(Clone, Copy)]
pub enum Wanted<'a> {
    /// By the values of its entry, one for each path of the index: the document is not even read. An entry
    /// that does not hold the whole value is wanted.
    Entry(&'a (dyn Fn(&[DecodedValue]) -> bool + Sync)),
    /// By the document itself.
    Document(DocumentFilter<'a>),
}

/// What says so by the document itself.
#[derive(Clone, Copy)]
pub struct DocumentFilter<'a> {
    /// Whether a document is wanted.
    pub passes: &'a (dyn Fn(&RawDocument) -> bool + Sync),
    /// Whether bytes that hold documents, whole, and other things may hold one that is wanted. Where many lie
    /// together this is asked first.
    pub may_be_in: Option<&'a MayHold<'a>>,
}

/// Whether entries that say the same of different documents come as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merged {
    /// One by one.
    No,
    /// With their number.
    Alike,
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
    /// Documents that were read and not wanted.
    pub refused: usize,
    /// Their bytes.
    pub refused_bytes: usize,
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
        self.scan_where(container, access, direction, position, limit, now, None).await
    }

    /// The same, without the documents that are not wanted.
    #[expect(clippy::too_many_arguments, reason = "they are those of a scan, and one more")]
    pub async fn scan_where(
        &self,
        container: &Container,
        access: &Access,
        direction: Direction,
        position: Option<Position>,
        limit: PageLimit,
        now: Timestamp,
        wanted: Option<Wanted<'_>>,
    ) -> Result<ScanPage> {
        let opened = self.open(container, access, now).await?;
        let wide = opened.wide_page(access, direction, position.as_ref(), limit, wanted).await?;
        let (page, next) = match wide {
            Some(walked) => walked,
            None => {
                let mut walk = Walk { wanted, ..opened.walk(access, direction) };
                if let (Some(Wanted::Document(_)), None) = (wanted, &position) {
                    walk.entries_max = FIRST_ENTRIES;
                }
                walk.page(position, limit, true).await?
            }
        };
        self.check_current(&opened.container).await?;
        let found = page.found.into_iter().filter_map(|row| {
            let Content::Record(record) = row.content else { return None };
            Some(Found { slot: row.slot, record, document: row.document, place: row.place })
        });
        let (scanned, refused, refused_bytes) = (page.scanned, page.refused, page.refused_bytes);
        Ok(ScanPage { found: found.collect(), next, scanned, refused, refused_bytes })
    }

    /// One page of the entries of an index on which the caller may rely. Entries in a row that say the same
    /// are one if `merged` says so.
    #[expect(clippy::too_many_arguments, reason = "they are those of a scan, and one more")]
    pub async fn scan_entries(
        &self,
        container: &Container,
        access: &IndexAccess,
        direction: Direction,
        position: Option<Position>,
        limit: PageLimit,
        now: Timestamp,
        merged: Merged,
    ) -> Result<EntryPage> {
        if access.relies == Reliance::Nothing {
            return Err(Error::internal("entries of an index that may lack some"));
        }
        let (looks_up, across) = (!access.also.is_empty(), access.across);
        let access = Access::Index(access.clone());
        let opened = self.open(container, &access, now).await?;
        // What is looked up for each document keeps documents apart, and so do the entries of other slots
        // between them.
        let is_apart = looks_up || across == Across::InOrder;
        let merged = if is_apart { Merged::No } else { merged };
        let walk = Walk { merged, ..opened.walk(&access, direction) };
        let (page, next) = walk.page(position, limit, false).await?;
        self.check_current(&opened.container).await?;
        Ok(EntryPage { entries: page.found, next, scanned: page.scanned })
    }

    async fn open(&self, container: &Container, access: &Access, now: Timestamp) -> Result<Opened> {
        let snapshot = self.store().snapshot().await?;
        // After the snapshot: the entries of an index policy that has been replaced since the caller looked
        // may be gone already, while one that came after the snapshot only finds its index not built yet.
        // Likewise a document that does not fit the coverage is written after the coverage.
        let container = self.reload(container)?;
        if let Access::Index(access) = access {
            access.check(&container)?;
        }
        let cuts = container.ttl().cuts(now);
        // Bytes in memory or in files are not there sooner for being asked for together.
        let width = if self.is_shared() { WIDTH_MAX } else { 1 };
        Ok(Opened { snapshot, container, cuts, width })
    }
}

/// A moment of the store, and of the container.
struct Opened {
    snapshot: Arc<dyn Snapshot>,
    container: Arc<Container>,
    cuts: Cuts,
    /// How many slots are asked at once.
    width: usize,
}

impl Opened {
    fn walk<'a>(&'a self, access: &'a Access, direction: Direction) -> Walk<'a> {
        let (cuts, snapshot) = (&self.cuts, &*self.snapshot);
        Walk {
            container: &self.container,
            access,
            direction,
            cuts,
            snapshot,
            wanted: None,
            merged: Merged::No,
            entries_max: walk::ENTRIES_MAX,
            width: self.width,
        }
    }
}
