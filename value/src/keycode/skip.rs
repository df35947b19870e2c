//! Passing over values: where one ends, and whether it was cut, without building it.

use super::decode::{DecodedValue, decode_binary, decode_bool, decode_number};
use super::parts::Reader;
use super::{COSMOS_TAGS, CUT, END, FIELD, KeycodeError, MONGO_TAGS, TAGS_SPAN};
use crate::foreign::DEPTH_MAX;
use crate::order::{Class, Order};

/// The number of bytes one value takes, of either order and direction.
pub fn skip_value(bytes: &[u8]) -> Result<usize, KeycodeError> {
    let mut reader = reader_for(bytes);
    skip(&mut reader, 0)?;
    Ok(reader.position)
}

/// The number of bytes one value takes, and whether they say all about it: a scalar of JSON that is not cut, and no
/// number so large that several integers share its double.
pub fn skip_exact(bytes: &[u8]) -> Result<(usize, bool), KeycodeError> {
    /// Integers from 2^53 on share doubles.
    const EXACT_BELOW: f64 = 9_007_199_254_740_992.0;
    let mut reader = reader_for(bytes);
    let tag = reader.byte()?;
    let (class, order) = class_of_tag(tag).ok_or_else(|| reader.unexpected(tag, "a tag"))?;
    let exact = match class {
        Class::Number => match decode_number(&mut reader, order)? {
            DecodedValue::Double(double) => double.abs() < EXACT_BELOW,
            _ => false,
        },
        Class::Undefined | Class::Null | Class::Bool | Class::String => {
            !skip_payload(&mut reader, class, order, 0)?
        }
        _ => {
            skip_payload(&mut reader, class, order, 0)?;
            false
        }
    };
    Ok((reader.position, exact))
}

/// Whether part of the value was left out of its key. Bytes that are no key were not cut.
pub fn is_cut(encoded: &[u8]) -> bool {
    skip(&mut reader_for(encoded), 0).unwrap_or(false)
}

fn reader_for(bytes: &[u8]) -> Reader<'_> {
    match bytes.first() {
        Some(first) if *first >= 0x80 => Reader::inverted(bytes),
        _ => Reader::new(bytes),
    }
}

/// Passes over a value; the flag tells whether it was cut.
fn skip(reader: &mut Reader<'_>, depth: usize) -> Result<bool, KeycodeError> {
    let tag = reader.byte()?;
    let (class, order) = class_of_tag(tag).ok_or_else(|| reader.unexpected(tag, "a tag"))?;
    skip_payload(reader, class, order, depth)
}

fn class_of_tag(tag: u8) -> Option<(Class, Order)> {
    [(Order::Cosmos, COSMOS_TAGS), (Order::Mongo, MONGO_TAGS)].into_iter().find_map(|(order, first)| {
        let rank = tag.checked_sub(first).filter(|rank| *rank < TAGS_SPAN)?;
        Some((Class::of_rank(rank, order)?, order))
    })
}

pub(super) fn skip_payload(
    reader: &mut Reader<'_>,
    class: Class,
    order: Order,
    depth: usize,
) -> Result<bool, KeycodeError> {
    match class {
        Class::String | Class::Code => return reader.skip_escaped(),
        Class::Binary => return decode_binary(reader).map(|(_, _, cut)| cut),
        Class::Array => return skip_array(reader, depth),
        Class::Object => return skip_object(reader, order, depth),
        Class::Regex => return Ok(reader.skip_escaped()? || reader.skip_escaped()?),
        Class::CodeWithScope => return Ok(reader.skip_escaped()? || skip_object(reader, order, depth)?),
        Class::DbPointer => {
            if reader.skip_escaped()? {
                return Ok(true);
            }
            reader.array::<12>()?;
        }
        Class::Bool => _ = decode_bool(reader)?,
        Class::Number => _ = decode_number(reader, order)?,
        Class::ObjectId => _ = reader.array::<12>()?,
        Class::DateTime | Class::Timestamp => _ = reader.array::<8>()?,
        Class::Undefined | Class::Null | Class::MinKey | Class::MaxKey => {}
    }
    Ok(false)
}

fn skip_array(reader: &mut Reader<'_>, depth: usize) -> Result<bool, KeycodeError> {
    if depth >= DEPTH_MAX {
        return reader.skip_escaped();
    }
    loop {
        match reader.byte()? {
            END => return Ok(false),
            CUT => return Ok(true),
            tag => {
                let found = class_of_tag(tag).ok_or_else(|| reader.unexpected(tag, "an item"))?;
                if skip_payload(reader, found.0, found.1, depth + 1)? {
                    return expect_cut(reader);
                }
            }
        }
    }
}

fn skip_object(reader: &mut Reader<'_>, order: Order, depth: usize) -> Result<bool, KeycodeError> {
    if depth >= DEPTH_MAX {
        return reader.skip_escaped();
    }
    loop {
        let marker = reader.byte()?;
        let field_cut = match (marker, order) {
            (END, _) => return Ok(false),
            (CUT, _) => return Ok(true),
            (FIELD, Order::Cosmos) => reader.skip_escaped()? || skip(reader, depth + 1)?,
            (tag, Order::Mongo) => {
                let (class, order) = class_of_tag(tag).ok_or_else(|| reader.unexpected(tag, "a field"))?;
                reader.skip_escaped()? || skip_payload(reader, class, order, depth + 1)?
            }
            (found, Order::Cosmos) => return Err(reader.unexpected(found, "a field")),
        };
        if field_cut {
            return expect_cut(reader);
        }
    }
}

/// After an element that was cut its container ends as well.
fn expect_cut(reader: &mut Reader<'_>) -> Result<bool, KeycodeError> {
    match reader.byte()? {
        CUT => Ok(true),
        found => Err(reader.unexpected(found, "the end of a cut container")),
    }
}
