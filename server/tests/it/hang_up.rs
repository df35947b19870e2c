//! Clients that leave in the middle: at every byte of what they send and of what they are sent. The server is
//! as if they had never come, or had stayed.

use crate::harness::*;
use crate::signer::Signer;
use mayfly_cosmos::auth::EMULATOR_KEY;
use mayfly_server::listen::Limits;
use mayfly_server::node::Node;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

const CONTAINER: &str = r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#;

struct Served {
    server: Running,
    signer: Signer,
}

impl Served {
    /// With files: a commit there is waited for, so that there is a moment to leave in.
    async fn start(directory: &tempfile::TempDir) -> Self {
        let toml = format!("data-dir = '{}'", directory.path().display());
        let server = start_with::<Node>(&toml, Limits::default()).await;
        while server.get("/ready").await.0 != 200 {}
        Self { server, signer: Signer::new() }
    }

    fn message(&self, verb: &str, path: &str, body: &str) -> Vec<u8> {
        let head = match path.starts_with("/_mayfly/") {
            true => format!(
                "{verb} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {EMULATOR_KEY}\r\n"
            ),
            false => self.signer.head(verb, path),
        };
        let length = body.len();
        format!(
            "{head}x-ms-documentdb-partitionkey: [\"p\"]\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\nconnection: close\r\n\r\n{body}"
        )
        .into_bytes()
    }

    /// The whole answer.
    async fn send(&self, message: &[u8]) -> String {
        let mut answer = Vec::new();
        let talk = async {
            let mut stream = TcpStream::connect(self.server.address).await.unwrap();
            stream.write_all(message).await.unwrap();
            stream.read_to_end(&mut answer).await.unwrap();
        };
        timeout(PATIENCE, talk).await.unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }

    async fn must(&self, status: u16, verb: &str, path: &str, body: &str) {
        let answer = self.send(&self.message(verb, path, body)).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{verb} {path} {body}: {answer}");
    }

    /// Sends so many bytes, reads so many, and leaves.
    async fn leave(&self, message: &[u8], sent: usize, read: usize) {
        let mut stream = TcpStream::connect(self.server.address).await.unwrap();
        // The server may have answered, and closed, before all is sent.
        let _ = stream.write_all(&message[..sent]).await;
        let mut answer = vec![0; read];
        let _ = timeout(PATIENCE, stream.read_exact(&mut answer)).await.unwrap();
    }
}

/// The first documents of a container narrow what its index covers, which is a change of the container. When
/// the clients that had sent them left, every later write was answered with 449.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_container_takes_writes_after_its_first_writers_left() {
    let directory = tempfile::tempdir().unwrap();
    let served = Served::start(&directory).await;
    served.must(201, "POST", "/dbs", r#"{"id":"d"}"#).await;
    for round in 0..10 {
        served.must(201, "POST", "/dbs/d/colls", CONTAINER).await;
        let body = |name: &str, n: usize| format!(r#"{{"id":"{name}{n}","pk":"p","of {n}":{{"n":[{n}]}}}}"#);
        for n in 0..8 {
            let message = served.message("POST", "/dbs/d/colls/c/docs", &body("left", n));
            served.leave(&message, message.len(), 0).await;
        }
        for n in 0..4 {
            served.must(201, "POST", "/dbs/d/colls/c/docs", &body(&format!("{round}-"), n)).await;
        }
        served.must(204, "DELETE", "/dbs/d/colls/c", "").await;
    }
    served.server.stop().await.0.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_may_leave_at_any_byte() {
    let directory = tempfile::tempdir().unwrap();
    let served = Served::start(&directory).await;
    served.must(201, "POST", "/dbs", r#"{"id":"d"}"#).await;
    served.must(201, "POST", "/dbs/d/colls", CONTAINER).await;
    let replaced = CONTAINER.replace("}}", r#"},"defaultTtl":-1}"#);
    let requests = [
        ("POST", "/dbs/d/colls", CONTAINER.replace("\"c\"", "\"other\"")),
        ("PUT", "/dbs/d/colls/c", replaced),
        ("POST", "/dbs/d/colls/c/docs", r#"{"id":"i","pk":"p","list":[1,{"a":null}]}"#.to_owned()),
        ("GET", "/dbs/d/colls/c/docs/i", String::new()),
        ("DELETE", "/dbs/d/colls/c/docs/i", String::new()),
        ("DELETE", "/dbs/d/colls/other", String::new()),
        ("POST", "/_mayfly/mongo/d", r#"{"insert":"m","documents":[{"_id":1,"n":1}]}"#.to_owned()),
        (
            "POST",
            "/_mayfly/mongo/d",
            r#"{"createIndexes":"m","indexes":[{"key":{"n":1},"name":"n"}]}"#.to_owned(),
        ),
        ("GET", "/_mayfly/ttl/d/c?default=5", String::new()),
    ];
    for (verb, path, body) in &requests {
        let message = served.message(verb, path, body);
        for sent in 0..message.len() {
            served.leave(&message, sent, 0).await;
        }
        let answer = served.send(&message).await;
        for read in 0..answer.len() {
            served.leave(&message, message.len(), read).await;
        }
    }
    let made = served.message("POST", "/_mayfly/mongo/d", r#"{"count":"m","hint":"n"}"#);
    let answer = served.send(&made).await;
    assert!(answer.contains(r#""n":1"#) || answer.contains(r#""$numberInt":"1""#), "{answer}");
    // And now from the start, as if nobody had been there.
    served.must(204, "DELETE", "/dbs/d/colls/c", "").await;
    served.must(201, "POST", "/dbs/d/colls", CONTAINER).await;
    served.must(201, "POST", "/dbs/d/colls/c/docs", r#"{"id":"i","pk":"p"}"#).await;
    served.must(200, "PUT", "/dbs/d/colls/c", CONTAINER).await;
    served.must(201, "POST", "/dbs/d/colls/c/docs", r#"{"id":"j","pk":"p","n":1}"#).await;
    served.server.stop().await.0.unwrap();
}
