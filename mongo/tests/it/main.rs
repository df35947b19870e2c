//! One test binary: every command dropped at every poll, golden scripts, and on demand the same scripts and
//! random cases on a real server.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod batches;
mod cancel;
mod commands;
mod literal;
mod oracle;
mod orders;
mod scripts;
mod searches;
mod streams;
mod subject;
