//! One server: its connections, and what its errors mean.
//!
//! Two pools. Point reads and commits take a connection for one statement; snapshots hold theirs for as long as they
//! live. Were they one, snapshots that wait for a commit could take every connection a commit needs.
//!
//! Holds: a statement is repeated only if the server said that nothing was written (a serialization failure or a
//! deadlock), or if repeating it cannot matter (a read).

use std::{future::Future, time::Duration};

use deadpool_postgres::{Hook, Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Timeouts};
use tokio_postgres::{Config, NoTls, error::SqlState};

use super::{
    tls::{Address, is_final},
    vacuum::Vacuum,
};
use crate::{Error, Result};

/// Connections for single statements. More than a server has cores only wait inside it instead of here.
const STATEMENTS_MAX: usize = 12;

/// Connections for snapshots: pages that are read at a time.
const SNAPSHOTS_MAX: usize = 16;

/// How long to wait for a connection, and for a server to come back. A failover takes seconds; a request that waits
/// longer is better told.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// How often an attempt to reach a server is repeated within [`WAIT_MAX`].
const ATTEMPTS: u32 = 40;

/// Attempts at a statement that loses to others. Commits of one slot cannot, so this is for the family's other members.
const RETRIES: u32 = 20;

/// Bytes of a key that an index of PostgreSQL always takes: a third of its page, less what it adds itself. Longer ones it
/// compresses, and refuses if that does not help.
const KEY_BYTES_MAX: usize = 2600;

/// What every connection is told. Plans are made once and follow the primary key: the tables' statistics may be of
/// when they were small.
const PREPARE_CONNECTION: &str = "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; \
    SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_bitmapscan = off; SET jit = off";

/// What a statement answered.
pub type Answered<T> = std::result::Result<T, tokio_postgres::Error>;

/// A server of the PostgreSQL family.
pub struct Server {
    statements: Pool,
    snapshots: Pool,
    /// What was deleted there.
    pub vacuum: Vacuum,
    /// For connections that are nobody else's.
    pub address: Address,
    /// Where it is, without what is secret.
    pub name: String,
}

impl Server {
    /// Connects nowhere yet.
    pub fn new(url: &str) -> Result<Self> {
        let address = Address::parse(url)?;
        let Address { config, tls } = &address;
        let name = name_of(config);
        let pool = |size| {
            let options = ManagerConfig { recycling_method: RecyclingMethod::Fast };
            let manager = match tls {
                Some(tls) => Manager::from_config(config.clone(), tls.clone(), options),
                None => Manager::from_config(config.clone(), NoTls, options),
            };
            let prepare = Hook::async_fn(|client, _| {
                Box::pin(async move {
                    let version = client.simple_query("SHOW server_version").await;
                    // Others of the family do not know these settings, and need none of them.
                    if version.is_ok() {
                        let _ = client.batch_execute(PREPARE_CONNECTION).await;
                    }
                    Ok(())
                })
            });
            let timeouts = Timeouts { wait: Some(WAIT_MAX), create: Some(WAIT_MAX), recycle: Some(WAIT_MAX) };
            Pool::builder(manager)
                .max_size(size)
                .post_create(prepare)
                .timeouts(timeouts)
                .runtime(deadpool_postgres::Runtime::Tokio1)
                .build()
                .map_err(|error| Error::Unusable(error.to_string()))
        };
        let (statements, snapshots) = (pool(STATEMENTS_MAX)?, pool(SNAPSHOTS_MAX)?);
        Ok(Self { statements, snapshots, vacuum: Vacuum::default(), address, name })
    }

    /// A connection for one statement.
    pub async fn connection(&self) -> Result<Object> {
        self.take(&self.statements).await
    }

    /// A connection for a snapshot.
    pub async fn long_connection(&self) -> Result<Object> {
        self.take(&self.snapshots).await
    }

    /// Waits for a server that is away, as it is while another takes its place.
    async fn take(&self, pool: &Pool) -> Result<Object> {
        let mut attempt = 0;
        loop {
            match pool.get().await {
                Ok(connection) => return Ok(connection),
                Err(error) if attempt >= ATTEMPTS || !is_passing(&error) => {
                    return Err(Error::Unreachable(format!("{}: {}", self.name, told(&error))));
                }
                Err(_) => {
                    attempt += 1;
                    pause(WAIT_MAX / ATTEMPTS).await;
                }
            }
        }
    }

    /// Runs a read on a connection, again on another if the first one breaks.
    pub async fn read<T, Asked: Future<Output = Answered<T>>>(
        &self,
        ask: impl Fn(Object) -> Asked,
    ) -> Result<T> {
        self.ask(ask, |error| is_lost_race(error) || is_broken(error)).await
    }

    /// Runs a statement that writes, again if it lost to another and so wrote nothing.
    pub async fn write<T, Asked: Future<Output = Answered<T>>>(
        &self,
        ask: impl Fn(Object) -> Asked,
    ) -> Result<T> {
        self.ask(ask, is_lost_race).await
    }

    /// Runs a statement, again while its error is one `after` which that does no harm.
    async fn ask<T, Asked: Future<Output = Answered<T>>>(
        &self,
        ask: impl Fn(Object) -> Asked,
        after: impl Fn(&tokio_postgres::Error) -> bool,
    ) -> Result<T> {
        let mut attempt = 0;
        loop {
            match ask(self.connection().await?).await {
                Ok(answer) => return Ok(answer),
                Err(error) if attempt < RETRIES && after(&error) => {
                    attempt += 1;
                    pause(Duration::from_millis(u64::from(attempt))).await;
                }
                Err(error) => return Err(self.failed(&error)),
            }
        }
    }

    /// The error of a statement, as this crate tells it.
    pub fn failed(&self, error: &tokio_postgres::Error) -> Error {
        match error.code() {
            Some(&SqlState::PROGRAM_LIMIT_EXCEEDED) => Error::KeyTooLong { bytes_max: KEY_BYTES_MAX },
            _ => Error::Unreachable(format!("{}: {}", self.name, text(error))),
        }
    }
}

/// Host and database, for messages.
fn name_of(config: &Config) -> String {
    let hosts = config.get_hosts().iter().map(|host| match host {
        tokio_postgres::config::Host::Tcp(name) => name.clone(),
        tokio_postgres::config::Host::Unix(path) => path.display().to_string(),
    });
    let hosts: Vec<_> = hosts.collect();
    let ports: Vec<_> = config.get_ports().iter().map(u16::to_string).collect();
    format!("PostgreSQL at {} {}", hosts.join(","), ports.join(","))
}

/// What the server says, which the library's own text leaves out.
pub fn text(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(told) => format!("{} ({})", told.message(), told.code().code()),
        None => match std::error::Error::source(error) {
            Some(cause) => format!("{error}: {cause}"),
            None => error.to_string(),
        },
    }
}

fn told(error: &PoolError) -> String {
    match error {
        PoolError::Backend(error) => text(error),
        other => other.to_string(),
    }
}

/// Nothing was written, and another attempt may go better.
fn is_lost_race(error: &tokio_postgres::Error) -> bool {
    matches!(error.code(), Some(&SqlState::T_R_SERIALIZATION_FAILURE | &SqlState::T_R_DEADLOCK_DETECTED))
}

/// The connection is gone: nobody knows how far the statement came.
fn is_broken(error: &tokio_postgres::Error) -> bool {
    error.is_closed() || error.code().is_none_or(is_shutdown)
}

fn is_shutdown(code: &SqlState) -> bool {
    [
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::CANNOT_CONNECT_NOW,
        SqlState::READ_ONLY_SQL_TRANSACTION,
    ]
    .contains(code)
}

/// Whether a server that cannot be reached now may be soon. A wrong password will not become right.
fn is_passing(error: &PoolError) -> bool {
    let PoolError::Backend(error) = error else { return false };
    if is_final(error) {
        return false;
    }
    error.code().is_none_or(|code| is_shutdown(code) || *code == SqlState::TOO_MANY_CONNECTIONS)
}

/// Lets others go first.
#[expect(clippy::disallowed_methods, reason = "a server on a network is waited for in real time")]
pub async fn pause(duration: Duration) {
    tokio::time::sleep(duration).await;
}
