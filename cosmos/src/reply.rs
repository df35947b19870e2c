//! An answer in the making: status, headers, body.
//!
//! Headers are a list until the end. Finding the place of each name in a map takes longer than all else that is done for a
//! header, and answers of one kind have the same names in the same order: so the map of an earlier one is copied, and
//! only its values are put in; those that all answers have are there already.

use std::{
    cell::{Cell, RefCell},
    mem, ptr,
    sync::LazyLock,
};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{
    HeaderMap, Response, StatusCode,
    header::{HeaderName, HeaderValue},
};

use mayfly_engine::{Clock as _, SystemClock, charge};
use mayfly_sql::value::json::write_number;
use mayfly_value::json::write_int;

use crate::{error::ApiError, headers, http_date};

/// The body of every answer.
pub type Body = Full<Bytes>;

/// Room for the headers of an item's answer, so that the list does not grow step by step.
const HEADERS: usize = 28;

/// Room for the longest value that is put together piece by piece: a session token of one range.
const DRAFT_BYTES: usize = 40;

/// Kinds of answers that are remembered by each thread.
const SHAPES_MAX: usize = 8;

/// Many numbers are small: the range of a container that has one, what reading a small item costs.
static DIGITS: [HeaderValue; 10] = [
    HeaderValue::from_static("0"),
    HeaderValue::from_static("1"),
    HeaderValue::from_static("2"),
    HeaderValue::from_static("3"),
    HeaderValue::from_static("4"),
    HeaderValue::from_static("5"),
    HeaderValue::from_static("6"),
    HeaderValue::from_static("7"),
    HeaderValue::from_static("8"),
    HeaderValue::from_static("9"),
];

/// What every answer has. Nothing of it is counted when it is copied.
static COMMON: LazyLock<[(&'static HeaderName, HeaderValue); 5]> = LazyLock::new(|| {
    // When this server began to answer.
    static STARTED: LazyLock<String> = LazyLock::new(|| http_date::format(SystemClock.now().seconds()));
    let version = || HeaderValue::from_static("version=2.14.0");
    [
        (&headers::GATEWAY_VERSION, version()),
        (&headers::SERVICE_VERSION, version()),
        (&headers::SCHEMA_VERSION, HeaderValue::from_static("1.19")),
        (&headers::NUMBER_OF_READ_REGIONS, HeaderValue::from_static("0")),
        (&headers::LAST_STATE_CHANGE, HeaderValue::from_static(&STARTED)),
    ]
});

/// What is left of an answer that was made.
#[derive(Default)]
struct Spare {
    headers: Vec<(&'static HeaderName, HeaderValue)>,
    draft: Vec<u8>,
}

thread_local! {
    /// Of the last answer, for the next one.
    static SPARE: Cell<Spare> = const { Cell::new(Spare { headers: Vec::new(), draft: Vec::new() }) };
}

/// What a handler answers.
#[derive(Debug)]
pub struct Reply {
    status: StatusCode,
    headers: Vec<(&'static HeaderName, HeaderValue)>,
    body: Vec<u8>,
    charge: Option<f64>,
    /// Where values of headers are put together.
    draft: Vec<u8>,
}

impl Reply {
    /// An answer without a body.
    pub fn empty(status: StatusCode) -> Self {
        Self::json(status, Vec::new())
    }

    /// An answer with JSON text.
    pub fn json(status: StatusCode, body: Vec<u8>) -> Self {
        let Spare { mut headers, mut draft } = SPARE.take();
        headers.reserve(HEADERS);
        draft.reserve(DRAFT_BYTES);
        Self { status, headers, body, charge: None, draft }
    }

    /// An answer in another form.
    pub fn bytes(status: StatusCode, content_type: &'static str, body: Bytes) -> Self {
        Self::json(status, body.to_vec()).with(&headers::CONTENT_TYPE, content_type)
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

    /// Sets a header whose value is known to be one. The last word about a header is the one that counts.
    pub fn set_value(&mut self, name: &'static HeaderName, value: HeaderValue) {
        self.headers.push((name, value));
    }

    /// Sets a header. A value that cannot stand in a header is left out.
    pub fn set(&mut self, name: &'static HeaderName, value: impl ToString) {
        self.set_text(name, value.to_string());
    }

    /// The same for text that nobody needs any more.
    pub fn set_text(&mut self, name: &'static HeaderName, value: String) {
        if let Ok(value) = HeaderValue::from_maybe_shared(Bytes::from(value)) {
            self.set_value(name, value);
        }
    }

    /// The same for what `write` appends.
    pub fn set_written(&mut self, name: &'static HeaderName, write: impl FnOnce(&mut Vec<u8>)) {
        if let Some(value) = self.written(write) {
            self.set_value(name, value);
        }
    }

    /// What `write` appends, as long as it has to be: a value with room to spare takes a second allocation to say so.
    fn written(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Option<HeaderValue> {
        self.draft.clear();
        write(&mut self.draft);
        value_of(&self.draft)
    }

    /// The same with one more header.
    pub fn with(mut self, name: &'static HeaderName, value: impl ToString) -> Self {
        self.set(name, value);
        self
    }

    /// Sets headers that are the same whole number.
    pub fn set_number(&mut self, names: &[&'static HeaderName], value: u64) {
        // Each its own copy: one for all would be counted with every use, which takes longer.
        let mut value = self.written(|out| write_int(value as i64, out));
        for name in names {
            let own = value.take().or_else(|| value_of(&self.draft));
            self.headers.extend(own.map(|own| (*name, own)));
        }
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
    pub fn has(&self, name: &'static HeaderName) -> bool {
        self.headers.iter().any(|(known, _)| ptr::eq(*known, name))
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
        let charge = self.charge();
        self.set_written(&headers::REQUEST_CHARGE, |out| write_number(charge, out));
        if !self.body.is_empty() && !self.has(&headers::CONTENT_TYPE) {
            self.set_value(&headers::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        let mut response = Response::new(Full::new(Bytes::from(self.body)));
        *response.status_mut() = self.status;
        *response.headers_mut() = mapped(&mut self.headers);
        SPARE.set(Spare { headers: self.headers, draft: self.draft });
        response
    }
}

fn value_of(text: &[u8]) -> Option<HeaderValue> {
    match *text {
        [digit @ b'0'..=b'9'] => Some(DIGITS[usize::from(digit - b'0')].clone()),
        _ => HeaderValue::from_bytes(text).ok(),
    }
}

/// The headers as a map, with those that every answer has. The list is empty then.
fn mapped(headers: &mut Vec<(&'static HeaderName, HeaderValue)>) -> HeaderMap {
    thread_local! {
        /// The latest last.
        static SHAPES: RefCell<Vec<Shape>> = const { RefCell::new(Vec::new()) };
    }
    SHAPES.with_borrow_mut(|shapes| {
        if let Some(shape) = shapes.iter().find(|shape| shape.is_of(headers)) {
            let mut map = shape.map.clone();
            for (place, (_, value)) in map.values_mut().zip(headers.drain(..)) {
                // There was nothing that would have to be let go of, and to find that out is a call each.
                mem::forget(mem::replace(place, value));
            }
            return map;
        }
        let names: Vec<_> = headers.iter().map(|(name, _)| *name).collect();
        let mut map = HeaderMap::with_capacity(names.len() + COMMON.len());
        for (name, value) in headers.drain(..) {
            map.insert(name, value);
        }
        for (name, value) in COMMON.iter() {
            map.entry(*name).or_insert_with(|| value.clone());
        }
        // One that was set twice is there once, and what it was set to first would get a place.
        if map.len() == names.len() + COMMON.len() {
            let mut shape = Shape { map: map.clone(), names };
            let own = shape.map.values_mut().take(shape.names.len());
            own.for_each(|value| *value = HeaderValue::from_static(""));
            if shapes.len() == SHAPES_MAX {
                shapes.remove(0);
            }
            shapes.push(shape);
        }
        map
    })
}

/// What answers of one kind have in common.
struct Shape {
    names: Vec<&'static HeaderName>,
    /// With these names in this order, and no values; and with those that every answer has.
    map: HeaderMap,
}

impl Shape {
    fn is_of(&self, headers: &[(&'static HeaderName, HeaderValue)]) -> bool {
        self.names.len() == headers.len()
            && self.names.iter().zip(headers).all(|(known, (name, _))| ptr::eq(*known, *name))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever was answered before.
        #[test]
        fn each_header_has_the_value_it_was_set_to_last(
            answers in prop::collection::vec(prop::collection::vec((0..headers::ALL.len(), 0..1000_u32), 0..40), 1..20),
        ) {
            for answer in answers {
                // Once for a kind that may be new, once for one that is known.
                for more in [0, 1] {
                    let mut reply = Reply::empty(StatusCode::OK);
                    let mut expected: HeaderMap =
                        COMMON.iter().map(|(name, value)| ((*name).clone(), value.clone())).collect();
                    for (name, value) in &answer {
                        let (name, value) = (headers::ALL[*name], value + more);
                        reply.set(name, value);
                        expected.insert(name, HeaderValue::from(value));
                    }
                    expected.insert(&headers::REQUEST_CHARGE, HeaderValue::from(charge::MISS as u32));
                    let response = reply.into_response();
                    prop_assert_eq!(response.headers(), &expected);
                }
            }
        }
    }
}
