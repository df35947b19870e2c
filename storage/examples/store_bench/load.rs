//! How long commits and reads take beside flushes and merges, and what a bulk load costs.
//!
//! First as fast as it goes, for the capacity; then at a share of it, where each commit has a time at which it is due and
//! is late if the one before it is: what a client sees who does not wait for others. Beside both a reader reads a row
//! every 200 µs. Then a bulk load: batches of 100 documents, with the CPU of each of the store's threads.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use mayfly_storage::{
    Durability, EmbeddedStore,
    store::{Batch, Expect, Guard, Store},
};
use tokio::task::JoinSet;

use super::{INDEX_KEYS, counter, document, index_key, ms, open, record_key};

const WRITERS: u64 = 16;

/// Of the capacity, so that there is room to catch up.
const SHARE: f64 = 0.8;

const READ_EVERY: Duration = Duration::from_micros(200);

/// Documents in a batch of a bulk load, and index entries of each: what `insertMany` into a collection with three indexes
/// writes.
const BULK_DOCUMENTS: u64 = 100;
const BULK_INDEX_KEYS: u64 = 3;

/// Documents that are there when it begins.
const BEFORE: u64 = 100_000;

/// Runs all of it in `path`, each part for so long; commits are due at `rate`, if that is not to be found out.
pub async fn run(path: &Path, seconds: u64, rate: Option<f64>) {
    let _ = std::fs::remove_dir_all(path);
    let store = open(path, Durability::Fsync);
    load(&store, 0, BEFORE).await;
    let length = Duration::from_secs(seconds);
    let rate = match rate {
        Some(rate) => rate,
        None => mixed(&store, "as fast as it goes", None, length).await * SHARE,
    };
    mixed(&store, &format!("{rate:.0} are due"), Some(rate), length).await;
    drop(store);

    let _ = std::fs::remove_dir_all(path);
    let store = open(path, Durability::Fsync);
    load(&store, 0, BEFORE).await;
    bulk(&store, length).await;
    drop(store);
    let _ = std::fs::remove_dir_all(path);
}

async fn load(store: &Arc<EmbeddedStore>, from: u64, count: u64) {
    let next = Arc::new(AtomicU64::new(from));
    let mut tasks = JoinSet::new();
    for _ in 0..4 {
        let (store, next) = (store.clone(), next.clone());
        tasks.spawn(async move {
            loop {
                let number = next.fetch_add(BULK_DOCUMENTS, Relaxed);
                if number >= from + count {
                    return;
                }
                store.commit(bulk_batch(number)).await.expect("the load holds");
            }
        });
    }
    tasks.join_all().await;
}

fn bulk_batch(from: u64) -> Batch {
    let mut all = Batch { advances: vec![counter()], ..Batch::default() };
    for number in from..from + BULK_DOCUMENTS {
        let mut one = document(number);
        one.puts.drain(1 + BULK_INDEX_KEYS as usize..1 + INDEX_KEYS as usize);
        // One feed entry a document, by numbers of its own.
        let advance = one.puts.pop();
        all.puts.extend(advance.map(|put| mayfly_storage::store::Put {
            key: index_key(50, number),
            value: put.value,
            marks: vec![],
        }));
        all.puts.append(&mut one.puts);
        all.guards.push(one.guards.swap_remove(0));
    }
    all
}

/// Two replaces for each create. Gives commits per second.
async fn mixed(store: &Arc<EmbeddedStore>, name: &str, rate: Option<f64>, length: Duration) -> f64 {
    static CREATED: AtomicU64 = AtomicU64::new(BEFORE);
    let over = Arc::new(AtomicBool::new(false));
    let reader = tokio::spawn(read(store.clone(), over.clone()));
    let threads = threads();
    let turn = Arc::new(AtomicU64::new(0));
    let started = Instant::now();
    let mut tasks = JoinSet::new();
    for _ in 0..WRITERS {
        let (store, turn) = (store.clone(), turn.clone());
        tasks.spawn(async move {
            let mut late = Vec::new();
            loop {
                let turn = turn.fetch_add(1, Relaxed);
                let mut due = started.elapsed();
                if let Some(rate) = rate {
                    due = Duration::from_secs_f64(turn as f64 / rate);
                    if let Some(rest) = due.checked_sub(started.elapsed()) {
                        tokio::time::sleep(rest).await;
                    }
                }
                if due >= length {
                    return late;
                }
                if turn % 3 == 0 {
                    store.commit(document(CREATED.fetch_add(1, Relaxed))).await.expect("the create holds");
                } else {
                    replace(&store, turn).await;
                }
                late.push(started.elapsed() - due);
            }
        });
    }
    let late = tasks.join_all().await.concat();
    let took = started.elapsed();
    over.store(true, Relaxed);
    let count = late.len() as u64;
    report(&format!("mixed, {name}"), count, took, late);
    report("  reader", 0, took, reader.await.expect("the reader ends"));
    report_threads(&threads, count);
    count as f64 / took.as_secs_f64()
}

async fn replace(store: &Arc<EmbeddedStore>, turn: u64) {
    let number = turn.wrapping_mul(7919) % BEFORE;
    loop {
        let old = store.get(&record_key(number)).await.expect("the store reads").expect("it is there");
        let version = u64::from_be_bytes(old[..8].try_into().expect("eight bytes"));
        let mut batch = document(number);
        batch.guards = vec![Guard { key: record_key(number), expect: Expect::Version(version) }];
        batch.puts.truncate(4);
        batch.deletes = vec![index_key(turn % 16 + 20, number)];
        batch.puts[3].key = index_key((turn + 1) % 16 + 20, number);
        match store.commit(batch).await {
            Ok(_) => return,
            Err(mayfly_storage::Error::Conflict { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

async fn read(store: Arc<EmbeddedStore>, over: Arc<AtomicBool>) -> Vec<Duration> {
    let mut latencies = Vec::new();
    let mut turn = 0_u64;
    while !over.load(Relaxed) {
        turn += 1;
        let begun = Instant::now();
        let key = record_key(turn.wrapping_mul(104_729) % BEFORE);
        assert!(store.get(&key).await.expect("the store reads").is_some());
        latencies.push(begun.elapsed());
        tokio::time::sleep(READ_EVERY).await;
    }
    latencies
}

async fn bulk(store: &Arc<EmbeddedStore>, length: Duration) {
    let over = Arc::new(AtomicBool::new(false));
    let reader = tokio::spawn(read(store.clone(), over.clone()));
    let threads = threads();
    let next = Arc::new(AtomicU64::new(BEFORE));
    let started = Instant::now();
    let mut tasks = JoinSet::new();
    for _ in 0..WRITERS {
        let (store, next) = (store.clone(), next.clone());
        tasks.spawn(async move {
            let mut latencies = Vec::new();
            while started.elapsed() < length {
                let batch = bulk_batch(next.fetch_add(BULK_DOCUMENTS, Relaxed));
                let begun = Instant::now();
                store.commit(batch).await.expect("the load holds");
                latencies.push(begun.elapsed());
            }
            latencies
        });
    }
    let latencies = tasks.join_all().await.concat();
    let took = started.elapsed();
    over.store(true, Relaxed);
    let count = next.load(Relaxed) - BEFORE;
    report("bulk, 16 times 100", count, took, latencies);
    report("  reader", 0, took, reader.await.expect("the reader ends"));
    report_threads(&threads, count);
}

fn report(name: &str, count: u64, took: Duration, mut latencies: Vec<Duration>) {
    latencies.sort_unstable();
    let at = |share: f64| ms(latencies[((latencies.len() - 1) as f64 * share) as usize]);
    let rate = match count {
        0 => String::new(),
        count => format!("{:.0} /s", count as f64 / took.as_secs_f64()),
    };
    println!(
        "{name:<28} {rate:>12}  p50 {:>7.3} p99 {:>7.3} p99.9 {:>7.3} max {:>7.1} ms",
        at(0.5),
        at(0.99),
        at(0.999),
        at(1.0),
    );
}

/// CPU time so far by the names of threads; nothing where the system has no `/proc`.
fn threads() -> BTreeMap<String, Duration> {
    let mut all = BTreeMap::new();
    for task in std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        let read = |file: &str| std::fs::read_to_string(task.path().join(file)).unwrap_or_default();
        let on_cpu = read("schedstat").split_whitespace().next().and_then(|text| text.parse().ok());
        *all.entry(read("comm").trim().to_owned()).or_default() += Duration::from_nanos(on_cpu.unwrap_or(0));
    }
    all
}

fn report_threads(before: &BTreeMap<String, Duration>, count: u64) {
    let of_each = |name: &str, now: Duration| {
        now.saturating_sub(before.get(name).copied().unwrap_or_default()).as_secs_f64() * 1e6 / count as f64
    };
    let now = threads();
    let all: f64 = now.iter().map(|(name, now)| of_each(name, *now)).sum();
    let each = now.iter().map(|(name, now)| format!("{name} {:.1}", of_each(name, *now)));
    println!("  CPU {all:.1} µs: {}", each.collect::<Vec<_>>().join(", "));
}
