//! The front-end: what all connections share, and the way of a command through it.
//!
//! 1. `commands::find`: which row of the table; none is error 59.
//! 2. The arguments every command has: database, session, transaction, versions, concerns.
//! 3. Who asks, and whether they may.
//! 4. The row's handler.
//! 5. What every answer ends with: `ok` and the cluster's time.

use std::sync::{Arc, Weak, atomic::Ordering};

use bson::{Document, RawDocument, RawDocumentBuf, doc, oid::ObjectId};
use mayfly_engine::{Engine, Timestamp, clock::Stopwatch};
use parking_lot::Mutex;

use crate::{
    auth::Accounts,
    call::Call,
    change_stream::Streams,
    cluster_time::{self, ClusterTime},
    commands::{self, CommandInfo},
    connection::Connection,
    counters::Counters,
    cursor::Cursors,
    errands,
    fail_point::FailPoints,
    failure::{Failure, Result},
    gates::Gates,
    namespace,
    operations::Operations,
    session::{SESSION_MINUTES, Sessions},
    snapshots::{Asked, Snapshots},
    wire::{Form, Request},
};

/// What the server says it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Topology {
    /// A router: every feature, and clients look for no other hosts.
    Router,
    /// A replica set of one, with this name; clients come back to the address they are told.
    ReplicaSet {
        /// The set's name.
        name: String,
    },
}

/// How to serve.
#[derive(Clone, Debug)]
pub struct Options {
    /// What to present.
    pub topology: Topology,
    /// The host and port clients are told, where they are told any.
    pub advertise: String,
    /// Whether commands that only tests need are there.
    pub test_commands: bool,
}

/// The MongoDB front-end.
pub struct Mongo {
    pub(crate) engine: Engine,
    pub(crate) options: Options,
    pub(crate) accounts: Accounts,
    pub(crate) sessions: Sessions,
    pub(crate) snapshots: Snapshots,
    pub(crate) cursors: Cursors,
    pub(crate) cluster_time: ClusterTime,
    pub(crate) counters: Counters,
    pub(crate) operations: Operations,
    pub(crate) fail_points: FailPoints,
    pub(crate) gates: Gates,
    pub(crate) streams: Streams,
    /// Names this process in `topologyVersion`.
    pub(crate) process: ObjectId,
    pub(crate) uptime: Stopwatch,
    /// Itself, for what goes on without whoever asked for it.
    itself: Weak<Self>,
    /// When old receipts were last looked for.
    receipts_cleared: Mutex<Timestamp>,
}

impl Mongo {
    /// A front-end over `engine`.
    pub fn new(engine: Engine, accounts: Accounts, options: Options) -> Arc<Self> {
        let process = new_object_id(&engine, 0);
        Arc::new_cyclic(|itself| Self {
            itself: itself.clone(),
            sessions: Sessions::default(),
            snapshots: Snapshots::default(),
            cursors: Cursors::default(),
            cluster_time: ClusterTime::new(engine.clone()),
            counters: Counters::default(),
            operations: Operations::default(),
            fail_points: FailPoints::default(),
            gates: Gates::default(),
            streams: Streams::default(),
            process,
            uptime: Stopwatch::start(),
            receipts_cleared: Mutex::new(engine.clock().now()),
            engine,
            options,
            accounts,
        })
    }

    /// Itself, to be taken along by what goes on without whoever asked for it.
    pub(crate) fn shared(&self) -> Result<Arc<Self>> {
        self.itself.upgrade().ok_or_else(|| Failure::new(91, "the server stops"))
    }

    /// One tick of upkeep: forgets sessions and closes cursors that nobody uses, ends transactions that are
    /// too old.
    pub async fn sweep(&self) -> mayfly_engine::Result<()> {
        let now = self.engine.now().await?;
        self.sessions.sweep(now);
        self.sessions.drafts.clear(self).await?;
        self.cursors.sweep(now);
        self.snapshots.sweep(now);
        self.operations.usage.keep_only(
            |name| namespace::is_there(&self.engine, name),
            |container| self.engine.container_by_id(container).is_ok(),
        );
        self.engine.forget_errands(now).await?;
        self.forget_receipts(now).await
    }

    /// Forgets what writes answered that nobody may send again: their sessions have ended.
    async fn forget_receipts(&self, now: Timestamp) -> mayfly_engine::Result<()> {
        let life = SESSION_MINUTES * 60;
        {
            let mut cleared = self.receipts_cleared.lock();
            if now.seconds() < cleared.seconds() + life {
                return Ok(());
            }
            *cleared = now;
        }
        let before = Timestamp::from_seconds(now.seconds().saturating_sub(2 * life));
        for database in self.engine.databases() {
            for container in self.engine.containers(&database) {
                if container.is_collection() {
                    self.engine.forget_receipts(&container, before).await?;
                }
            }
        }
        Ok(())
    }

    /// Answers a request; errors are answers too.
    pub(crate) async fn answer(
        &self,
        connection: &Arc<Connection>,
        request: &Arc<Request>,
    ) -> RawDocumentBuf {
        let reply = match self.run(connection, request).await {
            Ok(reply) => reply,
            Err(failure) => {
                self.counters.failed(request.name());
                to_raw(&failure.to_reply())
            }
        };
        self.with_times(reply, request)
    }

    /// Runs a command. One of several steps comes to its end, also if nobody waits for it any more.
    pub(crate) async fn run(
        &self,
        connection: &Arc<Connection>,
        request: &Arc<Request>,
    ) -> Result<RawDocumentBuf> {
        let name = request.name();
        let Some(info) = commands::find(name) else {
            return Err(Failure::new(59, format!("no such command: '{name}'")));
        };
        if !info.comes_to_its_end(request) {
            return self.run_here(info, connection, request).await;
        }
        let (mongo, connection, request) = (self.shared()?, connection.clone(), request.clone());
        self.engine.to_completion(async move { mongo.run_here(info, &connection, &request).await }).await
    }

    async fn run_here(
        &self,
        info: &'static CommandInfo,
        connection: &Connection,
        request: &Request,
    ) -> Result<RawDocumentBuf> {
        let name = request.name();
        if request.form == Form::Query && !info.over_query {
            let message = format!(
                "Unsupported OP_QUERY command: {name}. The client driver may require an upgrade. For more details see \
                 https://dochub.mongodb.org/core/legacy-opcode-removal"
            );
            return Err(Failure::new(352, message));
        }
        self.counters.started(info.name);
        let _busy = info.is_load().then(|| self.engine.load().enter());
        let mut call = Call::new(self, connection, request, info).await?;
        call.check_fields()?;
        call.check_read_concern()?;
        call.check_write_concern()?;
        call.check_time_limit()?;
        call.authorize()?;
        self.hear_of(&request.body, call.now);
        let injected = self.fail_points.meet(&call).await;
        let injected = injected.transpose()?;
        call.snapshot = match self.snapshots.asked(&call).await? {
            Asked::Nothing => None,
            Asked::View(time, view) => Some((time, view)),
            Asked::Unknown(time) => {
                let unavailable = "Read timestamp is older than the oldest available timestamp.";
                return errands::read_of(&call, time).await?.ok_or_else(|| Failure::new(239, unavailable));
            }
        };
        let reply = crate::session::run(&call).await;
        if call.hang_up.load(Ordering::Relaxed) {
            return Err(FailPoints::closing());
        }
        // Who wanted more members is told so, also beside another failure.
        let unsatisfied = call.unsatisfied_concern();
        let reply = match (reply, &unsatisfied) {
            (Err(failure), Some(error)) => return Err(failure.field("writeConcernError", error.clone())),
            (reply, _) => reply?,
        };
        let concern_error = || unsatisfied.map(|error| doc! { "writeConcernError": error });
        Ok(match injected.or_else(concern_error) {
            Some(end) => appended(reply, end),
            None => reply,
        })
    }

    /// Goes on from the time that a client has been told by another node, so that what it does here is later.
    fn hear_of(&self, body: &RawDocument, now: Timestamp) {
        if !self.engine.is_shared() {
            return;
        }
        if let Ok(told) = body.get_document("$clusterTime")
            && let Ok(time) = told.get_timestamp("clusterTime")
            // Nobody else can have made time run.
            && u64::from(time.time) <= now.seconds() + 1
        {
            self.engine.observe_moment(cluster_time::moment(time));
        }
    }

    /// Ends an answer with the times that clients hand on to each other.
    fn with_times(&self, reply: RawDocumentBuf, request: &Request) -> RawDocumentBuf {
        let mut end = Document::new();
        if !matches!(reply.get("ok"), Ok(Some(_))) {
            end.insert("ok", 1.0);
        }
        if request.form != Form::Query {
            let time = self.cluster_time.last(self.engine.clock().now());
            let signature = doc! {
                "hash": bson::Binary { subtype: bson::spec::BinarySubtype::Generic, bytes: vec![0; 20] },
                "keyId": 0_i64,
            };
            end.insert("$clusterTime", doc! { "clusterTime": time, "signature": signature });
            end.insert("operationTime", time);
        }
        appended(reply, end)
    }
}

/// A document with more fields at its end.
pub(crate) fn appended(document: RawDocumentBuf, end: Document) -> RawDocumentBuf {
    if end.is_empty() {
        return document;
    }
    let mut bytes = document.into_bytes();
    bytes.pop();
    bytes.extend_from_slice(&to_raw(&end).as_bytes()[4..]);
    let length = (bytes.len() as i32).to_le_bytes();
    bytes[..4].copy_from_slice(&length);
    RawDocumentBuf::from_bytes(bytes).unwrap_or_default()
}

/// The bytes of a document that we made ourselves.
pub(crate) fn to_raw(document: &Document) -> RawDocumentBuf {
    RawDocumentBuf::try_from(document).unwrap_or_default()
}

/// A fresh identifier: the second, then random bytes.
pub(crate) fn new_object_id(engine: &Engine, seconds: u64) -> ObjectId {
    let mut bytes = [0; 12];
    bytes[..4].copy_from_slice(&(seconds as u32).to_be_bytes());
    bytes[4..].copy_from_slice(&engine.ids().unique()[..8]);
    ObjectId::from_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_added_at_the_end() {
        let raw = appended(to_raw(&doc! { "a": 1 }), doc! { "b": { "c": 2 } });
        assert_eq!(Document::try_from(raw).unwrap(), doc! { "a": 1, "b": { "c": 2 } });
    }
}
