//! An answer in the making: status, headers, body.
//!
//! Headers are text from the start, in the form HTTP/1.1 sends them, one line after the other: to send an answer is to copy
//! them. Where hyper sends it, which takes a map, the map of an earlier answer of the same kind is copied and its values put in.

use std::{
    cell::{Cell, RefCell},
    fmt::Display,
    io::Write as _,
    ops::Range,
    ptr,
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

/// Room for the headers of an item's answer, so that nothing grows step by step.
const LINES: usize = 32;
const LINES_BYTES: usize = 1536;

/// Kinds of answers that are remembered by each thread.
const SHAPES_MAX: usize = 8;

/// Headers in the form they are sent in: a line after the other.
#[derive(Clone, Debug, Default)]
struct Lines {
    text: Vec<u8>,
    lines: Vec<Line>,
}

#[derive(Clone, Debug)]
struct Line {
    name: &'static HeaderName,
    /// Where its text begins, with the name.
    start: u32,
    /// Where the line ends, and the next begins.
    end: u32,
}

/// Between name and value, and after the value.
const COLON: &[u8] = b": ";
const LINE_END: &[u8] = b"\r\n";

impl Line {
    fn is_of(&self, name: &'static HeaderName) -> bool {
        ptr::eq(self.name, name)
    }

    /// Where its value is.
    fn value(&self) -> Range<usize> {
        let name = self.name.as_str().len() + COLON.len();
        self.start as usize + name..self.end as usize - LINE_END.len()
    }
}

impl Lines {
    /// Sets a header to what `write` appends. If that cannot stand in one, it is left out.
    fn set(&mut self, name: &'static HeaderName, write: impl FnOnce(&mut Vec<u8>)) {
        if let Some(place) = self.lines.iter().position(|line| line.is_of(name)) {
            self.remove(place);
        }
        let start = self.text.len();
        self.text.extend_from_slice(name.as_str().as_bytes());
        self.text.extend_from_slice(COLON);
        let value = self.text.len();
        write(&mut self.text);
        if can_stand_in_a_header(&self.text[value..]) {
            self.text.extend_from_slice(LINE_END);
            // Nothing that fits into memory and was written by a handler is as long as that.
            self.lines.push(Line { name, start: start as u32, end: self.text.len() as u32 });
        } else {
            self.text.truncate(start);
        }
    }

    fn remove(&mut self, place: usize) {
        let Line { start, end, .. } = self.lines.remove(place);
        self.text.drain(start as usize..end as usize);
        for line in &mut self.lines[place..] {
            line.start -= end - start;
            line.end -= end - start;
        }
    }

    fn copy_from(&mut self, other: &Self) {
        self.text.clear();
        self.text.extend_from_slice(&other.text);
        self.lines.clear();
        self.lines.extend_from_slice(&other.lines);
    }
}

/// What HTTP allows: no control characters but the tabulator.
fn can_stand_in_a_header(value: &[u8]) -> bool {
    // All bytes are looked at, many at a time.
    value.iter().fold(true, |so_far, byte| so_far & (*byte >= b' ' && *byte != 127 || *byte == b'\t'))
}

/// What every answer has.
static COMMON: LazyLock<Lines> = LazyLock::new(|| {
    let mut common = Lines::default();
    for (name, value) in [
        (&headers::GATEWAY_VERSION, "version=2.14.0"),
        (&headers::SERVICE_VERSION, "version=2.14.0"),
        (&headers::SCHEMA_VERSION, "1.19"),
        (&headers::NUMBER_OF_READ_REGIONS, "0"),
        // When this server began to answer.
        (&headers::LAST_STATE_CHANGE, &http_date::format(SystemClock.now().seconds())),
    ] {
        common.set(name, |out| out.extend_from_slice(value.as_bytes()));
    }
    common
});

thread_local! {
    /// The lists of the last answer, for the next one.
    static SPARE: Cell<Lines> = const { Cell::new(Lines { text: Vec::new(), lines: Vec::new() }) };
}

/// What a handler answers.
#[derive(Debug)]
pub struct Reply {
    status: StatusCode,
    headers: Lines,
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
        let mut headers = SPARE.take();
        headers.copy_from(&COMMON);
        headers.text.reserve(LINES_BYTES);
        headers.lines.reserve(LINES);
        Self { status, headers, body, charge: None }
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

    /// Sets a header to what `write` appends. The last word about a header is the one that counts; a value that cannot stand in a
    /// header is left out.
    pub fn set_written(&mut self, name: &'static HeaderName, write: impl FnOnce(&mut Vec<u8>)) {
        self.headers.set(name, write);
    }

    /// The same for a text.
    pub fn set_text(&mut self, name: &'static HeaderName, value: &str) {
        self.set_written(name, |out| out.extend_from_slice(value.as_bytes()));
    }

    /// The same for what can be shown.
    pub fn set(&mut self, name: &'static HeaderName, value: impl Display) {
        self.set_written(name, |out| {
            // There is always room.
            let _ = write!(out, "{value}");
        });
    }

    /// The same with one more header.
    pub fn with(mut self, name: &'static HeaderName, value: impl Display) -> Self {
        self.set(name, value);
        self
    }

    /// Sets headers that are the same whole number.
    pub fn set_number(&mut self, names: &[&'static HeaderName], value: u64) {
        for name in names {
            self.set_written(name, |out| write_int(value as i64, out));
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

    /// Whether it has a header already.
    pub fn has(&self, name: &'static HeaderName) -> bool {
        self.headers.lines.iter().any(|line| line.is_of(name))
    }

    /// What the request has cost; a miss unless the handler says otherwise.
    pub fn charge(&self) -> f64 {
        self.charge.unwrap_or(charge::MISS)
    }

    /// The status, for logs and metrics.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// Adds what is known last.
    fn complete(&mut self) {
        let charge = self.charge();
        self.set_written(&headers::REQUEST_CHARGE, |out| write_number(charge, out));
        if !self.body.is_empty() && !self.has(&headers::CONTENT_TYPE) {
            self.set_text(&headers::CONTENT_TYPE, "application/json");
        }
    }

    /// The HTTP response.
    pub fn into_response(mut self) -> Response<Body> {
        self.complete();
        let mut response = Response::new(Full::new(Bytes::from(self.body)));
        *response.status_mut() = self.status;
        *response.headers_mut() = mapped(self.headers);
        response
    }

    /// Appends the head of the HTTP/1.1 response but for its last lines, which are about the connection; gives the body.
    pub fn write_head(mut self, out: &mut Vec<u8>) -> Vec<u8> {
        self.complete();
        if !self.has(&headers::HTTP_DATE) {
            self.set_written(&headers::HTTP_DATE, |out| http_date::push(SystemClock.now().seconds(), out));
        }
        out.reserve(STATUS_LINE_BYTES + self.headers.text.len() + self.body.len());
        write_status(self.status, out);
        out.extend_from_slice(&self.headers.text);
        SPARE.set(self.headers);
        self.body
    }
}

/// Room for the first and the last lines of a head.
const STATUS_LINE_BYTES: usize = 128;

/// Appends the first line of an HTTP/1.1 response.
pub fn write_status(status: StatusCode, out: &mut Vec<u8>) {
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(status.as_str().as_bytes());
    out.push(b' ');
    out.extend_from_slice(status.canonical_reason().unwrap_or_default().as_bytes());
    out.extend_from_slice(LINE_END);
}

/// The headers as a map.
fn mapped(headers: Lines) -> HeaderMap {
    thread_local! {
        /// The latest last.
        static SHAPES: RefCell<Vec<Shape>> = const { RefCell::new(Vec::new()) };
    }
    let Lines { text, lines } = headers;
    let text = Bytes::from(text);
    SHAPES.with_borrow_mut(|shapes| {
        if !shapes.iter().any(|shape| shape.is_of(&lines)) {
            if shapes.len() == SHAPES_MAX {
                shapes.remove(0);
            }
            shapes.push(Shape::of(&lines));
        }
        let shape = shapes.iter().find(|shape| shape.is_of(&lines));
        let mut map = shape.map(|shape| shape.map.clone()).unwrap_or_default();
        for (place, line) in map.values_mut().zip(&lines) {
            // They were looked at when they were set.
            if let Ok(value) = HeaderValue::from_maybe_shared(text.slice(line.value())) {
                *place = value;
            }
        }
        map
    })
}

/// What answers of one kind have in common: finding the place of each name takes longer than all else that is done for a header.
struct Shape {
    names: Vec<&'static HeaderName>,
    /// With these names in this order, and no values.
    map: HeaderMap,
}

impl Shape {
    fn of(lines: &[Line]) -> Self {
        let names: Vec<_> = lines.iter().map(|line| line.name).collect();
        let map = names.iter().map(|name| ((*name).clone(), HeaderValue::from_static(""))).collect();
        Self { names, map }
    }

    fn is_of(&self, lines: &[Line]) -> bool {
        self.names.len() == lines.len() && self.names.iter().zip(lines).all(|(known, line)| line.is_of(known))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// An answer with these headers, and all that it should have, in the order of their names.
    fn answer(values: &[(usize, u32)]) -> (Reply, Vec<(String, String)>) {
        let mut reply = Reply::empty(StatusCode::OK);
        let mut expected = HeaderMap::new();
        for line in &COMMON.lines {
            expected.insert(line.name, HeaderValue::from_bytes(&COMMON.text[line.value()]).unwrap());
        }
        for (name, value) in values {
            reply.set(headers::ALL[*name], value);
            expected.insert(headers::ALL[*name], HeaderValue::from(*value));
        }
        expected.insert(&headers::REQUEST_CHARGE, HeaderValue::from(charge::MISS as u32));
        (reply, told(&expected))
    }

    fn told(map: &HeaderMap) -> Vec<(String, String)> {
        let mut told: Vec<_> =
            map.iter().map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned())).collect();
        told.sort();
        told
    }

    proptest! {
        /// Whatever was answered before, and in whichever form it is sent.
        #[test]
        fn each_header_has_the_value_it_was_set_to_last(
            answers in prop::collection::vec(prop::collection::vec((0..headers::ALL.len(), 0..1000_u32), 0..40), 1..20),
        ) {
            for values in answers {
                // Once for a kind that may be new, once for one that is known.
                for _ in 0..2 {
                    let (reply, expected) = answer(&values);
                    prop_assert_eq!(told(reply.into_response().headers()), expected);
                }
                let (reply, mut expected) = answer(&values);
                let mut head = Vec::new();
                reply.write_head(&mut head);
                let text = String::from_utf8(head).unwrap();
                let (first, lines) = text.split_once("\r\n").unwrap();
                prop_assert_eq!(first, "HTTP/1.1 200 OK");
                let pair = |line: &str| line.split_once(": ").map(|(name, value)| (name.to_owned(), value.to_owned()));
                let mut written: Vec<_> = lines.split_terminator("\r\n").map(|line| pair(line).unwrap()).collect();
                written.sort();
                let date = written.iter().position(|(name, _)| name == "date");
                expected.push(written[date.unwrap()].clone());
                expected.sort();
                prop_assert_eq!(written, expected);
            }
        }
    }

    #[test]
    fn what_cannot_stand_in_a_header_is_left_out() {
        for (value, is_there) in [
            ("", true),
            ("a b\tc", true),
            ("\u{e9}", true),
            ("a\r\nb: c", false),
            ("\0", false),
            ("\u{7f}", false),
        ] {
            let mut reply = Reply::empty(StatusCode::OK);
            reply.set(&headers::LSN, 1);
            reply.set_text(&headers::CONTINUATION, value);
            reply.set(&headers::ITEM_LSN, 2);
            assert_eq!(reply.has(&headers::CONTINUATION), is_there, "{value:?}");
            let mut head = Vec::new();
            reply.write_head(&mut head);
            let line = [b"\r\nx-ms-continuation: ", value.as_bytes(), b"\r\n"].concat();
            assert_eq!(memchr::memmem::find(&head, &line).is_some(), is_there, "{value:?}");
            assert!(memchr::memmem::find(&head, b"\r\nlsn: 1\r\n").is_some());
            assert!(memchr::memmem::find(&head, b"\r\nx-ms-item-lsn: 2\r\n").is_some());
        }
    }
}
