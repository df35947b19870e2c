//! Queries over items, and their plans.

use hyper::StatusCode;
use mayfly_engine::{Container, clock::Stopwatch};
use serde_json::{Value, json};

use super::{Answer, documents::with_session};
use crate::{
    call::Call,
    error::ApiError,
    headers,
    query::{execute::Execution, metrics, request::Request, token::Token},
    reply::Reply,
    resource,
};

/// `POST …/docs` with a query
pub async fn items(call: &Call<'_>) -> Answer {
    let name = call.address.container().ok_or_else(ApiError::internal)?;
    let (database, container) = call.owner(name)?;
    let watch = Stopwatch::start();
    let request = Request::parse(call.body)?;
    let compile = watch.elapsed();
    refuse_computed_properties(&container, call.body)?;
    let token = match call.text(&headers::CONTINUATION)? {
        None | Some("") => Token::default(),
        Some(text) => Token::decode(text, request.fingerprint)?,
    };
    let scoped = [&headers::PARTITION_KEY, &headers::PARTITION_KEY_RANGE_ID, &headers::START_EPK];
    let may_cross = call.flag(&headers::ENABLE_CROSS_PARTITION)?
        || scoped.iter().any(|name| call.headers.contains_key(*name));
    let execution = Execution::new(call, &container, &request, may_cross)?;
    let page = execution.page(token).await?;
    tracing::debug!(access = ?page.access, rows = page.rows.len(), scanned = page.scanned, "query");

    let body = resource::document_feed(&resource::container_rid(&container), &page.rows);
    let mut reply = Reply::json(StatusCode::OK, body)
        .with(&headers::ITEM_COUNT, page.rows.len())
        .with(&headers::REQUEST_CHARGE, page.charge);
    if call.flag(&headers::POPULATE_QUERY_METRICS)? {
        reply.set(&headers::QUERY_METRICS, metrics::text(&page, compile, watch.elapsed() - compile));
    }
    if let Some(next) = page.next {
        reply.set(&headers::CONTINUATION, next.encode(request.fingerprint));
    }
    let lsn = call.engine.lsn(&container, page.slot).await?;
    Ok(with_session(reply, &database, &container, page.slot, lsn))
}

/// Computed properties are kept, not computed: a query that may name one is refused rather than answered without it.
fn refuse_computed_properties(container: &Container, body: &[u8]) -> Result<(), ApiError> {
    let computed = container.definition().others.get("computedProperties").and_then(Value::as_array);
    let text = String::from_utf8_lossy(body);
    let named = |property: &Value| {
        property.get("name").and_then(Value::as_str).is_some_and(|name| text.contains(name))
    };
    match computed.into_iter().flatten().any(named) {
        true => Err(ApiError::not_implemented("A query over computed properties")),
        false => Ok(()),
    }
}

/// `POST …/docs` that asks for a query plan
///
/// The plan says that the client has nothing to do: the server answers queries whole, so the client passes the text on
/// and the rows through. What is wrong with the text is said here.
pub async fn plan(call: &Call<'_>) -> Answer {
    let name = call.address.container().ok_or_else(ApiError::internal)?;
    let (_, container) = call.owner(name)?;
    let request = Request::parse(call.body)?;
    refuse_computed_properties(&container, call.body)?;
    // A client that asks for a plan sends the text to every range and passes the rows through. Rows that depend on all
    // documents would then be wrong.
    if container.slots() > 1 && request.plan.needs_all_documents() {
        return Err(ApiError::not_implemented(
            "A plan that sorts, groups or aggregates over several partition key ranges",
        ));
    }
    let plan = json!({
        "partitionedQueryExecutionInfoVersion": 2,
        "queryInfo": {
            "distinctType": "None",
            "top": null,
            "offset": null,
            "limit": null,
            "orderBy": [],
            "orderByExpressions": [],
            "groupByExpressions": [],
            "groupByAliases": [],
            "aggregates": [],
            "groupByAliasToAggregateType": {},
            "rewrittenQuery": "",
            "hasSelectValue": request.plan.info().has_select_value,
            "hasNonStreamingOrderBy": false,
            "dCountInfo": null,
        },
        "queryRanges": [{ "min": "", "max": "FF", "isMinInclusive": true, "isMaxInclusive": false }],
    });
    Ok(Reply::value(StatusCode::OK, &plan).with(&headers::REQUEST_CHARGE, 1))
}
