//! The real server, in this process and as a program, spoken to from outside.
//!
//! `harness` starts servers and speaks to them; each other file shows one side of them.
#![expect(clippy::unwrap_used, reason = "a helper that cannot go on has failed its test")]

mod administration;
mod cli;
mod direct;
mod fuzz;
mod gives_way;
mod hang_up;
mod hang_up_mongo;
mod harness;
mod life;
mod limits;
mod mongo_client;
mod protocols;
mod random;
mod signer;
