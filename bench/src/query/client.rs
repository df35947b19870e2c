//! A client of the REST protocol, as small as it can be: it makes what is asked about, and asks.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{Method, Request, StatusCode, client::conn::http1::SendRequest, header};
use hyper_util::rt::TokioIo;
use mayfly_cosmos::{address::Address, auth, headers, http_date, path::Path};
use mayfly_engine::{Clock as _, SystemClock, clock::pause};
use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::{
    questions::{PARTITIONS, document},
    search,
};

/// Writers at a time.
const WRITERS: usize = 16;

/// Documents of a batch: as many as one may have.
const BATCH: usize = 100;

/// Where the documents are.
const DOCUMENTS: &str = "/dbs/bench/colls/c/docs";

/// What makes a request a query of the whole container, as a client would send it.
const QUERY: [(&str, &str); 4] = [
    ("content-type", "application/query+json"),
    ("x-ms-documentdb-isquery", "True"),
    ("x-ms-documentdb-query-enablecrosspartition", "True"),
    ("x-ms-max-item-count", "1000"),
];

fn asked(query: &str, parameter: usize) -> String {
    json!({ "query": query, "parameters": [{ "name": "@p", "value": parameter }] }).to_string()
}

/// A connection to a server.
pub struct Client {
    port: u16,
    connection: SendRequest<Full<Bytes>>,
    key: auth::Key,
    /// What the last request was signed with, which is good for all of that second to that path.
    signed: Signed,
}

/// A signature, and what it is of.
#[derive(Default)]
struct Signed {
    path: String,
    second: u64,
    date: String,
    token: String,
}

async fn connect(port: u16) -> SendRequest<Full<Bytes>> {
    let stream = TcpStream::connect(("127.0.0.1", port)).await.expect("a running server");
    stream.set_nodelay(true).expect("a socket");
    let (sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.expect("a connection");
    tokio::spawn(connection);
    sender
}

impl Client {
    /// Connects to a server on this machine.
    pub async fn connect(port: u16) -> Self {
        let key = auth::Key::from_base64(auth::EMULATOR_KEY).expect("a key");
        Self { port, connection: connect(port).await, key, signed: Signed::default() }
    }

    /// Signs a request. What a client does is not what is measured, so it is not done for each.
    fn sign(&mut self, path: &str) -> &Signed {
        let second = SystemClock.now().seconds();
        if self.signed.second != second || self.signed.path != path {
            let date = http_date::format(second);
            let parsed = Path::parse(path).expect("a path");
            let address = Address::from_path(&parsed).expect("an address");
            let payload =
                auth::payload("POST", address.resource_type(), &address.resource_link(), Some(&date), None);
            let token = format!("type=master&ver=1.0&sig={}", self.key.sign(&payload));
            let token = percent_encoding::utf8_percent_encode(&token, percent_encoding::NON_ALPHANUMERIC);
            self.signed = Signed { path: path.to_owned(), second, token: token.to_string(), date };
        }
        &self.signed
    }

    async fn send(&mut self, path: &str, extra: &[(&str, &str)], body: String) -> (StatusCode, Bytes) {
        let Signed { date, token, .. } = self.sign(path);
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(path)
            .header(header::HOST, "localhost")
            .header(header::AUTHORIZATION, token)
            .header(&headers::DATE, date);
        for (name, value) in extra {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(Bytes::from(body))).expect("a request");
        // The peer closes the connection after every answer.
        if self.connection.ready().await.is_err() {
            self.connection = connect(self.port).await;
        }
        let response = self.connection.send_request(request).await.expect("an answer");
        let status = response.status();
        (status, response.into_body().collect().await.expect("a body").to_bytes())
    }

    async fn make(&mut self, path: &str, extra: &[(&str, &str)], body: String) {
        let (status, body) = self.send(path, extra, body).await;
        assert!(status.is_success(), "{status}: {}", String::from_utf8_lossy(&body));
    }

    /// Makes a container with vectors and texts, and `count` documents in it.
    pub async fn load_search(&mut self, count: usize) {
        self.make_database().await;
        let (vectors, texts) = search::policies();
        let container = json!({
            "id": "c", "partitionKey": { "paths": ["/pk"], "kind": "Hash", "version": 2 },
            "vectorEmbeddingPolicy": vectors, "fullTextPolicy": texts,
            "indexingPolicy": {
                "includedPaths": [{ "path": "/*" }],
                "excludedPaths": [{ "path": "/vector/*" }, { "path": "/text/?" }, { "path": "/\"_etag\"/?" }],
                "vectorIndexes": [{ "path": "/vector", "type": "diskANN" }],
                "fullTextIndexes": [{ "path": "/text" }],
            },
        });
        self.make("/dbs/bench/colls", &[], container.to_string()).await;
        for partition in 0..PARTITIONS.min(count) {
            let numbers: Vec<usize> = (partition..count).step_by(PARTITIONS).collect();
            self.make_batches(partition, &numbers, search::document).await;
        }
    }

    async fn make_database(&mut self) {
        while self.send("/dbs", &[], "{}".to_owned()).await.0 == StatusCode::SERVICE_UNAVAILABLE {
            pause(Duration::from_millis(20)).await;
        }
        self.make("/dbs", &[], json!({ "id": "bench" }).to_string()).await;
    }

    /// Makes these documents of a partition, as many at a time as can be.
    async fn make_batches(
        &mut self,
        partition: usize,
        numbers: &[usize],
        document: impl Fn(usize) -> String,
    ) {
        let key = format!("[\"p{partition}\"]");
        let extra = [
            ("x-ms-documentdb-partitionkey", key.as_str()),
            ("x-ms-cosmos-is-batch-request", "True"),
            ("x-ms-cosmos-batch-atomic", "True"),
        ];
        for some in numbers.chunks(BATCH) {
            let creations = some
                .iter()
                .map(|n| format!(r#"{{"operationType":"Create","resourceBody":{}}}"#, document(*n)));
            let body = format!("[{}]", creations.collect::<Vec<_>>().join(","));
            self.make(DOCUMENTS, &extra, body).await;
        }
    }

    /// Makes the container, with the indexes that PostgreSQL has, too.
    async fn make_container(&mut self) {
        self.make_database().await;
        let policy = json!({
            "indexingMode": "consistent",
            "includedPaths": [{ "path": "/*" }],
            "excludedPaths": [{ "path": "/payload/?" }, { "path": "/rare/?" }, { "path": "/\"_etag\"/?" }],
        });
        let container = json!({
            "id": "c", "partitionKey": { "paths": ["/pk"], "kind": "Hash", "version": 2 }, "indexingPolicy": policy,
        });
        self.make("/dbs/bench/colls", &[], container.to_string()).await;
    }

    /// Asks, and gives the status and the answer.
    async fn ask(&mut self, query: &str, parameter: usize) -> (StatusCode, Bytes) {
        self.send(DOCUMENTS, &QUERY, asked(query, parameter)).await
    }

    /// The same request as bytes, for whoever counts what sending it takes.
    pub fn question(&mut self, query: &str, parameter: usize) -> Vec<u8> {
        let Signed { date, token, .. } = self.sign(DOCUMENTS);
        let body = asked(query, parameter);
        let length = body.len();
        let mut request = format!(
            "POST {DOCUMENTS} HTTP/1.1\r\nhost: localhost\r\nauthorization: {token}\r\nx-ms-date: {date}\r\n\
             content-length: {length}\r\n"
        );
        for (name, value) in QUERY {
            request.extend([name, ": ", value, "\r\n"]);
        }
        request.extend(["\r\n", &body]);
        request.into_bytes()
    }

    /// The rows of an answer.
    pub async fn rows(&mut self, query: &str) -> Vec<Value> {
        let (status, body) = self.ask(query, 0).await;
        assert!(status.is_success(), "{status}: {:.200}", String::from_utf8_lossy(&body));
        let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
        answer["Documents"].as_array().cloned().unwrap_or_default()
    }

    /// How many rows the answer to a question has; the server's words if it refuses.
    pub async fn count_rows(&mut self, query: &str, parameter: usize) -> Result<usize, String> {
        let (status, body) = self.ask(query, parameter).await;
        let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
        match (status, answer["Documents"].as_array()) {
            (StatusCode::OK, Some(rows)) => Ok(rows.len()),
            _ => Err(format!("{status}: {:.200}", String::from_utf8_lossy(&body))),
        }
    }
}

/// Makes the container and `count` documents, one by one.
pub async fn load(port: u16, count: usize) {
    Client::connect(port).await.make_container().await;
    let mut tasks = tokio::task::JoinSet::new();
    for writer in 0..WRITERS {
        tasks.spawn(async move {
            let mut client = Client::connect(port).await;
            for n in (writer..count).step_by(WRITERS) {
                let key = format!("[\"p{}\"]", n % PARTITIONS);
                let extra = [("x-ms-documentdb-partitionkey", key.as_str())];
                client.make(DOCUMENTS, &extra, document(n, count)).await;
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.expect("a writer does not fail");
    }
}

/// Makes the container and `count` documents, many at a time: for more of them than anyone wants to wait for.
pub async fn load_in_batches(port: u16, count: usize) {
    Client::connect(port).await.make_container().await;
    let mut tasks = tokio::task::JoinSet::new();
    for writer in 0..WRITERS {
        tasks.spawn(async move {
            let mut client = Client::connect(port).await;
            for partition in (writer..PARTITIONS).step_by(WRITERS) {
                let numbers: Vec<usize> = (partition..count).step_by(PARTITIONS).collect();
                client.make_batches(partition, &numbers, |n| document(n, count)).await;
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.expect("a writer does not fail");
    }
}
