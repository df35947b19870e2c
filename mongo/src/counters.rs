//! What `serverStatus` counts.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed},
};

use bson::{Document, doc};
use parking_lot::Mutex;

/// Counters since the server started.
#[derive(Default)]
pub struct Counters {
    /// Connections open now.
    pub connections: AtomicI64,
    /// Connections ever.
    pub connections_total: AtomicU64,
    /// Bytes received.
    pub bytes_in: AtomicU64,
    /// Bytes sent.
    pub bytes_out: AtomicU64,
    /// Messages received.
    pub requests: AtomicU64,
    /// Documents inserted, returned, updated and deleted.
    pub inserted: AtomicU64,
    /// Documents returned.
    pub returned: AtomicU64,
    /// Documents updated.
    pub updated: AtomicU64,
    /// Documents deleted.
    pub deleted: AtomicU64,
    commands: Mutex<BTreeMap<String, [u64; 2]>>,
}

/// An open connection, counted until it is let go.
pub struct Connected<'a>(&'a Counters);

impl Drop for Connected<'_> {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Relaxed);
    }
}

impl Counters {
    /// A connection begins.
    pub fn connect(&self) -> Connected<'_> {
        self.connections.fetch_add(1, Relaxed);
        Connected(self)
    }

    /// A command begins.
    pub fn started(&self, name: &str) {
        let mut commands = self.commands.lock();
        match commands.get_mut(name) {
            Some(count) => count[0] += 1,
            None => {
                commands.insert(name.to_owned(), [1, 0]);
            }
        }
    }

    /// A command failed. Names nobody knows are not kept.
    pub fn failed(&self, name: &str) {
        if let Some(count) = self.commands.lock().get_mut(name) {
            count[1] += 1;
        }
    }

    /// How often a command ran.
    pub fn runs(&self, name: &str) -> i64 {
        self.commands.lock().get(name).map_or(0, |count| count[0] as i64)
    }

    /// Every command's counts.
    pub fn commands(&self) -> Document {
        let commands = self.commands.lock();
        let counts = commands.iter().map(|(name, [total, failed])| {
            (name.clone(), doc! { "failed": *failed as i64, "total": *total as i64 }.into())
        });
        counts.collect()
    }

    /// The classic counters.
    pub fn operations(&self) -> Document {
        doc! {
            "insert": self.inserted.load(Relaxed) as i64,
            "query": self.runs("find"),
            "update": self.runs("update"),
            "delete": self.runs("delete"),
            "getmore": self.runs("getMore"),
            "command": self.requests.load(Relaxed) as i64,
        }
    }
}
