//! The server's own paths, which need no key; everything else goes to the backend.
//!
//! The paths are those that orchestrators and emulator scripts ask for. None of them can be a path of the
//! protocol, so the order of the two does not matter.
//!
//! Holds: these answers contain nothing about documents, databases or keys.

use crate::backend::{Answer, Asked, Backend};
use crate::explorer;
use crate::health::{Health, Phase};
use crate::metrics::{Metrics, MetricsSource, single};
use crate::request::Heading;
use crate::respond::{self, Body, Outgoing};
use hyper::body::Body as _;
use hyper::header::CONTENT_LENGTH;
use hyper::{Method, Response, StatusCode};
use mayfly_cosmos::ApiError;
use std::sync::{Arc, OnceLock};

const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Everything that answers requests.
#[derive(Debug)]
pub struct Routes<B> {
    health: Arc<Health>,
    metrics: Arc<Metrics>,
    ca_pem: String,
    /// Set once the engine is open.
    backend: OnceLock<Arc<B>>,
}

impl<B: Backend> Routes<B> {
    /// Routes without a backend yet.
    pub fn new(health: Arc<Health>, metrics: Arc<Metrics>, ca_pem: String) -> Routes<B> {
        Routes { health, metrics, ca_pem, backend: OnceLock::new() }
    }

    /// Lets requests through from now on.
    pub fn open(&self, backend: Arc<B>) {
        // A second backend would be a bug of the caller; the first one stays.
        let _ = self.backend.set(backend);
        self.health.enter(Phase::Ready);
    }

    /// Answers a request and counts it. `held` is who has the routes, until then.
    pub async fn handle(held: Arc<impl AsRef<Self> + Send + Sync>, asked: Asked) -> Outgoing {
        let this = (*held).as_ref();
        let is_head = asked.request.heading.method() == Method::HEAD;
        let Answer { operation, mut response, charge, took } =
            match (this.own(&asked.request.heading), this.backend.get()) {
                (Some(response), _) => Answer::free("server", response, asked.watch),
                (None, Some(backend)) => backend.serve(asked).await,
                (None, None) => not_yet(&asked),
            };
        if is_head {
            response = without_body(response.into_response()).into();
        }
        this.metrics.request(operation, response.status().as_u16(), took, charge);
        response
    }

    /// How many requests have come so far, if all of them are answered.
    pub fn all_answered(&self) -> Option<u64> {
        self.backend.get()?.all_answered()
    }

    fn own(&self, heading: &Heading) -> Option<Response<Body>> {
        let body = match heading.path() {
            "/alive" => respond::text(StatusCode::OK, "text/plain", "alive\n"),
            "/ready" => self.ready(),
            "/status" => respond::text(StatusCode::OK, "application/json", self.health.to_json()),
            "/metrics" => respond::text(StatusCode::OK, PROMETHEUS, self.render_metrics()),
            "/_explorer/emulator.pem" => {
                respond::text(StatusCode::OK, "application/x-pem-file", self.ca_pem.clone())
            }
            path => explorer::answer(path, &heading.headers())?,
        };
        if matches!(*heading.method(), Method::GET | Method::HEAD) {
            return Some(body);
        }
        let error = ApiError::method_not_allowed(heading.method().as_str());
        Some(respond::error(&error, respond::activity_id(&heading.headers())))
    }

    fn ready(&self) -> Response<Body> {
        match self.health.phase() {
            Phase::Ready => respond::text(StatusCode::OK, "text/plain", "ready\n"),
            _ => respond::text(StatusCode::SERVICE_UNAVAILABLE, "text/plain", "not ready\n"),
        }
    }

    fn render_metrics(&self) -> String {
        let mut out = String::new();
        let (up, ready) = (self.health.uptime_seconds(), self.health.phase() == Phase::Ready);
        single(&mut out, "mayfly_uptime_seconds", "gauge", "Seconds since the start.", up);
        single(&mut out, "mayfly_ready", "gauge", "1 when requests are served.", u8::from(ready));
        self.metrics.render(&mut out);
        if let Some(backend) = self.backend.get() {
            backend.render(&mut out);
        }
        out
    }
}

/// The answer while there is no backend.
fn not_yet(asked: &Asked) -> Answer {
    let error = ApiError::unavailable("Mayfly is starting. Please retry.");
    let response = respond::error(&error, respond::activity_id(&asked.request.heading.headers()));
    Answer::free("none", response, asked.watch)
}

/// HTTP/1 would leave the body out by itself, HTTP/2 not; the length of the body stays in the header.
fn without_body(mut response: Response<Body>) -> Response<Body> {
    if let Some(length) = response.body().size_hint().exact() {
        response.headers_mut().insert(CONTENT_LENGTH, length.into());
    }
    *response.body_mut() = respond::empty();
    response
}
