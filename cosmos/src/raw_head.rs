//! The head of an HTTP/1.1 request as it came: its text, and where its parts are in it.
//!
//! A map of headers costs more to fill than most requests cost to answer: a hash and two counted parts for each line, of which
//! few are ever looked at. Requests of clients have a plain form, and for these the lines are enough: a line is found by the
//! length of its name, and then by the name.
//!
//! Holds: what is read here is what hyper would have read. Whatever is not of the plain form, or is not all there, is not
//! read at all: how long its body is, whether it wants to change the protocol and what is wrong with it is for hyper to say.

use std::{fmt, mem::MaybeUninit, ops::Range};

use hyper::{
    HeaderMap, Method, Uri,
    header::{HeaderName, HeaderValue},
    http::{Error, request::Parts},
};

use crate::headers::length_bit;

/// Lines that a head may have; clients send up to twenty.
const LINES_MAX: usize = 40;

/// Bytes that a head may have. Places in it are kept as 16 bits.
const BYTES_MAX: usize = 16 * 1024;

/// A head of the plain form.
pub struct RawHead {
    text: String,
    method: Method,
    target: Place,
    /// The part of the target before a question mark.
    path: Place,
    lines: [Line; LINES_MAX],
    count: usize,
    lengths: u64,
    body_bytes: usize,
    is_last: bool,
}

#[derive(Clone, Copy, Default)]
struct Line {
    /// In lower case.
    name: Place,
    value: Place,
}

#[derive(Clone, Copy, Default)]
struct Place {
    start: u16,
    end: u16,
}

impl RawHead {
    /// Reads the head that `bytes` begin with.
    pub fn read(bytes: &[u8]) -> Option<Box<Self>> {
        let mut lines = [const { MaybeUninit::uninit() }; LINES_MAX];
        let mut request = httparse::Request::new(&mut []);
        let parsed = request.parse_with_uninit_headers(bytes, &mut lines);
        let Ok(httparse::Status::Complete(length)) = parsed else { return None };
        let bytes = &bytes[..length];
        if length > BYTES_MAX || request.version != Some(1) || !bytes.is_ascii() {
            return None;
        }
        let target = request.path.filter(|target| is_plain_target(target))?;
        let mut head = Box::new(Self {
            text: str::from_utf8(bytes).ok()?.to_owned(),
            method: plain_method(request.method?)?,
            target: Place::of(target.as_bytes(), bytes),
            path: Place::of(target.split('?').next()?.as_bytes(), bytes),
            lines: [Line::default(); LINES_MAX],
            count: 0,
            lengths: 0,
            body_bytes: 0,
            is_last: false,
        });
        let (mut length_told, mut last_told) = (None, None);
        for line in &*request.headers {
            match line.name.len() {
                10 if line.name.eq_ignore_ascii_case("connection") => {
                    let is_last = line.value.eq_ignore_ascii_case(b"close");
                    let is_known = is_last || line.value.eq_ignore_ascii_case(b"keep-alive");
                    if !is_known || last_told.replace(is_last).is_some() {
                        return None;
                    }
                }
                14 if line.name.eq_ignore_ascii_case("content-length") => {
                    let told = whole_number(line.value)?;
                    if length_told.replace(told).is_some() {
                        return None;
                    }
                }
                6 | 7 | 17 if ends_plainness(line.name) => return None,
                _ => {}
            }
            head.push(Line {
                name: Place::of(line.name.as_bytes(), bytes),
                value: Place::of(line.value, bytes),
            });
        }
        head.body_bytes = length_told.unwrap_or(0);
        head.is_last = last_told.unwrap_or(false);
        Some(head)
    }

    fn push(&mut self, line: Line) {
        if let Some(name) = self.text.get_mut(line.name.range()) {
            name.make_ascii_lowercase();
        }
        self.lengths |= length_bit(line.name.range().len());
        self.lines[self.count] = line;
        self.count += 1;
    }

    /// The method.
    pub fn method(&self) -> &Method {
        &self.method
    }

    /// The path that is asked for, without what follows a question mark.
    pub fn path(&self) -> &str {
        self.part(self.path)
    }

    /// What is asked for: the path, and what follows a question mark.
    pub fn target(&self) -> &str {
        self.part(self.target)
    }

    /// How long the head is, in bytes.
    pub fn bytes(&self) -> usize {
        self.text.len()
    }

    /// How many bytes follow it.
    pub fn body_bytes(&self) -> usize {
        self.body_bytes
    }

    /// Whether the client wants the connection to end with the answer.
    pub fn is_last(&self) -> bool {
        self.is_last
    }

    /// A bit for each length that a name has.
    pub(crate) fn lengths(&self) -> u64 {
        self.lengths
    }

    /// The value of a header; of the first, if there are several.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.lines().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    fn lines(&self) -> impl Iterator<Item = (&str, &str)> {
        self.lines[..self.count].iter().map(|line| (self.part(line.name), self.part(line.value)))
    }

    fn part(&self, place: Place) -> &str {
        self.text.get(place.range()).unwrap_or_default()
    }

    /// The same, as hyper would have it.
    pub fn to_parts(&self) -> Result<Parts, Error> {
        let mut headers = HeaderMap::with_capacity(self.count);
        for (name, value) in self.lines() {
            headers.append(HeaderName::from_bytes(name.as_bytes())?, HeaderValue::from_str(value)?);
        }
        let (mut parts, ()) = hyper::Request::new(()).into_parts();
        parts.method = self.method.clone();
        parts.uri = self.part(self.target).parse::<Uri>()?;
        parts.headers = headers;
        Ok(parts)
    }
}

/// Without values: there are keys among them.
impl fmt::Debug for RawHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawHead")
            .field("method", &self.method)
            .field("path", &self.path())
            .finish_non_exhaustive()
    }
}

impl Place {
    /// Where `part` is in `whole`, which it is a part of.
    fn of(part: &[u8], whole: &[u8]) -> Self {
        // One without bytes may be anywhere.
        if part.is_empty() {
            return Self::default();
        }
        let start = part.as_ptr().addr() - whole.as_ptr().addr();
        // Heads are not as long as these numbers go.
        Self { start: start as u16, end: (start + part.len()) as u16 }
    }

    fn range(self) -> Range<usize> {
        self.start.into()..self.end.into()
    }
}

/// Headers after which something else follows than a body of a known length, or something else than an answer is wanted.
fn ends_plainness(name: &str) -> bool {
    ["expect", "upgrade", "transfer-encoding"].iter().any(|other| name.eq_ignore_ascii_case(other))
}

/// The methods whose answers have bodies. To hyper it makes a difference how a method is written.
fn plain_method(name: &str) -> Option<Method> {
    [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE]
        .into_iter()
        .find(|method| method.as_str() == name)
}

/// A path of what is never anything else in an address: neither a host before it nor a fragment behind.
fn is_plain_target(target: &str) -> bool {
    target.starts_with('/')
        && !target.starts_with("//")
        && target.bytes().all(|byte| IS_PLAIN[usize::from(byte)])
}

/// What a target can have that hyper takes as it is.
static IS_PLAIN: [bool; 256] = {
    let mut is_plain = [false; 256];
    let plain = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~!$&'()*+,;=:@/%?";
    let mut place = 0;
    while place < plain.len() {
        is_plain[plain[place] as usize] = true;
        place += 1;
    }
    is_plain
};

fn whole_number(digits: &[u8]) -> Option<usize> {
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    str::from_utf8(digits).ok().filter(|_| is_number)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::headers::{self, Headers};

    fn read(text: &str) -> Option<Box<RawHead>> {
        RawHead::read(text.as_bytes())
    }

    #[test]
    fn parts_are_where_they_were() {
        let text = "POST /dbs/d/colls?x=1 HTTP/1.1\r\nHost: h:1\r\nX-MS-Date:  now \r\nlsn:\r\nprefer: a\r\n\
                    Prefer: b\r\ncontent-length: 3\r\n\r\nabcGET / HTTP/1.1\r\n\r\n";
        let head = read(text).unwrap();
        assert_eq!((head.method(), head.path()), (&Method::POST, "/dbs/d/colls"));
        assert_eq!(&text[head.bytes()..][..head.body_bytes()], "abc");
        let of = |name| Headers::raw(&head).get_text(name);
        assert_eq!(of(&headers::DATE), Some("now"));
        assert_eq!(of(&headers::LSN), Some(""));
        assert_eq!(of(&headers::PREFER), Some("a"), "the first of two, as in a map");
        assert_eq!(of(&headers::VERSION), None);
        let parts = head.to_parts().unwrap();
        assert_eq!((parts.uri.path(), parts.uri.query()), ("/dbs/d/colls", Some("x=1")));
        assert_eq!(parts.headers.get_all("prefer").iter().count(), 2);
        assert!(!head.is_last());
    }

    #[test]
    fn what_is_not_plain_is_not_read() {
        let with = |line: &str| format!("GET / HTTP/1.1\r\nhost: h\r\n{line}\r\n");
        for line in
            ["", "connection: keep-alive\r\n", "Connection: Close\r\n", "content-length: 0\r\n", "x: y\r\n"]
        {
            assert!(read(&with(line)).is_some(), "{line}");
        }
        for line in [
            "connection: upgrade\r\n",
            "connection: close, x\r\n",
            "connection: close\r\nconnection: keep-alive\r\n",
            "upgrade: h2c\r\n",
            "expect: 100-continue\r\n",
            "Transfer-Encoding: chunked\r\n",
            "content-length: 1\r\ncontent-length: 1\r\n",
            "content-length: -1\r\n",
            "content-length: \r\n",
            "content-length: 99999999999999999999999\r\n",
            "x: \u{e9}\r\n",
            "x y: z\r\n",
            &"x: y\r\n".repeat(LINES_MAX),
            &format!("x: {}\r\n", "y".repeat(BYTES_MAX)),
        ] {
            assert!(read(&with(line)).is_none(), "{line}");
        }
        for first in [
            "GET / HTTP/1.0",
            "HEAD / HTTP/1.1",
            "get / HTTP/1.1",
            "OPTIONS * HTTP/1.1",
            "GET http://h/ HTTP/1.1",
            "GET //h/ HTTP/1.1",
            "GET /a#b HTTP/1.1",
            "GET /a{b} HTTP/1.1",
            "PRI * HTTP/2.0",
            "nonsense",
        ] {
            assert!(read(&format!("{first}\r\nhost: h\r\n\r\n")).is_none(), "{first}");
        }
    }

    #[test]
    fn keys_are_not_shown() {
        let head = read("GET / HTTP/1.1\r\nauthorization: secret\r\n\r\n").unwrap();
        assert!(!format!("{head:?}").contains("secret"));
    }

    proptest! {
        /// Whatever comes, and wherever it ends.
        #[test]
        fn a_head_is_read_whole_or_not_at_all(
            target in "/[ -~]{0,12}", lines in prop::collection::vec(("[a-zA-Z-]{1,20}", "[ -~]{0,20}"), 0..8), cut in 0..400_usize,
        ) {
            let lines: String = lines.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
            let text = format!("GET {target} HTTP/1.1\r\n{lines}\r\n");
            if let Some(head) = read(&text) {
                prop_assert_eq!(head.bytes(), text.len());
                let parts = head.to_parts().unwrap();
                prop_assert_eq!(parts.uri.path(), head.path());
                for name in parts.headers.keys() {
                    prop_assert_eq!(Headers::raw(&head).get_text(name), Headers::of(&parts.headers).get_text(name));
                }
            }
            if cut < text.len() {
                prop_assert!(read(&text[..cut]).is_none());
            }
        }

        #[test]
        fn any_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = RawHead::read(&bytes);
        }
    }
}
