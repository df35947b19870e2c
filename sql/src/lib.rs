//! Cosmos SQL as a pure function of query, parameters, time and documents.
//!
//! One query, step by step:
//!
//! ```text
//!   SELECT TOP 2 VALUE p.name FROM p JOIN t IN p.tags WHERE t = @tag ORDER BY p.name
//!
//!   lexer      words, numbers, strings and signs, each with its place in the text     token.rs, lexer.rs
//!   parser     a tree of clauses and expressions                                      ast.rs, parser.rs
//!   bind       names are slots, parameters constants; errors with the service's codes bind.rs, plan.rs
//!   hints      what an index may be asked for                                         hints.rs
//!   distribute what several ranges are sent, if a client merges their answers         distribute.rs
//!   run        each document: slot `p`, each tag: slot `t`, the filter, the sort key  operators.rs, eval.rs
//!   rows       values that borrow from the document, written as JSON                  value.rs
//! ```
//!
//! ```
//! use mayfly_sql::{Context, Document, Query, Value};
//! use mayfly_value::json::{JsonLimits, parse_document};
//!
//! let query = Query::parse("SELECT VALUE c.n + @more FROM c WHERE c.n > 1").unwrap();
//! let plan = query.bind(&[("@more", Value::Int(10))]).unwrap();
//! let mut run = plan.run(Context::new(0, 0)).unwrap();
//! let body = parse_document(br#"{"id":"1","n":5}"#, JsonLimits::default()).unwrap();
//! let rows = run.push(&Document { body: &body, system: &[] }).unwrap();
//! assert_eq!(rows[0].to_json(), "15");
//! assert!(run.finish().unwrap().is_empty());
//! ```
//!
//! Holds: nothing here does I/O, reads a clock or panics, whatever text and bytes it is given; recursion is
//! bounded by the parser's depth limit and by the depth of documents.

#![warn(missing_docs)]

pub mod aggregate;
pub mod ast;
mod bind;
pub mod computed;
pub mod context;
pub mod distribute;
pub mod error;
mod eval;
pub mod explain;
pub mod functions;
pub mod hints;
mod lexer;
mod like;
mod operators;
mod parser;
mod plan;
pub mod plan_info;
mod prefilter;
mod print;
pub mod query;
mod search;
pub mod token;
pub mod value;

pub use computed::ComputedProperty;
pub use context::{Context, Settings};
pub use distribute::{Distribution, Feature, HybridInfo, MergeInfo};
pub use error::{EvalError, SqlError};
pub use explain::Step;
pub use hints::{Hint, Hints};
pub use plan::PathStep;
pub use plan_info::PlanInfo;
pub use prefilter::{Comparisons, Hunt, Prefilter};
pub use query::{
    After, Paging, Place, Plan, Progress, Query, RowLimit, Run, Ties, Window, WindowPage, WindowRun,
};
pub use search::{Nearest, RankedRun, Ranking, TextScore};
pub use value::json::write_number;
pub use value::{Document, Value};
