//! The rows that purged documents have left, for the store to drop.
//!
//! Each row of a document says when it ends, so it can be judged alone: by how far purge has come in its slot
//! ([`Reach`]). Nobody shows such a row to a client any more, and the slot's sums do not count its document; it only
//! takes space. The store asks about each row that it moves anyway.
//!
//! Holds: a row is let go only once the reach that lets it go is durable, as sums and rows would disagree otherwise.

use std::sync::Arc;

use mayfly_storage::{
    store::{KeyRange, Space},
    upkeep::{DeadRows, Verdict},
};
use parking_lot::Mutex;

use super::reach::Reach;
use crate::{
    keys::{Family, PREFIX_LEN, Shard, from_ordered, sequence_of},
    record::{DueEntry, FeedEntry, Record},
    ttl::Life,
};

/// In the order of slots.
type ByShard = Vec<(Shard, Arc<Reach>)>;

/// What the store was told last.
#[derive(Debug, Default)]
pub(crate) struct Left(Mutex<Arc<ByShard>>);

impl Left {
    /// How far purge has come in a slot, and what to tell the store.
    pub fn reached(&self, shard: Shard, reach: Reach) -> Arc<dyn DeadRows> {
        let mut known = self.0.lock();
        let mut next = ByShard::clone(&known);
        match next.binary_search_by_key(&shard, |(shard, _)| *shard) {
            Ok(place) => next[place].1 = Arc::new(reach),
            Err(place) => next.insert(place, (shard, Arc::new(reach))),
        }
        *known = Arc::new(next);
        Arc::new(Told(known.clone()))
    }
}

impl Left {
    /// A container is gone with all it had.
    pub fn dropped(&self, container: u32) {
        let mut known = self.0.lock();
        if known.iter().any(|(shard, _)| shard.container == container) {
            *known =
                Arc::new(known.iter().filter(|(shard, _)| shard.container != container).cloned().collect());
        }
    }
}

struct Told(Arc<ByShard>);

/// Where the birth of a record stands, and its own place in the feed.
const BIRTH: std::ops::Range<usize> = 11..21;

impl Told {
    fn reach(&self, key: &[u8]) -> Option<&Reach> {
        let container = u32::from_be_bytes(key.get(..4)?.try_into().ok()?);
        let slot = u16::from_be_bytes(key.get(4..6)?.try_into().ok()?);
        let place = self.0.binary_search_by_key(&Shard { container, slot }, |(shard, _)| *shard).ok()?;
        Some(&self.0[place].1)
    }

    fn judged(&self, key: &[u8], value: &[u8]) -> Option<Verdict> {
        let reach = self.reach(key)?;
        let wholly = |life: &[u8]| Some(reach.has_purged_wholly(&Life::decode(life)?.0));
        match Family::of(key)? {
            Family::Record => {
                let place = place_of(value.get(..8)?, value.get(9..11)?)?;
                let (life, _) = Life::decode(value.get(Record::LIFE_AT..)?)?;
                // What a key held before its document was made had ended by then, or was deleted. But where a date rule was
                // made since, rows of before it may be there, which know of no date.
                let birth = value.get(BIRTH)?;
                let is_first = birth[..8] == value[..8] && birth[8..] == value[9..11];
                let verdict =
                    if is_first && reach.dates.is_empty() { Verdict::DropAll } else { Verdict::Drop };
                reach.has_purged(&life, place, key.get(PREFIX_LEN..)?).then_some(verdict)
            }
            Family::Feed => {
                let (life, used) = Life::decode(value.get(FeedEntry::LIFE_AT..)?)?;
                let (place, document) = (sequence_of(key).ok()?, value.get(FeedEntry::LIFE_AT + used..)?);
                // An entry is written again when a date rule is made, and when one is dropped.
                let is_ended = reach.has_purged_by_ttl(&life, place, document);
                let verdict = if is_ended { Verdict::DropAll } else { Verdict::Drop };
                reach.has_purged(&life, place, document).then_some(verdict)
            }
            Family::Expiry => {
                let deadline = from_ordered(key.get(PREFIX_LEN..)?)?;
                if deadline <= reach.own.through {
                    return Some(Verdict::DropAll);
                }
                let is_purged = reach.has_purged_entry(&DueEntry::decode(value)?, key.get(PREFIX_LEN + 8..)?);
                is_purged.then_some(Verdict::Drop)
            }
            Family::Date => {
                let rule = u16::from_be_bytes(*key.get(PREFIX_LEN..)?.first_chunk()?);
                let date = from_ordered(key.get(PREFIX_LEN + 2..)?)?;
                if reach.date(rule).is_some_and(|queue| date <= queue.through) {
                    return Some(Verdict::DropAll);
                }
                let is_purged =
                    reach.has_purged_entry(&DueEntry::decode(value)?, key.get(PREFIX_LEN + 10..)?);
                is_purged.then_some(Verdict::Drop)
            }
            Family::Index | Family::Composite | Family::Text | Family::Vector => {
                wholly(value)?.then_some(Verdict::Drop)
            }
            Family::Secondary => {
                let document = usize::from(u16::from_be_bytes(value.get(..2)?.try_into().ok()?));
                wholly(value.get(2 + document..)?)?.then_some(Verdict::Drop)
            }
            _ => None,
        }
    }
}

fn place_of(lsn: &[u8], ordinal: &[u8]) -> Option<(u64, u16)> {
    Some((u64::from_be_bytes(lsn.try_into().ok()?), u16::from_be_bytes(ordinal.try_into().ok()?)))
}

impl DeadRows for Told {
    fn judge(&self, _: Space, key: &[u8], value: &[u8]) -> Verdict {
        self.judged(key, value).unwrap_or(Verdict::Keep)
    }

    fn may_be_in(&self, range: &KeyRange) -> bool {
        // A range within a slot names it.
        range.start.len() < PREFIX_LEN || self.reach(&range.start).is_some()
    }
}
