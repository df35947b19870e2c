//! Every command, dropped at every poll in turn.
//!
//! The portal's requests are dropped when a browser leaves, a `getMore` when its client does, and any command
//! when the server stops. Whatever the moment, a command has happened or it has not, the store is sound, the
//! catalog in memory is the one that is stored, nothing is locked, and the same command sent again is
//! answered. A numbered write happens once, and so does a commit.

use std::sync::Arc;

use bson::{Binary, Bson, Document, doc, spec::BinarySubtype};
use mayfly_engine::{AdjustableClock, Engine, Timestamp, ids::SeededIds};
use mayfly_mongo::auth::{Accounts, Role};
use mayfly_mongo::commands::COMMANDS;
use mayfly_mongo::{Filters, Mongo, Options, Topology};
use mayfly_storage::MemoryStore;
use mayfly_testkit::{
    Yielding,
    cancel::{cut, in_time, tasks_end},
};
use mayfly_value::bson;

const START: u64 = 1_700_000_000;

/// A front-end with a store that takes turns.
struct Subject {
    store: Arc<Yielding<MemoryStore>>,
    engine: Engine,
    mongo: Arc<Mongo>,
}

impl Subject {
    async fn on(store: Arc<Yielding<MemoryStore>>) -> Self {
        let clock = Arc::new(AdjustableClock::frozen(Timestamp::from_seconds(START)));
        let engine = Engine::builder(store.clone()).clock(clock).ids(Arc::new(SeededIds::default()));
        let engine = engine.predicates(Arc::new(Filters)).open().await.unwrap();
        let accounts = Accounts::new("mayfly", Vec::new(), false, [7; 16]);
        let options =
            Options { topology: Topology::Router, advertise: "localhost".into(), test_commands: true };
        Self { store, engine: engine.clone(), mongo: Mongo::new(engine, accounts, options) }
    }

    /// Two collections with documents and an index, an open cursor and an open transaction.
    async fn furnished() -> (Self, i64) {
        Self::furnished_for("").await
    }

    /// The same, with a user for a command about users: their password takes longer than all the rest.
    async fn furnished_for(command: &str) -> (Self, i64) {
        let subject = Self::on(Arc::new(Yielding::new(Arc::new(MemoryStore::new())))).await;
        let documents: Vec<_> = (0..5).map(|n| doc! { "_id": n, "n": n, "when": 1 }).collect();
        subject.must(&doc! { "insert": "c", "documents": documents }).await;
        subject.must(&doc! { "createIndexes": "c", "indexes": [{ "key": { "n": 1 }, "name": "n_1" }] }).await;
        subject.must(&doc! { "create": "capped", "capped": true, "size": 4096, "max": 2 }).await;
        subject.must(&doc! { "insert": "capped", "documents": [{ "_id": 1 }, { "_id": 2 }] }).await;
        if command.contains("User") {
            let user = doc! { "createUser": "u", "pwd": "p", "roles": [], "mechanisms": ["SCRAM-SHA-1"] };
            subject.must(&user).await;
        }
        let found = subject.must(&doc! { "find": "c", "batchSize": 2, "sort": { "_id": 1 } }).await;
        let cursor = found.get_document("cursor").unwrap().get_i64("id").unwrap();
        let mut insert = doc! { "insert": "c", "documents": [{ "_id": "held" }] };
        insert.extend(step(1, 1, true));
        subject.must(&insert).await;
        tasks_end().await;
        (subject, cursor)
    }

    async fn run(&self, command: &Document) -> Document {
        let db = command.get_str("$db").unwrap_or("test").to_owned();
        let mut command = command.clone();
        command.remove("$db");
        self.mongo.run_as_account(&db, &command, Role::Admin).await
    }

    async fn must(&self, command: &Document) -> Document {
        let reply = in_time(&command.to_string(), self.run(command)).await;
        let failed = ["writeErrors", "writeConcernError"].into_iter().any(|name| reply.contains_key(name));
        assert!(reply.get_f64("ok").ok() == Some(1.0) && !failed, "{command}: {reply}");
        reply
    }

    /// All that clients can see.
    async fn state(&self) -> Vec<String> {
        let mut state = Vec::new();
        let databases = self.must(&doc! { "listDatabases": 1, "nameOnly": true, "$db": "admin" }).await;
        for database in databases.get_array("databases").unwrap() {
            let db = database.as_document().unwrap().get_str("name").unwrap();
            let listed = self.must(&doc! { "listCollections": 1, "$db": db }).await;
            for collection in batch(&listed) {
                let mut collection = collection.as_document().unwrap().clone();
                collection.remove("info");
                state.push(format!("{db} {collection}"));
                let name = collection.get_str("name").unwrap();
                if collection.get_str("type").ok() == Some("view") || name == "system.views" {
                    continue;
                }
                if db == "admin" {
                    // Users, whose passwords are salted at random.
                    let count = self.must(&doc! { "count": name, "$db": db }).await;
                    state.push(format!("{count}"));
                    continue;
                }
                for command in [
                    doc! { "listIndexes": name, "$db": db },
                    doc! { "find": name, "sort": { "_id": 1 }, "$db": db },
                ] {
                    let reply = self.must(&command).await;
                    state.extend(batch(&reply).iter().map(Bson::to_string));
                }
            }
        }
        state
    }

    async fn must_be_sound(&self, at: &str) {
        let report = in_time(at, self.engine.check()).await.unwrap();
        assert!(report.is_clean(), "{at}: {:#?}", report.problems);
    }

    /// Nothing is in anybody's way, and nothing is said to be running.
    async fn must_be_free(&self, at: &str) {
        let running = self.must(&doc! { "currentOp": 1, "$all": true, "$db": "admin" }).await;
        let running = running.get_array("inprog").unwrap();
        let is_op = |it: &&Bson| it.as_document().unwrap().get_str("type").ok() == Some("op");
        assert_eq!(running.iter().filter(is_op).count(), 1, "{at}: {running:?}");
        let end = |session: u8| doc! { "endSessions": [{ "id": uuid(session) }] };
        self.must(&end(1)).await;
        let names = self.must(&doc! { "listCollections": 1 }).await;
        for collection in batch(&names) {
            let collection = collection.as_document().unwrap();
            let name = collection.get_str("name").unwrap();
            if collection.get_str("type").ok() == Some("view") || name.starts_with("system.") {
                continue;
            }
            let key = doc! { "key": { "probe": 1 }, "name": "probe_1" };
            self.must(&doc! { "createIndexes": name, "indexes": [key] }).await;
            // In a transaction, so that nobody else may hold the documents.
            let mut update = doc! { "update": name, "updates": [{ "q": {}, "u": { "$set": { "probe": 1 } }, "multi": true }] };
            update.extend(step(7, 1, true));
            self.must(&update).await;
            let mut insert = doc! { "insert": name, "documents": [{ "_id": "probe", "n": 9 }] };
            insert.extend(step(7, 1, false));
            self.must(&insert).await;
            let mut commit = doc! { "commitTransaction": 1, "$db": "admin" };
            commit.extend(step(7, 1, false));
            self.must(&commit).await;
            self.must(&end(7)).await;
            self.must(&doc! { "delete": name, "deletes": [{ "q": { "_id": "probe" }, "limit": 1 }] }).await;
        }
        self.must(&doc! { "create": "fresh" }).await;
        self.must(&doc! { "dropDatabase": 1 }).await;
    }
}

fn batch(reply: &Document) -> Vec<Bson> {
    reply.get_document("cursor").unwrap().get_array("firstBatch").unwrap().clone()
}

fn uuid(session: u8) -> Binary {
    Binary { subtype: BinarySubtype::Uuid, bytes: vec![session; 16] }
}

/// What makes a command a step of a transaction.
fn step(session: u8, number: i64, starts: bool) -> Document {
    let mut step = doc! { "lsid": { "id": uuid(session) }, "txnNumber": number, "autocommit": false };
    if starts {
        step.insert("startTransaction", true);
    }
    step
}

/// Commands that take nothing but their name and leave nothing behind.
const PLAIN: &[&str] = &[
    "buildInfo",
    "connectionStatus",
    "currentOp",
    "endSessions",
    "features",
    "fsync",
    "getCmdLineOpts",
    "getDefaultRWConcern",
    "hello",
    "hostInfo",
    "isMaster",
    "killAllSessions",
    "killAllSessionsByPattern",
    "killSessions",
    "listCommands",
    "listDatabases",
    "listShards",
    "logout",
    "ping",
    "profile",
    "refreshSessions",
    "replSetGetStatus",
    "serverStatus",
    "startSession",
    "testVersion2",
    "top",
    "usersInfo",
    "rolesInfo",
    "whatsmyuri",
];

/// What a command is tried with. A new command has no case, and fails here.
fn cases(name: &str, cursor: i64) -> Vec<Document> {
    let admin = |mut command: Document| {
        command.insert("$db", "admin");
        command
    };
    let plain = Binary { subtype: BinarySubtype::Generic, bytes: b"n,,n=u,r=abc".to_vec() };
    match name {
        plain if PLAIN.contains(&plain) => {
            let list = plain.ends_with("Sessions") || plain.ends_with("Pattern");
            let value =
                if list && plain != "startSession" { Bson::Array(Vec::new()) } else { Bson::Int32(1) };
            let value = if plain == "profile" { Bson::Int32(0) } else { value };
            vec![admin(doc! { plain: value })]
        }
        "saslStart" => vec![doc! { name: 1, "mechanism": "SCRAM-SHA-256", "payload": plain }],
        "saslContinue" => vec![doc! { name: 1, "conversationId": 1, "payload": plain }],
        "authenticate" => vec![doc! { name: 1, "mechanism": "MONGODB-X509" }],
        "getParameter" => vec![admin(doc! { name: 1, "ttlMonitorEnabled": 1 })],
        "setParameter" => vec![admin(doc! { name: 1, "ttlMonitorSleepSecs": 60 })],
        "getLog" => vec![admin(doc! { name: "global" })],
        "setFeatureCompatibilityVersion" => vec![admin(doc! { name: "8.0", "confirm": true })],
        "killOp" => vec![admin(doc! { name: 1, "op": 1_000_000 })],
        "configureFailPoint" => vec![admin(doc! { name: "failCommand", "mode": "off" })],
        "find" => vec![
            doc! { name: "c", "filter": { "n": { "$gt": 1 } } },
            doc! { name: "c", "batchSize": 1 },
            doc! { name: "c", "sort": { "when": 1, "_id": -1 } },
        ],
        "getMore" => vec![doc! { name: cursor, "collection": "c", "batchSize": 2 }],
        "killCursors" => vec![doc! { name: "c", "cursors": [cursor] }],
        "insert" => vec![
            doc! { name: "c", "documents": [{ "_id": 10, "n": 10 }, { "_id": 11 }] },
            doc! { name: "new", "documents": [{ "_id": 1 }] },
        ],
        "update" => vec![
            doc! { name: "c", "updates": [{ "q": { "_id": 1 }, "u": { "$set": { "n": 7 } } }] },
            doc! { name: "new", "updates": [{ "q": { "_id": 1 }, "u": { "$set": { "n": 7 } }, "upsert": true }] },
        ],
        "delete" => vec![doc! { name: "c", "deletes": [{ "q": { "n": 1 }, "limit": 1 }] }],
        "findAndModify" => vec![
            doc! { name: "c", "query": { "_id": 1 }, "update": { "$set": { "n": 7 } } },
            doc! { name: "new", "query": { "_id": 1 }, "update": { "$set": { "n": 7 } }, "upsert": true },
        ],
        "bulkWrite" => vec![admin(doc! {
            name: 1,
            "ops": [{ "insert": 0, "document": { "_id": 1 } }],
            "nsInfo": [{ "ns": "test.new" }],
        })],
        "aggregate" => vec![
            doc! { name: "c", "pipeline": [{ "$group": { "_id": "$when" } }], "cursor": {} },
            doc! { name: "c", "pipeline": [{ "$match": { "n": 1 } }, { "$out": "new" }], "cursor": {} },
            doc! { name: "c", "pipeline": [{ "$match": { "n": 1 } }, { "$out": "capped2" }], "cursor": {} },
            doc! { name: "c", "pipeline": [{ "$match": { "n": 1 } }, { "$merge": "new" }], "cursor": {} },
        ],
        "count" => vec![doc! { name: "c", "query": { "when": 1 } }, doc! { name: "c" }],
        "distinct" => vec![doc! { name: "c", "key": "n" }],
        "explain" => vec![doc! { name: { "find": "c", "filter": { "n": 1 } } }],
        "collStats" | "validate" => vec![doc! { name: "c" }],
        "dbStats" | "checkMetadataConsistency" | "listCollections" => vec![doc! { name: 1 }],
        "dataSize" => vec![doc! { name: "test.c" }],
        "createUser" => {
            vec![doc! { name: "v", "pwd": "p", "roles": ["read"], "mechanisms": ["SCRAM-SHA-1"] }]
        }
        "updateUser" => vec![doc! { name: "u", "pwd": "q" }],
        "grantRolesToUser" | "revokeRolesFromUser" => vec![doc! { name: "u", "roles": ["read"] }],
        "dropUser" => vec![doc! { name: "u" }],
        "dropAllUsersFromDatabase" => vec![doc! { name: 1 }],
        "create" => vec![doc! { name: "new" }, doc! { name: "view", "viewOn": "c", "pipeline": [] }],
        "drop" => vec![doc! { name: "c" }],
        "dropDatabase" => vec![doc! { name: 1 }],
        "renameCollection" => vec![
            admin(doc! { name: "test.c", "to": "test.new" }),
            admin(doc! { name: "test.c", "to": "test.capped", "dropTarget": true }),
        ],
        "createIndexes" => vec![
            doc! { name: "c", "indexes": [{ "key": { "when": 1 }, "name": "when_1" }] },
            doc! { name: "new", "indexes": [{ "key": { "w": 1 }, "name": "w_1", "expireAfterSeconds": 9 }] },
            // Refused, and gone again: five documents have the same.
            doc! { name: "c", "indexes": [{ "key": { "when": 1 }, "name": "when_1", "unique": true }] },
        ],
        "listIndexes" => vec![doc! { name: "c" }],
        "dropIndexes" => vec![doc! { name: "c", "index": "*" }],
        "collMod" => vec![
            doc! { name: "c", "validator": { "n": { "$exists": true } } },
            doc! { name: "c", "index": { "name": "n_1", "expireAfterSeconds": 9 } },
        ],
        "commitTransaction" | "abortTransaction" => {
            let mut end = admin(doc! { name: 1 });
            end.extend(step(1, 1, false));
            vec![end]
        }
        other => panic!("the command {other} has no case in mongo/tests/it/cancel.rs"),
    }
}

/// Refusals of what has happened already: there is one, there is none, the key is taken, the transaction is
/// over, the cursor is closed.
const HAPPENED: &[i32] = &[48, 26, 11000, 11, 51003, 251, 43, 27];

/// One worker, on which the test is a task like others: pipelines block in place, for which a runtime of one
/// thread has no other.
#[test]
fn every_command_is_cut_at_every_poll() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(runtime.spawn(cut_every_command())).unwrap();
}

async fn cut_every_command() {
    for info in COMMANDS {
        let (_, cursor) = Subject::furnished_for(info.name).await;
        for place in 0..cases(info.name, cursor).len() {
            let (subject, cursor) = Subject::furnished_for(info.name).await;
            let before = subject.state().await;
            let command = &cases(info.name, cursor)[place];
            let answer = subject.run(command).await;
            tasks_end().await;
            let after = subject.state().await;
            for polls in 0.. {
                let at = format!("{command} after {polls} polls");
                let (subject, cursor) = Subject::furnished_for(info.name).await;
                let command = &cases(info.name, cursor)[place];
                let ended = cut(subject.run(command), polls).await.is_some();
                tasks_end().await;
                subject.must_be_sound(&at).await;
                let left = subject.state().await;
                // A database, and then a collection in it, is made before a document is written to it. (A
                // capped collection may have one document too many when its writer has left; the next one
                // makes room.)
                let is_empty = |line: &String| line.contains("\"new\"") || line.contains("_id_");
                let on_the_way = || left.iter().filter(|line| !before.contains(line)).all(is_empty);
                assert!(left == before || left == after || on_the_way(), "{at}: half-done: {left:#?}");
                let other = Subject::on(subject.store.clone()).await;
                assert_eq!(left, other.state().await, "{at}: as another server sees it");

                let again = in_time(&at, subject.run(command)).await;
                tasks_end().await;
                let code = |reply: &Document| {
                    let of_write =
                        || reply.get_array("writeErrors").ok()?.first()?.as_document()?.get_i32("code").ok();
                    reply.get_i32("code").ok().or_else(of_write)
                };
                let is_known = code(&again).is_none_or(|code| HAPPENED.contains(&code));
                assert!(
                    code(&again) == code(&answer) || is_known && (left != before || before == after),
                    "{at}: sent again: {again}"
                );
                assert_eq!(subject.state().await, after, "{at}, and again: {again}");
                subject.must_be_sound(&at).await;
                subject.must_be_free(&at).await;
                if ended {
                    break;
                }
            }
        }
    }
}

/// A numbered write that was dropped anywhere, and is sent again as drivers do, happens once.
#[tokio::test]
async fn a_numbered_write_happens_once() {
    let increment = |filter: Document| {
        doc! {
            "update": "c", "updates": [{ "q": filter, "u": { "$inc": { "n": 100 } } }],
            "lsid": { "id": uuid(3) }, "txnNumber": 1_i64,
        }
    };
    for polls in 0.. {
        let (subject, _) = Subject::furnished().await;
        // So that the server knows the session, and does not look into the store for its sake.
        let mut first = increment(doc! { "_id": 0 });
        first.insert("txnNumber", 0_i64);
        subject.must(&first).await;
        let command = increment(doc! { "_id": 1 });
        let ended = cut(subject.run(&command), polls).await.is_some();
        tasks_end().await;
        let again = subject.must(&command).await;
        assert_eq!(again.get_i32("n").ok(), Some(1), "after {polls} polls: {again}");
        let found = subject.must(&doc! { "find": "c", "filter": { "_id": 1 } }).await;
        assert_eq!(
            batch(&found)[0].as_document().unwrap().get_i32("n").ok(),
            Some(101),
            "after {polls} polls"
        );
        if ended {
            break;
        }
    }
}

/// A commit that was dropped anywhere, and is sent again, has happened, once. A step that was dropped aborts
/// its transaction, and what it wrote is free.
#[tokio::test]
async fn a_transaction_is_committed_or_aborted() {
    let with = |mut command: Document, starts: bool| {
        command.extend(step(3, 1, starts));
        command
    };
    let update = doc! { "update": "c", "updates": [{ "q": { "_id": 1 }, "u": { "$inc": { "n": 100 } } }] };
    let commit = with(doc! { "commitTransaction": 1, "$db": "admin" }, false);
    let value = async |subject: &Subject| {
        let found = subject.must(&doc! { "find": "c", "filter": { "_id": 1 } }).await;
        batch(&found)[0].as_document().unwrap().get_i32("n").unwrap()
    };
    for polls in 0.. {
        let (subject, _) = Subject::furnished().await;
        subject.must(&with(update.clone(), true)).await;
        let ended = cut(subject.run(&commit), polls).await.is_some();
        // Also while the first is still under way.
        subject.must(&commit).await;
        assert_eq!(value(&subject).await, 101, "after {polls} polls");
        subject.must(&update).await;
        assert_eq!(value(&subject).await, 201, "after {polls} polls, and free");
        if ended {
            break;
        }
    }
    for polls in 0.. {
        let (subject, _) = Subject::furnished().await;
        let ended = cut(subject.run(&with(update.clone(), true)), polls).await.is_some();
        tasks_end().await;
        if ended {
            break;
        }
        let reply = subject.run(&commit).await;
        assert_eq!(reply.get_i32("code").ok(), Some(251), "after {polls} polls: {reply}");
        subject.must(&update).await;
        assert_eq!(value(&subject).await, 101, "after {polls} polls");
    }
}

/// A cursor whose batch was dropped on the way is whole, or closed: nobody misses a document.
#[tokio::test]
async fn a_cursor_has_no_gap() {
    let (subject, _) = Subject::furnished().await;
    // More than is read at a time, so that a batch takes several looks into the store.
    let documents: Vec<_> = (0..2000).map(|n| doc! { "_id": n }).collect();
    subject.must(&doc! { "insert": "many", "documents": documents }).await;
    for polls in 0.. {
        let found = subject.must(&doc! { "find": "many", "batchSize": 2 }).await;
        let cursor = found.get_document("cursor").unwrap().get_i64("id").unwrap();
        let more = doc! { "getMore": cursor, "collection": "many", "batchSize": 1500 };
        let ended = cut(subject.run(&more), polls).await.is_some();
        if ended {
            assert!(polls > 2, "a batch takes one look");
            break;
        }
        let reply = subject.run(&more).await;
        match reply.get_i32("code") {
            Ok(code) => assert_eq!(code, 43, "after {polls} polls: {reply}"),
            Err(_) => {
                let next = reply.get_document("cursor").unwrap().get_array("nextBatch").unwrap();
                assert_eq!(
                    next[0].as_document().unwrap().get_i32("_id").ok(),
                    Some(2),
                    "after {polls} polls"
                );
            }
        }
    }
}
