//! A collection as it grows: what operations cost at each size, what is on the disk, how long a start takes after a crash,
//! and what it costs to drop it.
//!
//! ```text
//! cargo xtask bench growth
//! cargo xtask bench growth --documents 10000000 --texts words
//! cargo xtask bench growth --documents 300000 --part drop
//! cargo xtask bench growth --documents 200000 --part bulk --batch 100 --turns 3 --mongod /usr/bin/mongod
//! cargo xtask bench growth --mongod /usr/bin/mongod --before BINARY
//! ```
//!
//! Documents of 1 KB with three indexes over MongoDB's protocol, by 16 connections that wait for the journal. Sizes are
//! ten times one another; each is measured when the collection has come to it. One page is printed.
#![expect(clippy::disallowed_methods, reason = "a bench measures time")]

use std::{
    io,
    path::PathBuf,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

use bson::{Document, doc};
use clap::Parser;
use mayfly_bench::{
    bulk::{self, Expiry, Maker, Text},
    latency::{Latencies, Summary},
    median,
    mongo::{Client, number},
    processes,
    subject::{Kind, Store, Subject},
};

#[derive(Parser)]
struct Options {
    /// The largest size; the smaller ones are parts of ten of it, down to 10,000
    #[arg(long, default_value_t = 1_000_000)]
    documents: u64,
    /// What the documents are full of
    #[arg(long, value_enum, value_delimiter = ',', default_value = "words,random")]
    texts: Vec<Text>,
    /// Bytes of the text in a document
    #[arg(long, default_value_t = 900)]
    text: usize,
    /// Connections at a time
    #[arg(long, default_value_t = 16)]
    connections: usize,
    /// Documents inserted at a time
    #[arg(long, default_value_t = 500)]
    batch: u64,
    /// How long each kind of point operation is measured
    #[arg(long, default_value_t = 3)]
    seconds: u64,
    /// How long to wait at most until the disk is at rest, and after a drop until it is back
    #[arg(long, default_value_t = 60)]
    settle: u64,
    /// Only this
    #[arg(long, value_enum, default_value = "all")]
    part: Part,
    /// How often a bulk load is repeated, if it is the only part; medians are shown
    #[arg(long, default_value_t = 3)]
    turns: usize,
    /// Number the writes, so that they may be sent twice, as drivers do by themselves; MongoDB needs a replica set for it
    #[arg(long)]
    numbered: bool,
    /// Memory that Mayfly may fill with what was read
    #[arg(long, default_value_t = 256)]
    cache_mb: u64,
    /// Where Mayfly keeps them
    #[arg(long, value_enum, default_value = "embedded")]
    store: Store,
    /// A MongoDB server binary to compare with; it is not crashed
    #[arg(long, env = "MAYFLY_BENCH_MONGOD")]
    mongod: Option<PathBuf>,
    /// The port that one listens on
    #[arg(long, default_value_t = 27_417)]
    port: u16,
    /// The server's binary; the one beside this program unless said otherwise
    #[arg(long)]
    mayfly: Option<PathBuf>,
    /// A binary of another version
    #[arg(long)]
    before: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    All,
    /// Load and measure, without the drop
    Sizes,
    /// Load and drop
    Drop,
    /// Load only, each server in its turn
    Bulk,
}

const COLLECTION: &str = "grown";
const INDEXED: [&str; 3] = ["number", "user", "group"];
const SMALLEST: u64 = 10_000;
/// Memory beyond the cache that the server may have.
const MEMORY_ALLOWANCE: u64 = 300;
/// The disk is at rest when it has had the same size for so long, give or take a hundredth, and the CPU next to nothing
/// to do.
const REST: Duration = Duration::from_secs(3);
const REST_CPU: f64 = 0.05;
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// What the disk may have more than before there was anything, to be back.
const DISK_BACK: u64 = 64_000_000;

fn main() -> io::Result<()> {
    let options = Options::parse();
    let beside = std::env::current_exe()?.with_file_name(format!("mayfly{}", std::env::consts::EXE_SUFFIX));
    let flags = vec!["--cache-mb".to_owned(), options.cache_mb.to_string()];
    let mayfly = |name, binary| Kind::Mayfly { name, binary, store: options.store, flags: flags.clone() };
    let mut kinds = vec![mayfly("Mayfly", options.mayfly.clone().unwrap_or(beside))];
    kinds.extend(options.before.clone().map(|binary| mayfly("Mayfly before", binary)));
    kinds.extend(options.mongod.clone().map(|binary| Kind::MongoDb { binary, port: options.port }));
    if options.part == Part::Bulk {
        return compare_loads(&kinds, &options);
    }
    println!(
        "growth: documents with a text of {} bytes and {} indexes, {} connections, {:?}, cache of {} MB\n",
        options.text,
        INDEXED.len(),
        options.connections,
        options.store,
        options.cache_mb
    );
    println!(
        "| text | documents | server | bulk/s, CPU, p99 | read/s, CPU, p50, p99 | replace | create | disk, B each | \
         memory (goal: {}) | restart (2 s) |",
        options.cache_mb + MEMORY_ALLOWANCE
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    let mut drops = Vec::new();
    for &text in &options.texts {
        for kind in &kinds {
            drops.extend(grow(kind, text, &options)?);
        }
    }
    if !drops.is_empty() {
        println!(
            "\n| text | dropped | server | command | CPU behind, s per million (goal: 2) | disk is back (30 s) |"
        );
        println!("|---|---|---|---|---|---|");
        drops.iter().for_each(|line| println!("{line}"));
    }
    Ok(())
}

/// Loads all documents into each server in its turn, with nothing in it at first.
fn compare_loads(kinds: &[Kind], options: &Options) -> io::Result<()> {
    println!(
        "bulk: {} documents with a text of {} bytes and {} indexes, {} at a time, {} connections, median of {}\n",
        options.documents,
        options.text,
        INDEXED.len(),
        options.batch,
        options.connections,
        options.turns
    );
    println!(
        "| text | server | documents/s | CPU each | p50, p99 of a batch | times the last in rate, CPU |"
    );
    println!("|---|---|---|---|---|---|");
    for &text in &options.texts {
        let maker = Maker::new(text, options.text, Expiry::None);
        let mut runs: Vec<Vec<Measured>> = kinds.iter().map(|_| Vec::new()).collect();
        for turn in 0..options.turns {
            let mut order: Vec<_> = (0..kinds.len()).collect();
            order.rotate_left(turn % kinds.len());
            for which in order {
                let subject = kinds[which].start()?;
                prepare(&subject)?;
                runs[which].push(load(&subject, &maker, 0..options.documents, options)?);
            }
        }
        let of = |runs: &[Measured], figure: fn(&Measured) -> f64| median(runs.iter().map(figure).collect());
        let [rate, cpu]: [fn(&Measured) -> f64; 2] = [|run| run.per_second, |run| run.cpu_us];
        let last = runs.last().map_or((f64::NAN, f64::NAN), |last| (of(last, rate), of(last, cpu)));
        for (kind, runs) in kinds.iter().zip(&runs) {
            println!(
                "| {text:?} | {} | {:.0} | {:.1} µs | {:.1}, {:.1} ms | {:.2}, {:.2} |",
                kind.name(),
                of(runs, rate),
                of(runs, cpu),
                of(runs, |run| run.summary.p50.as_secs_f64() * 1000.0),
                of(runs, |run| run.summary.p99.as_secs_f64() * 1000.0),
                of(runs, rate) / last.0,
                of(runs, cpu) / last.1,
            );
        }
    }
    Ok(())
}

/// Makes the indexes, and the collection with them.
fn prepare(subject: &Subject) -> io::Result<()> {
    let indexes: Vec<_> = INDEXED.iter().map(|name| doc! { "key": { *name: 1 }, "name": *name }).collect();
    subject.client()?.run(&doc! { "createIndexes": COLLECTION, "indexes": indexes, "$db": "bench" });
    Ok(())
}

/// Grows one collection, prints a line for each size, and gives the line of its drop.
fn grow(kind: &Kind, text: Text, options: &Options) -> io::Result<Option<String>> {
    let mut subject = kind.start()?;
    let maker = Maker::new(text, options.text, Expiry::None);
    prepare(&subject)?;
    let empty = subject.disk_bytes();
    let mut sizes: Vec<_> = std::iter::successors(Some(options.documents), |size| {
        Some(size / 10).filter(|size| *size >= SMALLEST)
    })
    .collect();
    sizes.reverse();
    if options.part == Part::Drop {
        sizes = vec![options.documents];
    }
    let mut count = 0;
    for size in sizes {
        let _ = processes::forget_peak_memory(subject.process());
        let bulk = load(&subject, &maker, count..size.max(count), options)?;
        count = count.max(size);
        if options.part == Part::Drop {
            continue;
        }
        let mut cells = vec![bulk.to_string()];
        for operation in [Operation::Read, Operation::Replace, Operation::Create] {
            let run = points(&subject, &maker, operation, count, options)?;
            if operation == Operation::Create {
                count += run.done;
            }
            cells.push(run.to_string());
        }
        rest(&subject, options.settle);
        let stored = subject.client()?.count(COLLECTION).max(1);
        cells.push(format!("{:.0}", subject.disk_bytes().saturating_sub(empty) as f64 / stored as f64));
        let peak = processes::status_bytes(subject.process(), "VmHWM:").unwrap_or(0);
        cells.push(format!("{:.0} MB", peak as f64 / 1e6));
        let (again, took) = subject.restart_after_crash()?;
        subject = again;
        cells.push(match subject.http_port() {
            Some(_) => {
                let begun = Instant::now();
                let found = subject.client()?.run(&find(stored / 2));
                let is_there = found.get_document("cursor").and_then(|cursor| cursor.get_array("firstBatch"));
                assert!(is_there.is_ok_and(|batch| !batch.is_empty()), "a document is there after a crash");
                format!("{:.2} s", (took + begun.elapsed()).as_secs_f64())
            }
            None => "".to_owned(),
        });
        println!("| {text:?} | {size} | {} | {} |", kind.name(), cells.join(" | "));
    }
    match options.part {
        Part::Sizes | Part::Bulk => Ok(None),
        Part::All | Part::Drop => drop_all(kind, &subject, text, empty, options).map(Some),
    }
}

/// Rate, CPU and latencies of one kind of work.
struct Measured {
    done: u64,
    per_second: f64,
    cpu_us: f64,
    summary: Summary,
}

impl std::fmt::Display for Measured {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [p50, p99] = [self.summary.p50, self.summary.p99].map(|time| time.as_secs_f64() * 1000.0);
        write!(f, "{:.0}, {:.0} µs, {p50:.2}, {p99:.1} ms", self.per_second, self.cpu_us)
    }
}

impl Measured {
    /// Runs connections until each says that it is done; each gives its latencies. An operation is so many documents.
    fn of(
        subject: &Subject,
        connections: usize,
        weight: u64,
        work: impl Fn(usize, &mut Client, &mut Latencies) -> io::Result<()> + Sync,
    ) -> io::Result<Self> {
        let (start, before) = (Instant::now(), subject.cpu_seconds());
        let latencies = thread::scope(|scope| {
            let one = |connection| {
                let work = &work;
                scope.spawn(move || {
                    let (mut client, mut latencies) = (subject.client()?, Latencies::default());
                    work(connection, &mut client, &mut latencies)?;
                    Ok::<_, io::Error>(latencies)
                })
            };
            let threads: Vec<_> = (0..connections).map(one).collect();
            let mut all = Latencies::default();
            for thread in threads {
                all.extend(thread.join().expect("a bench thread does not panic")?);
            }
            Ok::<_, io::Error>(all)
        })?;
        let elapsed = start.elapsed();
        let done = latencies.len() as u64 * weight;
        Ok(Self {
            done,
            per_second: done as f64 / elapsed.as_secs_f64(),
            cpu_us: (subject.cpu_seconds() - before) * 1e6 / done.max(1) as f64,
            summary: latencies.summary(elapsed),
        })
    }
}

/// Inserts documents of a range, in batches.
fn load(
    subject: &Subject,
    maker: &Maker,
    range: std::ops::Range<u64>,
    options: &Options,
) -> io::Result<Measured> {
    let next = AtomicU64::new(range.start);
    Measured::of(subject, options.connections, options.batch, |connection, client, latencies| {
        let mut batch = Vec::new();
        if options.numbered {
            client.number_writes(connection as u64);
        }
        loop {
            let first = next.fetch_add(options.batch, Relaxed);
            if first >= range.end {
                return Ok(());
            }
            batch.clear();
            (first..(first + options.batch).min(range.end)).for_each(|n| maker.push(n, 0, &mut batch));
            let begun = Instant::now();
            client.insert(COLLECTION, &batch);
            latencies.push(begun.elapsed());
        }
    })
}

/// Work on single documents.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    Read,
    Replace,
    Create,
}

fn points(
    subject: &Subject,
    maker: &Maker,
    operation: Operation,
    count: u64,
    options: &Options,
) -> io::Result<Measured> {
    let end = Instant::now() + Duration::from_secs(options.seconds);
    let next = AtomicU64::new(count);
    Measured::of(subject, options.connections, 1, |connection, client, latencies| {
        let mut turn = connection as u64;
        while Instant::now() < end {
            turn += options.connections as u64;
            let which = bulk::scattered(turn) % count;
            let command = match operation {
                Operation::Read => find(which),
                Operation::Replace => {
                    // Another document's fields, or nothing would change.
                    let mut document = maker.document(which + turn);
                    document.insert("_id", bulk::id(which));
                    let change = doc! { "q": { "_id": bulk::id(which) }, "u": document };
                    let concern = doc! { "w": 1, "j": true };
                    doc! { "update": COLLECTION, "updates": [change], "writeConcern": concern, "$db": "bench" }
                }
                Operation::Create => Document::new(),
            };
            // Numbers are taken as they are used, so that the collection has no gaps.
            let created = (operation == Operation::Create).then(|| {
                let mut bytes = Vec::new();
                maker.push(next.fetch_add(1, Relaxed), 0, &mut bytes);
                bytes
            });
            let begun = Instant::now();
            let answer = match created {
                Some(bytes) => client.insert(COLLECTION, &bytes),
                None => client.run(&command),
            };
            latencies.push(begun.elapsed());
            assert!(operation != Operation::Replace || number(answer.get("n")) == 1, "replaced: {answer}");
        }
        Ok(())
    })
}

fn find(n: u64) -> Document {
    doc! { "find": COLLECTION, "filter": { "_id": bulk::id(n) }, "limit": 1, "singleBatch": true, "$db": "bench" }
}

/// Waits until the server has nothing to do and its disk stays as it is.
fn rest(subject: &Subject, seconds_max: u64) {
    let start = Instant::now();
    let (mut since, mut size, mut cpu) = (start, subject.disk_bytes(), subject.cpu_seconds());
    while start.elapsed().as_secs() < seconds_max && since.elapsed() < REST {
        thread::sleep(LOOK_EVERY);
        let (size_now, cpu_now) = (subject.disk_bytes(), subject.cpu_seconds());
        if size_now.abs_diff(size) > size / 100 || cpu_now - cpu > REST_CPU * LOOK_EVERY.as_secs_f64() * 2.0 {
            since = Instant::now();
        }
        (size, cpu) = (size_now, cpu_now);
    }
}

/// Drops the collection and watches what happens behind the command.
fn drop_all(kind: &Kind, subject: &Subject, text: Text, empty: u64, options: &Options) -> io::Result<String> {
    rest(subject, options.settle);
    let mut client = subject.client()?;
    let count = client.count(COLLECTION);
    let (cpu, start) = (subject.cpu_seconds(), Instant::now());
    client.run(&doc! { "drop": COLLECTION, "$db": "bench" });
    let command = start.elapsed();
    let mut back = None;
    while back.is_none() && start.elapsed().as_secs() < options.settle {
        thread::sleep(LOOK_EVERY);
        back = (subject.disk_bytes() <= empty + DISK_BACK).then(|| start.elapsed().as_secs_f64());
    }
    // What it still has to do belongs to the drop too.
    rest(subject, options.settle);
    let behind = (subject.cpu_seconds() - cpu) * 1e6 / count.max(1) as f64;
    let back = match back {
        Some(seconds) => format!("after {seconds:.1} s"),
        None => format!("not in {} s: {:.0} MB", options.settle, subject.disk_bytes() as f64 / 1e6),
    };
    let name = kind.name();
    let ms = command.as_secs_f64() * 1000.0;
    Ok(format!("| {text:?} | {count} | {name} | {ms:.1} ms | {behind:.2} | {back} |"))
}
