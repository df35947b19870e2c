//! What one condition of a filter says about the values at a path.

use super::{Bounded, Finder, Hint, Selects, Span};
use crate::ast::{BinaryOp, UnaryOp};
use crate::context::Context;
use crate::eval::{Env, eval};
use crate::plan::{Bound, LikePattern, PathStep};
use crate::value::{Kind, Value};

/// The types whose values an index lists.
const SCALARS: [Kind; 4] = [Kind::Null, Kind::Bool, Kind::Number, Kind::String];

impl Hint {
    /// A value in one of these spans, and nothing else.
    fn exactly(path: Vec<PathStep>, spans: Vec<Span>) -> Hint {
        let selects = Selects::Few;
        Hint { path, of_item: false, spans, exact: true, selects, beyond_scalars: false }
    }

    /// A string about which more has to hold.
    fn some_string(path: Vec<PathStep>) -> Hint {
        let spans = vec![Span::Kind(Kind::String)];
        Hint { exact: false, selects: Selects::Many, ..Hint::exactly(path, spans) }
    }

    /// Any value but those that the spans of scalars leave out.
    fn nearly_any(path: Vec<PathStep>, spans: Vec<Span>) -> Hint {
        Hint { selects: Selects::Many, beyond_scalars: true, ..Hint::exactly(path, spans) }
    }
}

impl Finder<'_> {
    /// Collects what a condition says; tells whether that is all it says.
    pub(super) fn collect(&self, bound: &Bound, hints: &mut Vec<Hint>) -> bool {
        if let Bound::And(operands) = bound {
            let mut exact = true;
            for operand in operands {
                exact &= self.collect(operand, hints);
            }
            return exact;
        }
        match self.hint(bound) {
            Some(hint) => {
                let exact = hint.exact;
                hints.push(hint);
                exact
            }
            None => bound.constant().is_some_and(Value::is_true),
        }
    }

    fn hint(&self, bound: &Bound) -> Option<Hint> {
        let exactly = |path, spans| Some(Hint::exactly(path, spans));
        match bound {
            Bound::Binary(BinaryOp::NotEqual, a, b) => match (self.path(a), constant(b)) {
                (Some(path), Some(value)) => Some(Hint::nearly_any(path, all_but(&value)?)),
                _ => Some(Hint::nearly_any(self.path(b)?, all_but(&constant(a)?)?)),
            },
            Bound::Binary(operator, a, b) => match (self.path(a), constant(b)) {
                (Some(path), Some(value)) => exactly(path, comparison(*operator, &value)?),
                _ => exactly(self.path(b)?, comparison(mirrored(*operator)?, &constant(a)?)?),
            },
            Bound::In { negated: false, value, list } => {
                let values: Option<Vec<_>> = list.iter().map(constant).collect();
                let defined = values?.into_iter().filter(Value::is_defined).map(Span::Value).collect();
                exactly(self.path(value)?, defined)
            }
            Bound::Between { negated: false, operands } => {
                let [value, low, high] = &**operands;
                let (low, high) = (scalar(&constant(low)?)?, scalar(&constant(high)?)?);
                let spans = match low.kind() == high.kind() {
                    true => {
                        vec![Span::Between { low: Bounded::Inclusive(low), high: Bounded::Inclusive(high) }]
                    }
                    // No value compares with both.
                    false => Vec::new(),
                };
                exactly(self.path(value)?, spans)
            }
            Bound::Like { negated: false, value, pattern } => match &**pattern {
                LikePattern::Fixed(pattern) => match pattern.prefix() {
                    prefix if prefix.is_empty() => Some(Hint::some_string(self.path(value)?)),
                    prefix => {
                        let spans = vec![Span::StartsWith(prefix)];
                        Some(Hint { exact: false, ..Hint::exactly(self.path(value)?, spans) })
                    }
                },
                LikePattern::Computed(..) => None,
            },
            Bound::Or(operands) => self.any_of(operands),
            // A filter that is a property alone, as in `WHERE c.active AND NOT c.deleted`.
            Bound::Member(..) | Bound::Index(..) => exactly(self.path(bound)?, is(true)),
            Bound::Unary(UnaryOp::Not, operand) => exactly(self.path(operand)?, is(false)),
            Bound::Call { function, args } => self.call(function.name, args),
            _ => None,
        }
    }

    fn call(&self, name: &str, args: &[Bound]) -> Option<Hint> {
        let kind = match name {
            "IS_NULL" => Some(Kind::Null),
            "IS_BOOL" => Some(Kind::Bool),
            "IS_NUMBER" => Some(Kind::Number),
            "IS_STRING" => Some(Kind::String),
            _ => None,
        };
        let (path, of_item, spans) = match (name, kind, args) {
            (_, Some(kind), [value]) => (self.path(value)?, false, vec![Span::Kind(kind)]),
            ("ARRAY_CONTAINS", _, [Bound::Constant(Value::Array(array)), value]) => {
                (self.path(value)?, false, array.iter().map(Span::Value).collect())
            }
            ("ARRAY_CONTAINS", _, [array, Bound::Constant(value)]) => {
                (self.path(array)?, true, vec![Span::Value(scalar(value)?)])
            }
            ("IS_DEFINED", _, [value]) => {
                let spans = SCALARS.into_iter().map(Span::Kind).collect();
                return Some(Hint::nearly_any(self.path(value)?, spans));
            }
            ("IS_PRIMITIVE", _, [value]) => {
                let spans = SCALARS.into_iter().map(Span::Kind).collect();
                let hint = Hint::nearly_any(self.path(value)?, spans);
                return Some(Hint { beyond_scalars: false, ..hint });
            }
            ("STARTSWITH", _, [value, prefix]) => {
                let prefix = prefix.constant()?.as_str()?.to_owned();
                (self.path(value)?, false, vec![Span::StartsWith(prefix)])
            }
            ("STRINGEQUALS", _, [value, Bound::Constant(text)]) if text.as_str().is_some() => {
                (self.path(value)?, false, vec![Span::Value(text.clone())])
            }
            // With a third argument the case may not matter.
            (
                "CONTAINS" | "ENDSWITH" | "STARTSWITH" | "STRINGEQUALS" | "REGEXMATCH",
                _,
                [value, others @ ..],
            ) if others.iter().all(|other| other.constant().is_some()) => {
                return Some(Hint::some_string(self.path(value)?));
            }
            _ => return None,
        };
        Some(Hint { of_item, ..Hint::exactly(path, spans) })
    }

    /// `c.a = 1 OR c.a > 7`: values in one span or the other, if all are about one path.
    fn any_of(&self, operands: &[Bound]) -> Option<Hint> {
        let mut all: Option<Hint> = None;
        for operand in operands {
            let hint = self.hint(operand)?;
            match &mut all {
                None => all = Some(hint),
                Some(all) if all.path == hint.path && !all.of_item && !hint.of_item => {
                    all.spans.extend(hint.spans);
                    all.exact &= hint.exact;
                    all.beyond_scalars |= hint.beyond_scalars;
                    if hint.selects == Selects::Many {
                        all.selects = Selects::Many;
                    }
                }
                Some(_) => return None,
            }
        }
        all
    }
}

fn is(value: bool) -> Vec<Span> {
    vec![Span::Value(Value::Bool(value))]
}

fn comparison(operator: BinaryOp, value: &Value<'static>) -> Option<Vec<Span>> {
    let between = |low, high| Some(vec![Span::Between { low, high }]);
    match operator {
        // Nothing equals undefined.
        BinaryOp::Equal => Some(value.is_defined().then(|| Span::Value(value.clone())).into_iter().collect()),
        BinaryOp::Less => between(Bounded::Open, Bounded::Exclusive(scalar(value)?)),
        BinaryOp::LessOrEqual => between(Bounded::Open, Bounded::Inclusive(scalar(value)?)),
        BinaryOp::Greater => between(Bounded::Exclusive(scalar(value)?), Bounded::Open),
        BinaryOp::GreaterOrEqual => between(Bounded::Inclusive(scalar(value)?), Bounded::Open),
        _ => None,
    }
}

/// The scalars that are not equal to a value.
fn all_but(value: &Value<'static>) -> Option<Vec<Span>> {
    if !value.is_defined() {
        // Nothing differs from undefined.
        return Some(Vec::new());
    }
    let value = scalar(value)?;
    let others = SCALARS.into_iter().filter(|kind| *kind != value.kind()).map(Span::Kind);
    let same_type = match &value {
        Value::Null => Vec::new(),
        Value::Bool(value) => is(!value),
        value => vec![
            Span::Between { low: Bounded::Open, high: Bounded::Exclusive(value.clone()) },
            Span::Between { low: Bounded::Exclusive(value.clone()), high: Bounded::Open },
        ],
    };
    Some(others.chain(same_type).collect())
}

/// The value, if `<` means something for it and an index lists it.
fn scalar(value: &Value<'static>) -> Option<Value<'static>> {
    match value {
        Value::Undefined | Value::Array(_) | Value::Object(_) => None,
        value => Some(value.clone()),
    }
}

/// The value of an expression that is the same for all documents: a constant, or arithmetic with constants.
fn constant(bound: &Bound) -> Option<Value<'static>> {
    fn is_constant(bound: &Bound) -> bool {
        match bound {
            Bound::Constant(_) => true,
            Bound::Unary(_, of) => is_constant(of),
            Bound::Binary(_, a, b) => is_constant(a) && is_constant(b),
            _ => false,
        }
    }
    if !is_constant(bound) {
        return None;
    }
    let context = Context::new(0, 0);
    eval(bound, &mut Env::new(0, &context)).ok().map(Value::into_owned)
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
