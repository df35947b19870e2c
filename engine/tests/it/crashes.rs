//! Every crash of a run, and every state each may leave.
//!
//! The run is made once, on a store that remembers its state after every commit. Then each state that some crash could
//! leave is opened: the check finds nothing, time has not gone back, and the documents are those of the step before or
//! after the commit. What was acknowledged is there; only background work may be missing, as a suffix.

use std::sync::Arc;

use mayfly_engine::Timestamp;
use mayfly_storage::MemoryStore;
use mayfly_testkit::{
    CrashImages, World,
    model::Model,
    trace::{Failure, Tracer},
    world::START,
};

use crate::workload;

/// The run after a step.
struct Moment {
    changes: usize,
    model: Model,
    clock: u64,
    told: Timestamp,
}

#[tokio::test]
async fn every_crash_leaves_a_store_that_opens() {
    for is_plain in [false, true] {
        every_crash(is_plain).await;
    }
}

async fn every_crash(is_plain: bool) {
    let images = Arc::new(CrashImages::new(&MemoryStore::new()));
    let world = World::on(images.clone(), Timestamp::from_seconds(START)).await.unwrap();
    let mut tracer = match is_plain {
        true => Tracer::plain(world, Some(-1)).await.unwrap(),
        false => Tracer::new(world, Some(-1)).await.unwrap(),
    };
    let mut moments = Vec::new();
    for step in [None].into_iter().chain(workload::steps().into_iter().map(Some)) {
        if let Some(step) = &step {
            tracer.step(step).await.unwrap();
        }
        moments.push(Moment {
            changes: images.changes().await,
            model: tracer.model().clone(),
            clock: tracer.world().clock_seconds(),
            told: tracer.told(),
        });
    }

    let first = moments[0].changes;
    let points = images.points().await;
    let points: Vec<_> = points.into_iter().filter(|point| point.survived >= first).collect();
    assert!(points.len() > workload::steps().len(), "only {} crashes", points.len());
    for point in points {
        let after = moments.iter().position(|moment| moment.changes >= point.survived).unwrap();
        let crashed = moments.iter().find(|moment| moment.changes >= point.acknowledged).unwrap();
        let store = Arc::new(images.after(point.survived).await.unwrap());
        let exactly = moments[after].changes == point.survived;
        let allowed = if exactly { after..=after } else { after.saturating_sub(1)..=after };
        let mut failures = Vec::new();
        for moment in allowed.clone().map(|number| &moments[number]) {
            // Only what a client waited for binds time: it was told at most this, and the store knew.
            let told = moment.told.min(moments[after].told);
            let store = Arc::new(store.fork());
            let world = World::on(store, Timestamp::from_seconds(crashed.clock)).await.unwrap();
            let mut opened = Tracer::resume(world, moment.model.clone(), told);
            match opened.compare(false).await {
                Ok(()) => failures.clear(),
                Err(Failure::Disagreement(how)) => {
                    failures.push(how);
                    continue;
                }
                Err(Failure::Store(error)) => panic!("{point:?}: {error}"),
            }
            break;
        }
        assert!(failures.is_empty(), "{point:?} is none of steps {allowed:?}: {failures:#?}");
    }
}
