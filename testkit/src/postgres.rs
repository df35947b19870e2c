//! Empty stores on a real PostgreSQL, for tests that the command `cargo xtask test scale` runs.
//!
//! The server is the caller's: its address stands in [`ADDRESS`]. Each store gets a schema of its own, so tests run side
//! by side and leave nothing to each other.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use mayfly_storage::PostgresStore;
use tokio_postgres::NoTls;

/// The variable with the address of a server that tests may write to.
pub const ADDRESS: &str = "MAYFLY_TEST_POSTGRES";

static NEXT: AtomicU32 = AtomicU32::new(0);

/// The address of an empty schema on the server of [`ADDRESS`].
pub async fn empty_address() -> String {
    let server =
        std::env::var(ADDRESS).unwrap_or_else(|_| panic!("{ADDRESS} has the address of a PostgreSQL"));
    empty_address_on(&server).await
}

/// The address of an empty schema on a server.
pub async fn empty_address_on(server: &str) -> String {
    let schema = format!("t{}_{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
    execute(server, &format!("DROP SCHEMA IF EXISTS {schema} CASCADE; CREATE SCHEMA {schema}")).await;
    format!("{server}?options=-csearch_path%3D{schema}")
}

/// Runs statements on a server, beside any store.
pub async fn execute(address: &str, statements: &str) {
    let (client, connection) = tokio_postgres::connect(address, NoTls).await.expect("the server is there");
    let connected = async {
        let _ = connection.await;
        std::future::pending::<()>().await;
    };
    tokio::select! {
        done = client.batch_execute(statements) => done.expect("the server takes the statements"),
        () = connected => {}
    }
}

/// A store on an empty schema.
pub async fn empty_store() -> PostgresStore {
    PostgresStore::open(&empty_address().await).await.expect("an empty schema can be opened")
}
