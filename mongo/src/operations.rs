//! What is running now: what `currentOp` shows and `killOp` stops.
//!
//! A command is in the register from when it is known who sends it to when its answer is there. Stopping one tells it so; it looks where
//! it also looks at the time it may take ([`Call::within_time`]), and what writes goes on to its end.
//!
//! Holds: nobody is shown the commands of others, or stops them, unless they may do everything.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicI32, Ordering},
    },
};

use bson::{Bson, DateTime, Document, RawBsonRef, RawDocumentBuf, doc};
use mayfly_engine::{Timestamp, clock::Stopwatch};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::{
    call::Call,
    commands::Access,
    connection::{Connection, Who},
    session::lsid_document,
    usage::{Kind, Purpose, Usage},
};

/// A longer command is shown without its arguments.
const COMMAND_BYTES_MAX: usize = 16 * 1024;

/// A command that runs.
pub struct Operation {
    id: i32,
    kind: Kind,
    namespace: String,
    command: RawDocumentBuf,
    session: Option<Vec<u8>>,
    who: Arc<Who>,
    connection: Place,
    watch: Stopwatch,
    stop: Notify,
}

/// Where a command came from.
struct Place {
    id: i32,
    peer: std::net::SocketAddr,
    local: std::net::SocketAddr,
}

impl Operation {
    /// Ends when somebody wants it stopped.
    pub async fn stopped(&self) {
        self.stop.notified().await;
    }

    fn shown(&self, now: Timestamp) -> Document {
        let running = self.watch.elapsed();
        let place = &self.connection;
        let mut shown = doc! {
            "type": "op",
            "host": place.local.to_string(),
            "desc": format!("conn{}", place.id),
            "connectionId": place.id,
            "client": place.peer.to_string(),
        };
        if let Some(client) = &self.who.client {
            if let Ok(application) = client.get_document("application")
                && let Ok(name) = application.get_str("name")
            {
                shown.insert("appName", name);
            }
            shown.insert("clientMetadata", client.clone());
        }
        shown.insert("active", true);
        let time = DateTime::from_millis(now.0 as i64).try_to_rfc3339_string();
        shown.insert("currentOpTime", time.unwrap_or_default());
        if !self.who.users.is_empty() {
            let users = self.who.users.iter().map(|user| doc! { "user": &user.name, "db": &user.database });
            shown.insert("effectiveUsers", users.collect::<Vec<_>>());
        }
        shown.insert("opid", self.id);
        if let Some(session) = &self.session {
            shown.insert("lsid", lsid_document(session));
        }
        shown.insert("secs_running", running.as_secs() as i64);
        shown.insert("microsecs_running", running.as_micros() as i64);
        shown.insert("op", self.kind.name());
        shown.insert("ns", &self.namespace);
        shown.insert("command", Document::try_from(self.command.clone()).unwrap_or_default());
        shown
    }
}

/// All that runs.
#[derive(Default)]
pub struct Operations {
    next: AtomicI32,
    running: Mutex<HashMap<i32, Arc<Operation>>>,
    /// What has run.
    pub usage: Usage,
}

impl Operations {
    /// Enters a command. It leaves with what is returned.
    pub fn begin(&self, call: &Call<'_>) -> Running<'_> {
        let Connection { id, peer, local, .. } = *call.connection;
        let operation = Arc::new(Operation {
            id: self.next.fetch_add(1, Ordering::Relaxed).wrapping_add(1),
            kind: Kind::of(call.info.name),
            namespace: namespace(call),
            command: command(call),
            session: call.session.as_ref().map(|session| session.id.clone()),
            who: call.connection.who(),
            connection: Place { id, peer, local },
            watch: Stopwatch::start(),
            stop: Notify::new(),
        });
        self.running.lock().insert(operation.id, operation.clone());
        let ends_transaction = ["commitTransaction", "abortTransaction"].contains(&call.info.name);
        let purpose = match call.info.access {
            Access::Read => Purpose::Reads,
            Access::Write if call.info.retryable => Purpose::Writes,
            _ if operation.kind == Kind::GetMore => Purpose::Reads,
            _ if ends_transaction => Purpose::Transactions,
            _ => Purpose::Others,
        };
        Running { operations: self, operation, purpose }
    }

    /// What runs, as far as somebody may know: everything, or what they sent themselves.
    pub fn shown(&self, own: Option<&Who>, now: Timestamp) -> Vec<Document> {
        let mut running: Vec<_> = self.running.lock().values().cloned().collect();
        running.sort_by_key(|operation| operation.id);
        let is_shown = |operation: &&Arc<Operation>| own.is_none_or(|own| own.is_one_of(&operation.who));
        running.iter().filter(is_shown).map(|operation| operation.shown(now)).collect()
    }

    /// Stops a command, if it runs and may be stopped by whom it belongs to.
    pub fn stop(&self, id: i64, own: Option<&Who>) {
        let Ok(id) = i32::try_from(id) else { return };
        if let Some(operation) = self.running.lock().get(&id)
            && own.is_none_or(|own| own.is_one_of(&operation.who))
        {
            operation.stop.notify_one();
        }
    }

    /// Stops the commands of a session.
    pub fn stop_session(&self, session: &[u8]) {
        for operation in self.running.lock().values() {
            if operation.session.as_deref() == Some(session) {
                operation.stop.notify_one();
            }
        }
    }

    fn end(&self, operation: &Operation, purpose: Purpose) {
        self.running.lock().remove(&operation.id);
        if !operation.namespace.contains(".$cmd") {
            self.usage.add(&operation.namespace, operation.kind, purpose, operation.watch.elapsed());
        }
    }
}

/// A command in the register, until this is dropped.
pub struct Running<'a> {
    operations: &'a Operations,
    operation: Arc<Operation>,
    purpose: Purpose,
}

impl std::ops::Deref for Running<'_> {
    type Target = Operation;

    fn deref(&self) -> &Operation {
        &self.operation
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.operations.end(&self.operation, self.purpose);
    }
}

/// What a command is about: a collection, or a database.
fn namespace(call: &Call<'_>) -> String {
    let named = match call.info.name {
        "getMore" => call.text("collection").ok().flatten(),
        _ => match call.body().iter().next() {
            Some(Ok((_, RawBsonRef::String(name)))) if call.info.names_collection() => Some(name),
            _ => None,
        },
    };
    match (named, call.info.name) {
        (Some(name), _) => format!("{}.{name}", call.db),
        (None, "aggregate" | "currentOp") => format!("{}.$cmd.aggregate", call.db),
        (None, _) => format!("{}.$cmd", call.db),
    }
}

/// The command as it is shown.
fn command(call: &Call<'_>) -> RawDocumentBuf {
    if call.info.is_secret() {
        return bson::rawdoc! { "$redacted": call.info.name };
    }
    if call.body().as_bytes().len() > COMMAND_BYTES_MAX {
        return bson::rawdoc! { "$truncated": call.info.name };
    }
    call.body().to_owned()
}

/// A document about a cursor that nobody uses now.
pub fn idle_cursor(call: &Call<'_>, namespace: &str, session: Option<&[u8]>, cursor: Document) -> Document {
    let mut shown = doc! {
        "type": "idleCursor",
        "host": call.connection.local.to_string(),
        "ns": namespace,
    };
    if let Some(session) = session {
        shown.insert("lsid", lsid_document(session));
    }
    shown.insert("cursor", Bson::Document(cursor));
    shown
}
