//! Values: documents as bytes, and everything that can be said about them without a database.
//!
//! ```text
//!   JSON text ──json──▶ BSON bytes ──walk──▶ (path, value) leaves ──keycode──▶ index keys
//!                           │        path rules decide which            order defines their order
//!                           └──partition──▶ partition key ──▶ effective key ──▶ slot
//! ```
//!
//! - [`json`]: JSON text to BSON bytes and back, streamed.
//! - [`path`]: property paths, and the patterns of indexing policies.
//! - [`walk`]: the leaves of a document that an index holds.
//! - [`order`]: what sorts before what, for Cosmos and for MongoDB; [`number`] compares numbers.
//! - [`keycode`]: the same order as bytes of a key.
//! - [`partition`]: partition keys, the hashes the SDKs also compute, and slots.
//! - [`digest`]: a short stand-in for a long value.
//! - [`field`]: one property of a document, quickly.
//! - [`vector`]: an array as numbers, distances, and codes that tell them within bounds.
//! - [`text`]: a text as words, and how well it fits some.
//! - [`foreign`]: what can be wrong with BSON bytes.
//!
//! Holds: everything here is synchronous, does no I/O, reads no clock, and never panics, whatever bytes it
//! is given.

#![warn(missing_docs)]
// Outside of tests nothing here may panic on the bytes it is given.
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::expect_used, clippy::panic))]

pub use bson;

pub mod digest;
pub mod field;
pub mod foreign;
pub mod json;
pub mod keycode;
pub mod number;
pub mod order;
pub mod partition;
pub mod path;
pub mod text;
pub mod vector;
pub mod walk;

pub use foreign::BsonError;
pub use order::Order;
