//! The change feed: what happened in a slot, in commit order.
//!
//! *Latest version*: each living document once, at its last write. *All versions and deletes*: the container's log,
//! expiries included. A position is a sequence number; a page never splits a commit.

use std::sync::Arc;

use mayfly_storage::store::{Direction, Page, PageLimit, Put, Snapshot};

use crate::{
    access::HashRange,
    clock::Timestamp,
    container::Container,
    engine::Engine,
    error::{Error, Result},
    keys::{DocumentId, Family, Shard, be_u64, sequence_of},
    log::Event,
    purge::Pace,
    record::{FeedEntry, Record},
    scan::last_commit,
};

/// Where to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedStart {
    /// With the first change there is.
    Beginning,
    /// With whatever comes next.
    Now,
    /// With changes of this second or later.
    Time(Timestamp),
    /// Just after this commit.
    After(u64),
}

/// A page of the latest-version feed.
#[derive(Debug)]
pub struct FeedPage {
    /// Living documents in commit order.
    pub records: Vec<Record>,
    /// The commit to go on after.
    pub position: u64,
    /// Whether there was more when the page ended.
    pub more: bool,
}

/// How far a log is forgotten, because its events were older than it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogForgotten {
    /// The last commit whose events are gone.
    pub lsn: u64,
    /// Their second.
    pub second: u64,
}

impl LogForgotten {
    pub(crate) async fn read(snapshot: &dyn Snapshot, shard: Shard) -> Result<Option<Self>> {
        let Some(row) = snapshot.get(&shard.single(Family::LogForgotten)).await? else { return Ok(None) };
        let word = |at: usize| row.get(at..at + 8).map(be_u64);
        let forgotten = || Some(Self { lsn: word(0)?, second: word(8)? });
        forgotten().map(Some).ok_or(Error::Corrupt("how far a log is forgotten"))
    }

    pub(crate) fn row(self, shard: Shard) -> Put {
        let value = [self.lsn.to_be_bytes(), self.second.to_be_bytes()].concat();
        Put { key: shard.single(Family::LogForgotten), value, marks: Vec::new() }
    }
}

/// A page of the log.
#[derive(Debug)]
pub struct LogPage {
    /// Events in commit order, each with its commit.
    pub events: Vec<(u64, Event)>,
    /// The commit to go on after.
    pub position: u64,
    /// Whether there was more when the page ended.
    pub more: bool,
    /// What is gone. Whoever was not that far has missed it.
    pub forgotten: Option<LogForgotten>,
}

impl Event {
    /// The id of the document.
    pub fn id(&self) -> Result<DocumentId> {
        Ok(self.document.parts()?.1)
    }
}

impl Engine {
    /// One page of a slot's latest-version feed.
    pub async fn changes(
        &self,
        container: &Container,
        slot: u16,
        start: FeedStart,
        within: &HashRange,
        rows_max: usize,
        now: Timestamp,
    ) -> Result<FeedPage> {
        let shard = container.shard(u32::from(slot));
        let cuts = container.ttl().cuts(now);
        let after = self.feed_start(shard, start).await?;
        let snapshot = self.store().snapshot().await?;
        let mut page = FeedPage { records: Vec::new(), position: after, more: false };
        loop {
            let rows = commits_after(&*snapshot, shard, Family::Feed, page.position, rows_max).await?;
            let mut wanted = Vec::new();
            for (key, value) in &rows.rows {
                let entry = FeedEntry::decode(value)?;
                page.position = sequence_of(key)?.0;
                if cuts.is_live(&entry.life) && within.contains(&entry.document.parts()?.0) {
                    wanted.push((page.position, shard.record(&entry.document)));
                }
            }
            let keys: Vec<_> = wanted.iter().map(|(_, key)| key.clone()).collect();
            for ((lsn, _), record) in wanted.iter().zip(snapshot.get_many(&keys).await?) {
                // A document written again since stands further on in the feed.
                if let Some(record) = record.map(Record::decode).transpose()?.filter(|r| r.lsn == *lsn) {
                    page.records.push(record);
                }
            }
            page.more = rows.more;
            if !rows.more {
                // The end is the slot's last commit, also if what it wrote has been deleted, or purged, since.
                page.position = page.position.max(last_commit(&*snapshot, shard).await?);
            }
            if page.records.len() >= rows_max || !rows.more {
                self.check_current(container).await?;
                return Ok(page);
            }
        }
    }

    /// One page of a slot's log, of documents in `within`. Expiries due by `now` are written down first, so that they are all in it.
    pub async fn log(
        &self,
        container: &Arc<Container>,
        slot: u16,
        after: u64,
        within: &HashRange,
        rows_max: usize,
        now: Timestamp,
    ) -> Result<LogPage> {
        if container.definition().log_minutes.is_none() {
            return Err(Error::bad_request(
                "All Versions and Deletes change feed must be enabled on the container by a change feed policy \
                 with a retention duration.",
            ));
        }
        // The container as it is, each time: purge finds no end with one that has been changed since.
        while self.purge_container(&self.reload(container)?, now, Pace::Full).await?.more {}
        let shard = container.shard(u32::from(slot));
        let snapshot = self.store().snapshot().await?;
        let forgotten = LogForgotten::read(&*snapshot, shard).await?;
        let mut page = LogPage { events: Vec::new(), position: after, more: false, forgotten };
        loop {
            let rows = commits_after(&*snapshot, shard, Family::Log, page.position, rows_max).await?;
            for (key, value) in &rows.rows {
                page.position = sequence_of(key)?.0;
                let event = Event::decode(value)?;
                if within.contains(&event.document.parts()?.0) {
                    page.events.push((page.position, event));
                }
            }
            page.more = rows.more;
            if page.events.len() >= rows_max || !rows.more {
                return Ok(page);
            }
        }
    }

    /// One page of what a container that was dropped has left of a slot's log. Nothing is left when its time is up.
    pub async fn log_left(&self, container: u32, slot: u16, after: u64, rows_max: usize) -> Result<LogPage> {
        let shard = Shard { container, slot };
        let snapshot = self.store().snapshot().await?;
        let rows = commits_after(&*snapshot, shard, Family::Log, after, rows_max).await?;
        let mut page = LogPage { events: Vec::new(), position: after, more: rows.more, forgotten: None };
        for (key, value) in &rows.rows {
            page.position = sequence_of(key)?.0;
            page.events.push((page.position, Event::decode(value)?));
        }
        Ok(page)
    }

    /// The last commit of a slot's feed or log before `start`.
    async fn feed_start(&self, shard: Shard, start: FeedStart) -> Result<u64> {
        match start {
            FeedStart::Beginning => Ok(0),
            FeedStart::After(lsn) => Ok(lsn),
            FeedStart::Now => Ok(self.counter(shard).await?.seq),
            FeedStart::Time(time) => self.commit_before(shard, time.seconds()).await,
        }
    }

    /// The last commit whose feed entries are all of an earlier second. `_ts` never goes down along a feed, so this is
    /// a binary search by sequence number, a few seeks however long the feed is.
    pub(crate) async fn commit_before(&self, shard: Shard, seconds: u64) -> Result<u64> {
        let (mut low, mut high) = (0, self.counter(shard).await?.seq);
        let snapshot = self.store().snapshot().await?;
        while low < high {
            let middle = low + (high - low) / 2;
            let rows = commits_after(&*snapshot, shard, Family::Feed, middle, 1).await?;
            match rows.rows.first() {
                Some((key, value)) if FeedEntry::decode(value)?.life.ts < seconds => {
                    low = sequence_of(key)?.0
                }
                _ => high = middle,
            }
        }
        Ok(low)
    }
}

/// Rows of the commits after `lsn`: about `rows_max`, and whole commits.
pub(crate) async fn commits_after(
    snapshot: &dyn Snapshot,
    shard: Shard,
    family: Family,
    lsn: u64,
    rows_max: usize,
) -> Result<Page> {
    let Some(next) = lsn.checked_add(1) else { return Ok(Page::default()) };
    let mut range = shard.range(family, &[]);
    range.start.extend_from_slice(&next.to_be_bytes());
    let limit = PageLimit { rows: rows_max.max(1), bytes: 4 << 20 };
    let mut page = snapshot.scan(&range, Direction::Forward, limit).await?;
    if let Some((last, _)) = page.rows.last().filter(|_| page.more) {
        let mut rest = shard.range(family, &sequence_of(last)?.0.to_be_bytes());
        rest.start = [&last[..], &[0]].concat();
        let limit = PageLimit { rows: usize::MAX, bytes: usize::MAX };
        page.rows.extend(snapshot.scan(&rest, Direction::Forward, limit).await?.rows);
    }
    Ok(page)
}
