//! Queries over items, and their plans.

use hyper::StatusCode;
use mayfly_engine::clock::Stopwatch;
use serde_json::json;

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
    let token = match call.text(&headers::CONTINUATION)? {
        None | Some("") => Token::default(),
        Some(text) => Token::decode(text, request.fingerprint)?,
    };
    let scoped = [&headers::PARTITION_KEY, &headers::PARTITION_KEY_RANGE_ID, &headers::START_EPK];
    let may_cross = call.flag(&headers::ENABLE_CROSS_PARTITION)?
        || scoped.iter().any(|name| call.headers.contains_key(*name));
    let execution = Execution::new(call, &container, &request, may_cross)?;
    let page = execution.page(token).await?;

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

/// `POST …/docs` that asks for a query plan
///
/// The plan says that the client has nothing to do: the server answers queries whole, so the client passes the text on
/// and the rows through. What is wrong with the text is said here.
pub async fn plan(call: &Call<'_>) -> Answer {
    let name = call.address.container().ok_or_else(ApiError::internal)?;
    call.owner(name)?;
    let request = Request::parse(call.body)?;
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
