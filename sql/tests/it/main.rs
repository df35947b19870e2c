//! Integration tests of the query language: scripts, and properties that hold for every query.

mod properties;
mod scripts;
mod values;
