//! The query bench: questions, a client that asks them over HTTP, and the documents they are about.

pub mod client;
pub mod prepared;
pub mod questions;
pub mod search;
