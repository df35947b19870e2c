//! What the embedded store does per second on this machine, with batches like the engine's.
//!
//! Run: `cargo run --release -p mayfly-storage --example store_bench [-- <documents> [<directory>]]`, or with
//! `load [<seconds> [<directory> [<commits per second>]]]` for latencies beside flushes and merges (`load.rs`).
//!
//! One document is a record of 1 KB, twelve small keys of about 45 bytes, one counter raised, two guards. Loads,
//! reads, reopens, and prints rate, latency, processor time and size, so that the sizes in `embedded/trees.rs`
//! can be judged again.

#![expect(clippy::disallowed_methods, reason = "a bench measures real time")]

mod load;

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use mayfly_storage::{
    Durability, EmbeddedOptions, EmbeddedStore,
    store::{
        Advance, Batch, Direction, Expect, Guard, Key, KeyRange, MarkAt, PageLimit, Put, SeqMark, Slot,
        Space, Store,
    },
    upkeep::Upkeep,
};
use tokio::task::JoinSet;

const VALUE_BYTES: usize = 1024;
const INDEX_KEYS: u64 = 11;

fn main() {
    let mut arguments = std::env::args().skip(1).peekable();
    let is_load = arguments.next_if(|word| word == "load").is_some();
    let count = arguments.next().map(|text| text.parse::<u64>().expect("a number"));
    let path =
        arguments.next().map_or_else(|| std::env::temp_dir().join("mayfly-store-bench"), PathBuf::from);
    let rate = arguments.next().map(|text| text.parse().expect("a number"));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    match is_load {
        true => runtime.block_on(load::run(&path, count.unwrap_or(10), rate)),
        false => runtime.block_on(run(count.unwrap_or(100_000), &path)),
    }
}

async fn run(documents: u64, path: &Path) {
    let _ = std::fs::remove_dir_all(path);
    let started = Instant::now();
    let store = open(path, Durability::Fsync);
    println!("first open      {:>9.1} ms, resident {} MB", ms(started.elapsed()), resident_mb());
    drop(store);
    let started = Instant::now();
    let store = open(path, Durability::Fsync);
    println!("open empty      {:>9.1} ms, resident {} MB", ms(started.elapsed()), resident_mb());
    drop(store);

    let written = AtomicU64::new(0);
    for (writers, share) in [(1, 20), (8, 4), (32, 2)] {
        insert(path, Durability::Fsync, writers, documents / share, &written).await;
    }
    insert(path, Durability::Interval(Duration::from_millis(100)), 8, documents / 2, &written).await;
    insert(path, Durability::None, 8, documents / 2, &written).await;

    let total = written.load(Relaxed);
    let started = Instant::now();
    let store = open(path, Durability::Fsync);
    println!("reopen          {:>9.1} ms for {total} documents", ms(started.elapsed()));
    replace(&store, total, 8, documents / 4).await;
    gets(&store, total, documents).await;
    scans(&store, total, documents / 20).await;
    let disk = |when: &str| {
        let bytes = store.stats().disk_bytes / total;
        println!("disk, {when:<10}{bytes:>9} bytes a document, resident {} MB", resident_mb());
    };
    disk("at once");
    // The first look sees that nobody writes any more.
    let idle = || async { store.compact_when_idle().await.expect("the store merges") };
    idle().await;
    while idle().await {}
    disk("idle");
    store.reclaim().await.expect("the store reclaims");
    disk("reclaimed");
    drop(store);
    let _ = std::fs::remove_dir_all(path);
}

fn open(path: &Path, durability: Durability) -> Arc<EmbeddedStore> {
    let options = EmbeddedOptions { durability, ..EmbeddedOptions::default() };
    Arc::new(EmbeddedStore::open(path, options).expect("the store opens"))
}

async fn insert(path: &Path, durability: Durability, writers: u64, documents: u64, written: &AtomicU64) {
    let store = open(path, durability);
    let base = written.fetch_add(documents, Relaxed);
    let next = Arc::new(AtomicU64::new(base));
    let (cpu, started) = (cpu(), Instant::now());
    let mut tasks = JoinSet::new();
    for _ in 0..writers {
        let (store, next) = (store.clone(), next.clone());
        tasks.spawn(async move {
            let mut latencies = Vec::new();
            loop {
                let number = next.fetch_add(1, Relaxed);
                if number >= base + documents {
                    return latencies;
                }
                let batch = document(number);
                let begun = Instant::now();
                store.commit(batch).await.expect("the insert holds");
                latencies.push(begun.elapsed());
            }
        });
    }
    let latencies = tasks.join_all().await.concat();
    let stats = store.stats();
    let name = format!("insert {writers:>2} {durability:?}");
    report(&name, documents, started.elapsed(), cpu, latencies);
    println!("                {:>9.1} documents a group", stats.commits as f64 / stats.groups as f64);
}

/// Documents scattered like hashes, so that keys arrive in no order.
fn scatter(number: u64) -> u64 {
    (number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

fn record_key(number: u64) -> Key {
    Key {
        space: Space::Large,
        slot: Slot(0),
        bytes: [
            b"\0\0\0\x01\0\0",
            &scatter(number).to_be_bytes()[..],
            format!("item-{number:012}").as_bytes(),
        ]
        .concat(),
    }
}

fn index_key(path: u64, number: u64) -> Key {
    let value = scatter(number ^ (path << 40));
    let bytes = [
        b"\0\0\0\x01\0\x02",
        &path.to_be_bytes()[4..],
        &value.to_be_bytes(),
        &scatter(number).to_be_bytes(),
        format!("item-{number:012}").as_bytes(),
    ]
    .concat();
    Key { space: Space::Small, slot: Slot(0), bytes }
}

/// Text of few words: about as compressible as documents are.
fn body(number: u64) -> Vec<u8> {
    let words = ["\"name\"", ":", "\"value\"", ",", "alpha", "beta", "{", "}", "true", "2024"];
    let mut body = number.to_be_bytes().to_vec();
    let mut seed = scatter(number);
    while body.len() < VALUE_BYTES {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        body.extend_from_slice(words[(seed % 10) as usize].as_bytes());
        body.extend_from_slice(&format!("{:x}", seed >> 44).into_bytes());
    }
    body.truncate(VALUE_BYTES);
    body
}

fn document(number: u64) -> Batch {
    let small = |key: Key, value: Vec<u8>| Put { key, value, marks: vec![] };
    let mut puts = vec![Put {
        key: record_key(number),
        value: body(number),
        marks: vec![SeqMark { advance: 0, at: MarkAt::Value(8) }],
    }];
    puts.extend((0..INDEX_KEYS).map(|path| small(index_key(path, number), vec![0; 8])));
    puts.push(Put {
        key: Key { space: Space::Small, slot: Slot(0), bytes: b"\0\0\0\x01\0\x01________".to_vec() },
        value: scatter(number).to_be_bytes().to_vec(),
        marks: vec![SeqMark { advance: 0, at: MarkAt::Key(6) }],
    });
    Batch {
        guards: vec![absent(record_key(number)), absent(index_key(99, number))],
        puts,
        advances: vec![counter()],
        ..Batch::default()
    }
}

fn counter() -> Advance {
    let counter = Key { space: Space::Small, slot: Slot(0), bytes: b"\0\0\0\x01\0\0".to_vec() };
    Advance { counter, stamp: 0, tally: [1, VALUE_BYTES as i64] }
}

fn absent(key: Key) -> Guard {
    Guard { key, expect: Expect::Absent }
}

async fn replace(store: &Arc<EmbeddedStore>, total: u64, writers: u64, documents: u64) {
    let next = Arc::new(AtomicU64::new(0));
    let (cpu, started) = (cpu(), Instant::now());
    let mut tasks = JoinSet::new();
    for _ in 0..writers {
        let (store, next) = (store.clone(), next.clone());
        tasks.spawn(async move {
            let mut latencies = Vec::new();
            loop {
                let turn = next.fetch_add(1, Relaxed);
                if turn >= documents {
                    return latencies;
                }
                let number = turn * 7919 % total;
                let begun = Instant::now();
                let old =
                    store.get(&record_key(number)).await.expect("the store reads").expect("it is there");
                let version = u64::from_be_bytes(old[..8].try_into().expect("eight bytes"));
                let mut batch = document(number);
                batch.guards = vec![Guard { key: record_key(number), expect: Expect::Version(version) }];
                batch.puts.truncate(1 + INDEX_KEYS as usize);
                batch.deletes = (0..3).map(|path| batch.puts.remove(1 + path).key).collect();
                store.commit(batch).await.expect("the replace holds");
                latencies.push(begun.elapsed());
            }
        });
    }
    let latencies = tasks.join_all().await.concat();
    report("replace 8 Fsync", documents, started.elapsed(), cpu, latencies);
}

async fn gets(store: &Arc<EmbeddedStore>, total: u64, count: u64) {
    let (cpu, started) = (cpu(), Instant::now());
    let mut tasks = JoinSet::new();
    for reader in 0..2 {
        let store = store.clone();
        tasks.spawn(async move {
            let mut latencies = Vec::new();
            for turn in 0..count / 2 {
                let begun = Instant::now();
                let key = record_key((turn * 7919 + reader) % total);
                assert!(store.get(&key).await.expect("the store reads").is_some());
                latencies.push(begun.elapsed());
            }
            latencies
        });
    }
    let latencies = tasks.join_all().await.concat();
    report("get, 2 readers", count, started.elapsed(), cpu, latencies);
}

async fn scans(store: &Arc<EmbeddedStore>, total: u64, count: u64) {
    for (name, range) in [
        ("scan 100 small", (|number| prefix_from(index_key(3, number), 10)) as fn(u64) -> KeyRange),
        ("scan 100 large", |number| prefix_from(record_key(number), 6)),
    ] {
        let (cpu, started) = (cpu(), Instant::now());
        let mut latencies = Vec::new();
        for turn in 0..count {
            let begun = Instant::now();
            let snapshot = store.snapshot().await.expect("the store reads");
            let limit = PageLimit { rows: 100, bytes: 1 << 22 };
            let page = snapshot.scan(&range(turn * 7919 % total), Direction::Forward, limit).await;
            assert!(!page.expect("the store reads").rows.is_empty());
            latencies.push(begun.elapsed());
        }
        report(name, count, started.elapsed(), cpu, latencies);
    }
}

/// From `key` to the end of all keys that share its first `shared` bytes.
fn prefix_from(key: Key, shared: usize) -> KeyRange {
    let end = mayfly_storage::store::prefix_end(&key.bytes[..shared]);
    KeyRange { space: key.space, slot: key.slot, start: key.bytes, end }
}

fn report(name: &str, count: u64, took: Duration, cpu_before: Duration, mut latencies: Vec<Duration>) {
    latencies.sort_unstable();
    let at = |share: f64| ms(latencies[((latencies.len() - 1) as f64 * share) as usize]);
    println!(
        "{name:<28} {:>8.0} /s  cpu {:>5.1} µs  p50 {:>7.3} p99 {:>7.3} p99.9 {:>7.3} max {:>7.1} ms",
        count as f64 / took.as_secs_f64(),
        (cpu() - cpu_before).as_secs_f64() * 1e6 / count as f64,
        at(0.5),
        at(0.99),
        at(0.999),
        at(1.0),
    );
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// Processor time of this process so far; zero where the system has no `/proc`.
fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let ticks: u64 = stat.rsplit(')').next().map_or(0, |rest| {
        rest.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum()
    });
    Duration::from_millis(ticks * 10)
}

fn resident_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    status
        .split_whitespace()
        .nth(1)
        .and_then(|pages| pages.parse::<u64>().ok())
        .map_or(0, |pages| pages * 4 / 1024)
}
