//! The MongoDB protocol: frames to the engine's terms and back, and nothing that the engine should decide.

pub mod wire;
