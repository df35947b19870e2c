//! The Cosmos DB for NoSQL REST protocol: what the bytes mean, nothing about how documents are kept.
//!
//! A request passes through these modules in this order: `path` splits the URL, `auth` checks the signature
//! over it, `address` says which resource is meant, `headers` reads the options. Whatever goes wrong becomes
//! an `error::ApiError`, the only type that knows status codes and body shapes.
//!
//! Holds: everything here is a function of its arguments (the time is passed in), and no input from a client
//! can make it panic.

pub mod address;
pub mod auth;
pub mod error;
pub mod headers;
pub mod http_date;
pub mod path;
pub mod rid;

pub use address::{Address, ContainerRef, Ref};
pub use error::ApiError;
pub use rid::Rid;
