//! 14. Purge gives way to requests: what it does between two rests is little, and it rests for most of the time.
//!
//! The rest is decided by how long the work took, so here work takes a made-up time for each write to the store and the
//! clock is moved by hand. Real times are in `docs/performance.md`.

use std::time::Duration;

use mayfly_engine::{
    Pace,
    load::{Load, rest},
};
use mayfly_testkit::{Backend, World, recorder::Write, world::definition_with_ttl};

/// What a write costs in this test.
const WRITE: Duration = Duration::from_micros(10);

/// Documents that expire in the same second.
const DOCUMENTS: usize = 2000;

async fn expired() -> World {
    let world = World::new(Backend::Mirrored).await;
    world.create_container(definition_with_ttl("c", Some(1))).await.unwrap();
    for n in 0..DOCUMENTS {
        world.create("c", &format!(r#"{{"id":"{n}","a":1,"b":2,"c":3}}"#)).await.unwrap();
    }
    world.advance(1);
    world.now().await;
    world.writes();
    world
}

/// One tick: documents purged, and what it took.
async fn tick(world: &World, pace: Pace) -> (u64, Vec<Write>) {
    let now = world.now().await;
    let purged = world.engine().purge(now, pace).await.unwrap();
    (purged.documents, world.writes())
}

/// While requests come in, each tick is one small batch, and all ticks of a minute together take less than an eighth
/// of it. The backlog is gone before it is over.
#[tokio::test]
async fn ttl_14_purge_gives_way_while_requests_come_in() {
    let world = expired().await;
    let load = Load::default();
    let minute = Duration::from_secs(60);
    let (mut worked, mut passed, mut purged) = (Duration::ZERO, Duration::ZERO, 0);
    while passed < minute {
        drop(load.enter());
        let pace = load.pace();
        assert_eq!(pace, Pace::Gentle);
        let (documents, writes) = tick(&world, pace).await;
        let commits = writes.iter().filter(|write| matches!(write, Write::Commit(_))).count();
        assert!(commits <= 1 && documents <= 32, "{commits} commits for {documents} documents at once");
        let took = WRITE * writes.len() as u32;
        let rested = rest(pace, took, passed).expect("a rest");
        worked += took;
        passed += took + rested.max(Duration::from_millis(1));
        purged += documents;
    }
    assert!(worked * 8 < passed, "{worked:?} of {passed:?}");
    assert_eq!(purged, DOCUMENTS as u64);
}

/// When nobody asks, there is no rest, and a tick takes many at once.
#[tokio::test]
async fn ttl_14_purge_hurries_when_nobody_asks() {
    let world = expired().await;
    let load = Load::default();
    let mut ticks = 0;
    loop {
        let pace = load.pace();
        assert_eq!(rest(pace, WRITE, Duration::ZERO), None);
        ticks += 1;
        if tick(&world, pace).await.0 == 0 {
            break;
        }
    }
    assert!(ticks <= 3, "{ticks} ticks for {DOCUMENTS} documents");
    assert_eq!(world.must_be_clean().await.records, 0);
}
