//! How far purge has come in one slot.
//!
//! Documents that end by the default or by their own `ttl`, and have no dates, are purged in the order in which they
//! end. So a place in that order says which of them are purged: those before it are out of the slot's sums, and their
//! rows are left to the store, which drops them when it comes across them ([`Left`](super::left::Left)).
//!
//! ```text
//!   feed     ▒▒▒▒▒▒▒▒▒▒▒│▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓    by the default, in the order of commits
//!   expiry   ▒▒▒▒▒│▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓    by their own ttl, in the order of deadlines
//!            purged│ alive, or expired and not yet purged
//! ```
//!
//! All others (those with dates, and all of containers that have unique rows or a log) are deleted row by row, and a
//! reach says nothing about them.
//!
//! Holds: a reach only grows, and nothing is ever written behind it: `_ts` never goes down along a feed, and a deadline
//! is later than the write that sets it.

use mayfly_storage::store::{Put, Snapshot};

use crate::{
    error::{Error, Result},
    keys::{DocumentKey, Family, Shard, from_ordered, ordered},
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
    /// All are purged whose own deadlines are up to this second.
    pub own: i64,
    /// Where the walk of deadlines goes on: a deadline and a document, as in a key. Empty is at the start.
    pub deadlines: Vec<u8>,
}

impl Default for Reach {
    fn default() -> Self {
        let never = i64::MIN;
        Self { feed: None, inherited: never, inherited_in_part: never, own: never, deadlines: Vec::new() }
    }
}

/// The place in the feed, and what was written beside it before layout 3.
const FEED_LEN: usize = 11;
const DEADLINES_AT: usize = FEED_LEN + 3 * 8;

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
        Some(Self {
            feed,
            inherited: word(FEED_LEN)?,
            inherited_in_part: word(FEED_LEN + 8)?,
            own: word(FEED_LEN + 16)?,
            deadlines: row.get(DEADLINES_AT..)?.to_vec(),
        })
    }

    /// The row that says so.
    pub fn row(&self, shard: Shard) -> Put {
        let (lsn, ordinal) = self.feed.unwrap_or_default();
        let mut value = lsn.to_be_bytes().to_vec();
        value.extend_from_slice(&ordinal.to_be_bytes());
        value.push(0);
        for second in [self.inherited, self.inherited_in_part, self.own] {
            value.extend_from_slice(&second.to_be_bytes());
        }
        value.extend_from_slice(&self.deadlines);
        Put { key: shard.single(Family::PurgePosition), value, marks: Vec::new() }
    }

    /// Where the walk of the feed goes on, behind the family in a key.
    pub fn feed_start(&self) -> Vec<u8> {
        let Some((lsn, ordinal)) = self.feed else { return Vec::new() };
        [&lsn.to_be_bytes()[..], &ordinal.to_be_bytes(), &[0]].concat()
    }

    /// Whether a version of a document is purged.
    pub fn has_purged(&self, life: &Life, place: (u64, u16), document: &DocumentKey) -> bool {
        match (life.own, life.own_deadline()) {
            _ if !life.dates.is_empty() => false,
            (OwnTtl::Inherit, _) => self.feed.is_some_and(|done| place <= done),
            (_, Some(deadline)) => {
                deadline <= self.own
                    || [&ordered(deadline)[..], document.as_bytes()].concat() < self.deadlines
            }
            (_, None) => false,
        }
    }

    /// Whether rows with this life may be there without the others of their document. Of a second that is purged in
    /// part, some may.
    pub fn may_have_left(&self, life: &Life) -> bool {
        match (life.own, life.own_deadline()) {
            _ if !life.dates.is_empty() => false,
            (OwnTtl::Inherit, _) => life.ts as i64 <= self.inherited.max(self.inherited_in_part),
            (_, Some(deadline)) => {
                deadline <= self.own.max(from_ordered(&self.deadlines).unwrap_or(i64::MIN))
            }
            (_, None) => false,
        }
    }

    /// Whether any row may be left.
    pub fn leaves_rows(&self) -> bool {
        self.inherited.max(self.inherited_in_part).max(self.own) > i64::MIN || !self.deadlines.is_empty()
    }
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
            Reach { own: -4, deadlines: b"somewhere".to_vec(), ..Reach::default() },
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
