//! The logical partition that a filter leaves of a query's scope.

use mayfly_engine::{Container, HashRange};
use mayfly_sql::{
    Hints, Value,
    hints::{Hint, Span},
};
use mayfly_value::partition::{Component, PartitionKey};

use super::names;

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

/// The one value that a hint allows at a partition key's path.
fn pinned(hint: &Hint, segments: &[String]) -> Option<Component> {
    let names = names(&hint.path)?;
    if hint.of_item || names.len() != segments.len() || !names.iter().zip(segments).all(|(a, b)| a == b) {
        return None;
    }
    match &hint.spans[..] {
        [Span::Value(value)] => match value {
            Value::Null => Some(Component::Null),
            Value::Bool(value) => Some(Component::Bool(*value)),
            Value::Int(value) => Some(Component::Number(*value as f64)),
            Value::Double(value) => Some(Component::Number(*value)),
            Value::String(value) => Some(Component::String(value.clone().into_owned())),
            _ => None,
        },
        _ => None,
    }
}
