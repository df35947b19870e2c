//! The door for randomness: the only place that makes up identifiers.
#![expect(clippy::disallowed_methods, reason = "this file is the door the ban list points to")]

use std::{
    cell::RefCell,
    sync::atomic::{AtomicU64, Ordering},
};

/// Where identifiers come from.
pub trait Ids: Send + Sync + 'static {
    /// Sixteen bytes nobody else has.
    fn unique(&self) -> [u8; 16];
}

/// The operating system's randomness, fetched for many identifiers at a time: every request has one.
#[derive(Clone, Copy, Debug, Default)]
pub struct RandomIds;

/// Identifiers fetched at a time. Some are lost when a thread ends.
const STOCK: usize = 64;

thread_local! {
    static IN_STOCK: RefCell<Vec<[u8; 16]>> = const { RefCell::new(Vec::new()) };
}

impl Ids for RandomIds {
    fn unique(&self) -> [u8; 16] {
        IN_STOCK.with_borrow_mut(|stock| {
            stock.pop().unwrap_or_else(|| {
                let mut fresh = [[0; 16]; STOCK];
                // Without a source of randomness nothing that follows is safe; there is no sensible way to go on.
                getrandom::fill(fresh.as_flattened_mut()).expect("the operating system provides randomness");
                stock.extend_from_slice(&fresh[1..]);
                fresh[0]
            })
        })
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
    let mut text = String::with_capacity(UUID_LEN);
    push_uuid(bytes, &mut text);
    text
}

/// Characters of such a text.
pub const UUID_LEN: usize = 36;

/// Appends the same.
pub(crate) fn push_uuid(bytes: [u8; 16], text: &mut String) {
    text.push_str(std::str::from_utf8(&uuid_digits(bytes)).unwrap_or_default());
}

/// The same as bytes. By hand: every answer has three of these, and the standard library's formatting takes many times as long.
pub(crate) fn uuid_digits(bytes: [u8; 16]) -> [u8; UUID_LEN] {
    /// Where the two digits of each byte stand: there are hyphens between the groups.
    const PLACES: [usize; 16] = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];
    let mut digits = [b'-'; UUID_LEN];
    for (at, byte) in PLACES.into_iter().zip(bytes) {
        digits[at..at + 2].copy_from_slice(&PAIRS[usize::from(byte)]);
    }
    digits
}

/// The two digits of each byte.
static PAIRS: [[u8; 2]; 256] = {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut pairs = [[0; 2]; 256];
    let mut byte = 0;
    while byte < pairs.len() {
        pairs[byte] = [DIGITS[byte >> 4], DIGITS[byte & 15]];
        byte += 1;
    }
    pairs
};

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_text_has_the_usual_groups() {
        let bytes = std::array::from_fn(|n| 0x10 + n as u8);
        assert_eq!(to_uuid(bytes), "10111213-1415-1617-1819-1a1b1c1d1e1f");
        assert_eq!(to_uuid([0; 16]), "00000000-0000-0000-0000-000000000000");
    }

    /// Also where one stock ends and the next begins, and on another thread.
    #[test]
    fn no_identifier_comes_twice() {
        let some = || (0..3 * STOCK).map(|_| RandomIds.unique()).collect::<Vec<_>>();
        let elsewhere = std::thread::scope(|scope| scope.spawn(some).join());
        let all: HashSet<_> = some().into_iter().chain(elsewhere.into_iter().flatten()).collect();
        assert_eq!(all.len(), 6 * STOCK);
    }
}
