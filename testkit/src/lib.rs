//! The `testkit` crate of Mayfly.
