//! Choosing between values. The operators `?:` and `??` are the evaluator's.

use super::{Args, Family, Function};
use crate::context::Context;
use crate::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[Function::new(
    "IIF",
    Family::Conditional,
    Args::exactly(3),
    "IIF(condition, x, y)",
    "x if the condition is exactly true, else y.",
    iif,
)
.sees_undefined()];

fn iif<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    let [condition, then, otherwise] = args else { return Value::Undefined };
    if condition.is_true() { then.clone() } else { otherwise.clone() }
}

#[cfg(test)]
pub(super) const CASES: &[super::testing::Case] = &[
    ("IIF", "true,123,456", "123"),
    ("IIF", "false,123,456", "456"),
    ("IIF", "123,123,456", "456"),
    ("IIF", r#""ABC",123,456"#, "456"),
    ("IIF", "[1,2,3],123,456", "456"),
    ("IIF", "null,123,456", "456"),
    ("IIF", "undefined,123,456", "456"),
    ("IIF", "true,123,undefined", "123"),
    ("IIF", "true,undefined,456", "undefined"),
];
