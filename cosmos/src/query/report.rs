//! How a query was answered, for people: its steps, the indexes, and what one page of it took.
//!
//! A request with the header `x-mayfly-explain: true` finds this in the body of its answer, beside the rows.

use std::time::Duration;

use mayfly_sql::Step;
use serde_json::{Value, json};

use super::{access::Reading, execute::RowPage, index_metrics::IndexMetrics, request::Request};

/// The explanation of one page.
pub fn of(
    request: &Request,
    page: &RowPage,
    indexes: &IndexMetrics,
    compile: Duration,
    run: Duration,
) -> Value {
    let ms = |duration: Duration| (duration.as_secs_f64() * 1e6).round() / 1e3;
    json!({
        "query": request.query.to_string(),
        "steps": step(&request.query.explain(&request.plan)),
        "streaming": request.plan.is_streaming(),
        "access": {
            "indexes": page.access.indexes.single,
            "compositeIndexes": page.access.indexes.composite,
            "fullTextIndexes": page.access.indexes.texts,
            "vectorIndexes": page.access.indexes.vectors,
            "indexOnly": page.access.reading != Reading::Documents,
            "servesOrder": page.access.serves_order,
        },
        "indexes": indexes.to_json(),
        "documentsScanned": page.scanned,
        "bytesScanned": page.scanned_bytes,
        "rowsReturned": page.rows.len(),
        "hasMore": page.next.is_some(),
        "requestCharge": page.charge,
        "compileTimeInMs": ms(compile),
        "runTimeInMs": ms(run),
    })
}

/// Puts an explanation into the body of a feed, as its last member.
pub fn append(body: &mut Vec<u8>, explanation: &Value) {
    if body.pop() == Some(b'}') {
        body.extend_from_slice(format!(",\"_explain\":{explanation}}}").as_bytes());
    }
}

/// A step with what feeds it inside.
fn step(step_of_query: &Step) -> Value {
    let mut value = json!({ "operator": step_of_query.operator, "detail": step_of_query.detail });
    if let Some(input) = &step_of_query.input {
        value["input"] = step(input);
    }
    value
}
