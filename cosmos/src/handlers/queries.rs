//! Queries over items, and their plans.

use hyper::{StatusCode, header::USER_AGENT};
use mayfly_engine::{Container, clock::Stopwatch};
use mayfly_sql::{Distribution, EvalError, Feature, plan_info::DistinctType};

use super::{Answer, documents::with_session};
use crate::{
    call::Call,
    error::ApiError,
    headers,
    query::{
        execute::Execution,
        index_metrics::IndexMetrics,
        metrics, plan,
        ranges::QueryRanges,
        report,
        request::{Request, failed},
        token::Token,
    },
    reply::Reply,
};

/// `POST …/docs` with a query
pub async fn items(call: &Call<'_>) -> Answer {
    let name = call.address.container().ok_or_else(ApiError::internal)?;
    let place = call.owner(name)?;
    let container = &place.container;
    let watch = Stopwatch::start();
    let request = Request::of_items(call.body, container)?;
    let compile = watch.elapsed();
    let token = Token::of_client(call.text(&headers::CONTINUATION)?, request.fingerprint, container)?;
    let scoped = [&headers::PARTITION_KEY, &headers::PARTITION_KEY_RANGE_ID, &headers::START_EPK];
    let is_scoped = scoped.iter().any(|name| call.headers.contains(name));
    let may_cross = call.flag(&headers::ENABLE_CROSS_PARTITION)? || is_scoped;
    if may_cross && !is_scoped && merges_itself(call)? {
        leave_to_client(container, &request)?;
    }
    let execution = Execution::new(call, container, &request, may_cross)?;
    let mut page = execution.page(token).await?;
    tracing::debug!(access = ?page.access, rows = page.rows.len(), scanned = page.scanned, "query");

    let run = watch.elapsed() - compile;
    let mut body = page.rows.take_feed();
    let explains = call.flag(&headers::EXPLAIN)?;
    let (v1, v2) =
        (call.flag(&headers::POPULATE_INDEX_METRICS)?, call.flag(&headers::POPULATE_INDEX_METRICS_V2)?);
    let keyed = call.headers.contains(&headers::PARTITION_KEY);
    let indexes = (explains || v1 || v2).then(|| IndexMetrics::of(container, &request.plan, keyed));
    if let (true, Some(indexes)) = (explains, &indexes) {
        report::append(&mut body, &report::of(&request, &page, indexes, compile, run));
    }
    let mut reply =
        Reply::json(StatusCode::OK, body).with(&headers::ITEM_COUNT, page.rows.len()).charged(page.charge);
    if call.flag(&headers::POPULATE_QUERY_METRICS)? {
        reply.set(&headers::QUERY_METRICS, metrics::text(&page, compile, run));
    }
    if let (true, Some(indexes)) = (v1 || v2, &indexes) {
        reply.set(&headers::INDEX_UTILIZATION, if v2 { indexes.v2() } else { indexes.v1() });
    }
    if let Some(next) = page.next {
        let next = match is_scoped {
            true => next.encode(request.fingerprint),
            false => next.encode_enclosed(request.fingerprint),
        };
        reply.set(&headers::CONTINUATION, next);
    }
    let lsn = call.engine.lsn(container, page.slot).await?;
    Ok(with_session(reply, &place, call.range_in_slot(container, page.slot)?, lsn))
}

/// Whether the client that asks counts on merging what several ranges answer.
///
/// Answered whole, a query is right for every client, so none is sent away without need. The SDK for Python is: what its
/// users see of such a query (page by page, what it refuses, what it asks for) is what its own merging makes of it.
fn merges_itself(call: &Call<'_>) -> Result<bool, ApiError> {
    Ok(call.text(&USER_AGENT)?.is_some_and(|agent| agent.contains("azsdk-python-cosmos")))
}

/// A query over all partition key ranges whose rows have to be merged is the client's to run, as in the service, which
/// does not look how many ranges there are: the answer is the plan. What the client does not merge is answered whole:
/// groups, and what a plan cannot say.
fn leave_to_client(container: &Container, request: &Request) -> Result<(), ApiError> {
    if request.plan.is_streaming() || !request.plan.reads_documents() {
        return Ok(());
    }
    let ranges = QueryRanges::of(container, &request.plan);
    // A filter on the partition key brings a sorted query to one range. An aggregate or a DISTINCT the
    // service leaves to the client even so.
    let info = request.plan.info();
    let merges = !info.aggregates.is_empty() || info.distinct != DistinctType::None;
    if ranges != QueryRanges::All && ranges.is_within_one(container) && !merges {
        return Ok(());
    }
    let is_grouped = !request.plan.info().group_by.is_empty();
    let distribution = match request.distribution() {
        Err(EvalError::Unsupported { .. }) => return Ok(()),
        Err(_) if is_grouped => return Ok(()),
        distribution => distribution.map_err(failed)?,
    };
    let answered_whole = [Feature::GroupBy, Feature::DCount];
    match distribution.features().iter().any(|feature| answered_whole.contains(feature)) {
        true => Ok(()),
        false => Err(ApiError::cross_partition_not_servable(&plan::distributed(&distribution, &ranges))),
    }
}

/// `POST …/docs` that asks for a query plan
///
/// The plan says all that the query does, however many ranges there are: clients ask for it to check the
/// query, or to resume it by themselves. What is wrong with the text is said here.
pub async fn plan(call: &Call<'_>) -> Answer {
    let name = call.address.container().ok_or_else(ApiError::internal)?;
    let place = call.owner(name)?;
    let container = &place.container;
    let request = Request::of_items(call.body, container).map_err(not_planned)?;
    let ranges = QueryRanges::of(container, &request.plan);
    // A range that has all the query can find answers it whole where the client could not run the plan, or does so badly:
    // Java's fails on fused ranks of a SELECT VALUE. Not for a client that was sent here: it would be sent here again.
    let is_whole = ranges.is_within_one(container) && !merges_itself(call)?;
    let plan = match distribution(call, &request) {
        Err(_) | Ok(Distribution::Fuse(_)) if is_whole => plan::passed_on(&request, &ranges),
        distribution => plan::distributed(&distribution?, &ranges),
    };
    Ok(Reply::value(StatusCode::OK, &plan).charged(1.0))
}

/// How the client of `call` runs a query by itself; an error if it cannot.
fn distribution(call: &Call<'_>, request: &Request) -> Result<Distribution, ApiError> {
    let distribution = request.distribution().map_err(|error| not_planned(failed(error)))?;
    plan::check_features(&distribution, call.text(&headers::SUPPORTED_QUERY_FEATURES)?)?;
    Ok(distribution)
}

/// Clients and their tests look for these words before what is wrong with the text.
fn not_planned(mut error: ApiError) -> ApiError {
    if error.status == 400 {
        error.message = format!("Gateway Failed to Retrieve Query Plan: {}", error.message);
    }
    error
}
