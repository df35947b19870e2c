//! Walks over a collection: by `_id`, or along one of its indexes.
//!
//! Documents come in the order of `_id` or of the index. A walk may give more than was asked for, never less, and the
//! same document again where an array has several items in the range; the language above filters exactly.

use std::{collections::HashSet, ops::Bound};

use mayfly_storage::store::{Direction, KeyRange, PageLimit, Snapshot, prefix_end};

use crate::{
    clock::Timestamp,
    collection,
    container::Container,
    engine::Engine,
    error::{Error, Result},
    index::read_secondary_value,
    keys::{DocumentId, DocumentKey, Family, PREFIX_LEN},
    record::Record,
    view::View,
};

/// How often a page is walked again because another node has changed the collection under it.
const ATTEMPTS_MAX: usize = 10;

/// Which documents could matter.
#[derive(Clone, Debug)]
pub enum CollectionRange {
    /// Those with an `_id` in a range.
    Ids {
        /// Lower end.
        low: Bound<DocumentId>,
        /// Upper end.
        high: Bound<DocumentId>,
    },
    /// Those with an entry in a range of an index.
    Index {
        /// The index.
        number: u32,
        /// Lower end, as `secondary::encode_bound` writes values.
        low: Bound<Vec<u8>>,
        /// Upper end.
        high: Bound<Vec<u8>>,
    },
}

impl CollectionRange {
    /// All documents.
    pub fn all() -> Self {
        Self::Ids { low: Bound::Unbounded, high: Bound::Unbounded }
    }

    /// The entries of an index that begin with these values.
    pub fn beginning_with(number: u32, values: Vec<u8>) -> Self {
        Self::Index { number, low: Bound::Included(values.clone()), high: Bound::Included(values) }
    }
}

/// A page of a walk.
#[derive(Debug, Default)]
pub struct CollectionPage {
    /// Living documents, with their ids.
    pub found: Vec<(DocumentId, Record)>,
    /// Where to go on; `None` at the end.
    pub next: Option<Vec<u8>>,
    /// Entries looked at.
    pub scanned: usize,
}

/// The most entries one page looks at, whatever it returns.
const ENTRIES_MAX: usize = 10_000;

impl Engine {
    /// One page of a collection's documents in a range, from `after` on.
    #[expect(
        clippy::too_many_arguments,
        reason = "each says another thing about the walk, and two callers exist"
    )]
    pub async fn walk_collection(
        &self,
        container: &Container,
        range: &CollectionRange,
        direction: Direction,
        after: Option<&[u8]>,
        limit: PageLimit,
        view: Option<&View>,
        now: Timestamp,
    ) -> Result<CollectionPage> {
        if let Some(view) = view {
            // It has a moment of its own.
            let container = self.reload(container)?;
            return walk(&*view.snapshot, &container, range, direction, after, limit, view.now).await;
        }
        for _ in 0..ATTEMPTS_MAX {
            let snapshot = self.store().snapshot().await?;
            let container = self.reload(container)?;
            let page = walk(&*snapshot, &container, range, direction, after, limit, now).await?;
            if !self.is_behind(&container) {
                return Ok(page);
            }
            self.renewed(&container).await?;
        }
        Err(Error::Contention)
    }

    /// Whether some `_id` of a collection does not stand where its value belongs in the order of values.
    pub async fn has_ids_out_of_order(&self, container: &Container, view: Option<&View>) -> Result<bool> {
        let partition = container.locate(&collection::whole())?;
        let long = DocumentId::value(bson::RawBsonRef::String(&"x".repeat(4096)));
        let mut range = partition.shard.range(Family::Record, &[]);
        let prefix = DocumentKey::new(&partition.hash, &long);
        let tag = prefix.as_bytes().len() - long.as_bytes().len() + 1;
        range.start.extend_from_slice(&prefix.as_bytes()[..tag]);
        range.end = prefix_end(&range.start);
        let snapshot = match view {
            Some(view) => view.snapshot.clone(),
            None => self.store().snapshot().await?,
        };
        let page = snapshot.scan(&range, Direction::Forward, PageLimit { rows: 1, bytes: 1 }).await?;
        Ok(!page.rows.is_empty())
    }
}

pub(crate) fn key_range(container: &Container, range: &CollectionRange) -> Result<KeyRange> {
    let partition = container.locate(&collection::whole())?;
    let (whole, low, high) = match range {
        CollectionRange::Ids { low, high } => {
            let mut whole = partition.shard.range(Family::Record, &[]);
            // Up to where the ids begin.
            let hash = DocumentKey::new(&partition.hash, &DocumentId::text(""));
            whole.start.extend_from_slice(&hash.as_bytes()[..hash.as_bytes().len() - 1]);
            let bytes = |bound: &Bound<DocumentId>| bound.as_ref().map(|id| id.as_bytes().to_vec());
            // An id is the end of its key: what is above it begins just after, not after all that begin with it.
            let low = match bytes(low) {
                Bound::Excluded(id) => Bound::Included([&id[..], &[0]].concat()),
                other => other,
            };
            let high = match bytes(high) {
                Bound::Included(id) => Bound::Excluded([&id[..], &[0]].concat()),
                other => other,
            };
            (whole, low, high)
        }
        CollectionRange::Index { number, low, high } => {
            let whole = partition.shard.range(Family::Secondary, &number.to_be_bytes());
            (whole, low.clone(), high.clone())
        }
    };
    let at = |bytes: &[u8]| [&whole.start[..], bytes].concat();
    let start = match low {
        Bound::Included(bytes) => at(&bytes),
        Bound::Excluded(bytes) => prefix_end(&at(&bytes)).unwrap_or_default(),
        Bound::Unbounded => whole.start.clone(),
    };
    let end = match high {
        Bound::Included(bytes) => prefix_end(&at(&bytes)),
        Bound::Excluded(bytes) => Some(at(&bytes)),
        Bound::Unbounded => prefix_end(&whole.start),
    };
    Ok(KeyRange { start, end, ..whole })
}

/// One page of a collection as a snapshot has it, by the rules of `container`.
async fn walk(
    snapshot: &dyn Snapshot,
    container: &Container,
    range: &CollectionRange,
    direction: Direction,
    after: Option<&[u8]>,
    limit: PageLimit,
    now: Timestamp,
) -> Result<CollectionPage> {
    let cuts = container.ttl().cuts(now);
    let partition = container.locate(&collection::whole())?;
    let shard = partition.shard;
    let mut keys = key_range(container, range)?;
    if let Some(after) = after {
        match direction {
            Direction::Forward => keys.start = [after, &[0]].concat(),
            Direction::Reverse => keys.end = Some(after.to_vec()),
        }
    }
    let mut page = CollectionPage::default();
    let mut bytes = 0;
    let mut seen = HashSet::new();
    // All documents of a collection have the same hash, so their ids begin at the same place.
    let id_at = PREFIX_LEN + DocumentKey::before_id(&partition.hash);
    while !keys.is_empty() {
        let room = PageLimit {
            rows: limit.rows.saturating_sub(page.found.len()).clamp(1, ENTRIES_MAX),
            bytes: limit.bytes.saturating_sub(bytes).max(1),
        };
        let rows = snapshot.scan(&keys, direction, room).await?;
        page.scanned += rows.rows.len();
        let last = rows.rows.last().map(|(key, _)| key.to_vec());
        match range {
            CollectionRange::Ids { .. } => {
                for (key, value) in rows.rows {
                    let record = Record::decode(value)?;
                    if cuts.is_live(&record.life) {
                        bytes += record.size() as usize;
                        page.found.push((DocumentId::from_key(&key, id_at)?, record));
                    }
                }
            }
            CollectionRange::Index { .. } => {
                let mut wanted = Vec::new();
                for (_, value) in &rows.rows {
                    let (document, life) = read_secondary_value(value)?;
                    if cuts.is_live(&life) && seen.insert(document.clone()) {
                        wanted.push(document);
                    }
                }
                let records: Vec<_> = wanted.iter().map(|document| shard.record(document)).collect();
                for (document, found) in wanted.into_iter().zip(snapshot.get_many(&records).await?) {
                    let found = found.ok_or(Error::Corrupt("an index entry has no record"))?;
                    let record = Record::decode(found)?;
                    bytes += record.size() as usize;
                    page.found.push((document.parts()?.1, record));
                }
            }
        }
        let Some(last) = last.filter(|_| rows.more) else { return Ok(page) };
        let full = page.found.len() >= limit.rows || bytes >= limit.bytes;
        if full || page.scanned >= ENTRIES_MAX {
            page.next = Some(last);
            return Ok(page);
        }
        match direction {
            Direction::Forward => keys.start = [&last[..], &[0]].concat(),
            Direction::Reverse => keys.end = Some(last),
        }
    }
    Ok(page)
}
