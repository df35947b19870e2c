//! The sessions that clients have open, and the transactions in them.
//!
//! A transaction reads a view of the moment it began and keeps its writes to itself until it commits. While
//! it is open, the documents it wrote are its own, and so are the unique values it gave them: another
//! transaction that wants one is refused at once. A write outside of transactions waits for a document, and
//! not for a unique value: if it takes one, the transaction is refused when it commits.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use bson::{Document, RawDocument, RawDocumentBuf};
use mayfly_engine::{
    Container, Decision, DocumentId, Error as EngineError, InvalidTtl, Operation, Part, Record, Timestamp,
    UniqueRow, View, clock::pause, collection::whole,
};
use parking_lot::Mutex;

use super::{Answers, Drafts, SessionUse};
use crate::{
    call::Call,
    connection::{Connection, Who},
    failure::{Failure, Result},
    service::Mongo,
};

/// A session that nobody used for this long is forgotten.
pub const SESSION_MINUTES: u64 = 30;

/// The longest a transaction may be open.
const TRANSACTION_SECONDS: u64 = 60;

/// How long a write outside of transactions waits for one.
const WAIT_MS_MAX: u64 = 20_000;

/// Sessions remembered at most; the least recently used go first. Their receipts are in the store.
const SESSIONS_MAX: usize = 50_000;

/// All sessions.
#[derive(Default)]
pub struct Sessions {
    open: Mutex<HashMap<Vec<u8>, Session>>,
    /// Which transaction has written a document.
    owners: Mutex<HashMap<Place, Vec<u8>>>,
    /// Which transaction has given a unique value to which of its documents.
    claims: Mutex<HashMap<UniqueRow, Claim>>,
    /// Collections that transactions are making.
    pub drafts: Drafts,
}

/// A document of a collection.
type Place = (u32, DocumentId);

/// A unique value in an open transaction.
struct Claim {
    session: Vec<u8>,
    document: DocumentId,
}

/// What a transaction wants to do to a document.
#[derive(Clone)]
struct Pending {
    container: Arc<Container>,
    /// What the transaction saw; `None` if there was none.
    before: Option<Record>,
    /// What it shall be; `None` is gone.
    after: Option<RawDocumentBuf>,
    /// Whether parts of it were changed, and not the whole replaced.
    partial: bool,
    /// The unique values that it claims.
    rows: Vec<UniqueRow>,
}

impl Pending {
    /// As the engine carries it out: refused if the document is not what the transaction saw.
    fn operation(&self, id: &DocumentId) -> Operation {
        let version = self.before.as_ref().map(|record| record.lsn);
        let decision = match &self.after {
            Some(body) if self.partial => Decision::Update(body.clone()),
            Some(body) => Decision::Put(body.clone()),
            None => Decision::Remove,
        };
        let decide = move |current: Option<&Record>| match current.map(|record| record.lsn) == version {
            true => Ok(decision.clone()),
            false => Err(EngineError::Contention),
        };
        Operation::Decide { id: id.clone(), decide: Arc::new(decide) }
    }
}

struct Session {
    used: Timestamp,
    /// Who began it.
    who: Arc<Who>,
    /// The highest number so far; −1 before the first.
    number: i64,
    /// What the write with that number answered, by statement; `None` if it was a transaction.
    statements: Option<Answers>,
    /// Whether a store may know more about the number than this table.
    fresh: bool,
    transaction: Option<Arc<Txn>>,
}

/// Where a transaction stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Open,
    Committed,
    Aborted,
}

/// A transaction.
pub struct Txn {
    began: Timestamp,
    stage: Mutex<Stage>,
    /// Held by whoever ends it at the client's wish: a commit that is sent again waits for the first and says
    /// the same.
    ending: tokio::sync::Mutex<()>,
    /// What everything was like when it began.
    pub view: View,
    /// What it has written so far.
    writes: Mutex<BTreeMap<Place, Pending>>,
}

impl Txn {
    /// A view that nobody has written to.
    pub fn reading(view: View, now: Timestamp) -> Self {
        Self {
            began: now,
            stage: Mutex::new(Stage::Open),
            ending: tokio::sync::Mutex::default(),
            view,
            writes: Mutex::default(),
        }
    }

    /// What the transaction has made of a document, if it has written it: the new version, or that it is
    /// gone.
    pub fn written(&self, container: u32, id: &DocumentId) -> Option<Option<RawDocumentBuf>> {
        let writes = self.writes.lock();
        writes.get(&(container, id.clone())).map(|pending| pending.after.clone())
    }

    /// What it does to each collection, in the order of their documents.
    fn parts(&self) -> Vec<Part> {
        let mut parts: Vec<Part> = Vec::new();
        for ((container, id), pending) in self.writes.lock().iter() {
            let operation = pending.operation(id);
            match parts.last_mut().filter(|part| part.container.id == *container) {
                Some(part) => part.operations.push(operation),
                None => {
                    let container = pending.container.clone();
                    parts.push(Part { container, key: whole(), operations: vec![operation] });
                }
            }
        }
        parts
    }

    /// All documents of a collection that it has written.
    pub fn writes_in(&self, container: u32) -> BTreeMap<DocumentId, Option<RawDocumentBuf>> {
        let writes = self.writes.lock();
        let of_container = writes.iter().filter(|((other, _), _)| *other == container);
        of_container.map(|((_, id), pending)| (id.clone(), pending.after.clone())).collect()
    }
}

impl Sessions {
    /// Notes that a session is in use.
    pub fn touch(&self, id: &[u8], connection: &Connection, now: Timestamp) {
        let mut open = self.open.lock();
        if let Some(session) = open.get_mut(id) {
            session.used = now;
            return;
        }
        if open.len() >= SESSIONS_MAX {
            let oldest = open.iter().filter(|(_, session)| session.transaction.is_none());
            if let Some(id) = oldest.min_by_key(|(_, session)| session.used).map(|(id, _)| id.clone()) {
                open.remove(&id);
            }
        }
        let who = connection.who();
        let session =
            Session { used: now, who, number: -1, statements: None, fresh: true, transaction: None };
        open.insert(id.to_vec(), session);
    }

    /// The open sessions of whom one is asked about, and when each was last used.
    pub fn list(&self, is_asked: impl Fn(&Who) -> bool) -> Vec<(Vec<u8>, Timestamp)> {
        let open = self.open.lock();
        let asked = open.iter().filter(|(_, session)| is_asked(&session.who));
        asked.map(|(id, session)| (id.clone(), session.used)).collect()
    }

    /// How many transactions are open.
    pub fn transactions(&self) -> usize {
        let open = self.open.lock();
        let transactions = open.values().filter_map(|session| session.transaction.as_ref());
        transactions.filter(|txn| *txn.stage.lock() == Stage::Open).count()
    }

    /// How many sessions are open.
    pub fn count(&self) -> usize {
        self.open.lock().len()
    }

    /// Begins, or goes on with, a numbered write.
    pub fn begin_write(&self, id: &[u8], number: i64) -> Result<()> {
        let mut open = self.open.lock();
        let Some(session) = open.get_mut(id) else { return Ok(()) };
        if number < session.number {
            return Err(too_old(number, session.number));
        }
        if number == session.number && session.statements.is_none() && session.transaction.is_some() {
            let message =
                format!("Given transaction number {number} does not match any in-progress transactions");
            return Err(Failure::new(251, message));
        }
        if number > session.number {
            session.number = number;
            session.statements = Some(Answers::default());
            session.transaction = None;
        }
        Ok(())
    }

    /// What a statement of the present numbered write answered, if it was carried out.
    pub fn answered(&self, session: &SessionUse, statement: i32) -> Option<Document> {
        let open = self.open.lock();
        open.get(&session.id)?.statements.as_ref()?.get(statement).cloned()
    }

    /// Whether this process has not yet seen a numbered write of the session.
    pub fn is_fresh(&self, id: &[u8]) -> bool {
        self.open.lock().get(id).is_some_and(|session| session.fresh)
    }

    /// Takes in what a store remembers of the session: its last number and what was answered.
    pub fn recall(&self, session: &SessionUse, remembered: Option<(i64, Answers)>) -> Result<()> {
        let mut open = self.open.lock();
        let Some(entry) = open.get_mut(&session.id) else { return Ok(()) };
        entry.fresh = false;
        let (Some((number, statements)), Some(asked)) = (remembered, session.txn_number) else {
            return Ok(());
        };
        if number > asked {
            return Err(too_old(asked, number));
        }
        if number == asked {
            entry.number = number;
            entry.statements.get_or_insert_default().extend(statements);
        }
        Ok(())
    }

    /// Remembers what statements answered.
    pub fn remember(&self, session: &SessionUse, answered: impl Iterator<Item = (i32, Document)>) {
        let mut open = self.open.lock();
        if let Some(entry) = open.get_mut(&session.id) {
            let statements = entry.statements.get_or_insert_default();
            answered.for_each(|(statement, answer)| statements.insert(statement, answer));
        }
    }

    /// What is remembered of the present numbered write.
    pub fn statements(&self, session: &SessionUse) -> Answers {
        let open = self.open.lock();
        open.get(&session.id).and_then(|entry| entry.statements.clone()).unwrap_or_default()
    }

    /// Goes one step on in a transaction, or begins it.
    pub(super) async fn step(&self, call: &Call<'_>, session: &SessionUse) -> Result<()> {
        let Some(number) = session.txn_number else { return Ok(()) };
        if session.starts {
            let view = call.mongo.engine.view(call.now).await?;
            let mut open = self.open.lock();
            let Some(entry) = open.get_mut(&session.id) else { return Ok(()) };
            if number < entry.number {
                return Err(too_old(number, entry.number));
            }
            if number == entry.number {
                let message = format!("transaction {number} is already in progress on this session");
                return Err(Failure::new(117, message));
            }
            let left = entry.transaction.take();
            entry.number = number;
            entry.statements = None;
            entry.transaction = Some(Arc::new(Txn::reading(view, call.now)));
            drop(open);
            if let Some(txn) = left {
                self.release(&session.id, &txn);
            }
            return Ok(());
        }
        let txn = self.find(session)?;
        if call.now.seconds().saturating_sub(txn.began.seconds()) > TRANSACTION_SECONDS {
            self.abort(session);
        }
        let stage = *txn.stage.lock();
        match stage {
            Stage::Open => Ok(()),
            Stage::Committed => Err(Failure::new(
                256,
                format!("Transaction with {{ txnNumber: {number} }} has been committed."),
            )),
            Stage::Aborted => Err(no_such(number)),
        }
    }

    fn find(&self, session: &SessionUse) -> Result<Arc<Txn>> {
        let number = session.txn_number.unwrap_or(-1);
        let open = self.open.lock();
        let entry = open.get(&session.id).ok_or_else(|| no_such(number))?;
        if number < entry.number {
            return Err(too_old(number, entry.number));
        }
        match &entry.transaction {
            Some(txn) if entry.number == number => Ok(txn.clone()),
            _ => Err(no_such(number)),
        }
    }

    /// The transaction that a command is part of.
    pub fn transaction(&self, call: &Call<'_>) -> Result<Option<Arc<Txn>>> {
        match &call.session {
            Some(session) if session.in_transaction => self.find(session).map(Some),
            _ => Ok(None),
        }
    }

    /// Writes a document in a transaction. Refused if anybody else has written it since it began.
    pub async fn write(
        &self,
        call: &Call<'_>,
        txn: &Txn,
        container: &Arc<Container>,
        id: &DocumentId,
        after: Option<RawDocumentBuf>,
        partial: bool,
    ) -> Result<()> {
        let Some(session) = &call.session else { return Ok(()) };
        let place = (container.id, id.clone());
        let _own = self.own(txn, &place, &session.id)?;
        let engine = &call.mongo.engine;
        let before = engine.read_collection(container, id, Some(&txn.view), call.now).await?;
        let current = engine.read_collection(container, id, None, call.now).await?;
        let version = |record: &Option<Record>| record.as_ref().map(|record| record.lsn);
        if version(&before) != version(&current) {
            return Err(conflict());
        }
        let mut writes = txn.writes.lock();
        if *txn.stage.lock() != Stage::Open {
            // It was ended meanwhile, and what it wrote was let go: nobody would let go of this.
            return Err(no_such(session.txn_number.unwrap_or(-1)));
        }
        writes
            .entry(place)
            .and_modify(|pending| {
                pending.after = after.clone();
                pending.partial &= partial;
            })
            .or_insert_with(|| Pending {
                container: container.clone(),
                before,
                after,
                partial,
                rows: Vec::new(),
            });
        Ok(())
    }

    /// Claims the unique values of what a transaction has just made of a document. [`EngineError::Duplicate`]
    /// if another document has one of them, as far as the transaction can see; [`EngineError::Contention`] if
    /// a concurrent writer has taken it.
    pub async fn claim(
        &self,
        call: &Call<'_>,
        txn: &Txn,
        container: &Container,
        id: &DocumentId,
        after: Option<&RawDocument>,
    ) -> std::result::Result<(), EngineError> {
        let Some(session) = &call.session else { return Ok(()) };
        let rows = after.map(|body| container.unique_rows(body)).transpose()?.unwrap_or_default();
        let place = (container.id, id.clone());
        if let Some(pending) = txn.writes.lock().get_mut(&place) {
            let mut claims = self.claims.lock();
            pending.rows.drain(..).for_each(|row| drop(claims.remove(&row)));
        }
        // Index by index: the first that has the values is named.
        for row in rows {
            let claim = Claim { session: session.id.clone(), document: id.clone() };
            {
                // Both at once: what a transaction lets go of at its end is what stands beside its writes.
                let mut writes = txn.writes.lock();
                let pending = writes.get_mut(&place).ok_or(EngineError::Contention)?;
                self.claim_row(container, &row, claim)?;
                pending.rows.push(row.clone());
            }
            let is_own = |other: &DocumentId| txn.written(container.id, other).is_some();
            call.mongo.engine.check_unique(container, &row, &txn.view, is_own, call.now).await?;
        }
        Ok(())
    }

    /// Claims a unique value, unless an open transaction has it for another document.
    fn claim_row(
        &self,
        container: &Container,
        row: &UniqueRow,
        claim: Claim,
    ) -> std::result::Result<(), EngineError> {
        let mut claims = self.claims.lock();
        match claims.get(row) {
            Some(other) if other.session != claim.session => Err(EngineError::Contention),
            Some(other) if other.document != claim.document => Err(container.duplicate(row)),
            _ => {
                claims.insert(row.clone(), claim);
                Ok(())
            }
        }
    }

    /// Makes a document a transaction's own. It stays so if the transaction has written it when the claim is
    /// let go.
    fn own<'a>(&'a self, txn: &'a Txn, place: &Place, session: &[u8]) -> Result<DocumentClaim<'a>> {
        let mut owners = self.owners.lock();
        match owners.get(place) {
            Some(owner) if owner != session => return Err(conflict()),
            _ => owners.insert(place.clone(), session.to_vec()),
        };
        Ok(DocumentClaim { sessions: self, txn, place: place.clone() })
    }

    /// A step of a transaction, which is aborted if the step is not carried through.
    pub(super) fn begin_step<'a>(&'a self, session: &'a SessionUse) -> Unfinished<'a> {
        Unfinished { sessions: self, session, is_done: false }
    }

    /// Waits until no transaction has written the document.
    pub async fn wait_for(&self, container: u32, id: &DocumentId) -> Result<()> {
        if self.owners.lock().is_empty() {
            return Ok(());
        }
        let place = (container, id.clone());
        for _ in 0..WAIT_MS_MAX / 5 {
            if !self.owners.lock().contains_key(&place) {
                return Ok(());
            }
            pause(Duration::from_millis(5)).await;
        }
        Err(conflict())
    }

    /// Commits a transaction. A second time says the same.
    pub async fn commit(&self, call: &Call<'_>, session: &SessionUse) -> Result<()> {
        let txn = self.find(session)?;
        let _ending = txn.ending.lock().await;
        let number = session.txn_number.unwrap_or(-1);
        let stage = *txn.stage.lock();
        match stage {
            Stage::Committed => return Ok(()),
            Stage::Aborted => return Err(no_such(number)),
            Stage::Open => {}
        }
        if call.now.seconds().saturating_sub(txn.began.seconds()) > TRANSACTION_SECONDS {
            self.abort(session);
            self.drafts.clear(call.mongo).await?;
            return Err(no_such(number));
        }
        let parts = txn.parts();
        let notes = self.drafts.notes(call.mongo, &session.id, call.now).await?;
        let done = call.mongo.engine.transact_parts(&parts, InvalidTtl::Ignore, call.now).await;
        *txn.stage.lock() = if done.is_ok() { Stage::Committed } else { Stage::Aborted };
        let told = match &done {
            Ok(_) => self.drafts.commit(call.mongo, &session.id, &notes).await,
            Err(_) => Ok(()),
        };
        self.release(&session.id, &txn);
        told?;
        if done.is_err() {
            self.drafts.clear(call.mongo).await?;
        }
        if !parts.is_empty() {
            call.mongo.streams.stir();
        }
        // Each statement was checked when it came. A document, or a unique value, that is not as it was then
        // was changed by a concurrent writer.
        done.map(drop).map_err(|refused| match refused.error {
            EngineError::Contention | EngineError::Duplicate { .. } => conflict(),
            other => Failure::from(other),
        })
    }

    /// Ends a transaction at the client's wish.
    pub async fn abort_asked(&self, mongo: &Mongo, session: &SessionUse) -> Result<()> {
        let txn = self.find(session)?;
        let _ending = txn.ending.lock().await;
        let number = session.txn_number.unwrap_or(-1);
        let stage = *txn.stage.lock();
        match stage {
            Stage::Open => {
                self.abort(session);
                Ok(self.drafts.clear(mongo).await?)
            }
            Stage::Committed => Err(Failure::new(
                256,
                format!("Transaction with {{ txnNumber: {number} }} has been committed."),
            )),
            Stage::Aborted => Err(no_such(number)),
        }
    }

    /// Ends a transaction without a trace, if it is open.
    pub fn abort(&self, session: &SessionUse) {
        if let Ok(txn) = self.find(session) {
            let mut stage = txn.stage.lock();
            if *stage == Stage::Open {
                *stage = Stage::Aborted;
            }
            drop(stage);
            self.release(&session.id, &txn);
        }
    }

    /// Lets go of what a transaction has written, and of collections that it made and did not commit.
    fn release(&self, session: &[u8], txn: &Txn) {
        self.drafts.abort(session);
        let writes = std::mem::take(&mut *txn.writes.lock());
        let (mut owners, mut claims) = (self.owners.lock(), self.claims.lock());
        for (place, pending) in writes {
            owners.remove(&place);
            pending.rows.iter().for_each(|row| drop(claims.remove(row)));
        }
    }

    /// Ends a session and what is going on in it.
    pub fn end(&self, mongo: &Mongo, id: &[u8]) {
        let removed = self.open.lock().remove(id);
        if let Some(txn) = removed.and_then(|session| session.transaction) {
            let mut stage = txn.stage.lock();
            if *stage == Stage::Open {
                *stage = Stage::Aborted;
            }
            drop(stage);
            self.release(id, &txn);
        }
        mongo.cursors.kill_of_session(id);
    }

    /// Ends transactions that have been open for too long and forgets sessions that nobody uses.
    pub fn sweep(&self, now: Timestamp) {
        let mut late = Vec::new();
        let mut open = self.open.lock();
        for (id, session) in open.iter() {
            if let Some(txn) = &session.transaction
                && now.seconds().saturating_sub(txn.began.seconds()) > TRANSACTION_SECONDS
                && *txn.stage.lock() == Stage::Open
            {
                late.push((id.clone(), txn.clone()));
            }
        }
        open.retain(|_, session| now.seconds().saturating_sub(session.used.seconds()) < SESSION_MINUTES * 60);
        drop(open);
        for (id, txn) in late {
            *txn.stage.lock() = Stage::Aborted;
            self.release(&id, &txn);
        }
    }
}

/// A document that a transaction is about to write.
struct DocumentClaim<'a> {
    sessions: &'a Sessions,
    txn: &'a Txn,
    place: Place,
}

impl Drop for DocumentClaim<'_> {
    fn drop(&mut self) {
        // Whoever ends the transaction lets go of what it has written, and of nothing else.
        let writes = self.txn.writes.lock();
        if !writes.contains_key(&self.place) {
            self.sessions.owners.lock().remove(&self.place);
        }
    }
}

/// A command of a session that is being carried out. If its future is dropped on the way, nobody knows how
/// far it has come: a transaction is aborted, and what a numbered write has answered is looked up in the
/// store when it is sent again.
pub(super) struct Unfinished<'a> {
    sessions: &'a Sessions,
    session: &'a SessionUse,
    is_done: bool,
}

impl Unfinished<'_> {
    /// It has been carried through.
    pub(super) fn done(mut self) {
        self.is_done = true;
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        if self.session.in_transaction {
            self.sessions.abort(self.session);
        } else if let Some(entry) = self.sessions.open.lock().get_mut(&self.session.id) {
            entry.fresh = true;
        }
    }
}

/// 112: somebody else has written the document.
pub fn conflict() -> Failure {
    Failure::new(112, "Caused by :: Write conflict during plan execution and yielding is disabled. :: Please retry your operation or multi-document transaction.")
        .label("TransientTransactionError")
}

fn no_such(number: i64) -> Failure {
    let message = format!("Given transaction number {number} does not match any in-progress transactions.");
    Failure::new(251, message).label("TransientTransactionError")
}

fn too_old(number: i64, last: i64) -> Failure {
    let message = format!(
        "Cannot start transaction {number} on session because a newer transaction {last} has already started."
    );
    Failure::new(225, message)
}
