//! Between values and BSON.
//!
//! Types that JSON lacks (object ids, dates, decimals ...) come from documents written over the Mongo wire.
//! A query sees them as the objects that a read through REST shows, such as `{"$oid": "..."}`.

use std::borrow::Cow;
use std::sync::Arc;

use bson::raw::CStr;
use bson::{RawArrayBuf, RawBson, RawBsonRef, RawDocumentBuf};
use mayfly_value::json::{JsonLimits, parse_value, write_value};

use super::{Array, DEPTH_MAX, Object, Value};

impl<'a> Value<'a> {
    /// The value in BSON bytes, without copying it.
    pub fn from_raw(raw: RawBsonRef<'a>) -> Value<'a> {
        match raw {
            RawBsonRef::Null => Value::Null,
            RawBsonRef::Boolean(value) => Value::Bool(value),
            RawBsonRef::Int32(value) => Value::Int(value.into()),
            RawBsonRef::Int64(value) => Value::Int(value),
            RawBsonRef::Double(value) => Value::Double(value),
            RawBsonRef::String(value) => Value::String(Cow::Borrowed(value)),
            RawBsonRef::Array(array) => Value::Array(Array::Raw(array)),
            RawBsonRef::Document(document) => Value::Object(Object::Raw(document)),
            other => as_shown(other),
        }
    }

    /// A value of its own from an owned BSON value, such as a query parameter.
    pub fn from_bson(raw: RawBson) -> Value<'static> {
        match raw {
            RawBson::Array(array) => Value::Array(Array::Buf(Arc::new(array))),
            RawBson::Document(document) => Value::Object(Object::Buf(Arc::new(document))),
            RawBson::String(text) => Value::String(Cow::Owned(text)),
            other => Value::from_raw(other.as_raw_bson_ref()).into_owned(),
        }
    }

    /// Reads JSON text of any kind. None if it is not JSON.
    pub fn parse_json(text: &[u8]) -> Option<Value<'static>> {
        parse_value(text, JsonLimits::default()).ok().map(Value::from_bson)
    }

    /// The value as BSON; None for undefined. Members whose name holds U+0000 are left out: BSON has no place
    /// for such a name, so no stored document has one either.
    pub fn to_bson(&self) -> Option<RawBson> {
        to_bson_at(self, 0)
    }
}

fn to_bson_at(value: &Value<'_>, depth: usize) -> Option<RawBson> {
    Some(match value {
        Value::Undefined => return None,
        Value::Null => RawBson::Null,
        Value::Bool(value) => RawBson::Boolean(*value),
        Value::Int(value) => RawBson::Int64(*value),
        Value::Double(value) => RawBson::Double(*value),
        Value::String(text) => RawBson::String(text.to_string()),
        _ if depth >= DEPTH_MAX => RawBson::Null,
        Value::Array(array) => {
            let mut items = RawArrayBuf::new();
            for item in array.iter().filter_map(|item| to_bson_at(&item, depth + 1)) {
                items.push(item);
            }
            RawBson::Array(items)
        }
        Value::Object(object) => {
            let mut members = RawDocumentBuf::new();
            for (name, value) in object.iter() {
                let name = <&CStr>::try_from(name.as_ref());
                if let (Ok(name), Some(value)) = (name, to_bson_at(&value, depth + 1)) {
                    members.append(name, value);
                }
            }
            RawBson::Document(members)
        }
    })
}

/// The long way round through JSON: rare, and it cannot disagree with what a read shows.
fn as_shown(raw: RawBsonRef<'_>) -> Value<'static> {
    let mut text = Vec::new();
    match write_value(raw, &mut text) {
        Ok(()) => Value::parse_json(&text).unwrap_or(Value::Null),
        Err(_) => Value::Null,
    }
}
