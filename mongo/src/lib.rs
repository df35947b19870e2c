//! The MongoDB front-end: the protocol, and what filters, updates, expressions and pipelines mean.
//!
//! ```text
//!   bytes ──wire──▶ Request ──service──▶ Call ──commands──▶ engine
//!                                │ session, auth           │ cursor
//!
//!   filter ──▶ Filter::matches(document)          update ──▶ Update::apply(document) ──▶ document, description
//!   pipeline ──▶ Pipeline::run(documents) ──▶ documents       projection ──▶ Projection::apply(document)
//! ```
//!
//! The second half is functions of their arguments: no I/O, no engine, no clock. Time, chance, collation and variables
//! come in a [`Context`]; documents are BSON bytes that are looked at where they lie. Errors carry MongoDB's numbers
//! ([`error`]). The first half decides nothing that the engine should decide.

#![warn(missing_docs)]
// Outside of tests nothing here may panic on what it is given.
#![cfg_attr(not(test), deny(clippy::expect_used, clippy::panic))]

// The protocol.
mod arguments;
pub mod auth;
mod bounds;
mod call;
mod capped;
mod change_stream;
mod changing;
mod cluster_time;
mod collations;
pub mod commands;
mod concerns;
mod connection;
mod counters;
mod counting;
mod covered;
mod cursor;
mod disclosed;
mod duplicates;
mod fail_point;
mod failure;
mod filtering;
mod gates;
mod in_process;
mod index_kinds;
mod indexes;
mod namespace;
mod near;
mod operations;
mod origin;
mod output;
mod planner;
mod predicates;
mod query;
mod reader;
mod runs;
mod service;
mod session;
mod snapshots;
mod stages;
mod usage;
mod users;
mod validation;
pub mod wire;
mod writer;

// What it says about documents.
mod calendar;
pub mod collation;
pub mod context;
mod decimal;
mod derived;
mod errands;
mod error;
pub mod expression;
pub mod extended_json;
pub mod filter;
mod geo;
mod number;
mod path;
mod pattern;
pub mod pipeline;
pub mod projection;
pub mod sort;
mod text;
pub mod update;
mod values;

pub use context::Context;
pub use error::MongoError;
pub use predicates::Filters;
pub use service::{Mongo, Options, Topology};
