//! Requests that overlap: one decides on what another has just changed.
//!
//! Nothing runs at the same time here; a test holds what a slow request would hold (a container it looked up, a time
//! it took) and lets a quick one go by.

use std::sync::Arc;

use mayfly_engine::{
    Direction, DocumentId, Error, HashRange, InvalidTtl, Operation, Pace, PageLimit, Timestamp,
};
use mayfly_testkit::{
    Backend, Faulty, Ground, World,
    faulty::{Calls, Fault},
    recorder::Write,
    world::{START, definition, definition_with_ttl, document, id_of, index_access, key_of_id, text_id},
};
use mayfly_value::path::Path;

const ALL: PageLimit = PageLimit { rows: 100, bytes: usize::MAX };

/// A scan by an index whose policy was replaced meanwhile sees what was written since, and nothing that is gone.
#[tokio::test]
async fn a_scan_with_a_container_of_yesterday() {
    let world = World::new(Backend::Mirrored).await;
    let before = world.create_container(definition("c", "/id")).await.unwrap();
    world.create("c", r#"{"id":"a","n":1}"#).await.unwrap();
    world.create("c", r#"{"id":"b","n":2}"#).await.unwrap();
    world.change("c", |definition| definition.indexing.excluded = vec![]).await.unwrap();
    world.delete("c", "a").await.unwrap();
    world.create("c", r#"{"id":"x","n":3}"#).await.unwrap();
    for reaped in [false, true] {
        if reaped {
            world.build_indexes().await.unwrap();
            world.reap().await.unwrap();
        }
        let now = world.now().await;
        let access = index_access("/n");
        let page = world.engine().scan(&before, &access, Direction::Forward, None, ALL, now).await.unwrap();
        let mut ids: Vec<_> = page.found.iter().map(|found| text_id(&found.record)).collect();
        ids.sort();
        assert_eq!(ids, ["b", "x"], "reaped: {reaped}");
    }
}

/// The log of a container that was changed since the caller looked it up.
#[tokio::test]
async fn a_log_with_a_container_of_yesterday() {
    let world = World::new(Backend::Mirrored).await;
    let mut definition = definition_with_ttl("c", Some(5));
    definition.log_minutes = Some(10);
    let before = world.create_container(definition).await.unwrap();
    world.create("c", r#"{"id":"a"}"#).await.unwrap();
    world.set_ttl("c", Some(6)).await.unwrap();
    world.advance(6);
    let now = world.now().await;
    let page = world.engine().log(&before, 0, 0, &HashRange::all(), 100, now).await.unwrap();
    assert_eq!(page.events.len(), 2);
}

/// A write decided under the old definition is decided again under the new one.
#[tokio::test]
async fn a_write_with_a_container_of_yesterday() {
    let world = World::new(Backend::Mirrored).await;
    let before = world.create_container(definition("c", "/id")).await.unwrap();
    world.set_ttl("c", Some(10)).await.unwrap();
    let now = world.now().await;
    let write = |json: &str| {
        let body = document(json);
        let (id, key) = (id_of(&body), key_of_id("a"));
        let operation = Operation::Create { id, body };
        let engine = world.engine().clone();
        let before = before.clone();
        async move { engine.write(&before, &key, operation, InvalidTtl::Refuse, now).await }
    };
    assert!(write(r#"{"id":"a","ttl":0}"#).await.is_err(), "time to live is on by now");
    write(r#"{"id":"a"}"#).await.unwrap();
    world.advance(10);
    assert_eq!(world.get("c", "a").await, None);
    world.must_be_clean().await;
}

/// A default is switched off by a request that took its time before another one saw a document gone.
#[tokio::test]
async fn a_default_changed_by_a_slow_request() {
    let world = World::new(Backend::Mirrored).await;
    world.create_container(definition_with_ttl("c", Some(10))).await.unwrap();
    world.create("c", r#"{"id":"inherits"}"#).await.unwrap();
    world.create("c", r#"{"id":"own","ttl":10}"#).await.unwrap();
    world.advance(9);
    let slow = world.now().await;
    world.advance(1);
    assert!(world.ids("c").await.is_empty());
    let container = world.must_container("c");
    let mut definition = container.definition().clone();
    definition.default_ttl = None;
    world.engine().replace_container(&container, definition, None, slow).await.unwrap();
    assert!(world.ids("c").await.is_empty(), "what was seen to be gone stays gone");
}

/// The same for a date rule.
#[tokio::test]
async fn a_date_rule_dropped_by_a_slow_request() {
    let world = World::new(Backend::Mirrored).await;
    let container = world.create_container(definition("c", "/id")).await.unwrap();
    world.create("c", r#"{"id":"a","d":{"$date":1000}}"#).await.unwrap();
    let path = mayfly_value::path::Path::parse("/d").unwrap();
    let now = world.now().await;
    let (container, rule) = world.engine().create_date_rule(&container, &path, 10, now).await.unwrap();
    world.advance(9);
    let slow = world.now().await;
    world.advance(1);
    assert!(world.ids("c").await.is_empty());
    world.engine().change_date_rule(&container, rule, None, slow).await.unwrap();
    assert!(world.ids("c").await.is_empty());
}

/// A write whose time is behind what the slot has seen takes the slot's time: `_ts` never goes down along a feed.
#[tokio::test]
async fn a_write_of_a_slow_request() {
    let world = World::new(Backend::Mirrored).await;
    let container = world.create_container(definition("c", "/id")).await.unwrap();
    let slow = world.now().await;
    world.advance(60);
    world.create("c", r#"{"id":"quick"}"#).await.unwrap();
    let operation = Operation::Create { id: DocumentId::text("slow"), body: document(r#"{"id":"slow"}"#) };
    let key = key_of_id("slow");
    let write = world.engine().write(&container, &key, operation, InvalidTtl::Refuse, slow);
    let (outcome, lsn) = write.await.unwrap();
    assert_eq!((outcome.record.unwrap().ts(), lsn), (1060, 2));
    world.must_be_clean().await;
}

/// Many at once write one document: every write counts once, each sees the one before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_writers_of_one_document() {
    const WRITERS: usize = 8;
    const WRITES: usize = 5;
    let world = World::new(Backend::Embedded).await;
    let container = world.create_container(definition("c", "/id")).await.unwrap();
    world.create("c", r#"{"id":"a","n":0}"#).await.unwrap();
    let now = world.now().await;
    let mut writers = tokio::task::JoinSet::new();
    for _ in 0..WRITERS {
        let (engine, container) = (world.engine().clone(), container.clone());
        writers.spawn(async move {
            for _ in 0..WRITES {
                let modify = std::sync::Arc::new(|record: &mayfly_engine::Record| {
                    let n = record.body().get_i32("n").unwrap() + 1;
                    Ok(document(&format!(r#"{{"id":"a","n":{n}}}"#)))
                });
                let operation = Operation::Modify { id: DocumentId::text("a"), modify, if_match: None };
                engine.write(&container, &key_of_id("a"), operation, InvalidTtl::Refuse, now).await.unwrap();
            }
        });
    }
    while let Some(writer) = writers.join_next().await {
        writer.unwrap();
    }
    assert_eq!(world.get("c", "a").await.unwrap(), format!(r#"{{"id":"a","n":{}}}"#, WRITERS * WRITES));
    world.must_be_clean().await;
}

/// A change of a container is seen in the store before the one who makes it hears of it: while its group is synced. Who
/// writes meanwhile waits for the news, and is not sent away after many looks at what is not there yet.
#[tokio::test]
async fn a_write_while_the_container_is_being_changed() {
    let ground = Ground::new(Backend::Mirrored).await;
    let store = Arc::new(Faulty::new(ground.open().await.unwrap()));
    let world = World::on(store.clone(), Timestamp::from_seconds(START)).await.unwrap();
    let now = world.now().await;
    world.engine().create_database("db", now).await.unwrap();
    world.create_container(definition("c", "/id")).await.unwrap();
    world.create("c", r#"{"id":"a","b":1,"c":1}"#).await.unwrap();
    // The second lacks a path, so that it changes what the index is known to hold; the third does not.
    store.arm(Fault::Late, Calls::Commits, 1);
    let (second, third) = tokio::join!(
        world.create("c", r#"{"id":"b","b":1}"#),
        world.create("c", r#"{"id":"c","b":1,"c":1}"#)
    );
    assert!(!store.disarm());
    second.unwrap();
    third.unwrap();
    assert_eq!(world.ids("c").await, ["a", "b", "c"]);
    world.must_be_clean().await;
}

/// Whoever writes by a container of yesterday takes nothing from its coverage that others have taken already: that would be
/// a change of the container with each document.
#[tokio::test]
async fn a_narrowed_container_is_narrowed_once() {
    let world = World::new(Backend::Mirrored).await;
    let before = world.create_container(definition("c", "/id")).await.unwrap();
    let now = world.now().await;
    let mut commits = Vec::new();
    for id in ["a", "b", "c"] {
        world.writes();
        let body = document(&format!(r#"{{"id":"{id}","n":1}}"#));
        let operation = Operation::Create { id: DocumentId::text(id), body };
        world.engine().write(&before, &key_of_id(id), operation, InvalidTtl::Refuse, now).await.unwrap();
        commits.push(world.writes().iter().filter(|write| matches!(write, Write::Commit(_))).count());
    }
    assert_eq!(commits, [2, 1, 1], "the first changes the container too");
}

/// A request that took its time before documents ended, and looks after they were purged and while the store drops their
/// rows: it may find entries that were alive at its time, and no documents.
#[tokio::test]
async fn a_scan_of_a_slow_request_beside_a_purge() {
    let world = World::new(Backend::Mirrored).await;
    let container = world.create_container(definition_with_ttl("c", Some(5))).await.unwrap();
    for id in ["a", "b", "c"] {
        world.create("c", &format!(r#"{{"id":"{id}","n":1}}"#)).await.unwrap();
    }
    world.advance(4);
    world.create("c", r#"{"id":"d","n":1}"#).await.unwrap();
    let slow = world.now().await;
    world.advance(1);
    let now = world.now().await;
    while world.engine().purge(now, Pace::Full).await.unwrap().more {}
    let access = index_access("/n");
    let page = world.engine().scan(&container, &access, Direction::Forward, None, ALL, slow).await.unwrap();
    let ids = |page: &mayfly_engine::ScanPage| {
        page.found.iter().map(|found| text_id(&found.record)).collect::<std::collections::BTreeSet<_>>()
    };
    let left = if world.drops_dead_rows() { 4 } else { 1 };
    assert_eq!(ids(&page).len(), left, "nothing was dropped yet, or all was deleted");
    world.compact().await;
    let page = world.engine().scan(&container, &access, Direction::Forward, None, ALL, slow).await.unwrap();
    assert!(ids(&page).into_iter().eq(["d".to_owned()]));
}

/// Writers over documents that are just being purged: each document leaves the sums once, whoever is quicker.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_beside_a_purge_by_count() {
    let world = World::new(Backend::Embedded).await;
    world.create_container(definition_with_ttl("c", Some(5))).await.unwrap();
    for n in 0..600 {
        world.create("c", &format!(r#"{{"id":"{n}","n":1}}"#)).await.unwrap();
    }
    world.advance(5);
    let now = world.now().await;
    let purge = async { while world.engine().purge(now, Pace::Gentle).await.unwrap().more {} };
    let write = async {
        for n in (0..600).step_by(4) {
            world.create("c", &format!(r#"{{"id":"{n}","n":2}}"#)).await.unwrap();
        }
    };
    tokio::join!(purge, write);
    while world.engine().purge(now, Pace::Gentle).await.unwrap().more {}
    assert_eq!(world.must_be_clean().await.records, 150);
}

/// A request that took its time while a document was alive, and writes over it after it was counted out of a slot at rest.
#[tokio::test]
async fn a_write_of_a_slow_request_over_a_document_that_was_counted_out() {
    for replaces in [true, false] {
        let world = World::new(Backend::Mirrored).await;
        let container = world.create_container(definition_with_ttl("c", Some(5))).await.unwrap();
        world.create("c", r#"{"id":"a","n":1}"#).await.unwrap();
        world.advance(4);
        let slow = world.now().await;
        world.advance(4);
        let now = world.now().await;
        while world.engine().purge(now, Pace::Full).await.unwrap().more {}
        let id = DocumentId::text("a");
        let operation = match replaces {
            true => {
                Operation::Replace { id, body: document(r#"{"id":"a","n":2}"#), if_match: None, new_id: None }
            }
            false => Operation::Delete { id, if_match: None },
        };
        let key = key_of_id("a");
        let write = world.engine().write(&container, &key, operation, InvalidTtl::Refuse, slow).await;
        assert!(write.is_err(), "{write:?}");
        world.must_be_clean().await;
        assert!(world.ids("c").await.is_empty());
    }
}

/// A document whose date is over when it is written answers like any other, and is not there: a queue that purge has
/// walked over gets nothing behind that place.
#[tokio::test]
async fn a_document_that_is_over_when_it_is_written() {
    for unique in [false, true] {
        let world = World::new(Backend::Mirrored).await;
        let mut definition = definition("c", "/id");
        if unique {
            definition.unique_keys = vec![vec!["/u".into()]];
        }
        let container = world.create_container(definition).await.unwrap();
        let now = world.now().await;
        world.engine().create_date_rule(&container, &Path::parse("/d").unwrap(), 5, now).await.unwrap();
        world.build_indexes().await.unwrap();
        let dated = |id: &str, at: u64| format!(r#"{{"id":"{id}","u":"{id}","d":{{"$date":{at}}}}}"#);
        for n in 0..100 {
            world.create("c", &dated(&n.to_string(), START)).await.unwrap();
        }
        world.advance(5);
        let now = world.now().await;
        world.engine().purge(now, Pace::Gentle).await.unwrap();
        world.create("c", &dated("early", START - 1000)).await.unwrap();
        assert!(world.ids("c").await.is_empty());
        world.create("c", &dated("early", START + 5000)).await.unwrap();
        while world.engine().purge(now, Pace::Gentle).await.unwrap().more {}
        assert_eq!(world.must_be_clean().await.records, 1);
    }
}

/// A log that is switched off is removed, and what was written since it came back is not.
#[tokio::test]
async fn a_log_that_is_switched_off_goes() {
    let world = World::new(Backend::Mirrored).await;
    let mut logged = definition("c", "/id");
    logged.log_minutes = Some(10);
    world.create_container(logged).await.unwrap();
    let events = async || {
        let now = world.now().await;
        let page = world.engine().log(&world.must_container("c"), 0, 0, &HashRange::all(), 100, now).await;
        page.unwrap().events.len()
    };
    for n in 0..5 {
        world.create("c", &format!(r#"{{"id":"{n}"}}"#)).await.unwrap();
    }
    assert_eq!(events().await, 5);
    world.reap().await.unwrap();
    assert_eq!(events().await, 5, "a log that is on stays");
    world.change("c", |definition| definition.log_minutes = None).await.unwrap();
    let etag = world.must_container("c").etag();
    world.reap().await.unwrap();
    assert_eq!(world.must_container("c").etag(), etag, "its owner changed nothing");
    world.change("c", |definition| definition.log_minutes = Some(10)).await.unwrap();
    assert_eq!(events().await, 0);
    world.create("c", r#"{"id":"x"}"#).await.unwrap();
    world.reap().await.unwrap();
    assert_eq!(events().await, 1);
}

/// What is wrong with a document is told before whether its place is taken, alone and in a batch.
#[tokio::test]
async fn an_invalid_ttl_is_told_before_a_taken_id() {
    let world = World::new(Backend::Mirrored).await;
    let container = world.create_container(definition_with_ttl("c", Some(10))).await.unwrap();
    world.create("c", r#"{"id":"a"}"#).await.unwrap();
    let create = |json: &str| {
        let body = document(json);
        Operation::Create { id: id_of(&body), body }
    };
    let (invalid, read) = (create(r#"{"id":"a","ttl":0}"#), Operation::Read { id: DocumentId::text("a") });
    for operations in [vec![invalid.clone()], vec![read, invalid]] {
        let now = world.now().await;
        let key = key_of_id("a");
        let done = world.engine().transact(&container, &key, &operations, InvalidTtl::Refuse, now).await;
        assert!(matches!(done.unwrap_err().error, Error::InvalidTtl { .. }));
    }
    let taken = world.create("c", r#"{"id":"a","ttl":1}"#).await;
    assert!(matches!(taken, Err(Error::Exists(_))));
}

/// A date rule whose making was cut short comes into force after a restart, without anybody asking again.
#[tokio::test]
async fn a_date_rule_that_was_cut_short_goes_on() {
    let ground = Ground::new(Backend::Mirrored).await;
    let store = Arc::new(Faulty::new(ground.open().await.unwrap()));
    let mut world = World::on(store.clone(), Timestamp::from_seconds(START)).await.unwrap();
    let now = world.now().await;
    world.engine().create_database("db", now).await.unwrap();
    let container = world.create_container(definition("c", "/id")).await.unwrap();
    world.create("c", &format!(r#"{{"id":"a","d":{{"$date":{START}}}}}"#)).await.unwrap();
    store.arm(Fault::Fail, Calls::Commits, 2);
    let path = Path::parse("/d").unwrap();
    world.engine().create_date_rule(&container, &path, 5, now).await.unwrap_err();
    store.heal();
    world.crash().await.unwrap();
    world.advance(5);
    assert!(world.get("c", "a").await.is_some(), "not in force yet");
    world.build_indexes().await.unwrap();
    assert!(world.get("c", "a").await.is_none());
    world.purge().await.unwrap();
    assert_eq!(world.must_be_clean().await.records, 0);
}
