//! The front-end on an engine in memory whose clock stands still, and a client that signs what it sends.

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use mayfly_cosmos::{
    Cosmos, Head, Options,
    auth::{EMULATOR_KEY, Key, Keys, payload},
    headers, http_date,
    path::Path,
};
use mayfly_engine::{Clock as _, SystemClock, clock::Stopwatch};
use mayfly_testkit::{Backend, World};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

/// The key that `Account::send` signs with.
pub fn key() -> Key {
    Key::from_base64(EMULATOR_KEY).unwrap()
}

/// Keys with nothing but the primary one.
pub fn keys() -> Keys {
    Keys { primary: key(), secondary: None, read_only: None }
}

/// A server with nothing in it but the world's empty database `db`.
pub struct Account {
    pub world: World,
    cosmos: Cosmos,
}

/// What came back.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: hyper::HeaderMap,
    pub body: Bytes,
}

impl Answer {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The text of an error; panics if the body is not in the protocol's shape.
    pub fn message(&self) -> String {
        let body = self.json();
        assert!(body["code"].is_string(), "{body}");
        body["message"].as_str().unwrap().to_owned()
    }

    /// Status and substatus.
    pub fn statuses(&self) -> (u16, &str) {
        (self.status, self.header("x-ms-substatus"))
    }

    /// Asserts a refusal with a text.
    #[track_caller]
    pub fn refused(&self, status: u16, text: &str) {
        assert_eq!(self.status, status, "{}", String::from_utf8_lossy(&self.body));
        assert!(self.message().contains(text), "{} has no\n{text}", self.message());
    }

    /// Asserts success.
    #[track_caller]
    pub fn ok(self) -> Self {
        assert!(self.status < 300, "{} {}", self.status, String::from_utf8_lossy(&self.body));
        self
    }
}

impl Account {
    pub async fn new() -> Self {
        Self::with(Options::new(keys())).await
    }

    pub async fn with(options: Options) -> Self {
        let world = World::new(Backend::Mirrored).await;
        let cosmos = Cosmos::new(world.engine().clone(), options);
        Self { world, cosmos }
    }

    /// Sends a request as it is.
    pub async fn raw(&self, request: Request<Full<Bytes>>) -> Answer {
        let (parts, body) = request.into_parts();
        let (reply, _) = self.cosmos.serve(Head::of(&parts), body, "http", Stopwatch::start()).await;
        let (parts, body) = reply.into_response().into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Answer { status: parts.status.as_u16(), headers: parts.headers, body }
    }

    /// Sends a signed request.
    pub async fn send(
        &self,
        verb: &str,
        path: &str,
        extra: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        self.raw(signed(&key(), verb, path, extra, body)).await
    }

    pub async fn get(&self, path: &str, extra: &[(&str, &str)]) -> Answer {
        self.send("GET", path, extra, "").await
    }

    /// A container `c` in `db`, partitioned by `/pk`, with these members and headers.
    pub async fn container(&self, members: Value, extra: &[(&str, &str)]) -> Answer {
        let mut body = serde_json::json!({ "id": "c", "partitionKey": { "paths": ["/pk"], "kind": "Hash", "version": 2 } });
        if let (Value::Object(body), Value::Object(members)) = (&mut body, members) {
            body.extend(members);
        }
        self.send("POST", "/dbs/db/colls", extra, body.to_string()).await
    }

    /// Makes an item in `db/c` whose partition key is its `pk`.
    pub async fn item(&self, body: Value) -> Answer {
        let key = format!("[{}]", body["pk"]);
        self.send("POST", "/dbs/db/colls/c/docs", &[(PK, &key)], body.to_string()).await
    }

    /// Asks for the items of `db/c` by a query.
    pub async fn query(&self, text: &str, extra: &[(&str, &str)]) -> Answer {
        let mut all = vec![(IS_QUERY, "True"), (CROSS, "True")];
        all.extend_from_slice(extra);
        self.send("POST", "/dbs/db/colls/c/docs", &all, serde_json::json!({ "query": text }).to_string())
            .await
    }
}

pub const PK: &str = "x-ms-documentdb-partitionkey";
pub const IS_QUERY: &str = "x-ms-documentdb-isquery";
pub const CROSS: &str = "x-ms-documentdb-query-enablecrosspartition";
pub const SESSION: &str = "x-ms-session-token";
pub const LEVEL: &str = "x-ms-consistency-level";
pub const RANGE: &str = "x-ms-documentdb-partitionkeyrangeid";
pub const THROUGHPUT: &str = "x-ms-offer-throughput";

/// A request signed now.
pub fn signed(
    key: &Key,
    verb: &str,
    path: &str,
    extra: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> Request<Full<Bytes>> {
    let date = http_date::format(SystemClock.now().seconds());
    signed_at(key, &date, verb, path, extra, body)
}

/// A request signed at a date.
pub fn signed_at(
    key: &Key,
    date: &str,
    verb: &str,
    path: &str,
    extra: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> Request<Full<Bytes>> {
    let parsed = Path::parse(path).unwrap();
    let candidates = parsed.signing_candidates();
    let (kind, link) = &candidates[0];
    let signature = key.sign(&payload(verb, kind, link, Some(date), None));
    let token = format!("type=master&ver=1.0&sig={signature}");
    let token = utf8_percent_encode(&token, NON_ALPHANUMERIC).to_string();
    let mut all = vec![(headers::DATE.as_str(), date), ("authorization", &token)];
    all.extend_from_slice(extra);
    request(verb, path, &all, body)
}

/// A request with these headers and no others.
pub fn request(verb: &str, path: &str, all: &[(&str, &str)], body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    let mut request = Request::builder().method(verb).uri(path);
    for (name, value) in all {
        request = request.header(*name, *value);
    }
    request.body(Full::new(body.into())).unwrap()
}
