//! Purge: giving back the space of what has expired.
//!
//! Nothing depends on it: what is expired is invisible already. It finds its victims in the order they expired and
//! never looks at living documents on the way:
//!
//! * documents that inherit the default expire in feed order, because `_ts` never goes down along the feed: it walks
//!   the feed from where it stopped last time, up to the first one that is alive;
//! * documents with their own deadline, or a date under a date rule, stand in a family that begins with it.
//!
//! Where the store drops rows by itself, documents are taken out of the sums as they are walked over, and that is all
//! (`count.rs`). Others go one by one: those of containers with unique rows or a log, and all where the store only
//! deletes what it is told to. Record, index entries, unique keys, feed entry and expiry entries go in
//! one guarded batch then, so a document that is written again at the same moment survives. Where a document has no rows
//! that its body names, its entry in the feed tells the rest, and no record is read.
//!
//! The batches are background work: behind everybody else, and not synced for their own sake. A tick takes a bounded
//! number of documents from each container, so that none waits for another's backlog; how many is the caller's choice
//! of [`Pace`].
//!
//! A store may keep what was deleted or left in its files. Giving those back is dear, so it is asked to only after a
//! good part of what it holds was purged.

mod count;
mod left;
mod reach;
mod search;

use std::sync::{Arc, atomic::Ordering::Relaxed};

use mayfly_storage::{
    Error as StoreError,
    store::{Batch, Committed, Counter, Direction, Expect, Guard, PageLimit, Put, Snapshot, Urgency},
};

use crate::{
    clock::Timestamp,
    container::Container,
    engine::Engine,
    error::Result,
    feed::LogForgotten,
    keys::{Family, Shard, sequence_of},
    log::Event,
    record::Record,
    ttl::Cuts,
    write::{BatchBuilder, Before, Change},
};
use count::Walk;
pub(crate) use left::Left;
pub(crate) use reach::Reach;
pub(crate) use search::Marks;
use search::{Search, Victim};

/// Documents removed in one batch. Larger ones did not purge faster and held up writes for longer.
const VICTIMS_PER_BATCH: usize = 128;

/// The same where nothing has to be read for each, on a store that goes through them before it takes the slot: each batch
/// waits for the slot behind writers once, so large ones keep up with them.
const LISTED_PER_BATCH: usize = 8192;

/// Log entries trimmed in one batch.
const EVENTS_MAX: usize = 128;

/// How much a tick does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// For when somebody is being served: few documents of each slot, so that whoever comes meanwhile waits for no more.
    Gentle,
    /// For when somebody is being served and purge has fallen behind: many, each batch relying on its documents alone, as
    /// writers are about.
    Pressing,
    /// For when nobody is: many, and one batch is made while another is being written.
    Full,
}

impl Pace {
    /// Documents that a tick takes from one slot one by one.
    fn victims_max(self, is_listed: bool) -> usize {
        match (self, is_listed) {
            (Self::Gentle, false) => 32,
            (Self::Gentle, true) => LISTED_PER_BATCH,
            (Self::Pressing | Self::Full, false) => 8 * VICTIMS_PER_BATCH,
            (Self::Pressing | Self::Full, true) => 4 * LISTED_PER_BATCH,
        }
    }

    /// How many of them go in one batch. Beside writers each of their groups takes one batch along, so that purge which is
    /// behind has to put more into it.
    fn victims_per_batch(self, is_listed: bool) -> usize {
        match self {
            _ if is_listed => LISTED_PER_BATCH,
            Self::Gentle | Self::Full => VICTIMS_PER_BATCH,
            Self::Pressing => 4 * VICTIMS_PER_BATCH,
        }
    }
}

/// What the batches of a tick rely on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reliance {
    /// The version of each record: a write elsewhere in the slot does not matter.
    Records,
    /// The slot's counter: one look instead of one for each document, and any write at all sends us back.
    Slot,
}

/// Purged bytes that are worth asking the store for its space: below this, its files hardly shrink.
const RECLAIM_BYTES_MIN: u64 = 16 * 1024 * 1024;

/// They must also be one part in this many of what is on disk: the store may go through all of it, so it handles at
/// most three bytes for each that was purged.
const RECLAIM_DISK_PARTS: u64 = 3;

/// The same while requests come in, where it is in their way.
const RECLAIM_BUSY_BYTES_MIN: u64 = 256 * 1024 * 1024;
const RECLAIM_BUSY_DISK_PARTS: u64 = 2;

/// What a stored value has beside the document, if that ends by the default.
const RECORD_HEAD_BYTES: u64 = Record::LIFE_AT as u64 + 9;

/// What of the disk is journal and not content, at most.
const JOURNAL_BYTES: u64 = 64 * 1024 * 1024;

/// What a tick did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Purged {
    /// Documents removed.
    pub documents: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Whether there is more to do right now.
    pub more: bool,
    /// When the next document that is known of expires.
    pub next: Option<Timestamp>,
}

impl Purged {
    fn add(&mut self, other: Self) {
        self.documents += other.documents;
        self.bytes += other.bytes;
        self.more |= other.more;
        self.next = earlier(self.next, other.next);
    }
}

fn earlier(a: Option<Timestamp>, b: Option<Timestamp>) -> Option<Timestamp> {
    a.into_iter().chain(b).min()
}

impl Engine {
    /// One tick: a bounded number of expired documents from every container.
    pub async fn purge(&self, now: Timestamp, pace: Pace) -> Result<Purged> {
        let mut purged = Purged::default();
        for container in self.catalog().all_containers() {
            // Others of the nodes that share the store see to the rest.
            let ours = |shard: &Shard| self.store().tends(shard.place());
            let shards = container.shards().filter(ours).collect();
            purged.add(self.purge_shards(&container, shards, now, pace).await?);
        }
        Ok(purged)
    }

    /// Lets the store give space back if enough was purged since the last time; whether it was. Takes seconds for each
    /// gigabyte, while everything else goes on. Call when purge has caught up.
    pub async fn reclaim(&self) -> Result<bool> {
        let content = self.store_stats().disk_bytes.saturating_sub(JOURNAL_BYTES);
        let (min, parts) = match self.load().pace() {
            // Merges that are made anyway drop most of it.
            Pace::Gentle | Pace::Pressing => (RECLAIM_BUSY_BYTES_MIN, RECLAIM_BUSY_DISK_PARTS),
            Pace::Full => (RECLAIM_BYTES_MIN, RECLAIM_DISK_PARTS),
        };
        let dropped = self.store().forgotten_bytes();
        let left = self.counted_bytes().load(Relaxed).saturating_sub(dropped);
        let deleted = self.unreclaimed().load(Relaxed);
        if left + deleted < min {
            return Ok(false);
        }
        // Of small documents most of what is on disk are other rows than records, and those are left as well.
        if left + deleted < content / parts && left < self.stored_bytes().await? / parts {
            return Ok(false);
        }
        self.unreclaimed().fetch_sub(deleted, Relaxed);
        let counted = self.counted_bytes().load(Relaxed);
        let reclaimed = self.store().reclaim().await;
        match &reclaimed {
            // What was counted out before is gone, in whichever way.
            Ok(()) => {
                let dropped = self.store().forgotten_bytes();
                let since = self.counted_bytes().load(Relaxed).saturating_sub(counted);
                self.counted_bytes().store(dropped + since, Relaxed);
            }
            Err(_) => drop(self.unreclaimed().fetch_add(deleted, Relaxed)),
        }
        Ok(reclaimed.map(|()| true)?)
    }

    /// Bytes of all documents that are in the sums.
    async fn stored_bytes(&self) -> Result<u64> {
        let mut bytes = 0;
        for container in self.catalog().all_containers() {
            for shard in container.shards() {
                for family in [Family::Counter, Family::Purged] {
                    bytes += self.counter_of(shard, family).await?.tally[1];
                }
            }
        }
        Ok(bytes.max(0) as u64)
    }

    /// Lets the store put in order what was written, if nobody has written since the last call and nobody is being served;
    /// whether it did. To be called every second or so.
    pub async fn settle_store(&self) -> Result<bool> {
        match self.load().pace() {
            // A merge that is begun goes on to its end, and would be in the way of those who ask now.
            Pace::Gentle | Pace::Pressing => Ok(false),
            Pace::Full => Ok(self.store().compact_when_idle().await?),
        }
    }

    /// One tick for one container, all of it.
    pub(crate) async fn purge_container(
        &self,
        container: &Arc<Container>,
        now: Timestamp,
        pace: Pace,
    ) -> Result<Purged> {
        self.purge_shards(container, container.shards().collect(), now, pace).await
    }

    async fn purge_shards(
        &self,
        container: &Arc<Container>,
        shards: Vec<Shard>,
        now: Timestamp,
        pace: Pace,
    ) -> Result<Purged> {
        let mut purged = Purged::default();
        if !container.ttl().can_expire() && container.definition().log_minutes.is_none() {
            return Ok(purged);
        }
        for shard in shards {
            if self.counts_out(container) {
                purged.add(self.count_shard(container, shard, now, pace).await?);
                continue;
            }
            let mut tick = self.purge_shard(container, shard, now, pace, Reliance::Slot).await?;
            purged.add(tick.purged);
            if tick.lost && self.is_behind(container) {
                // The next tick decides by what the container is now.
                self.renewed(container).await?;
                purged.more = true;
                continue;
            }
            if tick.lost && tick.reliance == Reliance::Slot {
                // Writers are about. Batches that only they can refuse who write their victims.
                tick = self.purge_shard(container, shard, now, Pace::Pressing, Reliance::Records).await?;
                purged.add(tick.purged);
            }
            purged.more |= self.trim_log(container, shard, now).await?;
        }
        let metrics = self.metrics().of(container.id);
        metrics.purged_documents.add(purged.documents);
        metrics.purged_bytes.add(purged.bytes);
        let (sum, each) = match self.counts_out(container) {
            // As the store counts what it drops.
            true => (self.counted_bytes(), RECORD_HEAD_BYTES),
            false => (self.unreclaimed(), 0),
        };
        sum.fetch_add(purged.bytes + purged.documents * each, Relaxed);
        Ok(purged)
    }

    /// What may be forgotten of a container's earlier rules before the next change of one.
    ///
    /// Nothing, as a rule. But where expiries are shown, no more changes are remembered than have room; then what is
    /// gone is purged first, and how it went stands in the log.
    pub(crate) async fn purged_past(&self, container: &Container, now: Timestamp) -> Result<Option<Cuts>> {
        let shows_expiries = container.definition().log_minutes.is_some();
        if !shows_expiries || !container.ttl().past_is_full() {
            return Ok(None);
        }
        loop {
            let current = self.reload(container)?;
            if !self.purge_container(&current, now, Pace::Full).await?.more {
                return Ok(Some(current.ttl().cuts(now)));
            }
        }
    }

    async fn purge_shard(
        &self,
        container: &Container,
        shard: Shard,
        now: Timestamp,
        pace: Pace,
        reliance: Reliance,
    ) -> Result<Tick> {
        let snapshot = self.store().background_snapshot().await?;
        let cuts = container.ttl().cuts(now);
        let before = Reach::read(&*snapshot, shard).await?;
        let is_listed = search::is_listed(container);
        let (per_batch, victims_max) = (pace.victims_per_batch(is_listed), pace.victims_max(is_listed));
        let mut removal = Removal {
            container,
            shard,
            snapshot: &*snapshot,
            cuts: &cuts,
            before: &before,
            moment: self.next_moment(now),
            now,
            // A removal costs much more than a look at its record, and is not worth doing twice.
            reliance: if pace == Pace::Full && !is_listed { reliance } else { Reliance::Records },
            ground: Ground::read(&*snapshot, shard).await?,
        };
        let mut tick = Tick { purged: Purged::default(), reliance: removal.reliance, lost: false };
        let mut written: Option<Removed> = None;
        let marks = self.purge_marks();
        let page = if is_listed { per_batch.min(victims_max) } else { victims_max };
        let mut search = Search::new(&*snapshot, container, shard, &cuts, marks, page, before.clone());
        let mut walked = 0;
        loop {
            search.more = false;
            // The next documents are looked for while the store removes the last ones.
            match written.take() {
                None => search.feed().await?,
                Some(before) => {
                    let (answer, found) = tokio::join!(self.store().commit(before.batch), search.feed());
                    if !self.settle(answer, before.documents, before.bytes, &mut tick)? {
                        return Ok(tick);
                    }
                    found?;
                }
            }
            if !is_listed {
                break;
            }
            let victims = search.take_victims();
            walked += page;
            written = removal.batch(&victims, search.has_walked.then_some(&search.reach)).await?;
            search.has_walked = false;
            if !search.more || walked >= victims_max {
                break;
            }
        }
        search.deadlines().await?;
        search.dates().await?;
        let mut victims = search.take_victims();
        let Search { reach, mut has_walked, more, next, .. } = search;
        if container.definition().log_minutes.is_none() {
            // In the order of their keys: their records lie together on disk, and so do the entries that go. A log
            // tells them as they were found, which is more or less as they went.
            victims.sort_unstable_by(|a, b| a.document().cmp(b.document()));
        }
        tick.purged = Purged { more, next, ..tick.purged };
        let mut rest = victims.chunks(per_batch).peekable();
        while let Some(some) = rest.next() {
            let ends = (rest.peek().is_none() && std::mem::take(&mut has_walked)).then_some(&reach);
            // The next batch is made while the store writes the last one.
            let made = match written.take() {
                None => removal.batch(some, ends).await?,
                Some(before) => {
                    let (answer, made) =
                        tokio::join!(self.store().commit(before.batch), removal.batch(some, ends));
                    if !self.settle(answer, before.documents, before.bytes, &mut tick)? {
                        return Ok(tick);
                    }
                    made?
                }
            };
            written = made;
        }
        if written.is_none() && has_walked {
            written = Some(Removed { batch: reach_batch(container, shard, &reach), documents: 0, bytes: 0 });
        }
        if let Some(last) = written {
            let answer = self.store().commit(last.batch).await;
            self.settle(answer, last.documents, last.bytes, &mut tick)?;
        }
        Ok(tick)
    }

    /// Purges by count. A walk that a writer has overtaken is repeated at the next tick.
    async fn count_shard(
        &self,
        container: &Arc<Container>,
        shard: Shard,
        now: Timestamp,
        pace: Pace,
    ) -> Result<Purged> {
        let snapshot = self.store().background_snapshot().await?;
        let now = Timestamp::from_seconds(now.seconds());
        let cuts = container.ttl().cuts(now);
        let walk = Walk {
            container,
            shard,
            snapshot: &*snapshot,
            cuts: &cuts,
            dropped_up_to: self.store().forgets_up_to(),
            rows_max: pace.rows_max(),
        };
        let counted = walk.run().await?;
        if !counted.has_news() {
            return Ok(Purged { more: counted.more, next: counted.next, ..Purged::default() });
        }
        match self.count_out(container, shard, &*snapshot, &counted, now).await? {
            Some(purged) => Ok(purged),
            None => {
                if self.is_behind(container) {
                    self.renewed(container).await?;
                }
                Ok(Purged { more: true, next: counted.next, ..Purged::default() })
            }
        }
    }

    /// Counts a batch that was written. Whether it was: otherwise the tick is over.
    fn settle(
        &self,
        answer: std::result::Result<Committed, StoreError>,
        documents: u64,
        bytes: u64,
        tick: &mut Tick,
    ) -> Result<bool> {
        match answer {
            Ok(_) => {
                tick.purged.documents += documents;
                tick.purged.bytes += bytes;
                return Ok(true);
            }
            // Somebody wrote one of the victims, or changed the container: look again.
            Err(StoreError::Conflict { .. }) => tick.lost = true,
            Err(StoreError::Stale { stamp }) => self.timeline().observe(stamp),
            Err(error) => return Err(error.into()),
        }
        tick.purged.more = true;
        Ok(false)
    }

    /// Forgets log entries beyond the container's retention.
    async fn trim_log(&self, container: &Container, shard: Shard, now: Timestamp) -> Result<bool> {
        let Some(minutes) = container.definition().log_minutes else { return Ok(false) };
        let oldest = now.seconds().saturating_sub(u64::from(minutes) * 60);
        let snapshot = self.store().background_snapshot().await?;
        let limit = PageLimit { rows: EVENTS_MAX, bytes: 1 << 20 };
        let page = snapshot.scan(&shard.range(Family::Log, &[]), Direction::Forward, limit).await?;
        let (mut deletes, mut last) = (Vec::new(), None);
        for (key, value) in &page.rows {
            let second = Event::decode(value)?.ts;
            if second >= oldest {
                break;
            }
            let (lsn, ordinal) = sequence_of(key)?;
            deletes.push(shard.sequenced(Family::Log, lsn, ordinal));
            last = Some(LogForgotten { lsn, second });
        }
        let Some(last) = last else { return Ok(false) };
        let more = deletes.len() == page.rows.len() && page.more;
        let before = LogForgotten::read(&*snapshot, shard).await?;
        let expect = before.map_or(Expect::Absent, |before| Expect::Version(before.lsn));
        let guards = vec![Guard { key: shard.single(Family::LogForgotten), expect }];
        let puts = vec![last.row(shard)];
        let batch = Batch { guards, puts, deletes, urgency: Urgency::Background, ..Batch::default() };
        match self.store().commit(batch).await {
            Ok(_) => Ok(more),
            // Another node is at it.
            Err(StoreError::Conflict { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// A tick of one slot.
struct Tick {
    purged: Purged,
    reliance: Reliance,
    /// Whether it ended early, because somebody else wrote.
    lost: bool,
}

/// Guarded like the others, so that nothing is left behind in a container that is being dropped.
fn reach_batch(container: &Container, shard: Shard, reach: &Reach) -> Batch {
    let guards = vec![container.guard()];
    Batch { guards, puts: vec![reach.row(shard)], urgency: Urgency::Background, ..Batch::default() }
}

/// A batch that removes documents.
struct Removed {
    batch: Batch,
    documents: u64,
    bytes: u64,
}

/// The slot's counters as a tick found them. Each of its batches expects them as the one before leaves them.
struct Ground {
    writes: Option<u64>,
    purges: Option<u64>,
}

impl Ground {
    async fn read(snapshot: &dyn Snapshot, shard: Shard) -> Result<Self> {
        let keys = [shard.single(Family::Counter), shard.single(Family::Purged)];
        let mut rows = snapshot.get_many(&keys).await?.into_iter();
        let mut seq = || rows.next().flatten().as_deref().and_then(Counter::decode).map(|row| row.seq);
        Ok(Self { writes: seq(), purges: seq() })
    }

    fn guard(shard: Shard, family: Family, seq: Option<u64>) -> Guard {
        let expect = seq.map_or(Expect::Absent, Expect::Version);
        Guard { key: shard.single(family), expect }
    }

    /// Takes a step with every batch that advances the counter.
    fn advance(seq: &mut Option<u64>) {
        *seq = Some(seq.unwrap_or(0) + 1);
    }
}

/// Makes the batches of one tick.
struct Removal<'a> {
    container: &'a Container,
    shard: Shard,
    snapshot: &'a dyn Snapshot,
    cuts: &'a Cuts,
    /// What was purged before.
    before: &'a Reach,
    moment: u64,
    now: Timestamp,
    reliance: Reliance,
    ground: Ground,
}

impl Removal<'_> {
    /// Removes those of `victims` that are there and gone, with all they have; nothing if there are none. `reach` is how far
    /// the search has come with them.
    async fn batch(&mut self, victims: &[Victim], reach: Option<&Reach>) -> Result<Option<Removed>> {
        let has_log = self.container.definition().log_minutes.is_some();
        let named: Vec<_> = victims.iter().filter_map(Victim::named).collect();
        let keys: Vec<_> = named.iter().map(|document| self.shard.record(document)).collect();
        let records = match keys.is_empty() {
            true => Vec::new(),
            false => self.snapshot.get_many(&keys).await?,
        };
        let mut changes = match self.reliance {
            Reliance::Records => BatchBuilder::new(self.container, self.shard),
            Reliance::Slot => {
                let no_writes = Ground::guard(self.shard, Family::Counter, self.ground.writes);
                BatchBuilder::relying_on(self.container, self.shard, no_writes)
            }
        };
        let (mut documents, mut bytes) = (0, 0);
        for (place, entry) in victims.iter().filter_map(Victim::listed) {
            // Counted out as below.
            if !self.before.has_purged(&entry.life, place, entry.document.as_bytes()) {
                documents += 1;
                bytes += u64::from(entry.size);
                changes.remove_listed(place, entry);
            }
        }
        for (document, record) in named.into_iter().zip(records) {
            let Some(record) = record.map(Record::decode).transpose()? else { continue };
            let place = (record.lsn, record.ordinal);
            // One that was counted out, when this container was purged by count, is in another queue still.
            if self.cuts.is_live(&record.life)
                || self.before.has_purged(&record.life, place, document.as_bytes())
            {
                continue;
            }
            documents += 1;
            bytes += u64::from(record.size());
            if has_log {
                let at = self.container.ttl().expired_at(&record.life, self.cuts);
                changes.log(&Event::expired(self.now.seconds(), document, &record, at), self.moment);
            }
            changes.add(&Change {
                document,
                before: Before::Stored(&record),
                after: None,
                after_unique: None,
            })?;
        }
        if documents == 0 {
            let batch = |reach| reach_batch(self.container, self.shard, reach);
            return Ok(reach.map(|reach| Removed { batch: batch(reach), documents, bytes }));
        }
        if let Some(reach) = reach {
            let Put { key, value, .. } = reach.row(self.shard);
            changes.put(key, value);
        }
        let mut batch = changes.into_purge(self.now.seconds());
        // Two purges of one document would count it twice, and one beside a rewrite of its dates would leave some.
        batch.guards.push(Ground::guard(self.shard, Family::Purged, self.ground.purges));
        Ground::advance(&mut self.ground.purges);
        if has_log {
            Ground::advance(&mut self.ground.writes);
        }
        Ok(Some(Removed { batch, documents, bytes }))
    }
}
