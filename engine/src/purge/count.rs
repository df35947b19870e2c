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
//! document was alive, is refused as stale: the walk raises the slot's stamp to its own second. If the slot has no commit
//! of that second yet, it is at rest, and its counter is guarded. So a walk goes by whole seconds, dates too: a writer who
//! took the time in the same second has not stored a document whose date was over by then.
//!
//! A document may stand in several queues. The walks take one queue after the other, and whoever comes to it first
//! counts it: its entry in each of the others says so, as it holds the document's life.
//!
//! Holds: a document is counted out once, by whoever takes it out of the sums: a walk, or the write that takes its place.

use mayfly_storage::{
    Error as StoreError,
    store::{
        Advance, Batch, Counter, Direction, Expect, Guard, Key, KeyRange, PageLimit, Put, Snapshot, Urgency,
    },
};

use super::{
    Pace, Purged, earlier,
    reach::{QueueReach, Reach},
};
use crate::{
    clock::Timestamp,
    container::Container,
    engine::Engine,
    error::{Error, Result},
    keys::{DocumentKey, Family, Shard, from_ordered, sequence_of},
    record::{DueEntry, FeedEntry, Record},
    ttl::{Cuts, DateRule, DefaultTtl, Life, OwnTtl},
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
    /// Entries that do not say which version they are of, by their document.
    unclear: Vec<DocumentKey>,
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

/// What a life is like of a document that has seconds of its own and no dates, as far as its length goes.
const OWN_ALONE: Life = Life { ts: 0, own: OwnTtl::Seconds(0), dates: Vec::new() };

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
            unclear: Vec::new(),
            more: false,
            next: None,
        };
        self.feed(&mut counted).await?;
        self.deadlines(&mut counted).await?;
        for rule in &self.container.ttl().date_rules {
            self.dates(&mut counted, rule).await?;
        }
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
                let entry = FeedEntry::decode(value)?;
                let (place, ts) = (sequence_of(key)?, entry.life.ts as i64);
                let inherits = entry.life.own == OwnTtl::Inherit;
                if inherits && ts > through {
                    return Ok(Step::Alive(ts));
                }
                let is_ours =
                    inherits && !counted.reach.has_purged(&entry.life, place, entry.document.as_bytes());
                counted.reach.feed = Some(place);
                if inherits {
                    last = Some(ts);
                }
                match is_ours {
                    true => self.purged(counted, &entry.life, entry.size, || Ok(entry.document)),
                    false => Ok(Step::Passed),
                }
            })
            .await?;
        match ended {
            Some(alive) => {
                counted.reach.inherited = counted.reach.inherited.max(through);
                if let (Some(ts), Some(DefaultTtl::Seconds(n))) = (alive, self.container.ttl().default) {
                    counted.expires(Timestamp::from_seconds(ts.max(0) as u64 + u64::from(n)));
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
        let range = self.shard.range(Family::Expiry, &[]);
        let alive = self.queue(counted, range, self.cuts.own.through, |reach| &mut reach.own).await?;
        if let (Some(deadline), true) = (alive, self.container.ttl().default.is_some()) {
            counted.expires(Timestamp::from_seconds(deadline.max(0) as u64));
        }
        Ok(())
    }

    /// Documents that end by their date under a rule, in the order of dates.
    async fn dates(&self, counted: &mut Counted, rule: &DateRule) -> Result<()> {
        let range = self.shard.range(Family::Date, &rule.id.to_be_bytes());
        let through = self.cuts.date(rule.id).through;
        let alive = self.queue(counted, range, through, |reach| reach.date_mut(rule.id)).await?;
        if let (Some(date), Some(seconds)) = (alive, rule.in_force()) {
            let at = date.saturating_add(i64::from(seconds) * 1000);
            counted.expires(Timestamp(at.max(0) as u64));
        }
        Ok(())
    }

    /// Documents whose entries are in a family, whose keys go on with a time and a document. The time of the first one
    /// alive, if the walk came to it.
    async fn queue(
        &self,
        counted: &mut Counted,
        mut range: KeyRange,
        through: i64,
        of: impl Fn(&mut Reach) -> &mut QueueReach + Sync,
    ) -> Result<Option<i64>> {
        if through == i64::MIN {
            return Ok(None);
        }
        let head = range.start.len();
        let before = counted.reach.clone();
        range.start.extend_from_slice(&of(&mut counted.reach).from);
        let mut last = None;
        let ended = self
            .pages(range, counted, |counted, key, value| {
                let time = key.get(head..).and_then(from_ordered).ok_or(DAMAGED)?;
                if time > through {
                    return Ok(Step::Alive(time));
                }
                let document = key.get(head + 8..).ok_or(DAMAGED)?;
                let entry = DueEntry::decode(value).ok_or(DAMAGED)?;
                last = Some(time);
                let key_of = || DocumentKey::from_tail(document);
                let step = match &entry.version {
                    Some((place, life)) if counted.reach.has_purged(life, *place, document) => Step::Passed,
                    Some((_, life)) => self.purged(counted, life, entry.size, key_of)?,
                    // Without date rules a document is in one queue.
                    None if self.container.ttl().date_rules.is_empty() => {
                        self.purged(counted, &OWN_ALONE, entry.size, key_of)?
                    }
                    None => {
                        counted.unclear.push(key_of()?);
                        Step::Passed
                    }
                };
                of(&mut counted.reach).from = [&key[head..], &[0]].concat();
                Ok(step)
            })
            .await?;
        self.count_unclear(counted, &before, &of).await?;
        let queue = of(&mut counted.reach);
        match ended {
            Some(alive) => {
                queue.through = queue.through.max(through);
                Ok(alive)
            }
            None => {
                queue.through = queue.through.max(last.unwrap_or(i64::MIN).saturating_sub(1));
                counted.more = true;
                Ok(None)
            }
        }
    }

    /// Counts the documents of entries that do not say what version they are of, by their records. One that has none
    /// was purged before, and so was one that another queue has let go.
    async fn count_unclear(
        &self,
        counted: &mut Counted,
        before: &Reach,
        of: impl Fn(&mut Reach) -> &mut QueueReach,
    ) -> Result<()> {
        let documents = std::mem::take(&mut counted.unclear);
        let keys: Vec<_> = documents.iter().map(|document| self.shard.record(document)).collect();
        let mut after = before.clone();
        *of(&mut after) = of(&mut counted.reach).clone();
        for (document, record) in documents.into_iter().zip(self.snapshot.get_many(&keys).await?) {
            let Some(record) = record.map(Record::decode).transpose()? else { continue };
            let purged_by = |reach: &Reach| {
                reach.has_purged(&record.life, (record.lsn, record.ordinal), document.as_bytes())
            };
            // The entry may be what is left of an earlier version.
            if purged_by(before) || !purged_by(&after) {
                continue;
            }
            if let Step::Purged(size) = self.purged(counted, &record.life, record.size(), || Ok(document))? {
                counted.add(size);
            }
        }
        Ok(())
    }

    /// A document is taken out of the sums; its record has to be deleted if the store does not come across it.
    fn purged(
        &self,
        counted: &mut Counted,
        life: &Life,
        size: u32,
        document: impl FnOnce() -> Result<DocumentKey>,
    ) -> Result<Step> {
        if Record::LIFE_AT + life.encoded_len() + size as usize > self.dropped_up_to {
            counted.deletes.push(self.shard.record(&document()?));
        }
        Ok(Step::Purged(size))
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
                        Ok(Step::Purged(size)) => counted.add(size),
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
            let waiting = counted.deletes.len().max(counted.unclear.len());
            if walked >= self.rows_max || waiting >= DELETES_MAX {
                return Ok(None);
            }
            rows = (rows * 4).min(PAGE_ROWS.1);
        }
    }
}

impl Counted {
    fn add(&mut self, size: u32) {
        self.documents += 1;
        self.bytes += i64::from(size);
    }

    fn expires(&mut self, at: Timestamp) {
        self.next = earlier(self.next, Some(at));
    }

    /// Whether anything is to be written.
    pub fn has_news(&self) -> bool {
        let is_whole = |reach: &Reach| reach.inherited_in_part <= reach.inherited;
        let places = |reach: &Reach| {
            let dates = reach.dates.iter().map(|(rule, queue)| (*rule, queue.from.clone()));
            (
                reach.feed,
                reach.own.from.clone(),
                dates.filter(|(_, from)| !from.is_empty()).collect::<Vec<_>>(),
            )
        };
        self.documents > 0
            || places(&self.reach) != places(&self.before)
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
        let mut puts = vec![counted.reach.row(shard)];
        if writes.is_none_or(|row| row.stamp < now.seconds()) {
            guards.push(guard(Family::Counter, writes.map(|row| row.seq)));
            // The sequence stays as it is; a write with an earlier time is stale from now on.
            puts.extend(writes.map(|row| {
                let value = Counter { stamp: now.seconds(), ..row }.encode().to_vec();
                Put { key: shard.single(Family::Counter), value, marks: Vec::new() }
            }));
        }
        let tally = [-counted.documents, -counted.bytes];
        let batch = Batch {
            guards,
            puts,
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

    /// Whether documents of a container are purged by count: nothing has to be written for each of them. Unique rows do
    /// not say when their documents end, and a log wants an event for each.
    pub(crate) fn counts_out(&self, container: &Container) -> bool {
        self.store().forgets_up_to() > 0
            && container.definition().log_minutes.is_none()
            && !container.has_unique_rows()
    }
}
