//! Partition key ranges: they share out a container exactly, before and after they split, whichever way it is
//! read; and what was begun in a range goes on in those that came of it.

use std::{ops::Bound, sync::Arc};

use mayfly_engine::{
    Access, Container, Direction, FeedStart, HashRange, PartitionKeyRange, Position, Timestamp,
};
use mayfly_storage::{
    MemoryStore,
    store::{Batch, Key, Put, Slot, Space, Store},
};
use mayfly_testkit::{
    Backend, World,
    recorder::Write,
    world::{DATABASE, definition, text_id},
};
use mayfly_value::{
    keycode::{PathStep, encode_path},
    partition::{KeyDefinition, KeyKind},
    path::Path,
};
use proptest::prelude::*;

/// A document: partition, number, time to live, and whether its id is too long for a position to hold.
type Doc = (u8, u16, Option<u8>, bool);

fn docs() -> impl Strategy<Value = Vec<Doc>> {
    let doc = (0_u8..30, any::<u16>(), prop::option::weighted(0.3, 1_u8..9), prop::bool::weighted(0.2));
    prop::collection::vec(doc, 1..60)
}

async fn world(backend: Backend, version: u8, slots: u32, docs: &[Doc]) -> World {
    let world = World::new(backend).await;
    let mut container = definition("c", "/p");
    let paths = vec![Path::parse("/p").unwrap()];
    container.partition_key = KeyDefinition { paths, kind: KeyKind::Hash, version };
    container.default_ttl = Some(mayfly_engine::DefaultTtl::Never);
    container.log_minutes = Some(10);
    world.create_container_in_slots(container, slots).await.unwrap();
    add(&world, docs, "a").await;
    world
}

async fn add(world: &World, docs: &[Doc], mark: &str) {
    for (n, (partition, number, ttl, is_long)) in docs.iter().enumerate() {
        let ttl = ttl.map_or_else(String::new, |ttl| format!(r#","ttl":{ttl}"#));
        let tail = if *is_long { "x".repeat(700) } else { String::new() };
        let body = format!(r#"{{"id":"{mark}{n}{tail}","p":"p{partition}","n":{number}{ttl}}}"#);
        world.upsert("c", &body).await.unwrap();
    }
}

async fn split(world: &World, count: u32) {
    let (container, now) = (world.must_container("c"), world.now().await);
    let ranges = world.engine().split_ranges(&container, count, now).await.unwrap().ranges().len();
    assert_eq!(ranges, (count as usize).max(container.ranges().len()));
}

fn by_value(within: HashRange) -> Access {
    Access::index(encode_path(&[PathStep::Property("n")]), Bound::Unbounded, Bound::Unbounded, within)
}

/// One of the ways to walk through the documents of a range.
#[derive(Clone, Copy, Debug)]
enum Way {
    Records(Direction),
    Writes(Direction),
    Index(Direction),
    Feed,
    Log,
}

const WAYS: [Way; 8] = [
    Way::Records(Direction::Forward),
    Way::Records(Direction::Reverse),
    Way::Writes(Direction::Forward),
    Way::Writes(Direction::Reverse),
    Way::Index(Direction::Forward),
    Way::Index(Direction::Reverse),
    Way::Feed,
    Way::Log,
];

/// Where a walk stands.
#[derive(Clone, Debug)]
enum At {
    Start,
    Position(Position),
    Commit(u64),
}

impl Way {
    /// One page: ids, and where to go on.
    async fn page(
        self,
        world: &World,
        slot: u16,
        within: &HashRange,
        at: At,
        rows: usize,
    ) -> (Vec<String>, Option<At>) {
        let container = world.must_container("c");
        let (access, direction) = match self {
            Way::Records(direction) => (Access::Records(within.clone()), direction),
            Way::Writes(direction) => (Access::Writes(within.clone()), direction),
            Way::Index(direction) => (by_value(within.clone()), direction),
            Way::Feed | Way::Log => return self.feed(world, &container, slot, within, at, rows).await,
        };
        let position = match at {
            At::Position(position) => Some(Position::from_bytes(&position.to_bytes()).unwrap()),
            _ => None,
        };
        let (found, next) = world.page("c", &access, direction, position, rows).await.unwrap();
        let ids = found.iter().map(|found| text_id(&found.record)).collect();
        (ids, next.map(At::Position))
    }

    async fn feed(
        self,
        world: &World,
        container: &Arc<Container>,
        slot: u16,
        within: &HashRange,
        at: At,
        rows: usize,
    ) -> (Vec<String>, Option<At>) {
        let (now, engine) = (world.now().await, world.engine());
        let after = match at {
            At::Commit(commit) => commit,
            _ => 0,
        };
        if let Way::Feed = self {
            let start = FeedStart::After(after);
            let page = engine.changes(container, slot, start, within, rows, now).await.unwrap();
            let ids = page.records.iter().map(text_id).collect();
            return (ids, page.more.then_some(At::Commit(page.position)));
        }
        let page = engine.log(container, slot, after, within, rows, now).await.unwrap();
        let text = |event: &mayfly_engine::Event| event.id().unwrap().as_text().unwrap().to_owned();
        let ids = page.events.iter().map(|(lsn, event)| format!("{lsn} {:?} {}", event.kind, text(event)));
        (ids.collect(), page.more.then_some(At::Commit(page.position)))
    }

    /// All from a place on.
    async fn rest(self, world: &World, slot: u16, within: &HashRange, at: At, rows: usize) -> Vec<String> {
        let (mut ids, mut at) = (Vec::new(), Some(at));
        while let Some(from) = at {
            let (page, next) = self.page(world, slot, within, from, rows).await;
            ids.extend(page);
            at = next;
        }
        ids
    }
}

fn sorted(mut ids: Vec<String>) -> Vec<String> {
    ids.sort();
    ids
}

/// What the ranges hold together is what the container holds.
async fn assert_shared_out(world: &World) {
    let (container, now) = (world.must_container("c"), world.now().await);
    let engine = world.engine();
    for way in WAYS {
        let mut of_ranges = Vec::new();
        for range in container.ranges() {
            let ids = way.rest(world, range.slot, &range.keys, At::Start, 7).await;
            assert_eq!(ids, way.rest(world, range.slot, &range.keys, At::Start, 1000).await, "{way:?}");
            of_ranges.extend(ids);
        }
        let mut whole = Vec::new();
        match way {
            Way::Feed | Way::Log => {
                for slot in 0..container.slots() as u16 {
                    whole.extend(way.rest(world, slot, &HashRange::all(), At::Start, 1000).await);
                }
            }
            _ => whole = way.rest(world, 0, &HashRange::all(), At::Start, 1000).await,
        }
        if let Way::Records(Direction::Forward) = way {
            assert_eq!(of_ranges, whole, "the order of the ranges is that of their documents");
        }
        assert_eq!(sorted(of_ranges), sorted(whole), "{way:?}");
    }
    let (mut count, mut documents, mut bytes) = (0, 0, 0);
    for range in container.ranges() {
        let of_range = engine.count_documents(&container, &range.keys, now).await.unwrap();
        let live = engine.range_usage(&container, range, now).await.unwrap();
        assert_eq!(live.documents, of_range, "{range:?}");
        count += of_range;
        documents += live.documents;
        bytes += live.bytes;
    }
    let whole = engine.usage(&container, now).await.unwrap().live;
    assert_eq!((documents, bytes), (whole.documents, whole.bytes));
    assert_eq!(count, engine.count_documents(&container, &HashRange::all(), now).await.unwrap());
}

/// The ranges that a range has become.
fn became(container: &Container, range: &PartitionKeyRange) -> Vec<PartitionKeyRange> {
    container.ranges().iter().filter(|other| other.is_of(range.id)).cloned().collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn ranges_share_out_a_container_before_and_after_they_split(
        version in 1_u8..=2,
        slots in 1_u32..6,
        docs in docs(),
        splits in prop::collection::vec(1_u32..12, 1..3),
        seconds in 0_u64..9,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut world = world(Backend::Mirrored, version, slots, &docs).await;
            assert_shared_out(&world).await;
            for count in splits {
                split(&world, count).await;
                assert_shared_out(&world).await;
            }
            world.advance(seconds);
            add(&world, &docs[..docs.len() / 2], "b").await;
            assert_shared_out(&world).await;
            world.purge().await.unwrap();
            world.reopen().await.unwrap();
            assert_shared_out(&world).await;
            world.must_be_clean().await;
        });
    }

    #[test]
    fn what_was_begun_in_a_range_goes_on_in_those_that_came_of_it(
        version in 1_u8..=2,
        slots in 1_u32..4,
        docs in docs(),
        rows in 1_usize..12,
        more in 1_u32..6,
        seconds in 0_u64..4,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let world = world(Backend::Memory, version, slots, &docs).await;
            world.advance(seconds);
            let before = world.must_container("c");
            let mut begun = Vec::new();
            for way in WAYS {
                for range in before.ranges() {
                    let expected = way.rest(&world, range.slot, &range.keys, At::Start, 1000).await;
                    let (first, at) = way.page(&world, range.slot, &range.keys, At::Start, rows).await;
                    begun.push((way, range, expected, first, at));
                }
            }
            split(&world, before.ranges().len() as u32 + more).await;
            let after = world.must_container("c");
            for (way, range, expected, mut ids, at) in begun {
                let Some(at) = at else { continue };
                for child in became(&after, range) {
                    assert_eq!(child.slot, range.slot);
                    ids.extend(way.rest(&world, child.slot, &child.keys, at.clone(), rows).await);
                }
                assert_eq!(sorted(ids), sorted(expected), "{way:?} of {range:?} at {at:?}");
            }
        });
    }
}

#[tokio::test]
async fn a_feed_that_is_followed_over_a_split_shows_each_change_once() {
    let world = world(Backend::Mirrored, 2, 1, &[]).await;
    let all: Vec<Doc> = (0..40).map(|n| (n, u16::from(n), None, false)).collect();
    add(&world, &all[..20], "a").await;
    let (_, at) = Way::Feed.page(&world, 0, &HashRange::all(), At::Start, 1000).await;
    assert!(at.is_none());
    let now = world.now().await;
    let container = world.must_container("c");
    let end = world.engine().changes(&container, 0, FeedStart::Now, &HashRange::all(), 1, now).await.unwrap();
    split(&world, 3).await;
    add(&world, &all, "b").await;
    let mut ids = Vec::new();
    for range in world.must_container("c").ranges() {
        ids.extend(Way::Feed.rest(&world, range.slot, &range.keys, At::Commit(end.position), 3).await);
    }
    assert_eq!(sorted(ids), sorted((0..40).map(|n| format!("b{n}")).collect()));
}

#[tokio::test]
async fn splitting_is_one_small_write_and_merges_nothing() {
    let mut world = world(Backend::Mirrored, 2, 2, &[(1, 1, None, false)]).await;
    let etag = world.must_container("c").etag();
    let puts = || world.writes().into_iter().filter(|write| matches!(write, Write::Put(..))).count();
    puts();
    split(&world, 5).await;
    assert_eq!(puts(), 1);
    let shown = |container: &Container| -> Vec<_> {
        let show = |range: &PartitionKeyRange| (range.id, range.keys.start.to_hex(), range.parents.clone());
        container.ranges().iter().map(show).collect()
    };
    let ranges = shown(&world.must_container("c"));
    assert_eq!(
        ranges,
        [
            (2, "".into(), vec![0]),
            (3, "08".into(), vec![0]),
            (4, "10".into(), vec![0]),
            (5, "20".into(), vec![1]),
            (6, "30".into(), vec![1]),
        ]
    );
    // Fewer are never more, and nothing is written for them.
    split(&world, 1).await;
    assert_eq!(puts(), 0);
    let refused = world.engine().split_ranges(&world.must_container("c"), 5000, Timestamp(0)).await;
    assert!(refused.unwrap_err().to_string().contains("at most 4096"));
    world.reopen().await.unwrap();
    assert_eq!(shown(&world.must_container("c")), ranges);
    assert_eq!(world.must_container("c").etag(), etag, "its owner has not changed it");
}

/// The row of a container with four slots as layout 1 had it, where a slot was the top bits of a hash.
const ROW_OF_LAYOUT_1: &str = concat!(
    r#"{"definition":{"name":"c","partition_key":{"paths":["/p"],"kind":"Hash","version":2},"#,
    r#""indexing":{"mode":"consistent","automatic":true,"included":["/*"],"excluded":["/\"_etag\"/?"],"#,
    r#""composites":[],"others":{}},"unique_keys":[],"default_ttl":null,"log_minutes":null,"others":{}},"#,
    r#""slots":4,"ttl":{"default":null,"since":0,"on_since":0,"#,
    r#""inherited_dead":{"through":-9223372036854775808,"after":0,"since":-9223372036854775808},"#,
    r#""inherited_past":[],"own_dead":{"through":-9223372036854775808,"after":0,"#,
    r#""since":-9223372036854775808},"own_past":[],"date_rules":[]},"index":{"epoch":1,"ready":true,"#,
    r#""retired":[],"coverage":"Unwritten"},"modified":1000,"next_index":1,"retired_indexes":[],"#,
    r#""revision":1,"log_left":false}"#,
);

fn catalog_key(fields: &[u8]) -> Key {
    Key { space: Space::Small, slot: Slot(0), bytes: [&[0; 6], fields].concat() }
}

#[tokio::test]
async fn a_store_of_layout_1_is_opened_and_marked_and_one_of_another_is_refused() {
    let store = Arc::new(MemoryStore::default());
    let format = catalog_key(&[0x44]);
    let put = |key: &Key, value: Vec<u8>| Put { key: key.clone(), value, marks: Vec::new() };
    let mark =
        |version: u64| Batch { puts: vec![put(&format, version.to_be_bytes().to_vec())], ..Batch::default() };
    let world = World::on(store.clone(), Timestamp::from_seconds(1000)).await.unwrap();
    world.engine().create_database(DATABASE, world.now().await).await.unwrap();
    world.create_container_in_slots(definition("c", "/p"), 4).await.unwrap();
    let key = catalog_key(&[&[0x41, 0, 0, 0, 1][..], b"c"].concat());
    let row = store.get(&key).await.unwrap().unwrap();
    let old = [&row[..16], ROW_OF_LAYOUT_1.as_bytes()].concat();
    drop(world);
    store.commit(Batch { puts: vec![put(&key, old)], ..mark(1) }).await.unwrap();
    let world = World::on(store.clone(), Timestamp::from_seconds(1000)).await.unwrap();
    assert_eq!(store.get(&format).await.unwrap().unwrap()[..], 4_u64.to_be_bytes());
    let starts: Vec<_> = world
        .must_container("c")
        .ranges()
        .iter()
        .map(|range| (range.id, range.keys.start.to_hex()))
        .collect();
    assert_eq!(starts, [(0, "".into()), (1, "10".into()), (2, "20".into()), (3, "30".into())]);
    drop(world);
    store.commit(mark(5)).await.unwrap();
    assert!(World::on(store, Timestamp::from_seconds(1000)).await.is_err());
}
