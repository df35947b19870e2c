//! `/_mayfly/`, asked as a script or the portal asks it.

mod insight;
mod load;
mod mongo;
mod time_machine;
mod ttl_command;
mod ttl_indexes;

use crate::harness::*;
use crate::signer::Signer;
use bytes::Bytes;
use http_body_util::Full;
use hyper::{Request, Version};
use mayfly_cosmos::auth::EMULATOR_KEY;
use mayfly_server::connection::Scheme;
use mayfly_server::listen::Limits;
use mayfly_server::node::Node;
use serde_json::Value;
use std::path::Path;

/// A key that may only read.
const READ_ONLY_KEY: &str = "cmVhZGluZyBvbmx5";

/// A whole server in memory, whose clock stands still until a test moves it.
struct Administered {
    server: Running,
    signer: Signer,
}

impl Administered {
    async fn start() -> Administered {
        Administered::start_with("dev-clock = true").await
    }

    async fn start_with(toml: &str) -> Administered {
        let toml = format!("store = 'memory'\nreadonly-key = '{READ_ONLY_KEY}'\n{toml}");
        let server = start_with::<Node>(&toml, Limits::default()).await;
        while server.get("/ready").await.0 != 200 {}
        let it = Administered { server, signer: Signer::new() };
        if toml.contains("dev-clock") {
            it.ok("POST", "clock", r#"{"freeze":true}"#).await;
        }
        it
    }

    /// A server on files, whose clock nobody has touched.
    async fn on_files(directory: &Path, toml: &str) -> Administered {
        let toml = format!("data-dir = '{}'\n{toml}", directory.display());
        let server = start_with::<Node>(&toml, Limits::default()).await;
        while server.get("/ready").await.0 != 200 {}
        Administered { server, signer: Signer::new() }
    }

    /// Asks with a key, or none.
    async fn ask(&self, key: Option<&str>, verb: &str, path: &str, body: &str) -> (u16, Value) {
        let mut request = Request::builder().method(verb).uri(format!("http://localhost/_mayfly/{path}"));
        if let Some(key) = key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        self.send(request, body).await
    }

    /// Asks with the account key for what is there.
    async fn ok(&self, verb: &str, path: &str, body: &str) -> Value {
        let (status, value) = self.ask(Some(EMULATOR_KEY), verb, path, body).await;
        assert_eq!(status, 200, "{verb} {path} {body}: {value}");
        value
    }

    /// Makes a resource of the REST protocol.
    async fn create(&self, path: &str, body: &str) {
        let request = Request::builder()
            .method("POST")
            .uri(format!("http://localhost{path}"))
            .header("x-ms-version", "2020-07-15")
            .header("x-ms-date", &self.signer.date)
            .header("x-ms-documentdb-partitionkey", "[\"p\"]")
            .header("authorization", self.signer.authorization("POST", path));
        let (status, value) = self.send(request, body).await;
        assert_eq!(status, 201, "{path}: {value}");
    }

    async fn send(&self, request: hyper::http::request::Builder, body: &str) -> (u16, Value) {
        let request =
            request.header("host", "localhost").body(Full::new(Bytes::from(body.to_owned()))).unwrap();
        let mut client = self.server.connect(Scheme::Http, Version::HTTP_11).await;
        let (status, text) = text(client.send(request).await).await;
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    async fn advance(&self, seconds: u64) {
        self.ok("POST", "clock", &format!("{{\"advanceSeconds\":{seconds}}}")).await;
    }
}
