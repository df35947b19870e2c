//! Queries over the items of a container: what the client asks, where to look, how far it got.
//!
//! `request` reads the body, `access` turns what the filter says into a partition and an index range, `execute` pulls
//! pages of living records from the engine and pushes them through the language, and `token` writes down where a page
//! ended so that the next one can go on from there. The server keeps nothing in between. `plan` and `ranges` are for
//! clients that ask several partition key ranges and merge the answers themselves; `surroundings` is what the container
//! adds to the meaning of a query. `explain` says how it would be answered, `metrics`,
//! `index_metrics` and `report` how it was.

pub mod access;
pub mod conditions;
pub mod execute;
pub mod explain;
pub mod index_metrics;
pub mod metrics;
mod parsed;
mod part;
pub mod plan;
pub mod ranges;
pub mod report;
pub mod request;
pub mod resources;
mod source;
mod spans;
pub mod surroundings;
#[cfg(test)]
mod tests;
mod texts;
pub mod token;
