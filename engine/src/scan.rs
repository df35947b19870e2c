//! Walks over living documents, page by page, resumable.
//!
//! A scan visits the container's slots one after the other; inside a slot it goes in the order of its access path. It
//! may give more than was asked for, never less: the language above filters exactly. Every page is one snapshot and
//! one `now`; the position it leaves is a few bytes that any process can go on from.
//!
//! An index that is not whole (being built, or lazy) is followed by a second leg over the feed, so an answer is never
//! wrong, only slower. Which documents belong to which leg is settled when the scan comes to a slot, by their commits,
//! and stays so while the index is built further between two pages.

use std::ops::Bound;

use mayfly_storage::store::{Counter, Direction, KeyRange, PageLimit, Snapshot, prefix_end};
use mayfly_value::{keycode, partition::Epk};

use crate::{
    clock::Timestamp,
    container::Container,
    engine::Engine,
    error::{Error, Result},
    keys::{DocumentKey, Family, PREFIX_LEN, Shard, be_u64},
    record::{FeedEntry, Record},
    ttl::{Cuts, Life},
};

/// Effective partition keys in `start..end`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HashRange {
    /// Inclusive.
    pub start: Epk,
    /// Exclusive; `None` is past every key.
    pub end: Option<Epk>,
}

impl HashRange {
    /// All of them.
    pub fn all() -> Self {
        Self { start: Epk(Vec::new()), end: None }
    }

    /// Exactly one: a logical partition.
    pub fn one(hash: &Epk) -> Self {
        let end = [&hash.0[..], &[0]].concat();
        Self { start: hash.clone(), end: Some(Epk(end)) }
    }

    /// Whether `hash` is inside.
    pub fn contains(&self, hash: &Epk) -> bool {
        hash.0 >= self.start.0 && self.end.as_ref().is_none_or(|end| hash.0 < end.0)
    }

    fn is_all(&self) -> bool {
        self.start.0.is_empty() && self.end.is_none()
    }

    /// The slots of `container` that may hold such keys.
    pub fn slots(&self, container: &Container) -> Vec<u16> {
        let bounds = container.definition().partition_key.slot_bounds(container.slots());
        let overlaps = |slot: &usize| {
            let below_end = self.end.as_ref().is_none_or(|end| bounds[*slot].0 < end.0);
            let above_start = bounds.get(slot + 1).is_none_or(|next| self.start.0 < next.0);
            below_end && above_start
        };
        (0..bounds.len()).filter(overlaps).map(|slot| slot as u16).collect()
    }
}

/// Which documents could matter, and in which order.
#[derive(Clone, Debug)]
pub enum Access {
    /// All documents of a range of hashes, by hash and id.
    Records(HashRange),
    /// Documents with a value in a range at an indexed path, by value.
    Index {
        /// The path as the key codec writes it.
        path: Vec<u8>,
        /// Lower end, as the key codec writes values.
        low: Bound<Vec<u8>>,
        /// Upper end.
        high: Bound<Vec<u8>>,
        /// Only these hashes.
        within: HashRange,
    },
}

/// Where a scan stands. Bytes to everybody else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    slot: u16,
    leg: Leg,
    /// Only for an index.
    index: Option<IndexedAtStart>,
    after: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leg {
    Main = 0,
    Unindexed = 1,
}

/// How far a slot's index was when the scan came to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct IndexedAtStart {
    epoch: u32,
    /// Commits after `through` up to `until` are left to the second leg.
    through: u64,
    until: u64,
}

impl IndexedAtStart {
    const LEN: usize = 20;

    fn to_bytes(self) -> Vec<u8> {
        let mut bytes = self.epoch.to_be_bytes().to_vec();
        bytes.extend_from_slice(&self.through.to_be_bytes());
        bytes.extend_from_slice(&self.until.to_be_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let epoch = u32::from_be_bytes(bytes.get(..4)?.try_into().ok()?);
        let (through, until) = (bytes.get(4..12)?, bytes.get(12..Self::LEN)?);
        Some(Self { epoch, through: be_u64(through), until: be_u64(until) })
    }

    fn leaves(&self, lsn: u64) -> bool {
        self.through < lsn && lsn <= self.until
    }
}

/// Set beside the leg when the position is one in an index.
const INDEXED: u8 = 2;

impl Position {
    fn start_of(slot: u16) -> Self {
        Self { slot, leg: Leg::Main, index: None, after: Vec::new() }
    }

    /// For a continuation token.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.slot.to_be_bytes().to_vec();
        bytes.push(self.leg as u8 | if self.index.is_some() { INDEXED } else { 0 });
        bytes.extend(self.index.map(IndexedAtStart::to_bytes).unwrap_or_default());
        bytes.extend_from_slice(&self.after);
        bytes
    }

    /// From a continuation token.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let [high, low, flags @ 0..=3, rest @ ..] = bytes else { return Err(Error::BadContinuation) };
        let (index, after) = match flags & INDEXED {
            0 => (None, rest),
            _ => {
                let index = IndexedAtStart::from_bytes(rest).ok_or(Error::BadContinuation)?;
                (Some(index), &rest[IndexedAtStart::LEN..])
            }
        };
        let leg = if flags & 1 == 0 { Leg::Main } else { Leg::Unindexed };
        Ok(Self { slot: u16::from_be_bytes([*high, *low]), leg, index, after: after.to_vec() })
    }
}

/// A living document and where it was found.
#[derive(Clone, Debug)]
pub struct Found {
    /// The slot.
    pub slot: u16,
    /// The document.
    pub record: Record,
    /// Where to go on after it.
    pub position: Position,
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

/// The most entries one page looks at, whatever it returns.
const ENTRIES_MAX: usize = 10_000;

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
        let snapshot = self.store().snapshot().await?;
        // After the snapshot: the entries of an index policy that has been replaced since the caller looked may be gone
        // already, while one that came after the snapshot only finds its index not built yet.
        let container = &*self.reload(container)?;
        let walk =
            Walk { container, access, direction, cuts: container.ttl().cuts(now), snapshot: &*snapshot };
        walk.page(position, limit).await
    }
}

struct Walk<'a> {
    container: &'a Container,
    access: &'a Access,
    direction: Direction,
    cuts: Cuts,
    snapshot: &'a dyn Snapshot,
}

/// What one row of a walk says.
struct Entry {
    document: DocumentKey,
    /// The record itself, when the row is one.
    record: Option<Record>,
    live: bool,
    /// The row's key, without what all keys of the leg begin with.
    key: Vec<u8>,
}

impl Walk<'_> {
    async fn page(&self, position: Option<Position>, limit: PageLimit) -> Result<ScanPage> {
        let mut slots = self.within().slots(self.container);
        if self.direction == Direction::Reverse {
            slots.reverse();
        }
        let mut at = match position {
            Some(position) if slots.contains(&position.slot) => position,
            Some(_) => return Err(Error::BadContinuation),
            None => match slots.first() {
                Some(slot) => Position::start_of(*slot),
                None => return Ok(ScanPage { found: Vec::new(), next: None, scanned: 0 }),
            },
        };
        let mut page = ScanPage { found: Vec::new(), next: None, scanned: 0 };
        let mut bytes = 0;
        loop {
            self.settle_legs(&mut at).await?;
            let room = PageLimit {
                rows: (limit.rows - page.found.len()).min(ENTRIES_MAX),
                bytes: limit.bytes.saturating_sub(bytes).max(1),
            };
            let more = self.advance(&mut at, room, &mut page, &mut bytes).await?;
            let full = page.found.len() >= limit.rows || bytes >= limit.bytes || page.scanned >= ENTRIES_MAX;
            if !more && !self.next_leg(&mut at, &slots) {
                return Ok(page);
            }
            if full {
                page.next = Some(at);
                return Ok(page);
            }
        }
    }

    /// Decides which documents of a slot belong to which leg, when the scan comes to it.
    async fn settle_legs(&self, at: &mut Position) -> Result<()> {
        let state = &self.container.row.index;
        match (self.access, at.index) {
            (Access::Records(_), None) => Ok(()),
            (Access::Index { .. }, None) => {
                let shard = self.container.shard(u32::from(at.slot));
                let (through, until) = match state.ready {
                    true => (0, 0),
                    false => (
                        indexed_through(self.snapshot, shard, state.epoch).await?,
                        last_commit(self.snapshot, shard).await?,
                    ),
                };
                at.index = Some(IndexedAtStart { epoch: state.epoch, through, until });
                Ok(())
            }
            // Positions in an index mean nothing to the index of another policy.
            (Access::Index { .. }, Some(index)) if index.epoch == state.epoch => Ok(()),
            _ => Err(Error::BadContinuation),
        }
    }

    /// Reads some rows at `at` and moves it; says whether its leg has more.
    async fn advance(
        &self,
        at: &mut Position,
        room: PageLimit,
        page: &mut ScanPage,
        bytes: &mut usize,
    ) -> Result<bool> {
        let shard = self.container.shard(u32::from(at.slot));
        let mut range = self.range(shard, at);
        let prefix = PREFIX_LEN;
        if !at.after.is_empty() {
            let head = range.start.get(..prefix).unwrap_or_default();
            let after = [head, &at.after[..]].concat();
            match self.direction_of(at.leg) {
                Direction::Forward => range.start = range.start.max([&after[..], &[0]].concat()),
                Direction::Reverse => range.end = Some(range.end.map_or(after.clone(), |end| end.min(after))),
            }
        }
        if range.is_empty() {
            return Ok(false);
        }
        let rows = self.snapshot.scan(&range, self.direction_of(at.leg), room).await?;
        page.scanned += rows.rows.len();
        let mut entries = Vec::with_capacity(rows.rows.len());
        for (key, value) in rows.rows {
            at.after = key.get(prefix..).unwrap_or_default().to_vec();
            entries.extend(self.entry(at.leg, &key, value, &at.after)?);
        }
        entries.retain(|entry| entry.live);
        let missing: Vec<_> =
            entries.iter().filter(|e| e.record.is_none()).map(|e| shard.record(&e.document)).collect();
        let mut fetched = self.snapshot.get_many(&missing).await?.into_iter();
        for entry in entries {
            let record = match entry.record {
                Some(record) => record,
                // Entry and record are written together and this is one snapshot of both.
                None => match fetched.next().flatten() {
                    Some(bytes) => Record::decode(bytes)?,
                    None => return Err(Error::Corrupt("an index entry has no record")),
                },
            };
            if at.leg == Leg::Main && at.index.is_some_and(|index| index.leaves(record.lsn)) {
                continue;
            }
            *bytes += record.size() as usize;
            let position = Position { after: entry.key, ..at.clone() };
            page.found.push(Found { slot: at.slot, record, position });
        }
        Ok(rows.more)
    }

    fn entry(&self, leg: Leg, key: &[u8], value: bytes::Bytes, after: &[u8]) -> Result<Option<Entry>> {
        const DAMAGED: Error = Error::Corrupt("an index entry cannot be read");
        let (entry, hash_checked) = match (leg, self.access) {
            (Leg::Unindexed, _) => {
                let entry = FeedEntry::decode(&value)?;
                let live = self.cuts.is_live(&entry.life);
                (Entry { document: entry.document, record: None, live, key: after.to_vec() }, false)
            }
            (Leg::Main, Access::Records(_)) => {
                let record = Record::decode(value)?;
                let live = self.cuts.is_live(&record.life);
                let document = DocumentKey::from_tail(key.get(PREFIX_LEN..).ok_or(DAMAGED)?)?;
                (Entry { document, record: Some(record), live, key: after.to_vec() }, true)
            }
            (Leg::Main, Access::Index { path, .. }) => {
                let rest = key.get(PREFIX_LEN + 4 + path.len()..).ok_or(DAMAGED)?;
                let value_len = keycode::skip_value(rest)?;
                let document = DocumentKey::from_tail(rest.get(value_len..).ok_or(DAMAGED)?)?;
                let (life, _) = Life::decode(&value).ok_or(DAMAGED)?;
                let live = self.cuts.is_live(&life);
                (Entry { document, record: None, live, key: after.to_vec() }, false)
            }
        };
        if !hash_checked && !self.within().is_all() && !self.within().contains(&entry.document.parts()?.0) {
            return Ok(None);
        }
        Ok(Some(entry))
    }

    fn next_leg(&self, at: &mut Position, slots: &[u16]) -> bool {
        at.after.clear();
        if at.leg == Leg::Main && at.index.is_some_and(|index| index.through < index.until) {
            at.leg = Leg::Unindexed;
            return true;
        }
        let place = slots.iter().position(|slot| *slot == at.slot);
        match place.and_then(|place| slots.get(place + 1)) {
            Some(slot) => {
                *at = Position::start_of(*slot);
                true
            }
            None => false,
        }
    }

    fn range(&self, shard: Shard, at: &Position) -> KeyRange {
        match (at.leg, self.access) {
            (Leg::Unindexed, _) => {
                let (through, until) = at.index.map_or((0, 0), |index| (index.through, index.until));
                let whole = shard.range(Family::Feed, &[]);
                let bound = |lsn: u64| [&whole.start[..], &lsn.saturating_add(1).to_be_bytes()].concat();
                KeyRange { start: bound(through), end: Some(bound(until)), ..whole }
            }
            (Leg::Main, Access::Records(hashes)) => {
                let mut range = shard.range(Family::Record, &[]);
                let prefix = range.start.clone();
                keycode::push_bytes(&mut range.start, &hashes.start.0);
                if let Some(end) = &hashes.end {
                    let mut bytes = prefix;
                    keycode::push_bytes(&mut bytes, &end.0);
                    range.end = Some(bytes);
                }
                range
            }
            (Leg::Main, Access::Index { path, low, high, .. }) => {
                let mut fields = self.container.row.index.epoch.to_be_bytes().to_vec();
                fields.extend_from_slice(path);
                let whole = shard.range(Family::Index, &fields);
                let at = |value: &[u8]| [&whole.start[..], value].concat();
                let start = match low {
                    Bound::Included(value) => at(value),
                    Bound::Excluded(value) => prefix_end(&at(value)).unwrap_or_default(),
                    Bound::Unbounded => whole.start.clone(),
                };
                let end = match high {
                    Bound::Included(value) => prefix_end(&at(value)),
                    Bound::Excluded(value) => Some(at(value)),
                    Bound::Unbounded => whole.end.clone(),
                };
                KeyRange { start, end, ..whole }
            }
        }
    }

    fn within(&self) -> &HashRange {
        match self.access {
            Access::Records(within) | Access::Index { within, .. } => within,
        }
    }

    /// The second leg has no order to keep and always goes forward.
    fn direction_of(&self, leg: Leg) -> Direction {
        match leg {
            Leg::Main => self.direction,
            Leg::Unindexed => Direction::Forward,
        }
    }
}

/// The commit through which every document of a slot has its entries of `epoch`.
pub(crate) async fn indexed_through(snapshot: &dyn Snapshot, shard: Shard, epoch: u32) -> Result<u64> {
    let row = snapshot.get(&shard.single(Family::IndexPosition)).await?;
    let row = row.filter(|row| row.len() == 16 && be_u64(row) == u64::from(epoch));
    Ok(row.map_or(0, |row| be_u64(&row[8..])))
}

/// The last commit of a slot.
pub(crate) async fn last_commit(snapshot: &dyn Snapshot, shard: Shard) -> Result<u64> {
    match snapshot.get(&shard.single(Family::Counter)).await? {
        Some(row) => Ok(Counter::decode(&row).ok_or(Error::Corrupt("a counter cannot be read"))?.seq),
        None => Ok(0),
    }
}

/// Walks all rows of `range`, page by page, on one snapshot.
pub(crate) async fn each_row(
    snapshot: &dyn Snapshot,
    mut range: KeyRange,
    visit: &mut (dyn FnMut(&[u8], &bytes::Bytes) -> Result<()> + Send),
) -> Result<()> {
    loop {
        let limit = PageLimit { rows: 1000, bytes: 4 << 20 };
        let page = snapshot.scan(&range, Direction::Forward, limit).await?;
        for (key, value) in &page.rows {
            visit(key, value)?;
        }
        match page.rows.last() {
            Some((key, _)) if page.more => range.start = [&key[..], &[0]].concat(),
            _ => return Ok(()),
        }
    }
}
