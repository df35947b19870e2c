//! Whether the server is starting, ready or stopping, and the texts that say so.
//!
//! Three questions, as orchestrators ask them: is the process alive (`/alive`), should it get requests
//! (`/ready`), and what is going on (`/status`, for people).
//!
//! Holds: ready means that the engine is open and the server was not told to stop.

use mayfly_engine::clock::Stopwatch;
use std::sync::atomic::{AtomicU8, Ordering};

/// A stage of the server's life. They follow each other in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Phase {
    Starting,
    Ready,
    Stopping,
}

impl Phase {
    fn as_str(self) -> &'static str {
        match self {
            Phase::Starting => "starting",
            Phase::Ready => "ready",
            Phase::Stopping => "stopping",
        }
    }
}

/// The server's state of health.
#[derive(Debug)]
pub struct Health {
    phase: AtomicU8,
    since: Stopwatch,
    store: String,
    /// Whether there is a port for the MongoDB protocol.
    has_mongo: bool,
}

impl Health {
    /// A server that starts now, with the kind of its store and whether it speaks to MongoDB clients.
    pub fn starting(store: String, has_mongo: bool) -> Health {
        Health { phase: AtomicU8::new(Phase::Starting as u8), since: Stopwatch::start(), store, has_mongo }
    }

    /// Enters a phase.
    pub fn enter(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::Release);
    }

    /// The current phase.
    pub fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Acquire) {
            0 => Phase::Starting,
            1 => Phase::Ready,
            _ => Phase::Stopping,
        }
    }

    /// Seconds since the start.
    pub fn uptime_seconds(&self) -> u64 {
        self.since.elapsed().as_secs()
    }

    /// The body of `/status`.
    pub fn to_json(&self) -> String {
        let phase = self.phase();
        serde_json::json!({
            "status": phase.as_str(),
            "version": env!("CARGO_PKG_VERSION"),
            "store": self.store,
            "uptimeSeconds": self.uptime_seconds(),
            "components": {
                "gateway": "ready",
                "engine": phase.as_str(),
                "mongo": if self.has_mongo { phase.as_str() } else { "off" },
            },
        })
        .to_string()
    }
}
