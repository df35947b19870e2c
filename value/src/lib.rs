//! The `value` crate of Mayfly.
