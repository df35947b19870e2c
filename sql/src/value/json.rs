//! JSON text out of a value.
//!
//! Numbers print as JavaScript prints them (`4/2` is `2`); NaN and the infinities, which JSON lacks, print as
//! `null`, as a read of the stored document does.

mod plain;

use mayfly_value::json::write_int;
pub use mayfly_value::json::write_str;

use super::number::write_double;
use super::{Array, DEPTH_MAX, Object, Value};

impl Value<'_> {
    /// Appends the value as JSON; nothing if it is undefined.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        write_at(self, out, 0, Way::Plain);
    }

    /// The value as JSON text; empty if it is undefined.
    pub fn to_json(&self) -> String {
        let mut out = Vec::new();
        self.write_json(&mut out);
        String::from_utf8_lossy(&out).into_owned()
    }
}

/// How bytes of a document are written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// As they are, if they can be.
    Plain,
    /// Value by value: they cannot.
    Slow,
}

fn write_at(value: &Value<'_>, out: &mut Vec<u8>, depth: usize, way: Way) {
    match value {
        Value::Undefined => {}
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Int(value) => write_int(*value, out),
        Value::Double(value) => write_number(*value, out),
        Value::String(text) => write_str(text, out),
        Value::Array(_) | Value::Object(_) if depth >= DEPTH_MAX => out.extend_from_slice(b"null"),
        Value::Array(array) if way == Way::Plain && plain::write_array(array, out, depth) => {}
        Value::Array(array) => {
            let way = if matches!(array, Array::Items(_)) { way } else { Way::Slow };
            out.push(b'[');
            for (index, item) in array.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_at(&item, out, depth + 1, way);
            }
            out.push(b']');
        }
        Value::Object(object) if way == Way::Plain && plain::write_object(object, out, depth) => {}
        Value::Object(object) => {
            let way = if matches!(object, Object::Members(_)) { way } else { Way::Slow };
            out.push(b'{');
            let mut is_first = true;
            object.for_each(|name, value| {
                if !std::mem::take(&mut is_first) {
                    out.push(b',');
                }
                write_str(name, out);
                out.push(b':');
                write_at(value, out, depth + 1, way);
            });
            out.push(b'}');
        }
    }
}

/// Appends a double.
fn write_number(value: f64, out: &mut Vec<u8>) {
    if !value.is_finite() {
        return out.extend_from_slice(b"null");
    }
    let mut text = String::new();
    write_double(value, &mut text);
    out.extend_from_slice(text.as_bytes());
}
