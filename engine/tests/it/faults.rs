//! Every place of a run where the store can fail.
//!
//! The run is made again and again, with the first, the second, the third … commit failing, until it comes
//! through. A failed step says so and leaves nothing half-done: after opening the store again the check finds
//! nothing and the documents are those of before the step, or those of after it. Then the run goes on to its
//! end.

use std::sync::Arc;

use mayfly_engine::Timestamp;
use mayfly_storage::MemoryStore;
use mayfly_testkit::{
    Faulty, World,
    faulty::{Calls, Fault},
    model::Step,
    trace::{Failure, Tracer},
    world::START,
};

use crate::workload;

/// Runs the workload with the `nth` of the calls failing; says whether there were as many.
async fn run(is_plain: bool, fault: Fault, calls: Calls, nth: u64) -> bool {
    // On memory alone: a commit that fails never reaches the store inside, and there are very many runs.
    let store = Arc::new(Faulty::new(Arc::new(MemoryStore::new())));
    let world = World::on(store.clone(), Timestamp::from_seconds(START)).await.unwrap();
    let mut tracer = match is_plain {
        true => Tracer::plain(world, Some(-1)).await.unwrap(),
        false => Tracer::new(world, Some(-1)).await.unwrap(),
    };
    store.arm(fault, calls, nth);
    let mut failed = false;
    for step in workload::steps() {
        match tracer.step(&step).await {
            Ok(()) => {}
            Err(Failure::Disagreement(how)) => panic!("{fault:?} of call {nth}: {how}"),
            Err(Failure::Store(error)) => {
                assert!(!failed, "fails twice: {error}");
                assert!(fault == Fault::Fail || changes_catalog(&step), "{step} gave up: {error}");
                failed = true;
                store.heal();
                tracer.world_mut().crash().await.unwrap();
                if let Err(half) = tracer.compare(false).await {
                    panic!("{fault:?} of call {nth}: {step} is half done: {half:?}");
                }
                // As a client would: once more. What the model knows of the step, it learns now.
                match tracer.step(&step).await {
                    Ok(()) => {}
                    Err(failure) => panic!("{fault:?} of call {nth}: {step} cannot be repeated: {failure:?}"),
                }
            }
        }
    }
    let reached = !store.disarm();
    assert!(failed || !reached || fault == Fault::Conflict, "call {nth}: a failure that nobody was told of");
    reached
}

/// Names and rules are for their owners to change: who loses against another is told. (And the time horizon,
/// which is written when time moves, has no guards: only a made-up conflict can hit it.)
fn changes_catalog(step: &Step) -> bool {
    matches!(
        step,
        Step::SetDefault(_)
            | Step::CreateRule(_)
            | Step::ChangeRule(..)
            | Step::SetIndexing(_)
            | Step::Advance(_)
            | Step::BuildTick
            | Step::ReapTick
    )
}

#[tokio::test]
async fn every_commit_fails_once() {
    for is_plain in [false, true] {
        let mut nth = 1;
        while run(is_plain, Fault::Fail, Calls::Commits, nth).await {
            nth += 1;
        }
        assert!(nth > 30, "only {nth} commits");
    }
}

/// A commit of documents that loses against somebody else is tried again, and nobody notices.
#[tokio::test]
async fn every_commit_conflicts_once() {
    for is_plain in [false, true] {
        let mut nth = 1;
        while run(is_plain, Fault::Conflict, Calls::Commits, nth).await {
            nth += 1;
        }
        assert!(nth > 30, "only {nth} commits");
    }
}
