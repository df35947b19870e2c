//! The documents of a query as its access path gives them: records, or what an index holds of them.

use std::{borrow::Cow, sync::Arc};

use bson::{RawDocument, RawDocumentBuf};
use bytes::Bytes;
use mayfly_engine::{
    Access, Container, Content, Direction, DocumentFilter, Engine, Entry, Found, IndexAccess, IndexName,
    Merged, PageLimit, Position, Record, Reliance, ScanPage, Timestamp, Wanted,
};
use mayfly_sql::{Document, PathStep, Place, Plan, Value};
use mayfly_value::keycode::DecodedValue;

use super::{
    access::{AccessPlan, Reading},
    part::{PartFilter, Sieve, part},
    spans,
};
use crate::{
    collection,
    error::ApiError,
    resource::{SYSTEM_PROPERTIES, SystemProperties},
};

/// Entries looked at for one page where few come of many: as many as a store reads at once without leaving
/// its thread.
const ALIKE_ROWS: usize = 1024;

/// Where a query's documents come from.
pub struct Source<'a> {
    pub engine: &'a Engine,
    pub container: &'a Arc<Container>,
    pub plan: &'a AccessPlan,
    pub now: Timestamp,
    /// What the server adds to documents, if the query reads it.
    pub system: Option<SystemProperties<'a>>,
    /// What tells by an entry of the index that its document is not wanted.
    pub entry_filter: Option<PartFilter<'a>>,
    /// What tells so by the document alone.
    pub filter: Option<Sieve<'a>>,
    /// Whether entries that say the same come as one.
    pub merged: Merged,
}

/// A document on its way to the query.
pub struct Item {
    /// Orders documents that the query does not.
    pub tie: Bytes,
    /// How many documents it stands for.
    pub times: u64,
    origin: Origin,
}

enum Origin {
    Found(Found),
    /// A document of a collection, and the item that it is shown as.
    Shown(Found, RawDocumentBuf),
    /// The values of an entry, as a document that has only them.
    Part(Entry, RawDocumentBuf),
    /// A document that its entry does not say all about.
    Whole(Entry, Record),
}

/// Some documents, and where to go on.
pub struct Items {
    pub items: Vec<Item>,
    pub next: Option<Position>,
    /// Entries or documents that the walk came by.
    pub walked: usize,
    /// Documents that were looked at and give no rows.
    pub refused: usize,
    /// Their bytes.
    pub refused_bytes: usize,
}

impl Item {
    /// A document that was found without a walk.
    pub fn of(found: Found) -> Self {
        Self { tie: found.document.clone(), times: 1, origin: Origin::Found(found) }
    }

    /// The slot it is in.
    pub fn slot(&self) -> u16 {
        match &self.origin {
            Origin::Found(found) | Origin::Shown(found, _) => found.slot,
            Origin::Part(entry, _) | Origin::Whole(entry, _) => entry.slot,
        }
    }

    /// Where to go on after it.
    pub fn position(&self) -> Position {
        match &self.origin {
            Origin::Found(found) | Origin::Shown(found, _) => found.position(),
            Origin::Part(entry, _) | Origin::Whole(entry, _) => entry.position(),
        }
    }

    pub fn size(&self) -> usize {
        self.body().as_bytes().len()
    }

    fn record(&self) -> Option<&Record> {
        match &self.origin {
            Origin::Found(found) | Origin::Shown(found, _) => Some(&found.record),
            Origin::Whole(_, record) => Some(record),
            Origin::Part(..) => None,
        }
    }

    pub fn body(&self) -> &RawDocument {
        match &self.origin {
            Origin::Part(_, part) | Origin::Shown(_, part) => part,
            Origin::Found(Found { record, .. }) | Origin::Whole(_, record) => record.body(),
        }
    }
}

impl Source<'_> {
    /// Whether each document that is pulled is a row of `plan` as it is.
    pub fn gives_rows(&self, plan: &Plan) -> bool {
        let is_sifted = self.filter.as_ref().map_or(!plan.filters(), Sieve::is_exact);
        is_sifted && plan.gives_documents()
    }

    /// The next documents from `position` on that may give rows.
    pub async fn pull(&self, position: Option<Position>, limit: PageLimit) -> Result<Items, ApiError> {
        // A long query lets others have their turn: nothing below waits for anything, as a rule.
        if position.is_some() {
            tokio::task::yield_now().await;
        }
        let AccessPlan { access, direction, reading, .. } = self.plan;
        if let (Reading::Entries(paths) | Reading::Ends(paths), Access::Index(index)) = (reading, access) {
            let items = self.entries(index, *direction, position, limit, paths).await?;
            return Ok(self.sifted(items));
        }
        let by_entry =
            self.entry_filter.as_ref().map(|filter| |values: &[DecodedValue]| filter.keeps(values));
        let by_document = self.filter.as_ref().map(|filter| |body: &RawDocument| filter.passes(body));
        // Only a walk along the documents meets those that lie together.
        let is_walk = matches!(access, Access::Records(_));
        let hunt = self.filter.as_ref().filter(|_| is_walk).and_then(Sieve::hunt);
        let may_be_in = hunt.as_ref().map(|hunt| |bytes: &[u8]| hunt.may_succeed(bytes));
        // A document of a collection is not what is stored, but what is shown of it.
        let is_stored = !self.container.is_collection();
        let wanted = match (&by_entry, &by_document) {
            (Some(is_wanted), _) if is_stored => Some(Wanted::Entry(is_wanted)),
            (None, Some(passes)) if is_stored => {
                let may_be_in = may_be_in.as_ref().map(|may_be_in| may_be_in as _);
                Some(Wanted::Document(DocumentFilter { passes, may_be_in }))
            }
            _ => None,
        };
        let is_sifted = matches!(wanted, Some(Wanted::Document(_)));
        let (engine, container) = (self.engine, self.container);
        let page =
            engine.scan_where(container, access, *direction, position, limit, self.now, wanted).await?;
        let items = self.items(page)?;
        Ok(if is_sifted { items } else { self.sifted(items) })
    }

    /// The same for a client that asks for no order: by birth where the documents of a slot are few, at most
    /// `births` of them. Each such page is a walk over the slot, so it should be large.
    pub async fn pull_unordered(
        &self,
        position: Option<Position>,
        limit: PageLimit,
        births: PageLimit,
    ) -> Result<Items, ApiError> {
        let by_document = self.filter.as_ref().map(|filter| |body: &RawDocument| filter.passes(body));
        let hunt = self.filter.as_ref().and_then(Sieve::hunt);
        let may_be_in = hunt.as_ref().map(|hunt| |bytes: &[u8]| hunt.may_succeed(bytes));
        let is_sifted = !self.container.is_collection();
        let filter = by_document.as_ref().filter(|_| is_sifted).map(|passes| DocumentFilter {
            passes,
            may_be_in: may_be_in.as_ref().map(|may_be_in| may_be_in as _),
        });
        let (engine, container, access) = (self.engine, self.container, &self.plan.access);
        let at = position.as_ref();
        match engine.scan_by_birth(container, access, at, births, self.now, filter).await? {
            Some(page) => {
                let items = self.items(page)?;
                Ok(if is_sifted { items } else { self.sifted(items) })
            }
            None => self.pull(position, limit).await,
        }
    }

    fn items(&self, page: ScanPage) -> Result<Items, ApiError> {
        let by_write = matches!(self.plan.access, Access::Writes(_));
        let mut items = Vec::with_capacity(page.found.len());
        for found in page.found {
            let tie = match by_write {
                true => write_tie(&found.record),
                false => found.document.clone(),
            };
            let origin = match collection::shown(self.container, &found.record)? {
                Cow::Borrowed(_) => Origin::Found(found),
                Cow::Owned(item) => Origin::Shown(found, item),
            };
            items.push(Item { tie, times: 1, origin });
        }
        let (walked, refused, refused_bytes) = (page.scanned, page.refused, page.refused_bytes);
        Ok(Items { items, next: page.next, walked, refused, refused_bytes })
    }

    /// Without those that the filter refuses.
    fn sifted(&self, mut items: Items) -> Items {
        if let Some(filter) = &self.filter {
            items.items.retain(|item| {
                let passes = filter.passes(item.body());
                if !passes {
                    items.refused += item.times as usize;
                    items.refused_bytes += item.size();
                }
                passes
            });
        }
        items
    }

    /// The first and the last entry that are alive: no other can be the lowest or the highest.
    pub async fn ends(&self) -> Result<Vec<Item>, ApiError> {
        let (Reading::Ends(paths), Access::Index(index)) = (&self.plan.reading, &self.plan.access) else {
            return Err(ApiError::internal());
        };
        let mut ends = Vec::new();
        for direction in [Direction::Forward, Direction::Reverse] {
            let mut position = None;
            loop {
                let limit = PageLimit { rows: 1, bytes: usize::MAX };
                let found = self.entries(index, direction, position, limit, paths).await?;
                ends.extend(found.items);
                position = found.next;
                if position.is_none() || ends.len() > usize::from(direction == Direction::Reverse) {
                    break;
                }
            }
        }
        Ok(ends)
    }

    async fn entries(
        &self,
        index: &IndexAccess,
        direction: Direction,
        position: Option<Position>,
        limit: PageLimit,
        paths: &[Vec<String>],
    ) -> Result<Items, ApiError> {
        let (engine, merged) = (self.engine, self.merged);
        let rows =
            if merged == Merged::Alike && limit.rows > 1 { limit.rows.max(ALIKE_ROWS) } else { limit.rows };
        let limit = PageLimit { rows, ..limit };
        let page =
            engine.scan_entries(self.container, index, direction, position, limit, self.now, merged).await?;
        let mut items = Vec::with_capacity(page.entries.len());
        for mut entry in page.entries {
            let content = entry.take_content();
            let (tie, times) = (entry.document.clone(), entry.times);
            let origin = match content {
                Content::Record(record) => Origin::Whole(entry, record),
                Content::Values(values) => Origin::Part(entry, part(paths, &values)),
            };
            items.push(Item { tie, times, origin });
        }
        Ok(Items { items, next: page.next, walked: page.scanned, refused: 0, refused_bytes: 0 })
    }

    /// Gives `take` the document that an item stands for.
    pub fn with_document<T>(&self, item: &Item, take: impl FnOnce(&Document<'_>) -> T) -> T {
        match (item.record(), &self.system) {
            (Some(record), Some(system)) => {
                let system = system.of(item.slot(), record);
                let system = system.each_ref().map(|(name, value)| (*name, value.borrow()));
                take(&Document { body: item.body(), system: &system })
            }
            _ => take(&Document { body: item.body(), system: &[] }),
        }
    }

    /// Appends the document that an item stands for, where that is a row as it is.
    pub fn write_row(&self, item: &Item, out: &mut Vec<u8>) {
        let is_written = match (item.record(), &self.system) {
            (Some(record), Some(system)) => system.push_row(item.slot(), record, item.body(), out),
            _ => false,
        };
        if !is_written {
            self.with_document(item, |document| document.as_value().write_json(out));
        }
    }

    /// The position at the document of a place, in a walk that serves the query's order.
    pub fn position_of(&self, place: &Place) -> Option<Position> {
        let slot = *access_slots(self.container, &self.plan.access).first()?;
        // The tie ends with the number of the row.
        let document = place.tie.get(..place.tie.len().checked_sub(4)?)?;
        match &self.plan.access {
            Access::Writes(_) => {
                let (lsn, ordinal) = document.split_first_chunk()?;
                let ordinal = u16::from_be_bytes(ordinal.try_into().ok()?);
                Some(Position::at_write(slot, u64::from_be_bytes(*lsn), ordinal))
            }
            Access::Index(index) => {
                let (Reliance::Complete { epoch } | Reliance::Covered { epoch }) = index.relies else {
                    return None;
                };
                let value = self.entry_value(index, place)?;
                Some(Position::at_entry(slot, &index.index, epoch, &value, document))
            }
            Access::Records(_) => None,
        }
    }

    /// The values of an entry with these sort keys: those before are fixed by the range.
    fn entry_value(&self, index: &IndexAccess, place: &Place) -> Option<Vec<u8>> {
        let IndexName::Composite(number) = index.index else {
            let [key] = &place.keys[..] else { return None };
            return spans::key_bytes(key);
        };
        let parts = self.container.composite_indexes().nth(usize::from(number))?;
        let fixed = parts.len().checked_sub(place.keys.len())?;
        let mut value = match (&index.ranges[..], fixed) {
            (_, 0) => Vec::new(),
            ([range], _) => range.prefix(fixed)?,
            _ => return None,
        };
        for ((_, descending), key) in parts.iter().skip(fixed).zip(&place.keys) {
            let bytes = spans::key_bytes(key)?;
            value.extend(bytes.iter().map(|byte| if *descending { !*byte } else { *byte }));
        }
        Some(value)
    }
}

/// The slots that an access path leads through, in order.
pub fn access_slots(container: &Container, access: &Access) -> Vec<u16> {
    match access {
        Access::Records(within) | Access::Writes(within) => within.slots(container),
        Access::Index(index) => index.within.slots(container),
    }
}

/// Writes are in the order of their commits.
fn write_tie(record: &Record) -> Bytes {
    [&record.lsn.to_be_bytes()[..], &record.ordinal.to_be_bytes()].concat().into()
}

/// The filter on its own, if it is not about what the server adds to documents.
pub fn prefilter<'p>(plan: &'p Plan, now: Timestamp) -> Option<Sieve<'p>> {
    let reads = plan.hints().filter_reads.as_ref()?;
    if reads.iter().any(|path| is_system(path)) {
        return None;
    }
    Sieve::new(|| plan.prefilter(mayfly_sql::Context::new(now.0 as i64, now.0)))
}

/// Whether a query reads what the server adds to documents.
pub fn reads_system(plan: &Plan) -> bool {
    plan.hints().reads.as_ref().is_none_or(|reads| reads.iter().any(|path| is_system(path)))
}

pub fn is_system(path: &[PathStep]) -> bool {
    matches!(path.first(), Some(PathStep::Name(name)) if SYSTEM_PROPERTIES.contains(&name.as_str()))
}

/// A value as it is written in answers.
pub fn text_of(row: &Value<'_>) -> Vec<u8> {
    let mut text = Vec::new();
    row.write_json(&mut text);
    text
}
