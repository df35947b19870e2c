//! Word of changes that concern all nodes, where the server passes it on: PostgreSQL's LISTEN and NOTIFY.
//!
//! A node that has changed rows of the common slot says so; the others look at once instead of with their next round. Other
//! words are numbers, which mean something to whoever says and waits for them ([`crate::peers::Peers::say`]).
//!
//! Nothing rests on it: word may be lost with a connection, and other members of the family do not know it. Whoever
//! decides by old rows is refused all the same.

use std::{future::poll_fn, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::{Notify, broadcast},
};
use tokio_postgres::{AsyncMessage, Client, Connection, NoTls};

use super::server::{Server, pause};

/// Channels are of a whole database; what is said is the schema, so that stores beside each other do not wake.
const LISTEN: &str = "LISTEN mayfly_changes";
const SAY: &str = "SELECT pg_notify('mayfly_changes', current_schema())";
const SCHEMA: &str = "SELECT current_schema()::text";

/// How long to wait before a lost connection is made again.
const AGAIN: Duration = Duration::from_secs(1);

/// Words that somebody who waits may be behind. Further behind, the word that they wait for may have been among them.
const WORDS_MAX: usize = 256;

/// What other nodes say.
pub struct Heard {
    /// Wakes when a node has said that it changed something.
    pub told: Notify,
    words: broadcast::Sender<u64>,
}

impl Default for Heard {
    fn default() -> Self {
        Self { told: Notify::new(), words: broadcast::Sender::new(WORDS_MAX) }
    }
}

impl Heard {
    /// Ends when a word is said from now on.
    pub fn word(&self, word: u64) -> impl Future<Output = ()> + Send + use<> {
        let mut words = self.words.subscribe();
        async move {
            loop {
                match words.recv().await {
                    Ok(said) if said != word => {}
                    Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => return,
                    Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
                }
            }
        }
    }

    /// Passes on what was said by a node whose store is in this schema.
    fn pass_on(&self, schema: &str, said: &str) {
        match said.strip_prefix(schema) {
            Some("") => self.told.notify_one(),
            Some(rest) => {
                if let Some(word) = rest.strip_prefix(' ').and_then(|word| word.parse().ok()) {
                    // An error says that nobody waits.
                    let _ = self.words.send(word);
                }
            }
            None => {}
        }
    }
}

/// Tells other nodes. A server that cannot pass it on is left alone.
pub async fn say(server: &Server) {
    if let Ok(connection) = server.connection().await {
        let _ = connection.batch_execute(SAY).await;
    }
}

/// Says a word. Unlike a change it is worth nothing after a crash, so nobody waits for the disk.
pub async fn say_word(server: &Server, word: u64) {
    let say = format!(
        "SELECT set_config('synchronous_commit', 'off', true), \
         pg_notify('mayfly_changes', current_schema() || ' {word}')"
    );
    if let Ok(connection) = server.connection().await {
        let _ = connection.batch_execute(&say).await;
    }
}

/// Passes on whatever somebody says, for as long as the store is there.
pub async fn listen(server: Arc<Server>, heard: Arc<Heard>) {
    loop {
        let is_known = match &server.address.tls {
            Some(tls) => match server.address.config.connect(tls.clone()).await {
                Ok((client, connection)) => hear(client, connection, &heard).await,
                Err(_) => true,
            },
            None => match server.address.config.connect(NoTls).await {
                Ok((client, connection)) => hear(client, connection, &heard).await,
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
async fn hear<S, T>(client: Client, mut connection: Connection<S, T>, heard: &Heard) -> bool
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
                    heard.told.notify_one();
                    continue;
                }
                Err(error) => return error.as_db_error().is_none(),
            },
        };
        match message {
            Some(Ok(AsyncMessage::Notification(said))) => {
                schema.iter().for_each(|schema: &String| heard.pass_on(schema, said.payload()));
            }
            Some(Ok(_)) => {}
            Some(Err(_)) | None => return true,
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    /// Stores beside each other in one database do not wake each other, whatever their schemas are called.
    #[test]
    fn words_are_of_a_schema() {
        let heard = Heard::default();
        let mut word = Box::pin(heard.word(5));
        for said in ["t12", "t12 5", "t1 6", "t1 x", "t1", "t15"] {
            heard.pass_on("t1", said);
            assert!((&mut word).now_or_never().is_none(), "{said}");
        }
        heard.pass_on("t1", "t1 5");
        assert!(word.now_or_never().is_some());
        assert!(heard.word(5).now_or_never().is_none(), "said before anybody waited");
    }
}
