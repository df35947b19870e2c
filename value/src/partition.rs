//! Partition keys: which documents belong together, and where they are kept.
//!
//! ```text
//!   document ──KeyDefinition::extract──▶ PartitionKey ──effective_key──▶ Epk ──slot_of──▶ slot
//!   header   ──parse_header───────────────────┘
//! ```
//!
//! The effective partition key (EPK) is a hash that the SDKs compute as well, to route requests and to
//! describe ranges; ours must agree with theirs bit by bit, for the old V1 and the present V2.
//!
//! Holds: equal keys have equal EPKs. Absent and null are different values, and all numbers are doubles.

mod definition;
mod epk;
pub(crate) mod murmur;
mod slots;

use std::hash::{Hash, Hasher};

use bson::RawBsonRef;

use crate::json::{JsonLimits, is_plain_ascii, parse_value, write_value};
use crate::number::as_double;

pub use definition::{KeyDefinition, KeyKind};
pub use epk::Epk;

/// Why a partition key, or the definition of one, cannot be used. The messages are fit for a 400.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PartitionKeyError {
    /// More paths than the kind allows.
    #[error("Too many partition key paths")]
    TooManyPaths,
    /// A hierarchical key needs at least one path.
    #[error("The partition key definition has no paths")]
    NoPaths,
    /// A path is not a plain property path.
    #[error(
        "The partition key component definition path '{path}' could not be accepted, failed near position \
         '{position}'. Partition key paths must contain only valid characters and not contain a trailing \
         slash or wildcard character."
    )]
    PathNotAccepted {
        /// The path as it was sent.
        path: String,
        /// Where reading it failed.
        position: usize,
    },
    /// The version does not exist, or not for this kind.
    #[error("The partition key definition version '{version}' is not supported for kind '{kind}'")]
    VersionNotSupported {
        /// The version as it was sent.
        version: u8,
        /// The kind as Cosmos spells it.
        kind: &'static str,
    },
    /// The header is not a JSON array of scalars.
    #[error("Partition key {header} is invalid: {message}")]
    InvalidHeader {
        /// The header as it was sent.
        header: String,
        /// What is wrong with it.
        message: String,
    },
    /// A document has a type JSON lacks where the key should be.
    #[error("The value at partition key path '{path}' must be a string, a number, a boolean or null")]
    NotAScalar {
        /// The path of the definition.
        path: String,
    },
    /// A string is longer than keys may be.
    #[error("The partition key value is too long: {bytes} bytes, the limit is {bytes_max}")]
    TooLong {
        /// How long it is.
        bytes: usize,
        /// How long it may be.
        bytes_max: usize,
    },
    /// The key has more values than the definition has paths.
    #[error("The partition key has {found} components, the definition has {expected} paths")]
    TooManyComponents {
        /// Values in the key.
        found: usize,
        /// Paths in the definition.
        expected: usize,
    },
    /// An effective partition key is not an even number of hex digits.
    #[error("'{text}' is not an effective partition key")]
    InvalidEpk {
        /// The text as it was sent.
        text: String,
    },
}

/// One value of a partition key.
#[derive(Debug, Clone)]
pub enum Component {
    /// The document has no such property.
    Undefined,
    /// The property is null.
    Null,
    /// A boolean.
    Bool(bool),
    /// A number of any type, as a double.
    Number(f64),
    /// A string.
    String(String),
}

impl Component {
    /// The component of a document's value; None for values that cannot be part of a key.
    pub fn of(value: RawBsonRef<'_>) -> Option<Component> {
        match value {
            RawBsonRef::Undefined => Some(Component::Undefined),
            RawBsonRef::Null => Some(Component::Null),
            RawBsonRef::Boolean(value) => Some(Component::Bool(value)),
            RawBsonRef::String(text) | RawBsonRef::Symbol(text) => Some(Component::String(text.into())),
            number => as_double(number).map(Component::Number),
        }
    }

    /// The double whose bits stand for this number: -0 is 0, and there is one NaN.
    pub(crate) fn canonical_number(number: f64) -> f64 {
        if number.is_nan() {
            f64::NAN
        } else if number == 0.0 {
            0.0
        } else {
            number
        }
    }

    fn as_bson(&self) -> RawBsonRef<'_> {
        match self {
            Component::Undefined | Component::Null => RawBsonRef::Null,
            Component::Bool(value) => RawBsonRef::Boolean(*value),
            // Whole numbers print without a point, as JavaScript would.
            Component::Number(number) if *number == (*number as i64) as f64 && number.abs() < 1e15 => {
                RawBsonRef::Int64(*number as i64)
            }
            Component::Number(number) => RawBsonRef::Double(*number),
            Component::String(text) => RawBsonRef::String(text),
        }
    }
}

impl PartialEq for Component {
    fn eq(&self, other: &Component) -> bool {
        match (self, other) {
            (Component::Undefined, Component::Undefined) | (Component::Null, Component::Null) => true,
            (Component::Bool(a), Component::Bool(b)) => a == b,
            (Component::Number(a), Component::Number(b)) => {
                Component::canonical_number(*a).to_bits() == Component::canonical_number(*b).to_bits()
            }
            (Component::String(a), Component::String(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for Component {}

impl Hash for Component {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            Component::Undefined | Component::Null => {}
            Component::Bool(value) => value.hash(state),
            Component::Number(number) => Component::canonical_number(*number).to_bits().hash(state),
            Component::String(text) => text.hash(state),
        }
    }
}

/// The values at a definition's paths, outermost first. A shorter one is a prefix: it names all keys that
/// begin with it. Without any values it is the empty key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PartitionKey(pub Vec<Component>);

impl PartitionKey {
    /// Reads the `x-ms-documentdb-partitionkey` header: a JSON array in which `{}` stands for undefined.
    pub fn parse_header(header: &str) -> Result<PartitionKey, PartitionKeyError> {
        // Nearly all are one text without anything to unescape.
        if let Some(text) = header.strip_prefix("[\"").and_then(|rest| rest.strip_suffix("\"]"))
            && is_plain_ascii(text.as_bytes())
        {
            return Ok(PartitionKey(vec![Component::String(text.into())]));
        }
        let invalid = |message: String| PartitionKeyError::InvalidHeader { header: header.into(), message };
        let value = parse_value(header.as_bytes(), JsonLimits::default())
            .map_err(|error| invalid(error.to_string()))?;
        let array = value.as_array().ok_or_else(|| invalid("expected a JSON array".into()))?;
        let mut components = Vec::new();
        for item in array {
            let component = match item {
                Ok(RawBsonRef::Document(object)) if object.is_empty() => Some(Component::Undefined),
                Ok(value) => Component::of(value),
                Err(_) => None,
            };
            components.push(component.ok_or_else(|| {
                invalid("components must be strings, numbers, booleans, null, or {} for undefined".into())
            })?);
        }
        Ok(PartitionKey(components))
    }

    /// The key as the header writes it.
    pub fn to_json(&self) -> String {
        let mut out = vec![b'['];
        for (index, component) in self.0.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            match component {
                Component::Undefined => out.extend_from_slice(b"{}"),
                // Scalars have no bytes that could be malformed; on an error nothing is written.
                other => _ = write_value(other.as_bson(), &mut out),
            }
        }
        out.push(b']');
        String::from_utf8_lossy(&out).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_header(header: &str, components: &[Component], printed: &str) {
        let key = PartitionKey::parse_header(header).unwrap();
        assert_eq!(key.0, components);
        assert_eq!(key.to_json(), printed);
        assert_eq!(PartitionKey::parse_header(printed).unwrap(), key);
    }

    #[track_caller]
    fn check_refused(header: &str) {
        let refused = PartitionKey::parse_header(header);
        assert!(matches!(refused, Err(PartitionKeyError::InvalidHeader { .. })), "{refused:?}");
    }

    #[test]
    fn headers_are_read_and_printed() {
        check_header(r#"["x"]"#, &[Component::String("x".into())], r#"["x"]"#);
        check_header("[1.5]", &[Component::Number(1.5)], "[1.5]");
        check_header("[ 5.0 ]", &[Component::Number(5.0)], "[5]");
        check_header("[1e300]", &[Component::Number(1e300)], "[1e+300]");
        check_header("[true,false]", &[Component::Bool(true), Component::Bool(false)], "[true,false]");
        check_header("[null]", &[Component::Null], "[null]");
        check_header("[{}]", &[Component::Undefined], "[{}]");
        check_header("[]", &[], "[]");
        check_header(
            r#"["\u00e9\"",-0]"#,
            &[Component::String("é\"".into()), Component::Number(0.0)],
            "[\"é\\\"\",0]",
        );
    }

    #[test]
    fn what_is_no_array_of_scalars_is_refused() {
        check_refused("");
        check_refused("x");
        check_refused("\"x\"");
        check_refused("{}");
        check_refused("[[]]");
        check_refused(r#"[{"a":1}]"#);
        check_refused("[1,]");
    }

    #[test]
    fn equality_is_that_of_doubles_and_tells_null_from_undefined() {
        assert_eq!(Component::of(RawBsonRef::Int32(5)), Component::of(RawBsonRef::Double(5.0)));
        assert_eq!(Component::Number(-0.0), Component::Number(0.0));
        assert_ne!(Component::Null, Component::Undefined);
        assert_ne!(Component::String("5".into()), Component::Number(5.0));
        assert_eq!(Component::of(RawBsonRef::MinKey), None);
    }
}
