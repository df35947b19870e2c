//! Decoding values: for plans that answer from the index alone, and for the tool that checks a store.

use bson::oid::ObjectId;
use bson::{DateTime, Decimal128, Timestamp};

use super::encode::ADJUSTED_BIAS;
use super::parts::Reader;
use super::skip::skip_payload;
use super::{CUT, END, KeycodeError, STRING_BYTES_MAX, first_tag};
use crate::number::{DIGITS, Magnitude, Number};
use crate::order::{Class, Order};

/// A value read back from a key. Its BSON type is that of its class: all numbers that a double holds come
/// back as doubles.
#[derive(Debug, Clone, PartialEq)]
pub enum DecodedValue {
    /// Not there (Cosmos), or BSON's own undefined (Mongo).
    Undefined,
    /// Null, or not there (Mongo).
    Null,
    /// A bool.
    Bool(bool),
    /// Any number that is exactly this double.
    Double(f64),
    /// An integer that no double holds (Mongo).
    Int64(i64),
    /// A decimal that is neither of the above (Mongo).
    Decimal128(Decimal128),
    /// A string or symbol.
    String(String),
    /// The beginning of a string, as bytes: the cut may split a character.
    CutString(Vec<u8>),
    /// An array without items.
    EmptyArray,
    /// An object without properties.
    EmptyObject,
    /// An array, object or code with content; it was skipped.
    Container,
    /// A binary of at most 512 bytes.
    Binary {
        /// The BSON subtype.
        subtype: u8,
        /// The content.
        bytes: Vec<u8>,
    },
    /// A binary, DBPointer, code or expression of which only the beginning is in the key; it was skipped.
    CutOther,
    /// An object id.
    ObjectId(ObjectId),
    /// A date.
    DateTime(DateTime),
    /// A timestamp.
    Timestamp(Timestamp),
    /// A regular expression.
    Regex {
        /// The expression.
        pattern: String,
        /// Its flags.
        options: String,
    },
    /// A deprecated pointer to another document.
    DbPointer {
        /// Database and collection.
        namespace: String,
        /// The document's id.
        id: ObjectId,
    },
    /// JavaScript code without scope.
    Code(String),
    /// Lower than all values (Mongo).
    MinKey,
    /// Higher than all values (Mongo).
    MaxKey,
}

/// Reads one value; also tells how many bytes it took.
pub fn decode_value(bytes: &[u8], order: Order) -> Result<(DecodedValue, usize), KeycodeError> {
    decode(Reader::new(bytes), order)
}

/// Reads one value that was written in descending order.
pub fn decode_value_desc(bytes: &[u8], order: Order) -> Result<(DecodedValue, usize), KeycodeError> {
    decode(Reader::inverted(bytes), order)
}

fn decode(mut reader: Reader<'_>, order: Order) -> Result<(DecodedValue, usize), KeycodeError> {
    let tag = reader.byte()?;
    let class = tag.checked_sub(first_tag(order)).and_then(|rank| Class::of_rank(rank, order));
    let class = class.ok_or_else(|| reader.unexpected(tag, "a tag of this order"))?;
    let value = decode_payload(&mut reader, class, order)?;
    Ok((value, reader.position))
}

fn decode_payload(reader: &mut Reader<'_>, class: Class, order: Order) -> Result<DecodedValue, KeycodeError> {
    Ok(match class {
        Class::Undefined => DecodedValue::Undefined,
        Class::Null => DecodedValue::Null,
        Class::MinKey => DecodedValue::MinKey,
        Class::MaxKey => DecodedValue::MaxKey,
        Class::Bool => DecodedValue::Bool(decode_bool(reader)?),
        Class::Number => decode_number(reader, order)?,
        Class::String => match reader.escaped()? {
            (bytes, true) => DecodedValue::CutString(bytes),
            (bytes, false) => DecodedValue::String(text(reader, bytes)?),
        },
        Class::Code => match reader.escaped()? {
            (_, true) => DecodedValue::CutOther,
            (bytes, false) => DecodedValue::Code(text(reader, bytes)?),
        },
        Class::Binary => match decode_binary(reader)? {
            (_, _, true) => DecodedValue::CutOther,
            (subtype, bytes, false) => DecodedValue::Binary { subtype, bytes },
        },
        Class::ObjectId => DecodedValue::ObjectId(ObjectId::from_bytes(reader.array()?)),
        Class::DateTime => {
            let millis = u64::from_be_bytes(reader.array()?) ^ (1 << 63);
            DecodedValue::DateTime(DateTime::from_millis(millis as i64))
        }
        Class::Timestamp => {
            let time = u32::from_be_bytes(reader.array()?);
            DecodedValue::Timestamp(Timestamp { time, increment: u32::from_be_bytes(reader.array()?) })
        }
        Class::Regex => decode_regex(reader)?,
        Class::DbPointer => match reader.escaped()? {
            (_, true) => DecodedValue::CutOther,
            (bytes, false) => DecodedValue::DbPointer {
                namespace: text(reader, bytes)?,
                id: ObjectId::from_bytes(reader.array()?),
            },
        },
        Class::Array | Class::Object | Class::CodeWithScope => decode_container(reader, class, order)?,
    })
}

pub(super) fn decode_bool(reader: &mut Reader<'_>) -> Result<bool, KeycodeError> {
    match reader.byte()? {
        0 => Ok(false),
        1 => Ok(true),
        found => Err(reader.unexpected(found, "00 or 01")),
    }
}

fn decode_regex(reader: &mut Reader<'_>) -> Result<DecodedValue, KeycodeError> {
    let (pattern, cut) = reader.escaped()?;
    if cut {
        return Ok(DecodedValue::CutOther);
    }
    let (options, cut) = reader.escaped()?;
    if cut {
        return Ok(DecodedValue::CutOther);
    }
    Ok(DecodedValue::Regex { pattern: text(reader, pattern)?, options: text(reader, options)? })
}

fn decode_container(
    reader: &mut Reader<'_>,
    class: Class,
    order: Order,
) -> Result<DecodedValue, KeycodeError> {
    let from = reader.position;
    skip_payload(reader, class, order, 0)?;
    // The end marker alone: nothing was in it.
    let is_empty = reader.position == from + 1;
    Ok(match class {
        Class::Array if is_empty => DecodedValue::EmptyArray,
        Class::Object if is_empty => DecodedValue::EmptyObject,
        _ => DecodedValue::Container,
    })
}

fn text(reader: &Reader<'_>, bytes: Vec<u8>) -> Result<String, KeycodeError> {
    String::from_utf8(bytes).map_err(|error| {
        let found = error.as_bytes().get(error.utf8_error().valid_up_to()).copied();
        reader.unexpected(found.unwrap_or_default(), "UTF-8")
    })
}

pub(super) fn decode_number(reader: &mut Reader<'_>, order: Order) -> Result<DecodedValue, KeycodeError> {
    let bits = u64::from_be_bytes(reader.array()?);
    let (negative, double) = match bits {
        0 => (false, f64::NAN),
        _ if bits >> 63 == 1 => (false, f64::from_bits(bits ^ (1 << 63))),
        _ => (true, f64::from_bits(!bits)),
    };
    if order == Order::Cosmos {
        return Ok(DecodedValue::Double(double));
    }
    let number = match decode_remainder(reader, negative)? {
        None => Some(Number::Double(double)),
        Some(magnitude) => magnitude.to_number(negative),
    };
    match number {
        Some(Number::Double(double)) => Ok(DecodedValue::Double(double)),
        Some(Number::Int(int)) => Ok(DecodedValue::Int64(int)),
        Some(Number::Decimal(decimal)) => Ok(DecodedValue::Decimal128(decimal)),
        None => Err(reader.unexpected(CUT, "the digits of a decimal")),
    }
}

/// What the double did not hold, see `Encoder::remainder`.
fn decode_remainder(reader: &mut Reader<'_>, negative: bool) -> Result<Option<Magnitude>, KeycodeError> {
    let mask = if negative { 0xFF } else { 0 };
    match reader.byte()? ^ mask {
        END => return Ok(None),
        CUT => {}
        found => return Err(reader.unexpected(found, "the rest of a number")),
    }
    let adjusted = u16::from_be_bytes(reader.array::<2>()?.map(|byte| byte ^ mask));
    let digits = reader.array::<15>()?.map(|byte| byte ^ mask);
    let coefficient = digits.into_iter().fold(0, |number, byte| number << 8 | u128::from(byte));
    if coefficient < 10_u128.pow(DIGITS - 1) {
        return Err(reader.unexpected(0, "34 digits"));
    }
    Ok(Some(Magnitude { adjusted: i32::from(adjusted) - ADJUSTED_BIAS, coefficient, more: false }))
}

/// Subtype, content, and whether it was cut.
pub(super) fn decode_binary(reader: &mut Reader<'_>) -> Result<(u8, Vec<u8>, bool), KeycodeError> {
    let length = u32::from_be_bytes(reader.array()?) as usize;
    let subtype = reader.byte()?;
    let bytes = reader.take(length.min(STRING_BYTES_MAX))?;
    Ok((subtype, bytes, length > STRING_BYTES_MAX))
}
