//! Starting, being ready, stopping.

use crate::harness::*;
use hyper::Version;
use mayfly_server::backend::{Answer, Asked, Backend, BackendError};
use mayfly_server::config::{Config, parse_toml};
use mayfly_server::connection::Scheme;
use mayfly_server::listen::Limits;
use mayfly_server::metrics::{Metrics, MetricsSource};
use mayfly_server::run::Server;
use mayfly_server::tasks::{Stopping, TaskSet};
use std::future::pending;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Never opens, or fails to, by the kind of its store.
struct Unopened;

impl MetricsSource for Unopened {
    fn render(&self, _: &mut String) {}
}

impl Backend for Unopened {
    async fn open(config: &Config, _: &Arc<Metrics>) -> Result<Unopened, BackendError> {
        if config.throttle {
            return Err(BackendError("the store is damaged".into()));
        }
        pending().await
    }

    async fn serve(&self, _: Asked) -> Answer {
        unreachable!("never opened")
    }

    fn start_background(self: &Arc<Self>, _: &TaskSet, _: &Stopping) {}

    async fn close(&self) -> Result<(), BackendError> {
        unreachable!("never opened")
    }
}

const OPEN_REQUEST: &[u8] = b"POST /dbs HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\na";

#[tokio::test]
async fn alive_before_ready() {
    let server = start_with::<Unopened>("store = 'memory'", Limits::default()).await;
    assert_eq!(server.get("/alive").await.0, 200);
    assert_eq!(server.get("/ready").await.0, 503);
    assert!(server.get("/status").await.1.contains("\"starting\""));
    let (status, body) = server.get("/dbs").await;
    assert_eq!(status, 503);
    assert!(body.contains("Mayfly is starting"), "{body}");
    let (ended, banner) = server.stop().await;
    ended.unwrap();
    assert_eq!(banner, "");
}

#[tokio::test]
async fn a_store_that_does_not_open_ends_the_server() {
    let mut server = start_with::<Unopened>("store = 'memory'\nthrottle = true", Limits::default()).await;
    let (ended, banner) = server.ended().await;
    assert_eq!(ended.unwrap_err().to_string(), "the store is damaged");
    assert_eq!(banner, "");
}

#[tokio::test]
async fn open_requests_finish_and_idle_connections_end() {
    let mut server = start().await;
    let mut idle = server.connect(Scheme::Http, Version::HTTP_2).await;
    assert_eq!(text(idle.send(get("/dbs")).await).await.0, 200);
    let mut busy = TcpStream::connect(server.address).await.unwrap();
    busy.write_all(OPEN_REQUEST).await.unwrap();
    // The request is in work once the server has counted its connection.
    while !server.get("/metrics").await.1.contains("mayfly_connections_open 3") {}

    server.signals.send(()).await.unwrap();
    assert!(timeout(std::time::Duration::from_millis(100), server.ended()).await.is_err());
    assert!(TcpStream::connect(server.address).await.is_err(), "the port is closed");
    busy.write_all(b"b").await.unwrap();
    let mut answer = String::new();
    timeout(PATIENCE, busy.read_to_string(&mut answer)).await.unwrap().unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    let (ended, banner) = server.ended().await;
    ended.unwrap();
    assert!(banner.ends_with("Started\r\n"), "{banner}");
}

#[tokio::test]
async fn a_second_signal_does_not_wait() {
    let mut server = start().await;
    let mut busy = TcpStream::connect(server.address).await.unwrap();
    busy.write_all(OPEN_REQUEST).await.unwrap();
    while !server.get("/metrics").await.1.contains("mayfly_connections_open 2") {}
    server.signals.send(()).await.unwrap();
    server.signals.send(()).await.unwrap();
    server.ended().await.0.unwrap();
    let mut answer = Vec::new();
    assert_eq!(busy.read_to_end(&mut answer).await.unwrap_or(0), 0);
}

#[tokio::test]
async fn the_drain_has_an_end() {
    let limits = Limits { drain_timeout: std::time::Duration::from_millis(100), ..Limits::default() };
    let server = start_with::<TestBackend>("store = 'memory'", limits).await;
    let mut busy = TcpStream::connect(server.address).await.unwrap();
    busy.write_all(OPEN_REQUEST).await.unwrap();
    while !server.get("/metrics").await.1.contains("mayfly_connections_open 2") {}
    server.stop().await.0.unwrap();
}

#[tokio::test]
async fn the_ca_outlives_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let toml = format!("data-dir = '{}'", dir.path().display());
    let first = start_with::<TestBackend>(&toml, Limits::default()).await;
    let ca_pem = first.ca_pem.clone();
    first.stop().await.0.unwrap();
    let second = start_with::<TestBackend>(&toml, Limits::default()).await;
    assert_eq!(second.ca_pem, ca_pem);
    let mut client = second.connect(Scheme::Https, Version::HTTP_2).await;
    assert_eq!(text(client.send(get("/dbs")).await).await.0, 200);
}

#[tokio::test]
async fn a_taken_port_is_explained() {
    let server = start().await;
    let toml = format!("port = {}\nmongo-port = 0\nstore = 'memory'", server.address.port());
    let config = Config::resolve(parse_toml(&toml).unwrap()).unwrap();
    let error = Server::bind(config).await.err().unwrap().to_string();
    assert!(error.contains("--port takes another"), "{error}");
}
