//! A connection of the MongoDB protocol: tell TLS from plain text by the first byte, hand over.
//!
//! Drivers keep many connections open and idle, so there is no deadline between two messages; a connection ends when
//! its client leaves or the server stops. A client that says nothing at all is cut off.
//!
//! Holds: when `serve` returns, no connection is open.

use crate::connection::{Scheme, sniff};
use crate::listen::{self, Limits};
use crate::tasks::{Stopping, TaskSet};
use crate::workers::Workers;
use futures_util::FutureExt as _;
use mayfly_engine::Elsewhere;
use mayfly_mongo::Mongo;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

/// Drivers open pools of a hundred and more each, and monitors beside them.
const CONNECTIONS_FACTOR: usize = 4;

/// Serves connections until stopping is asked for.
pub async fn serve(
    tcp: TcpListener,
    workers: Arc<Workers>,
    tls: TlsAcceptor,
    mut limits: Limits,
    mongo: Arc<Mongo>,
    stopping: Stopping,
) {
    limits.connections_max = limits.connections_max.saturating_mul(CONNECTIONS_FACTOR);
    let tasks = TaskSet::default();
    let (of_each, until, elsewhere) = (limits.clone(), stopping.clone(), tasks.elsewhere());
    let connection = move |stream, peer| {
        let (mongo, elsewhere) = (mongo.clone(), elsewhere.clone());
        let connection = connection(stream, peer, tls.clone(), of_each.clone(), mongo, elsewhere);
        let mut stopping = until.clone();
        async move {
            tokio::select! {
                ended = AssertUnwindSafe(connection).catch_unwind() => {
                    if ended.is_err() {
                        tracing::error!(%peer, "a MongoDB command panicked; its connection was closed");
                    }
                }
                () = stopping.requested() => {}
            }
        }
    };
    listen::serve(tcp, workers, &limits, tasks, stopping, connection).await;
}

async fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    tls: TlsAcceptor,
    limits: Limits,
    mongo: Arc<Mongo>,
    elsewhere: Elsewhere,
) {
    let _ = stream.set_nodelay(true);
    let Ok(local) = stream.local_addr() else { return };
    match timeout(limits.header_timeout, sniff(&stream)).await {
        Ok(Some(Scheme::Http)) => mongo.serve(stream, peer, local, elsewhere).await,
        Ok(Some(Scheme::Https)) => match timeout(limits.handshake_timeout, tls.accept(stream)).await {
            Ok(Ok(stream)) => mongo.serve(stream, peer, local, elsewhere).await,
            Ok(Err(error)) => tracing::debug!(%peer, %error, "TLS handshake failed"),
            Err(_) => tracing::debug!(%peer, "TLS handshake took too long"),
        },
        _ => {}
    }
}
