//! Ordered bytes: snapshots and guarded atomic batches, embedded or remote.
//!
//! Start at [`store`]: the contract. This crate knows no documents and no time, and depends on no sibling.

pub mod error;
pub mod store;

pub use error::{Error, Result};
