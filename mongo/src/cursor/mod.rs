//! Open cursors: answers that clients fetch in batches.
//!
//! A cursor is a source of documents, pulled as the client asks. It belongs to a namespace, to who opened it
//! and, where the client has one, to a session and a transaction; its number is random, so that nobody meets
//! another's by chance.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use bson::{DateTime, Document, RawArrayBuf, RawDocumentBuf, doc, rawdoc};
use mayfly_engine::Timestamp;
use parking_lot::Mutex;

use crate::{
    call::Call,
    connection::Who,
    errands,
    failure::{Failure, Result},
    origin::{Judge, Origin},
    pipeline::Row,
    service::{Mongo, appended},
};

/// The most bytes of documents in one batch.
pub const BATCH_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Documents in a first batch whose size nobody named.
pub const FIRST_BATCH: usize = 101;

/// Cursors that nobody used for this long are closed.
const IDLE_SECONDS: u64 = 600;

/// Cursors open at a time.
const CURSORS_MAX: usize = 10_000;

/// What a source has next.
pub enum Pulled {
    /// A document.
    Document(RawDocumentBuf),
    /// Nothing now, perhaps later: the source waits for things to happen.
    Nothing,
    /// Nothing any more.
    End,
}

/// A future of a source.
pub type Pull<'a> = std::pin::Pin<Box<dyn Future<Output = Result<Pulled>> + Send + 'a>>;

/// Where a cursor's documents come from.
pub trait Source: Send {
    /// The next document.
    fn pull<'a>(&'a mut self, mongo: &'a Mongo, now: Timestamp) -> Pull<'a>;

    /// Whether a batch without documents is no end.
    fn waits(&self) -> bool {
        false
    }

    /// Whether a request for more waits until there is something.
    fn is_waited_for(&self) -> bool {
        self.waits()
    }

    /// Whether it goes on when its collection is gone: it tells that.
    fn outlives_collection(&self) -> bool {
        false
    }

    /// Whether it knows that nothing comes any more, without looking.
    fn is_done(&self) -> bool {
        false
    }

    /// Whether the document that was pulled last is still to be shown, at a later time.
    fn shows_last(&mut self, _: &Mongo, _: Timestamp) -> bool {
        true
    }

    /// Further fields of the cursor in an answer, such as a resume token.
    fn fields(&self) -> Document {
        Document::new()
    }
}

/// Documents that are there already.
pub struct Ready(pub VecDeque<RawDocumentBuf>);

impl Source for Ready {
    fn is_done(&self) -> bool {
        self.0.is_empty()
    }

    fn pull<'a>(&'a mut self, _: &'a Mongo, _: Timestamp) -> Pull<'a> {
        Box::pin(async move { Ok(self.0.pop_front().map_or(Pulled::End, Pulled::Document)) })
    }
}

/// Results that are there already, and leave with the documents they stand for.
pub struct Kept {
    rows: VecDeque<Row>,
    judge: Judge,
    /// What the one given last was made of.
    last: Option<Arc<Origin>>,
}

impl Kept {
    /// A source of these, which were read at a time.
    pub fn new(rows: VecDeque<Row>, read: Timestamp) -> Self {
        Self { rows, judge: Judge::since(read), last: None }
    }
}

impl Source for Kept {
    fn pull<'a>(&'a mut self, mongo: &'a Mongo, now: Timestamp) -> Pull<'a> {
        Box::pin(async move {
            while let Some(row) = self.rows.pop_front() {
                if row.origin.as_ref().is_none_or(|origin| self.judge.shows(origin, mongo, now)) {
                    self.last = row.origin;
                    return Ok(Pulled::Document(row.document));
                }
            }
            Ok(Pulled::End)
        })
    }

    fn is_done(&self) -> bool {
        self.rows.is_empty()
    }

    fn shows_last(&mut self, mongo: &Mongo, now: Timestamp) -> bool {
        self.last.as_ref().is_none_or(|origin| self.judge.shows(origin, mongo, now))
    }
}

/// An open cursor.
pub struct Cursor {
    /// The namespace in answers.
    pub namespace: String,
    owner: Owner,
    /// Whether it is left open however long nobody uses it.
    pub keeps_open: bool,
    /// The moment it reads, if it was asked for one.
    pub at: Option<bson::Timestamp>,
    /// Whether all of it together may only take so long.
    pub is_limited: bool,
    source: Box<dyn Source>,
    /// Pulled, but without room in the last batch.
    next: Option<RawDocumentBuf>,
    created: Timestamp,
    used: Timestamp,
    /// Documents and batches that were handed out.
    returned: usize,
    batches: usize,
}

impl Cursor {
    /// A cursor over a source, for whoever sent a command.
    pub fn new(call: &Call<'_>, namespace: String, source: impl Source + 'static) -> Self {
        Self {
            namespace,
            owner: Owner::of(call),
            keeps_open: false,
            at: call.snapshot.as_ref().map(|(time, _)| *time),
            is_limited: false,
            source: Box::new(source),
            next: None,
            created: call.now,
            used: call.now,
            returned: 0,
            batches: 0,
        }
    }

    /// Whether a request for more waits until there is something.
    pub fn is_waited_for(&self) -> bool {
        self.source.is_waited_for()
    }

    /// What is known of it.
    fn shown(&self, id: i64) -> Document {
        let mut shown = doc! {
            "cursorId": id,
            "createdDate": DateTime::from_millis(self.created.0 as i64),
            "lastAccessDate": DateTime::from_millis(self.used.0 as i64),
            "nDocsReturned": self.returned as i64,
            "nBatchesReturned": self.batches as i64,
            "noCursorTimeout": self.keeps_open,
            "tailable": self.source.waits(),
            "awaitData": self.source.is_waited_for(),
        };
        if let Some(number) = self.owner.transaction {
            shown.insert("txnNumber", number);
        }
        shown
    }

    /// The next batch, how many documents it has, and whether that was all.
    async fn batch(
        &mut self,
        mongo: &Mongo,
        size: usize,
        now: Timestamp,
    ) -> Result<(RawArrayBuf, usize, bool)> {
        let batch = self.gather(mongo, size, now).await?;
        self.batches += 1;
        self.returned += batch.1;
        mongo.counters.returned.fetch_add(batch.1 as u64, std::sync::atomic::Ordering::Relaxed);
        Ok(batch)
    }

    async fn gather(
        &mut self,
        mongo: &Mongo,
        size: usize,
        now: Timestamp,
    ) -> Result<(RawArrayBuf, usize, bool)> {
        self.used = now;
        let mut batch = RawArrayBuf::new();
        let (mut bytes, mut count) = (0, 0);
        while count < size {
            let left = self.next.take().filter(|_| self.source.shows_last(mongo, now));
            let document = match left {
                Some(document) => document,
                None => match self.source.pull(mongo, now).await? {
                    Pulled::Document(document) => document,
                    Pulled::Nothing => return Ok((batch, count, false)),
                    Pulled::End => return Ok((batch, count, true)),
                },
            };
            let length = document.as_bytes().len();
            if count > 0 && bytes + length > BATCH_BYTES_MAX {
                self.next = Some(document);
                return Ok((batch, count, false));
            }
            bytes += length;
            count += 1;
            batch.push(document);
        }
        Ok((batch, count, false))
    }

    /// Whether there is nothing more, as far as the source knows without looking. As with MongoDB, a client
    /// whose batch was filled comes again to learn that that was all.
    fn is_at_end(&self) -> bool {
        self.next.is_none() && self.source.is_done()
    }
}

/// Whose a cursor is, or who asks for one.
#[derive(Clone, Default)]
pub struct Owner {
    session: Option<Vec<u8>>,
    /// The number of the transaction.
    transaction: Option<i64>,
    /// Databases and names of users; none if nobody has to say who they are.
    users: Option<Vec<(String, String)>>,
    /// Whether it may close anybody's.
    is_admin: bool,
}

impl Owner {
    /// Who sent a command.
    pub fn of(call: &Call<'_>) -> Self {
        let session = call.session.as_ref();
        let users = call.asks_who().then(|| call.connection.who());
        let named =
            |who: Arc<Who>| who.users.iter().map(|user| (user.database.clone(), user.name.clone())).collect();
        Self {
            session: session.map(|session| session.id.clone()),
            transaction: session.filter(|session| session.in_transaction).and_then(|s| s.txn_number),
            users: users.map(named),
            is_admin: call.may_manage_users(),
        }
    }

    fn is_user_of(&self, asks: &Self) -> bool {
        match (&self.users, &asks.users) {
            (Some(own), Some(asks)) => asks.iter().any(|user| own.contains(user)),
            _ => true,
        }
    }

    fn may_be_closed_by(&self, asks: &Self) -> bool {
        asks.is_admin || self.is_user_of(asks)
    }

    /// Refuses who may not go on with a cursor of this owner.
    fn check(&self, id: i64, asks: &Self) -> Result<()> {
        if !self.is_user_of(asks) {
            return Err(Failure::new(
                13,
                format!("cursor id {id} was not created by the authenticated user"),
            ));
        }
        let refused = |code, why: String| {
            Err(Failure::new(code, format!("Cannot run getMore on cursor {id}, which was {why}")))
        };
        match (&self.session, &asks.session) {
            (Some(own), Some(other)) if own != other => {
                refused(50738, "created in another session".to_owned())
            }
            (Some(_), None) => refused(50737, "created in a session, without an lsid".to_owned()),
            (None, Some(_)) => refused(50738, "not created in a session, in a session".to_owned()),
            _ => match (self.transaction, asks.transaction) {
                (None, Some(other)) => {
                    refused(50739, format!("not created in a transaction, in transaction {other}"))
                }
                (Some(own), None) => {
                    refused(50740, format!("created in transaction {own}, without a txnNumber"))
                }
                (Some(own), Some(other)) if own != other => {
                    refused(50741, format!("created in transaction {own}, in transaction {other}"))
                }
                _ => Ok(()),
            },
        }
    }
}

enum Place {
    Here(Box<Cursor>),
    /// A request is using it.
    Out,
    /// It is in use and shall not come back.
    Killed,
}

/// All open cursors.
#[derive(Default)]
pub struct Cursors {
    open: Mutex<HashMap<i64, (Place, Info)>>,
}

#[derive(Clone)]
struct Info {
    namespace: String,
    owner: Owner,
    /// Whether it has to tell that its collection is gone.
    outlives: bool,
}

impl Cursors {
    /// How many are open.
    pub fn count(&self) -> usize {
        self.open.lock().len()
    }

    /// The first answer of a cursor. `size` is how many documents it may have; `single` that there is no
    /// second.
    pub async fn first(
        &self,
        mongo: &Mongo,
        mut cursor: Cursor,
        size: Option<usize>,
        single: bool,
        now: Timestamp,
    ) -> Result<RawDocumentBuf> {
        let wanted = size.unwrap_or(FIRST_BATCH);
        let (batch, _, mut ended) = cursor.batch(mongo, wanted, now).await?;
        ended |= wanted > 0 && cursor.is_at_end();
        let mut fields = cursor.source.fields();
        if let Some(time) = cursor.at {
            fields.insert("atClusterTime", time);
        }
        let namespace = cursor.namespace.clone();
        let id = if ended || single { 0 } else { self.open(mongo, cursor)? };
        Ok(answer("firstBatch", batch, id, &namespace, fields))
    }

    fn open(&self, mongo: &Mongo, cursor: Cursor) -> Result<i64> {
        let mut open = self.open.lock();
        if open.len() >= CURSORS_MAX {
            return Err(Failure::new(146, "too many cursors are open"));
        }
        let info = Info {
            namespace: cursor.namespace.clone(),
            owner: cursor.owner.clone(),
            outlives: cursor.source.outlives_collection(),
        };
        loop {
            let id = errands::cursor_id(&mongo.engine);
            if id != 0 && !open.contains_key(&id) {
                open.insert(id, (Place::Here(Box::new(cursor)), info));
                return Ok(id);
            }
        }
    }

    /// Takes a cursor to use it.
    pub fn take(&self, id: i64, namespace: &str, asks: &Owner) -> Result<Taken<'_>> {
        let mut open = self.open.lock();
        let missing = || Failure::new(43, format!("cursor id {id} not found"));
        let (place, info) = open.get_mut(&id).ok_or_else(missing)?;
        if info.namespace != namespace {
            let message = format!(
                "Requested getMore on namespace '{namespace}', but cursor belongs to a different namespace {}",
                info.namespace
            );
            return Err(Failure::new(13, message));
        }
        info.owner.check(id, asks)?;
        match std::mem::replace(place, Place::Out) {
            Place::Here(cursor) => Ok(Taken { cursors: self, id, cursor: Some(*cursor), is_pulled: false }),
            Place::Out => Err(Failure::new(143, format!("cursor id {id} is already in use"))),
            Place::Killed => {
                *place = Place::Killed;
                Err(missing())
            }
        }
    }

    /// Closes a cursor of somebody's; false if there is none.
    pub fn kill(&self, id: i64, namespace: &str, asks: &Owner) -> bool {
        let mut open = self.open.lock();
        match open.get_mut(&id) {
            Some((_, info)) if info.namespace != namespace || !info.owner.may_be_closed_by(asks) => false,
            Some((Place::Killed, _)) => false,
            Some((place @ Place::Out, _)) => {
                *place = Place::Killed;
                true
            }
            Some(_) => open.remove(&id).is_some(),
            None => false,
        }
    }

    /// Those that nobody uses now: namespace, session, and what is known of each.
    pub fn idle(&self, own: Option<&Owner>) -> Vec<(String, Option<Vec<u8>>, Document)> {
        let open = self.open.lock();
        let idle = open.iter().filter_map(|(id, (place, info))| {
            let Place::Here(cursor) = place else { return None };
            let is_shown = own.is_none_or(|own| info.owner.is_user_of(own));
            is_shown.then(|| (info.namespace.clone(), info.owner.session.clone(), cursor.shown(*id)))
        });
        idle.collect()
    }

    /// Closes the cursors of a session.
    pub fn kill_of_session(&self, session: &[u8]) {
        self.open.lock().retain(|_, (_, info)| info.owner.session.as_deref() != Some(session));
    }

    /// Closes the cursors of a collection, or of a whole database if the name ends with a dot.
    pub fn kill_of(&self, namespace: &str) {
        self.open.lock().retain(|_, (_, info)| {
            let is_of = match namespace.ends_with('.') {
                true => info.namespace.starts_with(namespace),
                false => info.namespace == namespace,
            };
            info.outlives || !is_of
        });
    }

    /// Closes cursors that nobody used for long.
    pub fn sweep(&self, now: Timestamp) {
        self.open.lock().retain(|_, (place, _)| match place {
            Place::Here(cursor) => {
                cursor.keeps_open || now.seconds().saturating_sub(cursor.used.seconds()) < IDLE_SECONDS
            }
            Place::Out | Place::Killed => true,
        });
    }
}

/// A cursor in use; goes back to its place when it is let go, unless a batch was being pulled from it: part
/// of that is lost then, and nobody goes on behind the gap.
pub struct Taken<'a> {
    cursors: &'a Cursors,
    id: i64,
    cursor: Option<Cursor>,
    is_pulled: bool,
}

impl Taken<'_> {
    /// The cursor.
    pub fn cursor(&self) -> Option<&Cursor> {
        self.cursor.as_ref()
    }

    /// Closes it.
    pub fn close(&mut self) {
        self.cursor = None;
    }

    /// Whether somebody has closed it meanwhile.
    pub fn is_killed(&self) -> bool {
        is_killed(&self.cursors.open.lock(), self.id)
    }

    /// A further answer: up to `size` documents; and how many there are.
    pub async fn more(
        &mut self,
        mongo: &Mongo,
        size: Option<usize>,
        now: Timestamp,
    ) -> Result<(RawDocumentBuf, usize)> {
        let Some(cursor) = self.cursor.as_mut() else { return Err(Failure::new(43, "cursor not found")) };
        self.is_pulled = true;
        let got = cursor.batch(mongo, size.unwrap_or(usize::MAX), now).await;
        self.is_pulled = false;
        let (batch, count, mut ended) = match got {
            Ok(got) => got,
            Err(failure) => {
                // A cursor that failed has no next batch.
                self.cursor = None;
                return Err(failure);
            }
        };
        ended |= count > 0 && cursor.is_at_end();
        let (namespace, fields) = (cursor.namespace.clone(), cursor.source.fields());
        if ended {
            self.cursor = None;
        }
        let id = if ended { 0 } else { self.id };
        Ok((answer("nextBatch", batch, id, &namespace, fields), count))
    }
}

/// Whether a cursor in use has been closed.
fn is_killed(open: &HashMap<i64, (Place, Info)>, id: i64) -> bool {
    matches!(open.get(&id), Some((Place::Killed, _)) | None)
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let mut open = self.cursors.open.lock();
        let killed = is_killed(&open, self.id);
        match self.cursor.take() {
            Some(cursor) if !killed && !self.is_pulled => {
                if let Some((place, _)) = open.get_mut(&self.id) {
                    *place = Place::Here(Box::new(cursor));
                }
            }
            _ => {
                open.remove(&self.id);
            }
        }
    }
}

/// A cursor in an answer.
pub fn answer(name: &str, batch: RawArrayBuf, id: i64, namespace: &str, fields: Document) -> RawDocumentBuf {
    let mut cursor = RawDocumentBuf::new();
    if let Ok(name) = bson::raw::CString::try_from(name) {
        cursor.append(name, batch);
    }
    cursor = appended(cursor, fields);
    cursor.append(bson::raw::cstr!("id"), id);
    cursor.append(bson::raw::cstr!("ns"), namespace);
    rawdoc! { "cursor": cursor }
}
