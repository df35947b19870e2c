//! One connection: messages in, messages out, until somebody leaves.
//!
//! One request at a time, answered in order. A request that takes a stream of answers (`hello` of a monitor,
//! `getMore`) is run again and again until it has no more to say or the client is gone.
//!
//! Holds: a connection keeps no memory of the messages it has seen; an idle one costs its buffer's first
//! bytes.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicI32, Ordering},
    },
};

use bson::{Document, RawDocumentBuf};
use bytes::{Buf, BytesMut};
use mayfly_engine::{Elsewhere, clock::Stopwatch};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::{
    auth::{ScramServer, User},
    commands::EXHAUSTIBLE,
    failure::Failure,
    service::{Mongo, to_raw},
    wire::{Form, HEADER_LEN, Header, Request, WireError, encode_reply, parse},
};

/// More than this is not kept between two messages.
const BUFFER_KEPT_MAX: usize = 16 * 1024;

/// What commands know and change about the connection they came on.
pub struct Connection {
    /// Its number.
    pub id: i32,
    /// The client's address.
    pub peer: SocketAddr,
    /// The address the client came to.
    pub local: SocketAddr,
    /// Whether its users count although the server asks nobody who they are.
    pub is_held_to_users: bool,
    /// Whether another node passes on what came to it.
    pub is_errand: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    who: Arc<Who>,
    conversation: Option<Conversation>,
}

/// Who is at the other end.
#[derive(Clone, Debug, Default)]
pub struct Who {
    /// Who is authenticated.
    pub users: Vec<User>,
    /// What the client said about itself.
    pub client: Option<Document>,
}

impl Who {
    /// Whether one of these users is one of the others.
    pub fn is_one_of(&self, others: &Self) -> bool {
        others.users.iter().any(|other| self.has(&other.database, &other.name))
    }

    /// Whether the user of a database is there.
    pub fn has(&self, database: &str, name: &str) -> bool {
        self.users.iter().any(|user| (&*user.database, &*user.name) == (database, name))
    }
}

/// An authentication that has begun.
#[derive(Clone)]
pub struct Conversation {
    /// Its number.
    pub id: i32,
    /// The database of the user.
    pub database: String,
    /// Whether the client wants the empty last exchange left out.
    pub skip_empty: bool,
    /// Where it stands.
    pub stage: Stage,
}

/// Where an authentication stands.
#[derive(Clone)]
pub enum Stage {
    /// The client's proof is awaited; `None` if there is no such user, which it learns only after its proof.
    Proof(Option<ScramServer<User>>),
    /// The proof was good; the client says one empty thing more.
    Empty,
}

static NEXT_ID: AtomicI32 = AtomicI32::new(1);

impl Connection {
    pub(crate) fn new(peer: SocketAddr, local: SocketAddr) -> Self {
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        Self { id, peer, local, is_held_to_users: false, is_errand: false, state: Mutex::default() }
    }

    /// The same for one user, who is known and gets no further than their roles.
    pub(crate) fn held_to(mut self, user: User) -> Self {
        self.is_held_to_users = true;
        self.let_in(user);
        self
    }

    /// Who is at the other end, as far as is known now.
    pub fn who(&self) -> Arc<Who> {
        self.state.lock().who.clone()
    }

    /// Lets a user in.
    pub fn let_in(&self, user: User) {
        let mut state = self.state.lock();
        let users = &mut Arc::make_mut(&mut state.who).users;
        users.retain(|other| other.database != user.database);
        users.push(user);
    }

    /// Forgets the user of a database.
    pub fn log_out(&self, database: &str) {
        let mut state = self.state.lock();
        Arc::make_mut(&mut state.who).users.retain(|user| user.database != database);
    }

    /// The authentication that is going on.
    pub fn conversation(&self) -> Option<Conversation> {
        self.state.lock().conversation.clone()
    }

    /// Goes on with an authentication, or ends it.
    pub fn set_conversation(&self, conversation: Option<Conversation>) {
        self.state.lock().conversation = conversation;
    }

    /// Keeps what the client says about itself.
    pub fn set_client(&self, client: Document) {
        Arc::make_mut(&mut self.state.lock().who).client = Some(client);
    }

    /// The name of the application, if the client told it.
    pub fn application(&self) -> Option<String> {
        let who = self.who();
        let application = who.client.as_ref()?.get_document("application").ok()?;
        Some(application.get_str("name").ok()?.to_owned())
    }
}

impl Mongo {
    /// Serves a connection until its end. Commands that take long go on elsewhere.
    pub async fn serve<I>(self: Arc<Self>, io: I, peer: SocketAddr, local: SocketAddr, elsewhere: Elsewhere)
    where
        I: AsyncRead + AsyncWrite + Unpin + Send,
    {
        let _open = self.counters.connect();
        self.counters.connections_total.fetch_add(1, Ordering::Relaxed);
        let connection = Arc::new(Connection::new(peer, local));
        let mut wire = Wire { io, buffer: BytesMut::new(), next_id: 1 };
        if let Err(reason) = self.exchange(&connection, &mut wire, &elsewhere).await {
            tracing::debug!(%peer, reason, "a connection was closed");
        }
    }

    async fn exchange<I>(
        self: &Arc<Self>,
        connection: &Arc<Connection>,
        wire: &mut Wire<I>,
        elsewhere: &Elsewhere,
    ) -> Result<(), &'static str>
    where
        I: AsyncRead + AsyncWrite + Unpin + Send,
    {
        while let Some((header, payload)) = wire.receive().await? {
            self.counters.bytes_in.fetch_add(header.length as u64, Ordering::Relaxed);
            self.counters.requests.fetch_add(1, Ordering::Relaxed);
            match parse(&header, &payload) {
                Ok(request) => {
                    drop(payload);
                    self.respond(connection, wire, Arc::new(request), elsewhere).await?;
                    // A client that is quick has its next request here already, and so on: without this, one
                    // connection is served many times over while the others of the same thread wait.
                    tokio::task::yield_now().await;
                }
                Err(WireError::Close(reason)) => return Err(reason),
                Err(WireError::Refuse { form, code, message }) => {
                    let reply = to_raw(&Failure::new(code, message).to_reply());
                    wire.send(self, form, None, header.request_id, &reply, false).await?;
                }
            }
        }
        Ok(())
    }

    async fn respond<I>(
        self: &Arc<Self>,
        connection: &Arc<Connection>,
        wire: &mut Wire<I>,
        request: Arc<Request>,
        elsewhere: &Elsewhere,
    ) -> Result<(), &'static str>
    where
        I: AsyncRead + AsyncWrite + Unpin + Send,
    {
        // Only these wait for something that may never come; others are carried out though the client has
        // left.
        let may_wait = EXHAUSTIBLE.contains(&request.name());
        let mut response_to = request.id;
        loop {
            let (mongo, connection, asked) = (self.clone(), connection.clone(), request.clone());
            let answer =
                elsewhere.if_long(Stopwatch::start(), async move { mongo.answer(&connection, &asked).await });
            let reply = if may_wait {
                tokio::select! {
                    reply = answer => reply,
                    () = wire.hung_up() => return Ok(()),
                }
            } else {
                answer.await
            };
            let reply = reply.ok_or("the server stops")?;
            if self.fail_points.closes(&reply) {
                return Err("a fail point");
            }
            if request.is_silent() {
                return Ok(());
            }
            let more = request.is_exhaust() && may_wait && has_more(&reply, &request);
            let compressor = request.compressor.filter(|_| !NEVER_COMPRESSED.contains(&request.name()));
            response_to = wire.send(self, request.form, compressor, response_to, &reply, more).await?;
            if !more {
                return Ok(());
            }
        }
    }
}

/// Answers that hold secrets, or come before anything was agreed on.
const NEVER_COMPRESSED: &[&str] = &[
    "hello",
    "isMaster",
    "ismaster",
    "saslStart",
    "saslContinue",
    "authenticate",
    "createUser",
    "updateUser",
];

/// Whether a stream of answers goes on after this one.
fn has_more(reply: &RawDocumentBuf, request: &Request) -> bool {
    let ok = matches!(reply.get_f64("ok"), Ok(ok) if ok == 1.0);
    match request.name() {
        "getMore" => ok && matches!(reply.get_document("cursor").map(|c| c.get_i64("id")), Ok(Ok(1..))),
        _ => ok && matches!(request.body.get("topologyVersion"), Ok(Some(_))),
    }
}

/// The bytes of a connection.
struct Wire<I> {
    io: I,
    buffer: BytesMut,
    next_id: i32,
}

impl<I: AsyncRead + AsyncWrite + Unpin> Wire<I> {
    /// The next message; nothing if the client has left between two of them.
    async fn receive(&mut self) -> Result<Option<(Header, BytesMut)>, &'static str> {
        if !self.fill(HEADER_LEN).await? {
            return if self.buffer.is_empty() { Ok(None) } else { Err("the client left inside a header") };
        }
        let mut start = [0; HEADER_LEN];
        self.buffer.copy_to_slice(&mut start);
        let header = Header::parse(&start).ok_or("a message whose length cannot be right")?;
        let length = header.length - HEADER_LEN;
        if !self.fill(length).await? {
            return Err("the client left inside a message");
        }
        let payload = self.buffer.split_to(length);
        if self.buffer.is_empty() {
            self.buffer = BytesMut::new();
        }
        Ok(Some((header, payload)))
    }

    /// Reads until there are `length` bytes; false if there will not be so many. Loses nothing when dropped.
    async fn fill(&mut self, length: usize) -> Result<bool, &'static str> {
        while self.buffer.len() < length {
            // Memory follows the bytes that really came, not the length that was announced.
            self.buffer.reserve((length - self.buffer.len()).min(BUFFER_KEPT_MAX * 4));
            match self.io.read_buf(&mut self.buffer).await {
                Ok(0) => return Ok(false),
                Ok(_) => {}
                Err(_) => return Err("the connection broke"),
            }
        }
        Ok(true)
    }

    /// Ends when the client has left, and never otherwise. What it sends meanwhile is kept.
    async fn hung_up(&mut self) {
        loop {
            self.buffer.reserve(HEADER_LEN);
            match self.io.read_buf(&mut self.buffer).await {
                Ok(0) | Err(_) => return,
                Ok(_) if self.buffer.len() < BUFFER_KEPT_MAX => {}
                // It does not leave; it has a lot to say. That can wait.
                Ok(_) => std::future::pending().await,
            }
        }
    }

    /// Sends an answer and returns its number.
    async fn send(
        &mut self,
        mongo: &Mongo,
        form: Form,
        compressor: Option<crate::wire::Compressor>,
        response_to: i32,
        reply: &RawDocumentBuf,
        more: bool,
    ) -> Result<i32, &'static str> {
        let id = self.next_id;
        self.next_id = self.next_id.wrapping_add(1);
        let bytes = encode_reply(form, compressor, id, response_to, reply, more);
        mongo.counters.bytes_out.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        self.io.write_all(&bytes).await.map_err(|_| "the connection broke")?;
        self.io.flush().await.map_err(|_| "the connection broke")?;
        Ok(id)
    }
}
