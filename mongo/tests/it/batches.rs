//! Batches of writes over unique indexes, against MongoDB's rule said as simply as possible.
//!
//! Each statement stands for itself, in order: it is done, or refused by the first index that has its values, and an
//! ordered batch ends there. In a transaction the first refusal undoes everything. A batch that is sent again with its
//! number does what it has not done. What has expired is not there.

use std::collections::BTreeMap;
use std::fmt;

use bson::{Bson, Document, doc};
use mayfly_testkit::Backend;
use mayfly_value::bson;
use proptest::{collection::vec, option, prelude::*};

use crate::commands::{Ours, Server};

/// The fields that matter of a document. `a` is in a unique index, `b` in one that is sparse.
#[derive(Clone, Debug, PartialEq)]
struct Fields {
    a: i32,
    b: Option<i32>,
    ttl: Option<i32>,
}

impl Fields {
    fn to_document(&self, version: i32) -> Document {
        let mut made = doc! { "a": self.a };
        if let Some(b) = self.b {
            made.insert("b", b);
        }
        if let Some(ttl) = self.ttl {
            made.insert("ttl", ttl);
        }
        // Every write is a change, so that none counts as one that did nothing.
        made.insert("v", version);
        made
    }
}

#[derive(Clone, Debug)]
enum Statement {
    Insert(i32, Fields),
    Replace(i32, Fields),
    Upsert(i32, Fields),
    /// Of the document with the first value of `a`: gives it the second.
    Move(i32, i32),
    /// All documents get the next value of `a`, one after the other.
    Shift,
    Delete(i32),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Once,
    /// Numbered, and again after so many seconds.
    Twice(u64),
    /// In a transaction: one command, or one for each statement.
    Transaction,
    Steps,
}

#[derive(Clone)]
enum Step {
    /// By `insert`, `update` and `delete` if all are of a kind, and else by `bulkWrite`; always by that if said so.
    Batch {
        statements: Vec<Statement>,
        ordered: bool,
        bulk: bool,
        way: Way,
    },
    Advance(u64),
    Purge,
}

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Batch { statements, ordered, bulk, way } => {
                write!(f, "\n  {way:?} ordered={ordered} bulk={bulk}")?;
                statements.iter().try_for_each(|statement| write!(f, "\n    {statement:?}"))
            }
            Self::Advance(seconds) => write!(f, "\n  advance {seconds}"),
            Self::Purge => write!(f, "\n  purge"),
        }
    }
}

fn fields() -> impl Strategy<Value = Fields> {
    (0..6, option::of(0..4), option::weighted(0.4, 1..6)).prop_map(|(a, b, ttl)| Fields { a, b, ttl })
}

fn statement() -> impl Strategy<Value = Statement> {
    let id = 0..8;
    prop_oneof![
        5 => (id.clone(), fields()).prop_map(|(id, fields)| Statement::Insert(id, fields)),
        2 => (id.clone(), fields()).prop_map(|(id, fields)| Statement::Replace(id, fields)),
        2 => (id.clone(), fields()).prop_map(|(id, fields)| Statement::Upsert(id, fields)),
        1 => (0..6, 0..6).prop_map(|(from, to)| Statement::Move(from, to)),
        1 => Just(Statement::Shift),
        1 => id.prop_map(Statement::Delete),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let inserts = (0..8, fields()).prop_map(|(id, fields)| Statement::Insert(id, fields));
    let statements = prop_oneof![vec(statement(), 1..8), vec(inserts, 1..12)];
    let way = prop_oneof![
        4 => Just(Way::Once),
        3 => (0_u64..4).prop_map(Way::Twice),
        2 => Just(Way::Transaction),
        1 => Just(Way::Steps),
    ];
    let batch = (statements, any::<bool>(), any::<bool>(), way);
    prop_oneof![
        6 => batch.prop_map(|(statements, ordered, bulk, way)| Step::Batch { statements, ordered, bulk, way }),
        2 => (1_u64..5).prop_map(Step::Advance),
        1 => Just(Step::Purge),
    ]
}

/// What a statement did, or the index that refused it.
type Answer = Result<Did, &'static str>;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Did {
    n: i32,
    modified: i32,
    upserted: bool,
}

/// The documents that are there, each with the second it was written in.
#[derive(Clone, Default)]
struct Model {
    now: u64,
    documents: BTreeMap<i32, (Fields, u64)>,
}

impl Model {
    fn settle(&mut self) {
        let now = self.now;
        self.documents
            .retain(|_, (fields, written)| fields.ttl.is_none_or(|ttl| *written + ttl as u64 > now));
    }

    fn put(&mut self, id: i32, fields: Fields) -> Result<(), &'static str> {
        let others = || self.documents.iter().filter(|(other, _)| **other != id).map(|(_, (other, _))| other);
        if others().any(|other| other.a == fields.a) {
            return Err("a");
        }
        if fields.b.is_some() && others().any(|other| other.b == fields.b) {
            return Err("b");
        }
        self.documents.insert(id, (fields, self.now));
        Ok(())
    }

    fn run(&mut self, statement: &Statement) -> Answer {
        let found = Did { n: 1, modified: 1, upserted: false };
        match statement {
            Statement::Insert(id, _) if self.documents.contains_key(id) => Err("_id"),
            Statement::Insert(id, fields) => {
                self.put(*id, fields.clone())?;
                Ok(Did { n: 1, ..Did::default() })
            }
            Statement::Replace(id, fields) | Statement::Upsert(id, fields)
                if self.documents.contains_key(id) =>
            {
                self.put(*id, fields.clone())?;
                Ok(found)
            }
            Statement::Replace(..) => Ok(Did::default()),
            Statement::Upsert(id, fields) => {
                self.put(*id, fields.clone())?;
                Ok(Did { n: 1, modified: 0, upserted: true })
            }
            Statement::Move(from, to) => {
                let at = self.documents.iter().find(|(_, (fields, _))| fields.a == *from);
                let Some((id, (fields, _))) = at.map(|(id, found)| (*id, found.clone())) else {
                    return Ok(Did::default());
                };
                self.put(id, Fields { a: *to, ..fields })?;
                Ok(found)
            }
            Statement::Shift => {
                let all: Vec<(i32, Fields)> =
                    self.documents.iter().map(|(id, (fields, _))| (*id, fields.clone())).collect();
                let count = all.len() as i32;
                for (id, fields) in all {
                    self.put(id, Fields { a: fields.a + 1, ..fields })?;
                }
                Ok(Did { n: count, modified: count, upserted: false })
            }
            Statement::Delete(id) => {
                let removed = self.documents.remove(id).is_some();
                Ok(Did { n: i32::from(removed), ..Did::default() })
            }
        }
    }

    /// Runs a batch. What `done` has an answer for is not done again; what changed something gets one.
    fn batch(
        &mut self,
        statements: &[Statement],
        ordered: bool,
        done: &mut BTreeMap<usize, Did>,
    ) -> Vec<Answer> {
        let mut answers = Vec::new();
        for (place, statement) in statements.iter().enumerate() {
            let answer = match done.get(&place) {
                Some(did) => Ok(*did),
                None => self.run(statement),
            };
            if let Ok(did @ Did { n: 1.., .. }) = answer {
                done.insert(place, did);
            }
            answers.push(answer);
            if answer.is_err() && ordered {
                break;
            }
        }
        answers
    }
}

/// The server, and what numbers its sessions have come to.
struct Subject {
    server: Ours,
    number: i64,
    version: i32,
}

fn command_of(statement: &Statement) -> &'static str {
    match statement {
        Statement::Insert(..) => "insert",
        Statement::Delete(_) => "delete",
        _ => "update",
    }
}

impl Subject {
    fn start() -> Self {
        let mut server = Ours::start_on(Backend::Memory);
        let indexes = vec![
            doc! { "key": { "a": 1 }, "name": "a_1", "unique": true },
            doc! { "key": { "b": 1 }, "name": "b_1", "unique": true, "sparse": true },
            doc! { "key": { "_ts": 1 }, "name": "_ts_1", "expireAfterSeconds": 100_000 },
        ];
        let made = server.run(&doc! { "createIndexes": "c", "indexes": indexes });
        assert_eq!(made.get_f64("ok").ok(), Some(1.0), "{made}");
        Self { server, number: 0, version: 0 }
    }

    /// As a statement of `insert`, `update` or `delete`.
    fn part(&mut self, statement: &Statement) -> Document {
        self.version += 1;
        let version = self.version;
        let with_id = |id: &i32, fields: &Fields| {
            let mut document = doc! { "_id": id };
            document.extend(fields.to_document(version));
            document
        };
        match statement {
            Statement::Insert(id, fields) => with_id(id, fields),
            Statement::Replace(id, fields) => doc! { "q": { "_id": id }, "u": fields.to_document(version) },
            Statement::Upsert(id, fields) => {
                doc! { "q": { "_id": id }, "u": fields.to_document(version), "upsert": true }
            }
            Statement::Move(from, to) => {
                doc! { "q": { "a": from }, "u": { "$set": { "a": to, "v": version } } }
            }
            Statement::Shift => doc! { "q": {}, "u": { "$inc": { "a": 1, "v": 1 } }, "multi": true },
            Statement::Delete(id) => doc! { "q": { "_id": id }, "limit": 1 },
        }
    }

    fn command(&mut self, statements: &[Statement], ordered: bool, bulk: bool) -> (&'static str, Document) {
        let kind = command_of(&statements[0]);
        if bulk || statements.iter().any(|statement| command_of(statement) != kind) {
            let operations: Vec<Document> = statements
                .iter()
                .map(|statement| {
                    let part = self.part(statement);
                    match command_of(statement) {
                        "insert" => doc! { "insert": 0, "document": part },
                        "delete" => doc! { "delete": 0, "filter": part.get_document("q").unwrap().clone() },
                        _ => {
                            let q = part.get_document("q").unwrap().clone();
                            let u = part.get_document("u").unwrap().clone();
                            let mut made = doc! { "update": 0, "filter": q, "updateMods": u };
                            for flag in ["upsert", "multi"] {
                                made.insert(flag, part.get_bool(flag).unwrap_or(false));
                            }
                            made
                        }
                    }
                })
                .collect();
            let names = vec![doc! { "ns": "test.c" }];
            return (
                "bulkWrite",
                doc! { "bulkWrite": 1, "ops": operations, "nsInfo": names, "ordered": ordered },
            );
        }
        let parts: Vec<Document> = statements.iter().map(|statement| self.part(statement)).collect();
        let field = if kind == "insert" { "documents".to_owned() } else { format!("{kind}s") };
        (kind, doc! { kind: "c", field: parts, "ordered": ordered })
    }

    fn numbered(&self, command: &Document) -> Document {
        let id = bson::Binary { subtype: bson::spec::BinarySubtype::Uuid, bytes: vec![7; 16] };
        let mut command = command.clone();
        command.extend(doc! { "lsid": { "id": id }, "txnNumber": self.number });
        command
    }

    fn send(&mut self, kind: &str, command: &Document) -> Document {
        let db = if ["bulkWrite", "commitTransaction"].contains(&kind) { "admin" } else { "test" };
        self.server.run_on(db, command)
    }
}

fn keys(document: &Document, name: &str) -> String {
    document
        .get_document(name)
        .map(|keys| keys.keys().cloned().collect::<Vec<_>>().join(","))
        .unwrap_or_default()
}

/// An answer of the server and the one that the model gives, in the same words.
fn compare(kind: &str, reply: &Document, answers: &[Answer]) -> Result<(), TestCaseError> {
    let sum = |of: fn(&Did) -> i32| answers.iter().flatten().map(of).sum::<i32>();
    let refused = answers
        .iter()
        .enumerate()
        .filter_map(|(place, answer)| Some((place as i32, answer.err()?.to_owned())));
    let refused: Vec<(i32, String)> = refused.collect();
    prop_assert_eq!(reply.get_f64("ok").ok(), Some(1.0), "{}", reply);
    if kind == "bulkWrite" {
        let batch = reply.get_document("cursor").unwrap().get_array("firstBatch").unwrap();
        let batch: Vec<&Document> = batch.iter().filter_map(Bson::as_document).collect();
        let found: Vec<_> =
            batch.iter().map(|one| (one.get_i32("idx").unwrap(), one.get_i32("n").unwrap())).collect();
        let wanted: Vec<_> = answers
            .iter()
            .enumerate()
            .map(|(place, answer)| (place as i32, answer.map_or(0, |did| did.n)))
            .collect();
        prop_assert_eq!(found, wanted, "{}", reply);
        let errors = batch.iter().filter(|one| one.get_f64("ok").ok() == Some(0.0));
        let errors: Vec<_> =
            errors.map(|one| (one.get_i32("idx").unwrap(), keys(one, "keyPattern"))).collect();
        prop_assert_eq!(reply.get_i32("nErrors").unwrap(), errors.len() as i32);
        prop_assert_eq!(errors, refused, "{}", reply);
        return Ok(());
    }
    prop_assert_eq!(reply.get_i32("n").unwrap(), sum(|did| did.n), "{}", reply);
    if kind == "update" {
        prop_assert_eq!(reply.get_i32("nModified").unwrap(), sum(|did| did.modified), "{}", reply);
        let upserted = answers.iter().enumerate().filter(|(_, answer)| answer.is_ok_and(|did| did.upserted));
        let upserted: Vec<i32> = upserted.map(|(place, _)| place as i32).collect();
        let found = reply.get_array("upserted").cloned().unwrap_or_default();
        let found: Vec<i32> =
            found.iter().map(|one| one.as_document().unwrap().get_i32("index").unwrap()).collect();
        prop_assert_eq!(found, upserted, "{}", reply);
    }
    let errors = reply.get_array("writeErrors").cloned().unwrap_or_default();
    let errors: Vec<_> = errors
        .iter()
        .filter_map(Bson::as_document)
        .map(|error| {
            assert_eq!(error.get_i32("code").ok(), Some(11000), "{error}");
            (error.get_i32("index").unwrap(), keys(error, "keyPattern"))
        })
        .collect();
    prop_assert_eq!(errors, refused, "{}", reply);
    Ok(())
}

fn compare_documents(subject: &mut Subject, model: &Model) -> Result<(), TestCaseError> {
    let reply = subject.server.run(&doc! { "find": "c", "sort": { "_id": 1 }, "batchSize": 100 });
    let batch = reply.get_document("cursor").unwrap().get_array("firstBatch").unwrap().clone();
    let found: Vec<(i32, i32, Option<i32>)> = batch
        .iter()
        .filter_map(Bson::as_document)
        .map(|found| (found.get_i32("_id").unwrap(), found.get_i32("a").unwrap(), found.get_i32("b").ok()))
        .collect();
    let wanted: Vec<_> = model.documents.iter().map(|(id, (fields, _))| (*id, fields.a, fields.b)).collect();
    prop_assert_eq!(found, wanted);
    Ok(())
}

fn transaction(
    subject: &mut Subject,
    model: &mut Model,
    statements: &[Statement],
    (ordered, bulk): (bool, bool),
    steps: bool,
) -> Result<(), TestCaseError> {
    subject.number += 1;
    let mut next = model.clone();
    let mut failed = false;
    let each = if steps { 1 } else { statements.len() };
    for (place, some) in statements.chunks(each).enumerate() {
        let (kind, command) = subject.command(some, ordered, bulk);
        let mut command = subject.numbered(&command);
        command.insert("autocommit", false);
        if place == 0 {
            command.insert("startTransaction", true);
        }
        let reply = subject.send(kind, &command);
        if failed {
            prop_assert_eq!(reply.get_i32("code").ok(), Some(251), "{}", reply);
            continue;
        }
        // What fails ends the transaction, whatever is said about the order.
        let answers = next.batch(some, true, &mut BTreeMap::new());
        failed = answers.iter().any(Result::is_err);
        compare(kind, &reply, &answers)?;
        compare_documents(subject, model)?;
    }
    let mut commit = subject.numbered(&doc! { "commitTransaction": 1 });
    commit.insert("autocommit", false);
    let reply = subject.send("commitTransaction", &commit);
    let code = reply.get_i32("code").unwrap_or_default();
    prop_assert_eq!(code, if failed { 251 } else { 0 }, "{}", reply);
    if !failed {
        *model = next;
    }
    Ok(())
}

fn take(subject: &mut Subject, model: &mut Model, step: &Step) -> Result<(), TestCaseError> {
    match step {
        Step::Advance(seconds) => {
            subject.server.advance(*seconds);
            model.now += seconds;
            model.settle();
        }
        Step::Purge => prop_assert_eq!(subject.server.tidy(true), ""),
        Step::Batch { statements, ordered, bulk, way: Way::Once } => {
            let (kind, command) = subject.command(statements, *ordered, *bulk);
            let reply = subject.send(kind, &command);
            compare(kind, &reply, &model.batch(statements, *ordered, &mut BTreeMap::new()))?;
        }
        Step::Batch { statements, ordered, bulk, way: Way::Twice(seconds) } => {
            // What changes many documents cannot be numbered.
            let statements: Vec<_> =
                statements.iter().filter(|one| !matches!(one, Statement::Shift)).cloned().collect();
            if statements.is_empty() {
                return Ok(());
            }
            subject.number += 1;
            let (kind, command) = subject.command(&statements, *ordered, *bulk);
            let command = subject.numbered(&command);
            let mut done = BTreeMap::new();
            let reply = subject.send(kind, &command);
            compare(kind, &reply, &model.batch(&statements, *ordered, &mut done))?;
            take(subject, model, &Step::Advance(*seconds))?;
            let reply = subject.send(kind, &command);
            compare(kind, &reply, &model.batch(&statements, *ordered, &mut done))?;
        }
        Step::Batch { statements, ordered, bulk, way } => {
            // In which order a transaction comes by the documents that it has written itself is nobody's business.
            let is_first = |place: usize, one: &Statement| place == 0 || !matches!(one, Statement::Shift);
            let statements = statements.iter().enumerate().filter(|(place, one)| is_first(*place, one));
            let statements: Vec<_> = statements.map(|(_, one)| one.clone()).collect();
            transaction(subject, model, &statements, (*ordered, *bulk), *way == Way::Steps)?;
        }
    }
    compare_documents(subject, model)?;
    prop_assert_eq!(subject.server.tidy(false), "");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("MAYFLY_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(100),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn batches_do_what_mongodb_does(steps in vec(step(), 1..12)) {
        let (mut subject, mut model) = (Subject::start(), Model::default());
        for step in &steps {
            take(&mut subject, &mut model, step)?;
        }
    }
}
