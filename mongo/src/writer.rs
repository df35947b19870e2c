//! Writing documents: one, or many at a time, outside and inside of transactions, at most once where a client may ask
//! twice.
//!
//! A writer hands the engine a decision about each document. The decision is a function of what the document is at that
//! moment, so that what a filter said when the document was found is asked again when it is changed.

use std::{collections::HashMap, sync::Arc};

use bson::{Bson, Document, RawDocument, RawDocumentBuf};
use mayfly_engine::{
    Decision, DocumentId, Error as EngineError, InvalidTtl, Operation, Outcome, Receipt, Record,
};
use mayfly_value::partition::PartitionKey;
use parking_lot::Mutex;

use crate::{
    call::Call,
    duplicates,
    fail_point::{Break, FailPoints},
    failure::{Failure, Result},
    namespace::Collection,
    reader::{body_of, document_of},
    service::to_raw,
    session::Txn,
};

/// What becomes of a document.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// It does not match any more.
    Skip,
    /// It matches and stays as it is.
    Keep,
    /// This is its next version, or its first.
    Put(RawDocumentBuf),
    /// This is its next version, with parts of it changed.
    Modify(RawDocumentBuf),
    /// It goes.
    Remove,
}

/// Decides about a document, or about there being none.
pub type Decide = Arc<dyn Fn(Option<&RawDocument>) -> Result<Change> + Send + Sync>;

/// What was done to a document.
#[derive(Clone, Debug)]
pub struct Done {
    /// What was decided.
    pub change: Change,
    /// What it was.
    pub before: Option<RawDocumentBuf>,
}

/// Which document.
#[derive(Clone, Debug)]
pub struct Target {
    /// Its id in the engine.
    pub id: DocumentId,
    /// Its logical partition.
    pub partition: PartitionKey,
}

/// What a statement answers, as a function of what was done.
pub type Answer = Arc<dyn Fn(&[Done]) -> Document + Send + Sync>;

/// A statement of a numbered write, and what it answers once it is known what it did.
#[derive(Clone)]
pub struct Statement {
    /// Its number.
    pub number: i32,
    /// The answer to remember.
    pub answer: Answer,
}

/// Writes for one command on one collection.
pub struct Writer<'a> {
    call: &'a Call<'a>,
    collection: Collection,
    txn: Option<Arc<Txn>>,
}

impl<'a> Writer<'a> {
    /// A writer for a command.
    pub fn new(call: &'a Call<'a>, collection: &Collection) -> Result<Self> {
        collection.check_writable()?;
        let txn = call.mongo.sessions.transaction(call)?;
        if txn.is_some() && !collection.container.is_collection() {
            let message = "a transaction cannot write to a container that was made through the NoSQL API";
            return Err(Failure::new(263, message));
        }
        Ok(Self { call, collection: collection.clone(), txn })
    }

    /// The transaction it writes in.
    pub fn txn(&self) -> Option<Arc<Txn>> {
        self.txn.clone()
    }

    /// The place of a document in the collection.
    pub fn target(&self, document: &RawDocument) -> Result<Target> {
        let id = document.get("_id")?.ok_or_else(|| Failure::bad_value("a document without _id"))?;
        let container = &self.collection.container;
        if container.is_collection() {
            return Ok(Target { id: DocumentId::value(id), partition: mayfly_engine::collection::whole() });
        }
        let body = body_of(container, document)?;
        let key = &container.definition().partition_key;
        let partition = key.extract(&body).map_err(EngineError::from)?;
        Ok(Target { id: DocumentId::value(id), partition })
    }

    /// Decides about documents, all in one step. The failure says which of them it was about.
    pub async fn decide(
        &self,
        targets: &[(Target, Decide)],
        statements: &[Statement],
    ) -> std::result::Result<Vec<Done>, (usize, Failure)> {
        match &self.txn {
            Some(txn) => self.decide_in(txn, targets).await,
            None => self.decide_now(targets, statements).await,
        }
    }

    async fn decide_in(
        &self,
        txn: &Arc<Txn>,
        targets: &[(Target, Decide)],
    ) -> std::result::Result<Vec<Done>, (usize, Failure)> {
        let (mongo, container) = (self.call.mongo, &self.collection.container);
        let mut done = Vec::new();
        for (place, (target, decide)) in targets.iter().enumerate() {
            let step = async {
                let before = match txn.written(container.id, &target.id) {
                    Some(written) => written,
                    None => {
                        let view = Some(&txn.view);
                        let record =
                            mongo.engine.read_collection(container, &target.id, view, self.call.now).await?;
                        record.map(|record| document_of(container, &record))
                    }
                };
                let change = decide(before.as_deref())?;
                match &change {
                    Change::Put(body) | Change::Modify(body) => {
                        let partial = matches!(change, Change::Modify(_));
                        let after = Some(body.clone());
                        mongo.sessions.write(self.call, txn, container, &target.id, after, partial).await?;
                    }
                    Change::Remove => {
                        mongo.sessions.write(self.call, txn, container, &target.id, None, false).await?;
                    }
                    Change::Skip | Change::Keep => {}
                }
                Ok(Done { change, before })
            };
            done.push(step.await.map_err(|failure| (place, failure))?);
        }
        Ok(done)
    }

    async fn decide_now(
        &self,
        targets: &[(Target, Decide)],
        statements: &[Statement],
    ) -> std::result::Result<Vec<Done>, (usize, Failure)> {
        let (mongo, call) = (self.call.mongo, self.call);
        let container = &self.collection.container;
        self.break_before(statements)?;
        let _open = mongo.gates.pass(container.id).await;
        for (place, (target, _)) in targets.iter().enumerate() {
            mongo.sessions.wait_for(container.id, &target.id).await.map_err(|failure| (place, failure))?;
        }
        let cells: Vec<Arc<Mutex<Option<Result<Done>>>>> = targets.iter().map(|_| Arc::default()).collect();
        let mut operations = Vec::with_capacity(targets.len());
        for ((target, decide), cell) in targets.iter().zip(&cells) {
            operations.push(operation(container.clone(), target, decide.clone(), cell.clone()));
        }
        let receipt = self.receipt(statements, &cells);
        let Some((first, _)) = targets.first() else { return Ok(Vec::new()) };
        let run = mongo.engine.transact_once(
            container,
            &first.partition,
            &operations,
            InvalidTtl::Ignore,
            receipt.as_ref(),
            call.now,
        );
        let outcome = run.await;
        let mut done = Vec::new();
        for (place, cell) in cells.iter().enumerate() {
            match cell.lock().take() {
                Some(Err(failure)) => return Err((place, failure)),
                Some(Ok(one)) => done.push(one),
                None => {}
            }
        }
        let lsn = match outcome {
            Ok(transaction) => transaction.lsn,
            Err(refused) => {
                let wanted = done.get(refused.operation).and_then(|one| match &one.change {
                    Change::Put(body) | Change::Modify(body) => Some(body),
                    _ => None,
                });
                return Err((refused.operation, self.refusal(refused.error, wanted)));
            }
        };
        let puts = done.iter().any(|one| matches!(one.change, Change::Put(_) | Change::Modify(_)));
        let wrote = puts || done.iter().any(|one| one.change == Change::Remove);
        self.settle(statements, &done, wrote.then_some(lsn), puts).await?;
        Ok(done)
    }

    /// Inserts documents into a collection, all in one step, outside of transactions. The failure says which of them it
    /// was about. Nothing is read first: what is there already is found out when they are written.
    pub async fn insert(
        &self,
        documents: &[Operation],
        statements: &[Statement],
    ) -> std::result::Result<(), (usize, Failure)> {
        let (mongo, call, container) = (self.call.mongo, self.call, &self.collection.container);
        self.break_before(statements)?;
        let _open = mongo.gates.pass(container.id).await;
        for (place, document) in documents.iter().enumerate() {
            if let Operation::Create { id, .. } = document {
                mongo.sessions.wait_for(container.id, id).await.map_err(|failure| (place, failure))?;
            }
        }
        let receipt = self.receipt(statements, &[]);
        let whole = mayfly_engine::collection::whole();
        let run = mongo.engine.transact_once(
            container,
            &whole,
            documents,
            InvalidTtl::Ignore,
            receipt.as_ref(),
            call.now,
        );
        match run.await {
            Ok(transaction) => self.settle(statements, &[], Some(transaction.lsn), true).await,
            Err(refused) => {
                let wanted = match documents.get(refused.operation) {
                    Some(Operation::Create { body, .. }) => Some(body),
                    _ => None,
                };
                Err((refused.operation, self.refusal(refused.error, wanted)))
            }
        }
    }

    /// Closes the connection before a numbered write, where a test has asked for that.
    fn break_before(&self, statements: &[Statement]) -> std::result::Result<(), (usize, Failure)> {
        let breaks = || self.call.mongo.fail_points.break_of_write(self.call) == Some(Break::Before);
        if !statements.is_empty() && breaks() { Err((0, FailPoints::closing())) } else { Ok(()) }
    }

    /// What follows a step that was taken: its answers are remembered, and who waits for changes is told of the commit.
    async fn settle(
        &self,
        statements: &[Statement],
        done: &[Done],
        lsn: Option<u64>,
        grew: bool,
    ) -> std::result::Result<(), (usize, Failure)> {
        let (mongo, call, container) = (self.call.mongo, self.call, &self.collection.container);
        if let Some(session) = call.session.as_ref().filter(|session| session.is_retryable_write())
            && !found_nothing(done)
        {
            for statement in statements {
                mongo.sessions.remember(session, statement.number, (statement.answer)(done));
            }
        }
        if lsn.is_some() {
            // A log has the time of the write; without one it is only told.
            if container.definition().log_minutes.is_none() {
                mongo.cluster_time.tick(call.now);
            }
            mongo.streams.stir();
        }
        if grew {
            let room = crate::capped::make_room(mongo, &self.collection, call.now).await;
            room.map_err(|failure| (0, failure))?;
        }
        // A store that never waits would keep a batch of a hundred thousand from everybody else's turn.
        tokio::task::yield_now().await;
        Ok(())
    }

    /// The failure of the engine as the protocol tells it.
    pub fn refusal(&self, error: EngineError, wanted: Option<&RawDocumentBuf>) -> Failure {
        match (error, wanted) {
            (EngineError::Duplicate { index }, Some(document)) => {
                let rules = &self.collection.container.definition().index_rules;
                let fresh = self.call.mongo.engine.container_by_id(self.collection.container.id);
                let rules = fresh.as_ref().map_or(rules, |container| &container.definition().index_rules);
                let rule = rules.iter().find(|rule| rule.name == index);
                let spec = rule.map(|rule| Document::from_reader(rule.spec.as_slice()).unwrap_or_default());
                duplicates::failure(&self.collection, &index, &spec.unwrap_or_default(), document)
            }
            (EngineError::Exists(_), Some(document)) => duplicates::id_taken(&self.collection, document),
            (error, _) => error.into(),
        }
    }

    fn receipt(
        &self,
        statements: &[Statement],
        cells: &[Arc<Mutex<Option<Result<Done>>>>],
    ) -> Option<Receipt> {
        let session = self.call.session.as_ref().filter(|session| session.is_retryable_write())?;
        if statements.is_empty() || !self.collection.container.is_collection() {
            return None;
        }
        let number = session.txn_number?;
        let known = self.call.mongo.sessions.statements(session);
        let (statements, cells) = (statements.to_vec(), cells.to_vec());
        let note = move |_: &[Outcome]| {
            let done: Vec<Done> = cells
                .iter()
                .filter_map(|cell| cell.lock().as_ref().and_then(|one| one.as_ref().ok()).cloned())
                .collect();
            if found_nothing(&done) {
                return None;
            }
            let mut answers = known.clone();
            for statement in &statements {
                answers.insert(statement.number, (statement.answer)(&done));
            }
            let answers: Document = answers
                .into_iter()
                .map(|(number, answer)| (number.to_string(), Bson::from(answer)))
                .collect();
            Some(to_raw(&bson::doc! { "n": number, "s": answers }).into_bytes())
        };
        Some(Receipt { session: session.id.clone(), note: Arc::new(note) })
    }

    /// What a numbered write of before answered for a statement, if it is this one, sent again.
    pub async fn answered(&self, statement: i32) -> Result<Option<Document>> {
        let Some(session) = self.call.session.as_ref().filter(|session| session.is_retryable_write()) else {
            return Ok(None);
        };
        let sessions = &self.call.mongo.sessions;
        if sessions.is_fresh(&session.id) && self.collection.container.is_collection() {
            let kept = self.call.mongo.engine.receipt(&self.collection.container, &session.id).await?;
            sessions.recall(session, kept.and_then(|bytes| read_receipt(&bytes)))?;
        }
        Ok(sessions.answered(session, statement))
    }
}

/// Whether no document was there, or none that matches. Such a write is not remembered: it costs no sync, and is done anew
/// when it is sent again.
fn found_nothing(done: &[Done]) -> bool {
    !done.is_empty() && done.iter().all(|one| one.change == Change::Skip)
}

fn read_receipt(bytes: &[u8]) -> Option<(i64, HashMap<i32, Document>)> {
    let note = Document::from_reader(bytes).ok()?;
    let answers = note.get_document("s").ok()?.iter();
    let answers =
        answers.filter_map(|(number, answer)| Some((number.parse().ok()?, answer.as_document()?.clone())));
    Some((note.get_i64("n").ok()?, answers.collect()))
}

fn operation(
    container: Arc<mayfly_engine::Container>,
    target: &Target,
    decide: Decide,
    cell: Arc<Mutex<Option<Result<Done>>>>,
) -> Operation {
    let decide = move |record: Option<&Record>| {
        let before = record.map(|record| document_of(&container, record));
        let decided = decide(before.as_deref());
        let (kept, decision) = match decided {
            Err(failure) => (Err(failure), Decision::Keep),
            Ok(change) => {
                let decision = match &change {
                    Change::Skip | Change::Keep => Ok(Decision::Keep),
                    Change::Remove => Ok(Decision::Remove),
                    Change::Put(document) => body_of(&container, document).map(Decision::Put),
                    Change::Modify(document) => body_of(&container, document).map(Decision::Update),
                };
                match decision {
                    Ok(decision) => (Ok(Done { change, before }), decision),
                    Err(failure) => (Err(failure), Decision::Keep),
                }
            }
        };
        let failed = kept.is_err();
        *cell.lock() = Some(kept);
        // Nothing of the batch may be written if one of its decisions failed.
        if failed { Err(EngineError::bad_request("a decision failed")) } else { Ok(decision) }
    };
    Operation::Decide { id: target.id.clone(), decide: Arc::new(decide) }
}
