//! JSON text out of a value.
//!
//! Numbers print as JavaScript prints them (`4/2` is `2`); NaN and the infinities, which JSON lacks, print as
//! `null`, as a read of the stored document does.

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
        Value::Int(value) => out.extend_from_slice(value.to_string().as_bytes()),
        Value::Double(value) if !value.is_finite() => out.extend_from_slice(b"null"),
        Value::Double(value) => {
            let mut text = String::new();
            write_double(*value, &mut text);
            out.extend_from_slice(text.as_bytes());
        }
        Value::String(text) => write_string(text, out),
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
            for (index, (name, value)) in object.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_string(&name, out);
                out.push(b':');
                write_at(&value, out, depth + 1);
            }
            out.push(b'}');
        }
    }
}

/// Appends text in double quotes, escaped as JSON wants it.
pub fn write_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let mut plain_from = 0;
    for (at, byte) in text.bytes().enumerate() {
        let escape: &[u8] = match byte {
            b'"' => b"\\\"",
            b'\\' => b"\\\\",
            b'\n' => b"\\n",
            b'\r' => b"\\r",
            b'\t' => b"\\t",
            0x08 => b"\\b",
            0x0C => b"\\f",
            0x00..=0x1F => b"",
            _ => continue,
        };
        out.extend_from_slice(text.as_bytes().get(plain_from..at).unwrap_or_default());
        if escape.is_empty() {
            out.extend_from_slice(format!("\\u{byte:04x}").as_bytes());
        } else {
            out.extend_from_slice(escape);
        }
        plain_from = at + 1;
    }
    out.extend_from_slice(text.as_bytes().get(plain_from..).unwrap_or_default());
    out.push(b'"');
}
