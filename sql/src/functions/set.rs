//! Arrays as sets: order and repetition do not matter, results hold each value once.

use std::collections::HashSet;

use super::{Args, FallibleRun, Family, Function, limits};
use crate::context::Context;
use crate::error::EvalError;
use crate::value::key::key_of;
use crate::value::{Array, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    set("SETDIFFERENCE", "SETDIFFERENCE(a, b)", "The items of a that are not in b.", difference)
        .also(&["SET_DIFFERENCE"]),
    set("SETEQUAL", "SETEQUAL(a, b)", "Whether both hold the same items.", equal).also(&["SET_EQUAL"]),
    set("SETINTERSECT", "SETINTERSECT(a, b)", "The items that are in both.", intersect)
        .also(&["SET_INTERSECT"]),
    set("SETUNION", "SETUNION(a, b)", "The items that are in a or in b.", union).also(&["SET_UNION"]),
];

const fn set(name: &'static str, signature: &'static str, help: &'static str, run: FallibleRun) -> Function {
    Function::failing(name, Family::Array, Args::exactly(2), signature, help, run)
}

type Keys = HashSet<Vec<u8>>;

fn keys(array: &Array<'_>) -> Keys {
    array.iter().map(|item| key_of(&item)).collect()
}

/// The items that `wanted` lets through, each once, in order.
fn distinct<'a>(array: &Array<'a>, wanted: impl Fn(&Vec<u8>) -> bool) -> Value<'a> {
    let mut seen = Keys::new();
    Value::array(array.iter().filter(|item| {
        let key = key_of(item);
        wanted(&key) && seen.insert(key)
    }))
}

/// Both arrays, if they are arrays and not larger than what a call may handle.
fn arrays<'v, 'a>(
    function: &str,
    args: &'v [Value<'a>],
) -> Result<Option<(&'v Array<'a>, &'v Array<'a>)>, EvalError> {
    let [Value::Array(a), Value::Array(b)] = args else { return Ok(None) };
    limits::check_items(function, a.len().saturating_add(b.len()))?;
    args.iter().try_for_each(|arg| limits::check_json(function, arg))?;
    Ok(Some((a, b)))
}

fn difference<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    let Some((a, b)) = arrays("SETDIFFERENCE", args)? else { return Ok(Value::Undefined) };
    let other = keys(b);
    Ok(distinct(a, |key| !other.contains(key)))
}

fn equal<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    let Some((a, b)) = arrays("SETEQUAL", args)? else { return Ok(Value::Undefined) };
    Ok(Value::Bool(keys(a) == keys(b)))
}

/// In the order of the second array: so the documented examples come out.
fn intersect<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    let Some((a, b)) = arrays("SETINTERSECT", args)? else { return Ok(Value::Undefined) };
    let other = keys(a);
    Ok(distinct(b, |key| other.contains(key)))
}

fn union<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    let Some((a, b)) = arrays("SETUNION", args)? else { return Ok(Value::Undefined) };
    Ok(distinct(&Array::of(a.iter().chain(b.iter())), |_| true))
}

#[cfg(test)]
pub(super) const CASES: &[super::testing::Case] = &[
    ("SETDIFFERENCE", "[1,2,3,4],[3,4,5,6]", "[1,2]"),
    ("SETDIFFERENCE", "[1,1,2,2],[2]", "[1]"),
    ("SETDIFFERENCE", "[1,2],[]", "[1,2]"),
    ("SETDIFFERENCE", "[1],1", "undefined"),
    ("SETDIFFERENCE", "undefined,[1]", "undefined"),
    ("SETEQUAL", "[1,2,3],[3,2,1]", "true"),
    ("SETEQUAL", "[1,2,3,3],[1,2,2,3,1,2]", "true"),
    ("SETEQUAL", "[],[1,2,3]", "false"),
    ("SETEQUAL", "[],[]", "true"),
    ("SETEQUAL", r#"[1,true,"abc"],[true,1.0,"abc"]"#, "true"),
    ("SETEQUAL", r#"[{"a":1,"b":2}],[{"b":2,"a":1}]"#, "true"),
    ("SETEQUAL", "null,[]", "undefined"),
    ("SETINTERSECT", "[1,2,3,4],[3,4,5,6]", "[3,4]"),
    ("SETINTERSECT", r#"[1,2,"A","B"],["A",1]"#, r#"["A",1]"#),
    ("SETINTERSECT", "[1,2,3,4],[1,1,1]", "[1]"),
    ("SETINTERSECT", "[1],[]", "[]"),
    ("SETINTERSECT", "{},[]", "undefined"),
    ("SETUNION", "[1,2,3,4],[3,4,5,6]", "[1,2,3,4,5,6]"),
    ("SETUNION", "[1,2,3,4],[1,1,1,1]", "[1,2,3,4]"),
    ("SETUNION", r#"[1,2,"A","B"],["A",1]"#, r#"[1,2,"A","B"]"#),
    ("SETUNION", r#""a",[]"#, "undefined"),
];
