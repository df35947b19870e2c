//! Cosmos SQL as a pure function of query, parameters, time and documents.

pub mod ast;
pub mod context;
pub mod error;
pub mod functions;
mod lexer;
mod parser;
mod print;
pub mod token;
pub mod value;

pub use context::Context;
pub use error::{EvalError, SqlError};
pub use value::{Document, Value};
