//! MurmurHash3, the public-domain hash function that effective partition keys are made with.
//!
//! Two variants: 32 bits for V1 keys, 128 bits (64-bit arithmetic) for V2 keys, both with seed 0.

/// MurmurHash3 x86, 32 bits.
pub(super) fn murmur3_32(data: &[u8]) -> u32 {
    const C1: u32 = 0xCC9E_2D51;
    const C2: u32 = 0x1B87_3593;
    let mix = |block: u32| block.wrapping_mul(C1).rotate_left(15).wrapping_mul(C2);
    let (blocks, tail) = data.as_chunks::<4>();
    let mut hash = 0_u32;
    for block in blocks {
        hash ^= mix(u32::from_le_bytes(*block));
        hash = hash.rotate_left(13).wrapping_mul(5).wrapping_add(0xE654_6B64);
    }
    // An empty tail is the block 0, which mixes to 0 and changes nothing.
    hash ^= mix(u32::from_le_bytes(padded(tail)));
    hash ^= data.len() as u32;
    hash ^= hash >> 16;
    hash = hash.wrapping_mul(0x85EB_CA6B);
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(0xC2B2_AE35);
    hash ^ (hash >> 16)
}

/// MurmurHash3 x64, 128 bits, as its two halves.
pub(crate) fn murmur3_128(data: &[u8]) -> (u64, u64) {
    const C1: u64 = 0x87C3_7B91_1142_53D5;
    const C2: u64 = 0x4CF5_AD43_2745_937F;
    let mix_low = |block: u64| block.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2);
    let mix_high = |block: u64| block.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1);
    let (blocks, tail) = data.as_chunks::<16>();
    let (mut low, mut high) = (0_u64, 0_u64);
    for block in blocks {
        let (block_low, block_high) = halves(*block);
        low = (low ^ mix_low(block_low)).rotate_left(27).wrapping_add(high);
        low = low.wrapping_mul(5).wrapping_add(0x52DC_E729);
        high = (high ^ mix_high(block_high)).rotate_left(31).wrapping_add(low);
        high = high.wrapping_mul(5).wrapping_add(0x3849_5AB5);
    }
    let (tail_low, tail_high) = halves(padded(tail));
    low ^= mix_low(tail_low) ^ data.len() as u64;
    high ^= mix_high(tail_high) ^ data.len() as u64;
    low = low.wrapping_add(high);
    high = high.wrapping_add(low);
    (low, high) = (finish(low), finish(high));
    low = low.wrapping_add(high);
    high = high.wrapping_add(low);
    (low, high)
}

fn finish(mut half: u64) -> u64 {
    half ^= half >> 33;
    half = half.wrapping_mul(0xFF51_AFD7_ED55_8CCD);
    half ^= half >> 33;
    half = half.wrapping_mul(0xC4CE_B9FE_1A85_EC53);
    half ^ (half >> 33)
}

fn halves(block: [u8; 16]) -> (u64, u64) {
    let both = u128::from_le_bytes(block);
    (both as u64, (both >> 64) as u64)
}

/// The rest of the data as a block with zeros behind it.
fn padded<const N: usize>(tail: &[u8]) -> [u8; N] {
    let mut block = [0; N];
    for (place, byte) in block.iter_mut().zip(tail) {
        *place = *byte;
    }
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_agree_with_published_values() {
        assert_eq!(murmur3_32(b""), 0);
        assert_eq!(murmur3_32(b"test"), 0xBA6B_D213);
        assert_eq!(murmur3_32(b"Hello, world!"), 0xC036_3E43);
        assert_eq!(murmur3_128(b""), (0, 0));
        assert_eq!(murmur3_128(b"hello"), (0xCBD8_A7B3_41BD_9B02, 0x5B1E_906A_48AE_1D19));
    }
}
