//! The order of documents: by keys up or down, an array by its smallest or largest item.
//!
//! A sort key is computed once per document and compared many times. A missing field sorts as null, an empty
//! array before it.

use std::cmp::Ordering;

use bson::RawDocument;

use crate::context::Context;
use crate::error::{BAD_VALUE, Result, bail};
use crate::path::{Path, parse_index};
use crate::values::{Ref, Value, as_double, field, fields, is_number, items};

/// One part of a sort pattern.
#[derive(Debug, Clone)]
struct Part {
    path: Path,
    descending: bool,
    /// A score or the like, instead of a field.
    meta: Option<String>,
}

/// A parsed sort pattern.
#[derive(Debug, Clone)]
pub struct SortPattern {
    parts: Vec<Part>,
}

/// Most fields that a pattern may have.
const PARTS_MAX: usize = 32;

impl SortPattern {
    /// Parses `{a: 1, "b.c": -1, score: {$meta: "textScore"}}`.
    pub fn parse(pattern: &RawDocument) -> Result<SortPattern> {
        for (name, value) in fields(pattern) {
            if !name.is_empty() && is_number(value) {
                crate::expression::split_path(name)?;
            }
        }
        Self::parse_any_names(pattern)
    }

    /// The same for items of an array, whose names may begin with a dollar sign.
    pub(crate) fn parse_any_names(pattern: &RawDocument) -> Result<SortPattern> {
        let mut parts: Vec<Part> = Vec::new();
        for (name, value) in fields(pattern) {
            parts.push(part(name, value)?);
        }
        if parts.len() > PARTS_MAX {
            bail!(13103, "too many compound keys");
        }
        for (at, part) in parts.iter().enumerate() {
            if parts.iter().skip(at + 1).any(|other| other.path == part.path) {
                bail!(
                    7472500,
                    "$sort key must not contain duplicate keys (duplicate: '{}')",
                    part.path.dotted
                );
            }
        }
        Ok(SortPattern { parts })
    }

    /// Whether nothing is asked for.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// How many fields it names.
    pub(crate) fn len(&self) -> usize {
        self.parts.len()
    }

    /// The paths and whether each goes down, for a planner; none if metadata takes part.
    pub fn paths(&self) -> Option<Vec<(&str, bool)>> {
        let plain = self.parts.iter().all(|part| part.meta.is_none());
        plain.then(|| self.parts.iter().map(|part| (part.path.dotted.as_str(), part.descending)).collect())
    }

    /// Whether it is by `_id` alone. No document has an array there; of a group it is one value, and not its items.
    fn is_by_id(&self) -> bool {
        matches!(&self.parts[..], [part] if part.meta.is_none() && part.path.dotted == "_id")
    }

    /// What the document is sorted by.
    pub fn key(&self, document: &RawDocument, context: &Context<'_>) -> Result<Vec<Value>> {
        if self.is_by_id() {
            return Ok(vec![field(document, "_id").map_or(Value::Null, Value::from)]);
        }
        self.parts
            .iter()
            .try_fold((Vec::new(), None), |(mut keys, mut array): (Vec<Value>, Option<&str>), part| {
                let (key, through_array) = part.key(document, context)?;
                if through_array {
                    let root = part.path.parts().first().map(String::as_str).unwrap_or_default();
                    if array.is_some_and(|other| other != root) {
                        bail!(BAD_VALUE, "cannot sort with keys that are parallel arrays");
                    }
                    array = Some(root);
                }
                keys.push(key);
                Ok((keys, array))
            })
            .map(|(keys, _)| keys)
    }

    /// Compares two keys.
    pub fn compare(&self, a: &[Value], b: &[Value], context: &Context<'_>) -> Ordering {
        for ((part, a), b) in self.parts.iter().zip(a).zip(b) {
            let ordering = context.compare(a.as_raw_bson_ref(), b.as_raw_bson_ref());
            let ordering = if part.descending { ordering.reverse() } else { ordering };
            if ordering != Ordering::Equal {
                return ordering;
            }
        }
        Ordering::Equal
    }

    /// Compares items of an array by their fields; what is no object has none.
    pub(crate) fn compare_values(&self, a: Ref<'_>, b: Ref<'_>, context: &Context<'_>) -> Ordering {
        let key = |value: Ref<'_>| match value {
            Ref::Document(object) => self.key(object, context).unwrap_or_default(),
            _ => self.parts.iter().map(|_| Value::Null).collect(),
        };
        self.compare(&key(a), &key(b), context)
    }
}

fn part(name: &str, value: Ref<'_>) -> Result<Part> {
    if name.is_empty() {
        bail!(40352, "FieldPath cannot be constructed with empty string");
    }
    let meta = match value {
        Ref::Document(object) => match field(object, "$meta") {
            Some(Ref::String(
                meta @ ("textScore" | "randVal" | "geoNearDistance" | "searchScore" | "vectorSearchScore"),
            )) => Some(meta.to_string()),
            Some(_) => bail!(31138, "Illegal $meta sort"),
            None => bail!(15974, "Illegal key in $sort specification: {name}"),
        },
        value if is_number(value) => None,
        _ => bail!(15974, "Illegal key in $sort specification: {name}"),
    };
    let descending = match as_double(value) {
        None => true,
        Some(1.0) => false,
        Some(-1.0) => true,
        Some(_) => bail!(15975, "$sort key ordering must be 1 (for ascending) or -1 (for descending)"),
    };
    Ok(Part { path: Path::new(name), descending, meta })
}

impl Part {
    /// The smallest value (or the largest), and whether it came out of an array.
    fn key(&self, document: &RawDocument, context: &Context<'_>) -> Result<(Value, bool)> {
        if let Some(meta) = &self.meta {
            return Ok((context.meta(document, meta).unwrap_or(Value::Null), false));
        }
        let (mut best, mut through_array): (Option<Value>, bool) = (None, false);
        let mut offer = |value: Ref<'_>| {
            let better = best.as_ref().is_none_or(|best| {
                let ordering = context.compare(value, best.as_raw_bson_ref());
                if self.descending { ordering.is_gt() } else { ordering.is_lt() }
            });
            if better {
                best = Some(value.into());
            }
        };
        sorted_by(Ref::Document(document), self.path.parts(), &mut through_array, &mut offer)?;
        Ok((best.unwrap_or(Value::Null), through_array))
    }
}

/// Shows all that a document may be sorted by at a path, as an index has it: the items of arrays, undefined for an array
/// without any, null where nothing is. The number of an item in a path is that item alone, and stands for itself if it is an array.
fn sorted_by(
    value: Ref<'_>,
    path: &[String],
    through_array: &mut bool,
    offer: &mut dyn FnMut(Ref<'_>),
) -> Result<()> {
    match (value, path.split_first()) {
        (Ref::Array(list), first) => {
            *through_array = true;
            if let Some((number, rest)) = first
                && let Some(place) = parse_index(number)
                && let Some(item) = items(list).nth(place)
            {
                let is_name =
                    |item: Ref<'_>| matches!(item, Ref::Document(object) if field(object, number).is_some());
                if items(list).any(is_name) {
                    bail!(
                        16746,
                        "Ambiguous field name found in array (do not use numeric field names in embedded elements in \
                         an array), field: '{number}'"
                    );
                }
                match item {
                    Ref::Array(inner) if rest.is_empty() && inner.is_empty() => offer(Ref::Undefined),
                    item if rest.is_empty() => offer(item),
                    item => sorted_by(item, rest, through_array, offer)?,
                }
                return Ok(());
            }
            if list.is_empty() {
                offer(if path.is_empty() { Ref::Undefined } else { Ref::Null });
            }
            for item in items(list) {
                match item {
                    item if path.is_empty() => offer(item),
                    Ref::Document(_) => sorted_by(item, path, through_array, offer)?,
                    // An array inside an array is a value, and is not entered by name.
                    _ => offer(Ref::Null),
                }
            }
        }
        (value, None) => offer(value),
        (Ref::Document(object), Some((first, rest))) => match field(object, first) {
            Some(found) => sorted_by(found, rest, through_array, offer)?,
            None => offer(Ref::Null),
        },
        _ => offer(Ref::Null),
    }
    Ok(())
}
