//! Queries over resources that are not items: databases, containers, throughput, users, scripts.
//!
//! There are few of them and they are in memory, so a query runs over their JSON.

use hyper::StatusCode;
use mayfly_sql::{Context, Document};
use mayfly_value::json::{self, JsonLimits};
use serde_json::Value;

use super::request::{Request, failed};
use crate::{call::Call, error::ApiError, headers, reply::Reply, resource};

/// Runs the query of `call` over `resources` and answers with a feed under `key`.
pub fn query(call: &Call<'_>, owner_rid: &str, key: &str, resources: &[Value]) -> Result<Reply, ApiError> {
    let request = Request::parse(call.body)?;
    let context = Context::new(call.now.0 as i64, call.now.0);
    let mut run = request.plan.run(context).map_err(failed)?;
    let mut rows = Vec::new();
    let mut take = |found: Vec<mayfly_sql::Value<'_>>| {
        for row in found {
            let parsed = serde_json::from_str(&row.to_json());
            rows.push(parsed.map_err(|_| ApiError::internal())?);
        }
        Ok::<_, ApiError>(())
    };
    for resource in resources {
        let text = resource.to_string();
        let body = json::parse_document(text.as_bytes(), JsonLimits::default());
        let body = body.map_err(|_| ApiError::internal())?;
        take(run.push(&Document { body: &body, system: &[] }).map_err(failed)?)?;
    }
    take(run.finish().map_err(failed)?)?;
    let count = rows.len();
    Ok(Reply::value(StatusCode::OK, &resource::feed(owner_rid, key, rows))
        .with(&headers::ITEM_COUNT, count)
        .charged(1.0))
}
