//! How fast expired documents leave when nobody asks for anything, beside MongoDB's TTL monitor.
//!
//! ```text
//! cargo xtask bench purge --mongod /usr/bin/mongod
//! ```
//!
//! The same documents with the same indexes on both sides, loaded first and then expired all at once; the time is from
//! the first document that is gone to the last. Without `--mongod` only our side runs.

use std::{path::PathBuf, time::Duration};

use bson::{DateTime, Document, doc};
use clap::Parser;
use mayfly_bench::{
    documents::{self, body, load},
    median,
    mongod::Mongod,
    timed,
    world::World,
};
use mayfly_engine::{
    Clock, DefaultTtl, IndexingPolicy, Pace,
    clock::{Stopwatch, pause},
};
use mayfly_storage::upkeep::Upkeep as _;

#[derive(Parser)]
struct Options {
    /// Documents to expire on each side
    #[arg(long, default_value_t = 300_000)]
    documents: usize,
    /// How often each side runs; they take turns
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// A MongoDB server binary to compare with
    #[arg(long, env = "MAYFLY_BENCH_MONGOD")]
    mongod: Option<PathBuf>,
    /// The port that one listens on
    #[arg(long, default_value_t = 27_117)]
    port: u16,
}

/// The properties that both sides index, besides the id and what expiry needs.
const INDEXED: [&str; 8] = ["pk", "name", "user", "score", "active", "tags", "address.city", "address.zip"];

#[tokio::main]
async fn main() {
    let options = Options::parse();
    println!("purge: {} expired documents of 1 KB, nobody else about", options.documents);
    println!("  same: indexes on {} properties (nine entries a document); all: every path", INDEXED.len());
    if options.mongod.is_none() {
        println!("  no --mongod: not compared with MongoDB");
    }
    let (mut same, mut all, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
    for round in 1..=options.rounds {
        // The one that is not compared goes first: after a large process has ended, a virtual machine may have given its
        // memory away, and whoever comes next waits for it to come back.
        all.push(ours(options.documents, IndexingPolicy::default()).await);
        same.push(ours(options.documents, listed_paths()).await);
        print!("  round {round}: same {:.0}/s, all {:.0}/s", same[round - 1], all[round - 1]);
        if let Some(binary) = &options.mongod {
            match Mongod::start(binary, options.port).await {
                Ok(mut server) => theirs.push(mongo(&mut server, options.documents).await),
                Err(error) => {
                    println!("\n  {} does not start: {error}", binary.display());
                    std::process::exit(1);
                }
            }
            print!(", MongoDB {:.0}/s", theirs[round - 1]);
        }
        println!();
    }
    println!("  median: same {:.0} documents/s, all {:.0} documents/s", median(same.clone()), median(all));
    if !theirs.is_empty() {
        let ratios = same.iter().zip(&theirs).map(|(ours, theirs)| ours / theirs);
        println!("  MongoDB {:.0} documents/s", median(theirs.clone()));
        println!("  ratio with the same indexes {:.1} (goal: 3)", median(ratios.collect()));
    }
}

/// An indexing policy with the properties that MongoDB gets an index for.
fn listed_paths() -> IndexingPolicy {
    let included = INDEXED.map(|path| match path {
        "tags" => "/tags/[]/?".to_owned(),
        path => format!("/{}/?", path.replace('.', "/")),
    });
    IndexingPolicy {
        included: included.to_vec(),
        excluded: vec!["/*".to_owned()],
        ..IndexingPolicy::default()
    }
}

/// Documents per second, purged by us.
async fn ours(count: usize, indexing: IndexingPolicy) -> f64 {
    let world = World::open().await;
    let now = world.clock.now();
    let default = Some(DefaultTtl::Seconds(60));
    let dying = documents::container_with(&world.engine, "dying", default, indexing, now).await;
    load(&world.engine, &dying, count, now).await;
    // Documents that expire have been there for a while: what loading left to merge is merged.
    world.store.reclaim().await.expect("a settled store");
    settle_disk();
    world.clock.advance(Duration::from_secs(61));
    let later = world.clock.now();
    let engine = world.engine.clone();
    let (purged, counting) = timed(async {
        let mut purged = 0;
        loop {
            let tick = engine.purge(later, Pace::Full).await.expect("a tick");
            purged += tick.documents;
            if !tick.more {
                return purged;
            }
        }
    })
    .await;
    assert_eq!(purged, count as u64, "all of them are purged");
    let (dropped, dropping) = timed(world.store.reclaim()).await;
    dropped.expect("a reclaim");
    let report = engine.check().await.expect("a check");
    assert!(report.is_clean() && report.entries + report.left == 0, "nothing of them is left");
    println!(
        "    purged in {:.1} s, rows dropped in {:.1} s",
        counting.as_secs_f64(),
        dropping.as_secs_f64()
    );
    purged as f64 / (counting + dropping).as_secs_f64()
}

/// Documents per second, deleted by MongoDB's TTL monitor.
async fn mongo(server: &mut Mongod, count: usize) -> f64 {
    const COLLECTION: &str = "dying";
    const BATCH: usize = 1000;
    let names = INDEXED.map(|path| doc! { "key": { path: 1 }, "name": path });
    let mut indexes = names.to_vec();
    indexes.push(doc! { "key": { "at": 1 }, "name": "at", "expireAfterSeconds": 0 });
    server.run(&doc! { "createIndexes": COLLECTION, "indexes": indexes, "$db": "bench" });
    let at = DateTime::from_millis(1_700_000_000_000);
    for first in (0..count).step_by(BATCH) {
        let documents: Vec<_> = (first..(first + BATCH).min(count)).map(|n| expiring(n, at)).collect();
        server.run(&doc! { "insert": COLLECTION, "documents": documents, "$db": "bench" });
    }
    server.run(&doc! { "fsync": 1, "$db": "admin" });
    settle_disk();
    server.run(&doc! { "setParameter": 1, "ttlMonitorEnabled": true, "$db": "admin" });
    let mut begun: Option<(Stopwatch, u64)> = None;
    loop {
        pause(Duration::from_millis(20)).await;
        let left = server.count(COLLECTION);
        match &begun {
            None if left < count as u64 => begun = Some((Stopwatch::start(), left)),
            Some((watch, first)) if left == 0 => return *first as f64 / watch.elapsed().as_secs_f64(),
            _ => {}
        }
    }
}

/// Waits until the disk has what was written so far, by whomever: whoever is measured next would pay for it.
fn settle_disk() {
    let synced = std::process::Command::new("sync").status();
    assert!(synced.is_ok_and(|status| status.success()), "`sync` is part of every Unix");
}

/// Document `n` as MongoDB gets it: the id is its `_id`, and a date says when it ends.
fn expiring(n: usize, at: DateTime) -> Document {
    let mut document = Document::try_from(&*body(n)).expect("bench documents are valid");
    let id = document.remove("id").unwrap_or_default();
    let mut expiring = doc! { "_id": id, "at": at };
    expiring.extend(document);
    expiring
}
