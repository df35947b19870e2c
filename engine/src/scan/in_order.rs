//! A page of an index over several slots, in the order of the index.
//!
//! Each slot has its part of the index in order. A page looks at the next entries of every slot, as many as one of them may
//! have to give, and takes the lowest of all; only their documents are read. Behind the number of its slot, the key of an
//! entry is the same wherever the document lies, so one key says where every slot goes on, and no slot has to be
//! remembered.
//!
//! ```text
//!   slot 0   a c  f │          what was looked at ends at f, h and e, and slot 1 has no more:
//!   slot 1   b   h              behind e nobody knows what slot 2 has
//!   slot 2    d e │      ──▶   a b c d e, go on behind e
//! ```

use std::cmp::Ordering;

use bytes::Bytes;
use futures_util::future::join_all;
use mayfly_storage::store::{Direction, PageLimit};

use super::{
    row::Row,
    walk::{Page, Walk, narrow},
};
use crate::{
    error::{Error, Result},
    keys::{PREFIX_LEN, Shard},
    position::{After, Leg, Position},
};

/// Entries that are looked at in a slot at least, unless the page wants fewer: documents are spread by a hash, not evenly.
const SLOT_ENTRIES_MIN: usize = 16;

/// What was looked at in a slot.
struct Looked {
    shard: Shard,
    alive: Vec<Row>,
    /// How far, if there is more behind.
    until: Option<Vec<u8>>,
    scanned: usize,
}

impl Walk<'_> {
    /// The next rows of all slots together.
    pub(super) async fn page_in_order(
        &self,
        slots: &[u16],
        position: Option<Position>,
        limit: PageLimit,
        records: bool,
    ) -> Result<(Page, Option<Position>)> {
        let mut page = Page { records, ..Page::default() };
        let Some(first) = slots.first() else { return Ok((page, None)) };
        if !self.container.row.index.ready {
            return Err(Error::internal("the order of an index that may lack some"));
        }
        let mut at = position.unwrap_or_else(|| Position::start_of(*first));
        // A key that was cut off could only be found in the slot that has it.
        if at.leg != Leg::Main || matches!(at.after, After::Cut(..) | After::Birth(..)) {
            return Err(Error::BadContinuation);
        }
        at.slot = *first;
        self.settle_legs(&mut at).await?;
        // Twice what is to be expected of each.
        let share = (limit.rows.saturating_mul(2) / slots.len()).max(SLOT_ENTRIES_MIN);
        let limit_of_slot = PageLimit { rows: share.min(limit.rows), ..limit };
        let mut looked = Vec::with_capacity(slots.len());
        for some in slots.chunks(self.width) {
            let looks = some.iter().map(|slot| {
                let at = Position { slot: *slot, ..at.clone() };
                self.look_at_slot(at, limit_of_slot, records)
            });
            for of_slot in join_all(looks).await {
                looked.push(of_slot?);
            }
        }
        page.scanned = looked.iter().map(|of_slot| of_slot.scanned).sum();
        let ends = looked.iter().filter_map(|of_slot| of_slot.until.as_ref());
        let mut until = ends.min_by(|a, b| self.in_direction(a, b)).cloned();
        let of_slots = looked
            .into_iter()
            .flat_map(|Looked { shard, alive, .. }| alive.into_iter().map(move |row| (shard, row)));
        let mut rows: Vec<(Shard, Row)> = of_slots.collect();
        rows.retain(|(_, row)| {
            until.as_ref().is_none_or(|until| self.in_direction(tail(&row.key), until) != Ordering::Greater)
        });
        rows.sort_by(|(_, a), (_, b)| self.in_direction(tail(&a.key), tail(&b.key)));
        if rows.len() > limit.rows {
            rows.truncate(limit.rows);
            until = rows.last().map(|(_, row)| tail(&row.key).to_vec());
        }
        self.fill(Leg::Main, at.index, rows, &mut page).await?;
        let next = until.map(|key| Position { after: After::Key(key), ..at });
        Ok((page, next))
    }

    /// The next entries of one slot.
    async fn look_at_slot(&self, mut at: Position, limit: PageLimit, records: bool) -> Result<Looked> {
        let shard = self.container.shard(u32::from(at.slot));
        let mut page = Page { records, ..Page::default() };
        let mut ranges = self.ranges(shard, &at);
        if self.direction == Direction::Reverse {
            ranges.reverse();
        }
        let (mut left, mut alive, mut has_more) = (limit.rows, Vec::new(), false);
        let count = ranges.len();
        for (n, mut range) in ranges.into_iter().enumerate() {
            narrow(&mut range, &at.after, self.direction);
            if range.is_empty() {
                continue;
            }
            let rows = self.snapshot.scan(&range, self.direction, PageLimit { rows: left, ..limit }).await?;
            left -= rows.rows.len().min(left);
            has_more = rows.more || (left == 0 && n + 1 < count);
            alive.extend(self.alive(&mut at, shard, rows.rows, &mut page).await?);
            if has_more {
                break;
            }
        }
        let until = match at.after {
            After::Key(key) if has_more => Some(key),
            // Nothing was looked at, so nothing is left out either.
            _ => None,
        };
        Ok(Looked { shard, alive, until, scanned: page.scanned })
    }

    /// Which of two keys comes first on this walk.
    fn in_direction(&self, a: &[u8], b: &[u8]) -> Ordering {
        match self.direction {
            Direction::Forward => a.cmp(b),
            Direction::Reverse => b.cmp(a),
        }
    }
}

/// A key without what tells its slot.
fn tail(key: &Bytes) -> &[u8] {
    key.get(PREFIX_LEN..).unwrap_or_default()
}
