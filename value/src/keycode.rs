//! Keys whose byte order is the order of values: what indexes are made of.
//!
//! A value is one tag byte (its type class in the order at hand, see `order.rs`) and a payload that ends by
//! itself, so that components can follow one another in a key:
//!
//! ```text
//!   undefined, null, min, max   tag
//!   bool                        tag, 00 or 01
//!   number, Cosmos              tag, 8 bytes of the double
//!   number, Mongo               tag, 8 bytes of the double towards zero, 00 if that is exact,
//!                               else 01 and 17 bytes of decimal digits (negatives: all inverted)
//!   string, code, names         bytes with 00 written as 00 FF, then 00 00 (or 00 01 if cut)
//!   binary                      length (4), subtype (1), at most 512 bytes
//!   object id, date, timestamp  12, 8, 8 bytes
//!   array                       values, 00 (or 01 if cut)
//!   object, Cosmos              (02, name, value) by name, 00 (or 01 if cut)
//!   object, Mongo               (tag, name, payload) as stored, 00 (or 01 if cut)
//! ```
//!
//! Cosmos tags lie in 10..2F, Mongo tags in 40..6F, and a descending component has all bytes inverted, so
//! the first byte tells how to read the rest.
//!
//! Holds: the byte order of two encodings is `order::compare` of their values, for all types and depths,
//! except that values which were cut at the same place encode alike. A string is cut after
//! `STRING_BYTES_MAX` bytes, a binary likewise, a container once it has passed `CONTAINER_BYTES_MAX`; after
//! a cut nothing more of the value is written. `is_cut` tells; the reader then looks at the document.
//! Decoders never panic, whatever bytes they are given.

mod decode;
mod encode;
mod parts;
mod paths;
mod skip;
#[cfg(test)]
mod tests;

pub use decode::{DecodedValue, decode_value, decode_value_desc};
pub use encode::{push_undefined, push_value, push_value_desc};
pub use parts::{push_bytes, push_str, push_u32, push_u64, take_bytes, take_str, take_u32, take_u64};
pub use paths::{
    PathStep, encode_path, is_property_path, path_to_string, push_path_end, push_path_item,
    push_path_property, skip_path,
};
pub use skip::{is_cut, skip_exact, skip_value};

use crate::order::Order;

/// Bytes of a string (or binary) that go into a key; the rest is cut.
///
/// Long enough to tell real strings apart, short enough that a key of eight components stays below the
/// 64 KiB that storage engines allow.
pub const STRING_BYTES_MAX: usize = 512;

/// Bytes of an array or object after which the rest of it is cut.
pub const CONTAINER_BYTES_MAX: usize = 2048;

/// Bytes that are no key of ours.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeycodeError {
    /// The bytes end inside a component.
    #[error("the key ends after {length} bytes, inside a component")]
    TooShort {
        /// How many bytes there were.
        length: usize,
    },
    /// A byte has no meaning where it stands.
    #[error("byte {position} of the key is {found:#04x}, expected {expected}")]
    Unexpected {
        /// Which byte.
        position: usize,
        /// What it is.
        found: u8,
        /// What could have stood there.
        expected: &'static str,
    },
}

const COSMOS_TAGS: u8 = 0x10;
const MONGO_TAGS: u8 = 0x40;
const TAGS_SPAN: u8 = 0x20;

/// Ends a container. All markers lie below all tags, so a shorter container sorts first.
const END: u8 = 0x00;
/// Ends a container whose rest was left out.
const CUT: u8 = 0x01;
/// Begins a property of a Cosmos object.
const FIELD: u8 = 0x02;

const _: () = assert!(FIELD < COSMOS_TAGS);
const _: () = assert!(MONGO_TAGS + TAGS_SPAN < 0x80, "inverted tags must be distinguishable");

fn first_tag(order: Order) -> u8 {
    match order {
        Order::Cosmos => COSMOS_TAGS,
        Order::Mongo => MONGO_TAGS,
    }
}
