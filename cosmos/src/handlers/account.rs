//! The account: what every SDK reads first.

use hyper::StatusCode;

use super::Answer;
use crate::{call::Call, reply::Reply, resource};

/// `GET /`
pub async fn read(call: &Call<'_>) -> Answer {
    Ok(Reply::value(StatusCode::OK, &resource::account(call.base_url)))
}
