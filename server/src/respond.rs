//! Responses the server gives by itself: texts, and errors in the shape of the Cosmos protocol.
//!
//! Holds: every error has a JSON body, for some SDKs fail on one without.

use bytes::Bytes;
use futures_util::FutureExt as _;
use http_body_util::{BodyExt as _, Full};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, DATE, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use mayfly_cosmos::headers::Headers;
use mayfly_cosmos::{ApiError, Reply, headers, http_date, reply};
use mayfly_engine::{Clock as _, SystemClock};
use std::io::Write as _;

/// The body of every response. All are whole: pages have limits.
pub type Body = Full<Bytes>;

/// An answer on its way out.
#[derive(Debug)]
pub enum Outgoing {
    /// One of the protocol.
    Reply(Reply),
    /// Any other.
    Response(Response<Body>),
}

impl Outgoing {
    /// The status.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Reply(reply) => reply.status(),
            Self::Response(response) => response.status(),
        }
    }

    /// As hyper sends it.
    pub fn into_response(self) -> Response<Body> {
        match self {
            Self::Reply(reply) => reply.into_response(),
            Self::Response(response) => response,
        }
    }

    /// Appends the head as HTTP/1.1 has it; gives the body that follows.
    pub fn write_head(self, is_last: bool, out: &mut Vec<u8>) -> Bytes {
        let status = self.status();
        let body = match self {
            Self::Reply(reply) => Bytes::from(reply.write_head(out)),
            Self::Response(response) => write_response(response, out),
        };
        // These have no body, whatever was answered, and so no length either: the next answer would be taken for it.
        let body = match status {
            StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED => Bytes::new(),
            _ => {
                // There is always room.
                let _ = write!(out, "content-length: {}\r\n", body.len());
                body
            }
        };
        if is_last {
            out.extend_from_slice(b"connection: close\r\n");
        }
        out.extend_from_slice(b"\r\n");
        body
    }
}

impl From<Reply> for Outgoing {
    fn from(reply: Reply) -> Self {
        Self::Reply(reply)
    }
}

impl From<Response<Body>> for Outgoing {
    fn from(response: Response<Body>) -> Self {
        Self::Response(response)
    }
}

/// Appends what a response has of its own.
fn write_response(response: Response<Body>, out: &mut Vec<u8>) -> Bytes {
    let (parts, body) = response.into_parts();
    reply::write_status(parts.status, out);
    for (name, value) in &parts.headers {
        for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            out.extend_from_slice(part);
        }
    }
    if !parts.headers.contains_key(DATE) {
        out.extend_from_slice(b"date: ");
        http_date::push(SystemClock.now().seconds(), out);
        out.extend_from_slice(b"\r\n");
    }
    // It is whole, so it is there at once.
    body.collect().now_or_never().and_then(Result::ok).map(|body| body.to_bytes()).unwrap_or_default()
}

/// The activity id of a request that brought none.
pub const NO_ACTIVITY: &str = "00000000-0000-0000-0000-000000000000";

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
pub fn activity_id<'a>(headers: &Headers<'a>) -> &'a str {
    headers.get_text(&headers::ACTIVITY_ID).unwrap_or(NO_ACTIVITY)
}

fn set(response: &mut Response<Body>, name: HeaderName, value: &str) {
    // Values come from this crate or from a request header, so they are valid; an odd one is left out.
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_without_a_body_has_neither_body_nor_length() {
        for (status, length) in [(200, Some("content-length: 4\r\n")), (204, None), (304, None)] {
            let status = StatusCode::from_u16(status).unwrap();
            let mut head = Vec::new();
            let body = Outgoing::from(text(status, "text/plain", "body")).write_head(false, &mut head);
            let head = String::from_utf8(head).unwrap();
            assert_eq!(body.is_empty(), length.is_none(), "{head}");
            assert_eq!(head.contains("content-length"), length.is_some(), "{head}");
            assert!(length.is_none_or(|length| head.contains(length)), "{head}");
            assert!(head.ends_with("\r\n\r\n"), "{head}");
        }
    }
}
