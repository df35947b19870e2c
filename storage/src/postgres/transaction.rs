//! A transaction of several statements, and the connection it is open on.
//!
//! Whoever began it may be gone at any moment: a client leaves, and what was done for it is dropped where it
//! stands. A connection that went back to its pool then would have the transaction still open, with all its
//! locks, for as long as it lies there, and whoever took it next would go on inside. So the transaction owns
//! the connection. It goes back when the server has said that the transaction is over; otherwise it is
//! closed, which ends the transaction at the server.
//!
//! Holds: no connection in a pool is inside a transaction.

use std::ops::Deref;

use deadpool_postgres::Object;

use super::server::Answered;

/// An open transaction.
pub struct Transaction {
    /// None once it is over.
    connection: Option<Object>,
}

impl Transaction {
    /// Begins one by a statement such as `BEGIN`.
    pub async fn begin(connection: Object, statement: &str) -> Answered<Self> {
        // Before it is sent: of one that is dropped while it begins nobody knows whether it has.
        let transaction = Self { connection: Some(connection) };
        transaction.batch_execute(statement).await?;
        Ok(transaction)
    }

    /// Commits. After an error nobody knows whether it has.
    pub async fn commit(self) -> Answered<()> {
        self.end("COMMIT").await
    }

    /// Undoes all.
    pub async fn rollback(self) -> Answered<()> {
        self.end("ROLLBACK").await
    }

    async fn end(mut self, statement: &str) -> Answered<()> {
        self.batch_execute(statement).await?;
        // To its pool.
        drop(self.connection.take());
        Ok(())
    }
}

impl Deref for Transaction {
    type Target = Object;

    fn deref(&self) -> &Object {
        self.connection.as_ref().expect("only what ends a transaction takes its connection")
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            drop(Object::take(connection));
        }
    }
}
