//! Two ways to take expired documents out of the trees: batched deletes, and a compaction filter.
//!
//! Both run on bare trees laid out like the store's, with one record of 1 KB and twelve small keys per document, half of
//! which are expired. Deletes are what the engine does; the filter drops whatever is at or before a cut when the trees
//! are merged, and cannot write feed events, sums or unique keys. Decision 0008 says why the first was kept.
//!
//! ```text
//! cargo xtask bench purge_methods
//! ```
#![expect(clippy::disallowed_methods, reason = "a bench measures time")]

use std::{path::Path, sync::Arc, time::Instant};

use clap::Parser;
use fjall::{
    Database, Keyspace, KeyspaceCreateOptions, KvSeparationOptions, PersistMode,
    compaction::filter::{CompactionFilter, CompactionFilterResult, Context, Factory, ItemAccessor, Verdict},
};

#[derive(Parser)]
struct Options {
    /// Documents, half of them expired
    #[arg(long, default_value_t = 200_000)]
    documents: u64,
}

const SMALL_KEYS: u64 = 12;
const BATCH: u64 = 128;

/// Drops keys whose document is at or before the cut. The document's number leads the key, as a time would.
struct Expired {
    cut: u64,
}

impl CompactionFilter for Expired {
    fn filter_item(&mut self, item: ItemAccessor<'_>, _: &Context) -> CompactionFilterResult {
        let number = item.key().first_chunk::<8>().map_or(u64::MAX, |bytes| u64::from_be_bytes(*bytes));
        // A tombstone stays behind: an older version below may not come back.
        Ok(if number < self.cut { Verdict::Remove } else { Verdict::Keep })
    }
}

impl Factory for Expired {
    fn name(&self) -> &str {
        "expired"
    }

    fn make_filter(&self, _: &Context) -> Box<dyn CompactionFilter> {
        Box::new(Self { cut: self.cut })
    }
}

struct Trees {
    database: Database,
    small: Keyspace,
    large: Keyspace,
}

impl Trees {
    fn open(path: &Path, cut: Option<u64>) -> Self {
        let builder = Database::builder(path);
        let builder = match cut {
            Some(cut) => builder.with_compaction_filter_factories(Arc::new(move |_| {
                Some(Arc::new(Expired { cut }) as Arc<dyn Factory>)
            })),
            None => builder,
        };
        let database = builder.open().expect("a database");
        let small = database.keyspace("small", KeyspaceCreateOptions::default).expect("a keyspace");
        let separated =
            || KeyspaceCreateOptions::default().with_kv_separation(Some(KvSeparationOptions::default()));
        let large = database.keyspace("large", separated).expect("a keyspace");
        Self { database, small, large }
    }

    fn load(&self, documents: u64) {
        for first in (0..documents).step_by(BATCH as usize) {
            let mut batch = self.database.batch();
            for n in first..(first + BATCH).min(documents) {
                batch.insert(&self.large, n.to_be_bytes(), body(n));
                for key in 0..SMALL_KEYS {
                    batch.insert(&self.small, small_key(n, key), [0; 9]);
                }
            }
            batch.commit().expect("a commit");
        }
        self.flush();
    }

    fn flush(&self) {
        self.database.persist(PersistMode::SyncAll).expect("a sync");
        for tree in [&self.small, &self.large] {
            tree.rotate_memtable_and_wait().expect("a flush");
        }
    }

    fn merge(&self) {
        for tree in [&self.small, &self.large] {
            tree.major_compact().expect("a merge");
        }
    }

    fn disk_mb(&self) -> u64 {
        (self.small.disk_space() + self.large.disk_space()) >> 20
    }
}

fn small_key(document: u64, key: u64) -> Vec<u8> {
    [document.to_be_bytes().as_slice(), &key.to_be_bytes(), b"path and value"].concat()
}

/// A kilobyte that does not compress to nothing.
fn body(n: u64) -> Vec<u8> {
    (0..128_u64).flat_map(|word| (n ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()).collect()
}

fn main() {
    let documents = Options::parse().documents;
    let expired = documents / 2;
    println!("purge of {expired} of {documents} documents: 1 KB and {SMALL_KEYS} small keys each");
    for (name, filter) in [("batched deletes", false), ("compaction filter", true)] {
        let dir = tempfile::tempdir().expect("a temporary directory");
        Trees::open(dir.path(), None).load(documents);
        let trees = Trees::open(dir.path(), filter.then_some(expired));
        let before = trees.disk_mb();
        let start = Instant::now();
        if !filter {
            for first in (0..expired).step_by(BATCH as usize) {
                let mut batch = trees.database.batch();
                for n in first..(first + BATCH).min(expired) {
                    // The engine reads a victim to know its keys.
                    assert!(trees.large.get(n.to_be_bytes()).expect("a get").is_some());
                    batch.remove(&trees.large, n.to_be_bytes());
                    (0..SMALL_KEYS).for_each(|key| batch.remove(&trees.small, small_key(n, key)));
                }
                batch.commit().expect("a commit");
            }
        }
        let deleted = start.elapsed().as_secs_f64();
        trees.flush();
        trees.merge();
        let merged = start.elapsed().as_secs_f64();
        let left = trees.large.len().expect("a count");
        println!(
            "  {name}: {:.0} documents/s with the merge, {} before it; {left} records left; {before} MB, then {} MB",
            expired as f64 / merged,
            if filter {
                "none gone".to_owned()
            } else {
                format!("{:.0} documents/s", expired as f64 / deleted)
            },
            trees.disk_mb()
        );
    }
}
