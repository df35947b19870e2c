//! Which part of the key space a query can find anything in, as a plan tells clients.

use mayfly_engine::{Container, HashRange};
use mayfly_sql::{Hint, PathStep, Plan, Value, hints::Span};
use mayfly_value::partition::{Component, PartitionKey};
use serde_json::json;

/// More points than this are not worth telling: the whole space is told instead.
const POINTS_MAX: usize = 256;

/// The ranges of a query, in the order of keys.
#[derive(Debug, PartialEq, Eq)]
pub enum QueryRanges {
    /// Everything.
    All,
    /// Whole partition keys, or all that begin with these values.
    Keys(Vec<HashRange>),
}

impl QueryRanges {
    /// What the filter's conditions on the partition key leave.
    pub fn of(container: &Container, plan: &Plan) -> Self {
        // Rows that no document is needed for are given by one range, whichever.
        if !plan.reads_documents() {
            return QueryRanges::Keys(Vec::new());
        }
        let hints = plan.hints();
        let definition = &container.definition().partition_key;
        let mut keys = vec![PartitionKey(Vec::new())];
        let mut known = 0;
        for path in &definition.paths {
            let Some(values) = hints.all.iter().find_map(|hint| allowed(hint, path.segments())) else {
                break;
            };
            let with_each = |key| values.iter().map(|value| extended(&key, value)).collect::<Vec<_>>();
            keys = keys.into_iter().flat_map(with_each).collect();
            known += 1;
            if keys.len() > POINTS_MAX {
                return QueryRanges::All;
            }
        }
        if known == 0 {
            return QueryRanges::All;
        }
        let is_whole = known == definition.paths.len();
        let range = |key: &PartitionKey| match is_whole {
            true => HashRange::one(&definition.effective_key(key)),
            false => {
                let (start, end) = definition.prefix_range(key);
                HashRange { start, end }
            }
        };
        let mut ranges: Vec<HashRange> = keys.iter().map(range).collect();
        ranges.sort_by(|a, b| a.start.cmp(&b.start));
        ranges.dedup();
        QueryRanges::Keys(ranges)
    }

    /// Whether at most one partition key range of the container has such keys.
    pub fn is_within_one(&self, container: &Container) -> bool {
        match self {
            QueryRanges::All => container.ranges().len() == 1,
            QueryRanges::Keys(keys) => {
                let mut ranges = keys.iter().flat_map(|keys| keys.ranges(container)).map(|range| range.id);
                let first = ranges.next();
                ranges.all(|range| Some(range) == first)
            }
        }
    }

    /// As a plan has them.
    pub fn to_json(&self) -> serde_json::Value {
        let range = |min: &str, max: &str, max_inclusive: bool| json!({ "min": min, "max": max, "isMinInclusive": true, "isMaxInclusive": max_inclusive });
        match self {
            QueryRanges::All => json!([range("", "FF", false)]),
            // Nothing can be found; a point that no key has.
            QueryRanges::Keys(ranges) if ranges.is_empty() => json!([range("", "", true)]),
            QueryRanges::Keys(ranges) => {
                let one = |keys: &HashRange| {
                    let min = keys.start.to_hex();
                    match &keys.end {
                        Some(_) if *keys == HashRange::one(&keys.start) => range(&min, &min, true),
                        Some(end) => range(&min, &end.to_hex(), false),
                        None => range(&min, "FF", false),
                    }
                };
                ranges.iter().map(one).collect()
            }
        }
    }
}

fn extended(key: &PartitionKey, value: &Component) -> PartitionKey {
    PartitionKey(key.0.iter().cloned().chain([value.clone()]).collect())
}

/// The values that a hint allows at a partition key's path, if they can be told.
fn allowed(hint: &Hint, segments: &[String]) -> Option<Vec<Component>> {
    let is_it = hint.path.len() == segments.len()
        && hint
            .path
            .iter()
            .zip(segments)
            .all(|(step, name)| matches!(step, PathStep::Name(step) if step == name));
    let value = |span: &Span| match span {
        Span::Value(value) => component(value),
        _ => None,
    };
    if is_it && !hint.of_item { hint.spans.iter().map(value).collect() } else { None }
}

/// Arrays and objects are all one to a partition key; nobody is looked for by them.
fn component(value: &Value<'_>) -> Option<Component> {
    Some(match value {
        Value::Null => Component::Null,
        Value::Bool(value) => Component::Bool(*value),
        Value::Int(value) => Component::Number(*value as f64),
        Value::Double(value) => Component::Number(*value),
        Value::String(value) => Component::String(value.clone().into_owned()),
        _ => return None,
    })
}
