//! An answer in the making: status, headers, body.

use bytes::Bytes;
use http_body_util::Full;
use hyper::{
    HeaderMap, Response, StatusCode,
    header::{CONTENT_TYPE, HeaderName, HeaderValue},
};

use mayfly_engine::charge;
use mayfly_sql::value::json::write_number;

use crate::{error::ApiError, headers};

/// The body of every answer.
pub type Body = Full<Bytes>;

/// Room for the headers of an item's answer, so that the map does not grow step by step.
const HEADERS: usize = 24;

/// What a handler answers.
#[derive(Debug)]
pub struct Reply {
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
    charge: Option<f64>,
}

impl Reply {
    /// An answer without a body.
    pub fn empty(status: StatusCode) -> Self {
        Self::json(status, Vec::new())
    }

    /// An answer with JSON text.
    pub fn json(status: StatusCode, body: Vec<u8>) -> Self {
        Self { status, headers: HeaderMap::with_capacity(HEADERS), body, charge: None }
    }

    /// An answer in another form.
    pub fn bytes(status: StatusCode, content_type: &'static str, body: Bytes) -> Self {
        Self::json(status, body.to_vec()).with(&CONTENT_TYPE, content_type)
    }

    /// An answer with a JSON value.
    pub fn value(status: StatusCode, value: &serde_json::Value) -> Self {
        Self::json(status, value.to_string().into_bytes())
    }

    /// An error, in the protocol's shape.
    pub fn error(error: &ApiError, activity_id: &str) -> Self {
        let status = StatusCode::from_u16(error.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut reply = Self::json(status, error.to_body(activity_id).into_bytes());
        if error.substatus != 0 {
            reply.set(&headers::SUBSTATUS, error.substatus);
        }
        if let Some(wait) = error.retry_after {
            reply.set(&headers::RETRY_AFTER_MS, wait.as_millis());
        }
        reply
    }

    /// Sets a header whose value is known to be one.
    pub fn set_value(&mut self, name: &HeaderName, value: HeaderValue) {
        self.headers.insert(name.clone(), value);
    }

    /// Sets a header. A value that cannot stand in a header is left out.
    pub fn set(&mut self, name: &HeaderName, value: impl ToString) {
        self.set_text(name, value.to_string());
    }

    /// The same for text that nobody needs any more.
    pub fn set_text(&mut self, name: &HeaderName, value: String) {
        if let Ok(value) = HeaderValue::try_from(value) {
            self.headers.insert(name.clone(), value);
        }
    }

    /// The same with one more header.
    pub fn with(mut self, name: &HeaderName, value: impl ToString) -> Self {
        self.set(name, value);
        self
    }

    /// Sets a header that is a whole number.
    pub fn set_number(&mut self, name: &HeaderName, value: u64) {
        self.set_value(name, HeaderValue::from(value));
    }

    /// Says what the request has cost.
    pub fn set_charge(&mut self, charge: f64) {
        self.charge = Some(charge);
    }

    /// The same, as a handler's last word.
    pub fn charged(mut self, charge: f64) -> Self {
        self.set_charge(charge);
        self
    }

    /// Whether the handler has set a header.
    pub fn has(&self, name: &HeaderName) -> bool {
        self.headers.contains_key(name)
    }

    /// What the request has cost; a miss unless the handler says otherwise.
    pub fn charge(&self) -> f64 {
        self.charge.unwrap_or(charge::MISS)
    }

    /// The status, for logs and metrics.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The HTTP response.
    pub fn into_response(mut self) -> Response<Body> {
        let mut charge = Vec::with_capacity(16);
        write_number(self.charge(), &mut charge);
        if let Ok(charge) = HeaderValue::from_maybe_shared(Bytes::from(charge)) {
            self.set_value(&headers::REQUEST_CHARGE, charge);
        }
        if !self.body.is_empty() {
            self.headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static("application/json"));
        }
        let mut response = Response::new(Full::new(Bytes::from(self.body)));
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers;
        response
    }
}
