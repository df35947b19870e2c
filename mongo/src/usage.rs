//! How much each collection, and each of its indexes, is used: what `top`, `$collStats` and `$indexStats` add up since the server started.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use bson::{Document, doc};
use parking_lot::Mutex;

use crate::{namespace::Collection, planner::Plan};

/// Collections whose use is added up at a time. Those that are gone are forgotten.
const COLLECTIONS_MAX: usize = 10_000;

/// What kind of command it is, as `currentOp` and `top` tell them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `find`.
    Query,
    /// `getMore`.
    GetMore,
    /// `insert`.
    Insert,
    /// `update`.
    Update,
    /// `delete`.
    Remove,
    /// Every other.
    Command,
}

impl Kind {
    /// That of a command.
    pub fn of(command: &str) -> Self {
        match command {
            "find" => Self::Query,
            "getMore" => Self::GetMore,
            "insert" => Self::Insert,
            "update" => Self::Update,
            "delete" => Self::Remove,
            _ => Self::Command,
        }
    }

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Query => "query",
            Self::GetMore => "getmore",
            Self::Insert => "insert",
            Self::Update => "update",
            Self::Remove => "remove",
            Self::Command => "command",
        }
    }
}

/// What the time of a command counts as.
#[derive(Clone, Copy)]
pub enum Purpose {
    /// Looking at documents.
    Reads,
    /// Changing them.
    Writes,
    /// Anything else.
    Others,
    /// The end of a transaction.
    Transactions,
}

/// How often something was done, and how long all of it took.
#[derive(Clone, Copy, Default)]
struct Tally {
    count: u64,
    took: Duration,
}

impl Tally {
    fn add(&mut self, took: Duration) {
        self.count += 1;
        self.took += took;
    }

    /// As `top` writes it.
    fn shown(self) -> Document {
        doc! { "time": self.took.as_micros() as i64, "count": self.count as i64 }
    }

    /// As `$collStats` writes it.
    fn latency(self) -> Document {
        doc! { "latency": self.took.as_micros() as i64, "ops": self.count as i64 }
    }
}

impl std::ops::Add for Tally {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { count: self.count + other.count, took: self.took + other.took }
    }
}

/// The use of a collection, by kind and by whether it is read or written.
#[derive(Clone, Copy, Default)]
struct Use {
    kinds: [Tally; 6],
    reads: Tally,
    writes: Tally,
    others: Tally,
    transactions: Tally,
}

/// The use of all collections and indexes.
#[derive(Default)]
pub struct Usage {
    collections: Mutex<HashMap<String, Use>>,
    /// How often each index of a container was looked into.
    indexes: Mutex<HashMap<u32, BTreeMap<String, u64>>>,
}

impl Usage {
    /// Adds the time that a command took.
    pub fn add(&self, namespace: &str, kind: Kind, purpose: Purpose, took: Duration) {
        let mut used = self.collections.lock();
        if !used.contains_key(namespace) {
            if used.len() >= COLLECTIONS_MAX {
                return;
            }
            used.insert(namespace.to_owned(), Use::default());
        }
        let Some(entry) = used.get_mut(namespace) else { return };
        entry.kinds[kind as usize].add(took);
        match purpose {
            Purpose::Reads => entry.reads.add(took),
            Purpose::Writes => entry.writes.add(took),
            Purpose::Others => entry.others.add(took),
            Purpose::Transactions => entry.transactions.add(took),
        }
    }

    /// A query is carried out by a plan.
    pub fn note(&self, collection: &Collection, plan: &Plan) {
        match plan {
            Plan::Scan => {}
            Plan::Ids(_) | Plan::IdRange(_) => self.look_into(collection.container.id, "_id_"),
            Plan::Index { name, .. } => self.look_into(collection.container.id, name),
        }
    }

    /// An index of a container is looked into.
    pub fn look_into(&self, container: u32, index: &str) {
        let mut indexes = self.indexes.lock();
        let of_container = indexes.entry(container).or_default();
        match of_container.get_mut(index) {
            Some(count) => *count += 1,
            None => drop(of_container.insert(index.to_owned(), 1)),
        }
    }

    /// How often an index was looked into.
    pub fn looks(&self, container: u32, index: &str) -> u64 {
        let indexes = self.indexes.lock();
        indexes.get(&container).and_then(|of_container| of_container.get(index)).copied().unwrap_or(0)
    }

    /// Forgets the use of what is not there any more.
    pub fn keep_only(&self, is_collection: impl Fn(&str) -> bool, is_container: impl Fn(u32) -> bool) {
        self.collections.lock().retain(|namespace, _| is_collection(namespace));
        self.indexes.lock().retain(|container, _| is_container(*container));
    }

    /// The use of collections, as `top` shows it.
    pub fn totals(&self, is_there: impl Fn(&str) -> bool) -> Document {
        let used: BTreeMap<_, _> = self.collections.lock().clone().into_iter().collect();
        let mut totals = doc! { "note": "all times in microseconds" };
        for (namespace, used) in used.into_iter().filter(|(namespace, _)| is_there(namespace)) {
            let of = |kind: Kind| used.kinds[kind as usize].shown();
            let total = used.kinds.iter().fold(Tally::default(), |sum, tally| sum + *tally);
            totals.insert(
                namespace,
                doc! {
                    "total": total.shown(), "readLock": used.reads.shown(), "writeLock": used.writes.shown(),
                    "queries": of(Kind::Query), "getmore": of(Kind::GetMore), "insert": of(Kind::Insert),
                    "update": of(Kind::Update), "remove": of(Kind::Remove), "commands": of(Kind::Command),
                },
            );
        }
        totals
    }

    /// The use of one collection, as `$collStats` shows it.
    pub fn latencies(&self, namespace: &str) -> Document {
        let used = self.collections.lock().get(namespace).copied().unwrap_or_default();
        doc! {
            "reads": used.reads.latency(), "writes": used.writes.latency(),
            "commands": used.others.latency(), "transactions": used.transactions.latency(),
        }
    }
}
