//! One page of a walk: slot after slot, leg after leg, as far as there is room.
//!
//! Where slots are on servers, waiting for one after the other takes as many round trips as there are slots. A page that
//! has room left after a slot asks the next two at once, then four, and so on, and puts what they answer together in the
//! order of the slots: the page is the same, only sooner. What does not fit any more is asked for again with the next page.

use bytes::Bytes;
use futures_util::future::join_all;
use mayfly_storage::store::{Direction, Key, KeyRange, PageLimit, Snapshot, prefix_end};
use mayfly_value::{keycode, partition::Epk};

use super::{
    Content, DocumentFilter, Entry, Merged, Place, Wanted,
    row::{DAMAGED, Row, values},
    state::{indexed_through, last_commit},
};
use crate::{
    access::{Access, Across, IndexAccess, record_range},
    container::Container,
    error::{Error, Result},
    keys::{DocumentKey, Family, PREFIX_LEN, Shard},
    position::{After, IndexedAtStart, Leg, Position, digest_of},
    purge::Reach,
    record::{FeedEntry, Record},
    ttl::{Cuts, Life},
};

/// The most entries one page looks at, whatever it returns.
pub(super) const ENTRIES_MAX: usize = 10_000;

/// The most slots that are asked at once, where that helps.
pub(super) const WIDTH_MAX: usize = 16;

pub(super) struct Walk<'a> {
    pub container: &'a Container,
    pub access: &'a Access,
    pub direction: Direction,
    pub cuts: &'a Cuts,
    pub snapshot: &'a dyn Snapshot,
    /// Which documents are wanted; all of them if it does not say.
    pub wanted: Option<Wanted<'a>>,
    pub merged: Merged,
    /// The most entries a page looks at.
    pub entries_max: usize,
    /// How many slots may be asked at once.
    pub width: usize,
}

impl Walk<'_> {
    pub(super) async fn page(
        &self,
        position: Option<Position>,
        limit: PageLimit,
        records: bool,
    ) -> Result<(Page, Option<Position>)> {
        let mut slots = self.access.within().slots(self.container);
        if self.direction == Direction::Reverse {
            slots.reverse();
        }
        if let (Access::Index(IndexAccess { across: Across::InOrder, .. }), [_, _, ..]) =
            (self.access, &slots[..])
        {
            return self.page_in_order(&slots, position, limit, records).await;
        }
        let mut page = Page { records, ..Page::default() };
        let mut at = match position {
            Some(position) if slots.contains(&position.slot) => position,
            Some(_) => return Err(Error::BadContinuation),
            None => match slots.first() {
                Some(slot) => Position::start_of(*slot),
                None => return Ok((page, None)),
            },
        };
        let mut width = 1;
        loop {
            let place = slots.iter().position(|slot| *slot == at.slot).unwrap_or_default();
            let some = &slots[place..slots.len().min(place + width)];
            let bytes_left = limit.bytes.saturating_sub(page.bytes);
            let room = PageLimit {
                rows: limit.rows - page.found.len(),
                bytes: (bytes_left / some.len().max(1)).max(1),
            };
            let starts = some.iter().map(|slot| match *slot == at.slot {
                true => at.clone(),
                false => Position::start_of(*slot),
            });
            let walks = starts.map(|start| self.slot(start, room, records));
            for (slot, walked) in some.iter().zip(join_all(walks).await) {
                let (mut of_slot, mut next) = walked?;
                let rows_left = limit.rows - page.found.len();
                if of_slot.found.len() > rows_left {
                    of_slot.found.truncate(rows_left);
                    next = of_slot.found.last().map(|last| last.place.position(*slot));
                }
                page.add(of_slot);
                let is_full = page.is_full(limit, self.entries_max);
                if next.is_none() && !is_full {
                    continue;
                }
                let behind = slots.iter().skip_while(|each| *each != slot).nth(1);
                return Ok((page, next.or_else(|| behind.map(|slot| Position::start_of(*slot)))));
            }
            match slots.get(place + some.len()) {
                Some(slot) => at = Position::start_of(*slot),
                None => return Ok((page, None)),
            }
            width = (width * 2).min(self.width);
        }
    }

    /// What is left of one slot, as far as there is room; and where to go on in it, if there is more.
    pub(super) async fn slot(
        &self,
        mut at: Position,
        limit: PageLimit,
        records: bool,
    ) -> Result<(Page, Option<Position>)> {
        let mut page = Page { records, ..Page::default() };
        loop {
            self.settle_legs(&mut at).await?;
            let room = PageLimit {
                rows: (limit.rows - page.found.len()).min(self.entries_max),
                bytes: limit.bytes.saturating_sub(page.bytes).max(1),
            };
            let more = self.advance(&mut at, room, &mut page).await?;
            if !more && !self.next_leg(&mut at) {
                return Ok((page, None));
            }
            if page.is_full(limit, self.entries_max) {
                return Ok((page, Some(at)));
            }
        }
    }

    /// Decides which documents of a slot belong to which leg, when the scan comes to it.
    pub(super) async fn settle_legs(&self, at: &mut Position) -> Result<()> {
        let state = &self.container.row.index;
        match (self.access, at.index) {
            // A walk by birth has an order that no leg has.
            _ if matches!(at.after, After::Birth(..)) => Err(Error::BadContinuation),
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
            if let Access::Records(_) = self.access
                && !meets(&range, &mut at.after, direction)
            {
                return Ok(false);
            }
            narrow(&mut range, &at.after, direction);
            if range.is_empty() {
                continue;
            }
            let limit = PageLimit { rows: left, bytes: room.bytes };
            let (met, more) = match (self.access, self.wanted) {
                // A place that is known by its digest alone is looked for among all rows.
                (Access::Records(_), Some(_)) if !matches!(at.after, After::Cut(..)) => {
                    self.take_wanted(at, shard, &range, direction, limit, page).await?
                }
                _ => {
                    let rows = self.snapshot.scan(&range, direction, limit).await?;
                    let met = (rows.rows.len(), rows.more);
                    self.take(at, shard, rows.rows, page).await?;
                    met
                }
            };
            left -= met.min(left);
            let full = left == 0 || page.bytes - bytes_before >= room.bytes;
            if more || (full && n + 1 < count) {
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
        let alive = self.alive(at, shard, rows, page).await?;
        let alive = alive.into_iter().map(|row| (shard, row));
        self.fill(at.leg, at.index, alive.collect(), page).await
    }

    /// Takes the records of a range that are alive and wanted, so that the store need not hand out the others: few are, or
    /// nobody would say which. How many it met, and whether there are more.
    async fn take_wanted(
        &self,
        at: &mut Position,
        shard: Shard,
        range: &KeyRange,
        direction: Direction,
        limit: PageLimit,
        page: &mut Page,
    ) -> Result<(usize, bool)> {
        // One that cannot be read is kept, and said to be damaged below.
        let mut keep = |key: &[u8], value: &[u8], is_possible: bool| {
            self.is_wanted(key, value, is_possible, page).unwrap_or(true)
        };
        let may_be_in = self.document_filter().and_then(|filter| filter.may_be_in);
        let sieved = self.snapshot.sieve(range, direction, limit, may_be_in, &mut keep).await?;
        page.scanned += sieved.met;
        let more = sieved.cut_after.is_some();
        if let Some(key) = sieved.cut_after {
            at.after = After::Key(key.get(PREFIX_LEN..).unwrap_or_default().to_vec());
        }
        let rows = sieved.rows.into_iter().map(|(key, value)| Ok((shard, record_row(key, value)?)));
        self.fill(at.leg, at.index, rows.collect::<Result<_>>()?, page).await?;
        Ok((sieved.met, more))
    }

    fn document_filter(&self) -> Option<DocumentFilter<'_>> {
        match self.wanted {
            Some(Wanted::Document(filter)) => Some(filter),
            _ => None,
        }
    }

    /// Whether a record is alive and wanted, which it may be known not to be.
    fn is_wanted(&self, key: &[u8], value: &[u8], is_possible: bool, page: &mut Page) -> Result<bool> {
        let (life, body) = Record::glance(value)?;
        if !self.cuts.is_live(&life) || key.len() <= PREFIX_LEN {
            return Ok(false);
        }
        let is_wanted = is_possible && self.document_filter().is_none_or(|filter| (filter.passes)(body));
        if !is_wanted {
            page.refused += 1;
            page.refused_bytes += body.as_bytes().len();
        }
        Ok(is_wanted)
    }

    /// What is alive of some rows; `at` is moved behind them.
    pub(super) async fn alive(
        &self,
        at: &mut Position,
        shard: Shard,
        rows: Vec<(Bytes, Bytes)>,
        page: &mut Page,
    ) -> Result<Vec<Row>> {
        page.scanned += rows.len();
        let mut alive: Vec<Row> = match self.merged {
            Merged::Alike => Vec::new(),
            Merged::No => Vec::with_capacity(rows.len()),
        };
        let last = rows.last().map(|(key, _)| key.clone());
        let mut is_past_cut = false;
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
            is_past_cut = true;
            if let (Merged::Alike, Some(row)) = (self.merged, alive.last_mut())
                && row.is_alike(&key)
            {
                self.merge(row, key, &value)?;
                continue;
            }
            alive.extend(self.row(at.leg, key, value, page)?);
        }
        if let (Some(key), true) = (last, is_past_cut) {
            at.after = After::Key(key.get(PREFIX_LEN..).unwrap_or_default().to_vec());
        }
        self.look_up(at.leg, shard, &mut alive).await?;
        if at.leg == Leg::Main {
            self.once(shard, &mut alive).await?;
        }
        Ok(alive)
    }

    /// Puts rows into the page, with the documents of those that want theirs.
    pub(super) async fn fill(
        &self,
        leg: Leg,
        index: Option<IndexedAtStart>,
        rows: Vec<(Shard, Row)>,
        page: &mut Page,
    ) -> Result<()> {
        let wanting = rows.iter().filter(|(_, row)| row.content.is_none());
        let mut missing: Vec<Key> = Vec::with_capacity(wanting.clone().count());
        missing.extend(wanting.map(|(shard, row)| row.record_key(*shard)));
        page.found.reserve(rows.len());
        let mut fetched = match missing.is_empty() {
            true => Vec::new(),
            false => self.snapshot.get_many(&missing).await?,
        }
        .into_iter();
        for (shard, row) in rows {
            let is_fetched = row.content.is_none();
            let content = match row.content {
                Some(content) => content,
                // Entry and record are written together and this is one snapshot of both.
                None => match fetched.next().flatten() {
                    Some(bytes) => Content::Record(Record::decode(bytes)?),
                    // But purge, which may be ahead of this request's time, leaves rows for the store to drop.
                    None if Reach::read(self.snapshot, shard).await?.leaves_rows() => continue,
                    None => return Err(Error::Corrupt("an index entry has no record")),
                },
            };
            if let Content::Record(record) = &content {
                if leg == Leg::Main && index.is_some_and(|index| index.leaves(record.lsn)) {
                    continue;
                }
                if is_fetched && self.document_filter().is_some_and(|filter| !(filter.passes)(record.body()))
                {
                    page.refused += 1;
                    page.refused_bytes += record.size() as usize;
                    continue;
                }
                page.bytes += record.size() as usize;
            }
            let place = Place { leg, index, key: row.key, birth: None };
            page.found.push(Entry {
                slot: shard.slot,
                content,
                document: row.document,
                times: row.times,
                place,
            });
        }
        Ok(())
    }

    /// Counts an entry that says the same as the row before it, if its document is alive and in scope.
    fn merge(&self, row: &mut Row, key: Bytes, value: &Bytes) -> Result<()> {
        let (life, _) = Life::decode(value).ok_or(DAMAGED)?;
        let document = key.slice(row.key.len() - row.document.len()..);
        if self.cuts.is_live(&life) && self.is_within(&document)? {
            (row.key, row.document) = (key, document);
            row.times += 1;
        }
        Ok(())
    }

    /// Whether a document is in scope.
    fn is_within(&self, document: &[u8]) -> Result<bool> {
        let within = self.access.within();
        if within.is_all() {
            return Ok(true);
        }
        let (hash, _) = keycode::take_bytes(document)?;
        Ok(within.contains(&Epk(hash)))
    }

    /// Leaves out documents that lack one of the entries they must have as well.
    pub(super) async fn look_up(&self, leg: Leg, shard: Shard, rows: &mut Vec<Row>) -> Result<()> {
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
    pub(super) fn row(&self, leg: Leg, key: Bytes, value: Bytes, page: &mut Page) -> Result<Option<Row>> {
        let row = match (leg, self.access) {
            (Leg::Unindexed, _) | (Leg::Main, Access::Writes(_)) => {
                let entry = FeedEntry::decode(&value)?;
                if !self.cuts.is_live(&entry.life) {
                    return Ok(None);
                }
                let document = value.slice(value.len() - entry.document.as_bytes().len()..);
                Row { document, key, content: None, times: 1 }
            }
            (Leg::Main, Access::Records(_)) => {
                let is_wanted = self.is_wanted(&key, &value, true, page)?;
                return is_wanted.then(|| record_row(key, value)).transpose();
            }
            (Leg::Main, Access::Index(access)) => {
                let (life, _) = Life::decode(&value).ok_or(DAMAGED)?;
                if !self.cuts.is_live(&life) {
                    return Ok(None);
                }
                match self.index_row(access, key, page.records)? {
                    Some(row) => row,
                    None => return Ok(None),
                }
            }
        };
        if !self.is_within(&row.document)? {
            return Ok(None);
        }
        Ok(Some(row))
    }

    /// A row of an index, if it is wanted.
    fn index_row(&self, access: &IndexAccess, key: Bytes, records: bool) -> Result<Option<Row>> {
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
        let is_wanted = match self.wanted {
            Some(Wanted::Entry(is_wanted)) => Some(is_wanted),
            _ => None,
        };
        let mut content = None;
        if exact && (!records || is_wanted.is_some()) {
            let values = values(&key[start..], count)?;
            if is_wanted.is_some_and(|is_wanted| !is_wanted(&values)) {
                return Ok(None);
            }
            content = (!records).then_some(Content::Values(values));
        }
        Ok(Some(Row { document: key.slice(at..), key, content, times: 1 }))
    }

    fn next_leg(&self, at: &mut Position) -> bool {
        at.after = After::Start;
        let has_more = at.leg == Leg::Main && at.index.is_some_and(|index| index.through < index.until);
        if has_more {
            at.leg = Leg::Unindexed;
        }
        has_more
    }

    /// The keys of a leg, ascending.
    pub(super) fn ranges(&self, shard: Shard, at: &Position) -> Vec<KeyRange> {
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

/// The row of a record.
fn record_row(key: Bytes, value: Bytes) -> Result<Row> {
    let document = key.slice(PREFIX_LEN.min(key.len())..);
    Ok(Row { document, key, content: Some(Content::Record(Record::decode(value)?)), times: 1 })
}

/// A page in the making.
#[derive(Default)]
pub(super) struct Page {
    pub found: Vec<Entry>,
    pub scanned: usize,
    /// Bytes of the documents in it.
    pub bytes: usize,
    /// Documents that were read and not wanted, and their bytes.
    pub refused: usize,
    pub refused_bytes: usize,
    /// Whether records are wanted, not only entries.
    pub records: bool,
}

impl Page {
    /// Adds what another slot gave.
    fn add(&mut self, other: Self) {
        match self.found.is_empty() {
            true => self.found = other.found,
            false => self.found.extend(other.found),
        }
        self.scanned += other.scanned;
        self.bytes += other.bytes;
        self.refused += other.refused;
        self.refused_bytes += other.refused_bytes;
    }

    fn is_full(&self, limit: PageLimit, entries_max: usize) -> bool {
        self.found.len() >= limit.rows || self.bytes >= limit.bytes || self.scanned >= entries_max
    }
}

/// Moves a cut position that lies before all of a range of records to the range's start, and says whether
/// anything can follow. The range may be a part of the one that the position is of: a partition key range
/// that has split since. A row is looked for by its digest, and it is not there to be found in the other
/// part.
fn meets(range: &KeyRange, after: &mut After, direction: Direction) -> bool {
    let After::Cut(key, ..) = &*after else { return true };
    let cut = [range.start.get(..PREFIX_LEN).unwrap_or_default(), key].concat();
    let is_below = prefix_end(&cut).is_some_and(|end| end <= range.start);
    let is_above = range.end.as_ref().is_some_and(|end| *end <= cut);
    let (is_before, is_behind) = match direction {
        Direction::Forward => (is_below, is_above),
        Direction::Reverse => (is_above, is_below),
    };
    if is_before {
        *after = After::Start;
    }
    !is_behind
}

/// Leaves of a range what comes after a row.
pub(super) fn narrow(range: &mut KeyRange, after: &After, direction: Direction) {
    let head = range.start.get(..PREFIX_LEN).unwrap_or_default();
    let (first, last) = match after {
        After::Start | After::Birth(..) => return,
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
