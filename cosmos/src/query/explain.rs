//! How a query would be answered: where it looks, what the index does for it, and what is left to do for every document.
//!
//! Says what `access` chooses and nothing else, so an explanation cannot differ from what happens.

use mayfly_engine::{Access, Container, HashRange, IndexName};
use mayfly_sql::{
    Hint, PathStep,
    ast::Direction,
    hints::{Bounded, Range},
    plan_info::DistinctType,
};
use mayfly_value::keycode::{self, PathStep as KeyStep};
use serde_json::{Value, json};

use super::{access, request::Request};
use crate::error::ApiError;

/// Explains the query in `body` (a text and its parameters, as a query request has them).
pub fn explain(container: &Container, body: &[u8]) -> Result<Value, ApiError> {
    let request = Request::of_items(body, container)?;
    let (plan, hints) = (&request.plan, request.plan.hints());
    let whole = HashRange::all();
    let (scope, one_partition) = access::narrowed(container, hints, whole.clone());
    let scope_name = match (one_partition, scope == whole) {
        (true, _) => "partition",
        (false, false) => "partitionPrefix",
        (false, true) => "container",
    };
    let chosen = access::choose(container, hints, scope);
    let conditions: Vec<_> = hints.all.iter().map(|hint| condition(container, hint, &chosen)).collect();
    let info = plan.info();
    let order_by: Vec<_> = info
        .order_by
        .iter()
        .map(|key| json!({ "text": key.text, "descending": key.direction == Direction::Descending }))
        .collect();
    Ok(json!({
        "readsDocuments": plan.reads_documents(),
        "scope": scope_name,
        "access": if matches!(chosen, Access::Index(_)) { "index" } else { "scan" },
        "conditions": conditions,
        "streams": plan.is_streaming(),
        "orderBy": order_by,
        "groupBy": info.group_by,
        "aggregates": info.aggregates.len(),
        "distinct": info.distinct != DistinctType::None,
        "offset": info.offset,
        "limit": info.limit.or(info.top),
    }))
}

/// One thing the filter says, and whether the index is asked for it.
fn condition(container: &Container, hint: &Hint, chosen: &Access) -> Value {
    let names: Option<Vec<&str>> = hint
        .path
        .iter()
        .map(|step| match step {
            PathStep::Name(name) => Some(name.as_str()),
            PathStep::Item(_) => None,
        })
        .collect();
    let steps: Option<Vec<_>> =
        names.map(|names| names.into_iter().map(KeyStep::Property).collect::<Vec<_>>());
    let indexed = steps.as_ref().is_some_and(|steps| container.is_indexed(steps));
    let used = match (chosen, &steps) {
        (Access::Index(access), Some(steps)) => access.index == IndexName::Path(keycode::encode_path(steps)),
        _ => false,
    };
    json!({ "path": path_text(&hint.path), "test": test_text(&hint.range), "indexed": indexed, "used": used })
}

fn path_text(path: &[PathStep]) -> String {
    path.iter()
        .map(|step| match step {
            PathStep::Name(name) => format!("/{name}"),
            PathStep::Item(item) => format!("/{item}"),
        })
        .collect()
}

fn test_text(range: &Range) -> String {
    let bound = |bounded: &Bounded, inclusive: &str, exclusive: &str| match bounded {
        Bounded::Inclusive(value) => Some(format!("{inclusive} {}", value.to_json())),
        Bounded::Exclusive(value) => Some(format!("{exclusive} {}", value.to_json())),
        Bounded::Open => None,
    };
    match range {
        Range::OneOf(values) => match &values[..] {
            [value] => format!("= {}", value.to_json()),
            values => {
                format!("IN ({})", values.iter().map(|value| value.to_json()).collect::<Vec<_>>().join(", "))
            }
        },
        Range::Between { low, high } => {
            let ends: Vec<_> =
                [bound(low, ">=", ">"), bound(high, "<=", "<")].into_iter().flatten().collect();
            ends.join(" and ")
        }
        Range::StartsWith(prefix) => format!("starts with {}", json!(prefix)),
    }
}
