//! Types JSON lacks, written as relaxed MongoDB Extended JSON v2.
//!
//! A container can be written through the Mongo wire and read through REST; this is what its dates, object
//! ids and the rest look like there. They are not turned back when such JSON is sent in: to Cosmos clients
//! `{"$oid": ...}` is an object like any other.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bson::oid::ObjectId;
use bson::{DateTime, RawBinaryRef, RawBsonRef};

use super::{
    text::write_str,
    write::{write_object, write_scalar},
};
use crate::foreign::{BsonError, db_pointer_parts};

/// The first millisecond of the year 10000: later dates have no ISO form every client reads.
const YEAR_10000_MILLIS: i64 = 253_402_300_800_000;

/// Writes a value of a type that JSON lacks; `depth` is the depth of the object it becomes.
pub(super) fn write_extended(
    value: RawBsonRef<'_>,
    out: &mut Vec<u8>,
    depth: usize,
) -> Result<(), BsonError> {
    match value {
        RawBsonRef::ObjectId(id) => wrapped("$oid", &id.to_hex(), out),
        RawBsonRef::DateTime(date) => write_date(date, out),
        RawBsonRef::Binary(binary) => write_binary(binary, out),
        RawBsonRef::Decimal128(decimal) => wrapped("$numberDecimal", &decimal.to_string(), out),
        RawBsonRef::Timestamp(timestamp) => {
            let (time, increment) = (timestamp.time, timestamp.increment);
            out.extend_from_slice(format!(r#"{{"$timestamp":{{"t":{time},"i":{increment}}}}}"#).as_bytes());
        }
        RawBsonRef::RegularExpression(regex) => {
            out.extend_from_slice(br#"{"$regularExpression":{"pattern":"#);
            write_str(regex.pattern.as_str(), out);
            out.extend_from_slice(br#","options":"#);
            write_str(regex.options.as_str(), out);
            out.extend_from_slice(b"}}");
        }
        RawBsonRef::JavaScriptCode(code) => wrapped("$code", code, out),
        RawBsonRef::JavaScriptCodeWithScope(code) => {
            out.extend_from_slice(br#"{"$code":"#);
            write_str(code.code, out);
            out.extend_from_slice(br#","$scope":"#);
            write_object(code.scope, out, depth + 1)?;
            out.push(b'}');
        }
        RawBsonRef::Symbol(symbol) => wrapped("$symbol", symbol, out),
        RawBsonRef::DbPointer(pointer) => {
            let (namespace, id) = db_pointer_parts(pointer);
            out.extend_from_slice(br#"{"$dbPointer":{"$ref":"#);
            write_str(&namespace, out);
            out.extend_from_slice(br#","$id":"#);
            wrapped("$oid", &ObjectId::from_bytes(id).to_hex(), out);
            out.extend_from_slice(b"}}");
        }
        RawBsonRef::Undefined => out.extend_from_slice(br#"{"$undefined":true}"#),
        RawBsonRef::MinKey => out.extend_from_slice(br#"{"$minKey":1}"#),
        RawBsonRef::MaxKey => out.extend_from_slice(br#"{"$maxKey":1}"#),
        // Everything JSON has is written by `write.rs` before it comes here.
        _ => out.extend_from_slice(b"null"),
    }
    Ok(())
}

fn wrapped(name: &str, value: &str, out: &mut Vec<u8>) {
    out.push(b'{');
    write_str(name, out);
    out.push(b':');
    write_str(value, out);
    out.push(b'}');
}

fn write_date(date: DateTime, out: &mut Vec<u8>) {
    let millis = date.timestamp_millis();
    let iso = if (0..YEAR_10000_MILLIS).contains(&millis) { date.try_to_rfc3339_string().ok() } else { None };
    match iso {
        Some(iso) => wrapped("$date", &iso, out),
        None => out.extend_from_slice(format!(r#"{{"$date":{{"$numberLong":"{millis}"}}}}"#).as_bytes()),
    }
}

fn write_binary(binary: RawBinaryRef<'_>, out: &mut Vec<u8>) {
    let subtype = u8::from(binary.subtype);
    out.extend_from_slice(br#"{"$binary":{"base64":"#);
    write_scalar(&BASE64_STANDARD.encode(binary.bytes), out);
    out.extend_from_slice(format!(r#","subType":"{subtype:02x}"}}}}"#).as_bytes());
}
