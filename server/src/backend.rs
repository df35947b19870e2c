//! The seam: what the server needs from the protocol front-end and the engine behind it.
//!
//! The server opens it after the port is open (so that `/alive` answers while a large store is recovered),
//! hands it every request that is not its own, gives it a place for background work, and closes it last.
//!
//! Holds: `serve` is called only between `open` and `close`.

use crate::config::Config;
use crate::connection::ConnectionInfo;
use crate::metrics::{Metrics, MetricsSource};
use crate::request::Request;
use crate::respond::Outgoing;
use crate::tasks::{Stopping, TaskSet};
use mayfly_engine::clock::Stopwatch;
use mayfly_mongo::Mongo;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// A request, and what the server knows of it.
#[derive(Debug)]
pub struct Asked {
    /// What the client sent.
    pub request: Request,
    /// Where it came from.
    pub from: ConnectionInfo,
    /// Runs since it came.
    pub watch: Stopwatch,
}

/// A response, and the word under which metrics count it.
#[derive(Debug)]
pub struct Answer {
    /// Like `read_item`; a word of the program, not of the request.
    pub operation: &'static str,
    /// What the client gets.
    pub response: Outgoing,
    /// What it is charged, in request units.
    pub charge: f64,
    /// How long it took.
    pub took: Duration,
}

impl Answer {
    /// One that is not charged for.
    pub fn free(operation: &'static str, response: impl Into<Outgoing>, watch: Stopwatch) -> Self {
        Self { operation, response: response.into(), charge: 0.0, took: watch.elapsed() }
    }
}

/// Why the engine does not open or close. Shown to the person who runs the server.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BackendError(pub String);

/// A protocol front-end with its engine.
pub trait Backend: MetricsSource + Sized + Send + Sync + 'static {
    /// Opens the store. Operations beyond the count of requests go into `metrics`.
    fn open(
        config: &Config,
        metrics: &Arc<Metrics>,
    ) -> impl Future<Output = Result<Self, BackendError>> + Send;

    /// Answers a request; errors are responses too.
    fn serve(&self, asked: Asked) -> impl Future<Output = Answer> + Send;

    /// How many requests have come so far, if all of them are answered. A backend that does not say counts as busy.
    fn all_answered(&self) -> Option<u64> {
        None
    }

    /// The MongoDB front-end over the same engine, if there is one.
    fn mongo(&self) -> Option<Arc<Mongo>> {
        None
    }

    /// Starts background work (purge, index builds) as tasks that end when `stopping` says so.
    fn start_background(self: &Arc<Self>, tasks: &TaskSet, stopping: &Stopping);

    /// Makes everything durable and lets go of the store; no request or task is running any more.
    fn close(&self) -> impl Future<Output = Result<(), BackendError>> + Send;
}
