//! The server around the protocols: settings, certificates, one port for everything, health, metrics, and an
//! orderly start and stop. The binary `mayfly` only parses arguments and calls `run`.
//!
//! A request's way in: `listen` accepts, the `workers` take it, `connection` finds out whether it speaks TLS and
//! serves HTTP on it, `routes` answers the server's own paths and hands the rest to a `Backend` (the protocol front-end with the
//! engine behind it).
//!
//! Holds: nothing here knows a document; settings are plain data, and every running task belongs to a
//! `TaskSet` that shutdown waits for.

pub mod admin;
pub mod backend;
pub mod banner;
pub mod certificate;
pub mod check;
pub mod client;
pub mod config;
pub mod connection;
pub mod data_dir;
mod direct;
pub mod disk;
pub mod emulator_env;
pub mod explorer;
pub mod gauges;
mod heads;
pub mod health;
pub mod listen;
pub mod log;
mod lookout;
pub mod memory;
pub mod metrics;
pub mod mongo;
pub mod node;
mod prompt;
pub mod request;
pub mod respond;
mod ripening;
pub mod routes;
pub mod run;
pub mod samples;
pub mod server_clock;
pub mod settings;
pub mod signals;
pub mod slots_command;
pub mod tasks;
pub mod tls;
pub mod ttl_command;
pub mod workers;
