//! The clock of the server that holds the catalog: the one clock that all nodes go by.
//!
//! It has a connection of its own, which says at once when the server is gone. Whoever takes its place may have another
//! clock, and is asked before anything is decided by it.

use std::sync::Arc;

use deadpool_postgres::Object;
use parking_lot::Mutex;

use super::server::Server;
use crate::Result;

const TIME: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::int8";

/// A clock on another machine.
pub struct ServerTime {
    server: Arc<Server>,
    connection: Mutex<Option<Arc<Object>>>,
}

impl ServerTime {
    pub(super) fn new(server: Arc<Server>) -> Self {
        Self { server, connection: Mutex::default() }
    }

    /// Whether the server that was asked last is still there.
    pub fn is_connected(&self) -> bool {
        self.connection.lock().as_ref().is_some_and(|connection| !connection.is_closed())
    }

    /// Microseconds since the Unix epoch, by the server.
    pub async fn ask(&self) -> Result<u64> {
        let known = self.connection.lock().clone().filter(|connection| !connection.is_closed());
        let connection = match known {
            Some(connection) => connection,
            None => {
                let connection = Arc::new(self.server.long_connection().await?);
                *self.connection.lock() = Some(connection.clone());
                connection
            }
        };
        let asked = async {
            let statement = connection.prepare_cached(TIME).await?;
            connection.query_one(&statement, &[]).await
        };
        match asked.await {
            Ok(row) => Ok(u64::try_from(row.get::<_, i64>(0)).unwrap_or_default()),
            Err(error) => {
                *self.connection.lock() = None;
                Err(self.server.failed(&error))
            }
        }
    }
}
