//! Writing JSON: straight from BSON bytes into the response buffer.
//!
//! Doubles print in the shortest form that reads back as the same double, with a point or an exponent, so
//! that they stay doubles (`1.0`); NaN and the infinities print as `null`. Types JSON lacks are written by
//! `extended.rs`. On an error the buffer holds a piece of JSON that the caller throws away.

use bson::{RawArray, RawBsonRef, RawDocument};
use serde::Serialize;

use super::{
    extended::write_extended,
    plain::{self, Instead},
    text::write_str,
};
use crate::foreign::BsonError;

/// Appends the document as a JSON object.
pub fn write_document(document: &RawDocument, out: &mut Vec<u8>) -> Result<(), BsonError> {
    write_object(document, out, 1)
}

/// Appends any value as JSON.
pub fn write_value(value: RawBsonRef<'_>, out: &mut Vec<u8>) -> Result<(), BsonError> {
    write_at(value, out, 1)
}

/// Appends one JSON object field by field: a document's own fields first, then what the server adds.
///
/// ```
/// use mayfly_value::json::{JsonLimits, ObjectWriter, parse_document};
/// let document = parse_document(br#"{"id":"1"}"#, JsonLimits::default()).unwrap();
/// let mut out = Vec::new();
/// let mut writer = ObjectWriter::begin(&mut out);
/// writer.fields_of(&document).unwrap();
/// writer.field_int("_ts", 7);
/// writer.end();
/// assert_eq!(out, br#"{"id":"1","_ts":7}"#);
/// ```
pub struct ObjectWriter<'a> {
    out: &'a mut Vec<u8>,
    is_empty: bool,
}

impl<'a> ObjectWriter<'a> {
    /// Opens the object.
    pub fn begin(out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        ObjectWriter { out, is_empty: true }
    }

    /// Writes all fields of a document.
    pub fn fields_of(&mut self, document: &RawDocument) -> Result<&mut Self, BsonError> {
        self.fields_of_except(document, |_| false, &mut None)
    }

    /// Writes the fields of a document but for those that are hidden. Where the first of these stands, `instead` writes what the
    /// caller has for them, with the commas between; it is none then.
    pub fn fields_of_except(
        &mut self,
        document: &RawDocument,
        is_hidden: impl Fn(&[u8]) -> bool,
        instead: &mut Instead<'_>,
    ) -> Result<&mut Self, BsonError> {
        let start = self.out.len();
        if !self.is_empty {
            self.out.push(b',');
        }
        let has_place = instead.is_some();
        let mut placed = false;
        let mut place = |out: &mut Vec<u8>| {
            if let Some(write) = instead.as_mut() {
                write(out);
            }
            placed = true;
        };
        let mut once: Instead<'_> = if has_place { Some(&mut place) } else { None };
        match plain::write_members(document.as_bytes(), &is_hidden, &mut once, write_double, self.out, 1) {
            Some(false) => {
                self.is_empty = false;
                if placed {
                    *instead = None;
                }
                return Ok(self);
            }
            // Nothing to write, or not plain.
            _ => self.out.truncate(start),
        }
        for element in document.iter_elements() {
            let element = element?;
            let name = element.key().as_str();
            if !is_hidden(name.as_bytes()) {
                self.name(name);
                write_at(element.value()?, self.out, 2)?;
            } else if let Some(write) = instead.take() {
                self.fields_as(write);
            }
        }
        Ok(self)
    }

    /// Writes one integer field.
    pub fn field_int(&mut self, name: &str, value: i64) -> &mut Self {
        self.name(name);
        write_scalar(&value, self.out);
        self
    }

    /// Writes fields that the caller has as JSON, with the commas between them.
    pub fn fields_as(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> &mut Self {
        if !self.is_empty {
            self.out.push(b',');
        }
        self.is_empty = false;
        write(self.out);
        self
    }

    /// Writes one field of any type.
    pub fn field_value(&mut self, name: &str, value: RawBsonRef<'_>) -> Result<&mut Self, BsonError> {
        self.name(name);
        write_at(value, self.out, 2)?;
        Ok(self)
    }

    /// Closes the object.
    pub fn end(self) {
        self.out.push(b'}');
    }

    fn name(&mut self, name: &str) {
        if !self.is_empty {
            self.out.push(b',');
        }
        self.is_empty = false;
        write_str(name, self.out);
        self.out.push(b':');
    }
}

pub(super) fn write_object(document: &RawDocument, out: &mut Vec<u8>, depth: usize) -> Result<(), BsonError> {
    BsonError::check_depth(depth)?;
    out.push(b'{');
    let mut is_first = true;
    for element in document.iter_elements() {
        let element = element?;
        plain::separate(&mut is_first, out);
        write_str(element.key().as_str(), out);
        out.push(b':');
        write_at(element.value()?, out, depth + 1)?;
    }
    out.push(b'}');
    Ok(())
}

fn write_array(array: &RawArray, out: &mut Vec<u8>, depth: usize) -> Result<(), BsonError> {
    BsonError::check_depth(depth)?;
    out.push(b'[');
    for (index, item) in array.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_at(item?, out, depth + 1)?;
    }
    out.push(b']');
    Ok(())
}

/// Writes a value; `depth` is the depth it has if it turns out to be a container.
fn write_at(value: RawBsonRef<'_>, out: &mut Vec<u8>, depth: usize) -> Result<(), BsonError> {
    match value {
        RawBsonRef::Null => out.extend_from_slice(b"null"),
        RawBsonRef::Boolean(value) => write_scalar(&value, out),
        RawBsonRef::Int32(value) => write_scalar(&value, out),
        RawBsonRef::Int64(value) => write_scalar(&value, out),
        RawBsonRef::Double(value) => write_scalar(&value, out),
        RawBsonRef::String(value) => write_str(value, out),
        RawBsonRef::Document(document) => write_object(document, out, depth)?,
        RawBsonRef::Array(array) => write_array(array, out, depth)?,
        other => write_extended(other, out, depth)?,
    }
    Ok(())
}

/// Appends a double: `null` if it is not finite.
pub fn write_double(value: f64, out: &mut Vec<u8>) {
    write_scalar(&value, out);
}

/// Appends an integer.
pub fn write_int(value: i64, out: &mut Vec<u8>) {
    write_scalar(&value, out);
}

/// Writes a number or bool as serde_json does (non-finite doubles as `null`).
pub(super) fn write_scalar<T: Serialize>(value: &T, out: &mut Vec<u8>) {
    let written = serde_json::to_writer(out, value);
    debug_assert!(written.is_ok(), "a scalar has no way to fail, nor has a Vec");
}
