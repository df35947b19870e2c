//! Etags: a version as clients see it.
//!
//! An etag names a commit: container, slot and lsn. It is derived, not stored, and two versions of a document never
//! share one, because commits are never numbered twice.

use std::fmt;

use crate::ids::{UUID_LEN, push_uuid, uuid_digits};

/// A version of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Etag {
    container: u32,
    slot: u16,
    lsn: u64,
}

impl Etag {
    /// The version that a commit made.
    pub const fn new(container: u32, slot: u16, lsn: u64) -> Self {
        Self { container, slot, lsn }
    }

    /// Reads the text form, with or without quotes.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
        let mut groups = text.split('-');
        let mut group = |digits: usize| {
            let group = groups.next().filter(|group| group.len() == digits)?;
            u64::from_str_radix(group, 16).ok()
        };
        let (container, slot, zero, high, low) = (group(8)?, group(4)?, group(4)?, group(4)?, group(12)?);
        (zero == 0 && groups.next().is_none()).then_some(Self {
            container: container as u32,
            slot: slot as u16,
            lsn: high << 48 | low,
        })
    }
}

impl Etag {
    /// A quoted GUID-like string, as Cosmos DB writes it.
    pub fn to_text(self) -> String {
        let mut text = String::with_capacity(UUID_LEN + 2);
        text.push('"');
        push_uuid(self.to_bytes(), &mut text);
        text.push('"');
        text
    }

    /// The same without quotes, as bytes.
    pub fn digits(self) -> [u8; UUID_LEN] {
        uuid_digits(self.to_bytes())
    }

    fn to_bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&self.container.to_be_bytes());
        bytes[4..6].copy_from_slice(&self.slot.to_be_bytes());
        bytes[8..].copy_from_slice(&self.lsn.to_be_bytes());
        bytes
    }
}

impl fmt::Display for Etag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_text())
    }
}

/// A condition on the current version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfMatch {
    /// There must be one.
    Any,
    /// It must be this one; `None` is a text that is no etag of ours and matches nothing.
    Is(Option<Etag>),
}

impl IfMatch {
    /// Reads a header's value.
    pub fn parse(text: &str) -> Self {
        match text.trim() {
            "*" => Self::Any,
            text => Self::Is(Etag::parse(text)),
        }
    }

    /// Whether `current` satisfies it.
    pub fn allows(self, current: Etag) -> bool {
        match self {
            Self::Any => true,
            Self::Is(etag) => etag == Some(current),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_text_is_read_as_the_same_version() {
        for (container, slot, lsn) in
            [(0, 0, 0), (u32::MAX, u16::MAX, u64::MAX), (0x1234, 0xAB, 0x0102_0304_0506_0708)]
        {
            let etag = Etag::new(container, slot, lsn);
            assert_eq!(Etag::parse(&etag.to_text()), Some(etag));
            assert_eq!(Etag::parse(std::str::from_utf8(&etag.digits()).unwrap()), Some(etag));
        }
        let text = Etag::new(0x12, 0x3, 0x0004_0000_0000_0567).to_string();
        assert_eq!(text, "\"00000012-0003-0000-0004-000000000567\"");
    }
}
