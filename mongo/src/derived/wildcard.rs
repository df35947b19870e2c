//! Wildcard indexes: every path of a document with its values.

use bson::{RawArrayBuf, RawBson, RawDocument};

use crate::values::{Ref, as_double, field, fields, items};

/// Which paths are in an index.
#[derive(Debug, Clone)]
pub(crate) struct Wildcard {
    /// Below this path; empty for all.
    below: String,
    /// Of those, only these, or all but these.
    listed: Vec<String>,
    includes: bool,
    with_id: bool,
}

/// Values of one document at most.
const VALUES_MAX: usize = 10_000;

/// Deeper than this nothing is indexed.
const DEPTH_MAX: usize = 100;

impl Wildcard {
    /// Reads the field and its projection.
    pub(crate) fn of(path: &str, spec: &RawDocument) -> Wildcard {
        let below = path.strip_suffix("$**").unwrap_or_default().trim_end_matches('.').to_string();
        let mut wildcard = Wildcard { below, listed: Vec::new(), includes: false, with_id: false };
        let projection = field(spec, "wildcardProjection").and_then(|projection| projection.as_document());
        if let Some(projection) = projection {
            wildcard.read(projection, "");
        }
        wildcard
    }

    fn read(&mut self, projection: &RawDocument, before: &str) {
        for (name, value) in fields(projection) {
            let path = joined(before, name);
            if let Ref::Document(inner) = value {
                self.read(inner, &path);
                continue;
            }
            let is_in = !matches!(value, Ref::Boolean(false)) && as_double(value) != Some(0.0);
            if path == "_id" {
                self.with_id = is_in;
            } else {
                self.includes = is_in;
                self.listed.push(path);
            }
        }
    }

    /// Whether all values at a path are in the index.
    pub(crate) fn has(&self, path: &str) -> bool {
        if !self.below.is_empty() {
            return is_below(path, &self.below);
        }
        if is_below(path, "_id") {
            return self.with_id;
        }
        match (self.listed.is_empty(), self.includes) {
            (true, _) => true,
            (false, true) => self.listed.iter().any(|listed| is_below(path, listed)),
            (false, false) => {
                !self.listed.iter().any(|listed| is_below(path, listed) || is_below(listed, path))
            }
        }
    }

    /// Whether something at a path, or below it, may be in the index.
    fn enters(&self, path: &str) -> bool {
        let leads_to = |other: &str| is_below(path, other) || is_below(other, path);
        if !self.below.is_empty() {
            return leads_to(&self.below);
        }
        if is_below(path, "_id") {
            return self.with_id;
        }
        match (self.listed.is_empty(), self.includes) {
            (true, _) => true,
            (false, true) => self.listed.iter().any(|listed| leads_to(listed)),
            (false, false) => !self.listed.iter().any(|listed| is_below(path, listed)),
        }
    }

    /// The values of a document.
    pub(crate) fn values(&self, document: &RawDocument) -> Result<Vec<RawBson>, String> {
        let mut found = Vec::new();
        for (name, value) in fields(document) {
            self.collect(name, value, 0, &mut found)?;
        }
        Ok(found)
    }

    fn collect(
        &self,
        path: &str,
        value: Ref<'_>,
        depth: usize,
        found: &mut Vec<RawBson>,
    ) -> Result<(), String> {
        if !self.enters(path) || depth > DEPTH_MAX {
            return Ok(());
        }
        match value {
            Ref::Document(object) if !object.is_empty() => {
                for (name, value) in fields(object) {
                    self.collect(&joined(path, name), value, depth + 1, found)?;
                }
                Ok(())
            }
            Ref::Array(list) if !list.is_empty() => {
                for item in items(list) {
                    match item {
                        // An array inside an array is a value: paths do not lead into it.
                        Ref::Array(_) => self.add(path, item, found)?,
                        item => self.collect(path, item, depth + 1, found)?,
                    }
                }
                Ok(())
            }
            Ref::Array(_) => self.add(path, Ref::Undefined, found),
            value => self.add(path, value, found),
        }
    }

    fn add(&self, path: &str, value: Ref<'_>, found: &mut Vec<RawBson>) -> Result<(), String> {
        if !self.has(path) && !self.listed_within(path) {
            return Ok(());
        }
        if found.len() >= VALUES_MAX {
            return Err(format!("a document has more than {VALUES_MAX} values in a wildcard index"));
        }
        found.push(entry(path, value));
        Ok(())
    }

    /// Whether a path lies in what the index is of, for values that stand there.
    fn listed_within(&self, path: &str) -> bool {
        // Only an exclusion below it keeps `has` from saying so, and that is of other values.
        self.below.is_empty() && !self.includes && self.enters(path)
    }
}

/// The value in the index of a value at a path.
pub(crate) fn entry(path: &str, value: Ref<'_>) -> RawBson {
    let mut pair = RawArrayBuf::new();
    pair.push(path);
    pair.push(RawBson::from(value));
    RawBson::Array(pair)
}

fn joined(before: &str, name: &str) -> String {
    if before.is_empty() { name.to_string() } else { format!("{before}.{name}") }
}

/// Whether a path is another, or leads on from it.
fn is_below(path: &str, other: &str) -> bool {
    path.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use bson::rawdoc;

    use super::*;

    fn shown(path: &str, spec: &RawDocument, document: &RawDocument) -> String {
        let values = Wildcard::of(path, spec).values(document).unwrap();
        let text = |value: &RawBson| {
            let items = value.as_array().unwrap();
            let mut items = items.into_iter().map(|item| bson::Bson::try_from(item.unwrap()).unwrap());
            format!("{}={}", items.next().unwrap().as_str().unwrap(), items.next().unwrap())
        };
        values.iter().map(text).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn every_leaf_is_a_value() {
        let document = rawdoc! { "_id": 1, "a": { "b": 2, "c": [3, { "d": 4 }] }, "e": {}, "f": [] };
        assert_eq!(shown("$**", &rawdoc! {}, &document), "a.b=2 a.c=3 a.c.d=4 e={} f=undefined");
        assert_eq!(shown("a.c.$**", &rawdoc! {}, &document), "a.c=3 a.c.d=4");
        let only = rawdoc! { "wildcardProjection": { "a.b": 1, "_id": 1 } };
        assert_eq!(shown("$**", &only, &document), "_id=1 a.b=2");
        let but = rawdoc! { "wildcardProjection": { "a": 0 } };
        assert_eq!(shown("$**", &but, &document), "e={} f=undefined");
    }

    #[test]
    fn a_path_is_in_the_index_if_all_its_values_are() {
        let of = |path, spec: &RawDocument| Wildcard::of(path, spec);
        assert!(of("$**", &rawdoc! {}).has("x.y") && !of("$**", &rawdoc! {}).has("_id"));
        assert!(of("a.$**", &rawdoc! {}).has("a.b") && !of("a.$**", &rawdoc! {}).has("ab"));
        let but = of("$**", &rawdoc! { "wildcardProjection": { "a.b": 0 } });
        assert!(!but.has("a.b.c") && !but.has("a") && but.has("a.c"));
    }
}
