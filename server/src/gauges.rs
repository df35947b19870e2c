//! What the engine has to report to Prometheus: documents, expiries and the purge that follows them.
//!
//! Gauges that need a look at the data are refreshed by purge when it has caught up, and every second beside it when it
//! has not. They are only printed here, so that asking for metrics costs nothing.
//!
//! Holds: containers are named by their number; names are user data.

use std::{collections::BTreeMap, fmt::Write as _, time::Duration};

use mayfly_engine::{Engine, Usage, clock::Stopwatch};
use parking_lot::Mutex;

/// The last look at each container, by number.
#[derive(Debug, Default)]
pub struct Gauges(Mutex<Look>);

#[derive(Debug, Default)]
struct Look {
    usages: BTreeMap<u32, Usage>,
    /// Since it began.
    begun: Option<Stopwatch>,
}

impl Gauges {
    /// Looks at every container.
    pub async fn refresh(&self, engine: &Engine) {
        let begun = Some(Stopwatch::start());
        let Ok(now) = engine.now().await else { return };
        let mut usages = BTreeMap::new();
        for database in engine.databases() {
            for container in engine.containers(&database) {
                if let Ok(usage) = engine.usage(&container, now).await {
                    usages.insert(container.id, usage);
                }
            }
        }
        *self.0.lock() = Look { usages, begun };
    }

    /// How old the last look is, if there was one.
    pub fn age(&self) -> Option<Duration> {
        self.0.lock().begun.map(Stopwatch::elapsed)
    }

    /// The last look.
    pub fn usages(&self) -> Vec<Usage> {
        self.0.lock().usages.values().copied().collect()
    }

    /// Appends the lines.
    pub fn render(&self, engine: &Engine, out: &mut String) {
        let usages = self.0.lock().usages.clone();
        let mut family = |name: &str, kind: &str, help: &str, value: &dyn Fn(u32, &Usage) -> u64| {
            let _ = writeln!(out, "# HELP mayfly_{name} {help}\n# TYPE mayfly_{name} {kind}");
            for (id, usage) in &usages {
                let _ = writeln!(out, "mayfly_{name}{{container=\"{id}\"}} {}", value(*id, usage));
            }
        };
        family("documents", "gauge", "Living documents.", &|_, usage| usage.live.documents);
        family("document_bytes", "gauge", "Bytes of living documents.", &|_, usage| usage.live.bytes);
        family("ttl_expired_total", "counter", "Documents that have expired.", &|_, usage| {
            usage.purged.documents + usage.backlog.documents
        });
        family("ttl_purged_total", "counter", "Expired documents removed by purge.", &|_, usage| {
            usage.purged.documents
        });
        family("ttl_backlog", "gauge", "Expired documents that purge has not reached.", &|_, usage| {
            usage.backlog.documents
        });
        family("ttl_lag_seconds", "gauge", "How long the oldest of the backlog has waited.", &|_, usage| {
            usage.lag_seconds
        });
        family("writes_total", "counter", "Operations that changed documents.", &|id, _| {
            engine.metrics().of(id).writes.get()
        });
        let stats = engine.store_stats();
        for (name, kind, help, value) in [
            ("store_disk_bytes", "gauge", "Bytes of all files of the store.", stats.disk_bytes),
            ("store_commits_total", "counter", "Batches committed.", stats.commits),
            ("store_groups_total", "counter", "Groups they were written in.", stats.groups),
            ("store_conflicts_total", "counter", "Batches refused by a guard.", stats.conflicts),
            (
                "load_requests_total",
                "counter",
                "Requests of any protocol that background work gives way to.",
                engine.load().arrived(),
            ),
        ] {
            let _ = writeln!(
                out,
                "# HELP mayfly_{name} {help}\n# TYPE mayfly_{name} {kind}\nmayfly_{name} {value}"
            );
        }
    }
}
