//! Time on nodes that share PostgreSQL. Needs a server: `cargo xtask test scale` brings one.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use mayfly_engine::{Clock, Engine, clock::Stopwatch};
use mayfly_engine::{InvalidTtl, Operation};
use mayfly_server::server_clock::ServerClock;
use mayfly_storage::PostgresStore;
use mayfly_testkit::{
    postgres::empty_address,
    world::{definition_with_ttl, document, id_of, key_of_id},
};

/// A node whose machine has a clock of its own: `ahead` of the truth, and fast by some millionths.
async fn node(address: &str, watch: Stopwatch, ahead: Duration, fast_ppm: u64) -> (Engine, Arc<ServerClock>) {
    let store = Arc::new(PostgresStore::open(address).await.unwrap());
    let local = move || {
        let elapsed = watch.elapsed();
        ahead + elapsed + elapsed * fast_ppm as u32 / 1_000_000
    };
    let clock = ServerClock::with_local(store.time(), Box::new(local)).await.unwrap();
    let engine = Engine::builder(store).clock(clock.clone()).open().await.unwrap();
    (engine, clock)
}

/// Two nodes with clocks five seconds apart watch documents expire. Once one of them has said that a document is gone, no
/// request that begins later, on either node, finds it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn nodes_with_clocks_apart_agree_on_every_expiry() {
    let address = empty_address().await;
    let watch = Stopwatch::start();
    let (one, one_clock) = node(&address, watch, Duration::ZERO, 0).await;
    let (other, other_clock) = node(&address, watch, Duration::from_secs(5), 200).await;
    let apart = one_clock.now().0.abs_diff(other_clock.now().0);
    assert!(apart < 1000, "both go by the server's clock, not their own: {apart} ms");

    let now = one.now().await.unwrap();
    let database = one.create_database("db", now).await.unwrap();
    one.create_container(&database, definition_with_ttl("c", Some(-1)), 1, now).await.unwrap();
    other.refresh().await.unwrap();
    for number in 0..20 {
        let body = document(&format!(r#"{{"id":"{number}","ttl":{}}}"#, 1 + number % 3));
        let container = one.container(&database, "c").unwrap();
        let (id, now) = (id_of(&body), one.now().await.unwrap());
        let create = Operation::Create { id, body };
        one.write(&container, &key_of_id(&number.to_string()), create, InvalidTtl::Refuse, now)
            .await
            .unwrap();
    }

    // When each was first said to be gone, by anybody: the end of the request that said it.
    let mut gone: BTreeMap<usize, Duration> = BTreeMap::new();
    let mut requests = 0;
    while gone.len() < 20 {
        assert!(watch.elapsed() < Duration::from_secs(60), "documents that do not expire");
        for (number, engine) in (0..20).flat_map(|number| [(number, &one), (number, &other)]) {
            let text = number.to_string();
            let began = watch.elapsed();
            let now = engine.now().await.unwrap();
            let container = engine.container(&engine.database("db").unwrap(), "c").unwrap();
            let id = id_of(&document(&format!(r#"{{"id":"{text}"}}"#)));
            let found = engine.read(&container, &key_of_id(&text), &id, now).await.unwrap();
            requests += 1;
            match found {
                Some(_) => {
                    let since = gone.get(&number);
                    assert!(since.is_none_or(|since| began < *since), "{number} came back");
                }
                None => {
                    gone.entry(number).or_insert_with(|| watch.elapsed());
                }
            }
        }
        if requests % 200 == 0 {
            one_clock.sample().await.unwrap();
            other_clock.sample().await.unwrap();
        }
    }
    println!("{requests} requests");
}
