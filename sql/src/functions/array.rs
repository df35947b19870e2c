//! Arrays: joining, searching, cutting.

use super::{Args, Family, Function, PlainRun, all, any, limits};
use crate::context::Context;
use crate::error::EvalError;
use crate::value::compare::{equals, same};
use crate::value::{Array, DEPTH_MAX, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::failing(
        "ARRAY_CONCAT",
        Family::Array,
        Args::at_least(2),
        "ARRAY_CONCAT(a1, a2 [, ...])",
        "The items of all arrays in one.",
        array_concat,
    ),
    array(
        "ARRAY_CONTAINS",
        Args::between(2, 3),
        "ARRAY_CONTAINS(a, e [, partial])",
        "Whether an item equals the value; with partial, whether an object has at least its properties.",
        array_contains,
    )
    .sees_undefined(),
    array(
        "ARRAY_CONTAINS_ALL",
        Args::at_least(2),
        "ARRAY_CONTAINS_ALL(a, e1 [, ...])",
        "Whether every value is an item of the array.",
        array_contains_all,
    )
    .sees_undefined(),
    array(
        "ARRAY_CONTAINS_ANY",
        Args::at_least(2),
        "ARRAY_CONTAINS_ANY(a, e1 [, ...])",
        "Whether one of the values is an item of the array.",
        array_contains_any,
    )
    .sees_undefined(),
    array("ARRAY_LENGTH", Args::exactly(1), "ARRAY_LENGTH(a)", "How many items there are.", array_length),
    array(
        "ARRAY_SLICE",
        Args::between(2, 3),
        "ARRAY_SLICE(a, start [, length])",
        "The items from a position on; a negative position counts from the end.",
        array_slice,
    ),
    array(
        "CHOOSE",
        Args::at_least(2),
        "CHOOSE(i, e1 [, ...])",
        "The value at a position of the list, counted from 1.",
        choose,
    ),
    array(
        "OBJECTTOARRAY",
        Args::between(1, 3),
        "OBJECTTOARRAY(o [, name, value])",
        "One object per property, with its name and its value as k and v or as named.",
        object_to_array,
    )
    .also(&["OBJECT_TO_ARRAY"]),
];

const fn array(
    name: &'static str,
    args: Args,
    signature: &'static str,
    help: &'static str,
    run: PlainRun,
) -> Function {
    Function::new(name, Family::Array, args, signature, help, run)
}

fn array_concat<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    let Some(arrays) = args.iter().map(Value::as_array).collect::<Option<Vec<_>>>() else {
        return Ok(Value::Undefined);
    };
    limits::check_items("ARRAY_CONCAT", arrays.iter().map(|array| array.len()).sum())?;
    Ok(Value::array(arrays.into_iter().flat_map(Array::iter)))
}

fn array_contains<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    let (array, wanted, partial) = match args {
        [array, wanted] => (array, wanted, Some(false)),
        [array, wanted, Value::Undefined] => (array, wanted, Some(false)),
        [array, wanted, partial] => (array, wanted, partial.as_bool()),
        _ => return Value::Undefined,
    };
    partial.and_then(|partial| contains(array, wanted, partial)).into()
}

fn array_contains_all<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    let Some((array, wanted)) = args.split_first() else { return Value::Undefined };
    all(wanted.iter().map(|wanted| contains(array, wanted, false))).into()
}

fn array_contains_any<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    let Some((array, wanted)) = args.split_first() else { return Value::Undefined };
    any(wanted.iter().map(|wanted| contains(array, wanted, false))).into()
}

fn contains(array: &Value<'_>, wanted: &Value<'_>, partial: bool) -> Option<bool> {
    let array = array.as_array()?;
    if !wanted.is_defined() {
        return None;
    }
    let is_wanted =
        |item: Value<'_>| if partial { matches_partly(&item, wanted, 0) } else { same(&item, wanted) };
    Some(array.iter().any(is_wanted))
}

/// Whether `item` has everything `wanted` has: an object may have more properties, an array not more items.
fn matches_partly(item: &Value<'_>, wanted: &Value<'_>, depth: usize) -> bool {
    match (item, wanted) {
        (Value::Array(_) | Value::Object(_), _) if depth >= DEPTH_MAX => false,
        (Value::Array(items), Value::Array(wanted)) => {
            let mut pairs = items.iter().zip(wanted.iter());
            items.len() == wanted.len()
                && pairs.all(|(item, wanted)| matches_partly(&item, &wanted, depth + 1))
        }
        (Value::Object(members), Value::Object(wanted)) => {
            wanted.iter().all(|(name, wanted)| matches_partly(&members.get(&name), &wanted, depth + 1))
        }
        _ => equals(item, wanted) == Some(true),
    }
}

fn array_length<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    let [Value::Array(array)] = args else { return Value::Undefined };
    Value::Int(array.len() as i64)
}

fn array_slice<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    let (array, start, length) = match args {
        [Value::Array(array), start] => (array, start.as_i64(), Some(i64::MAX)),
        [Value::Array(array), start, length] => (array, start.as_i64(), length.as_i64()),
        _ => return Value::Undefined,
    };
    let (Some(start), Some(length)) = (start, length) else { return Value::Undefined };
    let start = if start < 0 { (array.len() as i64).saturating_add(start).max(0) } else { start };
    Value::array(array.iter().skip(start as usize).take(length.max(0) as usize))
}

fn choose<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    let Some((place, choices)) = args.split_first() else { return Value::Undefined };
    let place =
        place.as_i64().and_then(|place| usize::try_from(place).ok()).and_then(|place| place.checked_sub(1));
    place.and_then(|place| choices.get(place)).cloned().into()
}

/// The two names come together; one of them alone is treated as a wrong argument.
fn object_to_array<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    let (object, names) = match args {
        [Value::Object(object)] => (object, ("k".into(), "v".into())),
        [Value::Object(object), Value::String(name), Value::String(value)] => {
            (object, (name.clone(), value.clone()))
        }
        _ => return Value::Undefined,
    };
    let pair =
        |(name, value)| Value::object([(names.0.clone(), Value::String(name)), (names.1.clone(), value)]);
    Value::array(object.iter().map(pair))
}

#[cfg(test)]
pub(super) const CASES: &[super::testing::Case] = &[
    ("ARRAY_CONCAT", r#"[1],[2,"a"]"#, r#"[1,2,"a"]"#),
    ("ARRAY_CONCAT", "[],[],[3]", "[3]"),
    ("ARRAY_CONCAT", "[1],2", "undefined"),
    ("ARRAY_CONCAT", "[1],undefined", "undefined"),
    ("ARRAY_CONTAINS", r#"["coats","jackets"],"coats""#, "true"),
    ("ARRAY_CONTAINS", r#"["coats","jackets"],"hoodies""#, "false"),
    ("ARRAY_CONTAINS", "[1.0],1", "true"),
    ("ARRAY_CONTAINS", r#"["1"],1"#, "false"),
    ("ARRAY_CONTAINS", "[null],null", "true"),
    ("ARRAY_CONTAINS", r#"[{"a":1,"b":2}],{"b":2,"a":1}"#, "true"),
    ("ARRAY_CONTAINS", r#"[{"a":1,"b":2}],{"a":1}"#, "false"),
    ("ARRAY_CONTAINS", r#"[{"a":1,"b":2}],{"a":1},true"#, "true"),
    ("ARRAY_CONTAINS", r#"[{"a":1,"b":2}],{"a":3},true"#, "false"),
    ("ARRAY_CONTAINS", r#"[{"foo":{"a":1,"b":2},"bar":2}],{"foo":{"a":1}},true"#, "true"),
    ("ARRAY_CONTAINS", "[[1,2]],[1],true", "false"),
    ("ARRAY_CONTAINS", r#"[[{"a":1,"b":1}]],[{"a":1}],true"#, "true"),
    ("ARRAY_CONTAINS", "[1],1,undefined", "true"),
    ("ARRAY_CONTAINS", "[1],1,1", "undefined"),
    ("ARRAY_CONTAINS", "[1],undefined", "undefined"),
    ("ARRAY_CONTAINS", "undefined,1", "undefined"),
    ("ARRAY_CONTAINS", r#""abc","a""#, "undefined"),
    ("ARRAY_CONTAINS_ALL", "[1,2,3,4],2,3,4", "true"),
    ("ARRAY_CONTAINS_ALL", "[1,2,3,4],2,3,4,5", "false"),
    ("ARRAY_CONTAINS_ALL", "[1,2,3,4],1,undefined", "undefined"),
    ("ARRAY_CONTAINS_ALL", "[1,2,3,4],5,undefined", "false"),
    ("ARRAY_CONTAINS_ALL", "undefined,1", "undefined"),
    ("ARRAY_CONTAINS_ALL", "1,1", "undefined"),
    ("ARRAY_CONTAINS_ANY", r#"[1,true,"3",[1,2,3]],1,true,"3",[1,2,3]"#, "true"),
    ("ARRAY_CONTAINS_ANY", "[1,2,3,4],1,undefined", "true"),
    ("ARRAY_CONTAINS_ANY", "[1,2,3,4],5,undefined", "undefined"),
    ("ARRAY_CONTAINS_ANY", "[1,2,3,4],5,6", "false"),
    ("ARRAY_CONTAINS_ANY", "[],1,2,3", "false"),
    ("ARRAY_CONTAINS_ANY", "undefined,1", "undefined"),
    ("ARRAY_LENGTH", "[1,2,[3,4]]", "3"),
    ("ARRAY_LENGTH", "[]", "0"),
    ("ARRAY_LENGTH", "null", "undefined"),
    ("ARRAY_LENGTH", r#""abc""#, "undefined"),
    ("ARRAY_SLICE", "[1,2,3,4],0", "[1,2,3,4]"),
    ("ARRAY_SLICE", "[1,2,3,4],1,2", "[2,3]"),
    ("ARRAY_SLICE", "[1,2,3,4],-2", "[3,4]"),
    ("ARRAY_SLICE", "[1,2,3,4],-2,1", "[3]"),
    ("ARRAY_SLICE", "[1,2,3,4],-9,1", "[1]"),
    ("ARRAY_SLICE", "[1,2,3,4],4", "[]"),
    ("ARRAY_SLICE", "[1,2,3,4],0,12", "[1,2,3,4]"),
    ("ARRAY_SLICE", "[1,2,3,4],0,-1", "[]"),
    ("ARRAY_SLICE", "[1,2,3,4],0.5", "undefined"),
    ("ARRAY_SLICE", "[1,2,3,4],-9223372036854775808", "[1,2,3,4]"),
    ("ARRAY_SLICE", "null,1", "undefined"),
    ("CHOOSE", r#"1,"a","b""#, r#""a""#),
    ("CHOOSE", r#"2,"a",null"#, "null"),
    ("CHOOSE", r#"0,"a","b""#, "undefined"),
    ("CHOOSE", r#"3,"a","b""#, "undefined"),
    ("CHOOSE", r#"1.5,"a","b""#, "undefined"),
    ("CHOOSE", r#""1","a""#, "undefined"),
    ("OBJECTTOARRAY", r#"{"a":"12345","b":[1]}"#, r#"[{"k":"a","v":"12345"},{"k":"b","v":[1]}]"#),
    ("OBJECTTOARRAY", r#"{"a":1},"name","value""#, r#"[{"name":"a","value":1}]"#),
    ("OBJECTTOARRAY", r#"{"a":1},"name""#, "undefined"),
    ("OBJECTTOARRAY", "{}", "[]"),
    ("OBJECTTOARRAY", "[1]", "undefined"),
];
