//! The REST bench: what a client gets from a server, over real connections.
//!
//! The load and the server share the machine, so requests per second depend on both; what the server itself spends is in
//! its CPU time per operation.

pub mod bare;
pub mod load;
pub mod postgres;
pub mod requests;
pub mod servers;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Operation {
    Read,
    Create,
    Replace,
}
