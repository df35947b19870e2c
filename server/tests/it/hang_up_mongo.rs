//! Clients of the MongoDB port that leave in the middle: at every byte of what they send and of what they
//! are sent. A command that came whole is carried out though its client has left; one that did not is not.
//! What is left open, a cursor or a transaction, is in nobody's way.

use crate::harness::*;
use crate::mongo_client::*;
use bson::{Document, doc};
use mayfly_cosmos::auth::EMULATOR_KEY;
use mayfly_server::listen::Limits;
use mayfly_server::node::Node;
use std::net::SocketAddr;
use tokio::time::timeout;

/// Documents of the collection that all commands work on.
const DOCUMENTS: usize = 5;

/// A server with files, since a commit there is waited for, and a client of it that stays.
struct Served {
    server: Running,
    address: SocketAddr,
    stays: MongoClient,
    /// Clients so far, that one among them.
    came: u32,
}

impl Served {
    async fn start(directory: &tempfile::TempDir) -> Self {
        let toml = format!("data-dir = '{}'\ndev-clock = true", directory.path().display());
        let (server, address) = start_with_mongo::<Node>(&toml, Limits::default()).await;
        while server.get("/ready").await.0 != 200 {}
        let stays = MongoClient::connect(address).await;
        Self { server, address, stays, came: 1 }
    }

    /// The collection, and nothing else.
    async fn furnish(&mut self) {
        self.stays.must(&doc! { "dropDatabase": 1 }).await;
        let documents: Vec<_> = (0..DOCUMENTS as i32).map(|n| doc! { "_id": n, "n": n, "was": n }).collect();
        self.stays.must(&doc! { "insert": "c", "documents": documents }).await;
    }

    /// Makes a command possible, again.
    async fn prepare(&mut self, case: &Case) {
        for command in &(case.before)() {
            self.stays.must(command).await;
        }
    }

    /// A client that has asked what a case begins with, and what it says last. It will say some of it.
    async fn client(&mut self, case: &Case) -> (MongoClient, Vec<u8>) {
        self.came += 1;
        let mut client = MongoClient::connect(self.address).await;
        let mut replies = Vec::new();
        for command in (case.opening)(self.came) {
            replies.push(client.must(&command).await);
        }
        (client, (case.last)(self.came, &replies))
    }

    /// A command to its end; how long it is, and its answers.
    async fn whole(&mut self, case: &Case) -> (usize, usize) {
        let (mut client, message) = self.client(case).await;
        client.send(&message).await;
        let mut answered = 0;
        for _ in 0..case.answers {
            let answer = client.answer().await;
            let reply = document_in(&answer);
            assert!(is_good(&reply), "{}: {reply}", case.name);
            answered += answer.len();
        }
        drop(client);
        if case.answers == 0 {
            self.is_alone().await;
        }
        (message.len(), answered)
    }

    /// A message that has been sent before, whole or not, is sent again.
    async fn happens_once(&mut self, case: &Case, message: &[u8], at: &str) {
        self.stays.send(message).await;
        let reply = document_in(&self.stays.answer().await);
        assert!(
            is_good(&reply) && reply.get_i32("n").ok() == Some(1),
            "{} after {at}, again: {reply}",
            case.name
        );
        assert_eq!(self.look(case).await, case.rows[1], "{} after {at}, and again", case.name);
    }

    /// How much of what a case is about is there.
    async fn look(&mut self, case: &Case) -> usize {
        first_batch(&self.stays.must(&(case.look)()).await).len()
    }

    async fn status(&mut self) -> Document {
        self.stays.must(&doc! { "serverStatus": 1 }).await
    }

    /// Waits until the server has noticed that everybody else has left, and does nothing for them any more.
    async fn is_alone(&mut self) {
        let alone = async {
            loop {
                let status = self.status().await;
                let connections = status.get_document("connections").unwrap();
                let (total, current) = (connections.get_i64("totalCreated"), connections.get_i32("current"));
                if total.unwrap() == i64::from(self.came) && current.unwrap() == 1 {
                    return;
                }
            }
        };
        timeout(PATIENCE, alone).await.expect("connections end with their clients");
        let running = self.stays.must(&doc! { "currentOp": 1, "$all": true, "$db": "admin" }).await;
        let running = running.get_array("inprog").unwrap().iter().map(|it| it.as_document().unwrap());
        let ops: Vec<_> = running.filter(|it| it.get_str("type").ok() == Some("op")).collect();
        assert_eq!(ops.len(), 1, "{}", ops.iter().map(|op| op.to_string() + "\n").collect::<String>());
    }

    async fn advance(&self, seconds: u64) {
        let mut client =
            self.server.connect(mayfly_server::connection::Scheme::Http, hyper::Version::HTTP_11).await;
        let (mut parts, _) = request("POST", "/_mayfly/clock").into_parts();
        parts.headers.insert("authorization", format!("Bearer {EMULATOR_KEY}").parse().unwrap());
        let body = format!(r#"{{"advanceSeconds":{seconds}}}"#).into();
        let (status, answer) = text(client.send(hyper::Request::from_parts(parts, body)).await).await;
        assert_eq!(status, 200, "{answer}");
    }
}

/// A command whose client leaves. Each client has a number, so that none meets what another has left open.
struct Case {
    name: &'static str,
    /// What makes it possible, done by the client that stays.
    before: fn() -> Vec<Document>,
    /// What the client asks for first, and is answered.
    opening: fn(u32) -> Vec<Document>,
    /// What it says last, to be cut.
    last: fn(u32, &[Document]) -> Vec<u8>,
    /// Answers to that; some are a stream.
    answers: usize,
    /// Asks for the rows that the command makes or takes away.
    look: fn() -> Document,
    /// How many those are before and after.
    rows: [usize; 2],
    /// Whether the client may send it again, as drivers do, for it to happen once.
    is_retryable: bool,
}

const fn case(name: &'static str, last: fn(u32, &[Document]) -> Vec<u8>) -> Case {
    Case {
        name,
        before: || Vec::new(),
        opening: |_| Vec::new(),
        last,
        answers: 1,
        look: || doc! { "find": "c" },
        rows: [DOCUMENTS; 2],
        is_retryable: false,
    }
}

/// A collection that is there, with one document.
fn present(name: &str) -> Document {
    doc! { "update": name, "updates": [{ "q": { "_id": 1 }, "u": { "$set": { "n": 1 } }, "upsert": true }] }
}

fn collections_called(name: &str) -> Document {
    doc! { "listCollections": 1, "filter": { "name": name } }
}

fn with_n(n: i32) -> Document {
    doc! { "find": "c", "filter": { "n": n } }
}

fn with_id(id: impl Into<bson::Bson>) -> Document {
    doc! { "find": "c", "filter": { "_id": id.into() } }
}

/// What transactions have put into the collection.
fn committed() -> Document {
    doc! { "find": "c", "filter": { "_id": { "$regex": "^txn" } } }
}

/// Removes documents that a client before may have made.
fn without(filter: Document) -> Vec<Document> {
    vec![doc! { "delete": "c", "deletes": [{ "q": filter, "limit": 0 }] }]
}

/// Gives documents back the numbers they had.
fn restored() -> Vec<Document> {
    vec![doc! { "update": "c", "updates": [{ "q": {}, "u": [{ "$set": { "n": "$was" } }], "multi": true }] }]
}

/// A step of a transaction in a client's session.
fn step(command: Document, client: u32, starts: bool) -> Document {
    let mut command = in_session(command, client, 1);
    command.insert("autocommit", false);
    if starts {
        command.insert("startTransaction", true);
    }
    command
}

fn insert_in_transaction(collection: &str, client: u32) -> Document {
    let insert = doc! { "insert": collection, "documents": [{ "_id": format!("txn {client}") }] };
    step(insert, client, true)
}

fn end_of_transaction(command: &str, client: u32) -> Vec<u8> {
    message(&step(doc! { command: 1, "$db": "admin" }, client, false), 0)
}

fn cursor_in(replies: &[Document]) -> i64 {
    replies[0].get_document("cursor").unwrap().get_i64("id").unwrap()
}

fn find_two(_: u32) -> Vec<Document> {
    vec![doc! { "find": "c", "batchSize": 2 }]
}

const CASES: &[Case] = &[
    Case {
        before: || without(doc! { "new": true }),
        look: || doc! { "find": "c", "filter": { "new": true } },
        rows: [0, 2],
        ..case("insert", |_, _| {
            let documents = [doc! { "_id": 10, "new": true }, doc! { "_id": 11, "new": true }];
            message_with(&doc! { "insert": "c" }, "documents", &documents)
        })
    },
    Case {
        before: || without(doc! { "new": true }),
        answers: 0,
        look: || doc! { "find": "c", "filter": { "new": true } },
        rows: [0, 1],
        ..case("insert that nobody waits for", |_, _| {
            let documents = [doc! { "_id": 10, "new": true }].to_vec();
            message(&doc! { "insert": "c", "documents": documents, "writeConcern": { "w": 0 } }, MORE_TO_COME)
        })
    },
    Case {
        before: || without(doc! { "_id": "once" }),
        look: || with_id("once"),
        rows: [0, 1],
        is_retryable: true,
        ..case("insert with a number", |client, _| {
            let insert = doc! { "insert": "c", "documents": [{ "_id": "once" }] };
            message(&in_session(insert, client, 1), 0)
        })
    },
    Case {
        before: restored,
        look: || with_n(100),
        rows: [0, 1],
        is_retryable: true,
        ..case("update with a number", |client, _| {
            let update =
                doc! { "update": "c", "updates": [{ "q": { "_id": 0 }, "u": { "$inc": { "n": 100 } } }] };
            message(&in_session(update, client, 1), 0)
        })
    },
    Case {
        before: restored,
        look: || with_n(7),
        rows: [0, DOCUMENTS],
        ..case("update", |_, _| {
            let updates = [doc! { "q": {}, "u": { "$set": { "n": 7 } }, "multi": true }];
            message_with(&doc! { "update": "c" }, "updates", &updates)
        })
    },
    Case {
        before: restored,
        look: || with_n(7),
        rows: [0, 1],
        ..case("findAndModify", |_, _| {
            let update = doc! { "$set": { "n": 7 } };
            message(&doc! { "findAndModify": "c", "query": { "_id": 1 }, "update": update, "new": true }, 0)
        })
    },
    Case {
        before: || {
            let upsert =
                |id: i32| doc! { "q": { "_id": id }, "u": { "$set": { "old": true } }, "upsert": true };
            vec![doc! { "update": "c", "updates": [upsert(20), upsert(21)] }]
        },
        look: || doc! { "find": "c", "filter": { "old": true } },
        rows: [2, 0],
        ..case("delete", |_, _| {
            message_with(&doc! { "delete": "c" }, "deletes", &[doc! { "q": { "old": true }, "limit": 0 }])
        })
    },
    Case {
        before: || without(doc! { "_id": "bulk" }),
        look: || with_id("bulk"),
        rows: [0, 1],
        ..case("bulkWrite", |_, _| {
            let ops = [doc! { "insert": 0, "document": { "_id": "bulk" } }];
            message(
                &doc! { "bulkWrite": 1, "ops": ops.to_vec(), "nsInfo": [{ "ns": "d.c" }], "$db": "admin" },
                0,
            )
        })
    },
    case("find", |_, _| message(&doc! { "find": "c", "batchSize": 2 }, 0)),
    Case {
        opening: find_two,
        ..case("getMore", |_, replies| {
            message(&doc! { "getMore": cursor_in(replies), "collection": "c", "batchSize": 2 }, 0)
        })
    },
    Case {
        opening: find_two,
        answers: 3,
        ..case("getMore of a stream", |_, replies| {
            let more = doc! { "getMore": cursor_in(replies), "collection": "c", "batchSize": 1 };
            message(&more, EXHAUST_ALLOWED)
        })
    },
    Case {
        before: || vec![doc! { "drop": "out" }],
        look: || doc! { "find": "out" },
        rows: [0, DOCUMENTS],
        ..case("$out", |_, _| {
            message(&doc! { "aggregate": "c", "pipeline": [{ "$out": "out" }], "cursor": {} }, 0)
        })
    },
    Case {
        before: || vec![doc! { "delete": "merged", "deletes": [{ "q": {}, "limit": 0 }] }],
        look: || doc! { "find": "merged" },
        rows: [0, DOCUMENTS],
        ..case("$merge", |_, _| {
            message(&doc! { "aggregate": "c", "pipeline": [{ "$merge": "merged" }], "cursor": {} }, 0)
        })
    },
    Case {
        before: || vec![doc! { "dropIndexes": "c", "index": "*" }],
        look: || doc! { "listIndexes": "c" },
        rows: [1, 3],
        ..case("createIndexes", |_, _| {
            let indexes = [
                doc! { "key": { "n": 1 }, "name": "n_1" },
                doc! { "key": { "was": -1 }, "name": "was", "unique": true },
            ];
            message(&doc! { "createIndexes": "c", "indexes": indexes.to_vec() }, 0)
        })
    },
    Case {
        before: || vec![doc! { "createIndexes": "c", "indexes": [{ "key": { "n": 1 }, "name": "n_1" }] }],
        look: || doc! { "listIndexes": "c" },
        rows: [2, 1],
        ..case("dropIndexes", |_, _| message(&doc! { "dropIndexes": "c", "index": "*" }, 0))
    },
    Case {
        before: || vec![doc! { "drop": "new" }],
        look: || collections_called("new"),
        rows: [0, 1],
        ..case("create", |_, _| message(&doc! { "create": "new" }, 0))
    },
    Case {
        before: || vec![present("old")],
        look: || collections_called("old"),
        rows: [1, 0],
        ..case("drop", |_, _| message(&doc! { "drop": "old" }, 0))
    },
    Case {
        before: || vec![doc! { "drop": "renamed" }, present("old")],
        look: || doc! { "find": "renamed" },
        rows: [0, 1],
        ..case("renameCollection", |_, _| {
            message(&doc! { "renameCollection": "d.old", "to": "d.renamed", "$db": "admin" }, 0)
        })
    },
    // Nothing of a transaction is there before its end, nor is the collection that one of these makes.
    Case {
        look: || committed(),
        rows: [0, 0],
        ..case("first step of a transaction", |client, _| message(&insert_in_transaction("c", client), 0))
    },
    Case {
        look: || doc! { "listCollections": 1 },
        rows: [1, 1],
        ..case("first step that makes a collection", |client, _| {
            message(&insert_in_transaction(&format!("made {client}"), client), 0)
        })
    },
    Case {
        before: || without(doc! { "_id": { "$regex": "^txn" } }),
        opening: |client| vec![insert_in_transaction("c", client)],
        look: || committed(),
        rows: [0, 1],
        ..case("commitTransaction", |client, _| end_of_transaction("commitTransaction", client))
    },
    Case {
        opening: |client| vec![insert_in_transaction("c", client)],
        look: || committed(),
        rows: [0, 0],
        ..case("abortTransaction", |client, _| end_of_transaction("abortTransaction", client))
    },
    case("hello", |_, _| message(&doc! { "hello": 1, "helloOk": true, "$db": "admin" }, 0)),
    Case {
        opening: |_| vec![doc! { "hello": 1, "$db": "admin" }],
        answers: 2,
        ..case("hello of a stream", |_, replies| {
            let known = replies[0].get_document("topologyVersion").unwrap().clone();
            let hello = doc! { "hello": 1, "topologyVersion": known, "maxAwaitTimeMS": 1, "$db": "admin" };
            message(&hello, EXHAUST_ALLOWED)
        })
    },
    case("hello as a query", |_, _| query(&doc! { "isMaster": 1, "helloOk": true })),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_may_leave_at_any_byte() {
    let directory = tempfile::tempdir().unwrap();
    let mut served = Served::start(&directory).await;
    for case in CASES {
        served.furnish().await;
        served.prepare(case).await;
        let [before, after] = case.rows;
        let (asked, answered) = served.whole(case).await;
        served.prepare(case).await;
        // One that says nothing is no client yet.
        for sent in 1..asked {
            let (mut client, message) = served.client(case).await;
            client.send(&message[..sent]).await;
            drop(client);
            if case.is_retryable {
                served.happens_once(case, &message, &format!("{sent} bytes")).await;
                served.prepare(case).await;
            }
        }
        served.is_alone().await;
        assert_eq!(served.look(case).await, before, "{}: part of a message", case.name);

        for read in 0..=answered {
            served.prepare(case).await;
            let (mut client, message) = served.client(case).await;
            client.send(&message).await;
            client.read(read).await;
            drop(client);
            let at = format!("{read} bytes of the answer");
            if read == 0 {
                served.is_alone().await;
            }
            assert_eq!(served.look(case).await, after, "{} after {at}", case.name);
            if case.is_retryable {
                served.happens_once(case, &message, &at).await;
            }
        }
        served.is_alone().await;
    }
    // And now from the start, as if nobody had been there.
    for case in CASES {
        served.furnish().await;
        served.prepare(case).await;
        served.whole(case).await;
        assert_eq!(served.look(case).await, case.rows[1], "{}", case.name);
    }
    served.server.stop().await.0.unwrap();
}

/// A cursor outlives the connection it came on: whoever knows it goes on with it, and misses no document
/// behind a client that left. One that nobody uses is closed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cursor_that_was_left_has_no_gap() {
    let directory = tempfile::tempdir().unwrap();
    let mut served = Served::start(&directory).await;
    served.furnish().await;
    let more = |cursor: i64| doc! { "getMore": cursor, "collection": "c", "batchSize": 2 };
    let length = message(&more(i64::MAX), 0).len();
    for sent in 0..=length {
        let found = served.stays.must(&find_two(0)[0]).await;
        let cursor = cursor_in(&[found]);
        let mut client = MongoClient::connect(served.address).await;
        client.send(&message(&more(cursor), 0)[..sent]).await;
        served.came += u32::from(sent > 0);
        drop(client);
        if sent == length {
            served.is_alone().await;
        }
        let reply = served.stays.ask(&more(cursor)).await;
        let next = || reply.get_document("cursor").unwrap().get_array("nextBatch").unwrap();
        match reply.get_i32("code") {
            // The batch that nobody got is lost, and with it the cursor.
            Ok(code) => assert!(sent == length && code == 43, "after {sent} bytes: {reply}"),
            Err(_) => {
                let first = next()[0].as_document().unwrap().get_i32("_id").unwrap();
                assert!(first == 2 || sent == length && first == 4, "after {sent} bytes: {reply}");
            }
        }
    }
    let cursors = |status: Document| {
        let open = status.get_document("metrics").unwrap().get_document("cursor").unwrap();
        open.get_document("open").unwrap().get_i64("total").unwrap()
    };
    assert!(cursors(served.status().await) >= length as i64);
    served.advance(3600).await;
    let closed = async { while cursors(served.status().await) != 0 {} };
    timeout(PATIENCE, closed).await.expect("cursors that nobody uses are closed");
    served.server.stop().await.0.unwrap();
}

/// A transaction whose client has left holds what it wrote until its time is over: others are told at once,
/// or wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_that_was_left_ends() {
    let directory = tempfile::tempdir().unwrap();
    let mut served = Served::start(&directory).await;
    served.furnish().await;
    let set =
        |n: i32| doc! { "update": "c", "updates": [{ "q": { "_id": 0 }, "u": { "$set": { "n": n } } }] };
    let mut left = MongoClient::connect(served.address).await;
    left.must(&step(set(10), 1, true)).await;
    let insert = |name: &str| doc! { "insert": name, "documents": [{ "_id": "new" }] };
    left.must(&step(insert("c"), 1, false)).await;
    left.must(&step(insert("made"), 1, false)).await;
    drop(left);
    let refused = served.stays.ask(&step(set(20), 2, true)).await;
    let labels = refused.get_array("errorLabels").unwrap();
    assert_eq!(refused.get_i32("code").ok(), Some(112), "{refused}");
    assert_eq!(*labels, ["TransientTransactionError".into()], "{refused}");
    assert_eq!(first_batch(&served.stays.must(&with_n(0)).await).len(), 1, "nothing was committed");

    // A write outside of transactions waits for it, and no longer than it lasts.
    let mut waits = MongoClient::connect(served.address).await;
    waits.send(&message(&set(30), 0)).await;
    served.advance(61).await;
    let reply = document_in(&waits.answer().await);
    assert!(is_good(&reply) && reply.get_i32("n").ok() == Some(1), "{reply}");
    served.stays.must(&step(set(40), 3, true)).await;
    served.stays.must(&step(insert("c"), 3, false)).await;
    served.stays.must(&step(insert("made"), 3, false)).await;
    served.stays.must(&step(doc! { "commitTransaction": 1, "$db": "admin" }, 3, false)).await;
    for (command, rows) in [(with_n(40), 1), (with_id("new"), 1), (doc! { "find": "made" }, 1)] {
        assert_eq!(first_batch(&served.stays.must(&command).await).len(), rows, "{command}");
    }
    // Whoever comes back is told that it is over.
    let reply = served.stays.ask(&step(set(50), 1, false)).await;
    assert_eq!(reply.get_i32("code").ok(), Some(251), "{reply}");
    let open = served.status().await.get_document("transactions").unwrap().get_i64("currentOpen").unwrap();
    assert_eq!(open, 0);
    served.server.stop().await.0.unwrap();
}

/// Who waits for what may never come and leaves is waited for no longer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_waits_for_who_has_left() {
    let directory = tempfile::tempdir().unwrap();
    let mut served = Served::start(&directory).await;
    served.furnish().await;
    let mut waits = MongoClient::connect(served.address).await;
    let stream = doc! { "aggregate": "c", "pipeline": [{ "$changeStream": {} }], "cursor": {} };
    let cursor = cursor_in(&[waits.must(&stream).await]);
    waits.send(&message(&doc! { "getMore": cursor, "collection": "c", "maxTimeMS": 600_000 }, 0)).await;
    let mut monitor = MongoClient::connect(served.address).await;
    let known = monitor
        .must(&doc! { "hello": 1, "$db": "admin" })
        .await
        .get_document("topologyVersion")
        .unwrap()
        .clone();
    let hello = doc! { "hello": 1, "topologyVersion": known, "maxAwaitTimeMS": 600_000, "$db": "admin" };
    monitor.send(&message(&hello, EXHAUST_ALLOWED)).await;
    served.came += 2;
    let waiting = async {
        loop {
            let current = served.stays.must(&doc! { "currentOp": 1, "$db": "admin" }).await;
            if current.get_array("inprog").unwrap().len() == 3 {
                return;
            }
        }
    };
    timeout(PATIENCE, waiting).await.expect("both wait");
    drop((waits, monitor));
    served.is_alone().await;
    served.server.stop().await.0.unwrap();
}
