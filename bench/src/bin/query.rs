//! Queries over 100,000 documents of 1 KB, through HTTP, beside PostgreSQL with the same documents and indexes.
//!
//! ```text
//! cargo xtask bench query
//! cargo xtask bench query --documents 20000 --postgres /usr/lib/postgresql/15/bin
//! ```
//!
//! Both are asked over one connection, one question after the other, in turns. PostgreSQL's statements are prepared;
//! Mayfly gets a text each time, as its clients send it.
#![expect(clippy::disallowed_methods, reason = "a bench measures time")]

use std::{path::PathBuf, time::Instant};

use bytes::Bytes;
use clap::Parser;
use http_body_util::{BodyExt as _, Full};
use hyper::{Method, Request, StatusCode, client::conn::http1::SendRequest, header};
use hyper_util::rt::TokioIo;
use mayfly_bench::{median, postgres};
use mayfly_cosmos::{address::Address, auth, headers, http_date};
use mayfly_engine::{Clock as _, SystemClock};
use mayfly_server::{
    config::{Config, parse_toml},
    node::Node,
    run::Server,
    signals::Signals,
};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_postgres::types::ToSql;

#[derive(Parser)]
struct Options {
    /// Documents
    #[arg(long, default_value_t = 100_000)]
    documents: usize,
    /// Rounds of each measurement
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seconds of each round
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// The folder with PostgreSQL's programs
    #[arg(long)]
    postgres: Option<PathBuf>,
    /// Only questions whose name has this in it
    #[arg(long)]
    only: Option<String>,
}

/// One thing to ask both.
struct Question {
    name: &'static str,
    /// With `@p` for the parameter.
    cosmos: &'static str,
    /// With `$1` for the parameter.
    sql: &'static str,
    /// How many different parameters.
    parameters: usize,
    rows: usize,
}

const QUESTIONS: [Question; 6] = [
    Question {
        name: "equality, 10 rows",
        cosmos: "SELECT * FROM c WHERE c.user = @p",
        sql: "SELECT body::text FROM docs WHERE (body->>'user')::int = $1",
        parameters: 1000,
        rows: 10,
    },
    Question {
        name: "range, 100 rows",
        cosmos: "SELECT * FROM c WHERE c.score >= @p AND c.score < @p + 100",
        sql: "SELECT body::text FROM docs WHERE (body->>'score')::int >= $1 AND (body->>'score')::int < $1 + 100",
        parameters: 900,
        rows: 100,
    },
    Question {
        name: "ORDER BY, LIMIT 10",
        cosmos: "SELECT * FROM c ORDER BY c.score OFFSET 0 LIMIT 10",
        sql: "SELECT body::text FROM docs ORDER BY (body->>'score')::int OFFSET 0 LIMIT 10",
        parameters: 0,
        rows: 10,
    },
    Question {
        name: "COUNT of an indexed value",
        cosmos: "SELECT VALUE COUNT(1) FROM c WHERE c.kind = @p",
        sql: "SELECT count(*)::text FROM docs WHERE (body->>'kind')::int = $1",
        parameters: 100,
        rows: 1,
    },
    Question {
        name: "GROUP BY, 100 groups",
        cosmos: "SELECT c.kind, COUNT(1) AS n FROM c GROUP BY c.kind",
        sql: "SELECT body->>'kind', count(*)::text FROM docs GROUP BY 1",
        parameters: 0,
        rows: 100,
    },
    Question {
        name: "full scan, 10 rows",
        cosmos: "SELECT * FROM c WHERE c.rare = @p",
        sql: "SELECT body::text FROM docs WHERE (body->>'rare')::int = $1",
        parameters: 1000,
        rows: 10,
    },
];

/// Document `n` of `count`: about 1 KB.
fn document(n: usize, count: usize) -> String {
    let tenth = count / 10;
    format!(
        r#"{{"id":"{n:08}","pk":"p{}","name":"session {n}","user":{},"score":{},"kind":{},"active":{},"tags":["a","b"],"address":{{"city":"Lisbon","zip":"{:05}"}},"rare":{},"payload":"{}"}}"#,
        n % 1000,
        n % tenth,
        // Prime to the count: every score once, in no order.
        n * 7919 % count,
        n % 100,
        n.is_multiple_of(2),
        n % 99_999,
        n % tenth,
        "mayfly ".repeat(105)
    )
}

struct Mayfly {
    connection: SendRequest<Full<Bytes>>,
    key: auth::Key,
}

impl Mayfly {
    async fn connect(address: std::net::SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.expect("a running server");
        stream.set_nodelay(true).expect("a socket");
        let (sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.expect("a connection");
        tokio::spawn(connection);
        let key = auth::Key::from_base64(auth::EMULATOR_KEY).expect("a key");
        Self { connection: sender, key }
    }

    async fn send(&mut self, path: &str, extra: &[(&str, &str)], body: String) -> (StatusCode, Bytes) {
        let date = http_date::format(SystemClock.now().seconds());
        let address = Address::parse(path).expect("a path");
        let payload =
            auth::payload("POST", address.resource_type(), &address.resource_link(), Some(&date), None);
        let token = format!("type=master&ver=1.0&sig={}", self.key.sign(&payload));
        let token = percent_encoding::utf8_percent_encode(&token, percent_encoding::NON_ALPHANUMERIC);
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(path)
            .header(header::HOST, "localhost")
            .header(header::AUTHORIZATION, token.to_string())
            .header(&headers::DATE, date);
        for (name, value) in extra {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(Bytes::from(body))).expect("a request");
        self.connection.ready().await.expect("a connection");
        let response = self.connection.send_request(request).await.expect("an answer");
        let status = response.status();
        (status, response.into_body().collect().await.expect("a body").to_bytes())
    }

    async fn make(&mut self, path: &str, extra: &[(&str, &str)], body: String) {
        let (status, body) = self.send(path, extra, body).await;
        assert_eq!(status, StatusCode::CREATED, "{}", String::from_utf8_lossy(&body));
    }

    async fn ask(&mut self, question: &Question, parameter: usize) -> Bytes {
        let body = json!({ "query": question.cosmos, "parameters": [{ "name": "@p", "value": parameter }] });
        let extra = [
            ("content-type", "application/query+json"),
            ("x-ms-documentdb-isquery", "True"),
            ("x-ms-documentdb-query-enablecrosspartition", "True"),
            ("x-ms-max-item-count", "1000"),
        ];
        let (status, body) = self.send("/dbs/bench/colls/c/docs", &extra, body.to_string()).await;
        assert_eq!(status, StatusCode::OK, "{}", String::from_utf8_lossy(&body));
        body
    }
}

async fn load(address: std::net::SocketAddr, count: usize) {
    const WRITERS: usize = 16;
    let mut first = Mayfly::connect(address).await;
    while first.send("/dbs", &[], "{}".to_owned()).await.0 == StatusCode::SERVICE_UNAVAILABLE {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    first.make("/dbs", &[], json!({ "id": "bench" }).to_string()).await;
    let policy = json!({
        "indexingMode": "consistent",
        "includedPaths": [{ "path": "/*" }],
        "excludedPaths": [{ "path": "/payload/?" }, { "path": "/rare/?" }, { "path": "/\"_etag\"/?" }],
    });
    let container = json!({
        "id": "c", "partitionKey": { "paths": ["/pk"], "kind": "Hash", "version": 2 }, "indexingPolicy": policy,
    });
    first.make("/dbs/bench/colls", &[], container.to_string()).await;
    let mut tasks = tokio::task::JoinSet::new();
    for writer in 0..WRITERS {
        tasks.spawn(async move {
            let mut client = Mayfly::connect(address).await;
            for n in (writer..count).step_by(WRITERS) {
                let key = format!("[\"p{}\"]", n % 1000);
                let extra = [("x-ms-documentdb-partitionkey", key.as_str())];
                client.make("/dbs/bench/colls/c/docs", &extra, document(n, count)).await;
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.expect("a writer does not fail");
    }
}

async fn load_postgres(postgres: &postgres::Postgres, count: usize) -> Result<(), tokio_postgres::Error> {
    let client = &postgres.client;
    client.batch_execute("CREATE TABLE docs (id text PRIMARY KEY, body jsonb NOT NULL)").await?;
    let insert =
        client.prepare("INSERT INTO docs SELECT b::jsonb->>'id', b::jsonb FROM unnest($1::text[]) b").await?;
    let numbers: Vec<usize> = (0..count).collect();
    for some in numbers.chunks(500) {
        let bodies: Vec<String> = some.iter().map(|n| document(*n, count)).collect();
        client.execute(&insert, &[&bodies]).await?;
    }
    for path in ["user", "score", "kind"] {
        client.batch_execute(&format!("CREATE INDEX ON docs (((body->>'{path}')::int))")).await?;
    }
    client.batch_execute("VACUUM ANALYZE docs").await
}

/// Asks until the time is over; gives the seconds of one question.
async fn rate<W: AsyncFnMut(usize)>(question: &Question, seconds: f64, mut ask: W) -> f64 {
    let start = Instant::now();
    let mut asked = 0;
    while start.elapsed().as_secs_f64() < seconds || asked == 0 {
        ask(if question.parameters == 0 { 0 } else { asked * 37 % question.parameters }).await;
        asked += 1;
    }
    start.elapsed().as_secs_f64() / asked as f64
}

#[tokio::main]
async fn main() {
    let options = Options::parse();
    let dir = tempfile::tempdir().expect("a temporary directory");
    let settings = parse_toml(&format!("port = 0\ndata-dir = '{}'", dir.path().display()));
    let config = Config::resolve(settings.expect("settings")).expect("a configuration");
    let server = Server::bind(config).await.expect("a free port");
    let address = server.address();
    let (_stop, signals) = Signals::by_hand();
    tokio::spawn(async move {
        let mut out = Vec::new();
        server.run::<Node>(signals, &mut out).await.expect("a server that runs");
    });
    let start = Instant::now();
    load(address, options.documents).await;
    println!("mayfly has {} documents after {:.1} s", options.documents, start.elapsed().as_secs_f64());
    let peer = match postgres::programs(options.postgres.as_deref()) {
        Some(folder) => {
            let peer = postgres::Postgres::start(&folder).await.expect("a private PostgreSQL");
            let start = Instant::now();
            load_postgres(&peer, options.documents).await.expect("a load of PostgreSQL");
            println!("postgresql has them after {:.1} s", start.elapsed().as_secs_f64());
            Some(peer)
        }
        None => {
            println!(
                "postgresql is not installed (Debian: postgresql-15), so there is nothing to compare with"
            );
            None
        }
    };
    let mut client = Mayfly::connect(address).await;
    println!("{:<28} {:>12} {:>12} {:>8}", "", "mayfly", "postgresql", "ratio");
    for question in &QUESTIONS {
        if options.only.as_ref().is_some_and(|only| !question.name.contains(only.as_str())) {
            continue;
        }
        let answer: Value = serde_json::from_slice(&client.ask(question, 7).await).expect("JSON");
        assert_eq!(answer["_count"], question.rows, "{}: {answer:.300}", question.name);
        let statement = match &peer {
            Some(peer) => Some(peer.client.prepare(question.sql).await.expect("a statement")),
            None => None,
        };
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..options.rounds {
            ours.push(
                rate(question, options.seconds, async |parameter| {
                    client.ask(question, parameter).await;
                })
                .await,
            );
            if let (Some(peer), Some(statement)) = (&peer, &statement) {
                theirs.push(
                    rate(question, options.seconds, async |parameter| {
                        let parameter = parameter as i32;
                        let parameters: &[&(dyn ToSql + Sync)] =
                            if question.parameters == 0 { &[] } else { &[&parameter] };
                        let rows = peer.client.query(statement, parameters).await.expect("rows");
                        assert_eq!(rows.len(), question.rows);
                    })
                    .await,
                );
            }
        }
        let (ours, theirs) = (median(ours) * 1e6, median(theirs) * 1e6);
        println!("{:<28} {ours:>9.0} µs {theirs:>9.0} µs {:>8.2}", question.name, theirs / ours);
    }
}
