//! Commands that another node has to run, because what they go on with is in its memory: a cursor, or a view
//! of a moment.
//!
//! Drivers that know what they are connected to come back to the node that has it. Where something between
//! them and the nodes decides otherwise, the node that is asked passes the command on through the store and
//! hands back the answer ([`mayfly_engine::Errand`]). The number of a cursor, and the time of a view, say
//! whose it is.
//!
//! ```text
//!   number of a cursor   node:16  random:47          time of a view   …  node:16
//! ```
//!
//! A batch that was made and did not come back is lost, as one is whose connection breaks: the client is told
//! that there is no such cursor, and then there is none, so that nobody goes on behind the gap.
//!
//! Holds: the other node decides as if the client had come to it: by who the client is, what they may do, and
//! their session. A command is passed on once, and a step of a transaction never.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use bson::{Document, RawBsonRef, RawDocument, RawDocumentBuf, Timestamp as ClusterStamp, rawdoc};
use mayfly_engine::{Answer, Engine, Errand};

use crate::{
    call::Call,
    cluster_time,
    connection::Connection,
    failure::{Failure, Result},
    service::{Mongo, to_raw},
    users::StoredUser,
    wire::{Request, check_document},
};

/// How long a cursor is waited for on behalf of another node. Its client may have left, which is not known
/// here; one that has not comes again.
pub const AWAIT_MAX: Duration = Duration::from_secs(5);

/// The bits of a cursor's number below its node's.
const CURSOR_BITS: u32 = 47;

/// A number for a cursor: random, and that of its node where there may be several.
pub fn cursor_id(engine: &Engine) -> i64 {
    let [.., a, b, c, d, e, f, g, h] = engine.ids().unique();
    let random = i64::from_be_bytes([a, b, c, d, e, f, g, h]) & i64::MAX;
    match i64::from(engine.node_number()) {
        0 => random,
        node => node << CURSOR_BITS | random & ((1 << CURSOR_BITS) - 1),
    }
}

/// The other node that a cursor is on, if it is on one.
pub fn node_of_cursor(call: &Call<'_>, id: i64) -> Option<u16> {
    let own = call.mongo.engine.node_number();
    let node = u16::try_from(id >> CURSOR_BITS).ok()?;
    (own != 0 && node != 0 && node != own).then_some(node)
}

/// The next batch of a cursor that another node has. `None` if it has none, or is gone.
pub async fn next_batch(
    call: &Call<'_>,
    node: u16,
    collection: &str,
    id: i64,
) -> Result<Option<RawDocumentBuf>> {
    match pass_on(call, node, call.body()).await? {
        Answer::Given(reply) => told(call, &reply).map(Some),
        Answer::Withdrawn => Ok(None),
        Answer::Lost => {
            // If the node is still there, the cursor has gone on. Nobody is to find it behind what was lost.
            let kill = rawdoc! { "killCursors": collection, "cursors": [id] };
            call.mongo.engine.tell(node, errand(call, &kill).as_bytes()).await?;
            Ok(None)
        }
    }
}

/// Which of these cursors of another node it has closed.
pub async fn close(call: &Call<'_>, node: u16, collection: &str, ids: &[i64]) -> Result<Vec<i64>> {
    let ids: bson::RawArrayBuf = ids.iter().copied().map(bson::RawBson::Int64).collect();
    let kill = rawdoc! { "killCursors": collection, "cursors": ids };
    let Answer::Given(reply) = pass_on(call, node, &kill).await? else { return Ok(Vec::new()) };
    let reply = told(call, &reply)?;
    let Ok(killed) = reply.get_array("cursorsKilled") else { return Ok(Vec::new()) };
    Ok(killed.into_iter().flatten().filter_map(RawBsonRef::as_i64).collect())
}

/// What another node answers to a read of a moment that it may have kept. `None` if it has not.
pub async fn read_of(call: &Call<'_>, time: ClusterStamp) -> Result<Option<RawDocumentBuf>> {
    let (own, node) = (call.mongo.engine.node_number(), cluster_time::node_of(time));
    if own == 0 || node == 0 || node == own {
        return Ok(None);
    }
    match pass_on(call, node, call.body()).await? {
        Answer::Given(reply) => told(call, &reply).map(Some),
        Answer::Withdrawn | Answer::Lost => Ok(None),
    }
}

async fn pass_on(call: &Call<'_>, node: u16, command: &RawDocument) -> Result<Answer> {
    if call.connection.is_errand || call.in_transaction() {
        return Ok(Answer::Withdrawn);
    }
    Ok(call.mongo.engine.ask(node, errand(call, command).as_bytes()).await?)
}

/// A command with all that the other node has to know of who sent it.
fn errand(call: &Call<'_>, command: &RawDocument) -> RawDocumentBuf {
    let mut errand = rawdoc! { "database": call.db.as_str(), "command": command.to_owned() };
    if call.asks_who() {
        let who = call.connection.who();
        let users = who.users.iter().map(|user| {
            let mut stored = user.to_document();
            stored.insert("roles", user.roles_document());
            to_raw(&stored)
        });
        errand.append(bson::raw::cstr!("users"), users.collect::<bson::RawArrayBuf>());
    }
    errand
}

/// The answer of another node, after whose time this one's is from now on.
fn told(call: &Call<'_>, bytes: &[u8]) -> Result<RawDocumentBuf> {
    let answer = RawDocument::from_bytes(bytes)?;
    call.mongo.engine.observe_moment(cluster_time::moment(answer.get_timestamp("time")?));
    Ok(answer.get_document("reply")?.to_owned())
}

impl Mongo {
    /// Waits until other nodes ask something of this one, and takes it.
    pub async fn errands(&self) -> mayfly_engine::Result<Vec<Errand>> {
        self.engine.errands(|| self.cursors.count() > 0 || !self.snapshots.is_empty()).await
    }

    /// Runs what another node asks for, and answers it.
    pub async fn run_errand(&self, errand: &Errand) -> mayfly_engine::Result<()> {
        let work = async {
            let reply = match parse(&errand.bytes) {
                Ok((connection, request)) => self.run(&Arc::new(connection), &Arc::new(request)).await,
                Err(failure) => Err(failure),
            };
            let reply = reply.unwrap_or_else(|failure| to_raw(&failure.to_reply()));
            let time = self.cluster_time.last(self.engine.clock().now());
            rawdoc! { "time": time, "reply": reply }.into_bytes()
        };
        self.engine.answer_errand(errand, work).await
    }
}

/// The command of an errand, as if it had come by the wire, and who sent it.
fn parse(bytes: &[u8]) -> Result<(Connection, Request)> {
    let errand = RawDocument::from_bytes(bytes)?;
    let body = errand.get_document("command")?.to_owned();
    check_document(&body).map_err(|message| Failure::new(22, message))?;
    let nowhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let mut connection = Connection::new(nowhere, nowhere);
    connection.is_errand = true;
    if let Some(RawBsonRef::Array(users)) = errand.get("users")? {
        connection.is_held_to_users = true;
        for user in users {
            let RawBsonRef::Document(user) = user? else { continue };
            connection.let_in(StoredUser(Document::try_from(user)?).user());
        }
    }
    Ok((connection, Request::without_wire(errand.get_str("database")?, body)))
}
