//! Partition key ranges: the slots of a container as SDKs route by them.
//!
//! SDKs read them as a feed and ask again with the etag until they are told that nothing is new; a server that never
//! says so keeps them waiting for ever.

use hyper::StatusCode;

use super::Answer;
use crate::{address::Address, call::Call, error::ApiError, headers, reply::Reply, resource};

/// `GET /dbs/{db}/colls/{coll}/pkranges`
pub async fn list(call: &Call<'_>) -> Answer {
    let Address::PartitionKeyRanges(name) = call.address else { return Err(ApiError::internal()) };
    let place = call.owner(name)?;
    let container = &place.container;
    // Slots never change in a container's life, so its number says it all.
    let etag = format!("\"{}\"", container.id);
    if call.text(&hyper::header::IF_NONE_MATCH)? == Some(&etag) {
        return Ok(Reply::empty(StatusCode::NOT_MODIFIED).with(&headers::ETAG, etag));
    }
    Ok(Reply::value(StatusCode::OK, &resource::partition_key_ranges(container))
        .with(&headers::ETAG, etag)
        .with(&headers::ITEM_COUNT, container.slots())
        .charged(super::METADATA_CHARGE))
}
