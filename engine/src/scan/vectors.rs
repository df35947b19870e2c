//! What vector indexes say at one moment: how near each vector is to another, within two bounds.

use std::{
    cmp::{Ordering, Reverse},
    collections::BinaryHeap,
};

use bytes::Bytes;
use mayfly_value::vector::code::{Nearness, Target};

use super::{DocumentPlace, Search, each_row, row::DAMAGED};
use crate::{error::Result, keys::Family, ttl::Life};

/// Vectors that are kept in mind: the nearest, up to twice as many for a while. About 5 MB with short ids.
const KEPT: usize = 32_768;

/// Documents by how near their vectors can be, the nearest first.
pub struct Neighbours {
    heap: BinaryHeap<Neighbour>,
    keys: Vec<u8>,
    compared: usize,
    /// How near one can be that was not kept.
    dropped: Option<f64>,
}

/// A document, by where its key begins in all of them.
#[derive(Debug)]
struct Neighbour {
    nearness: Nearness,
    key: usize,
    key_len: u32,
    slot: u16,
}

impl Neighbour {
    /// The order of keys is the order in which they were found.
    fn rank(&self, other: &Self) -> Ordering {
        let (a, b) = (self.nearness.high, other.nearness.high);
        a.total_cmp(&b).then_with(|| Reverse(self.key).cmp(&Reverse(other.key)))
    }
}

impl PartialEq for Neighbour {
    fn eq(&self, other: &Self) -> bool {
        self.rank(other) == Ordering::Equal
    }
}

impl Eq for Neighbour {}

impl PartialOrd for Neighbour {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Neighbour {
    fn cmp(&self, other: &Self) -> Ordering {
        self.rank(other)
    }
}

impl Neighbours {
    /// How many vectors there are that have a distance.
    pub fn compared(&self) -> usize {
        self.compared
    }

    /// How near any that is left can be. None if none is left.
    pub fn nearest(&self) -> Option<f64> {
        self.heap.peek().map(|next| next.nearness.high).or(self.dropped)
    }
}

/// Ends where the rest is not known.
impl Iterator for Neighbours {
    type Item = (Nearness, DocumentPlace);

    fn next(&mut self) -> Option<Self::Item> {
        let Neighbour { nearness, key, key_len, slot } = self.heap.pop()?;
        let document = Bytes::copy_from_slice(self.keys.get(key..key + key_len as usize)?);
        Some((nearness, DocumentPlace { slot, document }))
    }
}

impl Search<'_> {
    /// How near the vectors in scope are to `target`.
    pub async fn vectors(&self, index: u16, target: &Target) -> Result<Neighbours> {
        let mut found = Gathering::default();
        for slot in self.within.slots(&self.opened.container) {
            let shard = self.opened.container.shard(u32::from(slot));
            let fields = [&self.epoch().to_be_bytes()[..], &index.to_be_bytes()].concat();
            let mut range = shard.range(Family::Vector, &fields);
            let prefix = range.start.clone();
            if !self.within.is_all() {
                self.within.documents(&prefix, &mut range);
            }
            each_row(&*self.opened.snapshot, range, &mut |key, value| {
                let (life, used) = Life::decode(value).ok_or(DAMAGED)?;
                if self.opened.cuts.is_live(&life)
                    && let Some(nearness) = target.nearness(value.get(used..).unwrap_or_default())
                {
                    found.add(nearness, slot, key.get(prefix.len()..).ok_or(DAMAGED)?);
                }
                Ok(())
            })
            .await?;
        }
        self.engine.check_current(&self.opened.container).await?;
        let Gathering { found, keys, compared, dropped } = found;
        Ok(Neighbours { heap: found.into(), keys, compared, dropped })
    }
}

/// Neighbours while they come in, in the order of documents.
#[derive(Default)]
struct Gathering {
    found: Vec<Neighbour>,
    keys: Vec<u8>,
    compared: usize,
    dropped: Option<f64>,
}

impl Gathering {
    fn add(&mut self, nearness: Nearness, slot: u16, document: &[u8]) {
        self.compared += 1;
        if self.dropped.is_some_and(|dropped| nearness.high <= dropped) {
            return;
        }
        let (key, key_len) = (self.keys.len(), document.len() as u32);
        self.keys.extend_from_slice(document);
        self.found.push(Neighbour { nearness, key, key_len, slot });
        if self.found.len() >= 2 * KEPT {
            self.cut_down();
        }
    }

    /// Keeps the nearest.
    fn cut_down(&mut self) {
        let (_, last, _) = self.found.select_nth_unstable_by(KEPT, |a, b| b.cmp(a));
        self.dropped = Some(last.nearness.high);
        self.found.truncate(KEPT);
        self.found.sort_unstable_by_key(|neighbour| neighbour.key);
        let before = std::mem::take(&mut self.keys);
        for neighbour in &mut self.found {
            let start = self.keys.len();
            let key = neighbour.key..neighbour.key + neighbour.key_len as usize;
            self.keys.extend_from_slice(before.get(key).unwrap_or_default());
            neighbour.key = start;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However many there are, the first ones come in their order, and it is known how near the others can be.
    #[test]
    fn the_nearest_of_very_many_are_kept() {
        let mut found = Gathering::default();
        let count = 5 * KEPT as u64;
        // Each number once, in no order.
        let numbers = (0..count).map(|n| n * 7919 % count);
        for number in numbers {
            let high = number as f64;
            found.add(Nearness { low: high - 1.0, high }, 0, &number.to_be_bytes());
        }
        let Gathering { found, keys, compared, dropped } = found;
        let mut all = Neighbours { heap: found.into(), keys, compared, dropped };
        assert_eq!(all.compared(), count as usize);
        let kept = all.heap.len() as u64;
        assert!(kept >= KEPT as u64 && kept < 2 * KEPT as u64);
        for number in (count - kept..count).rev() {
            assert_eq!(all.nearest(), Some(number as f64));
            let (nearness, place) = all.next().unwrap();
            assert_eq!((nearness.high, &place.document[..]), (number as f64, &number.to_be_bytes()[..]));
        }
        assert!(all.next().is_none());
        assert_eq!(all.nearest(), Some((count - kept - 1) as f64));
    }
}
