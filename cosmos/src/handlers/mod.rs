//! What each route does: parse, ask the engine, shape the answer. One file per resource.

pub mod account;
pub mod batch;
pub mod change_feed;
pub mod conflicts;
pub mod containers;
pub mod databases;
pub mod documents;
pub mod item_body;
pub mod item_feed;
pub mod kept;
pub mod offers;
pub mod patch_body;
pub mod queries;
pub mod ranges;
pub mod statistics;

use hyper::StatusCode;
use serde_json::Value;

use crate::{address::Address, call::Call, error::ApiError, headers, reply::Reply};

/// Whether a request is about items: what request units and session tokens are for.
pub fn is_item_route(address: &Address<'_>) -> bool {
    matches!(address, Address::Documents(_) | Address::Document { .. } | Address::PartitionKeyDelete(_))
}

/// The answer of a handler.
pub type Answer = Result<Reply, ApiError>;

/// What a metadata operation costs. The service bills them to a budget of their own.
const METADATA_CHARGE: f64 = 1.0;

/// A resource with its etag.
fn resource(status: StatusCode, value: &Value, etag: &str) -> Reply {
    Reply::value(status, value).with(&headers::ETAG, etag).charged(METADATA_CHARGE)
}

/// One page of a list that is small enough to be in memory: the continuation is the place in it.
fn page_of<T>(call: &Call<'_>, items: &[T]) -> Result<(std::ops::Range<usize>, Option<String>), ApiError> {
    let start = match call.text(&headers::CONTINUATION)? {
        None | Some("") => 0,
        Some(token) => token.parse::<usize>().map_err(|_| ApiError::invalid_continuation())?,
    };
    let start = start.min(items.len());
    let end = items.len().min(start + call.page_items()?);
    Ok((start..end, (end < items.len()).then(|| end.to_string())))
}

/// A page of resources.
fn list<T>(call: &Call<'_>, owner_rid: &str, key: &str, items: &[T], shape: impl Fn(&T) -> Value) -> Answer {
    let (range, next) = page_of(call, items)?;
    let page: Vec<_> = items[range].iter().map(shape).collect();
    let count = page.len();
    let mut reply = Reply::value(StatusCode::OK, &crate::resource::feed(owner_rid, key, page))
        .with(&headers::ITEM_COUNT, count)
        .charged(METADATA_CHARGE);
    if let Some(next) = next {
        reply.set(&headers::CONTINUATION, next);
    }
    Ok(reply)
}
