//! How much there is.
//!
//! Counts never include what has expired. The store keeps running sums of what is stored; from these the backlog of
//! purge is taken away, and the backlog is found from the expiry order, so the cost is that of the backlog and not of
//! the container.

use mayfly_storage::store::{Direction, KeyRange, PageLimit, Snapshot};

use crate::{
    clock::Timestamp,
    container::Container,
    engine::Engine,
    error::{Error, Result},
    keys::{Family, Shard, from_ordered, ordered, sequence_of},
    purge::Reach,
    ranges::PartitionKeyRange,
    record::{DueEntry, FeedEntry},
    scan::each_row,
    ttl::{Cuts, Life, OwnTtl},
};

/// Documents and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// How many.
    pub documents: u64,
    /// How large, together.
    pub bytes: u64,
}

impl Amount {
    pub(crate) fn add(&mut self, bytes: u32) {
        self.documents += 1;
        self.bytes += u64::from(bytes);
    }

    fn include(&mut self, other: Self) {
        self.documents += other.documents;
        self.bytes += other.bytes;
    }
}

/// What a container holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Living documents.
    pub live: Amount,
    /// Expired documents that purge has not reached.
    pub backlog: Amount,
    /// Documents that purge has removed so far.
    pub purged: Amount,
    /// How long the oldest of the backlog has been waiting, in seconds.
    pub lag_seconds: u64,
}

impl Engine {
    /// What a container holds at `now`.
    pub async fn usage(&self, container: &Container, now: Timestamp) -> Result<Usage> {
        let mut usage = Usage::default();
        for slot in 0..container.slots() {
            let part = self.slot_usage(container, slot, now).await?;
            usage.live.include(part.live);
            usage.backlog.include(part.backlog);
            usage.purged.include(part.purged);
            usage.lag_seconds = usage.lag_seconds.max(part.lag_seconds);
        }
        Ok(usage)
    }

    /// What one slot of a container holds at `now`.
    pub async fn slot_usage(&self, container: &Container, slot: u32, now: Timestamp) -> Result<Usage> {
        let shard = container.shard(slot);
        let stored = self.counter_of(shard, Family::Counter).await?.tally;
        let purged = self.counter_of(shard, Family::Purged).await?.tally;
        let backlog = self.backlog(container, shard, &container.ttl().cuts(now)).await?;
        let count = |n: usize| stored[n].saturating_add(purged[n]).max(0) as u64;
        Ok(Usage {
            live: Amount {
                documents: count(0).saturating_sub(backlog.amount.documents),
                bytes: count(1).saturating_sub(backlog.amount.bytes),
            },
            backlog: backlog.amount,
            purged: Amount { documents: purged[0].unsigned_abs(), bytes: purged[1].unsigned_abs() },
            lag_seconds: backlog.oldest.map_or(0, |oldest| now.0.saturating_sub(oldest.0) / 1000),
        })
    }

    /// The living documents of a partition key range at `now`. The sums are kept by slot, so those of a slot
    /// that has several ranges are counted out.
    pub async fn range_usage(
        &self,
        container: &Container,
        range: &PartitionKeyRange,
        now: Timestamp,
    ) -> Result<Amount> {
        if container.ranges().iter().filter(|other| other.slot == range.slot).count() == 1 {
            return Ok(self.slot_usage(container, u32::from(range.slot), now).await?.live);
        }
        let cuts = container.ttl().cuts(now);
        let feed = container.shard(u32::from(range.slot)).range(Family::Feed, &[]);
        let mut live = Amount::default();
        each_row(&*self.store().snapshot().await?, feed, &mut |_, value| {
            let entry = FeedEntry::decode(value)?;
            if cuts.is_live(&entry.life) && range.keys.contains(&entry.document.parts()?.0) {
                live.add(entry.size);
            }
            Ok(())
        })
        .await?;
        Ok(live)
    }

    /// Expired documents of a slot that are still stored.
    async fn backlog(&self, container: &Container, shard: Shard, cuts: &Cuts) -> Result<Backlog> {
        let mut backlog = Backlog::default();
        if !container.ttl().can_expire() {
            return Ok(backlog);
        }
        let snapshot = self.store().snapshot().await?;
        let reach = Reach::read(&*snapshot, shard).await?;
        // A document may be dead by several rules; where several have cut, each is counted once by its key.
        let by_dates = cuts.date_rules().filter(|rule| cuts.date(*rule).through > i64::MIN).count();
        let by_ttl = [cuts.inherited, cuts.own].into_iter().filter(|cut| cut.through > i64::MIN).count();
        let mut seen =
            (by_dates > 0 && by_dates + by_ttl > 1).then(std::collections::HashSet::<Vec<u8>>::new);
        let mut first = |document: &[u8]| seen.as_mut().is_none_or(|seen| seen.insert(document.to_vec()));
        if cuts.inherited.through > i64::MIN {
            let mut range = shard.range(Family::Feed, &[]);
            range.start.extend_from_slice(&reach.feed_start());
            each_dead_feed_entry(&*snapshot, range, cuts, &mut |key, value, size, life| {
                // What inherits has one place in the feed, and purge of the feed has not come to it.
                if by_dates > 0 || !life.dates.is_empty() {
                    let document = FeedEntry::decode(value)?.document;
                    if reach.has_purged(&life, sequence_of(key)?, document.as_bytes())
                        || !first(document.as_bytes())
                    {
                        return Ok(());
                    }
                }
                backlog.add(size, container.ttl().expired_at(&life, cuts));
                Ok(())
            })
            .await?;
        }
        let mut expiry = shard.range(Family::Expiry, &[]);
        let head = expiry.start.len();
        expiry.start.extend_from_slice(&reach.own.from);
        each_due(&*snapshot, expiry, head, cuts.own.through, &mut |deadline, document, entry| {
            if !reach.has_purged_entry(entry, document) && first(document) {
                let at = container.ttl().own_expired_at(deadline, cuts);
                backlog.add(entry.size, at.map(|seconds| Timestamp::from_seconds(seconds.max(0) as u64)));
            }
        })
        .await?;
        for rule in cuts.date_rules() {
            let mut dates = shard.range(Family::Date, &rule.to_be_bytes());
            let head = dates.start.len();
            if let Some(queue) = reach.date(rule) {
                dates.start.extend_from_slice(&queue.from);
            }
            each_due(&*snapshot, dates, head, cuts.date(rule).through, &mut |date, document, entry| {
                if !reach.has_purged_entry(entry, document) && first(document) {
                    let at = container.ttl().date_expired_at(rule, date, cuts);
                    backlog.add(entry.size, at.map(|ms| Timestamp(ms.max(0) as u64)));
                }
            })
            .await?;
        }
        Ok(backlog)
    }
}

#[derive(Default)]
struct Backlog {
    amount: Amount,
    oldest: Option<Timestamp>,
}

impl Backlog {
    fn add(&mut self, bytes: u32, expired_at: Option<Timestamp>) {
        self.amount.add(bytes);
        self.oldest = self.oldest.into_iter().chain(expired_at).min();
    }
}

/// Rows of a page: the first ones are few, for a backlog that is short.
const PAGE_ROWS: (usize, usize) = (64, 4096);

/// Takes an entry in the feed: key, value, and what the value says of size and life.
type Dead<'a> = dyn FnMut(&[u8], &[u8], u32, Life) -> Result<()> + Send + 'a;

/// Gives `dead` the entries of documents that inherit and are dead, from the head of the feed to the first alive.
async fn each_dead_feed_entry(
    snapshot: &dyn Snapshot,
    mut range: KeyRange,
    cuts: &Cuts,
    dead: &mut Dead<'_>,
) -> Result<()> {
    let mut rows = PAGE_ROWS.0;
    loop {
        let mut ended = None;
        let mut keep = |key: &[u8], value: &[u8], _: bool| {
            if ended.is_none() {
                ended = match FeedEntry::decode_life(value) {
                    Ok((_, life)) if life.own != OwnTtl::Inherit => None,
                    Ok((_, life)) if life.ts as i64 > cuts.inherited.through => Some(Ok(())),
                    Ok((size, life)) => dead(key, value, size, life).err().map(Err),
                    Err(error) => Some(Err(error)),
                };
            }
            false
        };
        let limit = PageLimit { rows, bytes: usize::MAX };
        let page = snapshot.sieve(&range, Direction::Forward, limit, None, &mut keep).await?;
        rows = (rows * 4).min(PAGE_ROWS.1);
        match (ended, page.cut_after) {
            (Some(ended), _) => return ended,
            (None, None) => return Ok(()),
            (None, Some(last)) => range.start = [&last[..], &[0]].concat(),
        }
    }
}

/// Gives `due` what is due in a family whose keys go on with a time and a document: time, document, entry.
async fn each_due(
    snapshot: &dyn Snapshot,
    mut family: KeyRange,
    head: usize,
    through: i64,
    due: &mut (dyn FnMut(i64, &[u8], &DueEntry) + Send),
) -> Result<()> {
    const DAMAGED: Error = Error::Corrupt("an expiry entry cannot be read");
    if through == i64::MIN {
        return Ok(());
    }
    family.end = Some([&family.start[..head], &ordered(through.saturating_add(1))].concat());
    each_row(snapshot, family, &mut |key, value| {
        let time = from_ordered(&key[head..]).ok_or(DAMAGED)?;
        let document = key.get(head + 8..).ok_or(DAMAGED)?;
        due(time, document, &DueEntry::decode(value).ok_or(DAMAGED)?);
        Ok(())
    })
    .await
}
