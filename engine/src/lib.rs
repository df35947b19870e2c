//! The `engine` crate of Mayfly.
