//! Integers bit by bit.

use super::{ANY, Args, Operator, Out, function};
use crate::error::{Result, TYPE_MISMATCH, bail};
use crate::values::{Ref, Value, is_nullish, type_name};

pub(super) const OPERATORS: &[Operator] = &[
    function("$bitAnd", "bits set in all", ANY, |args| fold("$bitAnd", args, -1, |a, b| a & b)),
    function("$bitOr", "bits set in any", ANY, |args| fold("$bitOr", args, 0, |a, b| a | b)),
    function("$bitXor", "bits set in an odd number", ANY, |args| fold("$bitXor", args, 0, |a, b| a ^ b)),
    function("$bitNot", "all bits turned", (1, 1), not),
];

fn fold(name: &str, args: &Args<'_>, start: i64, combine: fn(i64, i64) -> i64) -> Result<Out> {
    let (mut result, mut long) = (start, false);
    for value in args.iter() {
        match value {
            value if is_nullish(value) => return Ok(Some(Value::Null)),
            Some(Ref::Int32(value)) => result = combine(result, value.into()),
            Some(Ref::Int64(value)) => {
                result = combine(result, value);
                long = true;
            }
            value => bail!(
                TYPE_MISMATCH,
                "{name} only supports int and long operands, not {}.",
                value.map_or("missing", type_name)
            ),
        }
    }
    Ok(Some(if long { Value::Int64(result) } else { Value::Int32(result as i32) }))
}

fn not(args: &Args<'_>) -> Result<Out> {
    match args.at(0) {
        value if is_nullish(value) => Ok(Some(Value::Null)),
        Some(Ref::Int32(value)) => Ok(Some(Value::Int32(!value))),
        Some(Ref::Int64(value)) => Ok(Some(Value::Int64(!value))),
        Some(value @ (Ref::Double(_) | Ref::Decimal128(_))) => {
            bail!(TYPE_MISMATCH, "$bitNot only supports int and long, not {}.", type_name(value))
        }
        value => {
            bail!(28765, "$bitNot only supports numeric types, not {}", value.map_or("missing", type_name))
        }
    }
}
