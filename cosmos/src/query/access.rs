//! Where a query has to look.
//!
//! What the filter says about the partition key narrows the scope to a logical partition; what it says about an indexed
//! path gives an index range. Both may be wider than the filter, never narrower: the filter itself is evaluated on
//! every document.

use std::ops::Bound;

use mayfly_engine::{Access, Container, HashRange};
use mayfly_sql::{
    Hint, Hints, PathStep, Value,
    hints::{Bounded, Range},
};
use mayfly_value::{
    keycode::{self, PathStep as KeyStep},
    order::Order,
    partition::{Component, PartitionKey},
};

/// The scope that the filter's conditions on the partition key leave of `scope`, and whether they pin it.
pub fn narrowed(container: &Container, hints: &Hints, scope: HashRange) -> (HashRange, bool) {
    let definition = &container.definition().partition_key;
    let mut components = Vec::new();
    for path in &definition.paths {
        match hints.all.iter().find_map(|hint| pinned(hint, path.segments())) {
            Some(component) => components.push(component),
            None => break,
        }
    }
    if components.is_empty() {
        return (scope, false);
    }
    let whole = components.len() == definition.paths.len();
    let (start, end) = definition.prefix_range(&PartitionKey(components));
    let end = match (scope.end, end) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
    (HashRange { start: scope.start.max(start), end }, whole)
}

fn names(path: &[PathStep]) -> Option<Vec<&str>> {
    path.iter()
        .map(|step| match step {
            PathStep::Name(name) => Some(name.as_str()),
            PathStep::Item(_) => None,
        })
        .collect()
}

/// The one value that a hint allows at a partition key's path.
fn pinned(hint: &Hint, segments: &[String]) -> Option<Component> {
    let names = names(&hint.path)?;
    if names.len() != segments.len() || !names.iter().zip(segments).all(|(a, b)| a == b) {
        return None;
    }
    match &hint.range {
        Range::OneOf(values) => match &values[..] {
            [Value::Null] => Some(Component::Null),
            [Value::Bool(value)] => Some(Component::Bool(*value)),
            [Value::Int(value)] => Some(Component::Number(*value as f64)),
            [Value::Double(value)] => Some(Component::Number(*value)),
            [Value::String(value)] => Some(Component::String(value.clone().into_owned())),
            _ => None,
        },
        _ => None,
    }
}

/// How a query's documents are found.
pub fn choose(container: &Container, hints: &Hints, scope: HashRange) -> Access {
    let usable = hints.all.iter().filter_map(|hint| index_range(container, hint, &scope));
    match usable.min_by_key(|(rank, _)| *rank) {
        Some((_, access)) => access,
        None => Access::Records(scope),
    }
}

/// The index range of a hint, and how much it can be expected to leave: less is better.
fn index_range(container: &Container, hint: &Hint, scope: &HashRange) -> Option<(u8, Access)> {
    let names = names(&hint.path)?;
    let steps: Vec<_> = names.iter().map(|name| KeyStep::Property(name)).collect();
    if !container.is_indexed(&steps) {
        return None;
    }
    let (rank, low, high) = match &hint.range {
        Range::OneOf(values) => match &values[..] {
            [value] => {
                let value = encoded(value)?;
                (0, Bound::Included(value.clone()), Bound::Included(value))
            }
            _ => return None,
        },
        Range::Between { low, high } => between(low, high)?,
        // A prefix is a lower bound; the exact filter does the rest.
        Range::StartsWith(prefix) => {
            let low = encoded(&Value::string(prefix.as_str()))?;
            let kind = *low.first()?;
            (2, Bound::Included(low), Bound::Excluded(vec![kind + 1]))
        }
    };
    Some((rank, Access::index(keycode::encode_path(&steps), low, high, scope.clone())))
}

/// The tag of a type, and a range of its values in keys.
type TypedRange = (u8, Bound<Vec<u8>>, Bound<Vec<u8>>);

/// Both ends are taken in, because a key holds less than a value: doubles for integers, the start of a long text.
fn between(low: &Bounded, high: &Bounded) -> Option<TypedRange> {
    let end = |bounded: &Bounded| match bounded {
        Bounded::Inclusive(value) | Bounded::Exclusive(value) => encoded(value).map(Some),
        Bounded::Open => Some(None),
    };
    let (low, high) = (end(low)?, end(high)?);
    let kind = *low.as_ref().or(high.as_ref())?.first()?;
    if low.iter().chain(&high).any(|value| value.first() != Some(&kind)) {
        return None;
    }
    let rank = if low.is_some() && high.is_some() { 1 } else { 2 };
    Some((
        rank,
        Bound::Included(low.unwrap_or_else(|| vec![kind])),
        high.map_or(Bound::Excluded(vec![kind + 1]), Bound::Included),
    ))
}

/// A scalar as index keys have it.
fn encoded(value: &Value<'_>) -> Option<Vec<u8>> {
    match value {
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Double(_) | Value::String(_) => {
            let mut bytes = Vec::new();
            keycode::push_value(&mut bytes, value.to_bson()?.as_raw_bson_ref(), Order::Cosmos);
            Some(bytes)
        }
        _ => None,
    }
}
