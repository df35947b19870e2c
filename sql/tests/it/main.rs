//! Integration tests of the query language: scripts, and properties that hold for every query.

mod distribution;
mod properties;
mod scripts;
mod values;

/// How many cases a property is tried on: MAYFLY_CASES, for a long run, or as many as its author thought enough.
fn cases(usual: u32) -> u32 {
    std::env::var("MAYFLY_CASES").ok().and_then(|count| count.parse().ok()).unwrap_or(usual)
}
