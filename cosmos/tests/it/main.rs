//! The protocol over an engine in memory: what SDKs cannot be made to send, and what they do not show.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod bad_input;
mod containers;
mod conventions;
mod entra;
mod harness;
mod keys;
mod policies;
mod ranges;
mod sdk_answers;
mod sessions;
mod throttle;
