//! The MongoDB protocol beside MongoDB: the same commands over the same kind of connection, in turns.
//!
//! ```text
//! cargo xtask bench mongo --mongod /usr/bin/mongod
//! ```
//!
//! Both sync before they acknowledge (`j: true`). MongoDB's TTL monitor wakes up every second here, not every minute as it
//! does by itself. Without `--mongod` only our side runs.
#![expect(clippy::disallowed_methods, reason = "a bench measures time")]

use std::{
    io,
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
    time::{Duration, Instant, SystemTime},
};

use bson::{DateTime, Document, doc};
use clap::Parser;
use mayfly_bench::{
    documents,
    latency::{Latencies, Summary},
    median,
    mongo::{Client, number},
    mongod::Mongod,
    processes::cpu_seconds,
    rest::servers::Server,
};

#[derive(Parser)]
struct Options {
    /// Documents in the collection that is asked, and documents to expire
    #[arg(long, default_value_t = 100_000)]
    documents: usize,
    /// Connections at a time
    #[arg(long, default_value_t = 16)]
    connections: usize,
    /// How long each measurement takes
    #[arg(long, default_value_t = 3)]
    seconds: u64,
    /// Measurements of each kind; the median is shown
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// A MongoDB server binary to compare with
    #[arg(long, env = "MAYFLY_BENCH_MONGOD")]
    mongod: Option<PathBuf>,
    /// The first of two ports
    #[arg(long, default_value_t = 27_217)]
    port: u16,
    /// The server's binary; the one beside this program unless said otherwise
    #[arg(long)]
    mayfly: Option<PathBuf>,
}

/// A server to measure.
struct Side {
    name: &'static str,
    port: u16,
    process: u32,
}

const COLLECTION: &str = "asked";
const BATCH: usize = 1000;

/// Values of `group`, so that ten documents share each `tenth`.
const GROUPS: i32 = 100;

#[tokio::main]
async fn main() -> io::Result<()> {
    let options = Options::parse();
    let beside = std::env::current_exe()?.with_file_name(format!("mayfly{}", std::env::consts::EXE_SUFFIX));
    let ours = Server::mayfly_for_mongo(options.mayfly.as_ref().unwrap_or(&beside), options.port)?;
    let theirs = match &options.mongod {
        Some(binary) => Some(Mongod::start(binary, options.port + 1).await?),
        None => None,
    };
    let mut sides = vec![Side { name: "Mayfly", port: ours.port, process: ours.process() }];
    if let Some(theirs) = &theirs {
        sides.push(Side { name: "MongoDB", port: options.port + 1, process: theirs.process() });
    }
    for side in &sides {
        load(side, COLLECTION, options.documents, None)?;
        let index = |name: &str| doc! { "key": { name: 1 }, "name": name };
        let indexes = vec![index("tenth"), index("group")];
        Client::connect(side.port)?
            .run(&doc! { "createIndexes": COLLECTION, "indexes": indexes, "$db": "bench" });
    }
    println!("| | connections | server | per second | p50 ms | p99 ms | CPU µs | times MongoDB |");
    println!("|---|---|---|---|---|---|---|---|");
    for operation in &OPERATIONS {
        compare(&sides, operation, &options)?;
    }
    println!(
        "\n| {} expire | seen no more | removed | read p99 before | read p99 beside |",
        options.documents
    );
    println!("|---|---|---|---|---|");
    for side in &sides {
        expire(side, options.documents)?;
    }
    Ok(())
}

/// What is measured.
struct Operation {
    name: &'static str,
    /// Whether one connection is enough: the work is long.
    alone: bool,
    /// The command, by connection and number, for a collection of so many documents.
    command: fn(usize, usize, usize) -> Document,
    /// Operations that one command stands for.
    weight: usize,
}

const OPERATIONS: [Operation; 7] = [
    Operation {
        name: "find by _id",
        alone: false,
        weight: 1,
        command: |c, n, all| find_by_id(spread(c, n) % all),
    },
    Operation {
        name: "find 10 by an index",
        alone: false,
        weight: 1,
        command: |c, n, all| {
            let tenth = (spread(c, n) % (all / 10)) as i32;
            doc! { "find": COLLECTION, "filter": { "tenth": tenth }, "$db": "bench" }
        },
    },
    Operation {
        name: "insert one, synced",
        alone: false,
        weight: 1,
        command: |c, n, _| inserts("inserted", vec![document(1_000_000_000 + c * 10_000_000 + n)]),
    },
    Operation {
        name: "update by _id, synced",
        alone: false,
        weight: 1,
        command: |c, n, all| {
            let change = doc! { "q": { "_id": documents::id_text(spread(c, n) % all) }, "u": { "$inc": { "score": 1 } } };
            doc! { "update": COLLECTION, "updates": [change], "writeConcern": { "w": 1, "j": true }, "$db": "bench" }
        },
    },
    Operation {
        name: "insertMany 1000, synced, documents",
        alone: true,
        weight: BATCH,
        command: |c, n, _| {
            let first = 2_000_000_000 + (c * 10_000 + n) * BATCH;
            inserts("many", (first..first + BATCH).map(document).collect())
        },
    },
    Operation {
        name: "$match and $group over all",
        alone: true,
        weight: 1,
        command: |_, _, _| {
            let group = doc! { "_id": "$group", "n": { "$sum": 1 }, "sum": { "$sum": "$score" } };
            let pipeline = vec![doc! { "$match": { "score": { "$gte": 0 } } }, doc! { "$group": group }];
            doc! { "aggregate": COLLECTION, "pipeline": pipeline, "cursor": {}, "$db": "bench" }
        },
    },
    Operation {
        name: "count by an index",
        alone: true,
        weight: 1,
        command: |_, n, _| {
            let group = n as i32 % GROUPS;
            doc! { "count": COLLECTION, "query": { "group": group }, "$db": "bench" }
        },
    },
];

/// A number for the `n`th turn of a connection that is all over the place.
fn spread(connection: usize, n: usize) -> usize {
    (connection * 104_729 + n).wrapping_mul(7919)
}

fn find_by_id(n: usize) -> Document {
    doc! { "find": COLLECTION, "filter": { "_id": documents::id_text(n) }, "limit": 1, "singleBatch": true, "$db": "bench" }
}

fn inserts(collection: &str, documents: Vec<Document>) -> Document {
    doc! { "insert": collection, "documents": documents, "writeConcern": { "w": 1, "j": true }, "$db": "bench" }
}

/// Document `n` as MongoDB gets it: the id is its `_id`.
fn document(n: usize) -> Document {
    let mut fields = Document::try_from(&*documents::body(n)).expect("bench documents are valid");
    let id = fields.remove("id").unwrap_or_default();
    let mut whole = doc! { "_id": id, "tenth": (n / 10) as i32, "group": n as i32 % GROUPS };
    whole.extend(fields);
    whole
}

fn load(side: &Side, collection: &str, count: usize, at: Option<DateTime>) -> io::Result<()> {
    let mut client = Client::connect(side.port)?;
    for first in (0..count).step_by(BATCH) {
        let mut some: Vec<_> = (first..(first + BATCH).min(count)).map(document).collect();
        if let Some(at) = at {
            some.iter_mut().for_each(|document| drop(document.insert("at", at)));
        }
        client.run(&doc! { "insert": collection, "documents": some, "$db": "bench" });
    }
    Ok(())
}

fn compare(sides: &[Side], operation: &Operation, options: &Options) -> io::Result<()> {
    let connections = if operation.alone { 1 } else { options.connections };
    let mut runs: Vec<Vec<(Summary, f64)>> = sides.iter().map(|_| Vec::new()).collect();
    for round in 0..options.rounds {
        for (side, runs) in sides.iter().zip(&mut runs) {
            runs.push(measure(side, operation, connections, round, options)?);
        }
    }
    let of = |runs: &[(Summary, f64)], figure: fn(&(Summary, f64)) -> f64| {
        median(runs.iter().map(figure).collect())
    };
    let rate =
        |runs: &[(Summary, f64)]| of(runs, |(summary, _)| summary.per_second) * operation.weight as f64;
    let theirs = runs.get(1).map_or(f64::NAN, |runs| rate(runs));
    for (side, runs) in sides.iter().zip(&runs) {
        println!(
            "| {} | {connections} | {} | {:.0} | {:.2} | {:.2} | {:.0} | {:.2} |",
            operation.name,
            side.name,
            rate(runs),
            of(runs, |(summary, _)| summary.p50.as_secs_f64() * 1000.0),
            of(runs, |(summary, _)| summary.p99.as_secs_f64() * 1000.0),
            of(runs, |(_, cpu)| *cpu) / operation.weight as f64,
            rate(runs) / theirs,
        );
    }
    Ok(())
}

/// Latencies, and the server's CPU per command in microseconds.
fn measure(
    side: &Side,
    operation: &Operation,
    connections: usize,
    round: usize,
    options: &Options,
) -> io::Result<(Summary, f64)> {
    let (start, time) = (Instant::now(), Duration::from_secs(options.seconds));
    let before = cpu_seconds(side.process);
    let all = thread::scope(|scope| {
        let one = |connection: usize| {
            scope.spawn(move || -> io::Result<Latencies> {
                let mut client = Client::connect(side.port)?;
                let mut latencies = Latencies::default();
                while start.elapsed() < time {
                    // Each round has numbers of its own: what is inserted must be new.
                    let turn = latencies.len() + round * 1_000_000 / operation.weight;
                    let command = (operation.command)(connection, turn, options.documents);
                    let begun = Instant::now();
                    client.run(&command);
                    latencies.push(begun.elapsed());
                }
                Ok(latencies)
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
    let cpu = cpu_seconds(side.process).zip(before).map_or(f64::NAN, |(after, before)| after - before);
    let commands = all.len() as f64;
    Ok((all.summary(elapsed), cpu * 1e6 / commands))
}

/// Lets many documents end at once, under a reader.
fn expire(side: &Side, count: usize) -> io::Result<()> {
    let mut client = Client::connect(side.port)?;
    let index = doc! { "key": { "at": 1 }, "name": "at", "expireAfterSeconds": 0 };
    client.run(&doc! { "createIndexes": "dying", "indexes": [index], "$db": "bench" });
    if side.name == "MongoDB" {
        client.run(&doc! { "setParameter": 1, "ttlMonitorEnabled": true, "$db": "admin" });
    }
    let removed = |client: &mut Client| {
        let status = client.run(&doc! { "serverStatus": 1, "$db": "admin" });
        let ttl = status.get_document("metrics").and_then(|metrics| metrics.get_document("ttl"));
        ttl.map_or(0, |ttl| number(ttl.get("deletedDocuments")))
    };
    let removed_before = removed(&mut client);
    // Far enough off to be loaded, and to be read beside for a while.
    let quiet = Duration::from_secs(5);
    let loading = Instant::now();
    load(side, "rehearsed", count / 10, Some(DateTime::MAX))?;
    let at = SystemTime::now() + loading.elapsed() * 15 + quiet;
    load(side, "dying", count, Some(DateTime::from_system_time(at)))?;
    let late = || SystemTime::now().duration_since(at).unwrap_or_default();
    assert_eq!(client.count("dying"), count as u64, "loaded before they end");

    let (is_over, is_done) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        let reader = scope.spawn(|| -> io::Result<(Summary, Summary)> {
            let mut client = Client::connect(side.port)?;
            let before = read_until(&mut client, &is_over);
            Ok((before, read_until(&mut client, &is_done)))
        });
        while let Ok(left) = at.duration_since(SystemTime::now()) {
            thread::sleep(left.min(Duration::from_millis(50)));
        }
        is_over.store(true, Relaxed);
        while client.count("dying") > 0 {
            thread::sleep(Duration::from_millis(2));
        }
        let unseen = late();
        while removed(&mut client) < removed_before + count as u64 {
            thread::sleep(Duration::from_millis(20));
        }
        let gone = late();
        is_done.store(true, Relaxed);
        let (before, beside) = reader.join().expect("a bench thread does not panic")?;
        let ms = |summary: Summary| summary.p99.as_secs_f64() * 1000.0;
        println!(
            "| {} | after {:.3} s | after {:.1} s | {:.2} ms | {:.2} ms |",
            side.name,
            unseen.as_secs_f64(),
            gone.as_secs_f64(),
            ms(before),
            ms(beside)
        );
        Ok(())
    })
}

fn read_until(client: &mut Client, end: &AtomicBool) -> Summary {
    let (start, mut latencies) = (Instant::now(), Latencies::default());
    while !end.load(Relaxed) {
        let begun = Instant::now();
        client.run(&find_by_id(spread(0, latencies.len()) % 1000));
        latencies.push(begun.elapsed());
        thread::sleep(Duration::from_millis(1));
    }
    latencies.summary(start.elapsed())
}
