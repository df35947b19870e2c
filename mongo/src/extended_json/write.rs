//! BSON to text.

use std::fmt::Write as _;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bson::{Bson, Document};

/// Writes a document.
pub fn write(document: &Document) -> String {
    let mut out = String::new();
    push_document(&mut out, document);
    out
}

fn push_document(out: &mut String, document: &Document) {
    out.push('{');
    for (place, (name, value)) in document.iter().enumerate() {
        if place > 0 {
            out.push(',');
        }
        push_text(out, name);
        out.push(':');
        push(out, value);
    }
    out.push('}');
}

fn push_text(out: &mut String, text: &str) {
    out.push_str(&serde_json::Value::from(text).to_string());
}

/// An object with one field whose value is a text.
fn push_named(out: &mut String, name: &str, text: &str) {
    let _ = write!(out, "{{\"{name}\":");
    push_text(out, text);
    out.push('}');
}

fn push(out: &mut String, value: &Bson) {
    match value {
        Bson::Null => out.push_str("null"),
        Bson::Boolean(value) => out.push_str(if *value { "true" } else { "false" }),
        Bson::String(text) => push_text(out, text),
        Bson::Document(document) => push_document(out, document),
        Bson::Array(items) => {
            out.push('[');
            for (place, item) in items.iter().enumerate() {
                if place > 0 {
                    out.push(',');
                }
                push(out, item);
            }
            out.push(']');
        }
        Bson::Int32(number) => {
            let _ = write!(out, "{number}");
        }
        Bson::Int64(number) => push_named(out, "$numberLong", &number.to_string()),
        Bson::Double(number) => push_double(out, *number),
        Bson::Decimal128(number) => push_named(out, "$numberDecimal", &number.to_string()),
        Bson::ObjectId(id) => push_named(out, "$oid", &id.to_hex()),
        Bson::DateTime(time) => match time.try_to_rfc3339_string() {
            Ok(text) if (0..=LAST_ISO_MILLIS).contains(&time.timestamp_millis()) => {
                push_named(out, "$date", &text)
            }
            _ => {
                let _ = write!(out, "{{\"$date\":{{\"$numberLong\":\"{}\"}}}}", time.timestamp_millis());
            }
        },
        Bson::Timestamp(time) => {
            let _ = write!(out, "{{\"$timestamp\":{{\"t\":{},\"i\":{}}}}}", time.time, time.increment);
        }
        Bson::Binary(binary) => {
            let (text, subtype) = (STANDARD.encode(&binary.bytes), u8::from(binary.subtype));
            let _ = write!(out, "{{\"$binary\":{{\"base64\":\"{text}\",\"subType\":\"{subtype:02x}\"}}}}");
        }
        Bson::RegularExpression(regex) => {
            out.push_str("{\"$regularExpression\":{\"pattern\":");
            push_text(out, regex.pattern.as_str());
            out.push_str(",\"options\":");
            push_text(out, regex.options.as_str());
            out.push_str("}}");
        }
        Bson::JavaScriptCode(code) => push_named(out, "$code", code),
        Bson::JavaScriptCodeWithScope(code) => {
            out.push_str("{\"$code\":");
            push_text(out, &code.code);
            out.push_str(",\"$scope\":");
            push_document(out, &code.scope);
            out.push('}');
        }
        Bson::Symbol(text) => push_named(out, "$symbol", text),
        Bson::Undefined => out.push_str("{\"$undefined\":true}"),
        Bson::MinKey => out.push_str("{\"$minKey\":1}"),
        Bson::MaxKey => out.push_str("{\"$maxKey\":1}"),
        // Deprecated before there was Extended JSON; shown, and refused when it comes back.
        Bson::DbPointer(_) => out.push_str("{\"$dbPointer\":{}}"),
    }
}

/// The end of the year 9999: later dates have no text.
const LAST_ISO_MILLIS: i64 = 253_402_300_799_999;

/// A whole double would come back as an int.
fn push_double(out: &mut String, number: f64) {
    match number {
        number if number.is_nan() => push_named(out, "$numberDouble", "NaN"),
        f64::INFINITY => push_named(out, "$numberDouble", "Infinity"),
        f64::NEG_INFINITY => push_named(out, "$numberDouble", "-Infinity"),
        number if number.fract() == 0.0 => push_named(out, "$numberDouble", &format!("{number:?}")),
        number => {
            let _ = write!(out, "{number:?}");
        }
    }
}
