//! How a query would be answered: where it looks, what the index does for it, and what is left to do for every document.
//!
//! Says what `access` chooses and nothing else, so an explanation cannot differ from what happens.

use mayfly_engine::{Access, Container, Engine, HashRange, Timestamp};
use mayfly_sql::{Hint, PathStep, ast::Direction, plan_info::DistinctType};
use mayfly_value::keycode::PathStep as KeyStep;
use serde_json::{Value, json};

use super::{
    access::{self, Indexes, Reading},
    conditions,
    request::Request,
};
use crate::error::ApiError;

/// Explains the query in `body` (a text and its parameters, as a query request has them).
pub async fn explain(
    engine: &Engine,
    container: &Container,
    body: &[u8],
    now: Timestamp,
) -> Result<Value, ApiError> {
    let request = Request::of_items(body, container)?;
    let (plan, hints) = (&request.plan, request.plan.hints());
    let whole = HashRange::all();
    let (scope, one_partition) = access::narrowed(container, hints, whole.clone());
    let scope_name = match (one_partition, scope == whole) {
        (true, _) => "partition",
        (false, false) => "partitionPrefix",
        (false, true) => "container",
    };
    let chosen = access::choose(engine, container, plan, &scope, None, now).await?;
    let conditions: Vec<_> =
        hints.all.iter().map(|hint| condition(container, hint, &chosen.indexes)).collect();
    let info = plan.info();
    let by_index =
        matches!(chosen.access, Access::Index(_)) || chosen.ranks.is_some() || chosen.by_vector.is_some();
    let order_by: Vec<_> = info
        .order_by
        .iter()
        .map(|key| json!({ "text": key.text, "descending": key.direction == Direction::Descending }))
        .collect();
    Ok(json!({
        "readsDocuments": plan.reads_documents(),
        "scope": scope_name,
        "access": if by_index { "index" } else { "scan" },
        "indexOnly": chosen.reading != Reading::Documents,
        "indexes": chosen.indexes.single,
        "compositeIndexes": chosen.indexes.composite,
        "fullTextIndexes": chosen.indexes.texts,
        "vectorIndexes": chosen.indexes.vectors,
        "servesOrder": chosen.serves_order,
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
fn condition(container: &Container, hint: &Hint, indexes: &Indexes) -> Value {
    let name = |step: &PathStep| match step {
        PathStep::Name(name) => Some(name.clone()),
        PathStep::Item(_) => None,
    };
    let names: Option<Vec<String>> = hint.path.iter().map(name).collect();
    let path = names.as_ref().map(|names| names.iter().map(|name| format!("/{name}")).collect::<String>());
    let (indexed, used) = match (&names, &path) {
        (Some(names), Some(path)) => {
            let mut steps: Vec<_> = names.iter().map(|name| KeyStep::Property(name)).collect();
            steps.extend(hint.of_item.then_some(KeyStep::Item));
            (container.is_indexed(&steps), indexes.uses(path))
        }
        _ => (false, false),
    };
    json!({ "path": path, "test": conditions::text("c", hint), "indexed": indexed, "used": used })
}
