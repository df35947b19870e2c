//! Property paths as Cosmos writes them: `/address/city`, `/"first-name"`, `/tags/[]/?`.
//!
//! `Path` names one property (partition keys, unique keys, composite indexes). `PathPattern` names a set of
//! them and occurs only in indexing policies, where `PathRules` weighs many patterns against each other.
//!
//! ```text
//!   "/a/b"      Path::parse ─────────▶ Path ──get──▶ value in a document
//!   "/a/[]/?"   PathPattern::parse ──▶ PathPattern ─┐
//!   "/*"        PathPattern::parse ──▶ PathPattern ─┴─▶ PathRules ──root──▶ RuleCursor (see `walk.rs`)
//! ```
//!
//! Holds: a path printed with `Display` parses back to an equal path. `written` is the text as it was sent,
//! because clients expect to read back what they wrote.

mod pattern;
mod rules;
mod scan;

use std::fmt;
use std::hash::{Hash, Hasher};

use bson::{RawBsonRef, RawDocument};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use pattern::{PathPattern, PatternKind, PatternSegment};
pub use rules::{PathRules, RuleCursor};

use scan::Scanner;

/// A path that could not be read, with the place where reading stopped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the path '{path}' could not be accepted, failed near position '{position}': {message}")]
pub struct PathError {
    /// The path as it was sent.
    pub path: String,
    /// Byte position in the path.
    pub position: usize,
    /// What was expected there.
    pub message: &'static str,
}

/// The way to one property through nested objects; at least one segment.
#[derive(Debug, Clone)]
pub struct Path {
    segments: Vec<String>,
    written: String,
}

impl Path {
    /// Reads a plain property path: `/a/b` with quoted segments where needed, no wildcards.
    pub fn parse(text: &str) -> Result<Path, PathError> {
        let mut scanner = Scanner::new(text);
        let mut segments = Vec::new();
        while !scanner.at_end() || segments.is_empty() {
            scanner.slash()?;
            segments.push(scanner.property()?);
        }
        Ok(Path { segments, written: text.into() })
    }

    /// The path through these property names, or nothing if there are none.
    pub fn from_segments<S: Into<String>>(segments: impl IntoIterator<Item = S>) -> Option<Path> {
        let mut path =
            Path { segments: segments.into_iter().map(Into::into).collect(), written: String::new() };
        path.written = path.to_string();
        (!path.segments.is_empty()).then_some(path)
    }

    /// The property names from the outermost inwards.
    pub fn segments(&self) -> &[String] {
        &self.segments
    }

    /// The text this path was parsed from.
    pub fn written(&self) -> &str {
        &self.written
    }

    /// The value at this path. Only objects are entered; malformed bytes read as absent.
    pub fn get<'d>(&self, document: &'d RawDocument) -> Option<RawBsonRef<'d>> {
        let (last, parents) = self.segments.split_last()?;
        let mut object = document;
        for name in parents {
            object = object.get(name).ok()??.as_document()?;
        }
        object.get(last).ok()?
    }
}

impl fmt::Display for Path {
    /// The canonical form: segments are quoted unless they are letters, digits and underscores.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.segments.iter().try_for_each(|segment| scan::write_property(out, segment))
    }
}

/// Two paths are equal if they name the same property, however they were quoted.
impl PartialEq for Path {
    fn eq(&self, other: &Path) -> bool {
        self.segments == other.segments
    }
}

impl Eq for Path {}

impl Hash for Path {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.segments.hash(state);
    }
}

impl std::str::FromStr for Path {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Path, PathError> {
        Path::parse(text)
    }
}

impl Serialize for Path {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.written)
    }
}

impl<'de> Deserialize<'de> for Path {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Path, D::Error> {
        let text = String::deserialize(deserializer)?;
        Path::parse(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::rawdoc;

    #[track_caller]
    fn check_parse(text: &str, segments: &[&str], canonical: &str) {
        let path = Path::parse(text).unwrap();
        assert_eq!(path.segments(), segments);
        assert_eq!(path.to_string(), canonical);
        assert_eq!(path.written(), text);
        assert_eq!(Path::parse(canonical).unwrap(), path);
    }

    #[track_caller]
    fn check_refused(text: &str, position: usize) {
        let error = Path::parse(text).unwrap_err();
        assert_eq!(error.position, position, "{error}");
    }

    #[test]
    fn paths_are_read_and_printed() {
        check_parse("/pk", &["pk"], "/pk");
        check_parse("/a/b/c", &["a", "b", "c"], "/a/b/c");
        check_parse("/user-id", &["user-id"], "/\"user-id\"");
        check_parse("/\"a-b\"/c", &["a-b", "c"], "/\"a-b\"/c");
        check_parse("/'a-b'", &["a-b"], "/\"a-b\"");
        check_parse("/\"a/b\"", &["a/b"], "/\"a/b\"");
        check_parse(r#"/"a\"b\\c\u0041""#, &["a\"b\\cA"], r#"/"a\"b\\cA""#);
        check_parse("/\"\"", &[""], "/\"\"");
        check_parse("/\"\\n\"", &["\n"], "/\"\\n\"");
        check_parse("/été", &["été"], "/\"été\"");
        check_parse("/_partitionKey", &["_partitionKey"], "/_partitionKey");
    }

    #[test]
    fn what_is_no_plain_path_is_refused_where_it_goes_wrong() {
        check_refused("", 0);
        check_refused("id", 0);
        check_refused("/", 1);
        check_refused("/a/", 3);
        check_refused("//a", 1);
        check_refused("/a/*", 3);
        check_refused("/a/?", 3);
        check_refused("/a/[]/b", 3);
        check_refused("/a*", 2);
        check_refused("/\"a", 3);
        check_refused("/\"a\"b", 4);
        check_refused("/\"\\x\"", 3);
        check_refused("/\"\\ud800\"", 3);
    }

    #[test]
    fn values_are_found_through_objects_only() {
        let document = rawdoc! { "a": { "b": 1, "c": [ { "d": 2 } ] }, "n": null };
        let check = |path: &str, found: Option<RawBsonRef<'_>>| {
            assert_eq!(Path::parse(path).unwrap().get(&document), found, "{path}");
        };
        check("/a/b", Some(RawBsonRef::Int32(1)));
        check("/n", Some(RawBsonRef::Null));
        check("/a/c/0", None);
        check("/a/c/d", None);
        check("/a/b/c", None);
        check("/x", None);
    }
}
