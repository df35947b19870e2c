//! Cosmos SQL as a pure function of query, parameters, time and documents.

pub mod context;
pub mod error;
pub mod functions;
pub mod value;

pub use context::Context;
pub use error::{EvalError, SqlError};
pub use value::{Document, Value};
