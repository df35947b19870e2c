//! Slots: the space of effective keys cut into equal parts, and parts of it halved.
//!
//! V2 hashes fill the space from `00` to `40`, 126 bits of a key's first sixteen bytes. V1 keys begin with an
//! encoded number, the hash; its 32 bits are cut, and the bounds are encoded numbers. A key's *point* is
//! where it stands among the hashes of its version.
//!
//! Holds: `slot_of` is the last bound that is not greater than the key, comparing bytes.

use super::epk::hash_prefix_v1;
use super::{Epk, KeyDefinition, KeyKind};

/// How many hashes there are, of V1 and of V2. The two top bits of V2's 128 are always zero.
const HASHES_V1: u128 = 1 << 32;
const HASHES_V2: u128 = 1 << 126;

/// Bytes that a V2 hash has.
const HASH_LEN: usize = 16;

impl KeyDefinition {
    /// The slot that holds an effective key.
    pub fn slot_of(&self, key: &Epk, slots: u32) -> u32 {
        if self.hashes_v1() {
            return self.search_slot(key, slots);
        }
        let (point, last) = (point_v2(key), slots.saturating_sub(1));
        match slots {
            0 | 1 => 0,
            // A division, in the form that costs the least; every point operation comes by here.
            _ if slots.is_power_of_two() => ((point >> (HASHES_V2.ilog2() - slots.ilog2())) as u32).min(last),
            _ => u32::try_from(point / step(HASHES_V2, slots)).map_or(last, |slot| slot.min(last)),
        }
    }

    /// The inclusive lower bounds of all slots; the first is empty.
    pub fn slot_bounds(&self, slots: u32) -> Vec<Epk> {
        (0..slots.max(1)).map(|slot| self.bound(slot, slots)).collect()
    }

    /// How many hashes lie from `start` up to `end`, or up to the last one.
    pub fn width(&self, start: &Epk, end: Option<&Epk>) -> u128 {
        end.map_or(self.hashes(), |end| self.point(end)).saturating_sub(self.point(start))
    }

    /// The key that halves those from `start` up to `end`; none if only one hash lies between.
    pub fn middle(&self, start: &Epk, end: Option<&Epk>) -> Option<Epk> {
        let half = self.width(start, end) / 2;
        (half > 0).then(|| self.key_at(self.point(start) + half))
    }

    fn hashes_v1(&self) -> bool {
        self.kind == KeyKind::Hash && self.version == 1
    }

    fn hashes(&self) -> u128 {
        if self.hashes_v1() { HASHES_V1 } else { HASHES_V2 }
    }

    fn bound(&self, slot: u32, slots: u32) -> Epk {
        self.key_at(u128::from(slot) * step(self.hashes(), slots))
    }

    /// The first hash that is not below a key.
    fn point(&self, key: &Epk) -> u128 {
        if !self.hashes_v1() {
            return point_v2(key);
        }
        let (mut low, mut high) = (0, HASHES_V1);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.key_at(middle) < *key { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// The lowest key with the hash at `point`.
    fn key_at(&self, point: u128) -> Epk {
        if point == 0 {
            return Epk::default();
        }
        if self.hashes_v1() {
            return Epk(hash_prefix_v1(u32::try_from(point).unwrap_or(u32::MAX)));
        }
        // Without the zeros at the end: they would put a shorter key before its own bound.
        let mut key = point.to_be_bytes().to_vec();
        while key.pop_if(|last| *last == 0).is_some() {}
        Epk(key)
    }

    /// Bisection over the bounds: right for any bytes, also for those that are no V1 key.
    fn search_slot(&self, key: &Epk, slots: u32) -> u32 {
        let (mut slot, mut beyond) = (0, slots.max(1));
        while beyond - slot > 1 {
            let middle = slot + (beyond - slot) / 2;
            if self.bound(middle, slots) <= *key { slot = middle } else { beyond = middle }
        }
        slot
    }
}

/// Hashes of each slot but the last, which may have some more. A power of two divides all hashes; other
/// numbers divide the highest hash, as the service does, so that clients see its bounds.
fn step(hashes: u128, slots: u32) -> u128 {
    let slots = slots.max(1);
    if slots.is_power_of_two() { hashes / u128::from(slots) } else { (hashes - 1) / u128::from(slots) }
}

/// The first bytes of a key as a number; missing ones count as zeros, and what lies beyond all hashes as the
/// end.
fn point_v2(key: &Epk) -> u128 {
    let mut first = [0; HASH_LEN];
    for (place, byte) in first.iter_mut().zip(&key.0) {
        *place = *byte;
    }
    u128::from_be_bytes(first).min(HASHES_V2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::Path;

    fn definition(kind: KeyKind, version: u8) -> KeyDefinition {
        KeyDefinition { paths: vec![Path::parse("/a").unwrap()], kind, version }
    }

    fn bounds(kind: KeyKind, version: u8, slots: u32) -> Vec<String> {
        definition(kind, version).slot_bounds(slots).iter().map(Epk::to_hex).collect()
    }

    #[test]
    fn bounds_cut_the_space_into_equal_parts() {
        assert_eq!(bounds(KeyKind::Hash, 2, 1), [""]);
        assert_eq!(bounds(KeyKind::Hash, 2, 4), ["", "10", "20", "30"]);
        assert_eq!(bounds(KeyKind::MultiHash, 2, 2), ["", "20"]);
        assert_eq!(bounds(KeyKind::Hash, 2, 128)[1..4], ["0080", "01", "0180"]);
        assert_eq!(bounds(KeyKind::Hash, 1, 4), ["", "05C1D0", "05C1E0", "05C1E8"]);
    }

    #[test]
    fn bounds_of_five_slots_are_those_of_the_service() {
        assert_eq!(
            bounds(KeyKind::Hash, 2, 5)[1..],
            [
                "0CCCCCCCCCCCCCCCCCCCCCCCCCCCCCCC",
                "19999999999999999999999999999998",
                "26666666666666666666666666666664",
                "33333333333333333333333333333330",
            ]
        );
        assert_eq!(
            bounds(KeyKind::Hash, 1, 5)[1..],
            ["05C1C9CD673398", "05C1D9CD673398", "05C1E399CD6732", "05C1E9CD673398"]
        );
    }

    #[test]
    fn halves_of_slots_are_slots_of_twice_as_many() {
        for (kind, version) in [(KeyKind::Hash, 1), (KeyKind::Hash, 2), (KeyKind::MultiHash, 2)] {
            let definition = definition(kind, version);
            let (two, four) = (definition.slot_bounds(2), definition.slot_bounds(4));
            assert_eq!(definition.middle(&two[0], Some(&two[1])), Some(four[1].clone()));
            assert_eq!(definition.middle(&two[1], None), Some(four[3].clone()));
            let hashes = definition.hashes();
            assert_eq!(definition.width(&two[0], Some(&two[1])), hashes / 2);
            assert_eq!(definition.width(&two[0], None), hashes);
            let one = definition.key_at(7);
            assert_eq!(definition.middle(&one, Some(&definition.key_at(8))), None);
        }
    }

    #[test]
    fn keys_outside_of_all_hashes_have_a_slot_too() {
        let check = |definition: &KeyDefinition, hex: &str, slot: u32| {
            assert_eq!(definition.slot_of(&Epk::from_hex(hex).unwrap(), 4), slot, "{hex}");
        };
        for version in [1, 2] {
            check(&definition(KeyKind::Hash, version), "", 0);
            check(&definition(KeyKind::Hash, version), "FF", 3);
        }
        check(&KeyDefinition::unpartitioned(), "", 0);
        check(&definition(KeyKind::Hash, 2), "3F", 3);
        check(&definition(KeyKind::Hash, 2), "20", 2);
        check(&definition(KeyKind::Hash, 2), "1FFF", 1);
    }
}
