//! Ordered bytes: snapshots and guarded atomic batches, embedded or remote.
//!
//! Start at [`store`]: the contract. [`memory`] is the reference for what it means, [`embedded`] the one that
//! keeps files, and [`conformance`] the suite both pass. This crate knows no documents and no time, and depends
//! on no sibling.

pub mod batch;
pub mod conformance;
pub mod embedded;
pub mod error;
pub mod memory;
pub mod store;

pub use embedded::{Durability, EmbeddedOptions, EmbeddedStore};
pub use error::{Error, Result};
pub use memory::MemoryStore;
