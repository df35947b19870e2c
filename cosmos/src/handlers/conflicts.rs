//! Conflicts of writes in several regions. There is one region, so there are none.

use hyper::StatusCode;

use super::Answer;
use crate::{call::Call, error::ApiError, headers, query::request::Request, reply::Reply, resource};

/// `GET …/conflicts`
pub async fn list(call: &Call<'_>) -> Answer {
    let name = call.address.container().ok_or_else(ApiError::internal)?;
    let place = call.owner(name)?;
    let container = &place.container;
    let feed = resource::feed(&resource::container_rid(container), "Conflicts", Vec::new());
    Ok(Reply::value(StatusCode::OK, &feed).with(&headers::ITEM_COUNT, 0))
}

/// `POST …/conflicts` with a query
pub async fn query(call: &Call<'_>) -> Answer {
    Request::parse(call.body)?;
    if !call.flag(&headers::ENABLE_CROSS_PARTITION)? && call.partition_key_if_any()?.is_none() {
        return Err(ApiError::cross_partition_disabled());
    }
    list(call).await
}

/// `GET …/conflicts/{id}` and `DELETE …/conflicts/{id}`
pub async fn missing(call: &Call<'_>) -> Answer {
    let name = call.address.container().ok_or_else(ApiError::internal)?;
    call.owner(name)?;
    Err(ApiError::resource_not_found())
}
