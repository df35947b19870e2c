//! Binding: names become slots, parameters become constants, and everything that can be wrong is found.
//!
//! - `scope.rs`: which names are known, and what they mean after grouping.
//! - `query.rs`: the clauses, `from.rs`: sources, `limits.rs`: counts, `order.rs` and `rank.rs`: ORDER BY and its rules.
//! - `computed.rs`: properties that the container computes.
//! - `expr.rs`: expressions; `call.rs`: functions, aggregates and their arguments.
//!
//! The errors carry the service's codes and sentences where those are known.

mod call;
mod computed;
mod expr;
mod from;
mod limits;
mod order;
mod query;
mod rank;
mod scope;

use std::collections::{HashMap, HashSet};

use scope::Scope;
pub(crate) use scope::{alias_of, contains, is_aggregate};

use crate::ast::QueryTree;
use crate::computed::ComputedProperty;
use crate::context::Settings;
use crate::error::SqlError;
use crate::plan::{Block, Bound, PathStep, Slot};
use crate::token::Span;
use crate::value::Value;

/// So many errors of one query are told.
const ERRORS_MAX: usize = 16;

/// A query that is ready to run, with what was learned on the way.
#[derive(Debug)]
pub(crate) struct BoundQuery {
    pub block: Block,
    pub slots: usize,
    /// Which slots hold a part of the document itself, and where in it.
    pub document_paths: HashMap<Slot, Vec<PathStep>>,
}

impl BoundQuery {
    /// The path in the document that an expression reads, if it is nothing but that.
    pub(crate) fn document_path(&self, bound: &Bound) -> Option<Vec<PathStep>> {
        let (slot, steps) = bound.as_path()?;
        let before = self.document_paths.get(&slot)?;
        Some(before.iter().cloned().chain(steps).collect())
    }
}

/// Binds a query. Positions in the error are bytes.
pub(crate) fn bind(
    tree: &QueryTree,
    text: &str,
    params: &[(&str, Value<'_>)],
    (computed, settings): (&[ComputedProperty], &Settings),
) -> Result<BoundQuery, SqlError> {
    let mut binder = Binder {
        text,
        params: params.iter().map(|(name, value)| (name.trim_start_matches('@'), value.borrow())).collect(),
        scopes: Vec::new(),
        slots: 0,
        document_paths: HashMap::new(),
        documents: HashSet::new(),
        computed,
        settings,
        joins: 0,
        udf_calls: 0,
        errors: Vec::new(),
    };
    let block = binder.query(tree);
    let noted = binder.errors.into_iter().reduce(SqlError::and);
    match (block, noted) {
        (Ok(block), None) => {
            Ok(BoundQuery { block, slots: binder.slots, document_paths: binder.document_paths })
        }
        (Ok(_), Some(noted)) => Err(noted),
        (Err(error), None) => Err(error),
        // It may only follow from the others: an order by a name that is not known is no path, either.
        (Err(_), Some(noted)) => Err(noted),
    }
}

struct Binder<'b> {
    text: &'b str,
    params: HashMap<&'b str, Value<'b>>,
    /// The queries we are in, outermost first.
    scopes: Vec<Scope>,
    slots: usize,
    document_paths: HashMap<Slot, Vec<PathStep>>,
    /// The slots that hold the whole document, in subqueries too.
    documents: HashSet<Slot>,
    computed: &'b [ComputedProperty],
    settings: &'b Settings,
    joins: usize,
    udf_calls: usize,
    /// What is wrong so far. Binding goes on, so that all of it is told at once.
    errors: Vec<SqlError>,
}

impl Binder<'_> {
    fn new_slot(&mut self) -> Slot {
        self.slots += 1;
        self.slots - 1
    }

    /// Takes note of an error; what it is about is bound as if it were nothing.
    fn note(&mut self, error: SqlError) -> Bound {
        if self.errors.len() < ERRORS_MAX {
            self.errors.push(error);
        }
        Bound::Constant(Value::Undefined)
    }

    fn text_of(&self, span: Span) -> &str {
        self.text.get(span.start..span.end).unwrap_or_default()
    }

    /// The value of a parameter, named with its `@`.
    fn parameter(&self, name: &str, span: Span) -> Result<Value<'static>, SqlError> {
        match self.params.get(name.trim_start_matches('@')) {
            Some(value) => Ok(value.clone().into_owned()),
            None => Err(unresolved(name, span)),
        }
    }
}

fn unresolved(name: &str, span: Span) -> SqlError {
    SqlError::new("SC2001", format!("Identifier '{name}' could not be resolved."), span)
}
