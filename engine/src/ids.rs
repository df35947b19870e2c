//! The door for randomness: the only place that makes up identifiers.
#![expect(clippy::disallowed_methods, reason = "this file is the door the ban list points to")]

use std::sync::atomic::{AtomicU64, Ordering};

/// Where identifiers come from.
pub trait Ids: Send + Sync + 'static {
    /// Sixteen bytes nobody else has.
    fn unique(&self) -> [u8; 16];
}

/// The operating system's randomness.
#[derive(Clone, Copy, Debug, Default)]
pub struct RandomIds;

impl Ids for RandomIds {
    fn unique(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        // Without a source of randomness nothing that follows is safe; there is no sensible way to go on.
        getrandom::fill(&mut bytes).expect("the operating system provides randomness");
        bytes
    }
}

/// The same identifiers in every run, for golden output.
#[derive(Debug, Default)]
pub struct SeededIds(AtomicU64);

impl Ids for SeededIds {
    fn unique(&self) -> [u8; 16] {
        let n = self.0.fetch_add(1, Ordering::Relaxed);
        let mut bytes = [0; 16];
        bytes[8..].copy_from_slice(&n.to_be_bytes());
        bytes
    }
}

/// The text of an identifier in the usual groups of hexadecimal digits.
pub fn to_uuid(bytes: [u8; 16]) -> String {
    let n = u128::from_be_bytes(bytes);
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        (n >> 96) as u32,
        (n >> 80) as u16,
        (n >> 64) as u16,
        (n >> 48) as u16,
        n & 0xFFFF_FFFF_FFFF
    )
}
