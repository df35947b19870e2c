//! The real server, in this process and as a program, spoken to from outside.
//!
//! `harness` starts servers and speaks to them; each other file shows one side of them.

mod cli;
mod harness;
mod life;
mod limits;
mod protocols;
