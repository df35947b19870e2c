//! Filters that an index answers alone: its entries in some ranges are those of the matching documents, and no others.
//!
//! That is so where every condition is on a field of the index, each field has one, and the values stand in keys as they
//! are, neither cut nor hashed. An array is no exception: one condition on it is kept by one of its items, which has its
//! entry.

use bson::RawBson;
use mayfly_engine::{
    CollectionRange, Repeats,
    collection::{FieldKind, IndexRule},
    secondary::encode_bound,
};

use crate::{
    filter::{Bound, Condition, Filter},
    namespace::Collection,
    planner::{has_all, has_derived, is_usable, shares_array},
};

/// Ranges of an index whose entries are those of the documents that match.
pub struct Covered {
    /// The index's name.
    pub index: String,
    /// The ranges.
    pub ranges: Vec<CollectionRange>,
    /// Whether a document may have several entries in them.
    pub repeats: Repeats,
}

/// Lookups of one count at most.
const RANGES_MAX: usize = 1000;

/// Longer texts might stand in a key without their end.
const TEXT_BYTES_MAX: usize = 256;

/// How an index answers a filter alone, if one does.
pub fn covered(
    collection: &Collection,
    filter: &Filter,
    collated: bool,
    hint: Option<&str>,
) -> Option<Covered> {
    if collated || !collection.container.is_collection() {
        return None;
    }
    let conditions = filter.conditions().filter(|conditions| !conditions.is_empty())?;
    let borrowed: Vec<&Condition<'_>> = conditions.iter().collect();
    let rules = collection.container.definition().index_rules.iter();
    let usable = rules.filter(|rule| {
        is_usable(rule)
            && !rule.folded
            && hint.is_none_or(|hint| hint == rule.name)
            && (rule.filter.is_empty() || has_all(rule, &borrowed))
    });
    usable.filter_map(|rule| by_rule(rule, &conditions)).min_by_key(|covered| covered.ranges.len())
}

fn by_rule(rule: &IndexRule, conditions: &[Condition<'_>]) -> Option<Covered> {
    if conditions.len() > rule.fields.len() || has_derived(rule) {
        return None;
    }
    let mut prefixes = vec![Vec::new()];
    for (place, field) in rule.fields.iter().take(conditions.len()).enumerate() {
        let mut on_field = conditions.iter().filter(|condition| condition.path == field.path);
        let (Some(condition), None) = (on_field.next(), on_field.next()) else { return None };
        let Bound::OneOf(values) = &condition.bound else { return None };
        let ordered = matches!(field.kind, FieldKind::Up | FieldKind::Down);
        if !ordered || shares_array(rule, place) || !values.iter().all(stands_whole) {
            return None;
        }
        if prefixes.len() * values.len() > RANGES_MAX {
            return None;
        }
        let mut encoded: Vec<Vec<u8>> =
            values.iter().map(|value| encode_bound(value.as_raw_bson_ref(), field.kind)).collect();
        encoded.sort();
        encoded.dedup();
        prefixes = prefixes
            .iter()
            .flat_map(|prefix: &Vec<u8>| encoded.iter().map(move |value| [&prefix[..], &value[..]].concat()))
            .collect();
    }
    // All fields are told and there is one range: the keys of a document differ, so it has one entry there.
    let is_point = conditions.len() == rule.fields.len() && prefixes.len() == 1;
    let repeats = if is_point { Repeats::Never } else { Repeats::Possible };
    let ranges = prefixes.into_iter().map(|prefix| CollectionRange::beginning_with(rule.number, prefix));
    Some(Covered { index: rule.name.clone(), ranges: ranges.collect(), repeats })
}

/// Whether a value stands in a key as it is, and equal ones alike.
fn stands_whole(value: &RawBson) -> bool {
    match value {
        RawBson::Int32(_) | RawBson::Int64(_) | RawBson::Boolean(_) => true,
        RawBson::ObjectId(_) | RawBson::DateTime(_) => true,
        RawBson::Double(number) => !number.is_nan(),
        RawBson::String(text) => text.len() <= TEXT_BYTES_MAX,
        _ => false,
    }
}
