//! A port: accept connections, a bounded number at a time, give each to the workers, until told to stop; then let them finish.
//!
//! What a connection does is in `connection` and, for the MongoDB protocol, in `mongo`. When all places are taken,
//! further clients wait in the system's queue instead of being turned away.
//!
//! Holds: when `serve` returns, no connection is open and no request is running.

use crate::tasks::{Stopping, TaskSet};
use crate::workers::Workers;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;

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

/// Serves connections on `tcp` until stopping is asked for, and then up to the drain timeout. `connection` serves one,
/// and whatever it begins besides is among `tasks`.
pub async fn serve<C, F>(
    tcp: TcpListener,
    workers: Arc<Workers>,
    limits: &Limits,
    tasks: TaskSet,
    mut stopping: Stopping,
    connection: C,
) where
    C: Fn(TcpStream, SocketAddr) -> F + Send + Sync + 'static,
    F: Future<Output = ()> + Send,
{
    let (places, connection) = (Arc::new(Semaphore::new(limits.connections_max)), Arc::new(connection));
    loop {
        let place = tokio::select! {
            () = stopping.requested() => break,
            place = places.clone().acquire_owned() => place.expect("the semaphore is never closed"),
        };
        let accepted = tokio::select! {
            () = stopping.requested() => break,
            accepted = tcp.accept() => accepted,
        };
        // A stream belongs to the runtime it is made in; this one is to be the workers'.
        match accepted.and_then(|(stream, peer)| Ok((stream.into_std()?, peer))) {
            Ok((stream, peer)) => {
                let connection = connection.clone();
                tasks.spawn_on(workers.handle(), async move {
                    let _place = place;
                    match TcpStream::from_std(stream) {
                        Ok(stream) => connection(stream, peer).await,
                        Err(error) => tracing::warn!(%error, "cannot serve a connection"),
                    }
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
    if !tasks.drain(limits.drain_timeout, &mut stopping).await {
        tracing::warn!("some connections did not end in time and were cut off");
    }
}
