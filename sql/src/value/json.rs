//! JSON text out of a value.
//!
//! Numbers print as JavaScript prints them (`4/2` is `2`); NaN and the infinities, which JSON lacks, print as
//! `null`, as a read of the stored document does.

mod plain;

pub use mayfly_value::json::write_str;
use mayfly_value::json::{write_double as write_plain_double, write_int};

use super::number::{exact_i64, write_double};
use super::{Array, DEPTH_MAX, Object, Value};

/// Whole numbers below have no more digits than a double keeps apart.
const WHOLE_MAX: f64 = 1e15;

/// Fractions that nobody writes with an exponent.
const ORDINARY: std::ops::Range<f64> = 1e-3..1e15;

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

/// Appends a double as JavaScript prints it.
pub fn write_number(value: f64, out: &mut Vec<u8>) {
    if !value.is_finite() {
        return out.extend_from_slice(b"null");
    }
    // What is whole, or of ordinary size, is written alike by everybody, and faster by others than by `write_double`.
    match exact_i64(value) {
        Some(whole) if value.abs() < WHOLE_MAX => write_int(whole, out),
        None if ORDINARY.contains(&value.abs()) => write_plain_double(value, out),
        _ => {
            let mut text = String::new();
            write_double(value, &mut text);
            out.extend_from_slice(text.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(double: f64) {
        let (mut written, mut text) = (Vec::new(), String::new());
        write_number(double, &mut written);
        write_double(double, &mut text);
        assert_eq!(String::from_utf8(written).unwrap(), text);
    }

    #[test]
    fn every_way_to_write_a_double_gives_the_same_text() {
        for double in
            [0.0, 1.0, 0.1, 0.001, 1e-3 - 1e-18, 1e14 + 0.5, 1e15, 1e15 - 0.5, 1e21, 4.35, 2e-7, 1.0 / 3.0]
        {
            check(double);
            check(-double);
        }
    }

    proptest! {
        #[test]
        fn any_double_is_written_alike(bits: u64, digits in -1_000_000_000_000_i64..1_000_000_000_000, places in 0_i32..6) {
            let double = f64::from_bits(bits);
            if double.is_finite() {
                check(double);
            }
            check(digits as f64 / 10_f64.powi(places));
        }
    }
}
