//! How the tables at the end of the family files are checked.
//!
//! A case is a function, its arguments as JSON, and the result as JSON. Both may also hold what JSON lacks:
//! `undefined`, `NaN`, `Infinity` and `-Infinity`, as a whole argument or result.

use super::Function;
use crate::context::Context;
use crate::value::Value;
use crate::value::compare::same;

/// Name, arguments, result.
pub(crate) type Case = (&'static str, &'static str, &'static str);

/// 2024-10-14T14:20:30.666Z: the time of every case.
pub(crate) const NOW_MS: i64 = 1_728_915_630_666;

/// What is wrong with a case, if anything.
pub(crate) fn fault((name, args, expected): Case) -> Option<String> {
    let actual = match call(name, args) {
        Ok(actual) => actual,
        Err(error) => return Some(format!("{name}({args}): {error}")),
    };
    match values(expected).as_slice() {
        [expected] if same(&actual, expected) => None,
        _ => Some(format!("{name}({args}): is {}, should be {expected}", shown(&actual))),
    }
}

/// Runs a function of the registry.
pub(crate) fn call(name: &str, args: &str) -> Result<Value<'static>, String> {
    call_in(&Context::new(NOW_MS, 1), name, args)
}

/// The same in a given context.
pub(crate) fn call_in(context: &Context<'_>, name: &str, args: &str) -> Result<Value<'static>, String> {
    let function = Function::find(name).ok_or("is not a function")?;
    let args = values(args);
    if !function.takes(args.len()) {
        return Err(format!("does not take {} arguments", args.len()));
    }
    function.call(context, &args).map_err(|error| error.to_string())
}

fn values(text: &str) -> Vec<Value<'static>> {
    split(text).into_iter().map(|piece| value(piece.trim())).collect()
}

fn value(text: &str) -> Value<'static> {
    match text {
        "undefined" => Value::Undefined,
        "NaN" => Value::Double(f64::NAN),
        "Infinity" => Value::Double(f64::INFINITY),
        "-Infinity" => Value::Double(f64::NEG_INFINITY),
        _ => Value::parse_json(text.as_bytes()).unwrap_or_else(|| panic!("not JSON: {text}")),
    }
}

/// The text between the commas that are neither in a string nor in brackets.
fn split(text: &str) -> Vec<&str> {
    if text.is_empty() {
        return Vec::new();
    }
    let (mut pieces, mut from, mut depth, mut quoted, mut escaped) = (Vec::new(), 0, 0, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth -= 1,
            b',' if depth == 0 => {
                pieces.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    pieces.push(&text[from..]);
    pieces
}

fn shown(value: &Value<'_>) -> String {
    match value {
        Value::Undefined => "undefined".to_owned(),
        Value::Double(number) if !number.is_finite() => format!("{number}"),
        _ => value.to_json(),
    }
}
