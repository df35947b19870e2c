//! The port of the MongoDB protocol: accept, tell TLS from plain text by the first byte, hand over.
//!
//! Drivers keep many connections open and idle, so there is no deadline between two messages; a connection ends when
//! its client leaves or the server stops. A client that says nothing at all is cut off.
//!
//! Holds: when `serve` returns, no connection is open.

use crate::connection::{Scheme, sniff};
use crate::listen::Limits;
use crate::tasks::{Stopping, TaskSet};
use futures_util::FutureExt as _;
use mayfly_mongo::Mongo;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

/// How long to leave the port alone when accepting fails.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Drivers open pools of a hundred and more each, and monitors beside them.
const CONNECTIONS_FACTOR: usize = 4;

/// Serves connections until stopping is asked for.
pub async fn serve(
    tcp: TcpListener,
    tls: TlsAcceptor,
    limits: Limits,
    mongo: Arc<Mongo>,
    mut stopping: Stopping,
) {
    let places = Arc::new(Semaphore::new(limits.connections_max.saturating_mul(CONNECTIONS_FACTOR)));
    let tasks = TaskSet::default();
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
                let (tls, limits, mongo) = (tls.clone(), limits.clone(), mongo.clone());
                let mut stopping = stopping.clone();
                tasks.spawn(async move {
                    let connection = AssertUnwindSafe(connection(stream, peer, tls, limits, mongo)).catch_unwind();
                    tokio::select! {
                        ended = connection => {
                            if ended.is_err() {
                                tracing::error!(%peer, "a MongoDB command panicked; its connection was closed");
                            }
                        }
                        () = stopping.requested() => {}
                    }
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept connections");
                let _ = timeout(ACCEPT_PAUSE, stopping.requested()).await;
            }
        }
    }
    drop(tcp);
    tasks.drain(limits.drain_timeout, &mut stopping).await;
}

async fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    tls: TlsAcceptor,
    limits: Limits,
    mongo: Arc<Mongo>,
) {
    let _ = stream.set_nodelay(true);
    let Ok(local) = stream.local_addr() else { return };
    match timeout(limits.header_timeout, sniff(&stream)).await {
        Ok(Some(Scheme::Http)) => mongo.serve(stream, peer, local).await,
        Ok(Some(Scheme::Https)) => match timeout(limits.handshake_timeout, tls.accept(stream)).await {
            Ok(Ok(stream)) => mongo.serve(stream, peer, local).await,
            Ok(Err(error)) => tracing::debug!(%peer, %error, "TLS handshake failed"),
            Err(_) => tracing::debug!(%peer, "TLS handshake took too long"),
        },
        _ => {}
    }
}
