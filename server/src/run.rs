//! Build everything, run until told to stop, end in good order.
//!
//!   bind ─▶ serve own paths ─▶ open the engine ─▶ start-up text ─▶ … ─▶ signal
//!        ─▶ not ready ─▶ finish requests ─▶ end background work ─▶ close the engine
//!
//! The port is open before the engine, so that `/alive` answers while a store is recovered; `/ready` and the
//! start-up text wait for it. A second signal cuts the waiting short.
//!
//! Holds: the engine is closed after the last request and task that could use it, and before the workers end.

use crate::backend::{Backend, BackendError};
use crate::config::Config;
use crate::health::{Health, Phase};
use crate::listen::Limits;
use crate::metrics::Metrics;
use crate::routes::Routes;
use crate::settings::Store;
use crate::signals::Signals;
use crate::tasks::{Stopper, Stopping, TaskSet, stop_channel};
use crate::tls::{Identity, TlsError, names_for};
use crate::workers::Workers;
use crate::{banner, connection, data_dir, mongo};
use mayfly_engine::{Clock, SystemClock};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

/// Background tasks end at their next step; this is for one that takes long.
const TASKS_GRACE: Duration = Duration::from_secs(10);

/// Why the server did not start or did not end well.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the texts say it")]
pub enum RunError {
    #[error(
        "cannot listen on {address}: {source}. Is another server or emulator running? --port takes another"
    )]
    Listen { address: String, source: io::Error },
    #[error(
        "cannot listen on {address} for the MongoDB protocol: {source}. --mongo-port takes another port, or 0 for none"
    )]
    ListenMongo { address: String, source: io::Error },
    #[error("cannot start threads: {0}")]
    Threads(io::Error),
    #[error("no certificate for HTTPS: {0}")]
    Tls(#[from] TlsError),
    #[error("{0}")]
    Backend(#[from] BackendError),
}

/// A server that has its port and its certificate, but does not serve yet.
pub struct Server {
    config: Config,
    limits: Limits,
    workers: Arc<Workers>,
    tcp: TcpListener,
    address: SocketAddr,
    mongo: Option<TcpListener>,
    identity: Identity,
}

impl Server {
    /// Takes the port and makes or reads the certificate.
    pub async fn bind(config: Config) -> Result<Server, RunError> {
        let host = config.host.trim_start_matches('[').trim_end_matches(']');
        let in_use = |source| RunError::Listen { address: format!("{host}:{}", config.port), source };
        if config.store != Store::Memory {
            data_dir::check(&config.data_dir).map_err(BackendError)?;
        }
        let tcp = TcpListener::bind((host, config.port)).await.map_err(in_use)?;
        let address = tcp.local_addr().map_err(in_use)?;
        let mongo = match config.mongo_port {
            0 => None,
            port => {
                let in_use = |source| RunError::ListenMongo { address: format!("{host}:{port}"), source };
                match TcpListener::bind((host, port)).await.map_err(in_use) {
                    Ok(tcp) => Some(tcp),
                    Err(error) if config.mongo_port_asked => return Err(error),
                    Err(error) => {
                        tracing::warn!("{error}; going on without it");
                        None
                    }
                }
            }
        };
        let (names, now) = (names_for(host), SystemClock.now().seconds());
        let identity = match config.store {
            Store::Memory => Identity::in_memory(&names, now)?,
            _ => Identity::kept_in(&data_dir::tls(&config.data_dir), &names, now)?,
        };
        let limits = Limits { connections_max: config.max_connections, ..Limits::default() };
        let workers = Workers::new().map(Arc::new).map_err(RunError::Threads)?;
        Ok(Server { config, limits, workers, tcp, address, mongo, identity })
    }

    /// Other limits than the usual ones, for tests.
    pub fn with_limits(mut self, limits: Limits) -> Server {
        self.limits = limits;
        self
    }

    /// Where it listens; with port 0 the only way to know.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The certificate that clients have to trust.
    pub fn ca_pem(&self) -> &str {
        &self.identity.ca_pem
    }

    /// Serves with a backend `B` until the first of `signals`; the start-up text goes to `out`.
    pub async fn run<B: Backend>(
        self,
        mut signals: Signals,
        out: &mut (dyn Write + Send),
    ) -> Result<(), RunError> {
        let Server { mut config, limits, workers, tcp, address, mongo: mongo_tcp, identity } = self;
        let (stopper, stopping) = stop_channel();
        let (front, tasks) = (TaskSet::default(), TaskSet::default());
        let mongo_address = mongo_tcp.as_ref().and_then(|tcp| tcp.local_addr().ok());
        // From here on it says which port is open, not which was asked for.
        config.mongo_port = mongo_address.map_or(0, |address| address.port());
        let health = Arc::new(Health::starting(config.store.to_string(), mongo_address.is_some()));
        let metrics = Arc::new(Metrics::default());
        let routes = Arc::new(Routes::<B>::new(health.clone(), metrics.clone(), identity.ca_pem));
        let (tls, mongo_limits) = (identity.acceptor.clone(), limits.clone());
        front.spawn(connection::serve(
            tcp,
            workers.clone(),
            identity.acceptor,
            limits,
            metrics.clone(),
            routes.clone(),
            stopping.clone(),
        ));

        let opened = tokio::select! {
            opened = B::open(&config, &metrics) => opened.map(Arc::new).map(Some),
            () = signals.next() => Ok(None),
        };
        if let Ok(Some(backend)) = &opened {
            backend.start_background(&tasks, &stopping);
            routes.open(backend.clone());
            if let (Some(tcp), Some(front_end)) = (mongo_tcp, backend.mongo()) {
                front.spawn(mongo::serve(
                    tcp,
                    workers.clone(),
                    tls,
                    mongo_limits,
                    front_end,
                    stopping.clone(),
                ));
            }
            let text = banner::text(&config, address, mongo_address, identity.ca_path.as_deref());
            // Nobody may be reading; the server is there all the same.
            let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
            tracing::info!(%address, store = %config.store, "serving");
            signals.next().await;
        }
        health.enter(Phase::Stopping);
        tracing::info!("stopping");
        stop(stopper, stopping, &front, &tasks, &mut signals).await;
        if let Some(backend) = opened? {
            backend.close().await?;
        }
        tracing::info!("stopped");
        Ok(())
    }
}

/// Lets connections finish, then tasks; a further signal ends the patience.
async fn stop(
    stopper: Stopper,
    mut stopping: Stopping,
    front: &TaskSet,
    tasks: &TaskSet,
    signals: &mut Signals,
) {
    stopper.gracefully();
    let finish = async {
        // The listener has its own patience with connections and must not be cut off: they are its tasks.
        front.join_all().await;
        if !tasks.drain(TASKS_GRACE, &mut stopping).await {
            tracing::warn!("some background work did not end in time and was cut off");
        }
    };
    let hurry = async {
        signals.next().await;
        stopper.at_once();
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = finish => {}
        () = hurry => {}
    }
}
