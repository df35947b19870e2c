//! Where a scan stands: a few bytes that any process can go on from.
//!
//! ```text
//!   slot:u16  flags:u8  [epoch:u32 through:u64 until:u64]  the last row's key without its slot and family
//!   slot:u16  8         lsn:u64  ordinal:u16               a walk by birth: where the last document was made
//! ```
//!
//! The key ends with a document's id, which may be a kilobyte. What is longer than a continuation token may be is cut,
//! with a digest of the whole; the scan then looks for that row among those that begin alike. If it is gone
//! meanwhile, nobody knows which of the others were given, and the continuation is refused.

use bson::{RawBinaryRef, RawBsonRef, spec::BinarySubtype};
use mayfly_value::digest;

use crate::{
    access::IndexName,
    error::{Error, Result},
    keys::be_u64,
    record::Birth,
};

/// Where a scan stands. Bytes to everybody else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    pub(crate) slot: u16,
    pub(crate) leg: Leg,
    /// Only for an index.
    pub(crate) index: Option<IndexedAtStart>,
    pub(crate) after: After,
}

/// The last row that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// None yet.
    Start,
    /// The row's key.
    Key(Vec<u8>),
    /// The row's key, and the row once more.
    Again(Vec<u8>),
    /// The beginning of its key, the digest of the whole, and whether the row is wanted once more.
    Cut(Vec<u8>, [u8; digest::LEN], bool),
    /// In a walk by birth: where the last document was made, and whether it is wanted once more.
    Birth(Birth, bool),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leg {
    Main = 0,
    Unindexed = 1,
}

/// How far a slot's index was when the scan came to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexedAtStart {
    pub epoch: u32,
    /// Commits after `through` up to `until` are left to the second leg.
    pub through: u64,
    pub until: u64,
}

impl IndexedAtStart {
    const LEN: usize = 20;

    fn to_bytes(self) -> Vec<u8> {
        let mut bytes = self.epoch.to_be_bytes().to_vec();
        bytes.extend_from_slice(&self.through.to_be_bytes());
        bytes.extend_from_slice(&self.until.to_be_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let epoch = u32::from_be_bytes(bytes.get(..4)?.try_into().ok()?);
        let (through, until) = (bytes.get(4..12)?, bytes.get(12..Self::LEN)?);
        Some(Self { epoch, through: be_u64(through), until: be_u64(until) })
    }

    pub fn leaves(&self, lsn: u64) -> bool {
        self.through < lsn && lsn <= self.until
    }
}

/// Set beside the leg when the position is one in an index.
const INDEXED: u8 = 2;
/// Set when the key is cut.
const CUT: u8 = 4;
/// The flags of a position in a walk by birth.
const BY_BIRTH: u8 = 8;

/// What of a key goes into a position: a token of 1 KB has room for it in base64, beside the rest.
const KEY_BYTES_MAX: usize = 560;

impl Position {
    /// Before the first document of a slot.
    pub fn start_of(slot: u16) -> Self {
        Self { slot, leg: Leg::Main, index: None, after: After::Start }
    }

    /// The slot that it is in.
    pub fn slot(&self) -> u16 {
        self.slot
    }

    /// At a document's entry in an index, the entry included. `value` is all values of the entry.
    pub fn at_entry(slot: u16, index: &IndexName, epoch: u32, value: &[u8], document: &[u8]) -> Self {
        let mut key = index.prefix(epoch).1;
        key.extend_from_slice(value);
        key.extend_from_slice(document);
        let index = Some(IndexedAtStart { epoch, through: 0, until: 0 });
        Self { slot, leg: Leg::Main, index, after: After::Again(key) }
    }

    /// At a write, the write included.
    pub fn at_write(slot: u16, lsn: u64, ordinal: u16) -> Self {
        let key = [&lsn.to_be_bytes()[..], &ordinal.to_be_bytes()].concat();
        Self { slot, leg: Leg::Main, index: None, after: After::Again(key) }
    }

    /// After a document in a walk by birth.
    pub(crate) fn after_birth(slot: u16, birth: Birth) -> Self {
        Self { slot, leg: Leg::Main, index: None, after: After::Birth(birth, false) }
    }

    /// The same position with its last row once more.
    pub fn again(mut self) -> Self {
        self.after = match self.after {
            After::Key(key) => After::Again(key),
            After::Cut(head, digest, _) => After::Cut(head, digest, true),
            After::Birth(birth, _) => After::Birth(birth, true),
            after => after,
        };
        self
    }

    /// For a continuation token.
    pub fn to_bytes(&self) -> Vec<u8> {
        let cut = match &self.after {
            After::Cut(head, digest, _) => Some((&head[..], *digest)),
            After::Key(key) if key.len() > KEY_BYTES_MAX => {
                Some((&key[..KEY_BYTES_MAX - digest::LEN], digest_of(key)))
            }
            _ => None,
        };
        let mut bytes = self.slot.to_be_bytes().to_vec();
        if let After::Birth(birth, _) = self.after {
            bytes.push(BY_BIRTH);
            bytes.extend_from_slice(&birth.lsn.to_be_bytes());
            bytes.extend_from_slice(&birth.ordinal.to_be_bytes());
            return bytes;
        }
        let flags = if self.index.is_some() { INDEXED } else { 0 } | if cut.is_some() { CUT } else { 0 };
        bytes.push(self.leg as u8 | flags);
        bytes.extend(self.index.map(IndexedAtStart::to_bytes).unwrap_or_default());
        match (cut, &self.after) {
            (Some((head, digest)), _) => {
                bytes.extend_from_slice(&digest);
                bytes.extend_from_slice(head);
            }
            (None, After::Key(key) | After::Again(key)) => bytes.extend_from_slice(key),
            (None, _) => {}
        }
        bytes
    }

    /// From a continuation token.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        if let [high, low, BY_BIRTH, rest @ ..] = bytes {
            let (lsn, ordinal) = rest.split_first_chunk().ok_or(Error::BadContinuation)?;
            let ordinal = ordinal.try_into().map_err(|_| Error::BadContinuation)?;
            let birth = Birth { lsn: u64::from_be_bytes(*lsn), ordinal: u16::from_be_bytes(ordinal) };
            return Ok(Self::after_birth(u16::from_be_bytes([*high, *low]), birth));
        }
        let [high, low, flags @ 0..=7, rest @ ..] = bytes else { return Err(Error::BadContinuation) };
        let (index, rest) = match flags & INDEXED {
            0 => (None, rest),
            _ => {
                let index = IndexedAtStart::from_bytes(rest).ok_or(Error::BadContinuation)?;
                (Some(index), &rest[IndexedAtStart::LEN..])
            }
        };
        let after = match (flags & CUT, rest.split_first_chunk()) {
            (0, _) if rest.is_empty() => After::Start,
            (0, _) => After::Key(rest.to_vec()),
            (_, Some((digest, head))) => After::Cut(head.to_vec(), *digest, false),
            (_, None) => return Err(Error::BadContinuation),
        };
        let leg = if flags & 1 == 0 { Leg::Main } else { Leg::Unindexed };
        Ok(Self { slot: u16::from_be_bytes([*high, *low]), leg, index, after })
    }
}

/// What stands for a key that is too long.
pub(crate) fn digest_of(key: &[u8]) -> [u8; digest::LEN] {
    digest::digest(RawBsonRef::Binary(RawBinaryRef { subtype: BinarySubtype::Generic, bytes: key }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_comes_back_as_it_was_and_stays_short() {
        let index = IndexedAtStart { epoch: 7, through: 1, until: 1 << 40 };
        for after in [After::Start, After::Key(vec![9; 40]), After::Key(vec![7; 4000])] {
            for index in [None, Some(index)] {
                let position = Position { slot: 3, leg: Leg::Unindexed, index, after: after.clone() };
                let bytes = position.to_bytes();
                assert!(bytes.len() < 600);
                let back = Position::from_bytes(&bytes).unwrap();
                assert_eq!(back.to_bytes(), bytes);
                assert!(matches!(back.after, After::Cut(..)) || back == position);
            }
        }
        let born = Position::after_birth(3, Birth { lsn: 1 << 40, ordinal: 7 });
        assert_eq!(Position::from_bytes(&born.to_bytes()).unwrap(), born);
        for bytes in [&[0, 0, 4, 1][..], &[0, 0, 8], &[0, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8, 9], &[0, 0, 9]] {
            assert!(Position::from_bytes(bytes).is_err(), "{bytes:?}");
        }
    }
}
