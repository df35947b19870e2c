//! Change streams over a restart: a server that knows nothing but what is stored goes on where another was.

use bson::{Bson, Document, doc};
use mayfly_value::bson;

use crate::commands::{Ours, Server};

/// A stream that a server has open.
struct Stream<'a> {
    server: &'a Ours,
    id: i64,
    name: String,
    events: Vec<Document>,
}

impl<'a> Stream<'a> {
    fn open(server: &'a Ours, collection: Option<&str>, options: Document) -> Self {
        let target = collection.map_or(Bson::from(1), Bson::from);
        let pipeline = vec![doc! { "$changeStream": options }];
        let answer =
            server.command(&doc! { "aggregate": target, "pipeline": pipeline, "cursor": { "batchSize": 0 } });
        let cursor = answer.get_document("cursor").unwrap_or_else(|_| panic!("{answer}"));
        let name = cursor.get_str("ns").unwrap().strip_prefix("test.").unwrap().to_owned();
        Self { server, id: cursor.get_i64("id").unwrap(), name, events: Vec::new() }
    }

    /// Takes all there is.
    fn take(mut self) -> Vec<Document> {
        while self.id != 0 {
            let more = doc! { "getMore": self.id, "collection": &self.name, "maxTimeMS": 1 };
            let answer = self.server.command(&more);
            let cursor = answer.get_document("cursor").unwrap_or_else(|_| panic!("{answer}"));
            self.id = cursor.get_i64("id").unwrap();
            let batch = cursor.get_array("nextBatch").unwrap();
            if batch.is_empty() {
                break;
            }
            self.events.extend(batch.iter().filter_map(|event| event.as_document().cloned()));
        }
        self.events
    }
}

fn told(events: &[Document]) -> String {
    let word = |event: &Document| {
        let key = event.get_document("documentKey").ok().and_then(|key| key.get_i32("_id").ok());
        let name = event.get_document("ns").ok().and_then(|ns| ns.get_str("coll").ok());
        let what = key.map(|key| format!(" {key}")).or(name.map(|name| format!(" {name}")));
        format!("{}{}", event.get_str("operationType").unwrap(), what.unwrap_or_default())
    };
    events.iter().map(word).collect::<Vec<_>>().join(", ")
}

fn run(server: &Ours, commands: &[Document]) {
    for command in commands {
        let answer = server.command(command);
        assert_eq!(answer.get_f64("ok").ok(), Some(1.0), "{command}: {answer}");
        assert!(!answer.contains_key("writeErrors"), "{command}: {answer}");
    }
}

fn insert(name: &str, id: i32) -> Document {
    doc! { "insert": name, "documents": [{ "_id": id }] }
}

/// All that can happen to a database, and what an expanded stream tells of it.
fn life() -> (Vec<Document>, &'static str) {
    let index = doc! { "key": { "a": 1 }, "name": "a_1" };
    let commands = vec![
        insert("c", 1),
        doc! { "createIndexes": "c", "indexes": [index] },
        insert("c", 2),
        insert("d", 3),
        doc! { "create": "v", "viewOn": "c", "pipeline": [] },
        doc! { "update": "c", "updates": [{ "q": { "_id": 1 }, "u": { "$set": { "a": 1 } } }] },
        doc! { "drop": "d" },
        doc! { "collMod": "c", "validator": { "a": 1 } },
        doc! { "delete": "c", "deletes": [{ "q": { "_id": 2 }, "limit": 1 }] },
        doc! { "dropDatabase": 1 },
    ];
    let told = "create c, insert 1, createIndexes c, insert 2, create d, insert 3, create v, update 1, drop d, modify c, \
                delete 2, drop c, drop v, dropDatabase, invalidate";
    (commands, told)
}

#[test]
fn every_event_is_told_once_whichever_was_the_last_before_a_restart() {
    let first = Ours::start();
    let stream = Stream::open(&first, None, doc! { "showExpandedEvents": true });
    let (commands, expected) = life();
    run(&first, &commands);
    let events = stream.take();
    assert_eq!(told(&events), expected);
    let second = first.restarted();
    for place in 0..events.len() - 1 {
        let token = events[place].get_document("_id").unwrap().clone();
        let options = doc! { "showExpandedEvents": true, "resumeAfter": token };
        assert_eq!(told(&Stream::open(&second, None, options).take()), told(&events[place + 1..]));
    }
    let time = events[0].get("clusterTime").unwrap().clone();
    let options = doc! { "showExpandedEvents": true, "startAtOperationTime": time };
    assert_eq!(told(&Stream::open(&second, None, options).take()), expected);
}

#[test]
fn what_is_made_after_a_restart_is_watched_from_its_beginning() {
    let first = Ours::start();
    run(&first, &[insert("other", 0)]);
    let whole = Stream::open(&first, None, doc! {});
    let one = Stream::open(&first, Some("c"), doc! {});
    run(&first, &[insert("other", 1)]);
    let events = whole.take();
    assert_eq!((told(&events), told(&one.take())), ("insert 1".to_owned(), String::new()));
    let token = events[0].get_document("_id").unwrap().clone();
    let second = first.restarted();
    run(&second, &[insert("c", 2), insert("other", 3), insert("c", 4), doc! { "drop": "c" }]);
    let whole = Stream::open(&second, None, doc! { "resumeAfter": token.clone() });
    assert_eq!(told(&whole.take()), "insert 2, insert 3, insert 4, drop c");
    let one = Stream::open(&second, Some("c"), doc! { "resumeAfter": token });
    assert_eq!(told(&one.take()), "insert 2, insert 4, drop c, invalidate");
}

#[test]
fn a_collection_that_is_made_again_is_another_one() {
    let server = Ours::start();
    let stream = Stream::open(&server, Some("c"), doc! {});
    run(&server, &[insert("c", 1), doc! { "drop": "c" }, insert("c", 2)]);
    let events = stream.take();
    assert_eq!(told(&events), "insert 1, drop c, invalidate");
    let token = events[2].get_document("_id").unwrap().clone();
    assert_eq!(told(&Stream::open(&server, Some("c"), doc! { "startAfter": token }).take()), "insert 2");
}

#[test]
fn nothing_is_noted_for_nobody() {
    let server = Ours::start();
    let (commands, _) = life();
    run(&server, &commands);
    let options = doc! { "showExpandedEvents": true, "startAtOperationTime": bson::Timestamp { time: 1, increment: 1 } };
    assert_eq!(told(&Stream::open(&server, None, options).take()), "");
}

#[test]
fn a_stream_that_is_behind_what_is_kept_is_refused() {
    let mut server = Ours::start();
    run(&server, &[insert("other", 0)]);
    let stream = Stream::open(&server, None, doc! {});
    run(&server, &[insert("c", 1), insert("c", 2)]);
    let events = stream.take();
    assert_eq!(told(&events), "insert 1, insert 2");
    let resumed = |server: &Ours, event: &Document| {
        let options = doc! { "resumeAfter": event.get_document("_id").unwrap() };
        let pipeline = vec![doc! { "$changeStream": options }];
        server.command(&doc! { "aggregate": 1, "pipeline": pipeline, "cursor": {} })
    };
    Server::advance(&mut server, 25 * 60 * 60);
    run(&server, &[insert("c", 3)]);
    // Whoever looks at the log sees to it that what is too old is forgotten.
    assert_eq!(told(&Stream::open(&server, None, doc! {}).take()), "");
    assert_eq!(resumed(&server, &events[0]).get_i32("code").ok(), Some(286));
    // The last event that is gone was told to this one.
    let options = doc! { "resumeAfter": events[1].get_document("_id").unwrap() };
    assert_eq!(told(&Stream::open(&server, None, options).take()), "insert 3");
    let begun = |time: u32| {
        let options = doc! { "startAtOperationTime": bson::Timestamp { time, increment: 1 } };
        let pipeline = vec![doc! { "$changeStream": options }];
        server.command(&doc! { "aggregate": 1, "pipeline": pipeline, "cursor": {} })
    };
    let then = events[1].get_timestamp("clusterTime").unwrap().time;
    assert_eq!(begun(then).get_i32("code").ok(), Some(286));
    assert!(begun(then + 60).contains_key("cursor"));
}
