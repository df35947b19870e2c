//! Writing documents: one, or many at a time, outside and inside of transactions, at most once where a client may ask
//! twice.
//!
//! A writer hands the engine a decision about each document. The decision is a function of what the document is at that
//! moment, so that what a filter said when the document was found is asked again when it is changed.

use std::sync::Arc;

use bson::{Document, RawDocument, RawDocumentBuf};
use mayfly_engine::{
    Decision, DocumentId, Error as EngineError, InvalidTtl, Operation, Receipt, Record, Results,
    StatementList,
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
    session::{Answers, Txn, conflict},
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

impl Statement {
    /// What to remember of it. Nothing if no document was there, or none that matches: it costs no sync, and is done anew
    /// when it is sent again.
    fn remembered(&self, done: Option<&Done>) -> Option<Document> {
        match done {
            Some(done) if done.change == Change::Skip => None,
            done => Some((self.answer)(done.map_or(&[], std::slice::from_ref))),
        }
    }
}

/// Whether documents that come after one that is refused are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// They are not.
    Ordered,
    /// They are.
    Unordered,
}

impl Order {
    /// As a command's argument says it.
    pub fn of(ordered: bool) -> Self {
        if ordered { Self::Ordered } else { Self::Unordered }
    }
}

/// What was decided about a document, once it was.
type Cell = Arc<Mutex<Option<Result<Done>>>>;

/// Documents of one logical partition that are written in one step.
#[derive(Clone, Copy)]
struct Steps<'s> {
    partition: &'s PartitionKey,
    operations: &'s [Operation],
    /// Where the decision about each is told; none for inserts, which are decided.
    cells: &'s [Cell],
    /// None, or one for each, in a numbered write.
    statements: &'s [Statement],
    order: Order,
}

impl<'s> Steps<'s> {
    fn part(self, range: std::ops::Range<usize>) -> Self {
        fn cut<T>(all: &[T], range: std::ops::Range<usize>) -> &[T] {
            all.get(range).unwrap_or_default()
        }
        Self {
            operations: cut(self.operations, range.clone()),
            cells: cut(self.cells, range.clone()),
            statements: cut(self.statements, range),
            ..self
        }
    }

    /// The answers if none of them could be written.
    fn all_refused<T>(self, failure: Failure) -> Vec<Result<T>> {
        let count = self.operations.len();
        let count = if self.order == Order::Ordered { count.min(1) } else { count };
        (0..count).map(|_| Err(failure.clone())).collect()
    }
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

    /// Decides about one document.
    pub async fn decide_one(
        &self,
        target: Target,
        decide: Decide,
        statement: Option<&Statement>,
    ) -> Result<Done> {
        let statements: &[Statement] = statement.map_or(&[], std::slice::from_ref);
        let mut done = self.decide(&[(target, decide)], statements, Order::Ordered).await;
        done.pop().unwrap_or_else(|| Err(Failure::new(1, "a decision has no answer")))
    }

    /// Decides about documents of one logical partition, each for itself, in one step. Statements are none, or one for
    /// each of them. The answer is shorter than `targets` if an ordered list was stopped; its last one says why.
    pub async fn decide(
        &self,
        targets: &[(Target, Decide)],
        statements: &[Statement],
        order: Order,
    ) -> Vec<Result<Done>> {
        if let Some(txn) = &self.txn {
            return self.decide_in(txn, targets).await;
        }
        let Some((first, _)) = targets.first() else { return Vec::new() };
        let container = &self.collection.container;
        let cells: Vec<Cell> = targets.iter().map(|_| Cell::default()).collect();
        let operations = targets.iter().zip(&cells).map(|((target, decide), cell)| {
            operation(container.clone(), target, decide.clone(), cell.clone())
        });
        let operations: Vec<Operation> = operations.collect();
        let partition = &first.partition;
        let steps = Steps { partition, operations: &operations, cells: &cells, statements, order };
        let results = self.run(steps).await;
        let decided = |done: Result<Option<Done>>| {
            done.and_then(|done| done.ok_or_else(|| Failure::new(1, "a document was not decided about")))
        };
        results.into_iter().map(decided).collect()
    }

    async fn decide_in(&self, txn: &Arc<Txn>, targets: &[(Target, Decide)]) -> Vec<Result<Done>> {
        let mut done = Vec::new();
        for (target, decide) in targets {
            let one = self.decide_one_in(txn, target, decide).await;
            let failed = one.is_err();
            done.push(one);
            // What fails in a transaction ends it, whether or not its statements are ordered.
            if failed {
                break;
            }
        }
        done
    }

    async fn decide_one_in(&self, txn: &Arc<Txn>, target: &Target, decide: &Decide) -> Result<Done> {
        let (mongo, container) = (self.call.mongo, &self.collection.container);
        let before = match txn.written(container.id, &target.id) {
            Some(written) => written,
            None => {
                let view = Some(&txn.view);
                let record = mongo.engine.read_collection(container, &target.id, view, self.call.now).await?;
                record.map(|record| document_of(container, &record))
            }
        };
        let change = decide(before.as_deref())?;
        let (after, partial) = match &change {
            Change::Skip | Change::Keep => return Ok(Done { change, before }),
            Change::Put(body) => (Some(body.clone()), false),
            Change::Modify(body) => (Some(body.clone()), true),
            Change::Remove => (None, false),
        };
        mongo.sessions.write(self.call, txn, container, &target.id, after.clone(), partial).await?;
        let claimed = mongo.sessions.claim(self.call, txn, container, &target.id, after.as_deref()).await;
        match claimed {
            Ok(()) => Ok(Done { change, before }),
            Err(EngineError::Contention) => Err(conflict()),
            Err(error) => Err(self.refusal(error, after.as_ref())),
        }
    }

    /// Inserts documents into a collection, each for itself, in one step, outside of transactions. Statements are none, or
    /// one for each of them. Nothing is read first: what is there already is found out when they are written.
    pub async fn insert(
        &self,
        documents: &[Operation],
        statements: &[Statement],
        order: Order,
    ) -> Vec<Result<()>> {
        let partition = &mayfly_engine::collection::whole();
        let results =
            self.run(Steps { partition, operations: documents, cells: &[], statements, order }).await;
        results.into_iter().map(|result| result.map(drop)).collect()
    }

    /// Runs steps in one commit, once no transaction has written their documents.
    async fn run(&self, steps: Steps<'_>) -> Vec<Result<Option<Done>>> {
        if let Err(failure) = self.break_before(steps.statements) {
            return steps.all_refused(failure);
        }
        let (mongo, container) = (self.call.mongo, &self.collection.container);
        let _open = mongo.gates.pass(container.id).await;
        let (mut results, mut from) = (Vec::new(), 0);
        for (place, operation) in steps.operations.iter().enumerate() {
            let Err(failure) = mongo.sessions.wait_for(container.id, operation.id()).await else { continue };
            // A transaction keeps this one: it is refused, and the others are written beside it.
            results.extend(self.run_now(steps.part(from..place)).await);
            let is_stopped = steps.order == Order::Ordered && results.iter().any(Result::is_err);
            if !is_stopped {
                results.push(Err(failure));
            }
            if steps.order == Order::Ordered {
                return results;
            }
            from = place + 1;
        }
        results.extend(self.run_now(steps.part(from..steps.operations.len())).await);
        results
    }

    async fn run_now(&self, steps: Steps<'_>) -> Vec<Result<Option<Done>>> {
        if steps.operations.is_empty() {
            return Vec::new();
        }
        let (engine, container, now) = (&self.call.mongo.engine, &self.collection.container, self.call.now);
        let receipt = self.receipt(steps);
        let ordered = steps.order == Order::Ordered;
        let list = StatementList { operations: steps.operations, ordered, receipt: receipt.as_ref() };
        let run = engine.run_statements(container, steps.partition, &list, InvalidTtl::Ignore, now);
        let done = match run.await {
            Ok(done) => done,
            // The store takes no such batch, because of one of the documents: each by itself.
            Err(EngineError::BadRequest { .. } | EngineError::TooLarge { .. })
                if steps.operations.len() > 1 =>
            {
                return self.run_one_by_one(steps).await;
            }
            Err(error) => return steps.all_refused(self.refusal(error, None)),
        };
        let mut results = Vec::with_capacity(done.results.len());
        for (place, result) in done.results.into_iter().enumerate() {
            let decided = steps.cells.get(place).and_then(|cell| cell.lock().take());
            results.push(match (result, decided) {
                (_, Some(Err(failure))) => Err(failure),
                (Ok(_), Some(Ok(done))) => Ok(Some(done)),
                (Ok(_), None) => Ok(None),
                (Err(error), decided) => {
                    let decided = decided.and_then(Result::ok).and_then(|done| match done.change {
                        Change::Put(body) | Change::Modify(body) => Some(body),
                        _ => None,
                    });
                    let created = match steps.operations.get(place) {
                        Some(Operation::Create { body, .. }) => Some(body.clone()),
                        _ => None,
                    };
                    Err(self.refusal(error, decided.or(created).as_ref()))
                }
            });
        }
        match self.settle(steps.statements, &results, done.lsn).await {
            Ok(()) => results,
            Err(failure) => steps.all_refused(failure),
        }
    }

    async fn run_one_by_one(&self, steps: Steps<'_>) -> Vec<Result<Option<Done>>> {
        let mut results = Vec::with_capacity(steps.operations.len());
        for place in 0..steps.operations.len() {
            results.extend(Box::pin(self.run_now(steps.part(place..place + 1))).await);
            if steps.order == Order::Ordered && results.last().is_some_and(Result::is_err) {
                break;
            }
        }
        results
    }

    /// Closes the connection before a numbered write, where a test has asked for that.
    fn break_before(&self, statements: &[Statement]) -> Result<()> {
        let breaks = || self.call.mongo.fail_points.break_of_write(self.call) == Some(Break::Before);
        if !statements.is_empty() && breaks() { Err(FailPoints::closing()) } else { Ok(()) }
    }

    /// What follows a step that was taken: its answers are remembered, and change streams learn of the commit.
    async fn settle(
        &self,
        statements: &[Statement],
        results: &[Result<Option<Done>>],
        lsn: u64,
    ) -> Result<()> {
        let (mongo, call, container) = (self.call.mongo, self.call, &self.collection.container);
        if let Some(session) = call.session.as_ref().filter(|session| session.is_retryable_write()) {
            let answered = statements.iter().zip(results).filter_map(|(statement, result)| {
                let done = result.as_ref().ok()?;
                Some((statement.number, statement.remembered(done.as_ref())?))
            });
            mongo.sessions.remember(session, answered);
        }
        let did = |is: fn(&Change) -> bool| {
            let done = results.iter().filter_map(|result| result.as_ref().ok());
            done.into_iter().any(|done| done.as_ref().is_none_or(|done| is(&done.change)))
        };
        let grew = did(|change| matches!(change, Change::Put(_) | Change::Modify(_)));
        if lsn > 0 && (grew || did(|change| *change == Change::Remove)) {
            // A log has the time of the write; without one it is only told.
            if container.definition().log_minutes.is_none() {
                mongo.cluster_time.tick(call.now);
            }
            mongo.streams.stir();
        }
        if grew {
            crate::capped::make_room(mongo, &self.collection, call.now).await?;
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

    fn receipt(&self, steps: Steps<'_>) -> Option<Receipt> {
        let session = self.call.session.as_ref().filter(|session| session.is_retryable_write())?;
        if steps.statements.is_empty() || !self.collection.container.is_collection() {
            return None;
        }
        let number = session.txn_number?;
        let known = self.call.mongo.sessions.statements(session);
        let (statements, cells) = (steps.statements.to_vec(), steps.cells.to_vec());
        let note = move |results: &Results| {
            let mut answers = known.clone();
            let mut is_more = false;
            // What was refused is not remembered: it is tried anew when it is sent again.
            for (place, (statement, result)) in statements.iter().zip(results).enumerate() {
                if result.is_err() {
                    continue;
                }
                let done = cells.get(place).and_then(|cell| cell.lock().as_ref()?.as_ref().ok().cloned());
                if let Some(answer) = statement.remembered(done.as_ref()) {
                    answers.insert(statement.number, answer);
                    is_more = true;
                }
            }
            is_more.then(|| answers.to_receipt(number))
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
            sessions.recall(session, kept.and_then(|bytes| Answers::from_receipt(&bytes)))?;
        }
        Ok(sessions.answered(session, statement))
    }
}

fn operation(
    container: Arc<mayfly_engine::Container>,
    target: &Target,
    decide: Decide,
    cell: Cell,
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
        // The cell says why.
        if failed { Err(EngineError::bad_request("a decision failed")) } else { Ok(decision) }
    };
    Operation::Decide { id: target.id.clone(), decide: Arc::new(decide) }
}
