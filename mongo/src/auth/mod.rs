//! Who a connection speaks for: SCRAM, the account's keys and named users.
//!
//! The account itself is a user, as in Cosmos: its name is the account's and its password a key. Named users live in
//! the collection `admin.system.users`, with nothing of their passwords but what SCRAM needs.

mod accounts;
mod scram;

pub use accounts::{Account, Accounts, Right, Role, User, built_in_role, built_in_roles};
pub use scram::{Credentials, Mechanism, ScramServer, Step, Verifier};
