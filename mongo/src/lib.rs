//! The MongoDB front-end: what filters, updates, expressions and pipelines mean.
//!
//! ```text
//!   filter ──▶ Filter::matches(document)          update ──▶ Update::apply(document) ──▶ document, description
//!   pipeline ──▶ Pipeline::run(documents) ──▶ documents       projection ──▶ Projection::apply(document)
//! ```
//!
//! Everything here is a function of its arguments: no I/O, no engine, no clock. Time, chance, collation and
//! variables come in a [`Context`]; documents are BSON bytes that are looked at where they lie. Errors carry
//! MongoDB's numbers ([`error`]).

#![warn(missing_docs)]
// Outside of tests nothing here may panic on what it is given.
#![cfg_attr(not(test), deny(clippy::expect_used, clippy::panic))]

mod calendar;
pub mod collation;
pub mod context;
mod decimal;
pub mod error;
pub mod expression;
pub mod filter;
mod geo;
mod number;
mod path;
mod pattern;
pub mod pipeline;
pub mod projection;
pub mod sort;
pub mod update;
mod values;

pub use context::Context;
pub use error::MongoError;
