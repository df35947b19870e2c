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

use std::sync::Arc;

use bytes::Bytes;
use mayfly_storage::store::{Counter, Direction, Key, KeyRange, PageLimit, Snapshot, prefix_end};
use mayfly_value::{
    keycode::{self, DecodedValue},
    order::Order,
};

use crate::{
    access::{Access, HashRange, IndexAccess, Reliance, record_range},
    clock::Timestamp,
    container::Container,
    engine::Engine,
    error::{Error, Result},
    keys::{DocumentKey, Family, PREFIX_LEN, Shard, be_u64},
    position::{After, IndexedAtStart, Leg, Position, digest_of},
    record::{FeedEntry, Record},
    ttl::{Cuts, Life},
};

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
        let opened = self.open(container, access, now).await?;
        let (rows, next, scanned) = opened.walk(access, direction).page(position, limit, true).await?;
        self.check_current(&opened.container).await?;
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
        self.check_current(&opened.container).await?;
        Ok(EntryPage { entries, next, scanned })
    }

    /// How many living documents an index has in the ranges of `access`, on which the caller may rely.
    pub async fn count_entries(
        &self,
        container: &Container,
        access: &IndexAccess,
        now: Timestamp,
    ) -> Result<u64> {
        if access.relies == Reliance::Nothing {
            return Err(Error::internal("entries of an index that may lack some"));
        }
        let all = Access::Index(access.clone());
        let opened = self.open(container, &all, now).await?;
        let walk = opened.walk(&all, Direction::Forward);
        let mut count = 0;
        for slot in access.within.slots(&opened.container) {
            let shard = opened.container.shard(u32::from(slot));
            for range in access.key_ranges(shard, opened.container.row.index.epoch) {
                count += walk.count(shard, range).await?;
            }
        }
        self.check_current(&opened.container).await?;
        Ok(count)
    }

    /// How many living documents there are in a range of hashes. For all of a container where nothing expires that stands
    /// in its counters; else each document's life is asked, and nothing else of it.
    pub async fn count_documents(
        &self,
        container: &Container,
        within: &HashRange,
        now: Timestamp,
    ) -> Result<u64> {
        let access = Access::Records(within.clone());
        let opened = self.open(container, &access, now).await?;
        let (container, snapshot) = (&opened.container, &*opened.snapshot);
        let mut count = 0;
        for slot in within.slots(container) {
            let shard = container.shard(u32::from(slot));
            if within.is_all() && !container.ttl().can_expire() {
                // One snapshot of both, so what purge moves from one to the other is counted once.
                for family in [Family::Counter, Family::Purged] {
                    count += counter(snapshot, shard, family).await?.tally[0];
                }
                continue;
            }
            // A feed entry is shorter than a record, but lies by time.
            let (range, life_at) = match within.is_all() {
                true => (shard.range(Family::Feed, &[]), FeedEntry::LIFE_AT),
                false => (record_range(shard, within), Record::LIFE_AT),
            };
            each_row(snapshot, range, &mut |_, value| {
                let (life, _) = value.get(life_at..).and_then(Life::decode).ok_or(DAMAGED)?;
                count += i64::from(opened.cuts.is_live(&life));
                Ok(())
            })
            .await?;
        }
        self.check_current(container).await?;
        Ok(count.max(0) as u64)
    }

    /// About how many entries there are in the ranges of each access path, expired ones included, counted up to `most`.
    pub async fn estimate(
        &self,
        container: &Container,
        paths: &[IndexAccess],
        most: usize,
    ) -> Result<Vec<usize>> {
        let snapshot = self.store().snapshot().await?;
        let container = self.reload(container)?;
        let mut estimates = Vec::with_capacity(paths.len());
        for access in paths {
            let mut count = 0;
            for slot in access.within.slots(&container) {
                let shard = container.shard(u32::from(slot));
                for range in access.key_ranges(shard, container.row.index.epoch) {
                    if count >= most {
                        break;
                    }
                    let limit = PageLimit { rows: most - count, bytes: usize::MAX };
                    count += snapshot.scan(&range, Direction::Forward, limit).await?.rows.len();
                }
            }
            estimates.push(count);
        }
        Ok(estimates)
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

struct Walk<'a> {
    container: &'a Container,
    access: &'a Access,
    direction: Direction,
    cuts: &'a Cuts,
    snapshot: &'a dyn Snapshot,
}

/// What one row of a walk says about a document.
struct Row {
    document: Bytes,
    key: Bytes,
    /// The record itself, when the row is one, or the values of the entry, if they are wanted and whole.
    content: Option<Content>,
}

/// Rows of a page, where it ended, and how many were looked at.
type Rows = (Vec<Entry>, Option<Position>, usize);

const DAMAGED: Error = Error::Corrupt("an index entry cannot be read");

impl Walk<'_> {
    async fn page(&self, position: Option<Position>, limit: PageLimit, records: bool) -> Result<Rows> {
        let mut slots = self.access.within().slots(self.container);
        if self.direction == Direction::Reverse {
            slots.reverse();
        }
        let mut at = match position {
            Some(position) if slots.contains(&position.slot) => position,
            Some(_) => return Err(Error::BadContinuation),
            None => match slots.first() {
                Some(slot) => Position::start_of(*slot),
                None => return Ok((Vec::new(), None, 0)),
            },
        };
        let mut page = Page { found: Vec::new(), scanned: 0, bytes: 0, records };
        loop {
            self.settle_legs(&mut at).await?;
            let room = PageLimit {
                rows: (limit.rows - page.found.len()).min(ENTRIES_MAX),
                bytes: limit.bytes.saturating_sub(page.bytes).max(1),
            };
            let more = self.advance(&mut at, room, &mut page).await?;
            let full =
                page.found.len() >= limit.rows || page.bytes >= limit.bytes || page.scanned >= ENTRIES_MAX;
            if !more && !self.next_leg(&mut at, &slots) {
                return Ok((page.found, None, page.scanned));
            }
            if full {
                return Ok((page.found, Some(at), page.scanned));
            }
        }
    }

    /// Decides which documents of a slot belong to which leg, when the scan comes to it.
    async fn settle_legs(&self, at: &mut Position) -> Result<()> {
        let state = &self.container.row.index;
        match (self.access, at.index) {
            (Access::Records(_) | Access::Writes(_), None) => Ok(()),
            (Access::Index(_), None) => {
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
            (Access::Index(_), Some(index)) if index.epoch == state.epoch => Ok(()),
            _ => Err(Error::BadContinuation),
        }
    }

    /// Reads some rows at `at` and moves it; says whether its leg has more.
    async fn advance(&self, at: &mut Position, room: PageLimit, page: &mut Page) -> Result<bool> {
        let shard = self.container.shard(u32::from(at.slot));
        let direction = self.direction_of(at.leg);
        let mut ranges = self.ranges(shard, at);
        if direction == Direction::Reverse {
            ranges.reverse();
        }
        let (mut left, bytes_before) = (room.rows, page.bytes);
        let count = ranges.len();
        for (n, mut range) in ranges.into_iter().enumerate() {
            narrow(&mut range, &at.after, direction);
            if range.is_empty() {
                continue;
            }
            let limit = PageLimit { rows: left, bytes: room.bytes };
            let rows = self.snapshot.scan(&range, direction, limit).await?;
            left -= rows.rows.len().min(left);
            self.take(at, shard, rows.rows, page).await?;
            let full = left == 0 || page.bytes - bytes_before >= room.bytes;
            if rows.more || (full && n + 1 < count) {
                return Ok(true);
            }
        }
        if let After::Cut(..) = at.after {
            // The row that the page before ended with is gone.
            return Err(Error::BadContinuation);
        }
        Ok(false)
    }

    /// Takes what is alive of some rows.
    async fn take(
        &self,
        at: &mut Position,
        shard: Shard,
        rows: Vec<(Bytes, Bytes)>,
        page: &mut Page,
    ) -> Result<()> {
        page.scanned += rows.len();
        let mut alive = Vec::with_capacity(rows.len());
        let mut last = None;
        for (key, value) in rows {
            if let After::Cut(head, digest, again) = &at.after {
                let (after, again) = (key.get(PREFIX_LEN..).unwrap_or_default(), *again);
                if !after.starts_with(head) {
                    return Err(Error::BadContinuation);
                }
                let found = digest_of(after) == *digest;
                if found {
                    at.after = After::Key(after.to_vec());
                }
                if !found || !again {
                    continue;
                }
            }
            alive.extend(self.row(at.leg, key.clone(), value, page.records)?);
            last = Some(key);
        }
        if let Some(key) = last {
            at.after = After::Key(key.get(PREFIX_LEN..).unwrap_or_default().to_vec());
        }
        self.look_up(at.leg, shard, &mut alive).await?;
        let missing: Vec<Key> = alive
            .iter()
            .filter(|row| row.content.is_none())
            .map(|row| record_key(shard, row))
            .collect::<Result<_>>()?;
        let mut fetched = match missing.is_empty() {
            true => Vec::new(),
            false => self.snapshot.get_many(&missing).await?,
        }
        .into_iter();
        for row in alive {
            let content = match row.content {
                Some(content) => content,
                // Entry and record are written together and this is one snapshot of both.
                None => match fetched.next().flatten() {
                    Some(bytes) => Content::Record(Record::decode(bytes)?),
                    None => return Err(Error::Corrupt("an index entry has no record")),
                },
            };
            if let Content::Record(record) = &content {
                if at.leg == Leg::Main && at.index.is_some_and(|index| index.leaves(record.lsn)) {
                    continue;
                }
                page.bytes += record.size() as usize;
            }
            let place = Place { leg: at.leg, index: at.index, key: row.key };
            page.found.push(Entry { slot: at.slot, content, document: row.document, place });
        }
        Ok(())
    }

    /// Leaves out documents that lack one of the entries they must have as well.
    async fn look_up(&self, leg: Leg, shard: Shard, rows: &mut Vec<Row>) -> Result<()> {
        let (Access::Index(access), Leg::Main) = (self.access, leg) else { return Ok(()) };
        // Documents that wait for the indexer have no entries to look for.
        if !self.container.row.index.ready {
            return Ok(());
        }
        for lookup in &access.also {
            let keys = rows.iter().map(|row| {
                let document = DocumentKey::from_tail(&row.document)?;
                Ok(lookup.key(shard, self.container.row.index.epoch, &document))
            });
            let keys: Vec<Key> = keys.collect::<Result<_>>()?;
            let mut found = self.snapshot.get_many(&keys).await?.into_iter();
            // An entry may have outlived an earlier document with the same id.
            let is_live =
                |entry: Bytes| Life::decode(&entry).is_some_and(|(life, _)| self.cuts.is_live(&life));
            rows.retain(|_| found.next().flatten().is_some_and(is_live));
        }
        Ok(())
    }

    /// One row, if its document is alive and in scope.
    fn row(&self, leg: Leg, key: Bytes, value: Bytes, records: bool) -> Result<Option<Row>> {
        let row = match (leg, self.access) {
            (Leg::Unindexed, _) | (Leg::Main, Access::Writes(_)) => {
                let entry = FeedEntry::decode(&value)?;
                if !self.cuts.is_live(&entry.life) {
                    return Ok(None);
                }
                let document = value.slice(value.len() - entry.document.as_bytes().len()..);
                Row { document, key, content: None }
            }
            (Leg::Main, Access::Records(_)) => {
                let record = Record::decode(value)?;
                if !self.cuts.is_live(&record.life) || key.len() <= PREFIX_LEN {
                    return Ok(None);
                }
                let content = Some(Content::Record(record));
                return Ok(Some(Row { document: key.slice(PREFIX_LEN..), key, content }));
            }
            (Leg::Main, Access::Index(access)) => {
                let (life, _) = Life::decode(&value).ok_or(DAMAGED)?;
                if !self.cuts.is_live(&life) {
                    return Ok(None);
                }
                self.index_row(access, key, records)?
            }
        };
        let within = self.access.within();
        if !within.is_all() {
            let (hash, _) = keycode::take_bytes(&row.document)?;
            if !within.contains(&mayfly_value::partition::Epk(hash)) {
                return Ok(None);
            }
        }
        Ok(Some(row))
    }

    fn index_row(&self, access: &IndexAccess, key: Bytes, records: bool) -> Result<Row> {
        let start = PREFIX_LEN + access.index.prefix_len();
        let count = access.index.values(self.container)?;
        let mut at = start;
        let mut exact = true;
        for _ in 0..count {
            let (len, is_exact) = keycode::skip_exact(key.get(at..).ok_or(DAMAGED)?)?;
            exact &= is_exact;
            at += len;
        }
        if key.len() <= at {
            return Err(DAMAGED);
        }
        let content =
            if records || !exact { None } else { Some(Content::Values(values(&key[start..], count)?)) };
        Ok(Row { document: key.slice(at..), key, content })
    }

    /// How many entries of living documents a range has.
    async fn count(&self, shard: Shard, mut range: KeyRange) -> Result<u64> {
        /// Rows at a time: small enough to leave the thread to others now and then.
        const ROWS: usize = 1024;
        let Access::Index(access) = self.access else { return Ok(0) };
        let plain = access.within.is_all() && access.also.is_empty();
        let mut count = 0;
        while !range.is_empty() {
            let limit = PageLimit { rows: ROWS, bytes: usize::MAX };
            let page = self.snapshot.scan(&range, Direction::Forward, limit).await?;
            let Some((last, _)) = page.rows.last() else { break };
            range.start = [&last[..], &[0]].concat();
            let more = page.more;
            if plain {
                for (_, value) in &page.rows {
                    let (life, _) = Life::decode(value).ok_or(DAMAGED)?;
                    count += u64::from(self.cuts.is_live(&life));
                }
            } else {
                let rows = page.rows.into_iter().map(|(key, value)| self.row(Leg::Main, key, value, true));
                let mut rows: Vec<Row> = rows.filter_map(Result::transpose).collect::<Result<_>>()?;
                self.look_up(Leg::Main, shard, &mut rows).await?;
                count += rows.len() as u64;
            }
            if !more {
                break;
            }
        }
        Ok(count)
    }

    fn next_leg(&self, at: &mut Position, slots: &[u16]) -> bool {
        at.after = After::Start;
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

    /// The keys of a leg, ascending.
    fn ranges(&self, shard: Shard, at: &Position) -> Vec<KeyRange> {
        match (at.leg, self.access) {
            (Leg::Unindexed, _) => {
                let (through, until) = at.index.map_or((0, 0), |index| (index.through, index.until));
                let whole = shard.range(Family::Feed, &[]);
                let bound = |lsn: u64| [&whole.start[..], &lsn.saturating_add(1).to_be_bytes()].concat();
                vec![KeyRange { start: bound(through), end: Some(bound(until)), ..whole }]
            }
            (Leg::Main, Access::Records(hashes)) => vec![record_range(shard, hashes)],
            (Leg::Main, Access::Writes(_)) => vec![shard.range(Family::Feed, &[])],
            (Leg::Main, Access::Index(access)) => access.key_ranges(shard, self.container.row.index.epoch),
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

/// A page in the making.
struct Page {
    found: Vec<Entry>,
    scanned: usize,
    bytes: usize,
    /// Whether records are wanted, not only entries.
    records: bool,
}

/// Leaves of a range what comes after a row.
fn narrow(range: &mut KeyRange, after: &After, direction: Direction) {
    let head = range.start.get(..PREFIX_LEN).unwrap_or_default();
    let (first, last) = match after {
        After::Start => return,
        After::Key(key) => ([head, key, &[0]].concat(), Some([head, key].concat())),
        After::Again(key) => ([head, key].concat(), Some([head, key, &[0]].concat())),
        // The row itself is looked for.
        After::Cut(key, ..) => ([head, key].concat(), prefix_end(&[head, key].concat())),
    };
    match (direction, last) {
        (Direction::Forward, _) if first > range.start => range.start = first,
        (Direction::Reverse, Some(last)) if range.end.as_ref().is_none_or(|end| last < *end) => {
            range.end = Some(last);
        }
        _ => {}
    }
}

fn record_key(shard: Shard, row: &Row) -> Result<Key> {
    Ok(shard.record(&DocumentKey::from_tail(&row.document)?))
}

/// The values at the start of an entry's bytes, whichever way each is sorted.
fn values(mut bytes: &[u8], count: usize) -> Result<Vec<DecodedValue>> {
    let mut values = Vec::with_capacity(count);
    for _ in 0..count {
        let descending = bytes.first().is_some_and(|tag| *tag >= 0x80);
        let (value, used) = match descending {
            true => keycode::decode_value_desc(bytes, Order::Cosmos)?,
            false => keycode::decode_value(bytes, Order::Cosmos)?,
        };
        bytes = bytes.get(used..).ok_or(DAMAGED)?;
        values.push(value);
    }
    Ok(values)
}

/// The commit through which every document of a slot has its entries of `epoch`.
pub(crate) async fn indexed_through(snapshot: &dyn Snapshot, shard: Shard, epoch: u32) -> Result<u64> {
    let row = snapshot.get(&shard.single(Family::IndexPosition)).await?;
    let row = row.filter(|row| row.len() == 16 && be_u64(row) == u64::from(epoch));
    Ok(row.map_or(0, |row| be_u64(&row[8..])))
}

/// The last commit of a slot.
pub(crate) async fn last_commit(snapshot: &dyn Snapshot, shard: Shard) -> Result<u64> {
    Ok(counter(snapshot, shard, Family::Counter).await?.seq)
}

async fn counter(snapshot: &dyn Snapshot, shard: Shard, family: Family) -> Result<Counter> {
    match snapshot.get(&shard.single(family)).await? {
        Some(row) => Counter::decode(&row).ok_or(Error::Corrupt("a counter cannot be read")),
        None => Ok(Counter::default()),
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
