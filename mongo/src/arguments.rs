//! The types of a command's arguments, as one table for each command.
//!
//! A command that takes its arguments one by one would refuse a wrong type late, after a part of its work, or not at all. So
//! the whole document is compared with a table first: names that no row has, types and ranges, in MongoDB's codes.

use bson::{RawBsonRef, RawDocument};

use crate::{
    call::{integer, wrong_type},
    failure::{Failure, Result},
};

/// What an argument may be. Null stands for an argument that is not given.
pub enum Kind {
    /// A Boolean, and no number for it.
    Strict,
    /// A Boolean, or a number that is not zero.
    Truth,
    /// A number from the first to the last.
    Number(i64, i64),
    /// A string.
    Text,
    /// A string, or a number.
    TextOrNumber,
    /// An array.
    Array,
    /// A document of any fields.
    Object,
    /// A document of these fields.
    Fields(&'static [Argument]),
    /// The name of an index or its key; code 9.
    Hint,
    /// An update; code 9.
    Update,
    /// Whatever else looks at it.
    Any,
}

/// A row of a table.
pub struct Argument {
    name: &'static str,
    kind: Kind,
    required: bool,
}

/// An argument that may be left out.
pub const fn may(name: &'static str, kind: Kind) -> Argument {
    Argument { name, kind, required: false }
}

/// An argument that has to be there.
pub const fn must(name: &'static str, kind: Kind) -> Argument {
    Argument { name, kind, required: true }
}

/// The arguments of a command; those that all commands have are checked elsewhere, as are unknown names.
pub fn check_command(command: &str, body: &RawDocument, table: &[Argument]) -> Result<()> {
    for argument in table {
        match body.get(argument.name)? {
            Some(value) => argument.check(command, value)?,
            None if argument.required => return Err(missing(command, argument.name)),
            None => {}
        }
    }
    Ok(())
}

/// The fields of a document inside a command: all of them are in the table.
pub fn check_fields(path: &str, document: &RawDocument, table: &[Argument]) -> Result<()> {
    for element in document.iter() {
        let (name, value) = element?;
        match table.iter().find(|argument| argument.name == name.as_str()) {
            Some(argument) => argument.check(path, value)?,
            None => return Err(Failure::unknown_field(&format!("{path}.{name}"))),
        }
    }
    for argument in table.iter().filter(|argument| argument.required) {
        if document.get(argument.name)?.is_none() {
            return Err(missing(path, argument.name));
        }
    }
    Ok(())
}

fn missing(path: &str, name: &str) -> Failure {
    Failure::missing(&format!("{path}.{name}"))
}

fn is_number(value: RawBsonRef<'_>) -> bool {
    matches!(
        value,
        RawBsonRef::Int32(_) | RawBsonRef::Int64(_) | RawBsonRef::Double(_) | RawBsonRef::Decimal128(_)
    )
}

impl Argument {
    fn check(&self, path: &str, value: RawBsonRef<'_>) -> Result<()> {
        let name = || format!("{path}.{}", self.name);
        let wrong = |expected: &str| Err(wrong_type(&name(), value, expected));
        match (&self.kind, value) {
            (Kind::Hint, RawBsonRef::String(_) | RawBsonRef::Document(_)) => Ok(()),
            (Kind::Hint, _) => Err(Failure::new(9, "Hint must be a string or an object")),
            (Kind::Update, RawBsonRef::Document(_) | RawBsonRef::Array(_)) => Ok(()),
            (Kind::Update, _) => Err(Failure::new(9, "Update argument must be either an object or an array")),
            (_, RawBsonRef::Null | RawBsonRef::Undefined) if self.required => Err(missing(path, self.name)),
            (_, RawBsonRef::Null | RawBsonRef::Undefined) | (Kind::Any, _) => Ok(()),
            (Kind::Strict | Kind::Truth, RawBsonRef::Boolean(_)) => Ok(()),
            (Kind::Strict, _) => wrong("bool"),
            (Kind::Truth | Kind::TextOrNumber, value) if is_number(value) => Ok(()),
            (Kind::Truth, _) => wrong("[bool, long, int, decimal, double]"),
            (Kind::Number(least, most), value) if is_number(value) => {
                let number = integer(value).unwrap_or_default();
                match (least..=most).contains(&&number) {
                    true => Ok(()),
                    false => Err(Failure::bad_value(format!(
                        "BSON field '{}' value must be from {least} to {most}, actual value '{number}'",
                        self.name
                    ))),
                }
            }
            (Kind::Number(..), _) => wrong("[long, int, decimal, double]"),
            (Kind::Text | Kind::TextOrNumber, RawBsonRef::String(_)) => Ok(()),
            (Kind::Text, _) => wrong("string"),
            (Kind::TextOrNumber, _) => wrong("[string, decimal, double, long, int]"),
            (Kind::Array, value) if !matches!(value, RawBsonRef::Array(_)) => wrong("array"),
            (Kind::Array, _) => Ok(()),
            (Kind::Object | Kind::Fields(_), value) if !matches!(value, RawBsonRef::Document(_)) => {
                wrong("object")
            }
            (Kind::Fields(table), RawBsonRef::Document(document)) => check_fields(&name(), document, table),
            (Kind::Object | Kind::Fields(_), _) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::rawdoc;

    const TABLE: &[Argument] = &[
        must("size", Kind::Number(1, 10)),
        may("capped", Kind::Truth),
        may("index", Kind::Fields(&[must("name", Kind::Text), may("hidden", Kind::Strict)])),
    ];

    #[test]
    fn wrong_types_ranges_and_names_have_codes_of_their_own() {
        let code = |body: bson::RawDocumentBuf| check_command("c", &body, TABLE).map_err(|e| e.code).err();
        assert_eq!(code(rawdoc! { "size": 1, "capped": 1.5, "index": { "name": "a" } }), None);
        assert_eq!(code(rawdoc! { "size": 1, "capped": bson::RawBson::Null }), None);
        assert_eq!(code(rawdoc! { "capped": true }), Some(40414));
        assert_eq!(code(rawdoc! { "size": 11 }), Some(2));
        assert_eq!(code(rawdoc! { "size": "1" }), Some(14));
        assert_eq!(code(rawdoc! { "size": 1, "capped": "yes" }), Some(14));
        assert_eq!(code(rawdoc! { "size": 1, "index": { "name": "a", "hidden": 1 } }), Some(14));
        assert_eq!(code(rawdoc! { "size": 1, "index": { "hidden": true } }), Some(40414));
        assert_eq!(code(rawdoc! { "size": 1, "index": { "name": "a", "b": 1 } }), Some(40415));
    }
}
