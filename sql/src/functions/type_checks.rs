//! What type a value has: the `IS_*` family.
//!
//! Holds: every function here gives true or false, also for undefined.

use super::{Args, Family, Function, PlainRun, date};
use crate::context::Context;
use crate::value::{Kind, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    check("IS_ARRAY", "IS_ARRAY(e)", "Whether the value is an array.", is_array),
    check("IS_BOOL", "IS_BOOL(e)", "Whether the value is true or false.", is_bool).also(&["IS_BOOLEAN"]),
    check("IS_DATETIME", "IS_DATETIME(e)", "Whether the value is a date and time as text.", is_datetime),
    check("IS_DEFINED", "IS_DEFINED(e)", "Whether there is a value at all.", is_defined),
    check(
        "IS_FINITE_NUMBER",
        "IS_FINITE_NUMBER(e)",
        "Whether the value is a finite number.",
        is_finite_number,
    ),
    check("IS_INTEGER", "IS_INTEGER(e)", "Whether the value is an integer of 64 bits.", is_integer),
    check("IS_NULL", "IS_NULL(e)", "Whether the value is null.", is_null),
    check("IS_NUMBER", "IS_NUMBER(e)", "Whether the value is a number.", is_number),
    check("IS_OBJECT", "IS_OBJECT(e)", "Whether the value is an object.", is_object),
    check("IS_PRIMITIVE", "IS_PRIMITIVE(e)", "Whether the value is neither array nor object.", is_primitive),
    check("IS_STRING", "IS_STRING(e)", "Whether the value is a string.", is_string),
];

const fn check(name: &'static str, signature: &'static str, help: &'static str, run: PlainRun) -> Function {
    Function::new(name, Family::TypeCheck, Args::exactly(1), signature, help, run).sees_undefined()
}

fn kind(args: &[Value<'_>]) -> Kind {
    args.first().map_or(Kind::Undefined, Value::kind)
}

fn is_array<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    Value::Bool(kind(args) == Kind::Array)
}

fn is_bool<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    Value::Bool(kind(args) == Kind::Bool)
}

fn is_datetime<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    let time = args.first().and_then(Value::as_str).and_then(date::parse);
    Value::Bool(time.is_some())
}

fn is_defined<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    Value::Bool(kind(args) != Kind::Undefined)
}

fn is_finite_number<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    Value::Bool(args.first().and_then(Value::as_f64).is_some_and(f64::is_finite))
}

fn is_integer<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    Value::Bool(args.first().and_then(Value::as_i64).is_some())
}

fn is_null<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    Value::Bool(kind(args) == Kind::Null)
}

fn is_number<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    Value::Bool(kind(args) == Kind::Number)
}

fn is_object<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    Value::Bool(kind(args) == Kind::Object)
}

fn is_primitive<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    Value::Bool(matches!(kind(args), Kind::Null | Kind::Bool | Kind::Number | Kind::String))
}

fn is_string<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    Value::Bool(kind(args) == Kind::String)
}

#[cfg(test)]
pub(super) const CASES: &[super::testing::Case] = &[
    ("IS_ARRAY", "undefined", "false"),
    ("IS_ARRAY", "null", "false"),
    ("IS_ARRAY", "false", "false"),
    ("IS_ARRAY", "0", "false"),
    ("IS_ARRAY", "NaN", "false"),
    ("IS_ARRAY", r#""""#, "false"),
    ("IS_ARRAY", "[]", "true"),
    ("IS_ARRAY", "{}", "false"),
    ("IS_BOOL", "undefined", "false"),
    ("IS_BOOL", "null", "false"),
    ("IS_BOOL", "false", "true"),
    ("IS_BOOL", "0", "false"),
    ("IS_BOOL", "NaN", "false"),
    ("IS_BOOL", r#""""#, "false"),
    ("IS_BOOL", "[]", "false"),
    ("IS_BOOL", "{}", "false"),
    ("IS_DATETIME", r#""2024-12-12""#, "true"),
    ("IS_DATETIME", r#""2024-12-12Z""#, "true"),
    ("IS_DATETIME", r#""2024-12-12 20:21:25""#, "true"),
    ("IS_DATETIME", r#""2024-12-12T20:21:25Z""#, "true"),
    ("IS_DATETIME", r#""2024-12-12T20:21:25.123""#, "true"),
    ("IS_DATETIME", r#""2024-12-12 20:21:25.1234567Z""#, "true"),
    ("IS_DATETIME", r#""2024-12-12T20Z""#, "false"),
    ("IS_DATETIME", r#""2024-12-12 20:21:25.""#, "false"),
    ("IS_DATETIME", r#""2024-12-12 20:21:25.12345678""#, "false"),
    ("IS_DATETIME", r#""2024-12-12T20:21:25+01:00""#, "false"),
    ("IS_DATETIME", r#""2024-02-30""#, "false"),
    ("IS_DATETIME", r#""2023-02-29""#, "false"),
    ("IS_DATETIME", r#""2024-02-29""#, "true"),
    ("IS_DATETIME", r#""2024-12-12t20:21:25""#, "false"),
    ("IS_DATETIME", r#""2024-12-12T24:00:00""#, "false"),
    ("IS_DATETIME", r#""0000-01-01""#, "false"),
    ("IS_DATETIME", r#""+024-01-01""#, "false"),
    ("IS_DATETIME", r#""2024-1-1""#, "false"),
    ("IS_DATETIME", "1", "false"),
    ("IS_DATETIME", "undefined", "false"),
    ("IS_DEFINED", "undefined", "false"),
    ("IS_DEFINED", "null", "true"),
    ("IS_DEFINED", "false", "true"),
    ("IS_DEFINED", "0", "true"),
    ("IS_DEFINED", "NaN", "true"),
    ("IS_DEFINED", r#""""#, "true"),
    ("IS_DEFINED", "[]", "true"),
    ("IS_DEFINED", "{}", "true"),
    ("IS_FINITE_NUMBER", "1234.567", "true"),
    ("IS_FINITE_NUMBER", "Infinity", "false"),
    ("IS_FINITE_NUMBER", "NaN", "false"),
    ("IS_FINITE_NUMBER", r#""1""#, "false"),
    ("IS_FINITE_NUMBER", "undefined", "false"),
    ("IS_INTEGER", "3454.123", "false"),
    ("IS_INTEGER", "5523432", "true"),
    ("IS_INTEGER", "-9223372036854775808", "true"),
    ("IS_INTEGER", "9223372036854775807", "true"),
    ("IS_INTEGER", "18446744073709551615", "false"),
    ("IS_INTEGER", "2.0", "true"),
    ("IS_INTEGER", r#""1""#, "false"),
    ("IS_INTEGER", "NaN", "false"),
    ("IS_INTEGER", "undefined", "false"),
    ("IS_NULL", "undefined", "false"),
    ("IS_NULL", "null", "true"),
    ("IS_NULL", "false", "false"),
    ("IS_NULL", "0", "false"),
    ("IS_NULL", "NaN", "false"),
    ("IS_NULL", r#""""#, "false"),
    ("IS_NULL", "[]", "false"),
    ("IS_NULL", "{}", "false"),
    ("IS_NUMBER", "undefined", "false"),
    ("IS_NUMBER", "null", "false"),
    ("IS_NUMBER", "false", "false"),
    ("IS_NUMBER", "0", "true"),
    ("IS_NUMBER", "NaN", "true"),
    ("IS_NUMBER", r#""""#, "false"),
    ("IS_NUMBER", "[]", "false"),
    ("IS_NUMBER", "{}", "false"),
    ("IS_OBJECT", "undefined", "false"),
    ("IS_OBJECT", "null", "false"),
    ("IS_OBJECT", "false", "false"),
    ("IS_OBJECT", "0", "false"),
    ("IS_OBJECT", "NaN", "false"),
    ("IS_OBJECT", r#""""#, "false"),
    ("IS_OBJECT", "[]", "false"),
    ("IS_OBJECT", "{}", "true"),
    ("IS_PRIMITIVE", "undefined", "false"),
    ("IS_PRIMITIVE", "null", "true"),
    ("IS_PRIMITIVE", "false", "true"),
    ("IS_PRIMITIVE", "0", "true"),
    ("IS_PRIMITIVE", "NaN", "true"),
    ("IS_PRIMITIVE", r#""""#, "true"),
    ("IS_PRIMITIVE", "[]", "false"),
    ("IS_PRIMITIVE", "{}", "false"),
    ("IS_STRING", "undefined", "false"),
    ("IS_STRING", "null", "false"),
    ("IS_STRING", "false", "false"),
    ("IS_STRING", "0", "false"),
    ("IS_STRING", "NaN", "false"),
    ("IS_STRING", r#""""#, "true"),
    ("IS_STRING", "[]", "false"),
    ("IS_STRING", "{}", "false"),
];
