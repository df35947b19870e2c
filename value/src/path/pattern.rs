//! Patterns of an indexing policy: `/a/?` is the scalar at a path, `/a/*` everything at and below it, and
//! the segment `[]` stands for the items of an array.

use std::fmt;

use super::scan::{Scanner, write_property};
use super::{Path, PathError};

/// What a pattern covers once its segments are matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PatternKind {
    /// `/?`: the value there, if it is a scalar.
    Scalar,
    /// `/*`: the value there and all below it.
    Subtree,
}

/// One step of a pattern.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PatternSegment {
    /// A property of an object.
    Property(String),
    /// `[]`: any item of an array.
    Item,
}

/// A set of paths, as written in an indexing policy.
#[derive(Debug, Clone)]
pub struct PathPattern {
    segments: Vec<PatternSegment>,
    kind: PatternKind,
    written: String,
}

impl PathPattern {
    /// Reads a pattern; it must end in `/?` or `/*`.
    pub fn parse(text: &str) -> Result<PathPattern, PathError> {
        let mut scanner = Scanner::new(text);
        let mut segments = Vec::new();
        loop {
            if scanner.at_end() {
                return Err(scanner.error("expected '/?' or '/*' at the end of the path"));
            }
            scanner.slash()?;
            let kind = match scanner.rest() {
                "?" => PatternKind::Scalar,
                "*" => PatternKind::Subtree,
                _ => {
                    segments.push(segment(&mut scanner)?);
                    continue;
                }
            };
            return Ok(PathPattern { segments, kind, written: text.into() });
        }
    }

    /// The pattern that covers one property and, as asked, what is below it.
    pub fn of_path(path: &Path, kind: PatternKind) -> PathPattern {
        let segments = path.segments().iter().cloned().map(PatternSegment::Property).collect();
        let mut pattern = PathPattern { segments, kind, written: String::new() };
        pattern.written = pattern.to_string();
        pattern
    }

    /// The steps from the root.
    pub fn segments(&self) -> &[PatternSegment] {
        &self.segments
    }

    /// Whether it ends in `/?` or `/*`.
    pub fn kind(&self) -> PatternKind {
        self.kind
    }

    /// The text this pattern was parsed from.
    pub fn written(&self) -> &str {
        &self.written
    }
}

fn segment(scanner: &mut Scanner<'_>) -> Result<PatternSegment, PathError> {
    if scanner.rest().starts_with('{') {
        return Err(scanner.error("paths over several properties ('{a, b}') are not supported"));
    }
    if scanner.take("[]") {
        return Ok(PatternSegment::Item);
    }
    Ok(PatternSegment::Property(scanner.property()?))
}

impl fmt::Display for PathPattern {
    /// The canonical form; see [`Path`].
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for segment in &self.segments {
            match segment {
                PatternSegment::Property(name) => write_property(out, name)?,
                PatternSegment::Item => out.write_str("/[]")?,
            }
        }
        out.write_str(match self.kind {
            PatternKind::Scalar => "/?",
            PatternKind::Subtree => "/*",
        })
    }
}

/// Two patterns are equal if they cover the same paths, however they were quoted.
impl PartialEq for PathPattern {
    fn eq(&self, other: &PathPattern) -> bool {
        self.segments == other.segments && self.kind == other.kind
    }
}

impl Eq for PathPattern {}

impl std::str::FromStr for PathPattern {
    type Err = PathError;

    fn from_str(text: &str) -> Result<PathPattern, PathError> {
        PathPattern::parse(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_canonical(text: &str, canonical: &str) {
        let pattern = PathPattern::parse(text).unwrap();
        assert_eq!(pattern.to_string(), canonical);
        assert_eq!(pattern.written(), text);
        assert_eq!(PathPattern::parse(canonical).unwrap(), pattern);
    }

    #[track_caller]
    fn check_refused(text: &str, position: usize) {
        let error = PathPattern::parse(text).unwrap_err();
        assert_eq!(error.position, position, "{error}");
    }

    #[test]
    fn patterns_are_read_and_printed() {
        check_canonical("/*", "/*");
        check_canonical("/a/b/?", "/a/b/?");
        check_canonical("/a/*", "/a/*");
        check_canonical("/a/[]/b/?", "/a/[]/b/?");
        check_canonical("/a/[]/?", "/a/[]/?");
        check_canonical("/\"_etag\"/?", "/_etag/?");
        check_canonical("/\"a-b\"/*", "/\"a-b\"/*");
        check_canonical("/\"?\"/?", "/\"?\"/?");
    }

    #[test]
    fn patterns_without_an_end_or_with_strange_segments_are_refused() {
        check_refused("", 0);
        check_refused("/", 1);
        check_refused("a/*", 0);
        check_refused("/a", 2);
        check_refused("/a/", 3);
        check_refused("/a/*/b", 3);
        check_refused("/a/?/*", 3);
        check_refused("/a/[0]/?", 3);
        check_refused("/a/[]b/?", 5);
        check_refused("/a/[]/{b, c}/?", 6);
    }
}
