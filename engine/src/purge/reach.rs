//! How far purge has come in one slot.
//!
//! Every way to end has a queue in which documents stand in the order in which they end: the feed for the default, the
//! deadlines for their own `ttl`, and the dates of each date rule. A place in each queue says which documents are purged:
//! those before it are out of the slot's sums, and their rows are left to the store, which drops them when it comes across
//! them ([`Left`](super::left::Left)).
//!
//! ```text
//!   feed     ▒▒▒▒▒▒▒▒▒▒▒│▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓    by the default, in the order of commits
//!   expiry   ▒▒▒▒▒│▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓    by their own ttl, in the order of deadlines
//!   date     ▒▒▒▒▒▒▒▒│▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓    by a date under a rule, in the order of dates; one queue for each rule
//!              purged│ alive, or expired and not yet purged
//! ```
//!
//! A document that stands in several queues is purged once it is behind the reach of one of them. Documents of containers
//! with unique rows or a log are deleted row by row; a reach then says nothing about them but where the feed goes on.
//!
//! Holds: a reach only grows, and nothing is ever written behind it: `_ts` never goes down along a feed, a deadline is
//! later than the write that sets it, and a document whose date is over when it is written is not stored.

use mayfly_storage::store::{Put, Snapshot};

use crate::{
    error::{Error, Result},
    keys::{Family, Shard, from_ordered, ordered},
    record::DueEntry,
    ttl::{Life, OwnTtl},
};

/// What is purged of a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reach {
    /// The last place in the feed that is done.
    pub feed: Option<(u64, u16)>,
    /// All that end by the default are purged that were written up to this second.
    pub inherited: i64,
    /// The second up to which some of them are.
    pub inherited_in_part: i64,
    /// Of those with their own deadlines, in seconds.
    pub own: QueueReach,
    /// Of those with a date under a rule, in milliseconds; by the rule's number.
    pub dates: Vec<(u16, QueueReach)>,
}

/// How far purge has come in a queue whose keys go on with a time and a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QueueReach {
    /// All are purged whose time is up to this one.
    pub through: i64,
    /// Where the walk goes on: a time and a document, as in a key. Empty is at the start.
    pub from: Vec<u8>,
}

impl QueueReach {
    const START: Self = Self { through: i64::MIN, from: Vec::new() };

    /// Whether the entry with this time and document is behind.
    fn has_passed(&self, time: i64, document: &[u8]) -> bool {
        let before = |(head, rest): (&[u8; 8], &[u8])| (ordered(time), document) < (*head, rest);
        time <= self.through || self.from.split_first_chunk().is_some_and(before)
    }

    /// Whether some entry with this time may be.
    fn may_have_passed(&self, time: i64) -> bool {
        time <= self.through.max(from_ordered(&self.from).unwrap_or(i64::MIN))
    }
}

impl Default for Reach {
    fn default() -> Self {
        let never = i64::MIN;
        let (own, dates) = (QueueReach::START, Vec::new());
        Self { feed: None, inherited: never, inherited_in_part: never, own, dates }
    }
}

/// The place in the feed, and the byte that says how the row goes on.
const FEED_LEN: usize = 11;
const OWN_FROM_AT: usize = FEED_LEN + 3 * 8;

/// The rest of the row is where the walk of deadlines goes on.
const WITHOUT_DATES: u8 = 0;
/// That has a length, and date rules follow.
const WITH_DATES: u8 = 1;

impl Reach {
    /// What is stored of it.
    pub async fn read(snapshot: &dyn Snapshot, shard: Shard) -> Result<Self> {
        Self::of_row(snapshot.get(&shard.single(Family::PurgePosition)).await?.as_deref())
    }

    pub fn of_row(row: Option<&[u8]>) -> Result<Self> {
        let Some(row) = row else { return Ok(Self::default()) };
        Self::decode(row).ok_or(Error::Corrupt("how far purge has come cannot be read"))
    }

    fn decode(row: &[u8]) -> Option<Self> {
        let word = |at: usize| Some(i64::from_be_bytes(row.get(at..at + 8)?.try_into().ok()?));
        let ordinal = u16::from_be_bytes(row.get(8..10)?.try_into().ok()?);
        let feed = Some((word(0)? as u64, ordinal)).filter(|place| *place != (0, 0));
        if row.len() == FEED_LEN {
            return Some(Self { feed, ..Self::default() });
        }
        let (inherited, inherited_in_part) = (word(FEED_LEN)?, word(FEED_LEN + 8)?);
        let mut own = QueueReach { through: word(FEED_LEN + 16)?, from: Vec::new() };
        let mut rest = row.get(OWN_FROM_AT..)?;
        let mut dates = Vec::new();
        match row[FEED_LEN - 1] {
            WITHOUT_DATES => own.from = rest.to_vec(),
            WITH_DATES => {
                own.from = take_bytes(&mut rest)?;
                while !rest.is_empty() {
                    let rule = u16::from_be_bytes(*take(&mut rest)?);
                    let through = i64::from_be_bytes(*take(&mut rest)?);
                    dates.push((rule, QueueReach { through, from: take_bytes(&mut rest)? }));
                }
            }
            _ => return None,
        }
        Some(Self { feed, inherited, inherited_in_part, own, dates })
    }

    /// The row that says so.
    pub fn row(&self, shard: Shard) -> Put {
        let (lsn, ordinal) = self.feed.unwrap_or_default();
        let mut value = lsn.to_be_bytes().to_vec();
        value.extend_from_slice(&ordinal.to_be_bytes());
        value.push(if self.dates.is_empty() { WITHOUT_DATES } else { WITH_DATES });
        for second in [self.inherited, self.inherited_in_part, self.own.through] {
            value.extend_from_slice(&second.to_be_bytes());
        }
        if self.dates.is_empty() {
            value.extend_from_slice(&self.own.from);
        } else {
            push_bytes(&mut value, &self.own.from);
        }
        for (rule, queue) in &self.dates {
            value.extend_from_slice(&rule.to_be_bytes());
            value.extend_from_slice(&queue.through.to_be_bytes());
            push_bytes(&mut value, &queue.from);
        }
        Put { key: shard.single(Family::PurgePosition), value, marks: Vec::new() }
    }

    /// Where the walk of the feed goes on, behind the family in a key.
    pub fn feed_start(&self) -> Vec<u8> {
        let Some((lsn, ordinal)) = self.feed else { return Vec::new() };
        [&lsn.to_be_bytes()[..], &ordinal.to_be_bytes(), &[0]].concat()
    }

    /// How far purge has come with the dates of a rule.
    pub fn date(&self, rule: u16) -> Option<&QueueReach> {
        self.dates.iter().find(|(of, _)| *of == rule).map(|(_, queue)| queue)
    }

    /// The same, to go on with.
    pub fn date_mut(&mut self, rule: u16) -> &mut QueueReach {
        let place = match self.dates.iter().position(|(of, _)| *of == rule) {
            Some(place) => place,
            None => {
                self.dates.push((rule, QueueReach::START));
                self.dates.len() - 1
            }
        };
        &mut self.dates[place].1
    }

    /// Whether a version of a document is purged.
    pub fn has_purged(&self, life: &Life, place: (u64, u16), document: &[u8]) -> bool {
        let passed =
            |rule: u16, date: i64| self.date(rule).is_some_and(|queue| queue.has_passed(date, document));
        self.has_purged_by_ttl(life, place, document)
            || life.dates.iter().any(|(rule, date)| passed(*rule, *date))
    }

    /// The same, whatever dates it has: they may change while the version stays the same.
    pub fn has_purged_by_ttl(&self, life: &Life, place: (u64, u16), document: &[u8]) -> bool {
        match (life.own, life.own_deadline()) {
            (OwnTtl::Inherit, _) => self.feed.is_some_and(|done| place <= done),
            (_, Some(deadline)) => self.own.has_passed(deadline, document),
            (_, None) => false,
        }
    }

    /// Whether the document of an entry in a queue of deadlines or dates is known to be purged, in that queue or another.
    pub fn has_purged_entry(&self, entry: &DueEntry, document: &[u8]) -> bool {
        entry.version.as_ref().is_some_and(|(place, life)| self.has_purged(life, *place, document))
    }

    /// Whether an entry that knows neither its document nor its place in the feed is of one that is purged. What is
    /// purged in part does not count.
    pub fn has_purged_wholly(&self, life: &Life) -> bool {
        let by_ttl = match (life.own, life.own_deadline()) {
            (OwnTtl::Inherit, _) => life.ts as i64 <= self.inherited,
            (_, Some(deadline)) => deadline <= self.own.through,
            (_, None) => false,
        };
        let passed = |rule: u16, date: i64| self.date(rule).is_some_and(|queue| date <= queue.through);
        by_ttl || life.dates.iter().any(|(rule, date)| passed(*rule, *date))
    }

    /// Whether rows with this life may be there without the others of their document. Of what is purged in part, some
    /// may.
    pub fn may_have_left(&self, life: &Life) -> bool {
        let by_ttl = match (life.own, life.own_deadline()) {
            (OwnTtl::Inherit, _) => life.ts as i64 <= self.inherited.max(self.inherited_in_part),
            (_, Some(deadline)) => self.own.may_have_passed(deadline),
            (_, None) => false,
        };
        let passed = |rule: u16, date: i64| self.date(rule).is_some_and(|queue| queue.may_have_passed(date));
        by_ttl || life.dates.iter().any(|(rule, date)| passed(*rule, *date))
    }

    /// Whether any row may be left.
    pub fn leaves_rows(&self) -> bool {
        let has_begun = |queue: &QueueReach| *queue != QueueReach::START;
        self.inherited.max(self.inherited_in_part) > i64::MIN
            || has_begun(&self.own)
            || self.dates.iter().any(|(_, queue)| has_begun(queue))
    }
}

fn take<'a, const N: usize>(rest: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (head, tail) = rest.split_first_chunk()?;
    *rest = tail;
    Some(head)
}

fn take_bytes(rest: &mut &[u8]) -> Option<Vec<u8>> {
    let length = usize::try_from(u32::from_be_bytes(*take(rest)?)).ok()?;
    let (bytes, tail) = rest.split_at_checked(length)?;
    *rest = tail;
    Some(bytes.to_vec())
}

fn push_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARD: Shard = Shard { container: 7, slot: 0 };

    #[test]
    fn what_is_stored_is_read() {
        for reach in [
            Reach::default(),
            Reach { feed: Some((7, 2)), inherited: 90, inherited_in_part: 91, ..Reach::default() },
            Reach { own: QueueReach { through: -4, from: b"somewhere".to_vec() }, ..Reach::default() },
            Reach {
                own: QueueReach { through: 5, from: Vec::new() },
                dates: vec![
                    (2, QueueReach { through: 90_000, from: b"further".to_vec() }),
                    (0, QueueReach::START),
                ],
                ..Reach::default()
            },
        ] {
            assert_eq!(Reach::of_row(Some(&reach.row(SHARD).value)).unwrap(), reach);
        }
        assert!(Reach::of_row(Some(b"short")).is_err());
    }

    /// Before layout 3 there was the place in the feed alone, and rows went with their documents.
    #[test]
    fn a_row_of_an_earlier_layout_leaves_nothing() {
        let row = [&9_u64.to_be_bytes()[..], &3_u16.to_be_bytes(), &[0]].concat();
        let reach = Reach::of_row(Some(&row)).unwrap();
        assert_eq!((reach.feed, reach.leaves_rows()), (Some((9, 3)), false));
        assert_eq!(reach.feed_start(), row);
    }
}
