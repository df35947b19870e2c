//! The port: accept connections, a bounded number at a time, until told to stop; then let them finish.
//!
//! What a connection does is in `connection`. When all places are taken, further clients wait in the system's
//! queue instead of being turned away.
//!
//! Holds: when `serve` returns, no connection is open and no request is running.

use crate::connection::{ConnectionInfo, Shared};
use crate::metrics::Metrics;
use crate::respond::Body;
use crate::tasks::{Stopping, TaskSet};
use hyper::body::Incoming;
use hyper::{Request, Response};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

/// What a client may take of the server before it is known to be anyone.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Connections at a time.
    pub connections_max: usize,
    /// All headers of a request together. The largest real ones are continuation and resource tokens.
    pub header_bytes_max: usize,
    /// From the start of waiting for a header to its end; on HTTP/1 also how long an idle connection lives.
    pub header_timeout: Duration,
    /// For the TLS handshake.
    pub handshake_timeout: Duration,
    /// Between pings on HTTP/2.
    pub keep_alive_interval: Duration,
    /// For open requests, once stopping was asked for.
    pub drain_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections_max: 1024,
            header_bytes_max: 64 * 1024,
            header_timeout: Duration::from_secs(30),
            handshake_timeout: Duration::from_secs(10),
            keep_alive_interval: Duration::from_secs(60),
            drain_timeout: Duration::from_secs(10),
        }
    }
}

/// How long to leave the port alone when accepting fails, which mostly means too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves connections on `tcp` with `service` until stopping is asked for, and then up to the drain timeout.
pub async fn serve<S, F>(
    tcp: TcpListener,
    tls: TlsAcceptor,
    limits: Limits,
    metrics: Arc<Metrics>,
    service: S,
    mut stopping: Stopping,
) where
    S: Fn(Request<Incoming>, ConnectionInfo) -> F + Send + Sync + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    let places = Arc::new(Semaphore::new(limits.connections_max));
    let drain_timeout = limits.drain_timeout;
    let tasks = TaskSet::default();
    let shared = Arc::new(Shared { service, tls, limits, metrics, tasks: tasks.clone() });
    loop {
        let place = tokio::select! {
            () = stopping.requested() => break,
            place = places.clone().acquire_owned() => place.expect("the semaphore is never closed"),
        };
        let accepted = tokio::select! {
            () = stopping.requested() => break,
            accepted = tcp.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                let connection = shared.clone().run(stream, peer, stopping.clone());
                tasks.spawn(async move {
                    connection.await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept connections");
                let _ = timeout(ACCEPT_PAUSE, stopping.requested()).await;
            }
        }
    }
    // Close the port first, so that new clients learn at once that nobody is there.
    drop(tcp);
    if !tasks.drain(drain_timeout, &mut stopping).await {
        tracing::warn!("some connections did not end in time and were cut off");
    }
}
