//! The `cosmos` crate of Mayfly.
