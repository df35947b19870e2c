//! Rows that are BSON bytes are written as they are, where they hold nothing but JSON's types
//! ([`mayfly_value::json::plain`]): so do nearly all rows that are whole documents, and they are most of what a server sends.
//!
//! Holds: what is written here is what would be written without it. Whatever is out of the ordinary is left to that other
//! way, and nothing is written.

use mayfly_value::json::plain::{Instead, write_items, write_members};

use super::{Way, write_at, write_number, write_str};
use crate::value::{Array, Object, Value};

/// Members that are written instead of those of the bytes that have the same names: where the first of these is, or after all.
type Added<'a> = &'a [(&'a str, Value<'a>)];

/// Appends an object that is BSON bytes; false if it is not, or not plain.
pub(super) fn write_object(object: &Object<'_>, out: &mut Vec<u8>, depth: usize) -> bool {
    let (document, added): (_, Added<'_>) = match object {
        Object::Raw(document) => (document.as_bytes(), &[]),
        Object::Buf(document) => (document.as_bytes(), &[]),
        Object::Document(document) => (document.body.as_bytes(), document.system),
        Object::Members(_) => return false,
    };
    let is_hidden = |name: &[u8]| added.iter().any(|(hidden, _)| hidden.as_bytes() == name);
    or_nothing(out, |out| {
        out.push(b'{');
        let mut push = |out: &mut Vec<u8>| {
            for (place, (name, value)) in added.iter().enumerate() {
                if place > 0 {
                    out.push(b',');
                }
                write_str(name, out);
                out.push(b':');
                write_at(value, out, depth + 1, Way::Plain);
            }
        };
        let mut instead: Instead<'_> = Some(&mut push);
        let is_empty = write_members(document, is_hidden, &mut instead, write_number, out, depth + 1)?;
        if let Some(push) = instead.filter(|_| !added.is_empty()) {
            if !is_empty {
                out.push(b',');
            }
            push(out);
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
    or_nothing(out, |out| write_items(bytes, write_number, out, depth + 1))
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
        assert_eq!(out, br#"{"_ts":9,"_rid":"r","a":{"_ts":2}}"#);
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
