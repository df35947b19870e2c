//! Aggregation expressions: values computed from a document.
//!
//! ```text
//!   "$a.b", {$add: [..]}, {x: ..} ──parse──▶ Expr ──evaluate(document, context)──▶ value, or missing
//! ```
//!
//! Operators stand in `EXPRESSIONS`, one small definition each, in the file of their family. A plain function
//! gets its evaluated arguments; a form (`$cond`, `$map`, …) parses and evaluates itself. Constant calls are
//! computed while parsing, so their errors show before any document is read, as in MongoDB.

mod accumulated;
mod arithmetic;
mod array_shape;
mod arrays;
mod binary;
mod bits;
mod compare;
mod conditional;
mod convert;
pub(crate) mod date_format;
mod date_math;
mod date_parse;
mod dates;
mod misc;
mod objects;
mod parse;
mod pattern;
mod scopes;
mod sets;
mod strings;
mod text_search;
mod trigonometry;

use std::fmt;
use std::sync::Arc;

use bson::{RawDocument, RawDocumentBuf};

pub(crate) use accumulated::{percentile_of, shares, standard_deviation};
pub(crate) use array_shape::{ArrayOrder, count, sort_array_spec};
pub(crate) use date_math::{Unit, add as add_unit};
pub(crate) use objects::{merge_into, object_of, with_field};
pub(crate) use parse::{Scope, parse_expression, split_path};

use crate::context::Context;
use crate::error::Result;
use crate::values::{META, Ref, Value, array, carries, field, is_nullish, is_truthy, items, put};

/// A value, or missing.
pub(crate) type Out = Option<Value>;

/// A parsed expression.
#[derive(Debug, Clone)]
pub struct Expression {
    root: Arc<Expr>,
}

/// The variables an expression may use besides the system's own, in the order of [`Context::variables`].
#[derive(Debug, Clone, Default)]
pub struct Names(pub Vec<String>, pub(crate) Failures);

/// When an operator on constants fails, if it does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Failures {
    /// While the expression is parsed.
    #[default]
    AtOnce,
    /// For the first document: the pipeline of an update may meet none.
    ForDocuments,
}

impl Names {
    /// The variables of a context.
    pub fn of(context: &Context<'_>) -> Names {
        Names(context.variables.iter().map(|(name, _)| name.clone()).collect(), Failures::AtOnce)
    }
}

/// What an expression is made of.
pub(crate) enum Expr {
    Constant(Out),
    Path { base: Base, path: Vec<String> },
    Object(Vec<(String, Expr)>),
    Array(Vec<Expr>),
    Call { call: Call, arguments: Vec<Expr>, null: Null },
    Form(Form),
}

/// What a function makes of an operand that is null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Null {
    /// It sees it, with all the others.
    Seen,
    /// It is the answer: what comes after it is not computed, and so cannot fail.
    Answers,
    /// It is the answer if it is the first operand.
    AnswersFirst,
}

impl Null {
    /// Whether null is the answer after these operands.
    fn decides(self, values: &[Out]) -> bool {
        match self {
            Self::Seen => false,
            Self::Answers => values.iter().any(is_null),
            Self::AnswersFirst => values.first().is_some_and(is_null),
        }
    }
}

/// An operator that decides itself which of its operands it computes.
type Form = Box<dyn Fn(&mut Env<'_>) -> Result<Out> + Send + Sync>;

/// Where a path begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Base {
    Root,
    Current,
    Slot(usize),
    Now,
    ClusterTime,
    UserRoles,
}

/// A function over evaluated arguments.
pub(crate) type Call = fn(&Args<'_>) -> Result<Out>;

/// Evaluated arguments.
pub(crate) struct Args<'a> {
    values: &'a [Out],
    pub(crate) context: &'a Context<'a>,
}

impl<'a> Args<'a> {
    /// The argument at a place; none if it is missing or was not given.
    pub(crate) fn at(&self, place: usize) -> Option<Ref<'a>> {
        self.values.get(place)?.as_ref().map(Value::as_raw_bson_ref)
    }

    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Option<Ref<'a>>> {
        self.values.iter().map(|value| value.as_ref().map(Value::as_raw_bson_ref))
    }
}

/// What an operator is, besides its name.
pub(crate) enum Kind {
    /// Takes between so many arguments; the same arguments always give the same value.
    Function { min: usize, max: usize, call: Call },
    /// Parses its operand itself.
    Form(fn(&str, Ref<'_>, &mut Scope) -> Result<Expr>),
    /// Known and refused with this error.
    Refused(i32, &'static str),
}

/// An operator of the expression language.
pub struct Operator {
    /// With its dollar sign.
    pub name: &'static str,
    /// What it gives.
    pub help: &'static str,
    pub(crate) kind: Kind,
}

impl Operator {
    /// Whether it is refused.
    pub fn is_refused(&self) -> bool {
        matches!(self.kind, Kind::Refused(..))
    }
}

pub(crate) const fn function(
    name: &'static str,
    help: &'static str,
    arity: (usize, usize),
    call: Call,
) -> Operator {
    Operator { name, help, kind: Kind::Function { min: arity.0, max: arity.1, call } }
}

pub(crate) const fn form(
    name: &'static str,
    help: &'static str,
    parse: fn(&str, Ref<'_>, &mut Scope) -> Result<Expr>,
) -> Operator {
    Operator { name, help, kind: Kind::Form(parse) }
}

/// Any number of arguments.
pub(crate) const ANY: (usize, usize) = (0, usize::MAX);

/// All operators, family by family.
pub const EXPRESSIONS: &[&[Operator]] = &[
    arithmetic::OPERATORS,
    trigonometry::OPERATORS,
    bits::OPERATORS,
    arrays::OPERATORS,
    array_shape::OPERATORS,
    sets::OPERATORS,
    compare::OPERATORS,
    conditional::OPERATORS,
    dates::OPERATORS,
    date_math::OPERATORS,
    date_format::OPERATORS,
    strings::OPERATORS,
    text_search::OPERATORS,
    pattern::OPERATORS,
    convert::OPERATORS,
    objects::OPERATORS,
    accumulated::OPERATORS,
    scopes::OPERATORS,
    misc::OPERATORS,
];

/// Whether there is an operator of that name.
pub(crate) fn is_expression(name: &str) -> bool {
    EXPRESSIONS.iter().copied().flatten().any(|operator| operator.name == name)
}

impl fmt::Debug for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expr::Constant(value) => write!(f, "{value:?}"),
            Expr::Path { base, path } => write!(f, "{base:?}.{}", path.join(".")),
            Expr::Object(fields) => {
                f.debug_map().entries(fields.iter().map(|(name, value)| (name, value))).finish()
            }
            Expr::Array(items) => f.debug_list().entries(items).finish(),
            Expr::Call { arguments, .. } => f.debug_tuple("Call").field(arguments).finish(),
            Expr::Form(_) => f.write_str("Form"),
        }
    }
}

/// A document and the values of variables during one evaluation.
pub(crate) struct Env<'a> {
    pub(crate) context: &'a Context<'a>,
    pub(crate) root: &'a RawDocument,
    pub(crate) current: &'a RawDocument,
    pub(crate) slots: Vec<Out>,
}

impl<'a> Env<'a> {
    pub(crate) fn new(root: &'a RawDocument, context: &'a Context<'a>) -> Env<'a> {
        // A variable of a value that was missing is missing.
        let bound = context.variables.iter().map(|(_, value)| value);
        let slots = bound.map(|value| (*value != Value::Undefined).then(|| value.clone())).collect();
        Env { context, root, current: root, slots }
    }

    /// Evaluates with a variable set, at the slot the parser gave it.
    pub(crate) fn with<T>(&mut self, values: Vec<Out>, inner: impl FnOnce(&mut Self) -> T) -> T {
        let depth = self.slots.len();
        self.slots.extend(values);
        let result = inner(self);
        self.slots.truncate(depth);
        result
    }
}

impl Expression {
    /// Parses an expression.
    pub fn parse(value: Ref<'_>, names: &Names) -> Result<Expression> {
        let root = parse_expression(value, &mut Scope::new(names))?;
        Ok(Expression { root: Arc::new(root) })
    }

    /// The value for a document; none if it is missing.
    pub fn evaluate(&self, document: &RawDocument, context: &Context<'_>) -> Result<Option<Value>> {
        self.root.eval(&mut Env::new(document, context))
    }

    /// Whether the value for a document counts as true.
    pub fn is_true(&self, document: &RawDocument, context: &Context<'_>) -> Result<bool> {
        Ok(is_truthy(self.evaluate(document, context)?.as_ref().map(Value::as_raw_bson_ref)))
    }

    /// The value, if it does not depend on a document.
    pub(crate) fn constant(&self) -> Option<&Out> {
        match &*self.root {
            Expr::Constant(value) => Some(value),
            _ => None,
        }
    }

    pub(crate) fn eval_in(&self, env: &mut Env<'_>) -> Result<Out> {
        self.root.eval(env)
    }
}

impl Expr {
    pub(crate) fn form(eval: impl Fn(&mut Env<'_>) -> Result<Out> + Send + Sync + 'static) -> Expr {
        Expr::Form(Box::new(eval))
    }

    pub(crate) fn eval(&self, env: &mut Env<'_>) -> Result<Out> {
        match self {
            Expr::Constant(value) => Ok(value.clone()),
            Expr::Path { base, path } => Ok(path_of(*base, path, env)),
            Expr::Object(fields) => {
                let mut object = RawDocumentBuf::new();
                for (name, expr) in fields {
                    if let Some(value) = expr.eval(env)? {
                        put(&mut object, name, value);
                    }
                }
                Ok(Some(Value::Document(object)))
            }
            Expr::Array(exprs) => {
                let values: Vec<_> = exprs
                    .iter()
                    .map(|expr| Ok(expr.eval(env)?.unwrap_or(Value::Null)))
                    .collect::<Result<_>>()?;
                Ok(Some(array(values)))
            }
            Expr::Call { call, arguments, null } => {
                let mut values = Vec::with_capacity(arguments.len());
                for expr in arguments {
                    match expr.eval(env) {
                        Ok(value) => values.push(value),
                        // Only now does it matter that the operands before should have been looked at first.
                        Err(_) if null.decides(&values) => {
                            return Ok(Some(Value::Null));
                        }
                        Err(error) => return Err(error),
                    }
                }
                call(&Args { values: &values, context: env.context })
            }
            Expr::Form(eval) => eval(env),
        }
    }

    pub(crate) fn is_true(&self, env: &mut Env<'_>) -> Result<bool> {
        Ok(is_truthy(self.eval(env)?.as_ref().map(Value::as_raw_bson_ref)))
    }
}

fn is_null(value: &Out) -> bool {
    is_nullish(value.as_ref().map(Value::as_raw_bson_ref))
}

fn path_of(base: Base, path: &[String], env: &Env<'_>) -> Out {
    let whole = match base {
        Base::Root => Some(env.root),
        Base::Current => Some(env.current),
        _ => None,
    };
    if let Some(document) = whole.filter(|document| path.is_empty() && carries(document)) {
        return Some(Value::Document(with_field(document, META, None)));
    }
    let start = match base {
        Base::Root => Ref::Document(env.root),
        Base::Current => Ref::Document(env.current),
        Base::Slot(slot) => env.slots.get(slot)?.as_ref()?.as_raw_bson_ref(),
        Base::Now => Ref::DateTime(env.context.now),
        Base::ClusterTime => Ref::Timestamp(env.context.cluster_time?),
        Base::UserRoles => env.context.user_roles.as_ref()?.as_raw_bson_ref(),
    };
    follow(start, path)
}

/// Follows a path through objects; an array on the way becomes the array of what its objects have there.
pub(crate) fn follow(value: Ref<'_>, path: &[String]) -> Out {
    let Some((first, rest)) = path.split_first() else { return Some(value.into()) };
    match value {
        Ref::Document(object) => follow(field(object, first)?, rest),
        Ref::Array(list) => Some(array(items(list).filter_map(|item| match item {
            Ref::Document(object) => follow(field(object, first)?, rest),
            _ => None,
        }))),
        _ => None,
    }
}
