//! Expressions.

use super::Binder;
use super::scope::root_of;
use crate::ast::{Expr, ExprKind, Literal, UnaryOp};
use crate::error::SqlError;
use crate::like::Pattern;
use crate::plan::{Bound, LikePattern};
use crate::value::Value;

impl Binder<'_> {
    pub(super) fn expr(&mut self, expr: &Expr) -> Result<Bound, SqlError> {
        if let Some(slot) = self.group_key(expr) {
            return Ok(Bound::Slot(slot));
        }
        if let Some((root, span)) = root_of(expr) {
            return self.reference(expr, root, span);
        }
        Ok(match &expr.kind {
            ExprKind::Literal(literal) => Bound::Constant(constant(literal)),
            ExprKind::Parameter(name) => Bound::Constant(self.parameter(name, expr.span)?),
            // A name is a reference and was bound above.
            ExprKind::Name(name) => return Ok(self.note(super::unresolved(name, expr.span))),
            ExprKind::Member(of, name) => Bound::Member(self.boxed(of)?, name.clone()),
            ExprKind::Index(of, index) => Bound::Index(self.boxed(of)?, self.boxed(index)?),
            ExprKind::Array(items) => array(self.all(items)?),
            ExprKind::Object(members) => {
                let members = members.iter().map(|(name, value)| Ok((name.clone(), self.expr(value)?)));
                object(members.collect::<Result<_, SqlError>>()?)
            }
            ExprKind::Unary(operator, operand) => match (operator, self.expr(operand)?) {
                // A negative number is a constant too, so that hints see it.
                (UnaryOp::Minus, Bound::Constant(value)) => Bound::Constant(crate::eval::negate(&value)),
                (operator, operand) => Bound::Unary(*operator, Box::new(operand)),
            },
            ExprKind::Binary(operator, a, b) => match (self.expr(a)?, self.expr(b)?) {
                // `@from + 100` is computed once and not for every document.
                (Bound::Constant(a), Bound::Constant(b)) if operator.is_arithmetic() => {
                    Bound::Constant(crate::eval::binary(*operator, &a, &b))
                }
                (a, b) => Bound::Binary(*operator, Box::new(a), Box::new(b)),
            },
            ExprKind::And(operands) => Bound::And(self.all(operands)?),
            ExprKind::Or(operands) => Bound::Or(self.all(operands)?),
            ExprKind::Coalesce(a, b) => Bound::Coalesce(self.boxed(a)?, self.boxed(b)?),
            ExprKind::Conditional(three) => Bound::Conditional(self.three(three)?),
            ExprKind::Between { negated, operands } => {
                Bound::Between { negated: *negated, operands: self.three(operands)? }
            }
            ExprKind::In { negated, value, list } => {
                Bound::In { negated: *negated, value: self.boxed(value)?, list: self.all(list)? }
            }
            ExprKind::Like { negated, value, pattern, escape } => Bound::Like {
                negated: *negated,
                value: self.boxed(value)?,
                pattern: Box::new(match self.expr(pattern)? {
                    Bound::Constant(Value::String(text)) => LikePattern::Fixed(Pattern::new(&text, *escape)),
                    computed => LikePattern::Computed(computed, *escape),
                }),
            },
            ExprKind::Let { name, parts } => {
                let [value, body] = &**parts;
                let value = self.expr(value)?;
                let slot = self.new_slot();
                let body = self.with_name(name, slot, |binder| binder.expr(body))?;
                Bound::Let { slot, parts: Box::new([value, body]) }
            }
            ExprKind::Call(call) => return self.call(call, expr.span),
            ExprKind::Subquery(kind, query) => Bound::Subquery(*kind, Box::new(self.subquery(query)?)),
        })
    }

    pub(super) fn all(&mut self, exprs: &[Expr]) -> Result<Vec<Bound>, SqlError> {
        exprs.iter().map(|expr| self.expr(expr)).collect()
    }

    fn boxed(&mut self, expr: &Expr) -> Result<Box<Bound>, SqlError> {
        Ok(Box::new(self.expr(expr)?))
    }

    fn three(&mut self, [a, b, c]: &[Expr; 3]) -> Result<Box<[Bound; 3]>, SqlError> {
        Ok(Box::new([self.expr(a)?, self.expr(b)?, self.expr(c)?]))
    }
}

fn constant(literal: &Literal) -> Value<'static> {
    match literal {
        Literal::Undefined => Value::Undefined,
        Literal::Null => Value::Null,
        Literal::Bool(value) => Value::Bool(*value),
        Literal::Integer(value) => Value::Int(*value),
        Literal::Double(value) => Value::Double(*value),
        Literal::String(text) => Value::string(text.clone()),
    }
}

/// An array of constants is a constant: it is built once and not for every row, and hints see it.
fn array(items: Vec<Bound>) -> Bound {
    let constants: Option<Vec<_>> = items.iter().map(|item| item.constant().cloned()).collect();
    constants.map_or(Bound::Array(items), |constants| Bound::Constant(Value::array(constants)))
}

fn object(members: Vec<(String, Bound)>) -> Bound {
    let constant = |(name, value): &(String, Bound)| Some((name.clone(), value.constant()?.clone()));
    let constants: Option<Vec<_>> = members.iter().map(constant).collect();
    constants.map_or(Bound::Object(members), |constants| Bound::Constant(Value::object(constants)))
}
