//! Plans that give documents in the order of a sort: along an index, with nothing to hold and nothing to sort.
//!
//! An index is in the order of its first field, or of the one after those that have one value each. A document with an array
//! comes by several times; the first time is at the item that it is sorted by, as long as no range leaves that one out, so
//! the fields of the order are not narrowed.

use bson::RawBson;
use mayfly_engine::{
    CollectionRange, Direction,
    collection::{FieldKind, IndexRule},
    secondary::encode_bound,
};

use super::searches::has_number;
use super::{
    PREFIX_BYTES_MAX, Plan, by_index, has_all, has_derived, is_simple, is_usable, plain, shares_array,
};
use crate::{
    filter::{Bound, Condition, Filter},
    namespace::Collection,
};

/// Fields of an order. With more of them a key may be too long to hold them all.
const FIELDS_MAX: usize = 8;

/// Along an index that is in this order, which narrows no less than any other plan; the names of fields with whether each
/// goes down.
pub fn in_order(
    collection: &Collection,
    filter: &Filter,
    order: &[(&str, bool)],
    collated: bool,
    hint: Option<&str>,
) -> Option<(Plan, Direction)> {
    let is_plain = collection.container.is_collection() && !collated;
    if !is_plain
        || filter.text().is_some()
        || filter.is_by_distance()
        || order.is_empty()
        || order.len() > FIELDS_MAX
    {
        return None;
    }
    // A number may name an item of an array, and the index has items by the array's path too.
    if order.iter().any(|(path, _)| has_number(path)) {
        return None;
    }
    let narrowing = filter.narrowing();
    let conditions: Vec<&Condition<'_>> = narrowing.all.iter().collect();
    // Nothing is better than to know the documents by name.
    let by_name = conditions.iter().any(|condition| condition.path == "_id" && plain(&condition.bound));
    if by_name && hint.is_none() {
        return None;
    }
    let rules = collection.container.definition().index_rules.iter().filter(|rule| is_usable(rule));
    let rules: Vec<&IndexRule> = rules
        .filter(|rule| !rule.folded && hint.is_none_or(|hint| hint == rule.name))
        .filter(|rule| rule.filter.is_empty() || has_all(rule, &conditions))
        .collect();
    let candidates = rules.iter().filter_map(|rule| along(rule, &conditions, order));
    let (score, plan, direction) = candidates.max_by_key(|(score, _, _)| *score)?;
    let narrower =
        |rule: &&IndexRule| by_index(rule, &conditions, None).is_some_and(|(other, _)| other > score);
    (!rules.iter().any(narrower)).then_some((plan, direction))
}

/// The part of one index that is in the order, how much it is narrowed, and which way to go.
fn along(
    rule: &IndexRule,
    conditions: &[&Condition<'_>],
    order: &[(&str, bool)],
) -> Option<(usize, Plan, Direction)> {
    let one_value = |path: &str| {
        conditions.iter().find_map(|condition| match &condition.bound {
            Bound::OneOf(values) if condition.path == path => match values.as_slice() {
                [value] if is_simple(value) => Some(value),
                _ => None,
            },
            _ => None,
        })
    };
    // It lacks the documents without values in that field.
    if has_derived(rule) {
        return None;
    }
    let mut prefix = Vec::new();
    let mut told = 0;
    for (place, field) in rule.fields.iter().enumerate() {
        if order.first().is_some_and(|(path, _)| *path == field.path) {
            break;
        }
        // The parts of one array must not be told apart.
        let value: &RawBson = one_value(&field.path).filter(|_| !shares_array(rule, place))?;
        prefix.extend(encode_bound(value.as_raw_bson_ref(), field.kind));
        told += 1;
    }
    // Behind so much the fields of the order may have been cut off.
    if prefix.len() > PREFIX_BYTES_MAX {
        return None;
    }
    // A sparse index lacks documents without values, unless one of the values is told.
    if rule.sparse && told == 0 {
        return None;
    }
    let fields = rule.fields.get(told..told + order.len())?;
    let mut turned = fields.iter().zip(order).map(|(field, (path, down))| match field.kind {
        FieldKind::Up if field.path == *path => Some(*down),
        FieldKind::Down if field.path == *path => Some(!*down),
        _ => None,
    });
    let first = turned.next()??;
    let shared = (told..told + order.len()).any(|place| shares_array(rule, place));
    if shared || !turned.all(|next| next == Some(first)) {
        return None;
    }
    let direction = if first { Direction::Reverse } else { Direction::Forward };
    let ranges = vec![CollectionRange::beginning_with(rule.number, prefix)];
    let plan = Plan::Index { name: rule.name.clone(), spec: rule.spec.clone(), ranges };
    Some((4 * told, plan, direction))
}

/// Whether a value stands in an index where it stands in the order. A long one may have been cut; an empty array, which comes
/// before null, stands among the nulls.
pub fn is_in_place(value: &RawBson) -> bool {
    // Far less than what is cut, so that all fields of an order have room in one key.
    const BYTES_MAX: usize = 128;
    match value {
        RawBson::String(text) | RawBson::Symbol(text) => text.len() <= BYTES_MAX,
        RawBson::Binary(binary) => binary.bytes.len() <= BYTES_MAX,
        RawBson::Double(_) | RawBson::Int32(_) | RawBson::Int64(_) | RawBson::Decimal128(_) => true,
        RawBson::Boolean(_) | RawBson::ObjectId(_) | RawBson::DateTime(_) | RawBson::Timestamp(_) => true,
        RawBson::MinKey | RawBson::MaxKey => true,
        _ => false,
    }
}
