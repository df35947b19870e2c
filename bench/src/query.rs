//! The query bench: questions, a client that asks them over HTTP, and the documents they are about.

pub mod client;
pub mod questions;
pub mod search;
