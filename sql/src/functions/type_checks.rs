//! What type a value has: the `IS_*` family.
//!
//! Holds: every function here gives true or false, also for undefined.

use super::{Args, Family, Function};
use crate::context::Context;
use crate::value::{Kind, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    check("IS_ARRAY", "IS_ARRAY(e)", "Whether the value is an array.", is_array),
    check("IS_BOOL", "IS_BOOL(e)", "Whether the value is true or false.", is_bool).also(&["IS_BOOLEAN"]),
    check("IS_DEFINED", "IS_DEFINED(e)", "Whether there is a value at all.", is_defined),
    check("IS_NULL", "IS_NULL(e)", "Whether the value is null.", is_null),
    check("IS_NUMBER", "IS_NUMBER(e)", "Whether the value is a number.", is_number),
    check("IS_OBJECT", "IS_OBJECT(e)", "Whether the value is an object.", is_object),
    check("IS_PRIMITIVE", "IS_PRIMITIVE(e)", "Whether the value is neither array nor object.", is_primitive),
    check("IS_STRING", "IS_STRING(e)", "Whether the value is a string.", is_string),
];

const fn check(
    name: &'static str,
    signature: &'static str,
    help: &'static str,
    run: for<'a> fn(&Context<'_>, &[Value<'a>]) -> Value<'a>,
) -> Function {
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

fn is_defined<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    Value::Bool(kind(args) != Kind::Undefined)
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
