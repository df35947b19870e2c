//! Operators between values: arithmetic, bits, text and comparison.
//!
//! Arithmetic is done in doubles. Bit operators work on 32 bits, as JavaScript does.

use std::cmp::Ordering;

use crate::ast::{BinaryOp, UnaryOp};
use crate::value::Value;
use crate::value::compare::{compare, equals};

/// `-value`: exact for integers.
pub(crate) fn negate(value: &Value<'_>) -> Value<'static> {
    match value {
        Value::Int(0) => Value::Int(0),
        Value::Int(value) => match value.checked_neg() {
            Some(negative) => Value::Int(negative),
            None => Value::Double(-(*value as f64)),
        },
        Value::Double(value) => Value::Double(-value),
        _ => Value::Undefined,
    }
}

pub(super) fn unary<'v>(operator: UnaryOp, value: &Value<'v>) -> Value<'v> {
    match operator {
        UnaryOp::Minus => negate(value),
        UnaryOp::Plus => match value {
            Value::Int(_) | Value::Double(_) => value.clone(),
            _ => Value::Undefined,
        },
        UnaryOp::BitNot => value.as_f64().map(|value| i64::from(!to_int32(value))).into(),
        UnaryOp::Not => value.as_bool().map(|value| !value).into(),
    }
}

/// `a operator b`.
pub(crate) fn binary<'v>(operator: BinaryOp, a: &Value<'v>, b: &Value<'v>) -> Value<'v> {
    match operator {
        BinaryOp::Equal => equals(a, b).into(),
        BinaryOp::NotEqual => equals(a, b).map(|equal| !equal).into(),
        BinaryOp::Less => compare(a, b).map(Ordering::is_lt).into(),
        BinaryOp::LessOrEqual => compare(a, b).map(Ordering::is_le).into(),
        BinaryOp::Greater => compare(a, b).map(Ordering::is_gt).into(),
        BinaryOp::GreaterOrEqual => compare(a, b).map(Ordering::is_ge).into(),
        BinaryOp::Concat => match (a, b) {
            (Value::String(a), Value::String(b)) => Value::string(format!("{a}{b}")),
            _ => Value::Undefined,
        },
        BinaryOp::Add => doubles(a, b, |a, b| a + b),
        BinaryOp::Subtract => doubles(a, b, |a, b| a - b),
        BinaryOp::Multiply => doubles(a, b, |a, b| a * b),
        BinaryOp::Divide => doubles(a, b, |a, b| a / b),
        BinaryOp::Modulo => doubles(a, b, |a, b| a % b),
        BinaryOp::BitOr => bits(a, b, |a, b| (a | b).into()),
        BinaryOp::BitXor => bits(a, b, |a, b| (a ^ b).into()),
        BinaryOp::BitAnd => bits(a, b, |a, b| (a & b).into()),
        BinaryOp::ShiftLeft => bits(a, b, |a, b| a.wrapping_shl(b as u32).into()),
        BinaryOp::ShiftRight => bits(a, b, |a, b| a.wrapping_shr(b as u32).into()),
        BinaryOp::ShiftRightUnsigned => bits(a, b, |a, b| (a as u32).wrapping_shr(b as u32).into()),
    }
}

fn doubles<'v>(a: &Value<'_>, b: &Value<'_>, compute: fn(f64, f64) -> f64) -> Value<'v> {
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => Value::Double(compute(a, b)),
        _ => Value::Undefined,
    }
}

fn bits<'v>(a: &Value<'_>, b: &Value<'_>, compute: fn(i32, i32) -> i64) -> Value<'v> {
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => Value::Int(compute(to_int32(a), to_int32(b))),
        _ => Value::Undefined,
    }
}

/// The low 32 bits of the whole part; 0 for NaN and the infinities.
fn to_int32(value: f64) -> i32 {
    const TWO_TO_32: f64 = 4_294_967_296.0;
    if !value.is_finite() {
        return 0;
    }
    let modulo = value.trunc().rem_euclid(TWO_TO_32);
    // Below 2^32, so nothing is cut off; the top half are the negative numbers.
    modulo as u32 as i32
}
