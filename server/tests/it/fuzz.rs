//! Requests that no client would send, on every route: each gets an answer in the protocol's shape, none a 500.
//!
//! A request is made of a route's own parts, most of them right and some of them wrong, so that it gets past the first
//! check and meets the later ones. Requests come from a seed: `MAYFLY_FUZZ_SEED` repeats a run, `MAYFLY_FUZZ_CASES` makes
//! it longer.

use crate::harness::*;
use crate::random::{Random, cases};
use crate::signer::Signer;
use mayfly_cosmos::headers;
use mayfly_cosmos::routes::{ROUTES, Route, When};
use mayfly_server::listen::Limits;
use mayfly_server::node::Node;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

const CASES: u64 = 2000;

/// The world is made anew after so many requests: some of them delete it.
const CASES_PER_WORLD: u64 = 20;

const CONTAINER: &str =
    r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},"defaultTtl":-1}"#;

/// What every world has, by path and body; documents have the partition key `p`.
const WORLD: [(&str, &str); 8] = [
    ("/dbs", r#"{"id":"d"}"#),
    ("/dbs/d/colls", CONTAINER),
    ("/dbs/d/colls/c/docs", r#"{"id":"i","pk":"p","n":1,"list":[1,{"a":null}]}"#),
    ("/dbs/d/colls/c/sprocs", r#"{"id":"i","body":"function () {}"}"#),
    ("/dbs/d/colls/c/triggers", r#"{"id":"i","body":"f","triggerType":"Pre","triggerOperation":"All"}"#),
    ("/dbs/d/colls/c/udfs", r#"{"id":"i","body":"function () {}"}"#),
    ("/dbs/d/users", r#"{"id":"u"}"#),
    ("/dbs/d/users/u/permissions", r#"{"id":"i","permissionMode":"All","resource":"dbs/d/colls/c"}"#),
];

const NAMES: [&str; 20] = [
    "d",
    "c",
    "i",
    "u",
    "colls",
    "docs",
    "%zz",
    "%",
    "%00",
    "%2F",
    "%ff%fe",
    "..",
    "a%20b",
    "%F0%9F%A6%8B",
    "?x=1",
    "AAASAA==",
    "AAASAIAAACM=",
    "+",
    "#",
    "%5C",
];

const VALUES: [&str; 34] = [
    "",
    "True",
    "false",
    "maybe",
    "-1",
    "0",
    "1",
    "7",
    "1e9",
    "99999999999999999999",
    "-9999999999",
    "[\"p\"]",
    "[]",
    "[{}]",
    "[null]",
    "[1,2,3,4]",
    "[[",
    "null",
    "{",
    "\"00000000-0000-0000-0000-000000000000\"",
    "*",
    "FF",
    "05C1",
    "GG",
    "0",
    "9,0",
    "Incremental Feed",
    "Full-Fidelity Feed",
    "Thu, 01 Jan 1970 00:00:00 GMT",
    "0:-1#5",
    "return=minimal",
    "application/query+json",
    "eyJ2IjoxfQ==",
    "Strong",
];

const BODIES: [&str; 28] = [
    "",
    "{",
    "[]",
    "null",
    "1",
    "\"x\"",
    "{}",
    "{\"id\":1}",
    "{\"id\":\"\"}",
    "{\"id\":\"a/b\"}",
    r#"{"id":"i","pk":"p","ttl":0}"#,
    r#"{"id":"i","pk":"p","ttl":1e99}"#,
    r#"{"id":"i","id":"j","pk":"p"}"#,
    r#"{"id":"x","pk":{"a":1},"n":1e400}"#,
    r#"{"id":"\ud800","pk":"p"}"#,
    "{\"id\":\"\u{feff}\",\"pk\":\"p\"}",
    CONTAINER,
    r#"{"id":"c2","partitionKey":{"paths":["pk"]},"indexingPolicy":{"includedPaths":[{"path":"x"}]}}"#,
    r#"{"id":"c2","partitionKey":{"paths":["/a","/b","/c","/d"],"kind":"MultiHash"},"defaultTtl":0}"#,
    r#"{"query":"SELECT * FROM c WHERE c.n = @n","parameters":[{"name":"@n","value":1}]}"#,
    r#"{"query":"SELECT * FROM"}"#,
    r#"{"query":"SELECT VALUE COUNT(1) FROM c GROUP BY c.pk ORDER BY c.n"}"#,
    r#"{"query":"SELECT TOP -1 c.x[0].y FROM c JOIN t IN c.list WHERE t.a LIKE '%' OFFSET 1 LIMIT 0"}"#,
    r#"{"operations":[{"op":"incr","path":"/n","value":1},{"op":"move","from":"/n","path":"/m"}]}"#,
    r#"{"condition":"from c where","operations":[{"op":"add","path":"/list/-","value":null}]}"#,
    r#"[{"operationType":"Create","resourceBody":{"id":"b","pk":"p"}},{"operationType":"Read","id":"i"}]"#,
    r#"[{"operationType":"Patch","id":"i","resourceBody":{"operations":[]},"partitionKey":"[]"}]"#,
    r#"{"content":{"offerThroughput":-1},"offerVersion":"V2","resource":"x","offerResourceId":"y"}"#,
];

const VERBS: [&str; 9] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "BREW"];

#[tokio::test]
async fn odd_requests_get_answers_in_the_protocols_shape() {
    let (random, seed) = Random::seeded(20_261_116);
    let server = start_with::<Node>("store = 'memory'", Limits::default()).await;
    let mut fuzz = Fuzz { random, signer: Signer::new() };
    let cases = cases(CASES);
    let mut by_status = BTreeMap::<u16, u64>::new();
    for case in 0..cases {
        if case.is_multiple_of(CASES_PER_WORLD) {
            fuzz.make_world(server.address).await;
        }
        let request = fuzz.request();
        let answer = exchange(server.address, &request.bytes, request.is_whole).await;
        let status = answer.as_deref().and_then(parse).map_or(0, |parsed| parsed.status);
        *by_status.entry(status).or_default() += 1;
        let told = String::from_utf8_lossy(&request.bytes);
        let told: String = told.chars().take(2000).collect();
        if let Err(fault) = request.check(answer.as_deref()) {
            panic!("{fault}\nseed {seed}, case {case}:\n{told}");
        }
    }
    println!("{by_status:?}");
    // Requests that are all refused at the door would show nothing.
    let done: u64 = by_status.range(200..300).map(|(_, count)| count).sum();
    assert!(done > cases / 10, "only {done} of {cases} were carried out");
    let metrics = server.get("/metrics").await.1;
    assert!(metrics.contains("mayfly_handler_panics_total 0\n"), "a handler panicked");
    assert_eq!(server.get("/alive").await.0, 200);
}

#[tokio::test]
async fn broken_http_is_refused_and_hurts_nobody() {
    let server = start_with::<Node>("store = 'memory'", Limits::default()).await;
    let mut random = Random::new(7);
    for case in 0..200 {
        let mut bytes =
            b"POST /dbs HTTP/1.1\r\nhost: localhost\r\ncontent-length: 4\r\nx-ms-date: now\r\n\r\nbody"
                .to_vec();
        for _ in 0..=random.below(4) {
            let at = random.below(bytes.len() as u64) as usize;
            match random.below(3) {
                0 => bytes[at] = random.below(256) as u8,
                1 => drop(bytes.drain(at..)),
                _ => bytes.insert(at, random.below(256) as u8),
            }
            if bytes.is_empty() {
                break;
            }
        }
        let answer = exchange(server.address, &bytes, false).await;
        let status = answer.as_deref().and_then(|answer| Some(parse(answer)?.status));
        assert!(status.is_none_or(|status| status < 500), "case {case}: {}", String::from_utf8_lossy(&bytes));
    }
    assert!(server.get("/metrics").await.1.contains("mayfly_handler_panics_total 0\n"));
}

struct Fuzz {
    random: Random,
    signer: Signer,
}

/// A request, and what may be expected of its answer.
struct Odd {
    bytes: Vec<u8>,
    is_head: bool,
    /// Whether the server gets all of it.
    is_whole: bool,
}

impl Fuzz {
    async fn make_world(&mut self, address: SocketAddr) {
        for (path, body) in WORLD {
            let mut request = self.signer.head("POST", path);
            request += "x-ms-documentdb-partitionkey: [\"p\"]\r\n";
            request += LAST;
            request += &format!("content-length: {}\r\n\r\n{body}", body.len());
            let answer = exchange(address, request.as_bytes(), true).await.unwrap();
            let status = parse(&answer).unwrap().status;
            assert!([201, 409].contains(&status), "{path}: {}", String::from_utf8_lossy(&answer));
        }
    }

    fn request(&mut self) -> Odd {
        let route = &ROUTES[self.random.below(ROUTES.len() as u64) as usize];
        let verb = if self.random.one_in(8) { self.pick(&VERBS) } else { route.verb.as_str() };
        let path = self.path(route);
        let mut head = match self.random.one_in(10) {
            true => format!(
                "{verb} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: {}\r\n",
                self.pick(&VALUES)
            ),
            false => self.signer.head(verb, &path),
        };
        head += meaning(route.when);
        head += LAST;
        if !self.random.one_in(6) {
            head += "x-ms-documentdb-partitionkey: [\"p\"]\r\n";
        }
        while self.random.one_in(2) {
            let name = headers::ALL[self.random.below(headers::ALL.len() as u64) as usize];
            head += &format!("{name}: {}\r\n", self.pick(&VALUES));
        }
        let body = self.body(route);
        let is_head = verb == "HEAD";
        let mut bytes = head.into_bytes();
        let is_whole = !self.random.one_in(40);
        if !is_whole {
            bytes.extend_from_slice(format!("content-length: {}\r\n\r\n", body.len() + 10).as_bytes());
            bytes.extend_from_slice(&body);
        } else if self.random.one_in(10) {
            bytes.extend_from_slice(
                format!("transfer-encoding: chunked\r\n\r\n{:x}\r\n", body.len()).as_bytes(),
            );
            bytes.extend_from_slice(&body);
            // An empty chunk is the end already.
            bytes.extend_from_slice(if body.is_empty() { b"\r\n" } else { b"\r\n0\r\n\r\n" });
        } else {
            bytes.extend_from_slice(format!("content-length: {}\r\n\r\n", body.len()).as_bytes());
            bytes.extend_from_slice(&body);
        }
        Odd { bytes, is_head, is_whole }
    }

    fn path(&mut self, route: &Route) -> String {
        let whole = route.path.replace("…/permissions", "/dbs/{db}/users/{user}/permissions");
        let whole = whole.replace("…/clientencryptionkeys", "/dbs/{db}/clientencryptionkeys");
        let whole = whole.replace('…', "/dbs/{db}/colls/{coll}");
        let mut path = String::new();
        for segment in whole.split('/').skip(1) {
            path.push('/');
            let options: Vec<&str> = segment.split('|').collect();
            let right = match self.pick(&options) {
                "{db}" => "d",
                "{coll}" => "c",
                "{user}" => "u",
                "{id}" | "{key}" | "{rid}" => "i",
                word => word,
            };
            match self.random.below(40) {
                0 => path += self.pick(&NAMES),
                1 => path += &"n".repeat(self.random.below(1200) as usize),
                2 => path += "/",
                _ => path += right,
            }
        }
        path
    }

    fn body(&mut self, route: &Route) -> Vec<u8> {
        let fitting = WORLD.iter().find(|(path, _)| path.rsplit('/').next() == route.path.rsplit('/').next());
        let mut body = match (self.random.below(12), fitting) {
            (0, _) => "[".repeat(20_000).into_bytes(),
            (1, _) => {
                format!("{{\"id\":\"i\",\"pk\":\"p\",\"deep\":{}{}}}", "[".repeat(140), "]".repeat(140))
                    .into_bytes()
            }
            (2, _) if self.random.one_in(10) => vec![b' '; 3 << 20],
            (3, _) => [&[0x80][..], &self.noise(60)].concat(),
            (4, _) => [&[0x81, 0xff, 0xff, 0x7f][..], &self.noise(60)].concat(),
            (5, _) => self.noise(200),
            (6..=8, Some((_, body))) => body.replacen("\"id\":\"", "\"id\":\"n", 1).into_bytes(),
            _ => self.pick(&BODIES).as_bytes().to_vec(),
        };
        if !body.is_empty() && self.random.one_in(4) {
            let at = self.random.below(body.len() as u64) as usize;
            body[at] = self.random.below(256) as u8;
        }
        body
    }

    fn noise(&mut self, bytes_max: u64) -> Vec<u8> {
        (0..self.random.below(bytes_max)).map(|_| self.random.below(256) as u8).collect()
    }

    fn pick<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.random.below(list.len() as u64) as usize]
    }
}

/// The headers that give a POST or GET one of its meanings.
fn meaning(when: When) -> &'static str {
    match when {
        When::Always => "",
        When::Plan => "x-ms-cosmos-is-query-plan-request: True\r\ncontent-type: application/query+json\r\n",
        When::Batch => "x-ms-cosmos-is-batch-request: True\r\nx-ms-cosmos-batch-atomic: True\r\n",
        When::Query => "x-ms-documentdb-isquery: True\r\ncontent-type: application/query+json\r\n",
        When::Upsert => "x-ms-documentdb-is-upsert: True\r\n",
        When::ChangeFeed => "a-im: Incremental Feed\r\n",
    }
}

impl Odd {
    fn check(&self, answer: Option<&[u8]>) -> Result<(), String> {
        let Some(answer) = answer else {
            return if self.is_whole { Err("no answer".into()) } else { Ok(()) };
        };
        let shown = || String::from_utf8_lossy(answer).into_owned();
        let Some(Parsed { status, body, is_ours }) = parse(answer) else {
            return Err(format!("not an answer: {}", shown()));
        };
        if status >= 500 && status != 501 {
            return Err(format!("{status}: {}", shown()));
        }
        // What is no HTTP is refused below the protocol.
        let below = !is_ours && [400, 431, 414].contains(&status) && body.is_empty();
        if status >= 400 && !self.is_head && !below {
            let body: serde_json::Value = serde_json::from_slice(body).map_err(|_| shown())?;
            if !body["code"].is_string() || !body["message"].is_string() {
                return Err(format!("not the protocol's shape: {}", shown()));
            }
        }
        Ok(())
    }
}

/// What a request says that is the last on its connection. One that hangs up instead is not waited for by the server.
const LAST: &str = "connection: close\r\n";

/// Sends bytes on a connection of its own and reads the answer, if there is one. If they are not a whole request, it says
/// that no more will come.
async fn exchange(address: SocketAddr, bytes: &[u8], is_whole: bool) -> Option<Vec<u8>> {
    let talk = async {
        let mut stream = TcpStream::connect(address).await.ok()?;
        // The server may refuse before it has read everything; what matters is its answer.
        let _ = stream.write_all(bytes).await;
        if !is_whole {
            let _ = stream.shutdown().await;
        }
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        (!answer.is_empty()).then_some(answer)
    };
    timeout(PATIENCE, talk).await.expect("an answer in time")
}

struct Parsed<'a> {
    status: u16,
    body: &'a [u8],
    /// Whether the protocol's own headers are there.
    is_ours: bool,
}

fn parse(answer: &[u8]) -> Option<Parsed<'_>> {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&answer[..end]).ok()?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some(Parsed { status, body: &answer[end + 4..], is_ours: head.contains("x-ms-activity-id") })
}
