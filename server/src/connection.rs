//! One connection: find out what it speaks, serve HTTP on it, end it in good order.
//!
//! The first byte tells TLS from plain text (a TLS record starts with 0x16, no HTTP method does), so both live
//! on one port. Then HTTP/1.1 or HTTP/2, by ALPN inside TLS and by the HTTP/2 preface in either case.
//!
//!   accept ─▶ first byte ─▶ [handshake] ─▶ requests … ─▶ drain
//!             header_timeout  handshake_timeout
//!
//! Holds: a client that sends nothing, or a header forever, is cut off; a handler that panics answers 500, and
//! the connection lives on.

use crate::backend::{Asked, Backend};
use crate::direct;
use crate::heads::Heads;
use crate::listen::{self, Limits};
use crate::log::panic_text;
use crate::lookout::Watched;
use crate::metrics::Metrics;
use crate::prompt::Prompt;
use crate::request::Request;
use crate::respond::{self, Outgoing};
use crate::routes::Routes;
use crate::tasks::{Stopping, TaskSet};
use crate::workers::Workers;
use clap::ValueEnum;
use futures_util::FutureExt as _;
use hyper::Version;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use mayfly_cosmos::{ApiError, headers};
use mayfly_engine::{Elsewhere, clock::Stopwatch};
use serde::Deserialize;
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::Poll;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

/// The content type byte of a TLS handshake record.
const TLS_HANDSHAKE: u8 = 0x16;

/// What a connection speaks below HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheme {
    /// Plain text.
    Http,
    /// TLS.
    Https,
}

impl Scheme {
    /// As in a URL.
    pub fn as_str(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        }
    }
}

/// Where a request came from. Advertised URLs repeat the scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct ConnectionInfo {
    pub scheme: Scheme,
    pub peer: SocketAddr,
}

impl ConnectionInfo {
    fn ended_early(&self, error: impl std::fmt::Display) {
        tracing::debug!(peer = %self.peer, %error, "connection ended early");
    }
}

/// Serves HTTP on `tcp` with `routes` until stopping is asked for, and then up to the drain timeout.
pub async fn serve<B: Backend>(
    tcp: TcpListener,
    workers: Arc<Workers>,
    tls: TlsAcceptor,
    limits: Limits,
    metrics: Arc<Metrics>,
    routes: Arc<Routes<B>>,
    stopping: Stopping,
) {
    let tasks = TaskSet::default();
    let shared = Arc::new(Shared {
        routes,
        tls,
        limits: limits.clone(),
        metrics,
        tasks: tasks.clone(),
        elsewhere: tasks.elsewhere(),
    });
    let until = stopping.clone();
    let connection = move |stream, peer| shared.clone().run(stream, peer, until.clone());
    listen::serve(tcp, workers, &limits, tasks, stopping, connection).await;
}

/// What all connections of a listener share.
struct Shared<B> {
    routes: Arc<Routes<B>>,
    tls: TlsAcceptor,
    limits: Limits,
    metrics: Arc<Metrics>,
    /// Runs the connections, the requests of HTTP/2 connections, and those that take long.
    tasks: TaskSet,
    /// Where requests that take long go on.
    elsewhere: Elsewhere,
}

impl<B: Backend> Shared<B> {
    /// Serves a connection until its end, or until stopping is asked for.
    async fn run(self: Arc<Self>, stream: TcpStream, peer: SocketAddr, mut stopping: Stopping) {
        // Answers are small and awaited; waiting to fill a packet would cost 40 ms each.
        let _ = stream.set_nodelay(true);
        let scheme = tokio::select! {
            () = stopping.requested() => return,
            sniffed = timeout(self.limits.header_timeout, sniff(&stream)) => match sniffed {
                Ok(Some(scheme)) => scheme,
                _ => return,
            },
        };
        let _open = self.metrics.connection(scheme);
        let info = ConnectionInfo { scheme, peer };
        match scheme {
            Scheme::Http => self.clone().serve(stream, info, stopping).await,
            Scheme::Https => {
                let handshake = tokio::select! {
                    () = stopping.requested() => None,
                    handshake = timeout(self.limits.handshake_timeout, self.tls.accept(stream)) => Some(handshake),
                };
                match handshake {
                    // Boxed: its state would be part of every connection's.
                    Some(Ok(Ok(stream))) => Box::pin(self.clone().serve(stream, info, stopping)).await,
                    Some(Ok(Err(error))) => self.handshake_failed(peer, &error),
                    Some(Err(_)) => tracing::debug!(%peer, "TLS handshake took too long"),
                    None => {}
                }
            }
        }
    }

    async fn serve<I>(self: Arc<Self>, io: I, info: ConnectionInfo, mut stopping: Stopping)
    where
        I: AsyncRead + AsyncWrite + Watched + Unpin + Send + 'static,
    {
        let own = Arc::new(Own { shared: self.clone(), info, heads: Heads::default() });
        let is_ending = AtomicBool::new(false);
        let plain = direct::serve(
            io,
            &is_ending,
            || self.routes.all_answered(),
            |request| own.clone().answer(request, Version::HTTP_11),
        );
        let end = |_: Pin<&mut _>| is_ending.store(true, Relaxed);
        let Some(rest) = own.watched(pin!(plain), &mut stopping, end).await else { return };
        match rest {
            // Boxed: most connections never have to have room for its state.
            Ok(Some(io)) => Box::pin(own.by_hyper(io, stopping)).await,
            Ok(None) => {}
            Err(error) => info.ended_early(error),
        }
    }

    fn builder(&self) -> auto::Builder<TaskSet> {
        let mut builder = auto::Builder::new(self.tasks.clone());
        let header_bytes_max = self.limits.header_bytes_max;
        builder.http1().max_buf_size(header_bytes_max);
        builder
            .http2()
            .timer(TokioTimer::new())
            .max_header_list_size(u32::try_from(header_bytes_max).unwrap_or(u32::MAX))
            // A peer that vanished without a word would hold its connection forever.
            .keep_alive_interval(self.limits.keep_alive_interval);
        builder
    }

    fn handshake_failed(&self, peer: SocketAddr, error: &std::io::Error) {
        self.metrics.handshake_failed();
        let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
        if let Some(rustls::Error::AlertReceived(alert)) = tls {
            // By far the most common reason; without a hint the log of the client is all there is.
            tracing::info!(%peer, ?alert, "the client refused the certificate; it has to trust the CA that \
                /_explorer/emulator.pem serves, or use http://");
        } else {
            tracing::debug!(%peer, %error, "TLS handshake failed");
        }
    }
}

/// What a request holds: what all share, and by a count of the connection's own, which no other processor writes to.
struct Own<B> {
    shared: Arc<Shared<B>>,
    info: ConnectionInfo,
    heads: Heads,
}

impl<B: Backend> Own<B> {
    /// What comes of a connection; `None` if its client is late. `end` is called once, when stopping is asked for.
    async fn watched<C: Future>(
        &self,
        mut connection: Pin<&mut C>,
        stopping: &mut Stopping,
        mut end: impl FnMut(Pin<&mut C>),
    ) -> Option<C::Output> {
        let mut late = pin!(self.heads.late(self.shared.limits.header_timeout));
        let mut stop = pin!(stopping.requested());
        let (prompt, late_prompt, stop_prompt) = (Prompt::new(), Prompt::new(), Prompt::new());
        let mut is_ending = false;
        poll_fn(|context| {
            loop {
                if let Poll::Ready(ended) = prompt.poll(connection.as_mut(), context) {
                    return Poll::Ready(Some(ended));
                }
                if late_prompt.poll(late.as_mut(), context).is_ready() {
                    return Poll::Ready(None);
                }
                if is_ending || stop_prompt.poll(stop.as_mut(), context).is_pending() {
                    return Poll::Pending;
                }
                is_ending = true;
                end(connection.as_mut());
                prompt.ring();
            }
        })
        .await
    }

    /// Serves a connection for as long as it lasts, whatever is spoken on it.
    async fn by_hyper<I>(self: Arc<Self>, io: I, mut stopping: Stopping)
    where
        I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let service = service_fn(|request: hyper::Request<Incoming>| {
            let (own, version) = (self.clone(), request.version());
            async move { Ok::<_, Infallible>(own.answer(request.into(), version).await.into_response()) }
        });
        let builder = self.shared.builder();
        let connection = pin!(builder.serve_connection(TokioIo::new(io), service));
        let ended =
            self.watched(connection, &mut stopping, |connection| connection.graceful_shutdown()).await;
        if let Some(Err(error)) = ended {
            self.info.ended_early(error);
        }
    }

    async fn answer(self: Arc<Self>, request: Request, version: Version) -> Outgoing {
        let watch = Stopwatch::start();
        self.heads.came();
        let activity_id = request.heading.headers().get_text(&headers::ACTIVITY_ID).map(str::to_owned);
        let method = request.heading.method().clone();
        // Nothing is done here yet: what could panic is done when it is polled.
        let call = Routes::handle(self.clone(), Asked { request, from: self.info, watch });
        // The service's state is behind locks that are not poisoned by a panic, or is the engine's, which
        // guards itself.
        let answered = AssertUnwindSafe(self.shared.elsewhere.if_long(watch, call)).catch_unwind().await;
        self.heads.next_is_awaited(version);
        let activity_id = || activity_id.as_deref().unwrap_or(respond::NO_ACTIVITY);
        match answered {
            Ok(Some(response)) => response,
            Err(panic) => {
                self.shared.metrics.handler_panicked();
                let activity_id = activity_id();
                tracing::error!(%method, activity_id, reason = panic_text(&*panic), "a request handler panicked");
                respond::error(&ApiError::internal(), activity_id).into()
            }
            Ok(None) => {
                let stopping = ApiError::unavailable("Mayfly is stopping. Please retry.");
                respond::error(&stopping, activity_id()).into()
            }
        }
    }
}

impl<B> AsRef<Routes<B>> for Own<B> {
    fn as_ref(&self) -> &Routes<B> {
        &self.shared.routes
    }
}

/// The first byte decides; it stays in the stream. `None` if the client left without one.
pub(crate) async fn sniff(stream: &TcpStream) -> Option<Scheme> {
    let mut first = [0; 1];
    match stream.peek(&mut first).await {
        Ok(1) if first[0] == TLS_HANDSHAKE => Some(Scheme::Https),
        Ok(1) => Some(Scheme::Http),
        _ => None,
    }
}
