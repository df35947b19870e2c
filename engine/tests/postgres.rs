//! Two engines that share a PostgreSQL server. Needs one: `cargo xtask test scale` brings it. What one engine alone does
//! there is shown by the scripts and the contract of `tests/it`, which run on it as they are.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{
    collections::BTreeSet,
    pin::Pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use mayfly_engine::{
    Access, Across, AdjustableClock, Answer, Clock, Container, DefaultTtl, Direction, DocumentId, Engine,
    Error, FeedStart, HashRange, IndexAccess, IndexRefused, IndexingMode, InvalidTtl, Operation, Pace, Part,
    Reliance, Timestamp,
    clock::{Sleep, pause},
    collection::{CollectionRules, FieldKind, IndexField, IndexRule, whole},
};
use mayfly_storage::{
    PostgresStore,
    peers::Peers,
    store::{KeyRange, Slot, Space, Store},
};
use mayfly_testkit::{
    World,
    cancel::cut,
    postgres::{empty_address, empty_address_on},
    world::{
        DATABASE, START, definition, definition_with_ttl, document, id_of, index_access, key_of_id,
        partition_key, text_id,
    },
};
use tokio::{task::JoinSet, time::timeout};

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

    // One that another node has written to is not taken for one that nobody has; and is written to again.
    let known = other.engine().catalog_version();
    one.create_container(definition_with_ttl("fresh", None)).await.unwrap();
    let container = one.must_container("fresh");
    other.engine().refresh().await.unwrap();
    assert_ne!(other.engine().catalog_version(), known, "whoever was refused before this can tell");
    other.create("fresh", r#"{"id":"a"}"#).await.unwrap();
    assert!(!one.engine().delete_unwritten_container(&container).await.unwrap());
    other.create("fresh", r#"{"id":"b"}"#).await.unwrap();
    assert_eq!(one.list("fresh", 10).await.unwrap().len(), 2);
    one.create_container(definition_with_ttl("unwritten", None)).await.unwrap();
    assert!(one.engine().delete_unwritten_container(&one.must_container("unwritten")).await.unwrap());

    // A container that is gone is gone.
    let container = one.must_container("c");
    one.engine().delete_container(&container, None).await.unwrap();
    assert!(matches!(other.create("c", r#"{"id":"z"}"#).await, Err(Error::NotFound(_))));
}

/// A node announces a change of a container and dies before it makes it. Many requests on two nodes wait for it in vain; then
/// one of them ends it, and the others go on by what that has left instead of ending it again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn a_change_that_never_comes_is_ended_once() {
    let address = empty_address().await;
    let store = Arc::new(PostgresStore::open(&address).await.unwrap());
    let one = World::on(store.clone(), Timestamp::from_seconds(START)).await.unwrap();
    one.engine().create_database(DATABASE, one.now().await).await.unwrap();
    let container = one.create_container_in_slots(definition_with_ttl("c", None), 4).await.unwrap();
    one.create("c", r#"{"id":"a"}"#).await.unwrap();
    let other = node(&address).await;
    let before = one.must_container("c").version;
    let slots: Vec<Slot> = (0..4).map(|slot| Slot(container.id * 4096 + slot)).collect();
    store.raise_floor(&slots, before + 1).await.unwrap();

    let (one, other) = (Arc::new(one), Arc::new(other));
    let mut requests = JoinSet::new();
    for number in 0..24 {
        let world = if number % 2 == 0 { one.clone() } else { other.clone() };
        requests.spawn(async move {
            match number % 3 {
                0 => assert!(world.get("c", "a").await.is_some()),
                _ => drop(world.create("c", &format!(r#"{{"id":"{number}"}}"#)).await.unwrap()),
            }
        });
    }
    while let Some(ended) = requests.join_next().await {
        ended.unwrap();
    }
    one.engine().refresh().await.unwrap();
    // Both nodes may have begun before either was done.
    let changes = one.must_container("c").version - before;
    assert!((1..=2).contains(&changes), "{changes} changes");
    one.must_be_clean().await;
}

/// A node's clock as it may be near the turn of a second: what it takes for certain is a moment old, what it is told when
/// it asks is true.
struct Late {
    truth: Arc<AdjustableClock>,
    believed: Timestamp,
}

impl Clock for Late {
    fn now(&self) -> Timestamp {
        self.believed
    }

    fn ask(&self) -> Pin<Box<dyn Future<Output = Timestamp> + Send + '_>> {
        Box::pin(async { self.truth.now() })
    }

    fn sleep_until(&self, at: Timestamp) -> Sleep<'_> {
        self.truth.sleep_until(at)
    }
}

/// A default is taken away in the very moment in which a second turns: what another node has shown as gone in the new
/// second stays gone, though the request that takes it away began in the old one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn expiry_is_final_at_the_turn_of_a_second() {
    let address = empty_address().await;
    let at = |seconds| Timestamp::from_seconds(START + seconds);
    let truth = Arc::new(AdjustableClock::frozen(at(0)));
    let open = async |clock: Arc<dyn Clock>| {
        let store = Arc::new(PostgresStore::open(&address).await.unwrap());
        Engine::builder(store).clock(clock).open().await.unwrap()
    };
    let one = open(truth.clone()).await;
    let database = one.create_database(DATABASE, at(0)).await.unwrap();
    let container =
        one.create_container(&database, definition_with_ttl("c", Some(10)), 1, at(0)).await.unwrap();
    let body = document(r#"{"id":"a"}"#);
    let create = Operation::Create { id: id_of(&body), body: body.clone() };
    one.write(&container, &key_of_id("a"), create, InvalidTtl::Refuse, at(0)).await.unwrap();
    let read = async |engine: &Engine, now: Timestamp| {
        let container = engine.container(&engine.database(DATABASE).unwrap(), "c").unwrap();
        engine.read(&container, &key_of_id("a"), &id_of(&body), now).await.unwrap()
    };
    let late = open(Arc::new(Late { truth: truth.clone(), believed: at(9) })).await;
    let began = late.now().await.unwrap();
    assert_eq!(began.seconds(), at(9).seconds());
    truth.set(at(10));
    assert!(read(&one, one.now().await.unwrap()).await.is_none(), "the second has turned");
    let container = late.container(&late.database(DATABASE).unwrap(), "c").unwrap();
    late.replace_container(&container, definition_with_ttl("c", None), None, began).await.unwrap();
    for engine in [&one, &late] {
        assert!(read(engine, at(10)).await.is_none(), "it has come back");
    }
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

/// Slots on two servers are asked together, and give what they would give one after the other: each document once, in the
/// order of the slots, whatever the size of the pages and from whichever end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn walks_over_many_slots_find_each_document_once() {
    const DOCUMENTS: usize = 60;
    let address = empty_address().await;
    let store = Arc::new(PostgresStore::open(&address).await.unwrap());
    let second = empty_address_on(&std::env::var("MAYFLY_TEST_POSTGRES_2").unwrap()).await;
    store.add_server(&second).await.unwrap();
    let world = World::on(store.clone(), Timestamp::from_seconds(START)).await.unwrap();
    world.engine().create_database(DATABASE, world.now().await).await.unwrap();
    let container = world.create_container_in_slots(definition_with_ttl("c", Some(1000)), 32).await.unwrap();
    // Slots of a container lie in groups side by side; every fourth goes to the other server.
    for slot in (0..32).step_by(4) {
        store.move_group((container.id * 97 + slot) % 256, 2).await.unwrap();
    }
    for n in 0..DOCUMENTS {
        // Some are gone by the time they are looked for.
        let ttl = if n % 10 == 0 { 1 } else { -1 };
        world.create("c", &format!(r#"{{"id":"{n}","n":{n},"ttl":{ttl}}}"#)).await.unwrap();
    }
    world.advance(5);
    let living = DOCUMENTS - DOCUMENTS / 10;
    for access in [Access::Records(HashRange::all()), index_access("/n")] {
        let all = world.scan("c", &access, Direction::Forward, 1000).await.unwrap();
        let slots: Vec<u16> = all.iter().map(|found| found.slot).collect();
        assert!(slots.is_sorted());
        assert!(slots.iter().collect::<BTreeSet<_>>().len() > 16, "they are in many slots: {slots:?}");
        let all: Vec<String> = all.iter().map(|found| text_id(&found.record)).collect();
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), living);
        for rows in [1, 3, 20, living + 1] {
            let mut paged = world.scan("c", &access, Direction::Forward, rows).await.unwrap();
            let ids: Vec<String> = paged.iter().map(|found| text_id(&found.record)).collect();
            assert_eq!(ids, all, "pages of {rows}");
            paged = world.scan("c", &access, Direction::Reverse, rows).await.unwrap();
            let ids: Vec<String> = paged.iter().rev().map(|found| text_id(&found.record)).collect();
            assert_eq!(ids, all, "pages of {rows}, from the end");
        }
    }
    // And in the order of an index, over all slots at once.
    let (container, now) = (world.must_container("c"), world.now().await);
    let Access::Index(index) = index_access("/n") else { panic!("an index") };
    let relies = Reliance::Complete { epoch: container.complete_index().unwrap() };
    let in_order = Access::Index(IndexAccess { relies, across: Across::InOrder, ..index });
    for rows in [3, 20, living + 1] {
        let found = world.scan("c", &in_order, Direction::Forward, rows).await.unwrap();
        let numbers: Vec<usize> = found.iter().map(|found| text_id(&found.record).parse().unwrap()).collect();
        let expected: Vec<usize> = (0..DOCUMENTS).filter(|n| n % 10 != 0).collect();
        assert_eq!(numbers, expected, "pages of {rows}, in order");
        let found = world.scan("c", &in_order, Direction::Reverse, rows).await.unwrap();
        let ids = found.iter().rev().map(|found| text_id(&found.record).parse().unwrap());
        assert_eq!(ids.collect::<Vec<usize>>(), expected, "pages of {rows}, in order from the end");
    }
    assert_eq!(
        world.engine().count_documents(&container, &HashRange::all(), now).await.unwrap(),
        living as u64
    );
}

/// What is too long for an index of the server is the caller's to shorten: refused as a request that cannot be right, and
/// nothing else is the worse for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn keys_that_are_too_long_are_the_callers_to_shorten() {
    let (one, _) = two_nodes().await;
    one.create_container(definition_with_ttl("c", None)).await.unwrap();
    // Letters that no compression shortens much.
    let mut state = 7_u32;
    let noise = (0..4000).map(|_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from(b'0' + (state >> 24) as u8 % 75)
    });
    let name: String = noise.filter(|letter| letter.is_ascii_alphanumeric()).collect();
    match one.create("c", &format!(r#"{{"id":"a","{name}":1}}"#)).await {
        Err(Error::BadRequest { message }) => assert!(message.contains("too long"), "{message}"),
        other => panic!("{other:?}"),
    }
    one.create("c", r#"{"id":"a","short":1}"#).await.unwrap();
    one.must_be_clean().await;
}

/// Two nodes purge the same documents: each is removed once, none is left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn purge_by_two_nodes_removes_each_once() {
    let (one, other) = two_nodes().await;
    let mut definition = definition("c", "/p");
    definition.default_ttl = Some(DefaultTtl::Seconds(10));
    definition.indexing.included.clear();
    definition.indexing.excluded = vec!["/*".to_owned()];
    one.create_container_in_slots(definition, 4).await.unwrap();
    other.engine().refresh().await.unwrap();
    let (documents, container) = (documents_to_purge(), one.must_container("c"));
    let (one, other) = (Arc::new(one), Arc::new(other));
    let mut writers = JoinSet::new();
    for writer in 0..16 {
        let (world, container) =
            (if writer % 2 == 0 { one.clone() } else { other.clone() }, container.clone());
        writers.spawn(async move {
            let (now, key) = (world.now().await, partition_key(&format!("\"{writer}\"")));
            for some in (0..documents / 16).collect::<Vec<_>>().chunks(100) {
                let creates = some.iter().map(|number| {
                    let body = document(&format!(r#"{{"id":"{number}","p":"{writer}"}}"#));
                    Operation::Create { id: id_of(&body), body }
                });
                let creates: Vec<_> = creates.collect();
                let done = world.engine().transact(&container, &key, &creates, InvalidTtl::Refuse, now).await;
                done.map_err(|refused| refused.error).unwrap();
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
    assert!(by_one > 0 && by_other > 0, "one of them did nothing");
    let usage = one.engine().usage(&container, one.now().await).await.unwrap();
    assert_eq!((usage.live.documents, usage.backlog.documents, usage.purged.documents), (0, 0, documents));
    other.must_be_clean().await;
}

/// The index that stands for a default time to live has no entries, so documents under it need not be read to be purged: a
/// tick takes all of them. Those with entries go by their records, with all they have.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn a_tick_takes_as_many_as_need_not_be_read() {
    let (one, _) = two_nodes().await;
    let mut definition = definition("c", "");
    definition.indexing.mode = IndexingMode::None;
    definition.indexing.automatic = false;
    definition.indexing.included.clear();
    definition.indexing.excluded.clear();
    definition.collection = Some(CollectionRules::default());
    let rule = |name: &str| IndexRule {
        number: 0,
        name: name.to_owned(),
        fields: vec![IndexField { path: name.to_owned(), kind: FieldKind::Up }],
        unique: false,
        sparse: false,
        folded: false,
        filter: Vec::new(),
        date_rule: None,
        is_default_ttl: false,
        building: false,
        spec: Vec::new(),
    };
    let (engine, now) = (one.engine(), one.now().await);
    let container = one.create_container(definition).await.unwrap();
    let container =
        engine.create_default_ttl_index(&container, rule("_ts"), DefaultTtl::Seconds(10), now).await.unwrap();
    let fill = async |container: &Arc<Container>| {
        let (now, key) = (one.now().await, whole());
        for first in (0..500).step_by(100) {
            let creates = (first..first + 100).map(|number| {
                let body = document(&format!(r#"{{"id":"{number}","n":{number}}}"#));
                Operation::Create { id: id_of(&body), body }
            });
            let creates: Vec<_> = creates.collect();
            let done = engine.transact(container, &key, &creates, InvalidTtl::Refuse, now).await;
            done.map_err(|refused| refused.error).unwrap();
        }
        one.advance(60);
    };
    fill(&container).await;
    assert_eq!(engine.purge(one.now().await, Pace::Gentle).await.unwrap().documents, 500);
    one.must_be_clean().await;
    let container = match engine.create_index(&container, rule("n"), None, one.now().await).await {
        Ok(container) => container,
        Err(IndexRefused::Other(error)) => panic!("{error}"),
        Err(IndexRefused::Duplicate(_)) => panic!("the index is not unique"),
    };
    while engine.build_indexes().await.unwrap() {}
    fill(&container).await;
    let first = engine.purge(one.now().await, Pace::Gentle).await.unwrap();
    assert!(first.documents < 500 && first.more, "{first:?}");
    while engine.purge(one.now().await, Pace::Pressing).await.unwrap().more {}
    let usage = engine.usage(&container, one.now().await).await.unwrap();
    assert_eq!((usage.live.documents, usage.backlog.documents, usage.purged.documents), (0, 0, 1000));
    one.must_be_clean().await;
}

/// Documents are written again while they are purged, by another node: each is there once, and the sums know of each.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn documents_are_written_again_while_they_are_purged() {
    const DOCUMENTS: usize = 600;
    let (one, other) = two_nodes().await;
    let mut definition = definition("c", "/p");
    definition.default_ttl = Some(DefaultTtl::Seconds(10));
    definition.indexing.included.clear();
    definition.indexing.excluded = vec!["/*".to_owned()];
    one.create_container(definition).await.unwrap();
    other.engine().refresh().await.unwrap();
    let container = one.must_container("c");
    let (one, other) = (Arc::new(one), Arc::new(other));
    for round in 0..6 {
        let mut writers = JoinSet::new();
        for writer in 0..4 {
            let (world, container) = (one.clone(), container.clone());
            writers.spawn(async move {
                let (now, key) = (world.now().await, partition_key("\"p\""));
                for some in
                    (0..DOCUMENTS).filter(|number| number % 4 == writer).collect::<Vec<_>>().chunks(25)
                {
                    let upserts = some.iter().map(|number| {
                        let body = document(&format!(r#"{{"id":"{number}","p":"p","round":{round}}}"#));
                        Operation::Upsert { id: id_of(&body), body, if_match: None }
                    });
                    let upserts: Vec<_> = upserts.collect();
                    // A batch gives up if it loses too often; nothing of it is done then.
                    while world
                        .engine()
                        .transact(&container, &key, &upserts, InvalidTtl::Refuse, now)
                        .await
                        .is_err()
                    {}
                }
                0
            });
        }
        for world in [one.clone(), other.clone()] {
            writers.spawn(async move {
                let mut purged = 0;
                for pace in [Pace::Pressing, Pace::Gentle, Pace::Full, Pace::Pressing] {
                    purged += world.engine().purge(world.now().await, pace).await.unwrap().documents;
                }
                purged
            });
        }
        while let Some(ended) = writers.join_next().await {
            ended.unwrap();
        }
        let usage = other.engine().usage(&container, other.now().await).await.unwrap();
        assert_eq!((usage.live.documents, usage.backlog.documents), (DOCUMENTS as u64, 0), "round {round}");
        other.must_be_clean().await;
        one.advance(60);
        other.advance(60);
    }
}

/// More, or fewer where the machine is slow.
fn documents_to_purge() -> u64 {
    std::env::var("MAYFLY_PURGE_DOCUMENTS").ok().and_then(|text| text.parse().ok()).unwrap_or(100_000)
}

/// A node of a number, with its own look at the rows of errands. The clock of each is its own.
async fn enlisted(address: &str) -> (World, Arc<PostgresStore>) {
    let store = Arc::new(PostgresStore::open(address).await.unwrap());
    store.listen();
    let world = World::on(store.clone(), Timestamp::from_seconds(START)).await.unwrap();
    world.engine().enlist().await.unwrap();
    (world, store)
}

/// Rows of errands, the counter of nodes among them.
async fn errand_rows(store: &PostgresStore) -> usize {
    store.peek(&KeyRange::prefix(Space::Large, Slot(1), Vec::new()), 100).await.unwrap().len()
}

/// Many errands at once, and two that take them: each is done once, and each answer reaches who asked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn errands_are_done_once_and_answered() {
    let address = empty_address().await;
    let ((one, store), (other, _)) = (enlisted(&address).await, enlisted(&address).await);
    let (asking, asked) = (one.engine().node_number(), other.engine().node_number());
    assert!(asking != 0 && asked != 0 && asking != asked);
    assert_eq!(node(&address).await.engine().node_number(), 0, "who was not enlisted has no number");

    let done = Arc::new(Mutex::new(Vec::new()));
    let mut takers = JoinSet::new();
    for _ in 0..2 {
        let (engine, done) = (other.engine().clone(), done.clone());
        takers.spawn(async move {
            loop {
                for errand in engine.errands(|| true).await.unwrap() {
                    done.lock().unwrap().push(errand.bytes.clone());
                    let answer = async { [&b"done: "[..], &errand.bytes].concat() };
                    engine.answer_errand(&errand, answer).await.unwrap();
                }
            }
        });
    }
    let mut askers = JoinSet::new();
    for number in 0..40_u8 {
        let engine = one.engine().clone();
        askers.spawn(async move {
            let answer = engine.ask(asked, &[number]).await.unwrap();
            assert_eq!(answer, Answer::Given([&b"done: "[..], &[number]].concat().into()));
        });
    }
    while let Some(ended) = askers.join_next().await {
        ended.unwrap();
    }
    let mut done = done.lock().unwrap().clone();
    done.sort();
    assert_eq!(done, (0..40_u8).map(|number| vec![number]).collect::<Vec<_>>());
    // As large as an answer of the MongoDB protocol may be, and then some.
    let long = vec![b'x'; 40 << 20];
    let answer = one.engine().ask(asked, &long).await.unwrap();
    assert!(matches!(answer, Answer::Given(bytes) if bytes.len() == long.len() + 6));
    assert_eq!(errand_rows(&store).await, 1, "only the counter is left");
    one.must_be_clean().await;
}

/// An errand for a node that is gone is withdrawn; one whose node is gone in the middle is given up; one that takes long is waited for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn nodes_that_are_gone_are_not_waited_for() {
    let address = empty_address().await;
    let ((one, store), (dying, _)) = (enlisted(&address).await, enlisted(&address).await);
    let (slow, _) = enlisted(&address).await;
    let nobody = slow.engine().node_number() + 1;
    let dying_number = dying.engine().node_number();
    let take_and_die = async {
        let taken = dying.engine().errands(|| true).await.unwrap();
        assert_eq!(taken.len(), 1);
    };
    let take_long = async {
        let taken = slow.engine().errands(|| true).await.unwrap();
        // More than who says nothing is waited for.
        let work = async {
            pause(Duration::from_secs(25)).await;
            b"at last".to_vec()
        };
        slow.engine().answer_errand(&taken[0], work).await.unwrap();
    };
    let engine = one.engine();
    let (withdrawn, lost, answered, (), ()) = tokio::join!(
        engine.ask(nobody, b"a"),
        engine.ask(dying_number, b"b"),
        engine.ask(slow.engine().node_number(), b"c"),
        take_and_die,
        take_long,
    );
    assert_eq!(withdrawn.unwrap(), Answer::Withdrawn);
    assert_eq!(lost.unwrap(), Answer::Lost);
    assert_eq!(answered.unwrap(), Answer::Given(b"at last"[..].into()));
    assert_eq!(errand_rows(&store).await, 1, "only the counter is left");
}

/// What nobody takes or comes back for goes in the end, and not before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn errands_that_are_left_are_forgotten() {
    let address = empty_address().await;
    let ((one, store), (other, _)) = (enlisted(&address).await, enlisted(&address).await);
    store.renew_tending("one").await.unwrap();
    for _ in 0..20 {
        one.engine().tell(60_000, b"to nobody").await.unwrap();
    }
    one.engine().tell(other.engine().node_number(), b"for no answer").await.unwrap();
    let taken = other.engine().errands(|| true).await.unwrap();
    other.engine().answer_errand(&taken[0], async { Vec::new() }).await.unwrap();
    assert_eq!(errand_rows(&store).await, 1 + 20 + 1);
    one.engine().forget_errands(one.now().await).await.unwrap();
    assert_eq!(errand_rows(&store).await, 1 + 20 + 1, "they are not old");
    one.advance(2 * 60 * 60);
    one.engine().tell(60_001, b"later").await.unwrap();
    one.engine().forget_errands(one.now().await).await.unwrap();
    assert_eq!(errand_rows(&store).await, 1 + 1, "the counter, and what was asked later");
    one.must_be_clean().await;
}

/// A transaction over collections and a change of rules are dropped at every poll on one node. Whatever the
/// moment, the other node writes to the same documents at once, and both agree.
#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn what_was_given_up_is_in_nobodys_way() {
    const PATIENCE: Duration = Duration::from_secs(10);
    let (one, other) = two_nodes().await;
    for name in ["c", "d"] {
        one.create_container(definition_with_ttl(name, None)).await.unwrap();
    }
    other.engine().refresh().await.unwrap();
    let transact = async || {
        let now = one.now().await;
        let upsert = |name: &str| {
            let (id, body) = (DocumentId::text("x"), document(r#"{"id": "x", "by": "one"}"#));
            let operations = vec![Operation::Upsert { id, body, if_match: None }];
            Part { container: one.must_container(name), key: partition_key(r#""x""#), operations }
        };
        let parts = [upsert("c"), upsert("d")];
        one.engine().transact_parts(&parts, InvalidTtl::Ignore, now).await.map(drop)
    };
    let agree = async |at: &str, by: &str| {
        for name in ["c", "d"] {
            for node in [&one, &other] {
                let found = timeout(PATIENCE, node.get(name, "x")).await;
                let found = found.unwrap_or_else(|_| panic!("{at}: it cannot be read"));
                assert!(found.as_ref().unwrap().contains(by), "{at}: {found:?} in {name}, not by {by}");
            }
        }
    };
    for polls in 0.. {
        let at = format!("after {polls} polls");
        let (done, changed) = (
            cut(transact(), polls).await,
            cut(one.set_ttl("c", Some(1000 + i64::from(polls as u32))), polls).await,
        );
        for name in ["c", "d"] {
            let written = timeout(PATIENCE, other.upsert(name, r#"{"id": "x", "by": "other"}"#)).await;
            written.unwrap_or_else(|_| panic!("{at}: it is locked")).unwrap();
        }
        agree(&at, "other").await;
        timeout(PATIENCE, transact()).await.unwrap_or_else(|_| panic!("{at}: again")).unwrap();
        agree(&at, "one").await;
        if done.is_some() && changed.is_some() {
            break;
        }
    }
    one.must_be_clean().await;
    other.must_be_clean().await;
}
