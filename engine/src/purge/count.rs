//! Purging by count: the documents that end in an order are walked over in that order and taken out of the sums, in
//! one small write for thousands of them. Their rows are left to the store ([`Left`](super::left::Left)).
//!
//! ```text
//!   one by one    record, entries, unique rows: a delete each, guarded by the record's version
//!   by count      Purged and PurgePosition: one write; rows go with the store's next merges
//! ```
//!
//! A walk looks at a snapshot and guards no document, so it has to know what writers did since. One that writes over a
//! document which had ended leaves a note (`Reborn`), which is guarded. One that took the time earlier, to whom the
//! document was alive, is refused as stale if the slot has a commit of the walk's second or later; if it has not, the
//! slot is at rest and its counter is guarded.
//!
//! Holds: a document is counted out once, by whoever takes it out of the sums: a walk, or the write that takes its place.

use mayfly_storage::{
    Error as StoreError,
    store::{Advance, Batch, Counter, Direction, Expect, Guard, Key, KeyRange, PageLimit, Snapshot, Urgency},
};

use super::{Pace, Purged, earlier, reach::Reach};
use crate::{
    clock::Timestamp,
    container::Container,
    engine::Engine,
    error::{Error, Result},
    keys::{DocumentKey, Family, Shard, from_ordered, sequence_of},
    record::{FeedEntry, Record},
    ttl::{Cuts, DefaultTtl},
};

/// Rows of a page: the first ones are few, for a walk that finds nothing to do.
const PAGE_ROWS: (usize, usize) = (16, 4096);

/// Records that the store does not drop by itself, deleted in one batch.
const DELETES_MAX: usize = 512;

/// What a walk has found to be purged.
pub(super) struct Counted {
    pub reach: Reach,
    before: Reach,
    documents: i64,
    bytes: i64,
    /// Records that the store does not look at.
    deletes: Vec<Key>,
    pub more: bool,
    pub next: Option<Timestamp>,
}

/// A walk of what ends in order in one slot.
pub(super) struct Walk<'a> {
    pub container: &'a Container,
    pub shard: Shard,
    pub snapshot: &'a dyn Snapshot,
    pub cuts: &'a Cuts,
    /// The longest values that the store drops by itself.
    pub dropped_up_to: usize,
    pub rows_max: usize,
}

/// What a walk takes note of in one row.
enum Step {
    /// Purged, with its size.
    Purged(u32),
    /// Nothing that ends in this order.
    Passed,
    /// The first one that is alive: here the walk ends.
    Alive(i64),
}

impl Pace {
    /// Rows that a tick walks over in one slot.
    pub(super) fn rows_max(self) -> usize {
        match self {
            Self::Gentle => 16 * 1024,
            Self::Pressing | Self::Full => 64 * 1024,
        }
    }
}

const DAMAGED: Error = Error::Corrupt("an expiry entry cannot be read");

impl Walk<'_> {
    /// What is purged now, beyond what was before.
    pub async fn run(&self) -> Result<Counted> {
        let before = Reach::read(self.snapshot, self.shard).await?;
        let mut counted = Counted {
            reach: before.clone(),
            before,
            documents: 0,
            bytes: 0,
            deletes: Vec::new(),
            more: false,
            next: None,
        };
        self.feed(&mut counted).await?;
        self.deadlines(&mut counted).await?;
        Ok(counted)
    }

    /// Documents that end by the default: from the head of the feed to the first one alive.
    async fn feed(&self, counted: &mut Counted) -> Result<()> {
        let through = self.cuts.inherited.through;
        if through == i64::MIN {
            return Ok(());
        }
        let mut range = self.shard.range(Family::Feed, &[]);
        range.start.extend_from_slice(&counted.reach.feed_start());
        let mut last = None;
        let ended = self
            .pages(range, counted, |counted, key, value| {
                let life = value.get(FeedEntry::LIFE_AT..).ok_or(DAMAGED)?;
                let ts = i64::from_be_bytes(life.get(1..9).and_then(|ts| ts.try_into().ok()).ok_or(DAMAGED)?);
                let flags = life[0];
                let inherits = flags & 0xC0 == 0;
                if inherits && ts > through {
                    return Ok(Step::Alive(ts));
                }
                counted.reach.feed = Some(sequence_of(key)?);
                if !inherits {
                    return Ok(Step::Passed);
                }
                last = Some(ts);
                if flags != 0 {
                    return Err(Error::Corrupt("a document has dates where there are no date rules"));
                }
                let size = value[4..8].try_into().map(u32::from_be_bytes).map_err(|_| DAMAGED)?;
                if Record::LIFE_AT + life.len().min(9) + size as usize > self.dropped_up_to {
                    counted.deletes.push(self.shard.record(&FeedEntry::decode(value)?.document));
                }
                Ok(Step::Purged(size))
            })
            .await?;
        match ended {
            Some(alive) => {
                counted.reach.inherited = counted.reach.inherited.max(through);
                if let (Some(ts), Some(DefaultTtl::Seconds(n))) = (alive, self.container.ttl().default) {
                    let at = Timestamp::from_seconds(ts.max(0) as u64 + u64::from(n));
                    counted.next = earlier(counted.next, Some(at));
                }
            }
            None => {
                let part = last.unwrap_or(i64::MIN);
                counted.reach.inherited = counted.reach.inherited.max(part.saturating_sub(1));
                counted.reach.inherited_in_part = counted.reach.inherited_in_part.max(part);
                counted.more = true;
            }
        }
        Ok(())
    }

    /// Documents that end by their own `ttl`, in the order of their deadlines.
    async fn deadlines(&self, counted: &mut Counted) -> Result<()> {
        let through = self.cuts.own.through;
        if through == i64::MIN {
            return Ok(());
        }
        let mut range = self.shard.range(Family::Expiry, &[]);
        let head = range.start.len();
        let is_on = self.container.ttl().default.is_some();
        range.start.extend_from_slice(&counted.reach.deadlines);
        let mut last = None;
        let ended = self
            .pages(range, counted, |counted, key, value| {
                let deadline = key.get(head..).and_then(from_ordered).ok_or(DAMAGED)?;
                if deadline > through {
                    return Ok(Step::Alive(deadline));
                }
                last = Some(deadline);
                counted.reach.deadlines = [&key[head..], &[0]].concat();
                let size = value.try_into().map(u32::from_be_bytes).map_err(|_| DAMAGED)?;
                // A life with seconds of its own takes 13 bytes.
                if Record::LIFE_AT + 13 + size as usize > self.dropped_up_to {
                    let document = DocumentKey::from_tail(key.get(head + 8..).ok_or(DAMAGED)?)?;
                    counted.deletes.push(self.shard.record(&document));
                }
                Ok(Step::Purged(size))
            })
            .await?;
        match ended {
            Some(alive) => {
                counted.reach.own = counted.reach.own.max(through);
                if let (Some(deadline), true) = (alive, is_on) {
                    let at = Timestamp::from_seconds(deadline.max(0) as u64);
                    counted.next = earlier(counted.next, Some(at));
                }
            }
            None => {
                counted.reach.own = counted.reach.own.max(last.unwrap_or(i64::MIN).saturating_sub(1));
                counted.more = true;
            }
        }
        Ok(())
    }

    /// Takes the steps of all rows until one is alive. `Some` if it came to its end: to a row that is alive, and when,
    /// or past all.
    async fn pages(
        &self,
        mut range: KeyRange,
        counted: &mut Counted,
        mut step: impl FnMut(&mut Counted, &[u8], &[u8]) -> Result<Step> + Send,
    ) -> Result<Option<Option<i64>>> {
        let mut rows = PAGE_ROWS.0;
        let mut walked = 0;
        loop {
            let limit = PageLimit { rows, bytes: usize::MAX };
            let mut ended: Option<Result<i64>> = None;
            let mut keep = |key: &[u8], value: &[u8], _: bool| {
                if ended.is_none() {
                    match step(counted, key, value) {
                        Ok(Step::Purged(size)) => {
                            counted.documents += 1;
                            counted.bytes += i64::from(size);
                        }
                        Ok(Step::Passed) => {}
                        Ok(Step::Alive(at)) => ended = Some(Ok(at)),
                        Err(error) => ended = Some(Err(error)),
                    }
                }
                false
            };
            let page = self.snapshot.sieve(&range, Direction::Forward, limit, None, &mut keep).await?;
            walked += page.met;
            match (ended, page.cut_after) {
                (Some(at), _) => return Ok(Some(Some(at?))),
                (None, None) => return Ok(Some(None)),
                (None, Some(last)) => range.start = [&last[..], &[0]].concat(),
            }
            if walked >= self.rows_max || counted.deletes.len() >= DELETES_MAX {
                return Ok(None);
            }
            rows = (rows * 4).min(PAGE_ROWS.1);
        }
    }
}

impl Counted {
    /// Whether anything is to be written.
    pub fn has_news(&self) -> bool {
        let is_whole = |reach: &Reach| reach.inherited_in_part <= reach.inherited;
        self.documents > 0
            || self.reach.feed != self.before.feed
            || self.reach.deadlines != self.before.deadlines
            // A second that was purged in part is done.
            || !is_whole(&self.before) && is_whole(&self.reach)
    }
}

impl Engine {
    /// Takes what a walk has found out of the sums, and tells the store. `None`: a writer was quicker, look again.
    pub(super) async fn count_out(
        &self,
        container: &Container,
        shard: Shard,
        snapshot: &dyn Snapshot,
        counted: &Counted,
        now: Timestamp,
    ) -> Result<Option<Purged>> {
        let families = [Family::Counter, Family::Purged, Family::Reborn];
        let rows = snapshot.get_many(&families.map(|family| shard.single(family))).await?;
        let [counter, purged, reborn] = &rows[..] else { return Err(Error::internal("rows are missing")) };
        let writes = counter.as_deref().and_then(Counter::decode);
        let guard = |family: Family, version: Option<u64>| {
            let expect = version.map_or(Expect::Absent, Expect::Version);
            Guard { key: shard.single(family), expect }
        };
        let version = |row: &Option<bytes::Bytes>| row.as_deref().map(crate::keys::be_u64);
        let mut guards = vec![
            container.guard(),
            guard(Family::Purged, purged.as_deref().and_then(Counter::decode).map(|row| row.seq)),
            guard(Family::Reborn, version(reborn)),
        ];
        if writes.is_none_or(|row| row.stamp < now.seconds()) {
            guards.push(guard(Family::Counter, writes.map(|row| row.seq)));
        }
        let tally = [-counted.documents, -counted.bytes];
        let batch = Batch {
            guards,
            puts: vec![counted.reach.row(shard)],
            deletes: counted.deletes.clone(),
            advances: vec![Advance { counter: shard.single(Family::Purged), stamp: 0, tally }],
            // The store may drop rows from now on, so what explains that must not be lost.
            urgency: Urgency::Foreground,
        };
        match self.store().commit(batch).await {
            Ok(_) => {}
            Err(StoreError::Conflict { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        self.store().forget(self.left().reached(shard, counted.reach.clone()));
        let (documents, bytes) = (counted.documents.unsigned_abs(), counted.bytes.unsigned_abs());
        Ok(Some(Purged { documents, bytes, more: counted.more, next: counted.next }))
    }

    /// Takes over what sweeps of layout 2 were going to remove. Called once, when a store of that layout is opened.
    pub(crate) async fn end_sweeps(&self) -> Result<()> {
        for container in self.catalog().all_containers() {
            for shard in container.shards() {
                let sweep = shard.single(Family::Sweep);
                let Some(through) = self.store().get(&sweep).await? else { continue };
                let row = self.store().get(&shard.single(Family::PurgePosition)).await?;
                let mut reach = Reach::of_row(row.as_deref())?;
                reach.inherited = i64::try_from(crate::keys::be_u64(&through)).unwrap_or(i64::MIN);
                let (puts, deletes) = (vec![reach.row(shard)], vec![sweep]);
                self.store().commit(Batch { puts, deletes, ..Batch::default() }).await?;
            }
        }
        Ok(())
    }

    /// Tells the store what purged documents have left, before it may come across their rows. Called once, at the start.
    pub(crate) async fn tell_what_is_left(&self) -> Result<()> {
        if self.store().forgets_up_to() == 0 {
            return Ok(());
        }
        let snapshot = self.store().snapshot().await?;
        for container in self.catalog().all_containers() {
            for shard in container.shards() {
                let reach = Reach::read(&*snapshot, shard).await?;
                if reach.leaves_rows() {
                    self.store().forget(self.left().reached(shard, reach));
                }
            }
        }
        Ok(())
    }

    /// Whether documents of a container are purged by count: nothing has to be written for each of them, and each ends
    /// in an order. Unique rows do not say when their documents end, and dates are not in the order of writes.
    pub(crate) fn counts_out(&self, container: &Container) -> bool {
        self.store().forgets_up_to() > 0
            && container.definition().log_minutes.is_none()
            && container.ttl().date_rules.is_empty()
            && !container.has_unique_rows()
    }
}
