//! The search for what has expired in one slot: in the order it expired, and never at what is alive.

use std::collections::{HashMap, HashSet};

use mayfly_storage::store::{Direction, KeyRange, PageLimit, Snapshot};
use parking_lot::Mutex;

use super::{earlier, reach::Reach};
use crate::{
    clock::Timestamp,
    container::Container,
    error::Result,
    keys::{DocumentKey, Family, PREFIX_LEN, Shard, from_ordered, ordered, sequence_of},
    record::FeedEntry,
    ttl::{Cuts, DefaultTtl, OwnTtl},
};

/// A document that has expired.
#[derive(Debug)]
pub(super) enum Victim {
    /// Its record says what goes with it.
    Named(DocumentKey),
    /// Its entry in the feed does, and where that stands.
    Listed((u64, u16), FeedEntry),
}

impl Victim {
    pub fn document(&self) -> &DocumentKey {
        match self {
            Self::Named(document) => document,
            Self::Listed(_, entry) => &entry.document,
        }
    }

    pub fn named(&self) -> Option<&DocumentKey> {
        match self {
            Self::Named(document) => Some(document),
            Self::Listed(..) => None,
        }
    }

    pub fn listed(&self) -> Option<((u64, u16), &FeedEntry)> {
        match self {
            Self::Named(_) => None,
            Self::Listed(place, entry) => Some((*place, entry)),
        }
    }
}

/// The search for victims in one slot.
pub(super) struct Search<'a> {
    container: &'a Container,
    shard: Shard,
    snapshot: &'a dyn Snapshot,
    cuts: &'a Cuts,
    marks: &'a Marks,
    victims_max: usize,
    /// Whether an entry in the feed is enough to remove its document.
    lists: bool,
    victims: Vec<Victim>,
    seen: HashSet<DocumentKey>,
    /// What is purged with these victims, and whether that is more than before.
    pub reach: Reach,
    pub has_walked: bool,
    pub more: bool,
    pub next: Option<Timestamp>,
}

impl<'a> Search<'a> {
    pub fn new(
        snapshot: &'a dyn Snapshot,
        container: &'a Container,
        shard: Shard,
        cuts: &'a Cuts,
        marks: &'a Marks,
        victims_max: usize,
        reach: Reach,
    ) -> Self {
        Self {
            container,
            shard,
            snapshot,
            cuts,
            marks,
            victims_max,
            lists: is_listed(container),
            victims: Vec::new(),
            seen: HashSet::new(),
            reach,
            has_walked: false,
            more: false,
            next: None,
        }
    }

    /// What was found since it was last asked.
    pub fn take_victims(&mut self) -> Vec<Victim> {
        std::mem::take(&mut self.victims)
    }

    fn limit(&self) -> PageLimit {
        PageLimit { rows: self.victims_max.saturating_sub(self.victims.len()).max(1), bytes: usize::MAX }
    }

    fn take(&mut self, victim: Victim) {
        // Without date rules a document stands in one queue.
        let is_new =
            self.container.ttl().date_rules.is_empty() || self.seen.insert(victim.document().clone());
        if is_new {
            self.victims.push(victim);
        }
    }

    fn expires(&mut self, at: Timestamp) {
        self.next = earlier(self.next, Some(at));
    }

    /// Documents that inherit: from the head of the feed to the first one alive.
    pub async fn feed(&mut self) -> Result<()> {
        if self.cuts.inherited.through == i64::MIN {
            return Ok(());
        }
        let mut range = self.shard.range(Family::Feed, &[]);
        range.start.extend_from_slice(&self.reach.feed_start());
        let page = self.snapshot.scan(&range, Direction::Forward, self.limit()).await?;
        self.more |= page.more;
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
            let place = sequence_of(key)?;
            if inherits {
                self.take(match self.lists {
                    true => Victim::Listed(place, entry),
                    false => Victim::Named(entry.document),
                });
            }
            self.reach.feed = Some(place);
            self.has_walked = true;
        }
        Ok(())
    }

    /// Documents with their own deadline.
    pub async fn deadlines(&mut self) -> Result<()> {
        let family = self.shard.range(Family::Expiry, &[]);
        let on = self.container.ttl().default.is_some();
        // What was purged by count before that has left its entries.
        let done = self.reach.own.from.clone();
        self.queue(family, &done, self.cuts.own.through, |deadline| {
            on.then(|| Timestamp::from_seconds(deadline.max(0) as u64))
        })
        .await
    }

    /// Documents with a date under a rule.
    pub async fn dates(&mut self) -> Result<()> {
        for rule in self.container.ttl().date_rules.clone() {
            let family = self.shard.range(Family::Date, &rule.id.to_be_bytes());
            let after = rule.in_force().map(|seconds| i64::from(seconds) * 1000);
            let done = self.reach.date(rule.id).map_or_else(Vec::new, |queue| queue.from.clone());
            self.queue(family, &done, self.cuts.date(rule.id).through, |date| {
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
        done: &[u8],
        through: i64,
        expires: impl Fn(i64) -> Option<Timestamp>,
    ) -> Result<()> {
        if self.victims.len() >= self.victims_max {
            self.more = true;
            return Ok(());
        }
        let mut left = None;
        if let Some(start) = self.marks.of(&family) {
            left = self.head(&family, start, through, &expires).await?;
        }
        if left.is_none() {
            // What came before the mark since it was left there is seen from the start.
            left = self.head(&family, [&family.start[..], done].concat(), through, &expires).await?;
        }
        self.more |= left.is_some();
        self.marks.leave(&family, left);
        Ok(())
    }

    /// The same from `start` on. The key to go on from, if there is more.
    async fn head(
        &mut self,
        family: &KeyRange,
        start: Vec<u8>,
        through: i64,
        expires: &impl Fn(i64) -> Option<Timestamp>,
    ) -> Result<Option<Vec<u8>>> {
        let head = family.start.len();
        debug_assert!(head >= PREFIX_LEN);
        let first_alive = [&family.start[..], &ordered(through.saturating_add(1))].concat();
        let range = KeyRange { start, ..family.clone() };
        let page = self.snapshot.scan(&range, Direction::Forward, self.limit()).await?;
        for (key, _) in &page.rows {
            let time = from_ordered(&key[head..]);
            let time = time.ok_or(crate::Error::Corrupt("an expiry key cannot be read"))?;
            if key[..] >= first_alive[..] {
                if let Some(at) = expires(time) {
                    self.expires(at);
                }
                return Ok(None);
            }
            self.take(Victim::Named(DocumentKey::from_tail(&key[head + 8..])?));
        }
        let last = page.rows.last().filter(|_| page.more);
        Ok(last.map(|(key, _)| [&key[..], &[0]].concat()))
    }
}

/// Whether entries in the feed tell all rows of their documents. A log wants the documents themselves.
pub(super) fn is_listed(container: &Container) -> bool {
    container.definition().log_minutes.is_none() && !container.has_rows_by_body()
}

/// Where to go on with queues that are longer than a tick. The deletes of what was taken from the head of one stand there for a
/// while, and each tick would walk over all of them.
///
/// Holds: only a hint. A queue is done when nothing is due from its start on.
#[derive(Debug, Default)]
pub(crate) struct Marks(Mutex<HashMap<Vec<u8>, Vec<u8>>>);

/// Queues that are longer than a tick at a time; past this all marks are forgotten.
const MARKS_MAX: usize = 4096;

impl Marks {
    fn of(&self, family: &KeyRange) -> Option<Vec<u8>> {
        self.0.lock().get(&family.start).cloned()
    }

    fn leave(&self, family: &KeyRange, mark: Option<Vec<u8>>) {
        let mut marks = self.0.lock();
        if marks.len() >= MARKS_MAX {
            marks.clear();
        }
        match mark {
            Some(mark) => drop(marks.insert(family.start.clone(), mark)),
            None => drop(marks.remove(&family.start)),
        }
    }
}
