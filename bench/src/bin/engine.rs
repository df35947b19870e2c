//! What the engine costs over the bare store, and what time to live costs at all.
//!
//! ```text
//! cargo xtask bench engine            # all parts, a million documents
//! cargo xtask bench engine --documents 100000 --part purge
//! ```

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use clap::{Parser, ValueEnum};
use mayfly_bench::{
    documents::{container, create, id, key, load},
    latency::{Latencies, Summary},
    median,
    replay::Remembering,
    spread, timed,
    world::{World, open_store},
};
use mayfly_engine::{
    AdjustableClock, Clock, DefaultTtl, Engine, InvalidTtl, Pace, Timestamp, aside, clock::Stopwatch,
    load::Load,
};
use mayfly_storage::{
    embedded::EmbeddedStore,
    store::{Batch, Key, Store},
    upkeep::Upkeep,
};

use tokio::task::JoinSet;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    Write,
    Read,
    Ttl,
    Purge,
}

#[derive(Parser)]
struct Options {
    /// Documents in the large container
    #[arg(long, default_value_t = 1_000_000)]
    documents: usize,
    /// Only this part
    #[arg(long)]
    part: Option<Part>,
    /// Repetitions of the short measurements
    #[arg(long, default_value_t = 5)]
    runs: usize,
}

#[tokio::main]
async fn main() {
    let options = Options::parse();
    let wanted = |part| options.part.is_none_or(|only| only == part);
    if wanted(Part::Write) {
        write(&options).await;
    }
    if wanted(Part::Read) {
        read(&options).await;
    }
    if wanted(Part::Ttl) {
        ttl_change(&options).await;
    }
    if wanted(Part::Purge) {
        purge(&options).await;
    }
}

/// Durable inserts: the engine against the same batches committed to a bare store.
async fn write(options: &Options) {
    const COUNT: usize = 20_000;
    const WRITERS: usize = 32;
    println!("write: {COUNT} durable inserts of 1 KB with ten leaves, {WRITERS} writers");
    let batches = Arc::new(recorded(COUNT).await);
    let mut ratios = Vec::new();
    for run in 1..=options.runs {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let store = Arc::new(open_store(&dir));
        let (batches, bare) = (batches.clone(), store.clone());
        let raw = spread(COUNT, WRITERS, move |n| {
            let (batch, store) = (batches[n].clone(), bare.clone());
            async move {
                store.commit(batch).await.expect("a bare commit");
            }
        })
        .await;
        drop(store);
        let world = World::open().await;
        let now = world.clock.now();
        let target = container(&world.engine, "w", None, now).await;
        let engine = world.engine.clone();
        let over = spread(COUNT, WRITERS, move |n| {
            let (engine, target) = (engine.clone(), target.clone());
            async move {
                let done = engine.write(&target, &key(n), create(n), InvalidTtl::Refuse, now).await;
                done.expect("a new document");
            }
        })
        .await;
        let stats = world.store.stats();
        println!(
            "  run {run}: bare {raw:.0}/s, engine {over:.0}/s, ratio {:.2}, {:.1} batches per sync",
            over / raw,
            stats.commits as f64 / stats.groups.max(1) as f64
        );
        ratios.push(over / raw);
    }
    println!("  engine reaches {:.0} % of the bare store (goal: 60 %)", median(ratios) * 100.0);
}

/// The batches that `count` inserts make, without their guards: the keys and nothing else.
async fn recorded(count: usize) -> Vec<Batch> {
    let store = Arc::new(Remembering::default());
    let clock = Arc::new(AdjustableClock::frozen(Timestamp::from_seconds(1_800_000_000)));
    let engine = Engine::builder(store.clone()).clock(clock.clone()).open().await.expect("a new engine");
    let now = clock.now();
    let target = container(&engine, "w", None, now).await;
    store.take();
    for n in 0..count {
        engine.write(&target, &key(n), create(n), InvalidTtl::Refuse, now).await.expect("a new document");
    }
    let mut batches = store.take();
    for batch in &mut batches {
        batch.guards.clear();
    }
    batches
}

/// Point reads: the engine against bare gets of the same records.
async fn read(options: &Options) {
    const COUNT: usize = 100_000;
    let world = World::open().await;
    let now = world.clock.now();
    let target = container(&world.engine, "r", Some(DefaultTtl::Seconds(3600)), now).await;
    load(&world.engine, &target, COUNT, now).await;
    println!("read: {COUNT} point reads of 1 KB in a container with a default, 2 readers");
    let keys = Arc::new(record_keys(&world.store).await);
    let place = |n: usize| n.wrapping_mul(7919) % COUNT;
    let mut ratios = Vec::new();
    for run in 1..=options.runs {
        let (store, known) = (world.store.clone(), keys.clone());
        let raw = spread(COUNT, 2, move |n| {
            let (store, known) = (store.clone(), known.clone());
            async move {
                store.get(&known[place(n)]).await.expect("a bare get").expect("a record");
            }
        })
        .await;
        let (engine, target) = (world.engine.clone(), target.clone());
        let over = spread(COUNT, 2, move |n| {
            let (engine, target) = (engine.clone(), target.clone());
            async move {
                let n = place(n);
                engine.read(&target, &key(n), &id(n), now).await.expect("a read").expect("a document");
            }
        })
        .await;
        println!("  run {run}: bare {raw:.0}/s, engine {over:.0}/s, ratio {:.2}", over / raw);
        ratios.push(over / raw);
    }
    println!("  engine reaches {:.0} % of the bare store (goal: 70 %)", median(ratios) * 100.0);
}

/// The keys of all records, by reading the store.
async fn record_keys(store: &EmbeddedStore) -> Vec<Key> {
    use mayfly_storage::store::{Direction, KeyRange, PageLimit, Slot, Space};
    let snapshot = store.snapshot().await.expect("a snapshot");
    let mut range = KeyRange { space: Space::Large, slot: Slot(0), start: vec![0], end: None };
    let mut keys = Vec::new();
    loop {
        let limit = PageLimit { rows: 1000, bytes: usize::MAX };
        let page = snapshot.scan(&range, Direction::Forward, limit).await.expect("a page");
        for (bytes, _) in &page.rows {
            range.start = [&bytes[..], &[0]].concat();
            keys.push(Key { space: Space::Large, slot: Slot(0), bytes: bytes.to_vec() });
        }
        if !page.more {
            return keys;
        }
    }
}

/// Changing a default: the same for a thousand documents and for a million.
async fn ttl_change(options: &Options) {
    println!("ttl: changing the default of a container with 1,000 and with {} documents", options.documents);
    let world = World::open().await;
    let now = world.clock.now();
    let small = container(&world.engine, "small", None, now).await;
    load(&world.engine, &small, 1000, now).await;
    let large = container(&world.engine, "large", None, now).await;
    load(&world.engine, &large, options.documents, now).await;
    let mut medians = Vec::new();
    for target in [small, large] {
        let mut times = Vec::new();
        let mut target = target;
        for n in 0..options.runs as u32 * 4 {
            let mut definition = target.definition().clone();
            definition.default_ttl = Some(DefaultTtl::Seconds(1_000_000 + n));
            let (changed, took) = timed(world.engine.replace_container(&target, definition, None, now)).await;
            target = changed.expect("a changed default");
            times.push(took.as_secs_f64() * 1000.0);
        }
        println!("  {}: {:.2} ms", target.name(), median(times.clone()));
        medians.push(median(times));
    }
    println!("  ratio {:.2} (goal: below 2, and under 10 ms)", medians[1] / medians[0]);
}

/// Purge of all documents of a container, with and without readers of another.
async fn purge(options: &Options) {
    println!("purge: {} expired documents of 1 KB with ten leaves", options.documents);
    let world = World::open().await;
    let now = world.clock.now();
    let kept = container(&world.engine, "kept", None, now).await;
    load(&world.engine, &kept, 20_000, now).await;
    let dying = container(&world.engine, "dying", Some(DefaultTtl::Seconds(60)), now).await;
    let (_, took) = timed(load(&world.engine, &dying, options.documents, now)).await;
    println!("  loaded in {:.1} s", took.as_secs_f64());
    world.store.sync().await.expect("a sync");
    let before = world.store.stats().disk_bytes;

    let read = |engine: Engine, target: Arc<mayfly_engine::Container>| {
        move |n: usize| {
            let (engine, target) = (engine.clone(), target.clone());
            async move {
                let n = n.wrapping_mul(7919) % 20_000;
                engine.read(&target, &key(n), &id(n), now).await.expect("a read").expect("a document");
            }
        }
    };
    // A steady load: one reader with a breath between reads, as a busy but not saturated server has.
    let pause = Duration::from_micros(200);
    let load = Arc::new(Load::default());
    world.clock.advance(Duration::from_secs(61));
    let later = world.clock.now();
    let usage = world.engine.usage(&dying, later).await.expect("usage");
    assert_eq!(usage.live.documents, 0, "everything has expired before anything is purged");

    // Windows with and without purge take turns, because the machine and the store's own merging are not steady.
    let (mut quiet, mut busy, mut beside) = (Vec::new(), Vec::new(), 0);
    for _ in 0..options.runs {
        let work = read(world.engine.clone(), kept.clone());
        quiet.push(Latencies::measure(for_seconds(WINDOW_SECONDS), pause, work).await);
        let done = Arc::new(AtomicBool::new(false));
        let mut purging = JoinSet::new();
        let purged = Arc::new(AtomicU64::new(0));
        let work = give_way_purge(world.engine.clone(), later, load.clone(), done.clone(), purged.clone());
        purging.spawn(aside(work));
        let window = Latencies::measure(for_seconds(WINDOW_SECONDS), pause, |n| {
            let (load, work) = (load.clone(), read(world.engine.clone(), kept.clone())(n));
            async move {
                let _busy = load.enter();
                work.await;
            }
        });
        busy.push(window.await);
        done.store(true, Ordering::Relaxed);
        purging.join_next().await.expect("one task").expect("purge does not panic");
        beside += purged.load(Ordering::Relaxed);
    }
    let micros = |all: &[Summary], what: fn(&Summary) -> Duration| {
        median(all.iter().map(|summary| what(summary).as_secs_f64() * 1e6).collect())
    };
    let rate = |all: &[Summary]| median(all.iter().map(|summary| summary.per_second).collect());
    let figures = |all: &[Summary]| (micros(all, |s| s.p50), micros(all, |s| s.p99), rate(all));
    let (quiet, busy) = (figures(&quiet), figures(&busy));
    println!("  point reads without purge: p50 {:.1} µs, p99 {:.1} µs, {:.0}/s", quiet.0, quiet.1, quiet.2);
    println!("  point reads beside purge:  p50 {:.1} µs, p99 {:.1} µs, {:.0}/s", busy.0, busy.1, busy.2);
    println!(
        "  ratio p50 {:.2}, p99 {:.2} (goal: within 1.1), reads/s {:.2} (goal: 0.95)",
        busy.0 / quiet.0,
        busy.1 / quiet.1,
        busy.2 / quiet.2
    );
    println!(
        "  purged beside the readers: {:.0} documents/s",
        beside as f64 / (WINDOW_SECONDS * options.runs as f64)
    );

    let (purged, took) = timed(async {
        let mut purged = 0;
        loop {
            let tick = world.engine.purge(later, Pace::Full).await.expect("a tick");
            purged += tick.documents;
            if !tick.more {
                return purged;
            }
        }
    })
    .await;
    println!(
        "  purged alone: {purged} documents in {:.1} s, {:.0} documents/s",
        took.as_secs_f64(),
        purged as f64 / took.as_secs_f64()
    );
    let purged = world.store.stats().disk_bytes;
    let (reclaimed, took) = timed(world.engine.reclaim()).await;
    assert!(reclaimed.expect("a reclaim"), "so much was purged that space is given back");
    println!(
        "  disk: {} MB full, {} MB purged, {} MB when space was given back in {:.1} s",
        before >> 20,
        purged >> 20,
        world.store.stats().disk_bytes >> 20,
        took.as_secs_f64()
    );
}

const WINDOW_SECONDS: f64 = 4.0;

/// Says yes for so long.
fn for_seconds(seconds: f64) -> impl FnMut() -> bool {
    let watch = Stopwatch::start();
    move || watch.elapsed().as_secs_f64() < seconds
}

/// Purge as the server does it while requests come in; counts the documents that went.
async fn give_way_purge(
    engine: Engine,
    now: Timestamp,
    load: Arc<Load>,
    done: Arc<AtomicBool>,
    purged: Arc<AtomicU64>,
) {
    let behind = Stopwatch::start();
    while !done.load(Ordering::Relaxed) {
        let watch = Stopwatch::start();
        let tick = engine.purge(now, load.pace()).await.expect("a tick");
        purged.fetch_add(tick.documents, Ordering::Relaxed);
        if !tick.more {
            break;
        }
        load.give_way(watch.elapsed(), behind.elapsed()).await;
    }
}
