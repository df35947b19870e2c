//! What tests of Mayfly share. Never part of the server.
//!
//! Over the seam of [`mayfly_storage::store::Store`] there are four wrappers, each a store itself: [`mirror`]
//! runs two stores side by side, [`recorder`] writes down what is written, [`faulty`] fails on demand, and
//! [`crash`] shows what a crash after each commit would leave. [`cancel`] has a fifth,
//! whose calls take turns, for futures that are dropped anywhere on their way.
//!
//! [`ground`] brings empty stores, mirrored if the test asks for nothing else, and [`postgres`] those on a
//! real server. Above it, [`world`] is an engine whose store, clock and identifiers belong to the test;
//! [`script`] and [`commands`] run tests that are text; [`model`] says what the engine must answer, and
//! [`trace`] holds it to that.

pub mod cancel;
pub mod commands;
pub mod crash;
pub mod faulty;
pub mod ground;
pub mod mirror;
pub mod model;
pub mod postgres;
pub mod recorder;
pub mod script;
pub mod trace;
pub mod words;
pub mod world;

pub use cancel::Yielding;
pub use commands::Commands;
pub use crash::CrashImages;
pub use faulty::Faulty;
pub use ground::{Backend, Ground};
pub use mirror::Mirror;
pub use recorder::Recorder;
pub use world::World;
