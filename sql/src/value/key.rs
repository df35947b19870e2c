//! Keys: bytes that are equal exactly for equal values.
//!
//! DISTINCT and GROUP BY put these into a hash map instead of comparing values pairwise. A key is not sorted
//! and not stored, so its layout may change freely.

use super::number::exact_i64;
use super::{DEPTH_MAX, Value};

/// Appends the key of a value. Keys of several values may follow each other: none is a prefix of another.
pub fn write_key(value: &Value<'_>, out: &mut Vec<u8>) {
    write_at(value, out, 0);
}

/// The key of one value.
pub fn key_of(value: &Value<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    write_key(value, &mut out);
    out
}

const INT: u8 = b'i';
const DOUBLE: u8 = b'd';

fn write_at(value: &Value<'_>, out: &mut Vec<u8>, depth: usize) {
    match value {
        Value::Undefined => out.push(b'u'),
        Value::Null => out.push(b'n'),
        Value::Bool(value) => out.push(if *value { b't' } else { b'f' }),
        Value::Int(value) => write_number(INT, value.to_le_bytes(), out),
        // A double that is an integer has the integer's key: `1 = 1.0`.
        Value::Double(value) => match exact_i64(*value) {
            Some(integer) => write_number(INT, integer.to_le_bytes(), out),
            None if value.is_nan() => write_number(DOUBLE, f64::NAN.to_le_bytes(), out),
            None => write_number(DOUBLE, value.to_le_bytes(), out),
        },
        Value::String(text) => {
            out.push(b's');
            write_text(text, out);
        }
        Value::Array(array) => {
            out.push(b'[');
            if depth < DEPTH_MAX {
                array.iter().for_each(|item| write_at(&item, out, depth + 1));
            }
            out.push(b']');
        }
        Value::Object(object) => {
            out.push(b'{');
            if depth < DEPTH_MAX {
                let mut members: Vec<_> = object.iter().collect();
                members.sort_by(|(a, _), (b, _)| a.cmp(b));
                for (name, value) in members {
                    out.push(b'.');
                    write_text(&name, out);
                    write_at(&value, out, depth + 1);
                }
            }
            out.push(b'}');
        }
    }
}

fn write_number(tag: u8, bytes: [u8; 8], out: &mut Vec<u8>) {
    out.push(tag);
    out.extend_from_slice(&bytes);
}

/// The length comes first, so that text cannot run into what follows.
fn write_text(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(&(text.len() as u64).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}
