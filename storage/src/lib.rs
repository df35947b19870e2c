//! Ordered bytes: snapshots and guarded atomic batches, embedded or remote.
//!
//! Start at [`store`]: the contract of reads and commits, with [`upkeep`] for the background and [`peers`] for the
//! processes that share a store. [`memory`] is the reference for what it means, [`embedded`] the one that keeps files,
//! [`postgres`] the one that many nodes share, and [`conformance`] the suite all pass. This crate knows no documents
//! and no time, and depends on no sibling.

pub mod batch;
pub mod conformance;
pub mod embedded;
pub mod error;
pub mod memory;
pub mod peers;
pub mod postgres;
pub mod store;
pub mod upkeep;

pub use embedded::{Compression, Durability, EmbeddedOptions, EmbeddedStore};
pub use error::{Error, Result};
pub use memory::MemoryStore;
pub use postgres::PostgresStore;
