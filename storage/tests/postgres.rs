//! The store on PostgreSQL keeps the contract. Needs a server: `cargo xtask test scale` brings one.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "postgres/cancel.rs"]
mod cancel;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use futures_util::FutureExt;
use mayfly_storage::{
    Error, PostgresStore, conformance,
    peers::Peers,
    store::{
        Advance, Batch, Counter, Direction, Expect, Guard, Key, KeyRange, MarkAt, PageLimit, Put, SeqMark,
        Slot, Space, Store, Urgency,
    },
    upkeep::Upkeep,
};
use mayfly_testkit::postgres::{empty_address, empty_address_on, empty_store, execute};
use tokio::{sync::Semaphore, task::JoinSet};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn conformance() {
    conformance::run_all(|| async { Arc::new(empty_store().await) as Arc<dyn Store> }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn survives_reopening() {
    let address = empty_address().await;
    conformance::survives_reopening(|| async {
        Arc::new(PostgresStore::open(&address).await.unwrap()) as Arc<dyn Store>
    })
    .await;
}

/// A slot of container 7, and a batch that adds one entry to its feed.
fn step(number: u32) -> (Slot, Batch) {
    let slot = Slot(7 * 4096 + number);
    let key =
        |bytes: &[u8]| Key { space: Space::Small, slot, bytes: [&number.to_be_bytes(), bytes].concat() };
    let entry = Put {
        key: key(b"feed/________"),
        value: vec![0; 100],
        marks: vec![SeqMark { advance: 0, at: MarkAt::Key(9) }],
    };
    let advances = vec![Advance { counter: key(b"counter"), stamp: 1, tally: [1, 0] }];
    (slot, Batch { puts: vec![entry], advances, ..Batch::default() })
}

async fn feed(store: &PostgresStore, number: u32) -> Vec<u64> {
    let slot = step(number).0;
    let prefix = [&number.to_be_bytes()[..], b"feed/"].concat();
    let range = KeyRange::prefix(Space::Small, slot, prefix);
    let limit = PageLimit { rows: 100_000, bytes: usize::MAX };
    loop {
        let snapshot = store.snapshot().await.unwrap();
        match snapshot.scan(&range, Direction::Forward, limit).await {
            Ok(page) => {
                let number = |key: &[u8]| u64::from_be_bytes(key[9..17].try_into().unwrap());
                return page.rows.iter().map(|(key, _)| number(key)).collect();
            }
            Err(Error::Moved) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// Groups go from server to server and back while two nodes write to them and read. What was acknowledged is there, once
/// and in order, and a node with an old map is refused and follows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn moves_under_load_lose_and_double_nothing() {
    const SLOTS: u32 = 6;
    const COMMITS: usize = 400;
    let address = empty_address().await;
    let other_server = empty_address_on(&std::env::var("MAYFLY_TEST_POSTGRES_2").unwrap()).await;
    let one = Arc::new(PostgresStore::open(&address).await.unwrap());
    let other = Arc::new(PostgresStore::open(&address).await.unwrap());
    let mover = PostgresStore::open(&address).await.unwrap();
    assert_eq!(mover.add_server(&other_server).await.unwrap(), 2);
    assert!(mover.add_server(&address).await.is_err(), "a server that holds data is no new one");

    // Each move has so many commits to keep it company. If they went on for as long as it takes, a slow machine would make the
    // feeds long, which makes moves slower still.
    let turns = Arc::new(Semaphore::new(0));
    let mut writers = JoinSet::new();
    for writer in 0..12 {
        let store = if writer % 2 == 0 { one.clone() } else { other.clone() };
        let turns = turns.clone();
        writers.spawn(async move {
            let mut numbers = Vec::new();
            while let Ok(turn) = turns.acquire().await {
                turn.forget();
                let (_, batch) = step(writer % SLOTS);
                numbers.push(store.commit(batch).await.unwrap().counters[0].seq);
                // The feed grows, and to read it each time would be all that happens here.
                if numbers.len() % 4 == 1 {
                    let seen = feed(&store, writer % SLOTS).await;
                    let last = *numbers.last().unwrap();
                    assert!(seen.len() as u64 >= last, "what was acknowledged is seen, wherever the slot is");
                }
            }
            (writer % SLOTS, numbers)
        });
    }
    let groups: Vec<u32> = (0..SLOTS).map(|number| (7 * 97 + number) % 256).collect();
    for to in [2, 1, 2] {
        for group in &groups {
            turns.add_permits(COMMITS);
            mover.move_group(*group, to).await.unwrap();
        }
    }
    turns.close();
    let mut acknowledged = vec![BTreeSet::new(); SLOTS as usize];
    let mut count = 0;
    while let Some(ended) = writers.join_next().await {
        let (number, numbers) = ended.unwrap();
        count += numbers.len();
        acknowledged[number as usize].extend(numbers);
    }
    println!("{count} commits during {} moves", 3 * groups.len());
    assert_eq!(acknowledged.iter().map(BTreeSet::len).sum::<usize>(), count, "no number was given twice");
    for number in 0..SLOTS {
        for store in [&*one, &*other, &mover] {
            let stored = feed(store, number).await;
            assert!(
                stored.iter().copied().eq(acknowledged[number as usize].iter().copied()),
                "slot {number}"
            );
        }
    }
    let members = mover.members().await.unwrap();
    assert_eq!(
        members.iter().map(|member| member.groups).collect::<Vec<_>>(),
        [256 - groups.len(), groups.len()]
    );
}

/// A node whose map is old, and which cannot get a new one, is refused by the server that the slot has left: it writes nothing
/// there and is shown nothing from there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn a_stale_map_is_refused() {
    let address = empty_address().await;
    let other_server = empty_address_on(&std::env::var("MAYFLY_TEST_POSTGRES_2").unwrap()).await;
    let stale = PostgresStore::open(&address).await.unwrap();
    let mover = PostgresStore::open(&address).await.unwrap();
    let (slot, group) = (step(0).0, 7 * 97 % 256);
    stale.commit(step(0).1).await.unwrap();
    mover.add_server(&other_server).await.unwrap();
    mover.move_group(group, 2).await.unwrap();
    execute(&address, &format!("UPDATE mayfly_map SET server = 1, epoch = 1 WHERE grp = {group}")).await;
    let counter = step(0).1.advances[0].counter.clone();
    let (written, read) = tokio::join!(stale.commit(step(0).1), stale.get(&counter));
    assert!(matches!((&written, &read), (Err(Error::Moved), Err(Error::Moved))), "{written:?}, {read:?}");
    let snapshot = stale.snapshot().await.unwrap();
    let (range, limit) =
        (KeyRange::prefix(Space::Small, slot, Vec::new()), PageLimit { rows: 10, bytes: 1000 });
    assert!(matches!(snapshot.scan(&range, Direction::Forward, limit).await, Err(Error::Moved)));
    // That is how a mover leaves it that dies before it has written the map. The next one finds the group and writes it down; the
    // node follows, and what it was refused has not been done.
    mover.move_group(group, 2).await.unwrap();
    assert_eq!(stale.commit(step(0).1).await.unwrap().counters[0].seq, 2);
    assert_eq!(feed(&mover, 0).await, [1, 2]);
}

/// One batch that adds an entry to the feeds of two slots.
fn step_of_two(first: u32, second: u32) -> Batch {
    let (mut batch, second) = (step(first).1, step(second).1);
    batch.puts.extend(
        second
            .puts
            .into_iter()
            .map(|put| Put { marks: vec![SeqMark { advance: 1, at: MarkAt::Key(9) }], ..put }),
    );
    batch.advances.extend(second.advances);
    batch
}

/// A batch may write to two slots of one server, not to slots of two.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn batches_across_servers_are_refused() {
    let store = PostgresStore::open(&empty_address().await).await.unwrap();
    let other_server = empty_address_on(&std::env::var("MAYFLY_TEST_POSTGRES_2").unwrap()).await;
    let both = || step_of_two(0, 1);
    let committed = store.commit(both()).await.unwrap();
    assert_eq!(committed.counters.iter().map(|counter| counter.seq).collect::<Vec<_>>(), [1, 1]);
    store.add_server(&other_server).await.unwrap();
    store.move_group(7 * 97 % 256, 2).await.unwrap();
    assert!(matches!(store.commit(both()).await, Err(Error::Apart)));
    assert_eq!((feed(&store, 0).await, feed(&store, 1).await), (vec![1], vec![1]));
}

/// Rows of one slot as a purge removes them: what is left, what is gone, and what else the batch does.
struct Purge {
    slot: Slot,
}

impl Purge {
    const ROWS: u64 = 40;
    const SLOT: Self = Self { slot: Slot(9 * 4096) };

    fn key(&self, bytes: impl AsRef<[u8]>) -> Key {
        Key { space: Space::Small, slot: self.slot, bytes: [b"purge/", bytes.as_ref()].concat() }
    }

    fn row(&self, number: u64) -> Key {
        self.key([&b"row"[..], &number.to_be_bytes()].concat())
    }

    fn put(&self, key: Key, version: u64) -> Put {
        Put { key, value: [&version.to_be_bytes()[..], b"value"].concat(), marks: Vec::new() }
    }

    /// The rows, each of a version that is its number, an entry for each, and two more.
    fn load(&self) -> Batch {
        let rows = (0..Self::ROWS).map(|number| self.put(self.row(number), number));
        let entries = (0..Self::ROWS).map(|number| self.put(self.key(format!("entry{number}")), 0));
        let more = [self.put(self.key("place"), 1), self.put(self.key("stays"), 7)];
        Batch { puts: rows.chain(entries).chain(more).collect(), ..Batch::default() }
    }

    /// Removes all but the last row, with their entries, which not all are there.
    fn batch(&self) -> Batch {
        let gone = || 0..Self::ROWS - 1;
        let guard = |key: Key, version: u64| Guard { key, expect: Expect::Version(version) };
        let mut guards: Vec<_> = gone().map(|number| guard(self.row(number), number)).collect();
        guards.push(guard(self.key("stays"), 7));
        guards.push(Guard { key: self.key("purged"), expect: Expect::Absent });
        // In no order that a server would choose.
        guards.reverse();
        let entries = gone().map(|number| self.key(format!("entry{number}")));
        let deletes = gone().map(|number| self.row(number)).chain(entries).chain([self.key("never was")]);
        Batch {
            guards,
            puts: vec![self.put(self.key("place"), 2)],
            deletes: deletes.collect(),
            advances: vec![Advance { counter: self.key("purged"), stamp: 0, tally: [-39, -500] }],
            urgency: Urgency::Background,
        }
    }
}

/// What a purge removes is looked at once, by a way of its own. Its answers and what it leaves are those of every other
/// commit, whatever stands in its way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn removals_are_decided_as_commits_are() {
    let purge = Purge::SLOT;
    let rewritten = |number: u64| Batch { puts: vec![purge.put(purge.row(number), 99)], ..Batch::default() };
    let deleted = |key: Key| Batch { deletes: vec![key], ..Batch::default() };
    let counter = |stamp: u64| {
        let advances = vec![Advance { counter: purge.key("purged"), stamp, tally: [-1, -1] }];
        Batch { advances, ..Batch::default() }
    };
    let relying = |expect: Expect| {
        let mut batch = purge.batch();
        batch
            .guards
            .iter_mut()
            .filter(|guard| guard.key == purge.key("purged"))
            .for_each(|guard| guard.expect = expect);
        batch
    };
    let urgent = Batch { urgency: Urgency::Foreground, ..purge.batch() };
    let no_counter = Batch { puts: vec![purge.put(purge.key("purged"), 1)], ..Batch::default() };
    let uncounted = Batch { advances: Vec::new(), ..purge.batch() };
    let cases = [
        ("nothing is in the way", None, purge.batch()),
        ("somebody waits", None, urgent),
        ("nothing is counted", None, uncounted),
        ("a row was written again", Some(rewritten(20)), purge.batch()),
        ("the first row is gone", Some(deleted(purge.row(0))), purge.batch()),
        ("what it relies on besides is gone", Some(deleted(purge.key("stays"))), purge.batch()),
        ("another has purged", Some(counter(0)), purge.batch()),
        ("another has purged, and that is known", Some(counter(0)), relying(Expect::Version(1))),
        ("the counter has a stamp", Some(counter(5)), relying(Expect::Version(1))),
        ("the counter is none", Some(no_counter), relying(Expect::Version(1))),
    ];
    for (name, first, batch) in cases {
        let (model, store) = (mayfly_storage::MemoryStore::new(), empty_store().await);
        let stores: [&dyn Store; 2] = [&model, &store];
        let mut seen = Vec::new();
        for store in stores {
            store.commit(purge.load()).await.unwrap();
            if let Some(first) = &first {
                store.commit(first.clone()).await.unwrap();
            }
            // Twice: the second time most of it is gone.
            let answers = [store.commit(batch.clone()).await, store.commit(batch.clone()).await];
            let range = KeyRange::prefix(Space::Small, purge.slot, b"purge/".to_vec());
            let limit = PageLimit { rows: 1000, bytes: usize::MAX };
            let left = store.snapshot().await.unwrap().scan(&range, Direction::Forward, limit).await.unwrap();
            seen.push((answers.map(|answer| format!("{answer:?}")), left.rows));
        }
        assert_eq!(seen[0], seen[1], "{name}");
    }
}

/// That way is another than that of every other commit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn removals_go_a_way_of_their_own() {
    let (purge, address) = (Purge::SLOT, empty_address().await);
    PostgresStore::open(&address).await.unwrap().commit(purge.load()).await.unwrap();
    execute(&address, "DROP FUNCTION mayfly_commit").await;
    let store = PostgresStore::open(&address).await.unwrap();
    store.commit(purge.batch()).await.unwrap();
    assert!(store.commit(purge.batch()).await.is_err(), "nothing to remove is for the other way to refuse");
}

/// Somebody who has the slot waits for a row that is being removed, and the removal waits for the slot: it gives way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn removals_give_way_to_who_has_the_slot() {
    let (purge, address) = (Purge::SLOT, empty_address().await);
    let store = Arc::new(PostgresStore::open(&address).await.unwrap());
    store.commit(purge.load()).await.unwrap();
    let (stranger, connection) = tokio_postgres::connect(&address, tokio_postgres::NoTls).await.unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { connection.await.is_ok() });
    let slot = purge.slot.0;
    stranger
        .batch_execute(&format!("BEGIN; SELECT 1 FROM mayfly_slot WHERE slot = {slot} FOR UPDATE"))
        .await
        .unwrap();
    let removing = store.clone();
    tasks.spawn(async move { removing.commit(Purge::SLOT.batch()).await.is_ok() });
    let blocked =
        "SELECT count(*) FROM pg_stat_activity WHERE pg_backend_pid() = ANY (pg_blocking_pids(pid))";
    while stranger.query_one(blocked, &[]).await.unwrap().get::<_, i64>(0) == 0 {}
    // It has deleted the rows, and waits for the slot; so this waits for the rows until it gives up.
    let touched = stranger.execute(&format!("UPDATE mayfly_kv SET v = v WHERE slot = {slot}"), &[]).await;
    assert_eq!(touched.unwrap(), 2 * Purge::ROWS + 2);
    stranger.batch_execute("COMMIT").await.unwrap();
    drop(stranger);
    while let Some(ended) = tasks.join_next().await {
        assert!(ended.unwrap(), "then it is done the other way");
    }
    let left = KeyRange::prefix(Space::Small, purge.slot, b"purge/row".to_vec());
    assert_eq!(store.peek(&left, 100).await.unwrap().len(), 1);
}

/// A removal from a group that is being copied elsewhere is written down as any other change.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn removals_from_a_group_that_moves_go_with_it() {
    let (purge, address) = (Purge::SLOT, empty_address().await);
    let store = PostgresStore::open(&address).await.unwrap();
    store.commit(purge.load()).await.unwrap();
    execute(&address, "UPDATE mayfly_slot SET moving = true").await;
    store.commit(purge.batch()).await.unwrap();
    let (client, connection) = tokio_postgres::connect(&address, tokio_postgres::NoTls).await.unwrap();
    let mut served = JoinSet::new();
    served.spawn(connection);
    let row = client.query_one("SELECT count(*) FROM mayfly_moved", &[]).await.unwrap();
    // All that it deletes, the place and the counter.
    assert_eq!(row.get::<_, i64>(0), purge.batch().deletes.len() as i64 + 2);
    drop(client);
    served.join_next().await.unwrap().unwrap().unwrap();
}

/// Rows that come and go take no more than a few times the space of those that are there at a time, and what is free at the end
/// is given back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn space_of_deleted_rows_is_used_again() {
    const ROWS: u32 = 30_000;
    let address = empty_address().await;
    let store = PostgresStore::open(&address).await.unwrap();
    let slot = Slot(9 * 4096);
    let (client, connection) = tokio_postgres::connect(&address, tokio_postgres::NoTls).await.unwrap();
    let mut served = JoinSet::new();
    served.spawn(connection);
    // Here the server's own does nothing.
    client.batch_execute("ALTER TABLE mayfly_kv SET (autovacuum_enabled = false)").await.unwrap();
    let size = async || {
        let row = client.query_one("SELECT pg_relation_size('mayfly_kv')", &[]).await.unwrap();
        row.get::<_, i64>(0)
    };
    let key = |round: u32, number: u32| Key {
        space: Space::Large,
        slot,
        bytes: [round.to_be_bytes(), number.to_be_bytes()].concat(),
    };
    let mut once = 0;
    for round in 0..12 {
        for some in (0..ROWS).collect::<Vec<_>>().chunks(5000) {
            let put = |number: &u32| Put { key: key(round, *number), value: vec![1; 100], marks: Vec::new() };
            store.commit(Batch { puts: some.iter().map(put).collect(), ..Batch::default() }).await.unwrap();
        }
        once = once.max(if round == 0 { size().await } else { 0 });
        for some in (0..ROWS).collect::<Vec<_>>().chunks(5000) {
            let deletes = some.iter().map(|number| key(round, *number)).collect();
            store.commit(Batch { deletes, ..Batch::default() }).await.unwrap();
        }
    }
    let most = size().await;
    assert!(most < 6 * once, "{most} bytes for {once} at a time");
    // Another test may be shown what is gone, for a moment.
    while size().await >= once / 10 {
        store.reclaim().await.unwrap();
    }
    // A row at the end keeps the table long, until it is written anew.
    for some in (0..10 * ROWS).collect::<Vec<_>>().chunks(5000) {
        let put = |number: &u32| Put { key: key(20, *number), value: vec![1; 200], marks: Vec::new() };
        store.commit(Batch { puts: some.iter().map(put).collect(), ..Batch::default() }).await.unwrap();
    }
    let full = size().await;
    for some in (0..10 * ROWS - 1).collect::<Vec<_>>().chunks(5000) {
        let deletes = some.iter().map(|number| key(20, *number)).collect();
        store.commit(Batch { deletes, ..Batch::default() }).await.unwrap();
    }
    store.reclaim().await.unwrap();
    assert!(size().await > full / 2, "{} of {full} bytes", size().await);
    while !store.compact_when_idle().await.unwrap() {}
    assert!(size().await < full / 100, "{} of {full} bytes", size().await);
    assert!(store.get(&key(20, 10 * ROWS - 1)).await.unwrap().is_some());
    drop(client);
    served.join_next().await.unwrap().unwrap().unwrap();
}

/// A batch that the server gives up for the sake of another transaction is tried again: the caller does not notice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn who_loses_a_deadlock_tries_again() {
    let address = empty_address().await;
    let store = Arc::new(PostgresStore::open(&address).await.unwrap());
    store.commit(step_of_two(0, 1)).await.unwrap();
    let (stranger, connection) = tokio_postgres::connect(&address, tokio_postgres::NoTls).await.unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { connection.await.map(|()| 0).unwrap_or_default() });
    // A stranger takes the slots the other way round.
    let take =
        |number: u32| format!("SELECT 1 FROM mayfly_slot WHERE slot = {} FOR UPDATE", step(number).0.0);
    stranger.batch_execute(&format!("BEGIN; {}", take(1))).await.unwrap();
    let waiting = store.clone();
    tasks.spawn(async move { waiting.commit(step_of_two(0, 1)).await.unwrap().counters[0].seq });
    // Once the store waits for it, it has the first slot, and each waits for the other.
    let blocked =
        "SELECT count(*) FROM pg_stat_activity WHERE pg_backend_pid() = ANY (pg_blocking_pids(pid))";
    while stranger.query_one(blocked, &[]).await.unwrap().get::<_, i64>(0) == 0 {}
    // The one that has waited longer is given up, which is the store; unless this took long.
    let taken = stranger.batch_execute(&take(0)).await;
    stranger.batch_execute(if taken.is_ok() { "COMMIT" } else { "ROLLBACK" }).await.unwrap();
    drop(stranger);
    let mut last = 0;
    while let Some(ended) = tasks.join_next().await {
        last = last.max(ended.unwrap());
    }
    assert_eq!(last, 2);
    assert_eq!((feed(&store, 0).await, feed(&store, 1).await), (vec![1, 2], vec![1, 2]));
}

/// A batch over several slots waits for the disk, though part of it only looks: at the rules of the container, say.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn batches_over_slots_are_durable() {
    let address = empty_address().await;
    let store = PostgresStore::open(&address).await.unwrap();
    let rules = Key { space: Space::Small, slot: Slot(0), bytes: b"rules".to_vec() };
    let put = Put { key: rules.clone(), value: 3_u64.to_be_bytes().to_vec(), marks: vec![] };
    store.commit(Batch { puts: vec![put], ..Batch::default() }).await.unwrap();
    // What holds when a transaction ends decides; a trigger that runs last writes it down.
    execute(
        &address,
        "CREATE TABLE found (waits text); \
         CREATE FUNCTION look() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
             INSERT INTO found VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$; \
         CREATE CONSTRAINT TRIGGER last AFTER INSERT OR UPDATE ON mayfly_kv DEFERRABLE INITIALLY DEFERRED \
             FOR EACH ROW EXECUTE FUNCTION look()",
    )
    .await;
    let guards = vec![Guard { key: rules, expect: Expect::Version(3) }];
    store.commit(Batch { guards, ..step_of_two(0, 1) }).await.unwrap();
    execute(
        &address,
        "DO $$ BEGIN ASSERT (SELECT count(*) > 0 AND bool_and(waits = 'on') FROM found), 'it does not wait'; END $$",
    )
    .await;
}

/// Two nodes write to many slots at once, in groups that have the same slots and meet in every way. Each slot has one order,
/// nobody waits for ever, and transactions are shared.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn groups_of_many_slots_keep_the_order_of_each() {
    const SLOTS: u32 = 5;
    const STEPS: u32 = 20;
    let address = empty_address().await;
    let nodes = [
        Arc::new(PostgresStore::open(&address).await.unwrap()),
        Arc::new(PostgresStore::open(&address).await.unwrap()),
    ];
    let mut writers = JoinSet::new();
    for writer in 0..24 {
        let store = nodes[writer as usize % 2].clone();
        writers.spawn(async move {
            let mut numbers = vec![Vec::new(); SLOTS as usize];
            for turn in 0..STEPS {
                let slot = (writer + turn) % SLOTS;
                // Now and then a slot that nobody has written to, and a guard that does not hold.
                let (name, mut batch) = step(if turn == 7 { 1000 + writer } else { slot });
                if turn % 5 == 3 {
                    let key = Key { space: Space::Small, slot: name, bytes: b"nothing".to_vec() };
                    batch.guards = vec![Guard { key: key.clone(), expect: Expect::Version(1) }];
                    match store.commit(batch).await {
                        Err(Error::Conflict { key: found }) => assert_eq!(found, key),
                        other => panic!("{other:?}"),
                    }
                } else {
                    let number = store.commit(batch).await.unwrap().counters[0].seq;
                    if turn != 7 {
                        numbers[slot as usize].push(number);
                    }
                }
            }
            numbers
        });
    }
    let mut all = vec![Vec::new(); SLOTS as usize];
    while let Some(ended) = writers.join_next().await {
        for (all, numbers) in all.iter_mut().zip(ended.unwrap()) {
            assert!(numbers.is_sorted(), "the numbers of one writer go up");
            all.extend(numbers);
        }
    }
    for (number, mut all) in (0..).zip(all) {
        all.sort_unstable();
        assert_eq!(all, (1..=all.len() as u64).collect::<Vec<_>>(), "slot {number}");
        assert_eq!(feed(&nodes[0], number).await, all, "slot {number}");
    }
    for node in nodes {
        let stats = node.stats();
        assert!(stats.groups < stats.commits, "{} commits in {} groups", stats.commits, stats.groups);
    }
}

/// Many on two nodes raise one counter, each from what it has just read. Whoever is refused was too late: the counter is not
/// what it read, also if that was another node's doing which this node has not heard the answer to its own commit since.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn who_has_read_the_last_version_is_not_refused() {
    const STEPS: u64 = 40;
    let address = empty_address().await;
    let counter = Key { space: Space::Small, slot: step(0).0, bytes: b"counter".to_vec() };
    let mut writers = JoinSet::new();
    let mut nodes = Vec::new();
    for _ in 0..2 {
        nodes.push(Arc::new(PostgresStore::open(&address).await.unwrap()));
    }
    for writer in 0..12 {
        let (store, counter) = (nodes[writer % 2].clone(), counter.clone());
        writers.spawn(async move {
            let read =
                async || store.get(&counter).await.unwrap().map(|row| Counter::decode(&row).unwrap().seq);
            let mut refused = 0;
            for _ in 0..STEPS {
                let mut known = read().await;
                loop {
                    let expect = known.map_or(Expect::Absent, Expect::Version);
                    let guards = vec![Guard { key: counter.clone(), expect }];
                    let advances = vec![Advance { counter: counter.clone(), stamp: 0, tally: [0, 0] }];
                    match store.commit(Batch { guards, advances, ..Batch::default() }).await {
                        Ok(committed) => {
                            assert_eq!(committed.counters[0].seq, known.unwrap_or(0) + 1);
                            break;
                        }
                        Err(Error::Conflict { .. }) => {
                            refused += 1;
                            let found = read().await;
                            assert!(found > known, "refused for {known:?}, which is what is there");
                            known = found;
                        }
                        Err(error) => panic!("{error}"),
                    }
                }
            }
            refused
        });
    }
    let mut refused = 0;
    while let Some(ended) = writers.join_next().await {
        refused += ended.unwrap();
    }
    println!("{refused} came too late");
    assert!(refused > 0, "nobody met anybody");
    let row = nodes[0].get(&counter).await.unwrap().unwrap();
    assert_eq!(Counter::decode(&row).unwrap().seq, 12 * STEPS);
}

/// A batch that guards a row of another slot is refused once the floor is above the version it relies on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn floors_refuse_old_versions() {
    let address = empty_address().await;
    let store = PostgresStore::open(&address).await.unwrap();
    let other = PostgresStore::open(&address).await.unwrap();
    let rules = Key { space: Space::Small, slot: Slot(0), bytes: b"rules".to_vec() };
    let relying = |version| {
        let guards = vec![Guard { key: rules.clone(), expect: Expect::Version(version) }];
        Batch { guards, ..step(0).1 }
    };
    let slot = step(0).0;
    store.commit(relying(3)).await.unwrap();
    other.raise_floor(&[slot], 4).await.unwrap();
    match store.commit(relying(3)).await {
        Err(Error::Conflict { key }) => assert_eq!(key, rules),
        other => panic!("{other:?}"),
    }
    assert_eq!(store.floor(slot), 4, "the refusal says what the floor is");
    store.commit(relying(4)).await.unwrap();
    // A floor never goes down.
    other.raise_floor(&[slot], 2).await.unwrap();
    assert!(store.commit(relying(3)).await.is_err());
}

/// A node that has changed the catalog says so, and the others hear it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn changes_of_the_catalog_are_heard_of() {
    let address = empty_address().await;
    let (one, other) =
        (PostgresStore::open(&address).await.unwrap(), PostgresStore::open(&address).await.unwrap());
    let heard = async || tokio::time::timeout(Duration::from_secs(10), other.told()).await.is_ok();
    other.listen();
    assert!(heard().await, "that it listens");
    let counter = Key { space: Space::Small, slot: Slot(0), bytes: b"counter".to_vec() };
    let change = Batch { advances: vec![Advance { counter, stamp: 0, tally: [0, 0] }], ..Batch::default() };
    one.commit(change).await.unwrap();
    assert!(heard().await);
    // Writes to documents are nobody else's business.
    one.commit(step(0).1).await.unwrap();
    let quiet = tokio::time::timeout(Duration::from_millis(300), other.told()).await;
    assert!(quiet.is_err());
}

/// A key that an index of the server cannot hold is refused as what it is, and spoils nothing for who waits beside it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn keys_that_are_too_long_are_refused_alone() {
    let store = Arc::new(empty_store().await);
    let slot = step(0).0;
    // Nothing that compresses.
    let mut state = 1_u64;
    let noise = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    let long: Vec<u8> = (0..4000).map(noise).collect();
    let putting = |bytes: Vec<u8>| {
        let key = Key { space: Space::Small, slot, bytes };
        Batch { puts: vec![Put { key, value: vec![1], marks: Vec::new() }], ..Batch::default() }
    };
    let mut commits = JoinSet::new();
    for number in 0..20_u8 {
        let (store, bytes) = (store.clone(), if number == 7 { long.clone() } else { vec![number] });
        let batch = putting(bytes);
        commits.spawn(async move { (number, store.commit(batch).await) });
    }
    while let Some(ended) = commits.join_next().await {
        match ended.unwrap() {
            (7, Err(Error::KeyTooLong { .. })) => {}
            (number, Ok(_)) if number != 7 => {}
            other => panic!("{other:?}"),
        }
    }
}

/// What the address says about encryption is done: a server with a certificate of an authority of the test's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn connections_are_encrypted_and_certificates_checked() {
    let variable = |name: &str| std::env::var(name).unwrap_or_else(|_| panic!("{name} is set"));
    // For `localhost`, with its port.
    let (server, plain) = (variable("MAYFLY_TEST_POSTGRES_TLS"), variable("MAYFLY_TEST_POSTGRES"));
    let (ca, other_ca) = (variable("MAYFLY_TEST_POSTGRES_CA"), variable("MAYFLY_TEST_POSTGRES_OTHER_CA"));
    let by_number = server.replace("localhost", "127.0.0.1");
    for good in [
        format!("{server}?sslmode=verify-full&sslrootcert={ca}"),
        format!("{by_number}?sslmode=verify-ca&sslrootcert={ca}"),
        format!("{server}?sslmode=require"),
        format!("{server}?sslmode=prefer"),
        format!("{plain}?sslmode=prefer"),
    ] {
        let store = PostgresStore::open(&good).await.unwrap_or_else(|error| panic!("{good}: {error}"));
        let is_encrypted = store.members().await.unwrap()[0].is_encrypted;
        assert_eq!(is_encrypted, !good.starts_with(&plain), "{good}");
    }
    for (bad, text) in [
        (format!("{by_number}?sslmode=verify-full&sslrootcert={ca}"), "not valid for name"),
        (format!("{server}?sslmode=verify-full&sslrootcert={other_ca}"), "UnknownIssuer"),
        (format!("{server}?sslmode=require&sslrootcert={other_ca}"), "UnknownIssuer"),
        (format!("{plain}?sslmode=require"), "does not support TLS"),
    ] {
        match PostgresStore::open(&bad).await {
            Err(error) => assert!(error.to_string().contains(text), "{bad}: {error}"),
            Ok(_) => panic!("{bad} was taken"),
        }
    }
}

/// A snapshot that nobody waits for any more while it begins leaves no old view behind for whoever takes the connection next.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn snapshots_that_were_given_up_leave_nothing() {
    let store = empty_store().await;
    let key = Key { space: Space::Small, slot: Slot(7), bytes: b"k".to_vec() };
    for round in 0..300_u64 {
        {
            let mut opening = std::pin::pin!(store.snapshot());
            // Some have asked for a connection by then, some have begun.
            for _ in 0..round % 4 {
                if (&mut opening).now_or_never().is_some() {
                    break;
                }
                tokio::task::yield_now().await;
            }
        }
        let put = Put { key: key.clone(), value: round.to_be_bytes().to_vec(), marks: Vec::new() };
        store.commit(Batch { puts: vec![put], ..Batch::default() }).await.unwrap();
        let found = store.snapshot().await.unwrap().get(&key).await.unwrap();
        assert_eq!(found.as_deref(), Some(&round.to_be_bytes()[..]), "round {round}");
    }
}
