//! What tests of Mayfly share. Never part of the server.
//!
//! Over the seam of [`mayfly_storage::store::Store`] there are four wrappers, each a store itself: [`mirror`] runs
//! two stores side by side, [`recorder`] writes down what is written, [`faulty`] fails on demand, and [`crash`]
//! shows what a crash after each commit would leave.

pub mod crash;
pub mod faulty;
pub mod mirror;
pub mod recorder;

pub use crash::CrashImages;
pub use faulty::Faulty;
pub use mirror::Mirror;
pub use recorder::Recorder;
