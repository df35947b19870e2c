//! The time-to-live contract, line by line.
//!
//! Each test is named after the line it shows. What needs a protocol (the wording of refusals, headers, request charges
//! on the wire) or a machine (speed) is shown where that is; scripts and the model go further into most of these.

use bson::RawBsonRef;
use mayfly_engine::{
    Access, ContainerDefinition, Direction, DocumentId, Error, EventKind, FeedStart, HashRange, InvalidTtl,
    Lookup, Operation, Pace, PageLimit, Resource, charge,
};
use mayfly_testkit::{
    Backend, Ground, World,
    recorder::Write,
    world::{
        START, definition, definition_with_ttl, document, id_of, index_access, key_of_id, partition_key,
    },
};
use mayfly_value::{keycode, order::Order, path::Path};

const BACKENDS: [Backend; 2] = [Backend::Mirrored, Backend::Embedded];

/// A world with a container `c` of this default, partitioned by id.
async fn world_with(backend: Backend, ttl: Option<i64>) -> World {
    let world = World::new(backend).await;
    world.create_container(definition_with_ttl("c", ttl)).await.unwrap();
    world
}

async fn count(world: &World, name: &str) -> u64 {
    let now = world.now().await;
    world.engine().usage(&world.must_container(name), now).await.unwrap().live.documents
}

/// The ids that a scan, an index scan, a reversed one and the feed show.
async fn seen_by_all_walks(world: &World, name: &str) -> Vec<usize> {
    let mut seen = Vec::new();
    for access in [Access::Records(HashRange::all()), index_access("/n")] {
        for direction in [Direction::Forward, Direction::Reverse] {
            seen.push(world.scan(name, &access, direction, 2).await.unwrap().len());
        }
    }
    let now = world.now().await;
    let container = world.must_container(name);
    let all = HashRange::all();
    let feed = world.engine().changes(&container, 0, FeedStart::Beginning, &all, 100, now).await.unwrap();
    seen.push(feed.records.len());
    seen
}

/// 1. An expired document is invisible to every operation at its second, with no background task having run.
#[tokio::test]
async fn ttl_01_expired_is_invisible_to_everything() {
    for backend in BACKENDS {
        let world = world_with(backend, Some(10)).await;
        world.create("c", r#"{"id":"a","n":1}"#).await.unwrap();
        world.create("c", r#"{"id":"b","n":2,"ttl":11}"#).await.unwrap();
        world.advance(9);
        assert_eq!(seen_by_all_walks(&world, "c").await, [2; 5]);
        world.advance(1);
        assert_eq!(world.get("c", "a").await, None);
        assert_eq!(seen_by_all_walks(&world, "c").await, [1; 5]);
        assert_eq!(count(&world, "c").await, 1);
        let now = world.now().await;
        let container = world.must_container("c");
        let forecast = world.engine().forecast(&container, None, now).await.unwrap();
        assert_eq!(forecast.live.documents, 1);
        let read = [Operation::Read { id: DocumentId::text("a") }];
        let key = key_of_id("a");
        let refused = world.engine().transact(&container, &key, &read, InvalidTtl::Refuse, now);
        assert!(matches!(refused.await.unwrap_err().error, Error::NotFound(Resource::Document)));
    }
}

/// 2. Its id, unique keys and etag are free at once; the new document is another one.
#[tokio::test]
async fn ttl_02_id_unique_keys_and_etag_are_free_at_once() {
    for backend in BACKENDS {
        let world = World::new(backend).await;
        let mut with_unique = definition("c", "/pk");
        with_unique.default_ttl = Some(5.try_into().unwrap());
        with_unique.unique_keys = vec![vec!["/u".to_owned()]];
        world.create_container(with_unique).await.unwrap();
        let first = world.create("c", r#"{"id":"a","pk":1,"u":1}"#).await.unwrap();
        let taken = world.create("c", r#"{"id":"b","pk":1,"u":1}"#).await;
        assert!(matches!(taken, Err(Error::UniqueViolation)));
        world.advance(5);
        let replaced = world.replace("c", r#"{"id":"a","pk":1,"u":1}"#).await;
        assert!(matches!(replaced, Err(Error::NotFound(Resource::Document))));
        let delete = Operation::Delete { id: DocumentId::text("a"), if_match: None };
        let deleted = world.write("c", &partition_key("1"), delete).await;
        assert!(matches!(deleted, Err(Error::NotFound(Resource::Document))));
        world.create("c", r#"{"id":"b","pk":1,"u":1}"#).await.unwrap();
        let second = world.create("c", r#"{"id":"a","pk":1,"u":2}"#).await.unwrap();
        assert_ne!(first.birth, second.birth);
        assert_ne!(first.lsn, second.lsn);
        world.must_be_clean().await;
    }
}

/// 3. One `now` per page: what is decided with the same time agrees, whatever the clock does meanwhile.
#[tokio::test]
async fn ttl_03_one_now_per_page() {
    let world = world_with(Backend::Mirrored, Some(10)).await;
    world.create("c", r#"{"id":"a","n":1}"#).await.unwrap();
    let now = world.now().await;
    world.advance(100);
    let container = world.must_container("c");
    let access = Access::Records(HashRange::all());
    let limit = mayfly_engine::PageLimit { rows: 10, bytes: usize::MAX };
    let page = world.engine().scan(&container, &access, Direction::Forward, None, limit, now).await.unwrap();
    let usage = world.engine().usage(&container, now).await.unwrap();
    assert_eq!((page.found.len() as u64, usage.live.documents), (1, 1));
}

/// 4. Reading never writes, and hiding is no delete.
#[tokio::test]
async fn ttl_04_reading_never_writes() {
    let world = world_with(Backend::Mirrored, Some(10)).await;
    world.create("c", r#"{"id":"a","n":1}"#).await.unwrap();
    world.advance(10);
    world.now().await;
    world.writes();
    assert_eq!(world.get("c", "a").await, None);
    seen_by_all_walks(&world, "c").await;
    count(&world, "c").await;
    assert!(world.writes().is_empty());
    assert_eq!(world.must_be_clean().await.records, 1);
}

/// 5. Deadlines are 64-bit.
#[tokio::test]
async fn ttl_05_deadlines_do_not_overflow() {
    for start in [START, 2_147_483_647, 4_294_967_295, 4_294_967_296, 253_402_300_800] {
        let world = world_with(Backend::Mirrored, Some(2_147_483_647)).await;
        world.set_clock(start);
        let record = world.upsert("c", r#"{"id":"a"}"#).await.unwrap();
        let at = world.engine().expires_at(&world.must_container("c"), &record).unwrap();
        assert_eq!(at.seconds(), start + 2_147_483_647);
        world.advance(2_147_483_646);
        assert!(world.get("c", "a").await.is_some());
        world.advance(1);
        assert_eq!(world.get("c", "a").await, None);
    }
}

/// 6. The clock never runs backwards for expiry: not by a step, a restart, or a crash.
#[tokio::test]
async fn ttl_06_time_never_goes_back() {
    for backend in BACKENDS {
        let mut world = world_with(backend, Some(10)).await;
        world.create("c", r#"{"id":"a"}"#).await.unwrap();
        world.advance(10);
        let seen_gone_at = world.now().await;
        assert_eq!(world.get("c", "a").await, None);
        world.set_clock(START);
        assert_eq!(world.get("c", "a").await, None);
        world.crash().await.unwrap();
        assert!(world.now().await >= seen_gone_at);
        assert_eq!(world.get("c", "a").await, None);
        world.reopen().await.unwrap();
        assert!(world.now().await >= seen_gone_at);
        assert_eq!(world.get("c", "a").await, None);
        assert!(!world.engine().ahead_of_clock().is_zero());
    }
}

/// 7. What several engines on one store tell agrees: the second one sees the first one's time and deadlines.
#[tokio::test]
async fn ttl_07_engines_on_one_store_agree() {
    let ground = Ground::new(Backend::Mirrored).await;
    let store = ground.open().await.unwrap();
    let at = |seconds| mayfly_engine::Timestamp::from_seconds(seconds);
    let one = World::on(store.clone(), at(START)).await.unwrap();
    let now = one.now().await;
    one.engine().create_database("db", now).await.unwrap();
    one.create_container(definition_with_ttl("c", Some(10))).await.unwrap();
    one.create("c", r#"{"id":"a"}"#).await.unwrap();
    one.advance(10);
    assert_eq!(one.get("c", "a").await, None);
    let slower = World::on(store, at(START)).await.unwrap();
    assert_eq!(slower.get("c", "a").await, None);
}

/// 8. Changing a default is one metadata write whatever is stored, effective for the next request.
#[tokio::test]
async fn ttl_08_changing_a_default_is_one_write() {
    let world = world_with(Backend::Mirrored, None).await;
    for documents in [1, 300] {
        for id in 0..documents {
            world.upsert("c", &format!(r#"{{"id":"{id}"}}"#)).await.unwrap();
        }
        world.advance(10);
        world.now().await;
        for ttl in [Some(100), Some(10), Some(-1), None] {
            world.writes();
            world.set_ttl("c", ttl).await.unwrap();
            let puts = world.writes().iter().filter(|write| is_put(write)).count();
            assert_eq!(puts, 1, "to {ttl:?} with {documents} documents");
        }
        assert_eq!(count(&world, "c").await, 0, "10 seconds old under a default of 10");
        world.purge().await.unwrap();
    }
}

fn is_put(write: &mayfly_testkit::recorder::Write) -> bool {
    matches!(write, mayfly_testkit::recorder::Write::Put(..))
}

/// 9. Expiry is final, whatever happens to the rule afterwards.
#[tokio::test]
async fn ttl_09_expiry_is_final() {
    for after in [None, Some(-1), Some(11), Some(2_147_483_647)] {
        for backend in BACKENDS {
            let world = world_with(backend, Some(10)).await;
            world.create("c", r#"{"id":"inherits"}"#).await.unwrap();
            world.create("c", r#"{"id":"own","ttl":10}"#).await.unwrap();
            world.advance(9);
            world.create("c", r#"{"id":"young"}"#).await.unwrap();
            world.advance(1);
            world.set_ttl("c", after).await.unwrap();
            assert_eq!(world.ids("c").await, ["young"], "after a default of {after:?}");
            world.set_ttl("c", None).await.unwrap();
            assert_eq!(world.ids("c").await, ["young"]);
        }
    }
}

/// 10. Off: nothing expires. −1: only own ttls. Set again: the ttls still there count again.
#[tokio::test]
async fn ttl_10_off_and_on_again() {
    let world = world_with(Backend::Mirrored, None).await;
    world.create("c", r#"{"id":"inherits"}"#).await.unwrap();
    world.create("c", r#"{"id":"own","ttl":100}"#).await.unwrap();
    world.advance(50);
    assert_eq!(world.ids("c").await, ["inherits", "own"]);
    world.set_ttl("c", Some(-1)).await.unwrap();
    world.advance(49);
    assert_eq!(world.ids("c").await, ["inherits", "own"]);
    world.set_ttl("c", None).await.unwrap();
    world.advance(50);
    assert_eq!(world.ids("c").await, ["inherits", "own"]);
    world.set_ttl("c", Some(1000)).await.unwrap();
    assert_eq!(world.ids("c").await, ["inherits"]);
}

/// 11. Any write restarts the countdown; removing `ttl` returns to the default; −1 pins.
#[tokio::test]
async fn ttl_11_any_write_restarts_the_countdown() {
    let world = world_with(Backend::Mirrored, Some(10)).await;
    world.create("c", r#"{"id":"a"}"#).await.unwrap();
    for body in [r#"{"id":"a"}"#, r#"{"id":"a","ttl":10}"#, r#"{"id":"a"}"#] {
        world.advance(9);
        world.replace("c", body).await.unwrap();
    }
    world.advance(9);
    world.upsert("c", r#"{"id":"a","ttl":-1}"#).await.unwrap();
    world.advance(1_000_000);
    assert!(world.get("c", "a").await.is_some());
}

/// 12. The preview says what a default would do; setting it does that.
#[tokio::test]
async fn ttl_12_the_preview_is_right() {
    let world = world_with(Backend::Mirrored, None).await;
    for age in 0..10 {
        world.create("c", &format!(r#"{{"id":"{age}"}}"#)).await.unwrap();
        world.advance(1);
    }
    for ttl in [1, 5, 9] {
        let now = world.now().await;
        let container = world.must_container("c");
        let default = Some(ttl.try_into().unwrap());
        let forecast = world.engine().forecast(&container, default, now).await.unwrap();
        assert_eq!(forecast.live.documents, 10);
        assert_eq!(forecast.at_once.documents, 10 - ttl as u64 + 1);
        assert_eq!(forecast.within_hour.documents, ttl as u64 - 1);
    }
    assert_eq!(count(&world, "c").await, 10, "asking changes nothing");
    world.set_ttl("c", Some(5)).await.unwrap();
    assert_eq!(count(&world, "c").await, 4);
}

/// 12 and 21. What was changed is remembered, and the forecast says hour by hour what goes.
#[tokio::test]
async fn ttl_21_the_forecast_counts_hours_and_days() {
    for backend in BACKENDS {
        let world = world_with(backend, Some(3600)).await;
        world.create("c", r#"{"id":"first hour"}"#).await.unwrap();
        world.create("c", r#"{"id":"second hour","ttl":3601}"#).await.unwrap();
        world.create("c", r#"{"id":"third day","ttl":172801}"#).await.unwrap();
        world.create("c", r#"{"id":"pinned","ttl":-1}"#).await.unwrap();
        let now = world.now().await;
        let container = world.must_container("c");
        let present = container.definition().default_ttl;
        let forecast = world.engine().forecast(&container, present, now).await.unwrap();
        let hours: Vec<_> = forecast.hourly.iter().map(|hour| hour.documents).collect();
        assert_eq!(hours[..3], [1, 1, 0]);
        assert_eq!(hours.iter().sum::<u64>(), 2, "the third day is beyond the hours");
        assert_eq!(forecast.daily.map(|day| day.documents)[..4], [2, 0, 1, 0]);
    }
}

/// Changes of the default are remembered, over a restart too; only so many of them.
#[tokio::test]
async fn changes_of_the_default_are_remembered() {
    for backend in BACKENDS {
        let mut world = world_with(backend, None).await;
        world.set_ttl("c", Some(60)).await.unwrap();
        world.advance(5);
        world.set_ttl("c", Some(60)).await.unwrap();
        world.set_ttl("c", Some(-1)).await.unwrap();
        world.reopen().await.unwrap();
        let container = world.must_container("c");
        let history: Vec<_> = container.ttl_history().iter().map(|c| (c.from, c.to)).collect();
        let sixty = Some(60.try_into().unwrap());
        assert_eq!(history, [(None, sixty), (sixty, Some((-1).try_into().unwrap()))]);
        let [first, second] = container.ttl_history() else { panic!("two changes") };
        assert!(second.at >= first.at + 5);
        for n in 1..=60 {
            world.set_ttl("c", Some(n)).await.unwrap();
        }
        let container = world.must_container("c");
        assert_eq!(container.ttl_history().len(), 50);
        assert_eq!(container.ttl_history()[49].to, sixty);
    }
}

/// 13. Purge finds its victims in order of time and looks at no others; it leaves no orphan.
#[tokio::test]
async fn ttl_13_purge_takes_what_is_due_and_all_of_it() {
    for backend in BACKENDS {
        let world = World::new(backend).await;
        let mut with_all = definition("c", "/pk");
        with_all.default_ttl = Some(100.try_into().unwrap());
        with_all.unique_keys = vec![vec!["/u".to_owned()]];
        with_all.log_minutes = Some(10);
        world.create_container_in_slots(with_all, 4).await.unwrap();
        for n in 0..300 {
            let ttl = if n % 3 == 0 { r#","ttl":50"# } else { "" };
            let pk = n % 7;
            world.create("c", &format!(r#"{{"id":"{n}","pk":{pk},"u":{n}{ttl}}}"#)).await.unwrap();
        }
        assert_eq!(world.purge().await.unwrap().documents, 0);
        world.advance(50);
        let purged = world.purge().await.unwrap();
        assert_eq!(purged.documents, 100);
        assert_eq!(purged.next.unwrap().seconds(), START + 100);
        assert_eq!(world.must_be_clean().await.records, 200);
        world.advance(50);
        assert_eq!(world.purge().await.unwrap().documents, 200);
        let report = world.must_be_clean().await;
        assert_eq!((report.records, report.entries), (0, 0));
        assert_eq!(world.purge().await.unwrap().next, None);
    }
}

/// Documents of `c` that have some `u`, and this `n` by the index alone.
async fn found_by_both(world: &World, n: i64) -> usize {
    let Access::Index(mut access) = index_access("/u") else { panic!("an index") };
    let Access::Index(also) = index_access("/n") else { panic!("an index") };
    let mut value = Vec::new();
    keycode::push_value(&mut value, RawBsonRef::Int64(n), Order::Cosmos);
    access.also.push(Lookup { index: also.index, value });
    let (container, limit) = (world.must_container("c"), PageLimit { rows: 1000, bytes: usize::MAX });
    let access = Access::Index(access);
    let page = world.engine().scan(&container, &access, Direction::Forward, None, limit, world.now().await);
    page.await.unwrap().found.len()
}

/// 13. Purge by count leaves rows to the store: nobody sees them, a crash forgets none, and compaction drops them.
#[tokio::test]
async fn ttl_13_what_is_purged_by_count_goes_with_compaction() {
    for (backend, pace) in
        BACKENDS.into_iter().flat_map(|backend| [(backend, Pace::Full), (backend, Pace::Gentle)])
    {
        let mut world = World::new(backend).await;
        let mut with_all = definition("c", "/pk");
        with_all.default_ttl = Some(100.try_into().unwrap());
        with_all.unique_keys = vec![vec!["/u".to_owned()]];
        world.create_container_in_slots(with_all, 2).await.unwrap();
        world.create_container(definition_with_ttl("plain", Some(100))).await.unwrap();
        let body = |n: usize, more: &str| format!(r#"{{"id":"{n}","pk":{},"u":{n},"n":{n}{more}}}"#, n % 7);
        for n in 0..400 {
            let ttl = if n % 10 == 0 { r#","ttl":1000"# } else { "" };
            world.create("c", &body(n, ttl)).await.unwrap();
            world.create("plain", &body(n, ttl)).await.unwrap();
        }
        world.advance(100);
        let now = world.now().await;
        let before = world.must_be_clean().await;
        while world.engine().purge(now, pace).await.unwrap().more {}
        let purged = world.must_be_clean().await;
        assert_eq!((before.records, purged.records), (800, 80));
        assert_eq!(purged.left > 2000, world.drops_dead_rows(), "{} rows are left to the store", purged.left);
        for name in ["c", "plain"] {
            assert_eq!(seen_by_all_walks(&world, name).await[..4], [40; 4]);
        }
        // One that comes back with another value, and one with the same.
        world.create("c", r#"{"id":"1","pk":1,"u":1,"n":-1}"#).await.unwrap();
        world.create("c", r#"{"id":"2","pk":2,"u":2,"n":2}"#).await.unwrap();
        assert_eq!(found_by_both(&world, 1).await, 0, "an entry of the first document with this id");
        assert_eq!(found_by_both(&world, 2).await, 1);
        world.crash().await.unwrap();
        world.compact().await;
        let compacted = world.must_be_clean().await;
        assert_eq!((compacted.records, compacted.left), (82, 0));
        // Feed, own deadline, unique key and five leaves; without own deadline and ttl; without unique key.
        assert_eq!(compacted.entries, 40 * 8 + 2 * 6 + 40 * 7);
    }
}

/// 9. Documents that a new date rule ends stay gone, though their rows were written before without a date, and those versions
/// lie deeper in the store than the ones that purge drops.
#[tokio::test]
async fn ttl_09_what_a_new_date_rule_ends_does_not_come_back() {
    for backend in BACKENDS {
        let mut world = World::new(backend).await;
        world.create_container(definition_with_ttl("c", Some(1_000_000))).await.unwrap();
        for n in 0..50 {
            world.create("c", &format!(r#"{{"id":"{n}","n":{n},"d":{{"$date":995}}}}"#)).await.unwrap();
        }
        world.compact().await;
        let (current, path) = (world.must_container("c"), Path::parse("/d").unwrap());
        world.engine().create_date_rule(&current, &path, 0, world.now().await).await.unwrap();
        world.build_indexes().await.unwrap();
        while world.engine().purge(world.now().await, Pace::Full).await.unwrap().more {}
        world.compact().await;
        assert_eq!(seen_by_all_walks(&world, "c").await[..4], [0; 4]);
        assert_eq!(world.must_be_clean().await.records, 0);
        // One takes the place of another, and is as new.
        world.create("c", r#"{"id":"1","n":-1}"#).await.unwrap();
        world.crash().await.unwrap();
        world.compact().await;
        assert_eq!(seen_by_all_walks(&world, "c").await[..4], [1; 4]);
        assert_eq!(world.must_be_clean().await.records, 1);
    }
}

/// 15. Purge costs the user nothing: no charge changes, and expired documents count nowhere.
#[tokio::test]
async fn ttl_15_expired_documents_cost_nothing() {
    let mut charges = Vec::new();
    for purged in [false, true] {
        let world = world_with(Backend::Mirrored, Some(10)).await;
        world.create("c", r#"{"id":"a","n":1}"#).await.unwrap();
        world.advance(10);
        if purged {
            world.purge().await.unwrap();
        }
        let now = world.now().await;
        let usage = world.engine().usage(&world.must_container("c"), now).await.unwrap();
        assert_eq!((usage.live.documents, usage.live.bytes), (0, 0));
        let body = document(r#"{"id":"a","n":1}"#);
        let operation = Operation::Upsert { id: id_of(&body), body, if_match: None };
        let outcome = world.write("c", &key_of_id("a"), operation).await.unwrap();
        assert_eq!(outcome.effect, mayfly_engine::Effect::Created);
        charges.push(outcome.charge);
    }
    assert_eq!(charges[0], charges[1]);
    assert_eq!(charges[0], charge::write(document(r#"{"id":"a","n":1}"#).as_bytes().len() as u32, 2));
}

/// 16. Disk space comes back without anyone asking.
///
/// Deletes alone make the files longer. Once purge has caught up the store is asked, and the files end below a tenth
/// of what they were when full. Until enough was purged to be worth the work, it is not.
#[tokio::test]
async fn ttl_16_disk_space_comes_back() {
    const BATCHES: usize = 30;
    const DOCUMENTS: usize = 100;
    let world = World::new(Backend::Embedded).await;
    let mut definition = definition("c", "/pk");
    definition.default_ttl = Some(10.try_into().unwrap());
    definition.indexing.included = vec!["/n/?".to_owned()];
    definition.indexing.excluded = vec!["/*".to_owned()];
    let container = world.create_container(definition).await.unwrap();
    for batch in 0..BATCHES {
        let create = |n: usize| {
            let id = batch * DOCUMENTS + n;
            let body = document(&format!(r#"{{"id":"{id}","pk":1,"n":{n},"text":"{}"}}"#, noise(id, 10_000)));
            Operation::Create { id: id_of(&body), body }
        };
        let (operations, now) = ((0..DOCUMENTS).map(create).collect::<Vec<_>>(), world.now().await);
        let key = partition_key("1");
        let done = world.engine().transact(&container, &key, &operations, InvalidTtl::Refuse, now).await;
        done.unwrap();
    }
    let full = world.stats().disk_bytes;
    assert!(full > 20_000_000, "{full}");
    assert!(!world.engine().reclaim().await.unwrap(), "nothing was purged");
    world.advance(10);
    assert_eq!(world.purge().await.unwrap().documents, (BATCHES * DOCUMENTS) as u64);
    let report = world.must_be_clean().await;
    assert_eq!((report.records, report.entries), (0, 0));
    let purged = world.stats().disk_bytes;
    assert!(purged < full * 3 / 2, "{purged} bytes after {full}");
    assert!(world.engine().reclaim().await.unwrap(), "enough was purged");
    let after = world.stats().disk_bytes;
    assert!(after < full / 10, "{after} bytes after {full}");
    assert!(!world.engine().reclaim().await.unwrap(), "it was done");
    world.must_be_clean().await;
}

/// 16. Space of documents that somebody deleted comes back in the same way.
#[tokio::test]
async fn ttl_16_deleted_documents_count_too() {
    let world = World::new(Backend::Mirrored).await;
    world.create_container(definition_with_ttl("c", None)).await.unwrap();
    for n in 0..9 {
        world.create("c", &format!(r#"{{"id":"{n}","text":"{}"}}"#, "x".repeat(2_000_000))).await.unwrap();
        assert!(!world.engine().reclaim().await.unwrap());
        world.delete("c", &n.to_string()).await.unwrap();
    }
    assert!(world.engine().reclaim().await.unwrap());
    assert!(!world.engine().reclaim().await.unwrap(), "it was done");
}

/// Text that does not compress well, the same for the same seed.
fn noise(seed: usize, length: usize) -> String {
    let mut state = seed as u64 + 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b'0' + (state % 64) as u8).to_ascii_lowercase()
    };
    (0..length).map(|_| next()).filter(|c| c.is_ascii_alphanumeric()).collect()
}

/// 17. One container's backlog does not starve another's, and purge goes on in read-only state.
#[tokio::test]
async fn ttl_17_a_backlog_starves_nobody() {
    let world = World::new(Backend::Mirrored).await;
    let with_unique =
        ContainerDefinition { unique_keys: vec![vec!["/u".to_owned()]], ..definition_with_ttl("c", Some(1)) };
    world.create_container(with_unique).await.unwrap();
    world.create_container(definition_with_ttl("other", Some(1))).await.unwrap();
    for n in 0..1000 {
        world.create("c", &format!(r#"{{"id":"{n}","u":{n}}}"#)).await.unwrap();
    }
    world.create("other", r#"{"id":"a"}"#).await.unwrap();
    world.advance(1);
    world.engine().set_read_only(true);
    let now = world.now().await;
    let tick = world.engine().purge(now, Pace::Gentle).await.unwrap();
    assert!(tick.more, "one tick does not take a thousand documents");
    let usage = world.engine().usage(&world.must_container("other"), now).await.unwrap();
    assert_eq!((usage.backlog.documents, usage.purged.documents), (0, 1));
    world.purge().await.unwrap();
    assert_eq!(world.must_be_clean().await.records, 0);
}

/// 18. Purge changes no answer. The model shows it at length; here is the smallest case.
#[tokio::test]
async fn ttl_18_purge_changes_no_answer() {
    let mut answers = Vec::new();
    for purges in [false, true] {
        let world = world_with(Backend::Mirrored, Some(10)).await;
        let mut told = Vec::new();
        for round in 0..5 {
            let created = world.create("c", &format!(r#"{{"id":"{round}","n":{round}}}"#)).await.unwrap();
            world.advance(4);
            if purges {
                world.purge().await.unwrap();
            }
            let now = world.now().await;
            let container = world.must_container("c");
            let all = HashRange::all();
            let feed = world.engine().changes(&container, 0, FeedStart::Beginning, &all, 9, now).await;
            let feed = feed.unwrap();
            told.push(format!(
                "{:?} {:?} {} {} {:?} {}",
                created.birth,
                world.ids("c").await,
                count(&world, "c").await,
                feed.position,
                feed.records.iter().map(|record| record.lsn).collect::<Vec<_>>(),
                world.engine().lsn(&container, 0).await.unwrap(),
            ));
        }
        answers.push(told);
    }
    assert_eq!(answers[0], answers[1]);
}

/// 19. Expiry is an event, once per version, with the second it happened.
#[tokio::test]
async fn ttl_19_expiry_is_an_event() {
    for purges in [false, true] {
        let world = World::new(Backend::Mirrored).await;
        let mut logged = definition_with_ttl("c", Some(10));
        logged.log_minutes = Some(60);
        let container = world.create_container(logged).await.unwrap();
        world.create("c", r#"{"id":"a","n":1}"#).await.unwrap();
        world.advance(10);
        if purges {
            world.purge().await.unwrap();
        }
        world.advance(5);
        world.create("c", r#"{"id":"a","n":2}"#).await.unwrap();
        world.advance(100);
        let now = world.now().await;
        world.engine().log(&container, 0, 0, &HashRange::all(), 100, now).await.unwrap();
        let page = world.engine().log(&container, 0, 0, &HashRange::all(), 100, now).await.unwrap();
        let events: Vec<_> = page
            .events
            .iter()
            .map(|(_, event)| (event.kind, event.expired_at.map(|at| at.seconds())))
            .collect();
        assert_eq!(
            events,
            [
                (EventKind::Create, None),
                (EventKind::Expire, Some(START + 10)),
                (EventKind::Create, None),
                (EventKind::Expire, Some(START + 25)),
            ]
        );
        assert_eq!(page.events[1].1.previous().unwrap().get_i32("n").unwrap(), 1);
    }
}

/// The documents that expired by a container's log, and how many seconds after the start each did.
async fn expiries(world: &World, name: &str) -> Vec<(String, u64)> {
    let now = world.now().await;
    let page =
        world.engine().log(&world.must_container(name), 0, 0, &HashRange::all(), 10_000, now).await.unwrap();
    let expired = page.events.iter().filter(|(_, event)| event.kind == EventKind::Expire);
    let told = expired.map(|(_, event)| {
        let id = event.id().unwrap().as_text().unwrap().to_owned();
        (id, event.expired_at.unwrap().seconds() - START)
    });
    told.collect()
}

/// A world with a container `c` that keeps a log for ever.
async fn world_with_log(ttl: Option<i64>) -> World {
    let world = World::new(Backend::Mirrored).await;
    let mut logged = definition_with_ttl("c", ttl);
    logged.log_minutes = Some(u32::MAX);
    world.create_container(logged).await.unwrap();
    world
}

/// 19. The second of an expiry is the one it happened in, though the default is another when purge comes.
#[tokio::test]
async fn ttl_19_expired_at_outlives_the_rule_it_happened_by() {
    for then in [Some(1), Some(1000), Some(-1), None] {
        let world = world_with_log(Some(10)).await;
        world.create("c", r#"{"id":"default"}"#).await.unwrap();
        world.create("c", r#"{"id":"own","ttl":7}"#).await.unwrap();
        world.advance(20);
        world.set_ttl("c", then).await.unwrap();
        world.advance(5);
        let mut told = expiries(&world, "c").await;
        told.sort();
        assert_eq!(told, [("default".to_owned(), 10), ("own".to_owned(), 7)], "then {then:?}");
    }
}

/// 19. What a new default finds overdue goes when that is set, and not before.
#[tokio::test]
async fn ttl_19_expired_at_is_not_before_the_rule() {
    let world = world_with_log(Some(100)).await;
    world.create("c", r#"{"id":"a"}"#).await.unwrap();
    world.advance(50);
    world.set_ttl("c", Some(10)).await.unwrap();
    world.advance(3);
    world.set_ttl("c", None).await.unwrap();
    world.create("c", r#"{"id":"b","ttl":5}"#).await.unwrap();
    world.advance(20);
    world.set_ttl("c", Some(-1)).await.unwrap();
    world.advance(20);
    world.set_ttl("c", None).await.unwrap();
    assert_eq!(expiries(&world, "c").await, [("a".to_owned(), 50), ("b".to_owned(), 73)]);
}

/// 19. However often the default changes before purge comes, each expiry has its own second, and the policy stays small.
#[tokio::test]
async fn ttl_19_expired_at_survives_many_changes() {
    let world = world_with_log(Some(10)).await;
    let mut wanted = Vec::new();
    for n in 0..200_u64 {
        world.create("c", &format!(r#"{{"id":"{n}"}}"#)).await.unwrap();
        // Defaults of 10, 11, 12 in turn; each document is the only one that goes under its own.
        let default = 10 + n % 3;
        world.set_ttl("c", Some(default as i64)).await.unwrap();
        wanted.push((n.to_string(), n * 20 + default));
        world.advance(20);
    }
    world.writes();
    world.set_ttl("c", None).await.unwrap();
    let bytes = world.writes().into_iter().map(|write| match write {
        mayfly_testkit::recorder::Write::Put(_, value) => value.len(),
        _ => 0,
    });
    assert!(bytes.sum::<usize>() < 10_000);
    let mut told = expiries(&world, "c").await;
    told.sort_by_key(|(_, at)| *at);
    assert_eq!(told, wanted);
}

/// 20. Remaining life is readable, and follows the rules of the moment.
#[tokio::test]
async fn ttl_20_remaining_life_is_readable() {
    let world = world_with(Backend::Mirrored, Some(10)).await;
    let record = world.create("c", r#"{"id":"a"}"#).await.unwrap();
    let expires =
        |world: &World| world.engine().expires_at(&world.must_container("c"), &record).map(|at| at.seconds());
    assert_eq!(expires(&world), Some(START + 10));
    world.set_ttl("c", Some(20)).await.unwrap();
    assert_eq!(expires(&world), Some(START + 20));
    world.set_ttl("c", Some(-1)).await.unwrap();
    assert_eq!(expires(&world), None);
}

/// 22. Metrics: purged, backlog and lag, per container.
#[tokio::test]
async fn ttl_22_backlog_and_lag_are_measured() {
    let world = world_with(Backend::Mirrored, Some(10)).await;
    world.create("c", r#"{"id":"a"}"#).await.unwrap();
    world.create("c", r#"{"id":"b","ttl":15}"#).await.unwrap();
    world.advance(17);
    let container = world.must_container("c");
    let usage = |now| world.engine().usage(&container, now);
    let now = world.now().await;
    let before = usage(now).await.unwrap();
    assert_eq!((before.backlog.documents, before.lag_seconds), (2, 7));
    world.purge().await.unwrap();
    let after = usage(now).await.unwrap();
    assert_eq!((after.backlog.documents, after.lag_seconds, after.purged.documents), (0, 0, 2));
    assert_eq!(after.purged.bytes, before.backlog.bytes);
    let metrics = world.engine().metrics().of(container.id);
    assert_eq!((metrics.writes.get(), metrics.purged_documents.get()), (2, 2));
}

/// 24. The clock of the time machine: frozen it stands, advanced it moves everything, and sleepers wake.
#[tokio::test]
async fn ttl_24_time_can_be_moved() {
    let world = world_with(Backend::Mirrored, Some(3600)).await;
    world.create("c", r#"{"id":"a"}"#).await.unwrap();
    let clock = world.engine().clock().clone();
    let wake_at = mayfly_engine::Timestamp::from_seconds(START + 3600);
    let sleeper = async {
        clock.sleep_until(wake_at).await;
        world.get("c", "a").await
    };
    let mover = async {
        assert!(world.get("c", "a").await.is_some());
        world.advance(3600);
    };
    let (found, ()) = tokio::join!(sleeper, mover);
    assert_eq!(found, None);
}

/// 42. A collection whose documents die as fast as they come: what purge has to write does not grow with them, and
/// compaction leaves nothing of the dead.
#[tokio::test]
async fn ttl_42_what_is_written_for_a_purge_does_not_grow_with_it() {
    let mut written = Vec::new();
    for documents in [10, 1000] {
        let world = world_with(Backend::Mirrored, Some(5)).await;
        if !world.drops_dead_rows() {
            return;
        }
        for n in 0..documents {
            let ttl = if n % 2 == 0 { r#","ttl":3"# } else { "" };
            world.create("c", &format!(r#"{{"id":"{n}","n":{n}{ttl}}}"#)).await.unwrap();
        }
        world.advance(5);
        world.writes();
        assert_eq!(world.purge().await.unwrap().documents, documents);
        written.push(world.writes().len());
        world.compact().await;
        let report = world.must_be_clean().await;
        assert_eq!((report.records, report.entries, report.left), (0, 0, 0));
    }
    assert_eq!(written[0], written[1]);
}

/// 43. Dropping a container is one write, and its space comes back without a look at its documents.
#[tokio::test]
async fn ttl_43_a_dropped_container_is_discarded() {
    let world = World::new(Backend::Embedded).await;
    if !world.drops_dead_rows() {
        return;
    }
    world.create_container(definition_with_ttl("kept", None)).await.unwrap();
    world.create("kept", r#"{"id":"a"}"#).await.unwrap();
    let container = world.create_container(definition("c", "/pk")).await.unwrap();
    for batch in 0..60 {
        let create = |n: usize| {
            let id = batch * 100 + n;
            let body = document(&format!(r#"{{"id":"{id}","pk":1,"text":"{}"}}"#, noise(id, 3000)));
            Operation::Create { id: id_of(&body), body }
        };
        let (operations, now) = ((0..100).map(create).collect::<Vec<_>>(), world.now().await);
        let key = partition_key("1");
        let done = world.engine().transact(&container, &key, &operations, InvalidTtl::Refuse, now).await;
        done.unwrap();
    }
    let full = world.stats().disk_bytes;
    world.writes();
    world.engine().delete_container(&container, None).await.unwrap();
    let commits = |writes: &[Write]| writes.iter().filter(|write| matches!(write, Write::Commit(_))).count();
    assert_eq!(commits(&world.writes()), 1);
    world.reap().await.unwrap();
    let writes = world.writes();
    let discards = writes.iter().filter(|write| matches!(write, Write::Discard(_))).count();
    assert_eq!((commits(&writes), discards), (1, 2), "{writes:?}");
    assert_eq!(world.must_be_clean().await.records, 1);
    world.compact().await;
    let after = world.stats().disk_bytes;
    assert!(after * 4 < full, "{after} bytes after {full}");
}
