//! Expressions as they were written.

use super::QueryTree;
use crate::token::Span;

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
    /// `LET name = value IN body`: the body with a name for a value.
    Let {
        /// The name.
        name: String,
        /// The value and the body.
        parts: Box<[Expr; 2]>,
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

impl BinaryOp {
    /// Whether it is one of `=`, `!=`, `<`, `<=`, `>`, `>=`.
    pub fn compares(self) -> bool {
        self.mirrored() != self || matches!(self, BinaryOp::Equal | BinaryOp::NotEqual)
    }

    /// Whether it makes a number of two.
    pub fn is_arithmetic(self) -> bool {
        use BinaryOp::{Add, Divide, Modulo, Multiply, Subtract};
        matches!(self, Add | Subtract | Multiply | Divide | Modulo)
    }

    /// The operator between exchanged sides, if it compares.
    pub fn mirrored(self) -> BinaryOp {
        match self {
            BinaryOp::Less => BinaryOp::Greater,
            BinaryOp::LessOrEqual => BinaryOp::GreaterOrEqual,
            BinaryOp::Greater => BinaryOp::Less,
            BinaryOp::GreaterOrEqual => BinaryOp::LessOrEqual,
            same => same,
        }
    }
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
            ExprKind::Let { parts, .. } => parts.iter().collect(),
            ExprKind::Call(call) => call.args.iter().collect(),
        }
    }
}
