//! Partition key ranges, as SDKs route by them.
//!
//! SDKs read them as a feed and ask again with the etag until they are told that nothing is new; a server that never
//! says so keeps them waiting for ever. A client that finds its range gone asks with the etag it has, and is
//! told the ranges that came since: their parents say which of its own are no more.

use hyper::StatusCode;
use mayfly_engine::Container;

use super::Answer;
use crate::{address::Address, call::Call, error::ApiError, headers, reply::Reply, resource};

/// `GET /dbs/{db}/colls/{coll}/pkranges`
pub async fn list(call: &Call<'_>) -> Answer {
    let Address::PartitionKeyRanges(name) = call.address else { return Err(ApiError::internal()) };
    let place = call.owner(name)?;
    let container = &place.container;
    let now = container.ranges_generation();
    let known = call.text(&hyper::header::IF_NONE_MATCH)?.and_then(|etag| generation(container, etag));
    if known == Some(now) {
        return Ok(Reply::empty(StatusCode::NOT_MODIFIED).with(&headers::ETAG, etag(container, now)));
    }
    // Without the header of a change feed all of them are asked for.
    let after = known.filter(|_| call.headers.contains(&headers::A_IM));
    let ranges = resource::partition_key_ranges(container, after);
    let count = ranges.len();
    let feed = resource::feed(&resource::container_rid(container), "PartitionKeyRanges", ranges);
    Ok(Reply::value(StatusCode::OK, &feed)
        .with(&headers::ETAG, etag(container, now))
        .with(&headers::ITEM_COUNT, count)
        .charged(super::METADATA_CHARGE))
}

/// The container's number and how often its ranges have changed.
fn etag(container: &Container, generation: u32) -> String {
    format!("\"{}.{generation}\"", container.id)
}

/// The generation that an etag of this container tells; none if it is of another, or from the future.
fn generation(container: &Container, etag: &str) -> Option<u32> {
    let (id, generation) = etag.trim().trim_matches('"').split_once('.')?;
    let generation = generation.parse().ok().filter(|known| *known <= container.ranges_generation());
    generation.filter(|_| id.parse() == Ok(container.id))
}
