//! JSON text straight from BSON bytes, where they hold nothing but JSON's types: so do nearly all rows that are whole
//! documents, and they are most of what a server sends.
//!
//! Holds: what is written here is what would be written without it. Whatever is out of the ordinary (a type that JSON
//! lacks, bytes that cannot be read) is left to that other way, and nothing is written.

use mayfly_value::field::{Field, Fields};

use super::{Way, write_at, write_int, write_number, write_str};
use crate::value::{Array, DEPTH_MAX, Object, Value};

/// Members that are written after those of the bytes, and instead of those that have the same name.
type Added<'a> = &'a [(&'a str, Value<'a>)];

/// Appends an object that is BSON bytes; false if it is not, or not plain.
pub(super) fn write_object(object: &Object<'_>, out: &mut Vec<u8>, depth: usize) -> bool {
    let (document, added): (_, Added<'_>) = match object {
        Object::Raw(document) => (document.as_bytes(), &[]),
        Object::Buf(document) => (document.as_bytes(), &[]),
        Object::Document(document) => (document.body.as_bytes(), document.system),
        Object::Members(_) => return false,
    };
    or_nothing(out, |out| {
        out.push(b'{');
        let mut is_first = members(document, added, out, depth)?;
        for (name, value) in added {
            separate(&mut is_first, out);
            write_str(name, out);
            out.push(b':');
            write_at(value, out, depth + 1, Way::Plain);
        }
        out.push(b'}');
        Some(())
    })
}

/// Appends an array that is BSON bytes; false if it is not, or not plain.
pub(super) fn write_array(array: &Array<'_>, out: &mut Vec<u8>, depth: usize) -> bool {
    let bytes = match array {
        Array::Raw(array) => array.as_bytes(),
        Array::Buf(array) => array.as_bytes(),
        Array::Items(_) => return false,
    };
    or_nothing(out, |out| items(bytes, out, depth))
}

/// Keeps what was written only if all of it was.
fn or_nothing(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>) -> Option<()>) -> bool {
    let start = out.len();
    let written = write(out).is_some();
    if !written {
        out.truncate(start);
    }
    written
}

/// The members of a document without its braces, and whether there was none.
fn members(document: &[u8], hidden: Added<'_>, out: &mut Vec<u8>, depth: usize) -> Option<bool> {
    let mut is_first = true;
    let mut fields = Fields::of(document)?;
    for field in &mut fields {
        if hidden.iter().any(|(name, _)| name.as_bytes() == field.name) {
            continue;
        }
        separate(&mut is_first, out);
        write_str(std::str::from_utf8(field.name).ok()?, out);
        out.push(b':');
        value(field, out, depth + 1)?;
    }
    fields.is_whole().then_some(is_first)
}

/// An array with its brackets.
fn items(array: &[u8], out: &mut Vec<u8>, depth: usize) -> Option<()> {
    let mut is_first = true;
    let mut fields = Fields::of(array)?;
    out.push(b'[');
    for field in &mut fields {
        separate(&mut is_first, out);
        value(field, out, depth + 1)?;
    }
    out.push(b']');
    fields.is_whole().then_some(())
}

fn value(field: Field<'_>, out: &mut Vec<u8>, depth: usize) -> Option<()> {
    match (field.kind, field.value) {
        (0x01, value) => write_number(f64::from_le_bytes(value.try_into().ok()?), out),
        (0x02, value) => {
            let text = value.get(size_of::<i32>()..)?.strip_suffix(&[0])?;
            write_str(std::str::from_utf8(text).ok()?, out);
        }
        (0x03 | 0x04, _) if depth >= DEPTH_MAX => return None,
        (0x03, document) => {
            out.push(b'{');
            members(document, &[], out, depth)?;
            out.push(b'}');
        }
        (0x04, array) => items(array, out, depth)?,
        (0x08, [0]) => out.extend_from_slice(b"false"),
        (0x08, [1]) => out.extend_from_slice(b"true"),
        (0x0A, _) => out.extend_from_slice(b"null"),
        (0x10, value) => write_int(i32::from_le_bytes(value.try_into().ok()?).into(), out),
        (0x12, value) => write_int(i64::from_le_bytes(value.try_into().ok()?), out),
        _ => return None,
    }
    Some(())
}

fn separate(is_first: &mut bool, out: &mut Vec<u8>) {
    if !std::mem::take(is_first) {
        out.push(b',');
    }
}

#[cfg(test)]
mod tests {
    use bson::{RawDocument, oid::ObjectId, rawdoc};

    use super::*;
    use crate::value::Document;

    #[track_caller]
    fn check(object: &Object<'_>, is_plain: bool) {
        let (mut plain, mut slow) = (b"before".to_vec(), b"before".to_vec());
        assert_eq!(write_object(object, &mut plain, 0), is_plain);
        write_at(&Value::Object(object.clone()), &mut slow, 0, Way::Slow);
        let text = |bytes| String::from_utf8(bytes).unwrap();
        assert_eq!(text(plain), if is_plain { text(slow) } else { "before".to_owned() });
    }

    #[test]
    fn a_document_is_written_as_value_by_value() {
        let document = rawdoc! {
            "id": "a\"b\\\n\u{1}é", "int": 7_i32, "long": i64::MIN, "double": 1.0, "small": 1.5e-7, "nan": f64::NAN,
            "yes": true, "no": false, "null": bson::RawBson::Null, "": {}, "list": [1, "two", [], [{ "x": [3.5] }]],
        };
        check(&Object::Raw(&document), true);
    }

    #[test]
    fn what_the_server_adds_hides_what_has_its_name() {
        let system = [("_ts", Value::Int(9)), ("_rid", Value::string("r"))];
        let body = rawdoc! { "_ts": 1, "a": { "_ts": 2 } };
        check(&Object::Document(Document { body: &body, system: &system }), true);
        let mut out = Vec::new();
        write_object(&Object::Document(Document { body: &body, system: &system }), &mut out, 0);
        assert_eq!(out, br#"{"a":{"_ts":2},"_ts":9,"_rid":"r"}"#);
        check(&Object::Document(Document { body: &rawdoc! {}, system: &system }), true);
    }

    #[test]
    fn other_types_leave_nothing_behind() {
        check(&Object::Raw(&rawdoc! { "a": 1, "deep": [{ "id": ObjectId::from_bytes([7; 12]) }] }), false);
    }

    #[test]
    fn damaged_bytes_leave_json_or_nothing() {
        let whole = rawdoc! { "a": "text", "b": { "c": [true, 1, 2.5] }, "d": 5_i64 };
        for at in 4..whole.as_bytes().len() - 1 {
            for byte in [0, 1, 0x02, 0x08, 0x7F, 0xC0, 0xFF] {
                let mut bytes = whole.as_bytes().to_vec();
                bytes[at] = byte;
                let Ok(document) = RawDocument::from_bytes(&bytes) else { continue };
                let mut out = Vec::new();
                match write_object(&Object::Raw(document), &mut out, 0) {
                    true => assert!(Value::parse_json(&out).is_some(), "{}", String::from_utf8_lossy(&out)),
                    false => assert!(out.is_empty()),
                }
            }
        }
    }
}
