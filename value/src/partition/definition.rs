//! The definition of a container's partition key: its paths and how their values are hashed.

use bson::{RawBsonRef, RawDocument};
use serde::{Deserialize, Deserializer, Serialize};

use super::{Component, PartitionKey, PartitionKeyError};
use crate::path::Path;

/// Paths a hierarchical key may have.
const MULTI_HASH_PATHS_MAX: usize = 3;
/// Bytes of a string value, in both versions: `KeyDefinition::place` tells apart what the old one's hash does not.
const STRING_BYTES_MAX: usize = 2048;

/// How the values of a key become one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum KeyKind {
    /// One hash over all values.
    Hash,
    /// One hash per value, one behind the other: the first values alone name a range.
    MultiHash,
}

/// Which properties make the partition key, as Cosmos writes it:
/// `{"paths":["/pk"],"kind":"Hash","version":2}`.
///
/// Without paths (a Mongo collection without a shard key) all documents have the same, empty key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KeyDefinition {
    /// The properties, outermost first.
    pub paths: Vec<Path>,
    /// How they are hashed.
    pub kind: KeyKind,
    /// The version of the hash: 1 or 2.
    pub version: u8,
}

impl KeyDefinition {
    /// The definition of a collection that is not partitioned.
    pub fn unpartitioned() -> KeyDefinition {
        KeyDefinition { paths: Vec::new(), kind: KeyKind::Hash, version: 2 }
    }

    /// Reads one path of a definition; the error is the service's.
    pub fn parse_path(text: &str) -> Result<Path, PartitionKeyError> {
        Path::parse(text).map_err(|error| PartitionKeyError::PathNotAccepted {
            path: error.path,
            position: error.position,
        })
    }

    /// Checks what the types do not: the number of paths and the version.
    pub fn validate(&self) -> Result<(), PartitionKeyError> {
        let (paths_max, versions, kind) = match self.kind {
            KeyKind::Hash => (1, 1..=2, "Hash"),
            KeyKind::MultiHash => (MULTI_HASH_PATHS_MAX, 2..=2, "MultiHash"),
        };
        if self.paths.len() > paths_max {
            return Err(PartitionKeyError::TooManyPaths);
        }
        if self.paths.is_empty() && self.kind == KeyKind::MultiHash {
            return Err(PartitionKeyError::NoPaths);
        }
        if !versions.contains(&self.version) {
            return Err(PartitionKeyError::VersionNotSupported { version: self.version, kind });
        }
        Ok(())
    }

    /// Refuses paths that a new container may not have: the service takes blanks in a quoted name only.
    /// Containers that exist keep their paths.
    pub fn validate_new(&self) -> Result<(), PartitionKeyError> {
        self.validate()?;
        for path in &self.paths {
            if let Some(position) = blank_outside_quotes(path.written()) {
                return Err(PartitionKeyError::PathNotAccepted { path: path.written().into(), position });
            }
        }
        Ok(())
    }

    /// The partition key of a document: one component per path, `Undefined` where it has no scalar, as the SDKs
    /// read it too.
    pub fn extract(&self, document: &RawDocument) -> Result<PartitionKey, PartitionKeyError> {
        let component = |path: &Path| match path.get(document) {
            None | Some(RawBsonRef::Document(_) | RawBsonRef::Array(_)) => Ok(Component::Undefined),
            Some(value) => Component::of(value)
                .ok_or_else(|| PartitionKeyError::NotAScalar { path: path.written().into() }),
        };
        let key = PartitionKey(self.paths.iter().map(component).collect::<Result<_, _>>()?);
        self.check_key(&key)?;
        Ok(key)
    }

    /// Checks a key that came from a header: not more components than paths, and no string too long.
    pub fn check_key(&self, key: &PartitionKey) -> Result<(), PartitionKeyError> {
        if key.0.len() > self.paths.len() {
            return Err(PartitionKeyError::TooManyComponents {
                found: key.0.len(),
                expected: self.paths.len(),
            });
        }
        for component in &key.0 {
            match component {
                Component::String(text) if text.len() > STRING_BYTES_MAX => {
                    return Err(PartitionKeyError::TooLong {
                        bytes: text.len(),
                        bytes_max: STRING_BYTES_MAX,
                    });
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether the key has a component for every path, as point operations need.
    pub fn is_full_key(&self, key: &PartitionKey) -> bool {
        key.0.len() == self.paths.len()
    }
}

/// Where a path that can be read has a blank in a name that is not quoted.
fn blank_outside_quotes(path: &str) -> Option<usize> {
    let (mut quote, mut escaped) = (None, false);
    for (position, letter) in path.char_indices() {
        match (quote, letter) {
            _ if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(open), _) if letter == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(letter),
            (None, _) if letter.is_whitespace() => return Some(position),
            (None, _) => {}
        }
    }
    None
}

/// A definition as clients send it: only the paths are required.
#[derive(Deserialize)]
struct SentDefinition {
    paths: Vec<String>,
    #[serde(default)]
    kind: Option<KeyKind>,
    #[serde(default)]
    version: Option<u8>,
}

impl<'de> Deserialize<'de> for KeyDefinition {
    /// Fills in what the service does: kind `Hash`, and version 1 where there is a choice.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<KeyDefinition, D::Error> {
        let sent = SentDefinition::deserialize(deserializer)?;
        let paths: Result<_, _> = sent.paths.iter().map(|path| KeyDefinition::parse_path(path)).collect();
        let kind = sent.kind.unwrap_or(KeyKind::Hash);
        let default_version = match kind {
            KeyKind::Hash => 1,
            KeyKind::MultiHash => 2,
        };
        Ok(KeyDefinition {
            paths: paths.map_err(serde::de::Error::custom)?,
            kind,
            version: sent.version.unwrap_or(default_version),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::rawdoc;

    fn definition(json: &str) -> KeyDefinition {
        serde_json::from_str(json).unwrap()
    }

    #[track_caller]
    fn check_valid(json: &str, printed: &str) {
        let definition = definition(json);
        assert_eq!(definition.validate(), Ok(()));
        assert_eq!(serde_json::to_string(&definition).unwrap(), printed);
    }

    #[track_caller]
    fn check_invalid(json: &str, message: &str) {
        assert_eq!(definition(json).validate().unwrap_err().to_string(), message);
    }

    #[test]
    fn definitions_keep_what_was_sent_and_fill_in_the_rest() {
        let v2 = r#"{"paths":["/pk"],"kind":"Hash","version":2}"#;
        check_valid(v2, v2);
        check_valid(r#"{"paths":["/pk"]}"#, r#"{"paths":["/pk"],"kind":"Hash","version":1}"#);
        let multi = r#"{"paths":["/a","/\"b-c\"","/d/e"],"kind":"MultiHash","version":2}"#;
        check_valid(multi, multi);
        check_valid(
            r#"{"paths":["/a"],"kind":"MultiHash","systemKey":true}"#,
            r#"{"paths":["/a"],"kind":"MultiHash","version":2}"#,
        );
        check_valid(r#"{"paths":[],"version":2}"#, r#"{"paths":[],"kind":"Hash","version":2}"#);
    }

    #[test]
    fn impossible_definitions_are_refused() {
        check_invalid(r#"{"paths":["/a","/b"]}"#, "Too many partition key paths");
        let four = r#"{"paths":["/a","/b","/c","/d"],"kind":"MultiHash","version":2}"#;
        check_invalid(four, "Too many partition key paths");
        check_invalid(
            r#"{"paths":["/a"],"kind":"MultiHash","version":1}"#,
            "The partition key definition version '1' is not supported for kind 'MultiHash'",
        );
        check_invalid(
            r#"{"paths":["/a"],"version":3}"#,
            "The partition key definition version '3' is not supported for kind 'Hash'",
        );
        check_invalid(r#"{"paths":[],"kind":"MultiHash"}"#, "The partition key definition has no paths");
        let refused = KeyDefinition::parse_path("id").unwrap_err().to_string();
        assert_eq!(
            refused,
            "The partition key component definition path 'id' could not be accepted, failed near position \
             '0'. Partition key paths must contain only valid characters and not contain a trailing slash \
             or wildcard character."
        );
    }

    #[test]
    fn new_paths_have_blanks_in_quoted_names_only() {
        let check = |path: &str, accepted: bool| {
            let definition = definition(&serde_json::json!({ "paths": [path] }).to_string());
            assert_eq!(definition.validate(), Ok(()), "{path}");
            assert_eq!(definition.validate_new().is_ok(), accepted, "{path}");
        };
        check("/id ds", false);
        check("/a/b\u{a0}c", false);
        check(r#"/"id ds""#, true);
        check(r#"/"a \" b"/c"#, true);
        check(r#"/"a\"b"/c d"#, false);
        check("/a-b", true);
    }

    #[test]
    fn keys_are_extracted_from_documents() {
        let definition = definition(r#"{"paths":["/a/b","/c"],"kind":"MultiHash"}"#);
        let check = |document: bson::RawDocumentBuf, json: &str| {
            assert_eq!(definition.extract(&document).unwrap().to_json(), json);
        };
        check(rawdoc! { "a": { "b": "x" }, "c": 1 }, r#"["x",1]"#);
        check(rawdoc! { "c": null }, "[{},null]");
        check(rawdoc! { "a": [ { "b": 1 } ], "c": true }, "[{},true]");
        check(rawdoc! { "c": {} }, "[{},{}]");
        let refused = definition.extract(&rawdoc! { "c": bson::DateTime::from_millis(0) });
        assert_eq!(refused, Err(PartitionKeyError::NotAScalar { path: "/c".into() }));
    }

    #[test]
    fn long_strings_are_refused() {
        let check = |version: u8, length: usize, fits: bool| {
            let definition = definition(&format!(r#"{{"paths":["/a"],"version":{version}}}"#));
            assert_eq!(definition.extract(&rawdoc! { "a": "x".repeat(length) }).is_ok(), fits);
        };
        for version in [1, 2] {
            check(version, 2048, true);
            check(version, 2049, false);
        }
    }

    #[test]
    fn keys_of_an_unpartitioned_collection_are_empty() {
        let definition = KeyDefinition::unpartitioned();
        assert_eq!(definition.extract(&rawdoc! { "a": 1 }), Ok(PartitionKey(vec![])));
        assert!(definition.check_key(&PartitionKey(vec![Component::Null])).is_err());
    }
}
