//! Where to look: from a filter to ranges of `_id` or of an index.
//!
//! A plan may be wider than the filter and is never narrower. Strings are only narrowed where no collation says what is
//! equal; the values of a range are those of one type class.

use std::ops::Bound as End;

use bson::{RawBson, RawBsonRef};
use mayfly_engine::{
    CollectionRange, DocumentId,
    collection::{FieldKind, IndexRule},
    secondary::encode_bound,
};
use mayfly_value::order::{Order, type_rank};

use crate::{
    filter::{Bound, Condition, Filter},
    namespace::Collection,
};

/// Where to look.
#[derive(Clone, Debug)]
pub enum Plan {
    /// At everything.
    Scan,
    /// At the documents with these ids.
    Ids(Vec<DocumentId>),
    /// At ranges of `_id`.
    IdRange(Vec<CollectionRange>),
    /// At ranges of an index.
    Index {
        /// The index's name.
        name: String,
        /// Its key pattern, as BSON.
        spec: Vec<u8>,
        /// The ranges, in order.
        ranges: Vec<CollectionRange>,
    },
}

/// The most values of an `$in` that are looked up one by one.
const VALUES_MAX: usize = 10_000;

/// Keys in an index are cut somewhere above this; what is longer does not narrow.
const PREFIX_BYTES_MAX: usize = 2048;

/// What to look at for a filter.
pub fn plan(collection: &Collection, filter: &Filter, collated: bool, hint: Option<&str>) -> Plan {
    if !collection.container.is_collection() || hint == Some("$natural") {
        return Plan::Scan;
    }
    let narrowing = filter.narrowing();
    let usable: Vec<&Condition<'_>> =
        narrowing.all.iter().filter(|condition| !collated || plain(&condition.bound)).collect();
    if hint.is_none_or(|hint| hint == "_id_")
        && let Some(plan) = by_id(&usable)
    {
        return plan;
    }
    let rules = collection.container.definition().index_rules.iter();
    let rules = rules.filter(|rule| usable_index(rule, hint));
    let ranked = rules.filter_map(|rule| by_index(rule, &usable)).max_by_key(|(score, _)| *score);
    ranked.map_or(Plan::Scan, |(_, plan)| plan)
}

/// Whether a bound means the same under every collation.
fn plain(bound: &Bound) -> bool {
    fn scalar(value: &RawBson) -> bool {
        !matches!(value, RawBson::String(_) | RawBson::Symbol(_) | RawBson::Document(_) | RawBson::Array(_))
    }
    match bound {
        Bound::OneOf(values) => values.iter().all(scalar),
        Bound::Above(value, _) | Bound::Below(value, _) => scalar(value),
        Bound::Prefix(_) => false,
        Bound::Exists => true,
    }
}

/// Arrays match by their items too, so a range of the value itself would miss them.
fn is_simple(value: &RawBson) -> bool {
    !matches!(value, RawBson::Array(_) | RawBson::Null | RawBson::Undefined | RawBson::RegularExpression(_))
}

fn by_id(conditions: &[&Condition<'_>]) -> Option<Plan> {
    let on_id = || conditions.iter().filter(|condition| condition.path == "_id");
    for condition in on_id() {
        if let Bound::OneOf(values) = &condition.bound
            && values.len() <= VALUES_MAX
            && values.iter().all(|value| is_simple(value) || matches!(value, RawBson::Null))
        {
            let mut ids: Vec<DocumentId> =
                values.iter().map(|value| DocumentId::value(value.as_raw_bson_ref())).collect();
            ids.sort();
            ids.dedup();
            return Some(Plan::Ids(ids));
        }
    }
    let (mut low, mut high) = (None, None);
    for condition in on_id() {
        match &condition.bound {
            Bound::Above(value, _) if in_order(value) => low = Some(value),
            Bound::Below(value, _) if in_order(value) => high = Some(value),
            _ => {}
        }
    }
    low.or(high)?;
    if let (Some(low), Some(high)) = (low, high)
        && rank(low) != rank(high)
    {
        return Some(Plan::Ids(Vec::new()));
    }
    // Both ends stay open where the class is left; the filter says exactly what belongs.
    let ends = |value: Option<&RawBson>| match value {
        Some(value) => End::Included(DocumentId::value(value.as_raw_bson_ref())),
        None => End::Unbounded,
    };
    let (low, high) = (ends(low), ends(high));
    Some(Plan::IdRange(vec![CollectionRange::Ids { low, high }]))
}

/// Whether ids stand in the order of such values. Very long texts do not.
fn in_order(value: &RawBson) -> bool {
    matches!(
        value,
        RawBson::Int32(_)
            | RawBson::Int64(_)
            | RawBson::Double(_)
            | RawBson::ObjectId(_)
            | RawBson::DateTime(_)
    )
}

fn rank(value: &RawBson) -> u8 {
    type_rank(Order::Mongo, value.as_raw_bson_ref())
}

fn usable_index(rule: &IndexRule, hint: Option<&str>) -> bool {
    // A sparse or partial index lacks documents, and which filters need none of those is not worked out here; one that
    // has a collation holds strings in another order than theirs.
    let plain = !rule.building && rule.has_entries() && rule.filter.is_empty() && !rule.sparse;
    let spec = bson::RawDocument::from_bytes(&rule.spec);
    let hidden = spec.is_ok_and(|spec| matches!(spec.get("hidden"), Ok(Some(_))));
    plain && !hidden && hint.is_none_or(|hint| hint == rule.name)
}

/// The ranges of an index that a filter leaves, and how much they narrow.
fn by_index(rule: &IndexRule, conditions: &[&Condition<'_>]) -> Option<(usize, Plan)> {
    let mut prefixes: Vec<Vec<u8>> = vec![Vec::new()];
    let mut score = 0;
    let mut ranges = None;
    for field in &rule.fields {
        if prefixes.iter().any(|prefix| prefix.len() > PREFIX_BYTES_MAX) {
            break;
        }
        let mut on_field = conditions.iter().filter(|condition| condition.path == field.path);
        let equal = on_field.clone().find_map(|condition| match &condition.bound {
            Bound::OneOf(values) if values.iter().all(is_simple) => Some(values),
            _ => None,
        });
        if let Some(values) = equal {
            if prefixes.len() * values.len() > VALUES_MAX {
                break;
            }
            let encoded: Vec<Vec<u8>> =
                values.iter().map(|value| encode_bound(value.as_raw_bson_ref(), field.kind)).collect();
            prefixes = prefixes
                .iter()
                .flat_map(|prefix| encoded.iter().map(move |value| [&prefix[..], &value[..]].concat()))
                .collect();
            score += 2;
            continue;
        }
        if field.kind == FieldKind::Hashed {
            break;
        }
        // One bound is enough: on an array, two bounds may be kept by two different items.
        let range = on_field.find_map(|condition| one_sided(&condition.bound, field.kind));
        if let Some((low, high)) = range {
            score += 1;
            ranges = Some(
                prefixes.iter().map(|prefix| bounded(rule.number, prefix, &low, &high)).collect::<Vec<_>>(),
            );
        }
        break;
    }
    if score == 0 {
        return None;
    }
    let whole = |prefix: &Vec<u8>| CollectionRange::Index {
        number: rule.number,
        low: End::Included(prefix.clone()),
        high: End::Included(prefix.clone()),
    };
    let mut ranges = ranges.unwrap_or_else(|| prefixes.iter().map(whole).collect());
    ranges.dedup_by(|a, b| format!("{a:?}") == format!("{b:?}"));
    Some((score, Plan::Index { name: rule.name.clone(), spec: rule.spec.clone(), ranges }))
}

type Ends = (End<Vec<u8>>, End<Vec<u8>>);

fn one_sided(bound: &Bound, kind: FieldKind) -> Option<Ends> {
    let (low, high) = match bound {
        Bound::Above(value, _) if is_simple(value) => {
            let from = encode_bound(value.as_raw_bson_ref(), kind);
            (End::Included(from), End::Unbounded)
        }
        Bound::Below(value, _) if is_simple(value) => {
            let to = encode_bound(value.as_raw_bson_ref(), kind);
            (End::Unbounded, End::Included(to))
        }
        Bound::Prefix(text) if !text.is_empty() && kind == FieldKind::Up => {
            let mut from = encode_bound(RawBsonRef::String(text), kind);
            // Without the end of the text.
            from.truncate(from.len().saturating_sub(2));
            (End::Included(from.clone()), End::Included(from))
        }
        _ => return None,
    };
    Some(if kind == FieldKind::Down && !matches!(bound, Bound::Prefix(_)) {
        (high, low)
    } else {
        (low, high)
    })
}

fn bounded(number: u32, prefix: &[u8], low: &End<Vec<u8>>, high: &End<Vec<u8>>) -> CollectionRange {
    let at = |end: &End<Vec<u8>>| match end {
        End::Included(bytes) => End::Included([prefix, &bytes[..]].concat()),
        End::Excluded(bytes) => End::Excluded([prefix, &bytes[..]].concat()),
        End::Unbounded => End::Included(prefix.to_vec()),
    };
    CollectionRange::Index { number, low: at(low), high: at(high) }
}
