//! The Cosmos DB for NoSQL REST front-end: it translates, nothing else.
//!
//! A request passes through these modules in this order: `path` splits the URL and `address` says which resource is
//! meant; `routes` finds the row that answers it; `auth` checks the signature; a file of `handlers` parses the request
//! into the engine's terms and shapes the answer with `resource` and `policy`. Whatever goes wrong becomes an
//! `error::ApiError`, the only type that knows status codes and body shapes.
//!
//! Holds: the time is passed in, keys and deadlines stay in the engine, and no input from a client can make it panic.

pub mod aad;
pub mod address;
pub mod auth;
pub mod binary_json;
mod call;
mod collection;
pub mod error;
mod handlers;
pub mod headers;
pub mod http_date;
pub mod hybrid_row;
pub mod path;
mod policy;
mod query;
pub mod raw_head;
mod raw_value;
pub mod reply;
mod resource;
pub mod resource_token;
pub mod rid;
pub mod routes;
mod scope;
mod service;
mod session;
mod throttle;

pub use address::{Address, ContainerRef, Ref};
pub use error::ApiError;
pub use query::explain::explain;
pub use raw_head::RawHead;
pub use reply::{Body, Reply};
pub use resource::ACCOUNT;
pub use rid::Rid;
pub use service::{Cosmos, Head, Options, Served};
