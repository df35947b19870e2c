//! Stores of earlier layouts open, and mean the same.

use std::sync::Arc;

use mayfly_engine::Timestamp;
use mayfly_storage::{
    MemoryStore,
    store::{Batch, Key, KeyRange, Put, Slot, Space, Store},
};
use mayfly_testkit::{World, world::definition_with_ttl};
use mayfly_value::path::Path;

/// Slots of a container follow each other, 4096 to each.
const SLOTS_EACH: u32 = 4096;

/// In layout 2 a purge in mass was cut short: a record is gone, its index entries wait for a sweep.
#[tokio::test]
async fn what_a_sweep_of_layout_2_was_to_remove_goes() {
    let store = Arc::new(MemoryStore::default());
    let world = World::on(store.clone(), Timestamp::from_seconds(1000)).await.unwrap();
    let now = world.now().await;
    world.engine().create_database(mayfly_testkit::world::DATABASE, now).await.unwrap();
    let container = world.create_container(definition_with_ttl("c", Some(5))).await.unwrap();
    for id in ["a", "b"] {
        world.create("c", &format!(r#"{{"id":"{id}","n":1}}"#)).await.unwrap();
    }
    drop(world);
    let slot = Slot(container.id * SLOTS_EACH);
    let key = |bytes: &[u8]| Key { space: Space::Small, slot, bytes: bytes.to_vec() };
    let shard = [&container.id.to_be_bytes()[..], &[0, 0]].concat();
    let row = |family: u8, fields: &[u8]| [&shard[..], &[family], fields].concat();
    let everything = KeyRange::prefix(Space::Large, slot, row(0x30, &[]));
    let records = store.peek(&everything, 9).await.unwrap();
    let feed = KeyRange::prefix(Space::Small, slot, row(0x10, &[]));
    let entries = store.peek(&feed, 9).await.unwrap();
    assert_eq!((records.len(), entries.len()), (2, 2));
    let size: u64 =
        entries.iter().map(|(_, value)| u64::from(u32::from_be_bytes(value[4..8].try_into().unwrap()))).sum();
    let purged =
        [1_u64.to_be_bytes(), [0; 8], (-2_i64).to_be_bytes(), (-(size as i64)).to_be_bytes()].concat();
    let large = |bytes: &[u8]| Key { space: Space::Large, ..key(bytes) };
    let put = |key: Key, value: Vec<u8>| Put { key, value, marks: Vec::new() };
    let deletes =
        records.iter().map(|(bytes, _)| large(bytes)).chain(entries.iter().map(|(bytes, _)| key(bytes)));
    let last = entries.last().map(|(bytes, _)| [&bytes[7..], &[0]].concat()).unwrap();
    let puts = vec![
        put(Key { slot: Slot(0), ..key(&[&[0; 6][..], &[0x44]].concat()) }, 2_u64.to_be_bytes().to_vec()),
        put(key(&row(0x05, &[])), 1000_u64.to_be_bytes().to_vec()),
        put(key(&row(0x03, &[])), last),
        put(key(&row(0x02, &[])), purged),
    ];
    store.commit(Batch { puts, deletes: deletes.collect(), ..Batch::default() }).await.unwrap();

    let world = World::on(store.clone(), Timestamp::from_seconds(1005)).await.unwrap();
    let report = world.must_be_clean().await;
    assert_eq!((report.records, report.entries), (0, 0));
    assert!(report.left > 0, "index entries wait");
    assert!(store.get(&key(&row(0x05, &[]))).await.unwrap().is_none());
    world.create("c", r#"{"id":"a","n":2}"#).await.unwrap();
    world.compact().await;
    let report = world.must_be_clean().await;
    assert_eq!((report.records, report.left), (1, 0));
}

/// In layout 3 entries in the queues of deadlines and dates had the document's size, and did not say of which version they
/// were. Documents here stand in two or three queues, and one in a place that it left.
#[tokio::test]
async fn dates_of_layout_3_are_purged_by_count() {
    let store = Arc::new(MemoryStore::default());
    let world = World::on(store.clone(), Timestamp::from_seconds(1000)).await.unwrap();
    let now = world.now().await;
    world.engine().create_database(mayfly_testkit::world::DATABASE, now).await.unwrap();
    let container = world.create_container(definition_with_ttl("c", Some(100))).await.unwrap();
    for path in ["/d", "/e"] {
        let (current, path) = (world.must_container("c"), Path::parse(path).unwrap());
        world.engine().create_date_rule(&current, &path, 5, now).await.unwrap();
    }
    world.build_indexes().await.unwrap();
    let dated = |id: &str, more: &str, d: i64, e: i64| {
        format!(r#"{{"id":"{id}"{more},"d":{{"$date":{d}}},"e":{{"$date":{e}}}}}"#)
    };
    world.create("c", &dated("a", "", 1001, 1003)).await.unwrap();
    world.create("c", &dated("b", r#","ttl":7"#, 1003, 1004)).await.unwrap();
    world.create("c", &dated("c", r#","ttl":200"#, 1090, 1090)).await.unwrap();
    drop(world);
    let slot = Slot(container.id * SLOTS_EACH);
    let key = |bytes: &[u8]| Key { space: Space::Small, slot, bytes: bytes.to_vec() };
    let shard = [&container.id.to_be_bytes()[..], &[0, 0]].concat();
    let mut puts = Vec::new();
    for family in [0x11, 0x12] {
        let range = KeyRange::prefix(Space::Small, slot, [&shard[..], &[family]].concat());
        for (bytes, value) in store.peek(&range, 99).await.unwrap() {
            assert!(value.len() > 4);
            puts.push(Put { key: key(&bytes), value: value[..4].to_vec(), marks: Vec::new() });
        }
    }
    assert_eq!(puts.len(), 2 + 6, "deadlines and dates");
    let format = Key { slot: Slot(0), ..key(&[&[0; 6][..], &[0x44]].concat()) };
    puts.push(Put { key: format, value: 3_u64.to_be_bytes().to_vec(), marks: Vec::new() });
    store.commit(Batch { puts, ..Batch::default() }).await.unwrap();

    for (at, left) in [(1000, 3), (1006, 2), (1008, 1), (1095, 0)] {
        let world = World::on(store.clone(), Timestamp::from_seconds(at)).await.unwrap();
        let now = world.now().await;
        while world.engine().purge(now, mayfly_engine::Pace::Full).await.unwrap().more {}
        assert_eq!(world.must_be_clean().await.records, left, "at {at}");
        world.compact().await;
        assert_eq!(world.must_be_clean().await.records, left, "at {at}");
    }
}
