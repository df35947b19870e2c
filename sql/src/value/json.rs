//! JSON text out of a value.
//!
//! Numbers print as JavaScript prints them (`4/2` is `2`); NaN and the infinities, which JSON lacks, print as
//! `null`, as a read of the stored document does.

use std::io::Write as _;

pub use mayfly_value::json::write_str;

use super::number::write_double;
use super::{DEPTH_MAX, Value};

impl Value<'_> {
    /// Appends the value as JSON; nothing if it is undefined.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        write_at(self, out, 0);
    }

    /// The value as JSON text; empty if it is undefined.
    pub fn to_json(&self) -> String {
        let mut out = Vec::new();
        self.write_json(&mut out);
        String::from_utf8_lossy(&out).into_owned()
    }
}

fn write_at(value: &Value<'_>, out: &mut Vec<u8>, depth: usize) {
    match value {
        Value::Undefined => {}
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Int(value) => write_int(*value, out),
        Value::Double(value) if !value.is_finite() => out.extend_from_slice(b"null"),
        Value::Double(value) => {
            let mut text = String::new();
            write_double(*value, &mut text);
            out.extend_from_slice(text.as_bytes());
        }
        Value::String(text) => write_str(text, out),
        Value::Array(_) | Value::Object(_) if depth >= DEPTH_MAX => out.extend_from_slice(b"null"),
        Value::Array(array) => {
            out.push(b'[');
            for (index, item) in array.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_at(&item, out, depth + 1);
            }
            out.push(b']');
        }
        Value::Object(object) => {
            out.push(b'{');
            let mut is_first = true;
            object.for_each(|name, value| {
                if !std::mem::take(&mut is_first) {
                    out.push(b',');
                }
                write_str(name, out);
                out.push(b':');
                write_at(value, out, depth + 1);
            });
            out.push(b'}');
        }
    }
}

/// Appends an integer.
fn write_int(value: i64, out: &mut Vec<u8>) {
    let written = write!(out, "{value}");
    debug_assert!(written.is_ok(), "a Vec takes all that is written to it");
}
