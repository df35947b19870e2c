//! What a test's engine stands on: an empty store of the kind the test asks for, and what is left of it when
//! the engine is gone.
//!
//! The usual kind is [`Backend::Mirrored`], memory and files compared on every call: memory is strict about
//! slots and asks a filter about every row, files have a row cache, blocks and tables, and a test that passes
//! on both at once has met all of them. A new directory and each commit cost more than
//! memory alone would.
//!
//! Where [`postgres::ADDRESS`] names a server, every new ground is on it, whatever the test asks for: the
//! same tests, unchanged, on another store.
//!
//! Holds: a ground leaves no files behind.

use std::sync::Arc;

use mayfly_storage::{
    Durability, EmbeddedOptions, EmbeddedStore, MemoryStore, PostgresStore, Result, store::Store,
};
use tempfile::TempDir;

use crate::{Mirror, postgres};

/// Which store a test stands on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backend {
    /// Memory alone: for a test that makes very many worlds, or is about what memory says of itself.
    Memory,
    /// Files alone, in a temporary directory: for a test of what only files do.
    Embedded,
    /// Both, compared on every call.
    #[default]
    Mirrored,
}

/// A place for a store, to be opened again and again, by one engine at a time.
pub struct Ground(Kind);

enum Kind {
    Memory(Arc<MemoryStore>),
    Embedded(TempDir),
    Mirrored(Arc<MemoryStore>, TempDir),
    /// A schema of its own at this address.
    Postgres(String),
    Given(Arc<dyn Store>),
}

impl Ground {
    /// An empty one.
    pub async fn new(backend: Backend) -> Self {
        Self(match backend {
            _ if std::env::var_os(postgres::ADDRESS).is_some() => {
                Kind::Postgres(postgres::empty_address().await)
            }
            Backend::Memory => Kind::Memory(Arc::default()),
            Backend::Embedded => Kind::Embedded(directory()),
            Backend::Mirrored => Kind::Mirrored(Arc::default(), directory()),
        })
    }

    /// A store of the test's own, with whatever is in it.
    pub fn given(store: Arc<dyn Store>) -> Self {
        Self(Kind::Given(store))
    }

    /// The store with what is in it. Whatever was opened before is dropped by now.
    pub async fn open(&self) -> Result<Arc<dyn Store>> {
        Ok(match &self.0 {
            Kind::Memory(memory) => memory.clone(),
            Kind::Embedded(directory) => embedded(directory)?,
            Kind::Mirrored(memory, directory) => Arc::new(Mirror::new(memory.clone(), embedded(directory)?)),
            Kind::Postgres(address) => Arc::new(PostgresStore::open(address).await?),
            Kind::Given(store) => store.clone(),
        })
    }
}

fn directory() -> TempDir {
    tempfile::tempdir().expect("a temporary directory can be made")
}

/// Without syncs: a test that loses its machine has failed anyway.
fn embedded(directory: &TempDir) -> Result<Arc<EmbeddedStore>> {
    let options = EmbeddedOptions { durability: Durability::None, ..EmbeddedOptions::default() };
    EmbeddedStore::open(directory.path(), options).map(Arc::new)
}
