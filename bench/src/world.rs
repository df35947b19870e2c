//! An engine on a new embedded store in a directory of its own, on a clock that stands still.

use std::sync::Arc;

use mayfly_engine::{AdjustableClock, Engine, Timestamp};
use mayfly_storage::embedded::{EmbeddedOptions, EmbeddedStore};

/// An engine and what it stands on. The directory goes with it.
pub struct World {
    /// The engine.
    pub engine: Engine,
    /// Its store.
    pub store: Arc<EmbeddedStore>,
    /// Its clock.
    pub clock: Arc<AdjustableClock>,
    _dir: tempfile::TempDir,
}

impl World {
    /// An empty one.
    pub async fn open() -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let store = Arc::new(open_store(&dir));
        let clock = Arc::new(AdjustableClock::frozen(Timestamp::from_seconds(1_800_000_000)));
        let engine = Engine::builder(store.clone()).clock(clock.clone()).open().await.expect("a new engine");
        Self { engine, store, clock, _dir: dir }
    }
}

/// A store as a server has it.
pub fn open_store(dir: &tempfile::TempDir) -> EmbeddedStore {
    EmbeddedStore::open(&dir.path().join("store"), EmbeddedOptions::default()).expect("a new store")
}
