//! Threads that share a walk find what one thread finds: the same living documents in the same order.

use std::{
    collections::HashSet,
    sync::Mutex,
    thread::{self, ThreadId},
};

use bson::{RawBsonRef, RawDocument};
use mayfly_engine::{
    Access, Container, Direction, DocumentFilter, HashRange, PageLimit, Position, Timestamp, Wanted,
};
use mayfly_testkit::world::{Backend, World, definition, text_id};

/// More than the first page looks at, and enough for several pieces.
const DOCUMENTS: usize = 6000;

async fn world(slots: u32, partitions: usize) -> World {
    let world = World::new(Backend::Mirrored).await;
    let mut container = definition("c", "/p");
    container.default_ttl = Some(mayfly_engine::DefaultTtl::Never);
    container.indexing.excluded = vec!["/n/?".into()];
    world.create_container_in_slots(container, slots).await.unwrap();
    for n in 0..DOCUMENTS {
        let ttl = if n % 5 == 0 { r#","ttl":10"# } else { "" };
        let body = format!(r#"{{"id":"d{n}","p":"p{}","n":{n}{ttl}}}"#, n % partitions);
        world.upsert("c", &body).await.unwrap();
    }
    // Most are read from blocks, as in a store that has been in use; some lie above them.
    world.compact().await;
    for n in (0..DOCUMENTS).step_by(50) {
        let body = format!(r#"{{"id":"d{n}","p":"p{}","n":{n}}}"#, n % partitions);
        world.upsert("c", &body).await.unwrap();
    }
    world
}

fn is_multiple(body: &RawDocument, of: i64) -> bool {
    match body.get("n").unwrap() {
        Some(RawBsonRef::Int32(n)) => i64::from(n) % of == 0,
        Some(RawBsonRef::Int64(n)) => n % of == 0,
        other => panic!("{other:?}"),
    }
}

/// All documents whose number is a multiple of `of`, page by page, and the threads that looked at documents.
async fn found(
    world: &World,
    container: &Container,
    of: i64,
    now: Timestamp,
) -> (Vec<String>, HashSet<ThreadId>) {
    let threads = Mutex::new(HashSet::new());
    let is_wanted = |body: &RawDocument| {
        threads.lock().unwrap().insert(thread::current().id());
        is_multiple(body, of)
    };
    let access = Access::Records(HashRange::all());
    let limit = PageLimit { rows: 512, bytes: 4 << 20 };
    let (mut ids, mut at) = (Vec::new(), None);
    loop {
        let wanted = Some(Wanted::Document(DocumentFilter { passes: &is_wanted, may_be_in: None }));
        let engine = world.engine();
        let page =
            engine.scan_where(container, &access, Direction::Forward, at, limit, now, wanted).await.unwrap();
        assert!(page.found.len() <= limit.rows);
        ids.extend(page.found.iter().map(|found| text_id(&found.record)));
        match page.next {
            Some(next) => at = Some(Position::from_bytes(&next.to_bytes()).unwrap()),
            None => break,
        }
    }
    (ids, threads.into_inner().unwrap())
}

/// The same with one thread.
async fn found_alone(world: &World, of: i64) -> Vec<String> {
    let all = world.list("c", DOCUMENTS).await.unwrap();
    let wanted = all.iter().filter(|found| is_multiple(found.record.body(), of));
    wanted.map(|found| text_id(&found.record)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shared_walk_finds_the_same_documents_in_the_same_order() {
    for (slots, partitions) in [(1, 997), (4, 997), (1, 3)] {
        let world = world(slots, partitions).await;
        let container = world.must_container("c");
        for expired in [false, true] {
            world.advance(if expired { 11 } else { 0 });
            for of in [1, 2, 100, 5000, 100_000] {
                let (ids, threads) = found(&world, &container, of, world.now().await).await;
                assert_eq!(ids, found_alone(&world, of).await, "{slots} {partitions} {of} {expired}");
                // Few partition keys, or few documents of a slot, cannot be shared out.
                let cores = thread::available_parallelism().unwrap().get();
                let is_shared = (slots, partitions) == (1, 997) && of > 2 && cores > 1;
                assert!(threads.len() > 1 || !is_shared, "{slots} {partitions} {of}: one thread");
            }
        }
    }
}
