//! Ranges of indexes with a derived field: the words of a search, the cells of an area, a path among all.

use std::ops::Bound as End;

use bson::{RawArrayBuf, RawBson, RawBsonRef, RawDocument};
use mayfly_engine::{
    CollectionRange,
    collection::{FieldKind, IndexRule},
    secondary::encode_bound,
};

use super::{Ends, Plan, VALUES_MAX, bounded, is_simple};
use crate::{
    derived::{Kind, cells::Grid, wildcard::entry},
    filter::{Bound, Condition},
    geo::{Area, Surface},
    text::TextQuery,
};

fn kind_of(rule: &IndexRule) -> Option<Kind> {
    Kind::of(RawDocument::from_bytes(&rule.spec).ok()?)
}

fn planned(rule: &IndexRule, ranges: Vec<CollectionRange>) -> Plan {
    Plan::Index { name: rule.name.clone(), spec: rule.spec.clone(), ranges }
}

fn encoded(value: RawBsonRef<'_>) -> Vec<u8> {
    encode_bound(value, FieldKind::Up)
}

/// The values of the fields before the derived one, which must be told; none if they are not.
fn prefixes(rule: &IndexRule, conditions: &[&Condition<'_>]) -> Option<Vec<Vec<u8>>> {
    let mut prefixes: Vec<Vec<u8>> = vec![Vec::new()];
    for field in rule.fields.iter().take_while(|field| field.kind != FieldKind::Derived) {
        let values = conditions.iter().find_map(|condition| match &condition.bound {
            Bound::OneOf(values) if condition.path == field.path && values.iter().all(is_simple) => {
                Some(values)
            }
            _ => None,
        })?;
        if prefixes.len() * values.len() > VALUES_MAX {
            return None;
        }
        let values: Vec<_> =
            values.iter().map(|value| encode_bound(value.as_raw_bson_ref(), field.kind)).collect();
        prefixes = prefixes
            .iter()
            .flat_map(|prefix| values.iter().map(move |value| [&prefix[..], &value[..]].concat()))
            .collect();
    }
    Some(prefixes)
}

/// Each word of a search, if this is the index of words.
pub(super) fn by_text(rule: &IndexRule, query: &TextQuery, conditions: &[&Condition<'_>]) -> Option<Plan> {
    let Some(Kind::Text(index)) = kind_of(rule) else { return None };
    let prefixes = prefixes(rule, conditions)?;
    let mut ranges = Vec::new();
    for term in query.index_terms(&index) {
        let term = encoded(RawBsonRef::String(&term));
        let whole = |prefix: &Vec<u8>| [&prefix[..], &term[..]].concat();
        ranges.extend(
            prefixes.iter().map(|prefix| CollectionRange::beginning_with(rule.number, whole(prefix))),
        );
    }
    Some(planned(rule, ranges))
}

/// What conditions leave of an index of places or of all paths, and how much they narrow.
pub(super) fn by_derived(rule: &IndexRule, conditions: &[&Condition<'_>]) -> Option<(usize, Plan)> {
    let prefixes = prefixes(rule, conditions)?;
    let told = 4 * rule.fields.iter().take_while(|field| field.kind != FieldKind::Derived).count();
    let (score, ends) = match kind_of(rule)? {
        Kind::Text(_) => return None,
        Kind::Sphere(path) => (2, cells(&area(conditions, &path, Surface::Sphere)?.cells(Grid::DEGREES))),
        Kind::Plane(path, grid) => (2, cells(&area(conditions, &path, Surface::Plane)?.cells(grid))),
        Kind::Wildcard(wildcard) => conditions
            .iter()
            .filter(|condition| wildcard.has(condition.path) && !has_number(condition.path))
            .filter_map(|condition| at_path(condition))
            .max_by_key(|(score, _)| *score)?,
    };
    if prefixes.len() * ends.len() > VALUES_MAX {
        return None;
    }
    let ranges = prefixes
        .iter()
        .flat_map(|prefix| ends.iter().map(|(low, high)| bounded(rule.number, prefix, low, high)))
        .collect();
    Some((told + score, planned(rule, ranges)))
}

fn beginning(bytes: Vec<u8>) -> Ends {
    (End::Included(bytes.clone()), End::Included(bytes))
}

fn area<'c>(conditions: &'c [&Condition<'_>], path: &str, surface: Surface) -> Option<&'c Area> {
    conditions.iter().find_map(|condition| match &condition.bound {
        Bound::Place(area) if condition.path == path && area.surface == surface => Some(area),
        _ => None,
    })
}

/// What lies in the cells, and the larger cells around them: a place that is no point may be in one of those.
fn cells(names: &[String]) -> Vec<Ends> {
    let mut around: Vec<&str> = names
        .iter()
        .flat_map(|name| (0..name.len()).map(|end| name.get(..end).unwrap_or_default()))
        .collect();
    around.sort_unstable();
    around.dedup();
    let inside = names.iter().map(|name| {
        let mut bytes = encoded(RawBsonRef::String(name));
        // Without the end of the text.
        bytes.truncate(bytes.len().saturating_sub(2));
        beginning(bytes)
    });
    inside.chain(around.into_iter().map(|name| beginning(encoded(RawBsonRef::String(name))))).collect()
}

/// A step that names an item of an array: the index has items by the array's path only.
pub(super) fn has_number(path: &str) -> bool {
    path.split('.').any(|step| step.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The values of a path among all paths. An index on the path itself would be better.
fn at_path(condition: &Condition<'_>) -> Option<(usize, Vec<Ends>)> {
    let open = |value: RawBson, cut: usize| {
        let mut bytes = encoded(value.as_raw_bson_ref());
        bytes.truncate(bytes.len().saturating_sub(cut));
        bytes
    };
    // Without the end of the array, so that whatever follows belongs to it.
    let with = |value: &RawBson| open(entry(condition.path, value.as_raw_bson_ref()), 1);
    let mut alone = RawArrayBuf::new();
    alone.push(condition.path);
    let path = || RawBson::Array(alone.clone());
    let scalar = |value: &RawBson| is_simple(value) && !matches!(value, RawBson::Document(_));
    Some(match &condition.bound {
        Bound::OneOf(values) if values.iter().all(scalar) => {
            (3, values.iter().map(|value| beginning(with(value))).collect())
        }
        Bound::Above(value, _) if scalar(value) => {
            (1, vec![(End::Included(with(value)), End::Included(open(path(), 1)))])
        }
        Bound::Below(value, _) if scalar(value) => {
            (1, vec![(End::Included(open(path(), 1)), End::Included(with(value)))])
        }
        // Also what lies below the path: without the ends of array and text.
        Bound::Exists => (1, vec![beginning(open(path(), 3))]),
        _ => return None,
    })
}
