//! The `mayfly` binary.

fn main() {}
