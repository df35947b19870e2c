//! 14. Purge gives way to requests: what it does between two rests is little, and it rests for most of the time.
//!
//! The rest is decided by how long the work took, so here work takes a made-up time for each write to the store and the
//! clock is moved by hand. Real times are in `docs/performance.md`.

use std::time::Duration;

use mayfly_engine::{
    ContainerDefinition, Pace,
    load::{Load, rest},
};
use mayfly_testkit::{Backend, World, recorder::Write, world::definition_with_ttl};

/// What a write costs in this test.
const WRITE: Duration = Duration::from_micros(10);

/// Documents that expire in the same second.
const DOCUMENTS: usize = 2000;

/// Documents that have expired, with unique values or without: with them they go one by one.
async fn expired(unique: &[&str]) -> World {
    let world = World::new(Backend::Mirrored).await;
    let unique_keys = unique.iter().map(|path| vec![(*path).to_owned()]).collect();
    let container = ContainerDefinition { unique_keys, ..definition_with_ttl("c", Some(1)) };
    world.create_container(container).await.unwrap();
    for n in 0..DOCUMENTS {
        world.create("c", &format!(r#"{{"id":"{n}","a":{n},"b":2,"c":3}}"#)).await.unwrap();
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
/// of it, as long as purge is not behind. The backlog is gone before it is over.
#[tokio::test]
async fn ttl_14_purge_gives_way_while_requests_come_in() {
    let world = expired(&["/a"]).await;
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
        let rested = rest(pace, took, Duration::ZERO).expect("a rest");
        worked += took;
        passed += took + rested.max(Duration::from_millis(1));
        purged += documents;
    }
    assert!(worked * 8 < passed, "{worked:?} of {passed:?}");
    assert_eq!(purged, DOCUMENTS as u64);
}

/// 42. Purge that is behind rests less and less, and takes more at a time: else a load that never pauses would fill the
/// disk.
#[tokio::test]
async fn ttl_42_purge_that_is_behind_presses_on() {
    let world = expired(&["/a"]).await;
    let load = Load::default();
    drop(load.enter());
    let behind = [0, 2, 5, 10, 20].map(Duration::from_secs);
    let rests = behind.map(|behind| rest(Pace::Gentle, WRITE, behind).expect("requests come in"));
    assert!(rests.is_sorted_by(|less, more| less > more) && rests[4].is_zero(), "{rests:?}");
    assert_eq!(behind.map(|behind| load.purge_pace(behind))[..2], [Pace::Gentle, Pace::Pressing]);
    let (documents, _) = tick(&world, load.purge_pace(behind[1])).await;
    assert!(documents > 500, "{documents} documents at once");
}

/// By count a backlog takes one small write, whoever asks meanwhile.
#[tokio::test]
async fn ttl_14_purge_by_count_is_one_small_write() {
    let world = expired(&[]).await;
    let (documents, writes) = tick(&world, Pace::Gentle).await;
    let commits = writes.iter().filter(|write| matches!(write, Write::Commit(_))).count();
    // The place that purge has come to, the sums, and the slot's stamp.
    assert_eq!((documents, commits, writes.len() - commits), (DOCUMENTS as u64, 1, 3), "{writes:?}");
}

/// When nobody asks, there is no rest, and a tick takes many at once.
#[tokio::test]
async fn ttl_14_purge_hurries_when_nobody_asks() {
    let world = expired(&["/a"]).await;
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
