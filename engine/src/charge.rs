//! Request units: what an operation costs, as a model of its work.
//!
//! Anchored on the published figures: a point read of 1 KB is 1 RU and of 100 KB about 10; an insert of 1 KB without
//! indexing is about 5, and each indexed term adds. Deterministic: the same work costs the same.

/// A replace reads and takes away the old version first.
pub const REPLACE_FACTOR: f64 = 2.0;

/// An operation that looked something up and did nothing.
pub const MISS: f64 = 1.0;

/// A write that was refused.
pub const REFUSED: f64 = 1.24;

fn kilobytes(bytes: u32) -> f64 {
    f64::from(bytes) / 1024.0
}

/// A point read.
pub fn read(bytes: u32) -> f64 {
    round((1.0 + 0.09 * (kilobytes(bytes) - 1.0)).max(1.0))
}

/// A create, an upsert of a new document, or a delete.
pub fn write(bytes: u32, terms: usize) -> f64 {
    round(4.9 + 0.45 * kilobytes(bytes) + 0.14 * terms as f64)
}

/// A page of a scan or feed.
pub fn page(documents: usize, bytes: u64) -> f64 {
    round(2.25 + 0.04 * documents as f64 + 0.1 * bytes as f64 / 1024.0)
}

/// A page of a query: what it looked at and what it gave.
pub fn query(documents: usize, bytes: u64) -> f64 {
    round(2.25 + 0.03 * documents as f64 + 0.1 * bytes as f64 / 1024.0)
}

/// Two decimals, as the service prints them.
fn round(charge: f64) -> f64 {
    (charge * 100.0).round() / 100.0
}
