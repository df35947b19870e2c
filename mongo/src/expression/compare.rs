//! Comparisons in the total order of all values: no type brackets, missing below everything but the smallest key.

use std::cmp::Ordering;

use super::{Args, Operator, Out, function};
use crate::context::Context;
use crate::error::Result;
use crate::values::{Ref, Value};

pub(super) const OPERATORS: &[Operator] = &[
    function("$cmp", "-1, 0 or 1", (2, 2), |args| {
        Ok(Some(Value::Int32(match ordering(args) {
            Ordering::Less => -1,
            Ordering::Equal => 0,
            Ordering::Greater => 1,
        })))
    }),
    function("$eq", "equal", (2, 2), |args| truth(ordering(args).is_eq())),
    function("$ne", "not equal", (2, 2), |args| truth(ordering(args).is_ne())),
    function("$gt", "greater", (2, 2), |args| truth(ordering(args).is_gt())),
    function("$gte", "greater or equal", (2, 2), |args| truth(ordering(args).is_ge())),
    function("$lt", "less", (2, 2), |args| truth(ordering(args).is_lt())),
    function("$lte", "less or equal", (2, 2), |args| truth(ordering(args).is_le())),
];

fn truth(value: bool) -> Result<Out> {
    Ok(Some(Value::Boolean(value)))
}

fn ordering(args: &Args<'_>) -> Ordering {
    compare_opt(args.context, args.at(0), args.at(1))
}

/// Compares values that may be missing: missing is like undefined, below null.
fn compare_opt(context: &Context<'_>, a: Option<Ref<'_>>, b: Option<Ref<'_>>) -> Ordering {
    context.compare(a.unwrap_or(Ref::Undefined), b.unwrap_or(Ref::Undefined))
}
