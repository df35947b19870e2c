//! Logic with three values: true, false and undefined (None).

use std::cmp::Ordering;

use crate::error::EvalError;
use crate::plan::Bound;
use crate::value::Value;
use crate::value::compare::compare;

pub(super) fn not(value: Option<bool>) -> Option<bool> {
    value.map(|value| !value)
}

pub(super) fn not_if(negated: bool, value: Option<bool>) -> Option<bool> {
    if negated { not(value) } else { value }
}

/// AND: false if one is false, else undefined if one is undefined.
pub(super) fn all<'v>(
    operands: &'v [Bound],
    mut eval: impl FnMut(&'v Bound) -> Result<Value<'v>, EvalError>,
) -> Result<Option<bool>, EvalError> {
    Ok(not(any(operands, |operand| Ok(not(eval(operand)?.as_bool())))?))
}

/// OR: true if one is true, else undefined if one is undefined. Stops at the first true.
pub(super) fn any<'v>(
    operands: &'v [Bound],
    mut eval: impl FnMut(&'v Bound) -> Result<Option<bool>, EvalError>,
) -> Result<Option<bool>, EvalError> {
    let mut result = Some(false);
    for operand in operands {
        match eval(operand)? {
            Some(true) => return Ok(Some(true)),
            Some(false) => {}
            None => result = None,
        }
    }
    Ok(result)
}

/// `value >= low AND value <= high`
pub(super) fn between(value: &Value<'_>, low: &Value<'_>, high: &Value<'_>) -> Option<bool> {
    let above = compare(value, low).map(Ordering::is_ge);
    let below = compare(value, high).map(Ordering::is_le);
    match (above, below) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}
