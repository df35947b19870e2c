//! Numbers that look random and are the same for the same seed.

/// A xorshift generator.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        // Zero would stay zero.
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number from 0 to `end`, without it.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end.max(1)
    }

    /// From the seed `MAYFLY_FUZZ_SEED`, or else this one.
    pub fn seeded(otherwise: u64) -> (Random, u64) {
        let seed = asked_for("MAYFLY_FUZZ_SEED").unwrap_or(otherwise);
        (Random::new(seed), seed)
    }

    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// As many as `MAYFLY_FUZZ_CASES` says, or else so many.
pub fn cases(otherwise: u64) -> u64 {
    asked_for("MAYFLY_FUZZ_CASES").unwrap_or(otherwise)
}

fn asked_for(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}
