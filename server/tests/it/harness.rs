//! Starts a server on a free port, and speaks to it in every way that clients do.

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::{Response, Version};
use hyper_util::rt::TokioIo;
use mayfly_engine::clock::{Stopwatch, pause};
use mayfly_server::backend::{Answer, Asked, Backend, BackendError};
use mayfly_server::config::{Config, parse_toml};
use mayfly_server::connection::Scheme;
use mayfly_server::listen::Limits;
use mayfly_server::metrics::{Metrics, MetricsSource};
use mayfly_server::request::{Heading, Request};
use mayfly_server::respond;
use mayfly_server::run::{RunError, Server};
use mayfly_server::signals::Signals;
use mayfly_server::tasks::{Stopping, TaskSet};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

/// Nothing here takes long; a test that waits longer than this has failed.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Answers in ways that the tests need.
#[derive(Default)]
pub struct TestBackend {
    /// Requests that wait for the server's end, and for nothing.
    slow: AtomicUsize,
    forever: AtomicUsize,
    stops: Notify,
}

/// One of a number, until it is dropped.
struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    fn new(number: &'a AtomicUsize) -> Self {
        number.fetch_add(1, SeqCst);
        Self(number)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

impl MetricsSource for TestBackend {
    fn render(&self, out: &mut String) {
        out.push_str("mayfly_test_lines_total 1\n");
        out.push_str(&format!("mayfly_test_slow {}\n", self.slow.load(SeqCst)));
        out.push_str(&format!("mayfly_test_forever {}\n", self.forever.load(SeqCst)));
    }
}

impl Backend for TestBackend {
    async fn open(_: &Config, _: &Arc<Metrics>) -> Result<TestBackend, BackendError> {
        Ok(TestBackend::default())
    }

    async fn serve(&self, asked: Asked) -> Answer {
        let Asked { request, from, watch } = asked;
        let path = request.heading.path();
        if path.starts_with("/long") {
            take_long().await;
        }
        if path == "/slow" {
            let _counted = Counted::new(&self.slow);
            self.stops.notified().await;
        }
        if path == "/forever" {
            let _counted = Counted::new(&self.forever);
            std::future::pending::<()>().await;
        }
        if path.ends_with("/panic") {
            panic!("as the test wants");
        }
        if path.ends_with("/thread") {
            let name = std::thread::current().name().unwrap_or_default().to_owned();
            return Answer::free("test", respond::text(hyper::StatusCode::OK, "text/plain", name), watch);
        }
        let version = match &request.heading {
            Heading::Parsed(parts) => parts.version,
            Heading::Raw(_) => Version::HTTP_11,
        };
        let seen = format!("{} {version:?}", from.scheme.as_str());
        if path.starts_with("/echo") {
            return Answer::free("test", echo(request).await, watch);
        }
        // A request is answered when its body has ended, so that a test can keep one open.
        let body = request.body.collect().await.map(|body| body.to_bytes().len()).unwrap_or(0);
        let response = respond::text(hyper::StatusCode::OK, "text/plain", format!("{seen} {body}"));
        Answer::free("test", response, watch)
    }

    fn start_background(self: &Arc<Self>, tasks: &TaskSet, stopping: &Stopping) {
        let mut stopping = stopping.clone();
        let backend = self.clone();
        tasks.spawn(async move {
            stopping.requested().await;
            // Connections are told at the same time; by then they have heard.
            pause(Duration::from_millis(300)).await;
            backend.stops.notify_waiters();
        });
    }

    async fn close(&self) -> Result<(), BackendError> {
        Ok(())
    }
}

/// Tells what was read of a request, and whether it was read without hyper.
async fn echo(request: Request) -> Response<respond::Body> {
    let Request { heading, body } = request;
    let is_direct = matches!(heading, Heading::Raw(_));
    let mut told = format!("{} {}", heading.method(), heading.path());
    for name in ["host", "x-one", "x-two", "content-type", "content-length", "connection", "accept"] {
        let name = hyper::header::HeaderName::from_static(name);
        told +=
            &format!("; {name} {:?}", heading.headers().get(&name).map(|value| value.unwrap_or("no text")));
    }
    match body.collect().await {
        Ok(body) => told += &format!("; {}", body.to_bytes().escape_ascii()),
        Err(_) => told += "; broken",
    }
    let mut response = respond::text(hyper::StatusCode::OK, "text/plain", told);
    response.headers_mut().insert("x-direct", is_direct.to_string().parse().unwrap());
    response
}

/// Works for longer than a worker has patience, and gives others a turn then.
async fn take_long() {
    let watch = Stopwatch::start();
    while watch.elapsed() < Duration::from_millis(5) {}
    tokio::task::yield_now().await;
}

/// A running server.
pub struct Running {
    pub address: SocketAddr,
    pub ca_pem: String,
    pub signals: mpsc::Sender<()>,
    runs: JoinSet<(Result<(), RunError>, String)>,
}

/// A server in memory with the usual limits.
pub async fn start() -> Running {
    start_with::<TestBackend>("store = 'memory'", Limits::default()).await
}

/// A server with these settings (the port is always a free one, and the only one) and limits.
pub async fn start_with<B: Backend>(toml: &str, limits: Limits) -> Running {
    serve::<B>(bind(0, toml).await.unwrap(), limits)
}

/// The same with a port for the MongoDB protocol, a free one.
pub async fn start_with_mongo<B: Backend>(toml: &str, limits: Limits) -> (Running, SocketAddr) {
    loop {
        // Free a moment ago; somebody else may have it by now.
        let address = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        match bind(address.port(), toml).await {
            Ok(server) => return (serve::<B>(server, limits), address),
            Err(RunError::ListenMongo { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

async fn bind(mongo_port: u16, toml: &str) -> Result<Server, RunError> {
    let toml = format!("port = 0\nmongo-port = {mongo_port}\n{toml}");
    Server::bind(Config::resolve(parse_toml(&toml).unwrap()).unwrap()).await
}

fn serve<B: Backend>(server: Server, limits: Limits) -> Running {
    let server = server.with_limits(limits);
    let (address, ca_pem) = (server.address(), server.ca_pem().to_owned());
    let (sender, signals) = Signals::by_hand();
    let mut runs = JoinSet::new();
    runs.spawn(async move {
        let mut out = Vec::new();
        let ended = server.run::<B>(signals, &mut out).await;
        (ended, String::from_utf8(out).unwrap())
    });
    Running { address, ca_pem, signals: sender, runs }
}

impl Running {
    /// Waits for the end; gives the outcome and the start-up text.
    pub async fn ended(&mut self) -> (Result<(), RunError>, String) {
        tokio::time::timeout(PATIENCE, self.runs.join_next()).await.unwrap().unwrap().unwrap()
    }

    /// Asks it to stop and waits for the end.
    pub async fn stop(mut self) -> (Result<(), RunError>, String) {
        self.signals.send(()).await.unwrap();
        self.ended().await
    }

    /// One request on a connection of its own.
    pub async fn get(&self, path: &str) -> (u16, String) {
        let mut client = self.connect(Scheme::Http, Version::HTTP_11).await;
        text(client.send(get(path)).await).await
    }

    /// Connects as a client that speaks only this.
    pub async fn connect(&self, scheme: Scheme, version: Version) -> Client {
        let tcp = TcpStream::connect(self.address).await.unwrap();
        match scheme {
            Scheme::Http => Client::new(tcp, version).await,
            Scheme::Https => {
                let alpn: &[u8] = if version == Version::HTTP_2 { b"h2" } else { b"http/1.1" };
                Client::new(self.tls(tcp, &[alpn]).await, version).await
            }
        }
    }

    /// TLS that trusts the server's CA only.
    pub async fn tls(&self, tcp: TcpStream, alpn: &[&[u8]]) -> tokio_rustls::client::TlsStream<TcpStream> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.ca_pem.as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
        let name = ServerName::try_from("localhost").unwrap();
        TlsConnector::from(Arc::new(config)).connect(name, tcp).await.unwrap()
    }
}

/// One connection.
pub struct Client {
    sender: Sender,
    _driver: TaskSet,
}

enum Sender {
    Http1(hyper::client::conn::http1::SendRequest<Full<Bytes>>),
    Http2(hyper::client::conn::http2::SendRequest<Full<Bytes>>),
}

impl Client {
    /// Speaks HTTP/1.1, or HTTP/2 by prior knowledge.
    pub async fn new<I>(io: I, version: Version) -> Client
    where
        I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (io, driver) = (TokioIo::new(io), TaskSet::default());
        let sender = if version == Version::HTTP_2 {
            let (sender, connection) =
                hyper::client::conn::http2::handshake(driver.clone(), io).await.unwrap();
            driver.spawn(async move { drop(connection.await) });
            Sender::Http2(sender)
        } else {
            let (sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
            driver.spawn(async move { drop(connection.await) });
            Sender::Http1(sender)
        };
        Client { sender, _driver: driver }
    }

    pub async fn send(&mut self, request: hyper::Request<Full<Bytes>>) -> Response<Incoming> {
        let answer = async {
            match &mut self.sender {
                Sender::Http1(sender) => {
                    sender.ready().await?;
                    sender.send_request(request).await
                }
                Sender::Http2(sender) => {
                    sender.ready().await?;
                    sender.send_request(request).await
                }
            }
        };
        tokio::time::timeout(PATIENCE, answer).await.unwrap().unwrap()
    }
}

pub fn get(path: &str) -> hyper::Request<Full<Bytes>> {
    request("GET", path)
}

pub fn request(method: &str, path: &str) -> hyper::Request<Full<Bytes>> {
    // An absolute URI serves both versions; HTTP/1 sends it as given, which servers have to understand.
    let uri = format!("http://localhost{path}");
    hyper::Request::builder()
        .method(method)
        .uri(uri)
        .header("host", "localhost")
        .body(Full::default())
        .unwrap()
}

/// Status and body.
pub async fn text(response: Response<Incoming>) -> (u16, String) {
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.into()).unwrap())
}
