//! The syntax tree: a query as it was written.
//!
//! Every expression keeps its place in the text, because errors point there and because the name of a
//! reference in an error is what the user wrote. Two things are made uniform here: `a["b"]` is the same as
//! `a.b`, and chains of AND or OR are one node each, however long (a chain that nests would overflow the
//! stack long before it gets slow).

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

/// An expression and its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Where it stands.
    pub span: Span,
    /// How many levels of expressions it consists of. Everything that walks a tree relies on the parser's
    /// bound of this number instead of guarding its own recursion.
    pub depth: usize,
}

/// The kinds of expressions.
#[derive(Debug, Clone, PartialEq)]
pub enum ExprKind {
    /// A constant.
    Literal(Literal),
    /// `@name`, with the `@`.
    Parameter(String),
    /// A name: an alias of FROM.
    Name(String),
    /// `e.name` or `e["name"]`.
    Member(Box<Expr>, String),
    /// `e[index]`.
    Index(Box<Expr>, Box<Expr>),
    /// `[a, b]`.
    Array(Vec<Expr>),
    /// `{a: b}`.
    Object(Vec<(String, Expr)>),
    /// A prefix operator.
    Unary(UnaryOp, Box<Expr>),
    /// An operator between two operands.
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// `a AND b AND ...`
    And(Vec<Expr>),
    /// `a OR b OR ...`
    Or(Vec<Expr>),
    /// `a ?? b`
    Coalesce(Box<Expr>, Box<Expr>),
    /// `a ? b : c`
    Conditional(Box<[Expr; 3]>),
    /// `e [NOT] BETWEEN low AND high`
    Between {
        /// Whether NOT stands before BETWEEN.
        negated: bool,
        /// The value, the lower and the upper bound.
        operands: Box<[Expr; 3]>,
    },
    /// `e [NOT] IN (a, b)`
    In {
        /// Whether NOT stands before IN.
        negated: bool,
        /// The value.
        value: Box<Expr>,
        /// What it may be.
        list: Vec<Expr>,
    },
    /// `e [NOT] LIKE pattern [ESCAPE 'c']`
    Like {
        /// Whether NOT stands before LIKE.
        negated: bool,
        /// The value.
        value: Box<Expr>,
        /// The pattern.
        pattern: Box<Expr>,
        /// The character that makes the next one literal.
        escape: Option<char>,
    },
    /// `name(args)`, or `udf.name(args)`.
    Call(Call),
    /// A subquery as an expression.
    Subquery(SubqueryKind, Box<QueryTree>),
}

/// A call.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// Whether a function of the user is meant.
    pub is_udf: bool,
    /// The name as written.
    pub name: String,
    /// Its place.
    pub name_span: Span,
    /// The arguments.
    pub args: Vec<Expr>,
}

/// A constant.
#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    /// No value.
    Undefined,
    /// null
    Null,
    /// true or false
    Bool(bool),
    /// An integer.
    Integer(i64),
    /// Any other number.
    Double(f64),
    /// A string.
    String(String),
}

/// What a subquery's rows become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubqueryKind {
    /// The only row.
    Scalar,
    /// Whether there is one.
    Exists,
    /// All rows.
    Array,
    /// Whether every row is true.
    All,
    /// The first row.
    First,
    /// The last row.
    Last,
}

/// Prefix operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnaryOp {
    /// `-`
    Minus,
    /// `+`
    Plus,
    /// `~`
    BitNot,
    /// `NOT`
    Not,
}

/// Operators between two operands, without AND, OR and `??`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the signs")]
pub enum BinaryOp {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    ShiftLeft,
    ShiftRight,
    ShiftRightUnsigned,
    Concat,
    BitOr,
    BitXor,
    BitAnd,
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
}

impl Expr {
    /// An expression one level above its deepest part.
    pub fn new(kind: ExprKind, span: Span) -> Expr {
        let depth = 1 + kind.parts().into_iter().map(|part| part.depth).max().unwrap_or(0);
        let depth = match &kind {
            ExprKind::Subquery(_, query) => 1 + query.depth(),
            _ => depth,
        };
        Expr { kind, span, depth }
    }

    /// The name a reference ends with: what a member of a select list is called without an alias.
    pub fn last_name(&self) -> Option<&str> {
        match &self.kind {
            ExprKind::Name(name) | ExprKind::Member(_, name) => Some(name),
            _ => None,
        }
    }
}

impl ExprKind {
    /// The expressions this one is made of, in the order of writing, without those inside a subquery.
    pub fn parts(&self) -> Vec<&Expr> {
        match self {
            ExprKind::Literal(_) | ExprKind::Parameter(_) | ExprKind::Name(_) | ExprKind::Subquery(_, _) => {
                Vec::new()
            }
            ExprKind::Member(of, _) | ExprKind::Unary(_, of) => vec![of],
            ExprKind::Index(a, b) | ExprKind::Binary(_, a, b) | ExprKind::Coalesce(a, b) => vec![a, b],
            ExprKind::Like { value, pattern, .. } => vec![value, pattern],
            ExprKind::Array(list) | ExprKind::And(list) | ExprKind::Or(list) => list.iter().collect(),
            ExprKind::Object(members) => members.iter().map(|(_, value)| value).collect(),
            ExprKind::Conditional(three) | ExprKind::Between { operands: three, .. } => {
                three.iter().collect()
            }
            ExprKind::In { value, list, .. } => std::iter::once(&**value).chain(list).collect(),
            ExprKind::Call(call) => call.args.iter().collect(),
        }
    }
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
