//! Responses the server gives by itself: texts, and errors in the shape of the Cosmos protocol.
//!
//! Holds: every error has a JSON body, for some SDKs fail on one without.

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use mayfly_cosmos::{ApiError, headers};

/// The body of every response. All are whole: pages have limits.
pub type Body = Full<Bytes>;

/// The activity id of a request that brought none.
const NO_ACTIVITY: &str = "00000000-0000-0000-0000-000000000000";

/// A whole body.
pub fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into())
}

/// No body.
pub fn empty() -> Body {
    Full::default()
}

/// A text with its type. Not to be cached: it says how things are now.
pub fn text(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(full(body));
    *response.status_mut() = status;
    set(&mut response, CONTENT_TYPE, content_type);
    set(&mut response, CACHE_CONTROL, "no-store");
    response
}

/// An error as Cosmos says it.
pub fn error(error: &ApiError, activity_id: &str) -> Response<Body> {
    let status = StatusCode::from_u16(error.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = text(status, "application/json", error.to_body(activity_id));
    set(&mut response, headers::ACTIVITY_ID.clone(), activity_id);
    if error.substatus != 0 {
        set(&mut response, headers::SUBSTATUS.clone(), &error.substatus.to_string());
    }
    if let Some(wait) = error.retry_after {
        set(&mut response, headers::RETRY_AFTER_MS.clone(), &wait.as_millis().to_string());
    }
    response
}

/// The client's id of the request.
pub fn activity_id(headers: &HeaderMap) -> String {
    activity_text(headers.get(&headers::ACTIVITY_ID)).to_owned()
}

/// The same, of a header that was kept.
pub fn activity_text(header: Option<&HeaderValue>) -> &str {
    header.and_then(|value| value.to_str().ok()).unwrap_or(NO_ACTIVITY)
}

fn set(response: &mut Response<Body>, name: HeaderName, value: &str) {
    // Values come from this crate or from a request header, so they are valid; an odd one is left out.
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}
