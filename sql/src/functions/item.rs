//! The item itself.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{Args, Family, Function};
use crate::context::Context;
use crate::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[Function::new(
    "DOCUMENTID",
    Family::Item,
    Args::exactly(1),
    "DOCUMENTID(alias)",
    "The number of the item that is part of its _rid.",
    document_id,
)];

/// A resource id is base64, with `-` where base64 has `/`; an item's number is its second half.
fn document_id<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    let [item] = args else { return Value::Undefined };
    let rid = item.property("_rid");
    let bytes = rid.as_str().and_then(|rid| STANDARD.decode(rid.replace('-', "/")).ok());
    let number = bytes.and_then(|bytes| bytes.get(8..16)?.try_into().ok()).map(u64::from_le_bytes);
    match number {
        Some(number) => i64::try_from(number).map_or(Value::Double(number as f64), Value::Int),
        None => Value::Undefined,
    }
}

#[cfg(test)]
pub(super) const CASES: &[super::testing::Case] = &[
    ("DOCUMENTID", r#"{"_rid":"36ZyAPW+uN8NAAAAAAAAAA=="}"#, "13"),
    ("DOCUMENTID", r#"{"_rid":"36ZyAPW-uN8BAQAAAAAAAA=="}"#, "257"),
    ("DOCUMENTID", r#"{"_rid":"36ZyAA=="}"#, "undefined"),
    ("DOCUMENTID", r#"{"_rid":"?"}"#, "undefined"),
    ("DOCUMENTID", r#"{"_rid":1}"#, "undefined"),
    ("DOCUMENTID", "{}", "undefined"),
    ("DOCUMENTID", r#""36ZyAPW+uN8NAAAAAAAAAA==""#, "undefined"),
    ("DOCUMENTID", "undefined", "undefined"),
];
