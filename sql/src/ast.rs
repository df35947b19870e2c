//! The syntax tree: a query as it was written.
//!
//! Every expression keeps its place in the text, because errors point there and because the name of a
//! reference in an error is what the user wrote. Two things are made uniform here: `a["b"]` is the same as
//! `a.b`, and chains of AND or OR are one node each, however long (a chain that nests would overflow the
//! stack long before it gets slow).

mod expr;

pub use expr::{BinaryOp, Call, Expr, ExprKind, Literal, SubqueryKind, UnaryOp};

use crate::token::Span;

/// A whole query or a subquery.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryTree {
    /// What each row gives.
    pub select: Select,
    /// The sources; empty if there is no FROM.
    pub from: Vec<Source>,
    /// WHERE.
    pub filter: Option<Expr>,
    /// GROUP BY; empty if there is none.
    pub group_by: Vec<Expr>,
    /// ORDER BY.
    pub order_by: Option<OrderBy>,
    /// OFFSET LIMIT.
    pub offset_limit: Option<OffsetLimit>,
    /// The whole query.
    pub span: Span,
}

/// SELECT with what follows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Select {
    /// Equal rows only once.
    pub distinct: bool,
    /// TOP.
    pub top: Option<Top>,
    /// What is selected.
    pub what: Selection,
}

/// TOP and its count.
#[derive(Debug, Clone, PartialEq)]
pub struct Top {
    /// How many.
    pub count: Count,
    /// The clause.
    pub span: Span,
}

/// A count in TOP, OFFSET or LIMIT.
#[derive(Debug, Clone, PartialEq)]
pub struct Count {
    /// The number.
    pub kind: CountKind,
    /// Its place.
    pub span: Span,
}

/// How a count is given.
#[derive(Debug, Clone, PartialEq)]
pub enum CountKind {
    /// An integer.
    Integer(i64),
    /// Another number: an error, but one of meaning and not of syntax.
    Double(f64),
    /// A parameter.
    Parameter(String),
}

/// What a SELECT gives.
#[derive(Debug, Clone, PartialEq)]
pub enum Selection {
    /// `*` and its place.
    Star(Span),
    /// `VALUE e`. The alias has no effect.
    Value(Expr, Option<String>),
    /// A list of members.
    List(Vec<Item>),
}

/// One member of a select list.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// Its value.
    pub expr: Expr,
    /// Its name, if given.
    pub alias: Option<String>,
}

/// One source of FROM or JOIN.
#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    /// The name it is known by, if given, and where.
    pub alias: Option<(String, Span)>,
    /// Whether each item of an array is a row (`x IN ...`), or the value itself.
    pub iterates: bool,
    /// What it reads.
    pub collection: Collection,
    /// The whole source.
    pub span: Span,
}

/// What a source reads.
#[derive(Debug, Clone, PartialEq)]
pub enum Collection {
    /// A name and a path below it: an expression of references and indexers only.
    Path(Expr),
    /// A function call after IN.
    Call(Expr),
    /// A subquery.
    Query(Box<QueryTree>),
}

/// ORDER BY.
#[derive(Debug, Clone, PartialEq)]
pub struct OrderBy {
    /// Whether it is ORDER BY RANK.
    pub rank: bool,
    /// The keys, first decides.
    pub items: Vec<OrderItem>,
    /// The clause.
    pub span: Span,
}

/// One sort key.
#[derive(Debug, Clone, PartialEq)]
pub struct OrderItem {
    /// The key.
    pub expr: Expr,
    /// The direction, if given.
    pub direction: Option<Direction>,
}

/// A sort direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Lowest first.
    Ascending,
    /// Highest first.
    Descending,
}

/// OFFSET LIMIT.
#[derive(Debug, Clone, PartialEq)]
pub struct OffsetLimit {
    /// How many rows are skipped.
    pub offset: Count,
    /// How many rows are given.
    pub limit: Count,
    /// The clause.
    pub span: Span,
}

impl QueryTree {
    /// The depth of its deepest expression, plus one for each level of subqueries.
    pub fn depth(&self) -> usize {
        let sources = self.from.iter().map(|source| match &source.collection {
            Collection::Path(expr) | Collection::Call(expr) => expr.depth,
            Collection::Query(query) => query.depth(),
        });
        let selected: Vec<&Expr> = match &self.select.what {
            Selection::Star(_) => Vec::new(),
            Selection::Value(expr, _) => vec![expr],
            Selection::List(items) => items.iter().map(|item| &item.expr).collect(),
        };
        let ordered = self.order_by.iter().flat_map(|order| &order.items).map(|item| &item.expr);
        let exprs = selected.into_iter().chain(&self.filter).chain(&self.group_by).chain(ordered);
        1 + exprs.map(|expr| expr.depth).chain(sources).max().unwrap_or(0)
    }
}
