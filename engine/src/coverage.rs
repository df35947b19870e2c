//! What the index is known to hold of every document.
//!
//! An index lists the documents that have a value at a path; those without one are in no list. So a query
//! sorted by a path could not be read off its index, unless something says that every document has a value
//! there. This does: the
//! *coverage* of an index is the set of paths at which every document written since the index was begun has a
//! scalar, with its whole value in the key. The first document sets it to its own paths, and each document
//! that lacks one of them takes that one away before it is written. It only ever shrinks, so it is written a
//! few times in the life of an index, and a reader that finds a path in it may rely on it.
//!
//! It also says whether the index is *plain*: all its values are of JSON's types, so that what a query
//! language makes of them follows from the key.

use std::sync::Arc;

use bson::{RawBsonRef, RawDocument, RawDocumentBuf};
use mayfly_value::{
    keycode::{self, STRING_BYTES_MAX},
    path::PathRules,
    walk,
};
use serde::{Deserialize, Serialize};

use crate::{
    container::Container,
    engine::Engine,
    error::{Error, Result},
};

/// So many paths are kept track of. Documents with more have them in the order of the document.
pub(crate) const PATHS_MAX: usize = 64;

/// Longer paths are not kept track of: the set stands in the container's row.
const PATH_BYTES_MAX: usize = 128;

/// Doubles from here on may stand for several integers in a key: 2^53.
pub const EXACT_BELOW: f64 = 9_007_199_254_740_992.0;

/// What holds for all documents of an index.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Coverage {
    /// Nobody has kept track.
    #[default]
    Unknown,
    /// There is no document yet.
    Unwritten,
    /// This much.
    Known {
        /// The encoded paths, in hexadecimal, sorted.
        paths: Vec<String>,
        /// Whether all values are of JSON's types.
        plain: bool,
    },
}

impl Coverage {
    /// What is left of it beside another document.
    fn narrowed(&self, rules: &PathRules, body: &RawDocument, composites_plain: bool) -> Result<Self> {
        let leaves = Leaves::of(rules, body)?;
        let has = leaves.paths.iter().map(|path| hex(path));
        let plain = leaves.plain && composites_plain;
        Ok(match self {
            Self::Unknown => Self::Unknown,
            Self::Unwritten => {
                let mut paths: Vec<_> = has.take(PATHS_MAX).collect();
                paths.sort();
                paths.dedup();
                Self::Known { paths, plain }
            }
            Self::Known { paths, plain: others } => {
                let has: Vec<_> = has.collect();
                let paths = paths.iter().filter(|path| has.contains(path)).cloned().collect();
                Self::Known { paths, plain: plain && *others }
            }
        })
    }
}

/// A coverage, ready to be asked.
#[derive(Debug, Default)]
pub(crate) struct Covered {
    /// Sorted.
    paths: Vec<Vec<u8>>,
    pub plain: bool,
    /// Whether a document that has not all of it must be told.
    tracked: bool,
    unwritten: bool,
}

impl Covered {
    pub fn new(coverage: &Coverage) -> Self {
        match coverage {
            Coverage::Unknown => Self::default(),
            Coverage::Unwritten => Self { unwritten: true, tracked: true, ..Self::default() },
            Coverage::Known { paths, plain } => {
                let mut paths: Vec<_> = paths.iter().filter_map(|path| unhex(path)).collect();
                paths.sort();
                paths.truncate(PATHS_MAX);
                Self { paths, plain: *plain, tracked: true, unwritten: false }
            }
        }
    }

    /// Whether every document has a whole scalar at the encoded path.
    pub fn has(&self, path: &[u8]) -> bool {
        self.plain && self.paths.binary_search_by(|known| known.as_slice().cmp(path)).is_ok()
    }
}

/// Finds out, leaf by leaf, whether a document has all that is covered.
pub(crate) struct Fitting<'c> {
    covered: &'c Covered,
    /// One bit for each covered path.
    seen: u64,
    plain: bool,
}

impl<'c> Fitting<'c> {
    pub fn new(covered: &'c Covered) -> Self {
        Self { covered, seen: 0, plain: true }
    }

    /// Takes note of a leaf that is indexed.
    pub fn leaf(&mut self, path: &[u8], value: RawBsonRef<'_>) {
        self.plain &= is_plain(value);
        if let Ok(place) = self.covered.paths.binary_search_by(|known| known.as_slice().cmp(path))
            && is_whole(value)
        {
            self.seen |= 1 << place;
        }
    }

    /// Takes note of a part of a composite index.
    pub fn part(&mut self, value: Option<RawBsonRef<'_>>) {
        self.plain &= value.is_none_or(is_plain);
    }

    /// Whether the coverage holds for this document, too.
    pub fn fits(&self) -> bool {
        let Covered { paths, plain, tracked, unwritten } = self.covered;
        !tracked || (!unwritten && self.seen.count_ones() as usize == paths.len() && (self.plain || !plain))
    }
}

/// The leaves of a document that can be covered.
struct Leaves {
    paths: Vec<Vec<u8>>,
    plain: bool,
}

impl Leaves {
    fn of(rules: &PathRules, body: &RawDocument) -> Result<Self> {
        let mut leaves = Self { paths: Vec::new(), plain: true };
        walk::walk_leaves(body, rules, &mut |path, value| {
            leaves.plain &= is_plain(value);
            let single = keycode::is_property_path(path);
            if single && path.len() <= PATH_BYTES_MAX && is_whole(value) {
                leaves.paths.push(path.to_vec());
            }
        })?;
        Ok(leaves)
    }
}

/// Whether the key of a value says all about it.
fn is_whole(value: RawBsonRef<'_>) -> bool {
    match value {
        RawBsonRef::Null | RawBsonRef::Boolean(_) | RawBsonRef::Int32(_) => true,
        RawBsonRef::Int64(n) => (n as f64).abs() < EXACT_BELOW,
        RawBsonRef::Double(n) => n.abs() < EXACT_BELOW,
        RawBsonRef::String(text) => text.len() <= STRING_BYTES_MAX,
        _ => false,
    }
}

fn is_plain(value: RawBsonRef<'_>) -> bool {
    match value {
        RawBsonRef::Null
        | RawBsonRef::Boolean(_)
        | RawBsonRef::Int32(_)
        | RawBsonRef::Int64(_)
        | RawBsonRef::Double(_)
        | RawBsonRef::String(_) => true,
        // Empty as a leaf; in a composite index it may hold anything, and is never taken from the key.
        RawBsonRef::Array(_) | RawBsonRef::Document(_) => true,
        _ => false,
    }
}

impl Engine {
    /// Takes from a container's coverage what these documents do not have. They may be written then.
    pub(crate) async fn narrow_coverage(
        &self,
        container: &Arc<Container>,
        bodies: &[&RawDocument],
    ) -> Result<()> {
        if self.reload(container)?.version != container.version {
            // What the caller goes by is old; the container as it is may do.
            return Ok(());
        }
        let epoch = container.row.index.epoch;
        let by: Arc<Container> = container.clone();
        let bodies: Vec<RawDocumentBuf> = bodies.iter().map(|body| (*body).to_owned()).collect();
        let narrowed = self.catalog().change_container(container, None, move |row| {
            if row.index.epoch != epoch {
                return Err(Error::Contention);
            }
            let before = row.index.coverage.clone();
            for body in &bodies {
                let parts = by.composites.iter().flat_map(|composite| &composite.parts);
                let plain = parts.into_iter().all(|(path, _)| path.get(body).is_none_or(is_plain));
                row.index.coverage = row.index.coverage.narrowed(&by.rules, body, plain)?;
            }
            // Somebody else took away the same: one more version would only send others back to the start.
            if row.index.coverage == before { Err(Error::Contention) } else { Ok(()) }
        });
        match narrowed.await {
            // Somebody changed the container: whoever asked looks again.
            Ok(_) | Err(Error::Contention) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).ok());
    digits.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::rawdoc;
    use mayfly_value::keycode::{PathStep, encode_path};

    fn covers(coverage: &Coverage, name: &str) -> bool {
        Covered::new(coverage).has(&encode_path(&[PathStep::Property(name)]))
    }

    fn fits(coverage: &Coverage, body: &RawDocument) -> bool {
        let covered = Covered::new(coverage);
        let mut fitting = Fitting::new(&covered);
        walk::walk_leaves(body, &PathRules::all(), &mut |path, value| fitting.leaf(path, value)).unwrap();
        fitting.fits()
    }

    #[test]
    fn documents_take_away_what_they_lack() {
        let first = rawdoc! { "a": 1, "b": "x", "c": [1], "d": { "e": true } };
        let second = rawdoc! { "a": "y", "b": [1], "f": 1 };
        assert!(!fits(&Coverage::Unwritten, &first));
        let coverage = Coverage::Unwritten.narrowed(&PathRules::all(), &first, true).unwrap();
        assert!(fits(&coverage, &first) && covers(&coverage, "a") && covers(&coverage, "b"));
        assert!(!covers(&coverage, "c"), "an array is not in the index at its own path");
        assert!(!fits(&coverage, &second));
        let coverage = coverage.narrowed(&PathRules::all(), &second, true).unwrap();
        assert!(fits(&coverage, &first) && fits(&coverage, &second));
        assert!(covers(&coverage, "a") && !covers(&coverage, "b") && !covers(&coverage, "f"));
    }

    #[test]
    fn values_that_do_not_fit_their_keys_are_not_covered() {
        let first = rawdoc! { "n": 1, "s": "x", "m": 1 };
        let coverage = Coverage::Unwritten.narrowed(&PathRules::all(), &first, true).unwrap();
        let long = "x".repeat(STRING_BYTES_MAX + 1);
        let second = rawdoc! { "n": i64::MAX, "s": long, "m": 2.5 };
        let coverage = coverage.narrowed(&PathRules::all(), &second, true).unwrap();
        assert!(covers(&coverage, "m") && !covers(&coverage, "n") && !covers(&coverage, "s"));
        let foreign = rawdoc! { "n": 1, "s": "x", "m": 1, "o": bson::oid::ObjectId::new() };
        let coverage = coverage.narrowed(&PathRules::all(), &foreign, true).unwrap();
        assert!(!covers(&coverage, "m"), "not all values are plain");
    }

    #[test]
    fn what_nobody_kept_track_of_stays_unknown() {
        let body = rawdoc! { "a": 1 };
        assert!(fits(&Coverage::Unknown, &body) && !covers(&Coverage::Unknown, "a"));
        assert_eq!(Coverage::Unknown.narrowed(&PathRules::all(), &body, true).unwrap(), Coverage::Unknown);
    }
}
