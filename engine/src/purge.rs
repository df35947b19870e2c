//! Purge: giving back the space of what has expired.
//!
//! Nothing depends on it: what is expired is invisible already. It finds its victims in the order they expired and
//! never looks at living documents on the way:
//!
//! * documents that inherit the default expire in feed order, because `_ts` never goes down along the feed: it walks
//!   the feed from where it stopped last time, up to the first one that is alive;
//! * documents with their own deadline, or a date under a date rule, stand in a family that begins with it.
//!
//! Record, index entries, unique keys, feed entry and expiry entries go in one guarded batch, so a document that is
//! written again at the same moment survives. The batches are background work: behind everybody else, and not synced
//! for their own sake. A tick takes a bounded number of documents from each container, so that none waits for
//! another's backlog.
//!
//! A store may keep what was deleted in its files. Giving those back is dear, so it is asked to only after a good part
//! of what it holds was purged.

use std::{
    collections::HashSet,
    sync::{Arc, atomic::Ordering::Relaxed},
};

use mayfly_storage::{
    Error as StoreError,
    store::{Batch, Direction, KeyRange, PageLimit, Put, Snapshot, Urgency},
};

use crate::{
    changes::{Change, Changes},
    clock::Timestamp,
    container::Container,
    engine::Engine,
    error::Result,
    keys::{DocumentKey, Family, PREFIX_LEN, Shard, from_ordered, ordered, sequence_of},
    log::Event,
    record::{FeedEntry, Record},
    ttl::{Cuts, DefaultTtl, OwnTtl},
};

/// Documents taken from one slot in one batch. Larger ones did not purge faster and held up writes for longer.
const VICTIMS_MAX: usize = 128;

/// Purged bytes that are worth asking the store for its space: below this, its files hardly shrink.
const RECLAIM_BYTES_MIN: u64 = 16 * 1024 * 1024;

/// They must also be one part in this many of what is on disk: the store may go through all of it, so it handles at
/// most three bytes for each that was purged.
const RECLAIM_DISK_PARTS: u64 = 3;

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
    pub async fn purge(&self, now: Timestamp) -> Result<Purged> {
        let mut purged = Purged::default();
        for container in self.catalog().all_containers() {
            purged.add(self.purge_container(&container, now).await?);
        }
        Ok(purged)
    }

    /// Lets the store give space back if enough was purged since the last time; whether it was. Takes seconds for each
    /// gigabyte, while everything else goes on. Call when purge has caught up.
    pub async fn reclaim(&self) -> Result<bool> {
        let content = || self.store_stats().disk_bytes.saturating_sub(JOURNAL_BYTES);
        let purged = self.unreclaimed().load(Relaxed);
        if purged < RECLAIM_BYTES_MIN || purged < content() / RECLAIM_DISK_PARTS {
            return Ok(false);
        }
        let purged = self.unreclaimed().swap(0, Relaxed);
        let reclaimed = self.store().reclaim().await;
        if reclaimed.is_err() {
            self.unreclaimed().fetch_add(purged, Relaxed);
        }
        Ok(reclaimed.map(|()| true)?)
    }

    /// One tick for one container.
    pub(crate) async fn purge_container(&self, container: &Arc<Container>, now: Timestamp) -> Result<Purged> {
        let mut purged = Purged::default();
        if !container.ttl().can_expire() && container.definition().log_minutes.is_none() {
            return Ok(purged);
        }
        for shard in container.shards() {
            purged.add(self.purge_shard(container, shard, now).await?);
            purged.more |= self.trim_log(container, shard, now).await?;
        }
        let metrics = self.metrics().of(container.id);
        metrics.purged_documents.add(purged.documents);
        metrics.purged_bytes.add(purged.bytes);
        self.unreclaimed().fetch_add(purged.bytes, Relaxed);
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
            if !self.purge_container(&current, now).await?.more {
                return Ok(Some(current.ttl().cuts(now)));
            }
        }
    }

    async fn purge_shard(&self, container: &Container, shard: Shard, now: Timestamp) -> Result<Purged> {
        let snapshot = self.store().snapshot().await?;
        let cuts = container.ttl().cuts(now);
        let mut search = Search::new(&*snapshot, container, shard, &cuts);
        search.feed().await?;
        search.deadlines().await?;
        search.dates().await?;
        let Search { victims, walked_to, mut more, next, .. } = search;

        let keys: Vec<_> = victims.iter().map(|document| shard.record(document)).collect();
        let records = snapshot.get_many(&keys).await?;
        let mut changes = Changes::new(container, shard);
        let mut purged = Purged { next, ..Purged::default() };
        for (document, record) in victims.iter().zip(records) {
            let Some(record) = record.map(Record::decode).transpose()? else { continue };
            if cuts.is_live(&record.life) {
                continue;
            }
            changes.add(&Change { document, before: Some(&record), after: None })?;
            if container.definition().log_minutes.is_some() {
                let at = container.ttl().expired_at(&record.life, &cuts);
                changes.log(&Event::expired(now.seconds(), document, &record, at));
            }
            purged.documents += 1;
            purged.bytes += u64::from(record.size());
        }
        if let Some(position) = &walked_to {
            changes.put(shard.single(Family::PurgePosition), position.clone());
        }
        if purged.documents > 0 || walked_to.is_some() {
            let batch = match purged.documents {
                0 => position_batch(container, shard, walked_to.unwrap_or_default()),
                _ => changes.into_purge(now.seconds()),
            };
            match self.store().commit(batch).await {
                Ok(_) => {}
                // Somebody wrote one of the victims, or changed the container: look again.
                Err(StoreError::Conflict { .. }) => return Ok(Purged { more: true, ..Purged::default() }),
                Err(StoreError::Stale { stamp }) => {
                    self.timeline().observe(stamp);
                    more = true;
                    purged = Purged::default();
                }
                Err(error) => return Err(error.into()),
            }
        }
        purged.more = more;
        Ok(purged)
    }

    /// Forgets log entries beyond the container's retention.
    async fn trim_log(&self, container: &Container, shard: Shard, now: Timestamp) -> Result<bool> {
        let Some(minutes) = container.definition().log_minutes else { return Ok(false) };
        let oldest = now.seconds().saturating_sub(u64::from(minutes) * 60);
        let snapshot = self.store().snapshot().await?;
        let limit = PageLimit { rows: VICTIMS_MAX, bytes: 1 << 20 };
        let page = snapshot.scan(&shard.range(Family::Log, &[]), Direction::Forward, limit).await?;
        let mut deletes = Vec::new();
        for (key, value) in &page.rows {
            if Event::decode(value)?.ts >= oldest {
                break;
            }
            let (lsn, ordinal) = sequence_of(key)?;
            deletes.push(shard.sequenced(Family::Log, lsn, ordinal));
        }
        let more = deletes.len() == page.rows.len() && page.more;
        if !deletes.is_empty() {
            self.store().commit(Batch { deletes, urgency: Urgency::Background, ..Batch::default() }).await?;
        }
        Ok(more)
    }
}

/// Guarded like the others, so that nothing is left behind in a container that is being dropped.
fn position_batch(container: &Container, shard: Shard, position: Vec<u8>) -> Batch {
    let put = Put { key: shard.single(Family::PurgePosition), value: position, marks: Vec::new() };
    let guards = vec![container.guard()];
    Batch { guards, puts: vec![put], urgency: Urgency::Background, ..Batch::default() }
}

/// The search for victims in one slot.
struct Search<'a> {
    container: &'a Container,
    shard: Shard,
    snapshot: &'a dyn Snapshot,
    cuts: &'a Cuts,
    victims: Vec<DocumentKey>,
    seen: HashSet<DocumentKey>,
    /// How far the feed has been walked, if further than before.
    walked_to: Option<Vec<u8>>,
    more: bool,
    next: Option<Timestamp>,
}

impl<'a> Search<'a> {
    fn new(snapshot: &'a dyn Snapshot, container: &'a Container, shard: Shard, cuts: &'a Cuts) -> Self {
        Self {
            container,
            shard,
            snapshot,
            cuts,
            victims: Vec::new(),
            seen: HashSet::new(),
            walked_to: None,
            more: false,
            next: None,
        }
    }

    fn limit(&self) -> PageLimit {
        PageLimit { rows: VICTIMS_MAX.saturating_sub(self.victims.len()).max(1), bytes: usize::MAX }
    }

    fn take(&mut self, document: DocumentKey) {
        if self.seen.insert(document.clone()) {
            self.victims.push(document);
        }
    }

    fn expires(&mut self, at: Timestamp) {
        self.next = earlier(self.next, Some(at));
    }

    /// Documents that inherit: from the head of the feed to the first one alive.
    async fn feed(&mut self) -> Result<()> {
        if self.cuts.inherited.through == i64::MIN {
            return Ok(());
        }
        let stored = self.snapshot.get(&self.shard.single(Family::PurgePosition)).await?;
        let mut range = self.shard.range(Family::Feed, &[]);
        let head = range.start.len();
        if let Some(position) = &stored {
            range.start.extend_from_slice(position);
        }
        let page = self.snapshot.scan(&range, Direction::Forward, self.limit()).await?;
        self.more |= page.more;
        let mut position = stored.as_deref().unwrap_or_default().to_vec();
        for (key, value) in &page.rows {
            let entry = FeedEntry::decode(value)?;
            let inherits = entry.life.own == OwnTtl::Inherit;
            if inherits && entry.life.ts as i64 > self.cuts.inherited.through {
                if let Some(DefaultTtl::Seconds(n)) = self.container.ttl().default {
                    self.expires(Timestamp::from_seconds(entry.life.ts + u64::from(n)));
                }
                self.more = false;
                break;
            }
            if inherits {
                self.take(entry.document);
            }
            position = [&key[head..], &[0]].concat();
        }
        if stored.as_deref() != Some(&position[..]) && !position.is_empty() {
            self.walked_to = Some(position);
        }
        Ok(())
    }

    /// Documents with their own deadline.
    async fn deadlines(&mut self) -> Result<()> {
        let family = self.shard.range(Family::Expiry, &[]);
        let on = self.container.ttl().default.is_some();
        self.queue(family, self.cuts.own.through, |deadline| {
            on.then(|| Timestamp::from_seconds(deadline.max(0) as u64))
        })
        .await
    }

    /// Documents with a date under a rule.
    async fn dates(&mut self) -> Result<()> {
        for rule in self.container.ttl().date_rules.clone() {
            let family = self.shard.range(Family::Date, &rule.id.to_be_bytes());
            let after = rule.in_force().map(|seconds| i64::from(seconds) * 1000);
            self.queue(family, self.cuts.date(rule.id).through, |date| {
                after.map(|after| Timestamp(date.saturating_add(after).max(0) as u64))
            })
            .await?;
        }
        Ok(())
    }

    /// Takes what is due at the head of a family whose keys go on with a time and a document.
    async fn queue(
        &mut self,
        family: KeyRange,
        through: i64,
        expires: impl Fn(i64) -> Option<Timestamp>,
    ) -> Result<()> {
        if self.victims.len() >= VICTIMS_MAX {
            self.more = true;
            return Ok(());
        }
        let head = family.start.len();
        debug_assert!(head >= PREFIX_LEN);
        let first_alive = [&family.start[..], &ordered(through.saturating_add(1))].concat();
        let page = self.snapshot.scan(&family, Direction::Forward, self.limit()).await?;
        for (key, _) in &page.rows {
            let time = from_ordered(&key[head..]);
            let time = time.ok_or(crate::Error::Corrupt("an expiry key cannot be read"))?;
            if key[..] >= first_alive[..] {
                if let Some(at) = expires(time) {
                    self.expires(at);
                }
                return Ok(());
            }
            self.take(DocumentKey::from_tail(&key[head + 8..])?);
        }
        self.more |= page.more;
        Ok(())
    }
}
