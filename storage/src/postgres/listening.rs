//! Word of changes that concern all nodes, where the server passes it on: PostgreSQL's LISTEN and NOTIFY.
//!
//! A node that has changed rows of the common slot says so; the others look at once instead of with their next round.
//! Nothing rests on it: word may be lost with a connection, and other members of the family do not know it. Whoever
//! decides by old rows is refused all the same.

use std::{future::poll_fn, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::Notify,
};
use tokio_postgres::{AsyncMessage, Client, Connection, NoTls};

use super::server::{Server, pause};

/// Channels are of a whole database; what is said is the schema, so that stores beside each other do not wake.
const LISTEN: &str = "LISTEN mayfly_changes";
const SAY: &str = "SELECT pg_notify('mayfly_changes', current_schema())";
const SCHEMA: &str = "SELECT current_schema()::text";

/// How long to wait before a lost connection is made again.
const AGAIN: Duration = Duration::from_secs(1);

/// Tells other nodes. A server that cannot pass it on is left alone.
pub async fn say(server: &Server) {
    if let Ok(connection) = server.connection().await {
        let _ = connection.batch_execute(SAY).await;
    }
}

/// Wakes `told` whenever somebody has said something, for as long as the store is there.
pub async fn listen(server: Arc<Server>, told: Arc<Notify>) {
    loop {
        let is_known = match &server.address.tls {
            Some(tls) => match server.address.config.connect(tls.clone()).await {
                Ok((client, connection)) => hear(client, connection, &told).await,
                Err(_) => true,
            },
            None => match server.address.config.connect(NoTls).await {
                Ok((client, connection)) => hear(client, connection, &told).await,
                Err(_) => true,
            },
        };
        if !is_known {
            return;
        }
        pause(AGAIN).await;
    }
}

/// Listens until the connection ends. False if the server does not know how.
async fn hear<S, T>(client: Client, mut connection: Connection<S, T>, told: &Notify) -> bool
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    let begin = async {
        let schema = client.query_one(SCHEMA, &[]).await?.get::<_, Option<String>>(0);
        client.batch_execute(LISTEN).await?;
        Ok::<_, tokio_postgres::Error>(schema.unwrap_or_default())
    };
    let mut begin = std::pin::pin!(begin);
    let mut schema = None;
    loop {
        let message = tokio::select! {
            message = poll_fn(|context| connection.poll_message(context)) => message,
            begun = &mut begin, if schema.is_none() => match begun {
                Ok(name) => {
                    schema = Some(name);
                    // Whatever happened before there was anybody to listen.
                    told.notify_one();
                    continue;
                }
                Err(error) => return error.as_db_error().is_none(),
            },
        };
        match message {
            Some(Ok(AsyncMessage::Notification(said))) if schema.as_deref() == Some(said.payload()) => {
                told.notify_one();
            }
            Some(Ok(_)) => {}
            Some(Err(_)) | None => return true,
        }
    }
}
