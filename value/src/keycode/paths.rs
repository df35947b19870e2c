//! Paths as key parts: the steps from a document's root to a leaf, item steps before properties.

use super::KeycodeError;
use super::parts::{Reader, push_str};

const PATH_END: u8 = 0x00;
const PATH_ITEM: u8 = 0x01;
const PATH_PROPERTY: u8 = 0x02;

/// One step from a container to a value in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PathStep<'a> {
    /// To the property of an object.
    Property(&'a str),
    /// To any item of an array.
    Item,
}

/// Appends the step to a property.
pub fn push_path_property(out: &mut Vec<u8>, name: &str) {
    out.push(PATH_PROPERTY);
    push_str(out, name);
}

/// Appends the step to the items of an array.
pub fn push_path_item(out: &mut Vec<u8>) {
    out.push(PATH_ITEM);
}

/// Ends a path, so that other key parts can follow.
pub fn push_path_end(out: &mut Vec<u8>) {
    out.push(PATH_END);
}

/// A whole path with its end, as `walk_leaves` reports it.
pub fn encode_path(segments: &[PathStep<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    for segment in segments {
        match segment {
            PathStep::Property(name) => push_path_property(&mut out, name),
            PathStep::Item => push_path_item(&mut out),
        }
    }
    push_path_end(&mut out);
    out
}

/// The number of bytes a path takes, with its end.
pub fn skip_path(bytes: &[u8]) -> Result<usize, KeycodeError> {
    let mut reader = Reader::new(bytes);
    loop {
        match reader.byte()? {
            PATH_END => return Ok(reader.position),
            PATH_ITEM => {}
            PATH_PROPERTY => _ = reader.skip_escaped()?,
            found => return Err(reader.unexpected(found, "a path step")),
        }
    }
}

/// Whether a path leads through properties alone, so that a document has at most one value there.
pub fn is_property_path(bytes: &[u8]) -> bool {
    let mut reader = Reader::new(bytes);
    loop {
        match reader.byte() {
            Ok(PATH_END) => return reader.at_end(),
            Ok(PATH_PROPERTY) if reader.skip_escaped().is_ok() => {}
            _ => return false,
        }
    }
}

/// Prints an encoded path for people, as an indexing policy would write it. The end may be missing.
pub fn path_to_string(bytes: &[u8]) -> Result<String, KeycodeError> {
    let mut reader = Reader::new(bytes);
    let mut text = String::new();
    while !reader.at_end() {
        match reader.byte()? {
            PATH_END => break,
            PATH_ITEM => text.push_str("/[]"),
            PATH_PROPERTY => {
                let (name, _) = reader.escaped()?;
                let name = String::from_utf8_lossy(&name).into_owned();
                let segment = crate::path::Path::from_segments([name]);
                text.extend(segment.map(|segment| segment.to_string()));
            }
            found => return Err(reader.unexpected(found, "a path step")),
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(steps: &[PathStep<'_>], text: &str) {
        let encoded = encode_path(steps);
        assert_eq!(path_to_string(&encoded).unwrap(), text);
        assert_eq!(skip_path(&encoded), Ok(encoded.len()));
        assert!(skip_path(&encoded[..encoded.len() - 1]).is_err());
    }

    #[test]
    fn paths_print_as_a_policy_writes_them() {
        check(&[], "");
        check(&[PathStep::Property("a")], "/a");
        check(&[PathStep::Property("a"), PathStep::Item, PathStep::Property("b-c")], "/a/[]/\"b-c\"");
        assert!(path_to_string(&[9]).is_err());
        assert!(path_to_string(b"\x02ab").is_err());
    }
}
