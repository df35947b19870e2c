//! A request on its way to whoever answers it: read by hyper, or as it came.
//!
//! Both are asked in the same way. Who needs what only hyper has (an address in parts, a map of headers) makes it of the other.

use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::Method;
use hyper::body::Incoming;
use hyper::http::request::Parts;
use mayfly_cosmos::headers::Headers;
use mayfly_cosmos::{ApiError, Head, RawHead};

/// What follows a head: whole, or as it comes in.
pub type RequestBody = Either<Full<Bytes>, Incoming>;

/// A request.
#[derive(Debug)]
pub struct Request {
    /// What it asks for.
    pub heading: Heading,
    /// What it brings.
    pub body: RequestBody,
}

/// The head of a request. Boxed: it is handed on many times before it is looked at.
#[derive(Debug)]
pub enum Heading {
    /// Read by hyper.
    Parsed(Box<Parts>),
    /// As it came.
    Raw(Box<RawHead>),
}

impl Heading {
    /// All of it.
    pub fn head(&self) -> Head<'_> {
        match self {
            Self::Parsed(parts) => Head::of(parts),
            Self::Raw(head) => Head::raw(head),
        }
    }

    /// The path.
    pub fn path(&self) -> &str {
        match self {
            Self::Parsed(parts) => parts.uri.path(),
            Self::Raw(head) => head.path(),
        }
    }

    /// The method.
    pub fn method(&self) -> &Method {
        match self {
            Self::Parsed(parts) => &parts.method,
            Self::Raw(head) => head.method(),
        }
    }

    /// The headers.
    pub fn headers(&self) -> Headers<'_> {
        match self {
            Self::Parsed(parts) => Headers::of(&parts.headers),
            Self::Raw(head) => Headers::raw(head),
        }
    }
}

impl Request {
    /// One that was read as it came.
    pub fn raw(head: Box<RawHead>, body: Bytes) -> Self {
        Self { heading: Heading::Raw(head), body: Either::Left(Full::new(body)) }
    }

    /// As hyper has it.
    pub fn into_http(self) -> Result<hyper::Request<RequestBody>, ApiError> {
        let parts = match self.heading {
            Heading::Parsed(parts) => *parts,
            Heading::Raw(head) => {
                head.to_parts().map_err(|_| ApiError::bad_request("The request could not be read."))?
            }
        };
        Ok(hyper::Request::from_parts(parts, self.body))
    }
}

impl From<hyper::Request<Incoming>> for Request {
    fn from(request: hyper::Request<Incoming>) -> Self {
        let (parts, body) = request.into_parts();
        Self { heading: Heading::Parsed(Box::new(parts)), body: Either::Right(body) }
    }
}
