//! The engine's tests above its units, in one binary.
//!
//! `scripts` runs the text files under `tests/scripts`; `ttl_contract` has one test per promise about expiry;
//! `ttl_model` compares long random traces with a model; `crashes` and `faults` look at every moment in which
//! a run can end; `cancel` drops every operation at every poll; `followers` has what is kept for those who
//! follow changes; `names` has what is found by them; `layouts` opens stores of earlier layouts;
//! `races` has requests that overlap; `ranges` has partition key ranges that split; `wide_scans` has threads
//! that share a walk. `docs/testing.md` says where a new test belongs.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod cancel;
mod crashes;
mod faults;
mod followers;
mod layouts;
mod names;
mod races;
mod ranges;
mod scripts;
mod ttl_contract;
mod ttl_model;
mod wide_scans;
mod workload;
