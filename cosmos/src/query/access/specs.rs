//! Indexes as explanations name them: those that are used, and those that would have helped.

use mayfly_sql::Hint;
use mayfly_value::path::Path;

use super::{AccessPlan, Planner, names};
use crate::query::spans;

/// Indexes as an explanation names them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Indexes {
    /// Paths whose index is used, such as `/name/?`.
    pub single: Vec<String>,
    /// Composite indexes that are used: `/name ASC`, `/age DESC`.
    pub composite: Vec<Vec<String>>,
    /// Paths in the filter that are not indexed.
    pub potential_single: Vec<String>,
    /// Composite indexes that would serve the filter better.
    pub potential_composite: Vec<Vec<String>>,
}

impl Indexes {
    /// Whether an index is used that has this path, such as `/name`.
    pub fn uses(&self, path: &str) -> bool {
        let is_it = |spec: &str| {
            spec.strip_prefix(path).is_some_and(|rest| matches!(rest, "/?" | "/[]/?" | " ASC" | " DESC"))
        };
        self.single.iter().chain(self.composite.iter().flatten()).any(|spec| is_it(spec))
    }
}

impl Planner<'_> {
    /// Paths of the filter that are not indexed.
    pub(super) fn unindexed(&self) -> Vec<String> {
        let hints = self.hints.all.iter();
        let missing = hints.filter(|hint| {
            self.stored(&hint.path).is_some() && self.index_path(&hint.path, hint.of_item).is_none()
        });
        missing.filter_map(hint_spec).collect()
    }

    /// A composite index over the filter's paths, equalities first, if there are several and none is used.
    pub(super) fn missing_composites(&self, access: &AccessPlan) -> Vec<Vec<String>> {
        let scalar = self.hints.all.iter().filter(|hint| !hint.of_item && self.stored(&hint.path).is_some());
        let (equal, other): (Vec<_>, Vec<_>) = scalar.partition(|hint| spans::one(&hint.spans).is_some());
        let paths = equal.into_iter().chain(other.into_iter().take(1));
        let mut spec: Vec<String> = Vec::new();
        for hint in paths {
            let path = hint_spec(hint).map(|path| path.trim_end_matches("/?").to_owned() + " ASC");
            spec.extend(path.filter(|path| !spec.contains(path)));
        }
        if spec.len() > 1 && access.indexes.composite.is_empty() { vec![spec] } else { Vec::new() }
    }
}

pub(super) fn path_spec(names: &[String]) -> String {
    Path::from_segments(names.iter().map(String::as_str)).map_or_else(String::new, |path| format!("{path}/?"))
}

pub(super) fn hint_spec(hint: &Hint) -> Option<String> {
    let path = Path::from_segments(names(&hint.path)?)?;
    Some(if hint.of_item { format!("{path}/[]/?") } else { format!("{path}/?") })
}

pub(super) fn parts_spec(parts: &[(&[String], bool)]) -> Vec<String> {
    let spec = |(segments, descending): &(&[String], bool)| {
        let path = Path::from_segments(segments.iter().map(String::as_str));
        let path = path.map_or_else(String::new, |path| path.to_string());
        format!("{path} {}", if *descending { "DESC" } else { "ASC" })
    };
    parts.iter().map(spec).collect()
}
