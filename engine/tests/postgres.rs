//! The engine on PostgreSQL, alone and as two nodes that share it. Needs a server: `cargo xtask test scale` brings one.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{collections::BTreeSet, path::PathBuf, sync::Arc};

use mayfly_engine::{Engine, Error, FeedStart, HashRange, Pace, Timestamp};
use mayfly_storage::PostgresStore;
use mayfly_testkit::{
    Commands, World,
    postgres::empty_address,
    script,
    world::{DATABASE, START, definition_with_ttl},
};
use tokio::task::{JoinSet, LocalSet};

async fn node(address: &str) -> World {
    let store = Arc::new(PostgresStore::open(address).await.unwrap());
    World::on(store, Timestamp::from_seconds(START)).await.unwrap()
}

/// Two nodes on one empty store that has the database of every world.
async fn two_nodes() -> (World, World) {
    let address = empty_address().await;
    let one = node(&address).await;
    one.engine().create_database(DATABASE, one.now().await).await.unwrap();
    let other = node(&address).await;
    (one, other)
}

/// Scripts that answer otherwise: a node that ends does not take the shared horizon back, so the next one begins up to a
/// second later.
const OTHERWISE: [&str; 1] = ["life/reopen"];

/// Every golden script answers as it does on the other stores.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn scripts() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let mut names = BTreeSet::new();
    for topic in std::fs::read_dir(&folder).unwrap() {
        for script in std::fs::read_dir(topic.unwrap().path()).unwrap() {
            names.insert(script.unwrap().path());
        }
    }
    for other in OTHERWISE {
        assert!(names.remove(&folder.join(other)), "{other} is no script");
    }
    let all = async {
        let mut running = JoinSet::new();
        for path in names {
            // Four at a time: each has connections of its own.
            if running.len() >= 4 {
                running.join_next().await.unwrap().unwrap();
            }
            running.spawn_local(async move {
                let world = node(&empty_address().await).await;
                world.engine().create_database(DATABASE, world.now().await).await.unwrap();
                script::check(&path, &mut Commands::new(world)).await;
            });
        }
        while let Some(ended) = running.join_next().await {
            ended.unwrap();
        }
    };
    LocalSet::new().run_until(all).await;
}

/// Both write to one slot at once: each write has a number of its own, and the feed has all of them in order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn writes_of_two_nodes_have_one_order() {
    let (one, other) = two_nodes().await;
    one.create_container(definition_with_ttl("c", None)).await.unwrap();
    other.engine().refresh().await.unwrap();
    let (one, other) = (Arc::new(one), Arc::new(other));
    let mut writers = JoinSet::new();
    for writer in 0..8 {
        let world = if writer % 2 == 0 { one.clone() } else { other.clone() };
        writers.spawn(async move {
            let mut numbers = Vec::new();
            for document in 0..20 {
                let json = format!(r#"{{"id":"{writer}-{document}"}}"#);
                numbers.push(world.create("c", &json).await.unwrap().lsn);
            }
            assert!(numbers.is_sorted(), "the numbers of one writer go up");
            numbers
        });
    }
    let mut numbers = BTreeSet::new();
    while let Some(ended) = writers.join_next().await {
        numbers.extend(ended.unwrap());
    }
    assert_eq!(numbers, (1..=160).collect());
    for world in [&one, &other] {
        let container = world.must_container("c");
        let now = world.now().await;
        let page = world
            .engine()
            .changes(&container, 0, FeedStart::Beginning, &HashRange::all(), 1000, now)
            .await
            .unwrap();
        let order: Vec<u64> = page.records.iter().map(|record| record.lsn).collect();
        assert_eq!(order, (1..=160).collect::<Vec<_>>());
        world.must_be_clean().await;
    }
}

/// The same id on both nodes at once: one makes it, the other finds it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn one_of_two_creates_wins() {
    let (one, other) = two_nodes().await;
    one.create_container(definition_with_ttl("c", None)).await.unwrap();
    other.engine().refresh().await.unwrap();
    for number in 0..20 {
        let json = format!(r#"{{"id":"{number}"}}"#);
        let (first, second) = tokio::join!(one.create("c", &json), other.create("c", &json));
        let won = [&first, &second].iter().filter(|made| made.is_ok()).count();
        assert_eq!(won, 1, "{first:?} and {second:?}");
        let lost = first.err().or(second.err());
        assert!(matches!(lost, Some(Error::Exists(_))), "{lost:?}");
    }
}

/// A change of the rules on one node holds for the next request on the other, which was not told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn rules_reach_other_nodes_at_once() {
    let (one, other) = two_nodes().await;
    one.create_container(definition_with_ttl("c", None)).await.unwrap();
    other.engine().refresh().await.unwrap();
    one.create("c", r#"{"id":"a"}"#).await.unwrap();
    one.create("c", r#"{"id":"b"}"#).await.unwrap();
    assert!(other.get("c", "a").await.is_some());
    one.advance(100);
    other.advance(100);

    // Point reads.
    one.set_ttl("c", Some(10)).await.unwrap();
    assert_eq!(other.get("c", "a").await, None);
    // Expiry is final, on every node.
    one.set_ttl("c", None).await.unwrap();
    assert_eq!(other.get("c", "a").await, None);
    // Writes: decided by the rules that hold, wherever they were made.
    one.set_ttl("c", Some(20)).await.unwrap();
    other.create("c", r#"{"id":"a"}"#).await.unwrap();
    one.set_ttl("c", Some(5)).await.unwrap();
    one.advance(10);
    other.advance(10);
    // Walks: one that began by old rules is refused and goes well when it is asked again.
    let walked = match other.list("c", 10).await {
        Err(Error::Contention) => other.list("c", 10).await,
        walked => walked,
    };
    assert!(walked.unwrap().is_empty());
    other.must_be_clean().await;

    // A container that is gone is gone.
    let container = one.must_container("c");
    one.engine().delete_container(&container, None).await.unwrap();
    assert!(matches!(other.create("c", r#"{"id":"z"}"#).await, Err(Error::NotFound(_))));
}

/// Databases and containers made and dropped on both nodes at once leave one catalog.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn two_nodes_change_one_catalog() {
    let (one, other) = two_nodes().await;
    for number in 0..10 {
        let name = format!("c{number}");
        let (first, second) = tokio::join!(
            one.create_container(definition_with_ttl(&name, None)),
            other.create_container(definition_with_ttl(&name, Some(number + 1)))
        );
        assert_eq!([&first, &second].iter().filter(|made| made.is_ok()).count(), 1, "{first:?}, {second:?}");
        let (first, second) = tokio::join!(one.set_ttl(&name, Some(7)), other.set_ttl(&name, Some(8)));
        // Whoever has not heard of the container yet does not find it; nobody loses a change.
        assert!(first.is_ok() || second.is_ok(), "{first:?}, {second:?}");
    }
    one.engine().refresh().await.unwrap();
    other.engine().refresh().await.unwrap();
    let shown = |engine: &Engine| {
        let database = engine.database(DATABASE).unwrap();
        let containers = engine.containers(&database);
        containers.iter().map(|one| (one.name().to_owned(), one.version)).collect::<Vec<_>>()
    };
    assert_eq!(shown(one.engine()), shown(other.engine()));
    assert_eq!(shown(one.engine()).len(), 10);
}

/// Two nodes purge the same documents: each is removed once, none is left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn purge_by_two_nodes_removes_each_once() {
    let (one, other) = two_nodes().await;
    let mut definition = definition_with_ttl("c", Some(10));
    definition.indexing.included.clear();
    definition.indexing.excluded = vec!["/*".to_owned()];
    one.create_container_in_slots(definition, 4).await.unwrap();
    other.engine().refresh().await.unwrap();
    let documents = documents_to_purge();
    let (one, other) = (Arc::new(one), Arc::new(other));
    let mut writers = JoinSet::new();
    for writer in 0..16 {
        let world = if writer % 2 == 0 { one.clone() } else { other.clone() };
        writers.spawn(async move {
            for document in 0..documents / 16 {
                world.create("c", &format!(r#"{{"id":"{writer}-{document}"}}"#)).await.unwrap();
            }
        });
    }
    while let Some(ended) = writers.join_next().await {
        ended.unwrap();
    }
    one.advance(60);
    other.advance(60);
    let purge = |world: Arc<World>| async move {
        let mut purged = 0;
        loop {
            let now = world.now().await;
            let tick = world.engine().purge(now, Pace::Full).await.unwrap();
            purged += tick.documents;
            if !tick.more {
                return purged;
            }
        }
    };
    let (by_one, by_other) = tokio::join!(purge(one.clone()), purge(other.clone()));
    println!("{by_one} and {by_other}");
    assert_eq!(by_one + by_other, documents);
    let container = one.must_container("c");
    let usage = one.engine().usage(&container, one.now().await).await.unwrap();
    assert_eq!((usage.live.documents, usage.backlog.documents, usage.purged.documents), (0, 0, documents));
    other.must_be_clean().await;
}

/// 100,000 take minutes without optimization; the quick run takes a part.
fn documents_to_purge() -> u64 {
    std::env::var("MAYFLY_PURGE_DOCUMENTS").ok().and_then(|text| text.parse().ok()).unwrap_or(4_000)
}
