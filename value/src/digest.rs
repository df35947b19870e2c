//! A short stand-in for a value that is too long to be a key: equal values have equal digests.
//!
//! For places that ask "the same or not", such as unique keys; there is no order in it.

use bson::RawBsonRef;

use crate::partition::murmur::murmur3_128;

/// The digest's length.
pub const LEN: usize = 16;

/// The digest of a value's bytes.
pub fn digest(value: RawBsonRef<'_>) -> [u8; LEN] {
    let (high, low) = match value {
        RawBsonRef::String(text) => murmur3_128(text.as_bytes()),
        RawBsonRef::Document(document) => murmur3_128(document.as_bytes()),
        RawBsonRef::Array(array) => murmur3_128(array.as_bytes()),
        RawBsonRef::Binary(binary) => murmur3_128(binary.bytes),
        // Everything else is short, and its text form tells its values apart.
        other => murmur3_128(format!("{other:?}").as_bytes()),
    };
    let mut bytes = [0; LEN];
    bytes[..8].copy_from_slice(&high.to_be_bytes());
    bytes[8..].copy_from_slice(&low.to_be_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_with_the_same_start_differ() {
        let (a, b) = ("x".repeat(600) + "a", "x".repeat(600) + "b");
        assert_ne!(digest(RawBsonRef::String(&a)), digest(RawBsonRef::String(&b)));
        assert_eq!(digest(RawBsonRef::String(&a)), digest(RawBsonRef::String(&a.clone())));
    }
}
