//! Slots: the space of effective keys cut into a power of two of equal ranges.
//!
//! V2 hashes fill the space from `00` to `40`, so the slot is in the top bits of the first bytes. V1 keys
//! begin with an encoded number, the hash; its range is cut, and the bounds are encoded numbers.
//!
//! Holds: `slot_of` is the last bound that is not greater than the key, comparing bytes.

use super::epk::hash_prefix_v1;
use super::{Epk, KeyDefinition, KeyKind};

/// Bits of a V2 hash's first eight bytes that vary; the two above are always zero.
const HASH_BITS: u32 = 62;

impl KeyDefinition {
    /// The slot that holds an effective key. `slots` is a power of two (others count as the one below).
    pub fn slot_of(&self, key: &Epk, slots: u32) -> u32 {
        let bits = slot_bits(slots);
        if self.hashes_v1() { self.search_slot(key, bits) } else { top_bits(key, bits) }
    }

    /// The inclusive lower bounds of all slots; the first is empty.
    pub fn slot_bounds(&self, slots: u32) -> Vec<Epk> {
        let bits = slot_bits(slots);
        (0..1_u64 << bits).map(|slot| self.bound(slot, bits)).collect()
    }

    fn hashes_v1(&self) -> bool {
        self.kind == KeyKind::Hash && self.version == 1
    }

    fn bound(&self, slot: u64, bits: u32) -> Epk {
        if slot == 0 {
            return Epk::default();
        }
        if self.hashes_v1() {
            return Epk(hash_prefix_v1((slot << (32 - bits)) as u32));
        }
        // Without the zeros at the end: they would put a shorter key before its own bound.
        let mut bound = (slot << (HASH_BITS - bits)).to_be_bytes().to_vec();
        while bound.pop_if(|last| *last == 0).is_some() {}
        Epk(bound)
    }

    /// Bisection over the bounds: right for any bytes, also for those that are no V1 key.
    fn search_slot(&self, key: &Epk, bits: u32) -> u32 {
        let mut slot = 0_u64;
        for bit in (0..bits).rev() {
            let higher = slot | 1 << bit;
            if self.bound(higher, bits) <= *key {
                slot = higher;
            }
        }
        slot as u32
    }
}

fn slot_bits(slots: u32) -> u32 {
    slots.max(1).ilog2()
}

/// The slot of a V2 key; missing bytes count as zeros, and what lies beyond all hashes as the last slot.
fn top_bits(key: &Epk, bits: u32) -> u32 {
    let mut first = [0; 8];
    for (place, byte) in first.iter_mut().zip(&key.0) {
        *place = *byte;
    }
    let hash = u64::from_be_bytes(first).min((1 << HASH_BITS) - 1);
    (hash >> (HASH_BITS - bits)) as u32
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
