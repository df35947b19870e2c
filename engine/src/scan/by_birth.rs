//! Documents of a slot in the order in which they were made, where they are few.
//!
//! Records lie by hash and id, and index entries by value. A client that asks for no order still expects the
//! service's: by `_rid`, which is the order of birth. So a slot with few documents, or a walk that meets few,
//! is read whole and sorted; a page keeps the lowest births after the one where the page before ended. A walk
//! that meets many keeps its own order.
//!
//! Holds: the first page of a slot decides, and the position tells the following ones, so that all pages of a
//! slot have one order. A page of births is one snapshot and one `now`.

use mayfly_storage::store::{Direction, PageLimit};

use super::{
    Content, DocumentFilter, Entry, Found, Opened, ScanPage, Wanted,
    state::counter,
    walk::{Page, Walk},
};
use crate::{
    access::{Access, HashRange, IndexAccess},
    clock::Timestamp,
    container::Container,
    engine::Engine,
    error::{Error, Result},
    keys::{Family, Shard},
    position::{After, Position},
    record::Birth,
};

/// Documents of a slot that is sorted whole. Every page walks over all of them: with so many and pages of a
/// hundred, a client that reads all of them waits about three times as long as for a walk by key, and with
/// five times as many it would wait seven.
const SLOT_DOCUMENTS_MAX: i64 = 2000;

/// And their bytes.
const SLOT_BYTES_MAX: i64 = 16 << 20;

/// Rows of a part of a larger slot that are sorted: looking for one more than these takes less than a
/// millisecond. Also where rows come from a server, which takes longer for each.
const PART_ROWS_MAX: usize = 500;

/// Rows of a walk that are read at a time.
const ROWS: usize = 1024;

impl Engine {
    /// One page of living documents of one slot, by birth: those after `position`, or of the first slot of
    /// `access`.
    ///
    /// None if the position is not one of a walk by birth: it is in the middle of another walk, or at the
    /// start of a slot where `access` meets too many documents to sort them.
    pub async fn scan_by_birth(
        &self,
        container: &Container,
        access: &Access,
        position: Option<&Position>,
        limit: PageLimit,
        now: Timestamp,
        filter: Option<DocumentFilter<'_>>,
    ) -> Result<Option<ScanPage>> {
        let after = match position.map(|position| &position.after) {
            None | Some(After::Start) => None,
            Some(After::Birth(birth, again)) => Some((*birth, *again)),
            Some(_) => return Ok(None),
        };
        let opened = self.open(container, access, now).await?;
        let slots = access.within().slots(&opened.container);
        let slot = match (position, slots.first()) {
            (Some(position), _) if slots.contains(&position.slot) => position.slot,
            (Some(_), _) => return Err(Error::BadContinuation),
            (None, Some(first)) => *first,
            (None, None) => return Ok(None),
        };
        let records = Access::Records(access.within().clone());
        let access = match opened.few(access, slot, self.is_shared()).await? {
            Some(Few::OfAccess) => access,
            Some(Few::OfSlot) => &records,
            // There were fewer when the walk began, and its order is kept.
            None if after.is_some() => &records,
            None => return Ok(None),
        };
        let wanted = filter.map(Wanted::Document);
        let walk = Walk { wanted, ..opened.walk(access, Direction::Forward) };
        let mut lowest = Lowest { after, limit, found: Vec::new(), bytes: 0, has_more: false };
        let mut at = Some(Position::start_of(slot));
        let (mut scanned, mut refused, mut refused_bytes) = (0, 0, 0);
        while let Some(from) = at {
            let (page, next) = walk.slot(from, PageLimit { rows: ROWS, bytes: usize::MAX }, true).await?;
            let Page { found, .. } = page;
            scanned += page.scanned;
            refused += page.refused;
            refused_bytes += page.refused_bytes;
            found.into_iter().for_each(|entry| lowest.take(entry));
            at = next;
        }
        self.check_current(&opened.container).await?;
        let (found, has_more) = lowest.sorted();
        let behind = slots.iter().find(|other| **other > slot).map(|slot| Position::start_of(*slot));
        let next = match found.last() {
            Some(last) if has_more => Some(last.position()),
            _ => behind,
        };
        Ok(Some(ScanPage { found, next, scanned, refused, refused_bytes }))
    }

    /// One page of all living documents in a range of hashes: slot after slot, each by birth where it has
    /// few.
    pub async fn list(
        &self,
        container: &Container,
        within: &HashRange,
        mut position: Option<Position>,
        limit: PageLimit,
        now: Timestamp,
    ) -> Result<ScanPage> {
        let access = Access::Records(within.clone());
        let mut page = ScanPage { found: Vec::new(), next: None, scanned: 0, refused: 0, refused_bytes: 0 };
        let mut bytes = 0;
        loop {
            let room = PageLimit { rows: limit.rows - page.found.len(), bytes: limit.bytes - bytes };
            let by_birth = self.scan_by_birth(container, &access, position.as_ref(), room, now, None).await?;
            let mut part = match by_birth {
                Some(part) => part,
                None => self.scan(container, &access, Direction::Forward, position, room, now).await?,
            };
            // What follows in another slot has an order of its own.
            if let Some(slot) = part.found.first().map(|found| found.slot)
                && let Some(end) = part.found.iter().position(|found| found.slot != slot)
            {
                part.next = Some(Position::start_of(part.found[end].slot));
                part.found.truncate(end);
            }
            bytes += part.found.iter().map(|found| found.record.size() as usize).sum::<usize>();
            page.scanned += part.scanned;
            page.found.extend(part.found);
            position = part.next;
            if position.is_none() || page.found.len() >= limit.rows || bytes >= limit.bytes {
                return Ok(ScanPage { next: position, ..page });
            }
        }
    }
}

/// Which documents are few enough to be sorted.
enum Few {
    /// Those that the access path leads to.
    OfAccess,
    /// All of the scope.
    OfSlot,
}

impl Opened {
    /// What is few enough in a slot; none if nothing is.
    async fn few(&self, access: &Access, slot: u16, is_shared: bool) -> Result<Option<Few>> {
        let shard = self.container.shard(u32::from(slot));
        let is_small = self.is_small(shard, is_shared).await?;
        match access {
            Access::Index(index) if !self.has_many(index, shard).await? => Ok(Some(Few::OfAccess)),
            Access::Records(_) | Access::Index(_) if is_small => Ok(Some(Few::OfSlot)),
            Access::Records(within) if !self.is_within(within, slot) => {
                let walk = self.walk(access, Direction::Forward);
                let limit = PageLimit { rows: PART_ROWS_MAX + 1, bytes: SLOT_BYTES_MAX as usize };
                let walk = Walk { entries_max: PART_ROWS_MAX + 1, ..walk };
                let (_, next) = walk.slot(Position::start_of(slot), limit, true).await?;
                Ok(next.is_none().then_some(Few::OfSlot))
            }
            Access::Records(_) | Access::Index(_) | Access::Writes(_) => Ok(None),
        }
    }

    /// Whether a slot has few documents, those included that have expired and are not purged yet.
    async fn is_small(&self, shard: Shard, is_shared: bool) -> Result<bool> {
        let (mut documents, mut bytes) = (0, 0);
        for family in [Family::Counter, Family::Purged] {
            let tally = counter(&*self.snapshot, shard, family).await?.tally;
            documents += tally[0];
            bytes += tally[1];
        }
        let documents_max = if is_shared { PART_ROWS_MAX as i64 } else { SLOT_DOCUMENTS_MAX };
        Ok(documents <= documents_max && bytes <= SLOT_BYTES_MAX)
    }

    /// Whether all of a slot is in scope.
    fn is_within(&self, within: &HashRange, slot: u16) -> bool {
        let bounds = self.container.definition().partition_key.slot_bounds(self.container.slots());
        let slot = usize::from(slot);
        let starts = bounds.get(slot).is_some_and(|start| within.start.0 <= start.0);
        let ends = match (&within.end, bounds.get(slot + 1)) {
            (None, _) => true,
            (Some(end), Some(next)) => next.0 <= end.0,
            (Some(_), None) => false,
        };
        starts && ends
    }

    /// Whether the index has many entries in the ranges of an access path, or does not have all of them yet.
    async fn has_many(&self, index: &IndexAccess, shard: Shard) -> Result<bool> {
        let state = &self.container.row.index;
        if !state.ready {
            return Ok(true);
        }
        let mut left = PART_ROWS_MAX + 1;
        for range in index.key_ranges(shard, state.epoch) {
            let limit = PageLimit { rows: left, bytes: usize::MAX };
            let page = self.snapshot.scan(&range, Direction::Forward, limit).await?;
            left -= page.rows.len().min(left);
            if left == 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The documents of the lowest births, as many as a page has room for.
struct Lowest {
    after: Option<(Birth, bool)>,
    limit: PageLimit,
    found: Vec<Found>,
    bytes: usize,
    has_more: bool,
}

impl Lowest {
    fn take(&mut self, entry: Entry) {
        let Content::Record(record) = entry.content else { return };
        let is_given = |(birth, again): (Birth, bool)| match again {
            true => record.birth < birth,
            false => record.birth <= birth,
        };
        if self.after.is_some_and(is_given) {
            return;
        }
        self.bytes += record.size() as usize;
        let mut place = entry.place;
        place.birth = Some(record.birth);
        self.found.push(Found { slot: entry.slot, record, document: entry.document, place });
        // Now and then, so that no more is kept than twice of what is wanted.
        if self.found.len() >= self.limit.rows.saturating_mul(2).max(ROWS)
            || (self.bytes >= self.limit.bytes.saturating_mul(2) && self.found.len() > 1)
        {
            self.cut();
        }
    }

    /// Leaves the lowest, at least one.
    fn cut(&mut self) {
        self.found.sort_unstable_by_key(|found| found.record.birth);
        let (mut kept, mut bytes) = (0, 0);
        for found in &self.found {
            if kept > 0 && (kept >= self.limit.rows || bytes >= self.limit.bytes) {
                break;
            }
            bytes += found.record.size() as usize;
            kept += 1;
        }
        self.has_more |= kept < self.found.len();
        self.found.truncate(kept);
        self.bytes = bytes;
    }

    fn sorted(mut self) -> (Vec<Found>, bool) {
        self.cut();
        (self.found, self.has_more)
    }
}
