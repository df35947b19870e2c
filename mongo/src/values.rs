//! BSON values: borrowed while they are read, owned once they are made.
//!
//! Filters look at documents where they lie; expressions compute owned values whose objects and arrays are
//! bytes too, so that a field passes through a pipeline as a copy of its bytes and never as a tree.

use bson::raw::{BindRawBsonRef, CStr};
use bson::{RawArray, RawArrayBuf, RawBson, RawBsonRef, RawDocument, RawDocumentBuf};

/// A value in a document.
pub(crate) type Ref<'a> = RawBsonRef<'a>;
/// A value of its own.
pub(crate) type Value = RawBson;

/// Where a document carries its scores through a pipeline: its first field. Clients have no name like it.
pub(crate) const META: &str = "$meta:";

/// A document that carries scores.
pub(crate) fn carrying(document: &RawDocument, metadata: Ref<'_>) -> RawDocumentBuf {
    let mut carrying = RawDocumentBuf::new();
    put(&mut carrying, META, metadata);
    fields(document)
        .filter(|(name, _)| *name != META)
        .for_each(|(name, value)| put(&mut carrying, name, value));
    carrying
}

/// Whether a document carries scores.
pub(crate) fn carries(document: &RawDocument) -> bool {
    fields(document).next().is_some_and(|(name, _)| name == META)
}

/// The items of an array, as far as they can be read.
pub(crate) fn items(array: &RawArray) -> impl Iterator<Item = Ref<'_>> {
    array.into_iter().map_while(std::result::Result::ok)
}

/// The fields of an object, as far as they can be read.
pub(crate) fn fields(object: &RawDocument) -> impl Iterator<Item = (&str, Ref<'_>)> {
    object.iter().map_while(std::result::Result::ok).map(|(name, value)| (name.as_str(), value))
}

/// The field of that name.
pub(crate) fn field<'a>(object: &'a RawDocument, name: &str) -> Option<Ref<'a>> {
    mayfly_value::field::find(object, name)
}

/// An array looked at as an object whose names are the positions: BSON stores it so.
pub(crate) fn array_as_object(array: &RawArray) -> Option<&RawDocument> {
    RawDocument::from_bytes(array.as_bytes()).ok()
}

/// Appends a field. A name cannot hold U+0000 in BSON: what follows one is dropped.
pub(crate) fn put(object: &mut RawDocumentBuf, name: &str, value: impl BindRawBsonRef) {
    let name = name.split('\0').next().unwrap_or_default();
    if let Ok(name) = <&CStr>::try_from(name) {
        object.append(name, value);
    }
}

/// An array of these values.
pub(crate) fn array(values: impl IntoIterator<Item = Value>) -> Value {
    Value::Array(RawArrayBuf::from_iter(values))
}

/// The owned items of an array.
pub(crate) fn owned_items(array: &RawArray) -> Vec<Value> {
    items(array).map(Value::from).collect()
}

/// Types by the names that `$type` gives and takes, with their numbers.
pub(crate) const TYPES: &[(&str, i32)] = &[
    ("double", 1),
    ("string", 2),
    ("object", 3),
    ("array", 4),
    ("binData", 5),
    ("undefined", 6),
    ("objectId", 7),
    ("bool", 8),
    ("date", 9),
    ("null", 10),
    ("regex", 11),
    ("dbPointer", 12),
    ("javascript", 13),
    ("symbol", 14),
    ("javascriptWithScope", 15),
    ("int", 16),
    ("timestamp", 17),
    ("long", 18),
    ("decimal", 19),
    ("minKey", -1),
    ("maxKey", 127),
];

/// The number of a value's type.
pub(crate) fn type_code(value: Ref<'_>) -> i32 {
    match value {
        Ref::Double(_) => 1,
        Ref::String(_) => 2,
        Ref::Document(_) => 3,
        Ref::Array(_) => 4,
        Ref::Binary(_) => 5,
        Ref::Undefined => 6,
        Ref::ObjectId(_) => 7,
        Ref::Boolean(_) => 8,
        Ref::DateTime(_) => 9,
        Ref::Null => 10,
        Ref::RegularExpression(_) => 11,
        Ref::DbPointer(_) => 12,
        Ref::JavaScriptCode(_) => 13,
        Ref::Symbol(_) => 14,
        Ref::JavaScriptCodeWithScope(_) => 15,
        Ref::Int32(_) => 16,
        Ref::Timestamp(_) => 17,
        Ref::Int64(_) => 18,
        Ref::Decimal128(_) => 19,
        Ref::MinKey => -1,
        Ref::MaxKey => 127,
    }
}

/// The name of a value's type.
pub(crate) fn type_name(value: Ref<'_>) -> &'static str {
    let code = type_code(value);
    TYPES.iter().find(|(_, found)| *found == code).map_or("missing", |(name, _)| name)
}

/// The name of the type of something that may be missing.
pub(crate) fn type_name_opt(value: Option<Ref<'_>>) -> &'static str {
    value.map_or("missing", type_name)
}

/// Null, undefined or missing: what most expressions answer with null.
pub(crate) fn is_nullish(value: Option<Ref<'_>>) -> bool {
    matches!(value, None | Some(Ref::Null | Ref::Undefined))
}

/// Whether the value is of one of the four number types.
pub(crate) fn is_number(value: Ref<'_>) -> bool {
    matches!(value, Ref::Int32(_) | Ref::Int64(_) | Ref::Double(_) | Ref::Decimal128(_))
}

/// What counts as true: everything but false, zero, null, undefined and missing.
pub(crate) fn is_truthy(value: Option<Ref<'_>>) -> bool {
    match value {
        None | Some(Ref::Null | Ref::Undefined | Ref::Boolean(false) | Ref::Int32(0) | Ref::Int64(0)) => {
            false
        }
        Some(Ref::Double(value)) => value != 0.0,
        Some(Ref::Decimal128(value)) => !crate::decimal::Decimal::from_bson(value).is_zero(),
        Some(_) => true,
    }
}

/// Reads a whole number of any number type; none if it has a fraction or does not fit.
pub(crate) fn as_integer(value: Ref<'_>) -> Option<i64> {
    match value {
        Ref::Int32(value) => Some(value.into()),
        Ref::Int64(value) => Some(value),
        Ref::Double(value) if value.fract() == 0.0 && value.abs() < 9.2e18 => Some(value as i64),
        Ref::Decimal128(value) => crate::decimal::Decimal::from_bson(value).to_i64_exact(),
        _ => None,
    }
}

/// Reads a number of any type as the nearest double.
pub(crate) fn as_double(value: Ref<'_>) -> Option<f64> {
    mayfly_value::number::as_double(value)
}

/// An integer in the smallest type that holds it.
pub(crate) fn integer(value: i64) -> Value {
    i32::try_from(value).map_or(Value::Int64(value), Value::Int32)
}

/// A value as a shell prints it, for messages.
pub(crate) fn show(value: Ref<'_>) -> String {
    match value {
        Ref::String(text) | Ref::Symbol(text) => format!("\"{text}\""),
        Ref::Document(object) => {
            let fields: Vec<_> =
                fields(object).map(|(name, value)| format!("{name}: {}", show(value))).collect();
            if fields.is_empty() { "{}".to_string() } else { format!("{{ {} }}", fields.join(", ")) }
        }
        Ref::Array(array) => {
            let items: Vec<_> = items(array).map(show).collect();
            if items.is_empty() { "[]".to_string() } else { format!("[ {} ]", items.join(", ")) }
        }
        Ref::Int32(value) => value.to_string(),
        Ref::Int64(value) => value.to_string(),
        Ref::Double(value) => format!("{value:?}"),
        Ref::Decimal128(value) => value.to_string(),
        Ref::Boolean(value) => value.to_string(),
        Ref::Null => "null".to_string(),
        Ref::Undefined => "undefined".to_string(),
        Ref::ObjectId(id) => format!("ObjectId('{id}')"),
        Ref::DateTime(date) => format!("new Date({})", date.timestamp_millis()),
        Ref::RegularExpression(regex) => format!("/{}/{}", regex.pattern.as_str(), regex.options.as_str()),
        Ref::MinKey => "MinKey".to_string(),
        Ref::MaxKey => "MaxKey".to_string(),
        other => type_name(other).to_string(),
    }
}
