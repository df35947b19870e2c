//! The MongoDB protocol: frames to the engine's terms and back, and nothing that the engine should decide.
//!
//! ```text
//!   bytes ──wire──▶ Request ──service──▶ Call ──commands──▶ engine
//!                                │ session, auth           │ cursor
//! ```

pub mod auth;
mod call;
mod cluster_time;
pub mod commands;
mod connection;
mod counters;
mod cursor;
mod fail_point;
mod failure;
mod predicates;
mod service;
mod session;
mod users;
pub mod wire;

pub use predicates::Filters;
pub use service::{Mongo, Options, Topology};
