//! Partition key ranges: which keys clients take together, and how a range splits while it is used.
//!
//! A range lies in one slot. A new container has a range for each slot; when more are called for, the widest
//! ranges are halved, by one change of the container's row. No document moves: a slot keeps its documents in
//! the order of their hashes, so a range is an interval of them, and whatever reads a range reads its slot
//! within that interval. The ranges of a slot share its sequence. So what a client holds of a range (a
//! continuation, a position in the change feed, a session token) goes on to mean the same in the ranges that
//! came of it.
//!
//! Holds: ranges tile the space of keys in order, no range crosses a slot's bound, and an id is never used
//! again.

use std::sync::Arc;

use mayfly_value::partition::{Epk, KeyDefinition};
use serde::{Deserialize, Serialize};

use crate::{
    access::HashRange,
    clock::Timestamp,
    container::{Container, Partition},
    engine::Engine,
    error::{Error, Result},
    keys::SLOTS_MAX,
};

/// The most ranges a container may have. The row that lists them is read with every start.
pub const RANGES_MAX: u32 = SLOTS_MAX;

/// A range of partition keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionKeyRange {
    /// What clients call it.
    pub id: u32,
    /// Its keys.
    pub keys: HashRange,
    /// The slot that holds them.
    pub slot: u16,
    /// All ranges that it came of, the oldest first.
    pub parents: Vec<u32>,
    /// Which change of the ranges made it; 0 is the making of the container.
    pub generation: u32,
    /// The second it was made; none if it is as old as its container.
    pub made: Option<u64>,
}

impl PartitionKeyRange {
    /// Whether it is the range `id`, or came of it.
    pub fn is_of(&self, id: u32) -> bool {
        self.id == id || self.parents.contains(&id)
    }
}

/// A range as a container's row has it: it ends where the next one begins.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RangeRow {
    id: u32,
    /// The first key, in hexadecimal.
    start: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    parents: Vec<u32>,
    #[serde(default)]
    generation: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    made: Option<u64>,
}

/// The ranges of a container, in the order of their keys. There is always one.
#[derive(Debug)]
pub(crate) struct Ranges {
    list: Vec<PartitionKeyRange>,
    /// The first key of each slot.
    bounds: Vec<Epk>,
}

impl Ranges {
    /// Those that a row has; a row without any has a range for each slot.
    pub fn new(definition: &KeyDefinition, slots: u32, rows: &[RangeRow]) -> Result<Self> {
        const DAMAGED: Error = Error::Corrupt("the partition key ranges of a container");
        let bounds = definition.slot_bounds(slots);
        let mut list = Vec::with_capacity(rows.len().max(bounds.len()));
        for (id, start) in bounds.iter().enumerate().filter(|_| rows.is_empty()) {
            let keys = HashRange { start: start.clone(), end: None };
            let (id, slot) = (id as u32, id as u16);
            list.push(PartitionKeyRange { id, keys, slot, parents: Vec::new(), generation: 0, made: None });
        }
        for row in rows {
            let start = Epk::from_hex(&row.start).map_err(|_| DAMAGED)?;
            let slot = definition.slot_of(&start, slots) as u16;
            let (parents, generation, made) = (row.parents.clone(), row.generation, row.made);
            let keys = HashRange { start, end: None };
            list.push(PartitionKeyRange { id: row.id, keys, slot, parents, generation, made });
        }
        for n in 1..list.len() {
            list[n - 1].keys.end = Some(list[n].keys.start.clone());
        }
        let is_ordered = list.is_sorted_by(|a, b| a.keys.start < b.keys.start);
        let has = |bound: &Epk| list.binary_search_by(|range| range.keys.start.cmp(bound)).is_ok();
        if !is_ordered || !bounds.iter().all(has) {
            return Err(DAMAGED);
        }
        Ok(Self { list, bounds })
    }

    /// The range of a key that is in `slot`.
    fn of(&self, slot: u16, hash: &Epk) -> &PartitionKeyRange {
        let at = match self.is_split() {
            false => usize::from(slot),
            true => self.list.partition_point(|range| range.keys.start <= *hash).saturating_sub(1),
        };
        &self.list[at]
    }

    /// Whether there are more than there are slots.
    fn is_split(&self) -> bool {
        self.list.len() > self.bounds.len()
    }

    /// The rows of `count` ranges: the widest are halved until there are so many, or nothing is left to
    /// halve.
    fn split(&self, definition: &KeyDefinition, count: usize, now: Timestamp) -> Vec<RangeRow> {
        struct Piece<'r> {
            of: &'r PartitionKeyRange,
            keys: HashRange,
            width: u128,
        }
        let piece = |of, keys: HashRange| {
            let width = definition.width(&keys.start, keys.end.as_ref());
            Piece { of, keys, width }
        };
        let mut pieces: Vec<_> = self.list.iter().map(|range| piece(range, range.keys.clone())).collect();
        while pieces.len() < count {
            let widest = pieces.iter().map(|piece| piece.width).max();
            let Some(at) = pieces.iter().position(|piece| Some(piece.width) == widest) else { break };
            let Piece { of, ref keys, .. } = pieces[at];
            let Some(middle) = definition.middle(&keys.start, keys.end.as_ref()) else { break };
            let upper = HashRange { start: middle.clone(), end: keys.end.clone() };
            let lower = HashRange { start: keys.start.clone(), end: Some(middle) };
            pieces.splice(at..=at, [piece(of, lower), piece(of, upper)]);
        }
        // The youngest ranges are there as long as they have not split, so the highest of them is the highest
        // ever.
        let highest = |number: fn(&PartitionKeyRange) -> u32| self.list.iter().map(number).max();
        let mut next_id = highest(|range| range.id).map_or(0, |id| id + 1);
        let generation = highest(|range| range.generation).unwrap_or(0) + 1;
        let row = |piece: &Piece<'_>| {
            let (of, start) = (piece.of, piece.keys.start.to_hex());
            if piece.keys == of.keys {
                let (parents, generation, made) = (of.parents.clone(), of.generation, of.made);
                return RangeRow { id: of.id, start, parents, generation, made };
            }
            let id = next_id;
            next_id += 1;
            let parents = [&of.parents[..], &[of.id]].concat();
            RangeRow { id, start, parents, generation, made: Some(now.seconds()) }
        };
        pieces.iter().map(row).collect()
    }
}

impl Container {
    /// Its partition key ranges, in the order of their keys. There is always one.
    pub fn ranges(&self) -> &[PartitionKeyRange] {
        &self.ranges.list
    }

    /// The range with an id, unless it has split.
    pub fn range(&self, id: u32) -> Option<&PartitionKeyRange> {
        self.ranges().iter().find(|range| range.id == id)
    }

    /// The range that a logical partition is in.
    pub fn range_of(&self, partition: &Partition) -> &PartitionKeyRange {
        self.ranges.of(partition.shard.slot, &partition.hash)
    }

    /// Changes with every split.
    pub fn ranges_generation(&self) -> u32 {
        self.ranges().iter().map(|range| range.generation).max().unwrap_or(0)
    }

    /// The first key of each slot.
    pub(crate) fn slot_bounds(&self) -> &[Epk] {
        &self.ranges.bounds
    }
}

impl HashRange {
    /// The ranges of `container` that may hold such keys.
    pub fn ranges<'c>(&self, container: &'c Container) -> impl Iterator<Item = &'c PartitionKeyRange> {
        container.ranges().iter().filter(move |range| {
            let below_end = self.end.as_ref().is_none_or(|end| range.keys.start < *end);
            below_end && range.keys.end.as_ref().is_none_or(|end| self.start < *end)
        })
    }
}

impl Engine {
    /// Splits ranges until a container has `count` of them: one small write, whatever the container holds. It
    /// never has fewer than before.
    pub async fn split_ranges(
        &self,
        container: &Container,
        count: u32,
        now: Timestamp,
    ) -> Result<Arc<Container>> {
        if count > RANGES_MAX {
            return Err(Error::bad_request(format!(
                "A container has at most {RANGES_MAX} partition key ranges; not {count}."
            )));
        }
        let current = self.reload(container)?;
        if current.ranges().len() >= count as usize {
            return Ok(current);
        }
        self.check_writable()?;
        self.catalog()
            .change_container(&current, None, move |row| {
                let definition = &row.definition.partition_key;
                let ranges = Ranges::new(definition, row.slots, &row.ranges)?;
                row.ranges = ranges.split(definition, count as usize, now);
                Ok(())
            })
            .await
    }
}

#[cfg(test)]
mod tests {
    use mayfly_value::{partition::KeyKind, path::Path};
    use proptest::prelude::*;

    use super::*;

    fn definition(version: u8) -> KeyDefinition {
        KeyDefinition { paths: vec![Path::parse("/a").unwrap()], kind: KeyKind::Hash, version }
    }

    fn split(definition: &KeyDefinition, slots: u32, counts: &[usize]) -> Ranges {
        let mut ranges = Ranges::new(definition, slots, &[]).unwrap();
        for count in counts {
            let rows = ranges.split(definition, *count, Timestamp::from_seconds(9));
            ranges = Ranges::new(definition, slots, &rows).unwrap();
        }
        ranges
    }

    fn shown(ranges: &Ranges) -> Vec<(u32, String, Vec<u32>)> {
        let show = |range: &PartitionKeyRange| (range.id, range.keys.start.to_hex(), range.parents.clone());
        ranges.list.iter().map(show).collect()
    }

    #[test]
    fn one_range_splits_into_two_and_one_of_these_again() {
        let of = |counts: &[usize]| shown(&split(&definition(2), 1, counts));
        assert_eq!(of(&[]), [(0, String::new(), vec![])]);
        assert_eq!(of(&[2]), [(1, String::new(), vec![0]), (2, "20".into(), vec![0])]);
        assert_eq!(
            of(&[2, 3]),
            [(3, String::new(), vec![0, 1]), (4, "10".into(), vec![0, 1]), (2, "20".into(), vec![0])]
        );
        // At once, no range is there in between.
        assert_eq!(of(&[3]).iter().map(|range| range.0).collect::<Vec<_>>(), [1, 2, 3]);
    }

    #[test]
    fn rows_that_do_not_tile_the_slots_are_refused() {
        let row = |id: u32, start: &str| RangeRow {
            id,
            start: start.into(),
            parents: Vec::new(),
            generation: 0,
            made: None,
        };
        for rows in [
            vec![row(0, "10"), row(1, "20")],
            vec![row(0, ""), row(1, "30")],
            vec![row(0, ""), row(2, "30"), row(1, "20")],
            vec![row(0, ""), row(1, "x")],
        ] {
            assert!(Ranges::new(&definition(2), 2, &rows).is_err(), "{rows:?}");
        }
        assert!(Ranges::new(&definition(2), 2, &[row(0, ""), row(7, "20")]).is_ok());
    }

    proptest! {
        /// However often a container's ranges split: they tile the space, each in one slot; each key is in
        /// one, which came of the one it was in before; and no id comes again.
        #[test]
        fn ranges_tile_the_space_however_they_split(
            version in 1_u8..=2,
            slots in 1_u32..9,
            steps in prop::collection::vec(0_usize..9, 0..5),
            hashes in prop::collection::vec(any::<u128>(), 1..20),
        ) {
            let definition = definition(version);
            let mut before = split(&definition, slots, &[]);
            let mut retired = Vec::new();
            for step in steps {
                let count = before.list.len() + step;
                let rows = before.split(&definition, count, Timestamp::from_seconds(9));
                let stored = serde_json::to_vec(&rows).unwrap();
                let rows: Vec<RangeRow> = serde_json::from_slice(&stored).unwrap();
                let after = Ranges::new(&definition, slots, &rows).unwrap();
                prop_assert_eq!(after.list.len(), count);
                for hash in &hashes {
                    let key = Epk((hash >> 2).to_be_bytes().to_vec());
                    let slot = definition.slot_of(&key, slots) as u16;
                    let (old, new) = (before.of(slot, &key), after.of(slot, &key));
                    prop_assert!(new.keys.contains(&key) && old.keys.contains(&key));
                    prop_assert_eq!((new.slot, old.slot), (slot, slot));
                    prop_assert!(new.is_of(old.id));
                    prop_assert_eq!(new.id == old.id, new.keys == old.keys);
                }
                let ids: Vec<u32> = after.list.iter().map(|range| range.id).collect();
                retired.extend(before.list.iter().map(|range| range.id).filter(|id| !ids.contains(id)));
                prop_assert!(ids.iter().all(|id| !retired.contains(id)));
                before = after;
            }
        }
    }
}
