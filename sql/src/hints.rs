//! Hints: what the filter says about the documents it can let through.
//!
//! `WHERE c.a = 1 AND STARTSWITH(c.b, "x") AND f(c.d)` lets only documents through that have `a = 1` and a
//! string beginning with `x` in `b`. An index may be asked for those; the filter itself is evaluated on every
//! document in any case, so a hint that is not used, or used loosely, changes no answer.
//!
//! An index that stores numbers as doubles must widen the bounds it takes from a hint where an integer does
//! not fit a double: values are compared exactly here.

use crate::ast::{BinaryOp, UnaryOp};
use crate::bind::BoundQuery;
use crate::plan::{Bound, Input, LikePattern, PathStep};
use crate::value::Value;

/// One thing that holds for every document the filter lets through.
#[derive(Debug, Clone)]
pub struct Hint {
    /// Where in the document.
    pub path: Vec<PathStep>,
    /// What is there.
    pub range: Range,
}

/// The values a path can have.
#[derive(Debug, Clone)]
pub enum Range {
    /// One of these values.
    OneOf(Vec<Value<'static>>),
    /// A value of the bounds' type between them.
    Between {
        /// The lowest.
        low: Bounded,
        /// The highest.
        high: Bounded,
    },
    /// A string that begins with this.
    StartsWith(String),
}

/// One end of a range.
#[derive(Debug, Clone)]
pub enum Bounded {
    /// This value or beyond.
    Inclusive(Value<'static>),
    /// Beyond this value.
    Exclusive(Value<'static>),
    /// No bound within the type of the other end.
    Open,
}

/// All hints of a query.
#[derive(Debug, Clone, Default)]
pub struct Hints {
    /// What holds, all at once.
    pub all: Vec<Hint>,
    /// The ids a document can have, if the filter says.
    pub ids: Option<Vec<String>>,
}

/// What the WHERE clause says about documents.
pub(crate) fn of(query: &BoundQuery) -> Hints {
    let mut block = &query.block;
    // A query over the rows of another filters those; what the inner one says still holds for documents.
    while let Input::Rows { block: inner, .. } = &block.input {
        block = inner;
    }
    let mut hints = Hints::default();
    if let Some(filter) = &block.filter {
        let finder = Finder { query };
        finder.collect(filter, &mut hints.all);
    }
    hints.ids = hints.all.iter().find_map(ids);
    hints
}

/// The ids that a hint on `id` allows.
fn ids(hint: &Hint) -> Option<Vec<String>> {
    let is_id = matches!(hint.path.as_slice(), [PathStep::Name(name)] if name == "id");
    match &hint.range {
        Range::OneOf(values) if is_id => {
            // An id is a string; other values match none.
            Some(values.iter().filter_map(|value| value.as_str().map(str::to_owned)).collect())
        }
        _ => None,
    }
}

struct Finder<'q> {
    query: &'q BoundQuery,
}

impl Finder<'_> {
    fn collect(&self, bound: &Bound, hints: &mut Vec<Hint>) {
        if let Bound::And(operands) = bound {
            operands.iter().for_each(|operand| self.collect(operand, hints));
        } else if let Some((path, range)) = self.hint(bound) {
            hints.push(Hint { path, range });
        }
    }

    fn hint(&self, bound: &Bound) -> Option<(Vec<PathStep>, Range)> {
        match bound {
            Bound::Binary(operator, a, b) => match (self.path(a), b.constant()) {
                (Some(path), Some(value)) => Some((path, comparison(*operator, value)?)),
                _ => Some((self.path(b)?, comparison(mirrored(*operator)?, a.constant()?)?)),
            },
            Bound::In { negated: false, value, list } => {
                let values: Option<Vec<_>> = list.iter().map(|item| item.constant().cloned()).collect();
                let defined = values?.into_iter().filter(Value::is_defined).collect();
                Some((self.path(value)?, Range::OneOf(defined)))
            }
            Bound::Between { negated: false, operands } => {
                let [value, low, high] = &**operands;
                let (low, high) = (ordered(low.constant()?)?, ordered(high.constant()?)?);
                let range = match low.kind() == high.kind() {
                    true => Range::Between { low: Bounded::Inclusive(low), high: Bounded::Inclusive(high) },
                    // No value compares with both.
                    false => Range::OneOf(Vec::new()),
                };
                Some((self.path(value)?, range))
            }
            Bound::Like { negated: false, value, pattern } => match &**pattern {
                LikePattern::Fixed(pattern) => Some((self.path(value)?, Range::StartsWith(pattern.prefix()))),
                LikePattern::Computed(..) => None,
            },
            // `c.a = 1 OR c.a = 2` is the same as IN.
            Bound::Or(operands) => self.one_of_all(operands),
            // A filter that is a property alone, as in `WHERE c.active AND NOT c.deleted`.
            Bound::Member(..) | Bound::Index(..) => Some((self.path(bound)?, is(true))),
            Bound::Unary(UnaryOp::Not, operand) => Some((self.path(operand)?, is(false))),
            Bound::Call { function, args } if function.name == "ARRAY_CONTAINS" => match args.as_slice() {
                [Bound::Constant(Value::Array(array)), value] => {
                    Some((self.path(value)?, Range::OneOf(array.iter().collect())))
                }
                _ => None,
            },
            // With a third argument the case may not matter.
            Bound::Call { function, args } if function.name == "STARTSWITH" => match args.as_slice() {
                [value, prefix] => {
                    let prefix = prefix.constant()?.as_str()?.to_owned();
                    Some((self.path(value)?, Range::StartsWith(prefix)))
                }
                _ => None,
            },
            _ => None,
        }
    }

    fn one_of_all(&self, operands: &[Bound]) -> Option<(Vec<PathStep>, Range)> {
        let mut common: Option<Vec<PathStep>> = None;
        let mut all = Vec::new();
        for operand in operands {
            match self.hint(operand)? {
                (path, Range::OneOf(values)) if common.as_ref().is_none_or(|common| *common == path) => {
                    common = Some(path);
                    all.extend(values);
                }
                _ => return None,
            }
        }
        Some((common?, Range::OneOf(all)))
    }

    /// The path in the document that an expression reads.
    fn path(&self, bound: &Bound) -> Option<Vec<PathStep>> {
        let path = self.query.document_path(bound)?;
        if path.is_empty() { None } else { Some(path) }
    }
}

fn is(value: bool) -> Range {
    Range::OneOf(vec![Value::Bool(value)])
}

fn comparison(operator: BinaryOp, value: &Value<'static>) -> Option<Range> {
    let value = value.clone();
    Some(match operator {
        BinaryOp::Equal if value.is_defined() => Range::OneOf(vec![value]),
        // Nothing equals undefined.
        BinaryOp::Equal => Range::OneOf(Vec::new()),
        BinaryOp::Less => Range::Between { low: Bounded::Open, high: Bounded::Exclusive(ordered(&value)?) },
        BinaryOp::LessOrEqual => {
            Range::Between { low: Bounded::Open, high: Bounded::Inclusive(ordered(&value)?) }
        }
        BinaryOp::Greater => {
            Range::Between { low: Bounded::Exclusive(ordered(&value)?), high: Bounded::Open }
        }
        BinaryOp::GreaterOrEqual => {
            Range::Between { low: Bounded::Inclusive(ordered(&value)?), high: Bounded::Open }
        }
        _ => return None,
    })
}

/// The value, if `<` means something for it.
fn ordered(value: &Value<'static>) -> Option<Value<'static>> {
    match value {
        Value::Undefined | Value::Array(_) | Value::Object(_) => None,
        value => Some(value.clone()),
    }
}

/// The operator that says the same with its operands exchanged.
fn mirrored(operator: BinaryOp) -> Option<BinaryOp> {
    Some(match operator {
        BinaryOp::Equal => BinaryOp::Equal,
        BinaryOp::Less => BinaryOp::Greater,
        BinaryOp::LessOrEqual => BinaryOp::GreaterOrEqual,
        BinaryOp::Greater => BinaryOp::Less,
        BinaryOp::GreaterOrEqual => BinaryOp::LessOrEqual,
        _ => return None,
    })
}
