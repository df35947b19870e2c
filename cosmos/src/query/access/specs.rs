//! Indexes as explanations name them: those that are used.

use mayfly_sql::Hint;
use mayfly_value::path::Path;

use super::names;

/// Indexes as an explanation names them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Indexes {
    /// Paths whose index is used, such as `/name/?`.
    pub single: Vec<String>,
    /// Composite indexes that are used: `/name ASC`, `/age DESC`.
    pub composite: Vec<Vec<String>>,
    /// Paths whose full-text index is used, such as `/text`.
    pub texts: Vec<String>,
    /// Paths whose vector index is used, such as `/vector`.
    pub vectors: Vec<String>,
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
