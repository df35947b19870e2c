//! Between text and other types.
//!
//! The functions that read text take exactly one JSON value of their type, with white space around it.

use super::{Args, Family, Function, PlainRun, limits};
use crate::context::Context;
use crate::error::EvalError;
use crate::value::number::write_double;
use crate::value::{Kind, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    read("STRINGTOARRAY", "STRINGTOARRAY(s)", "The array the text is in JSON.", to_array),
    read("STRINGTOBOOLEAN", "STRINGTOBOOLEAN(s)", "true or false, as the text says.", to_boolean),
    read("STRINGTONULL", "STRINGTONULL(s)", "null if the text says so.", to_null),
    read("STRINGTONUMBER", "STRINGTONUMBER(s)", "The number the text is in JSON.", to_number),
    read("STRINGTOOBJECT", "STRINGTOOBJECT(s)", "The object the text is in JSON.", to_object),
    Function::failing(
        "TOSTRING",
        Family::String,
        Args::exactly(1),
        "TOSTRING(e)",
        "The value as text; arrays and objects as JSON.",
        to_string,
    )
    .also(&["TO_STRING"]),
];

const fn read(name: &'static str, signature: &'static str, help: &'static str, run: PlainRun) -> Function {
    Function::new(name, Family::String, Args::exactly(1), signature, help, run)
}

fn parse<'a>(args: &[Value<'a>], kind: Kind) -> Value<'a> {
    let [Value::String(text)] = args else { return Value::Undefined };
    // JSON's white space is all in ASCII; the parser may be as strict as it likes about the rest.
    let text = text.trim_matches([' ', '\t', '\r', '\n']);
    Value::parse_json(text.as_bytes()).filter(|value| value.kind() == kind).into()
}

fn to_array<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    parse(args, Kind::Array)
}

fn to_boolean<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    parse(args, Kind::Bool)
}

fn to_null<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    parse(args, Kind::Null)
}

fn to_number<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    parse(args, Kind::Number)
}

fn to_object<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    parse(args, Kind::Object)
}

fn to_string<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    let [value] = args else { return Ok(Value::Undefined) };
    Ok(match value {
        Value::Undefined => Value::Undefined,
        Value::String(_) => value.clone(),
        Value::Double(number) => {
            let mut text = String::new();
            write_double(*number, &mut text);
            text.into()
        }
        _ => {
            limits::check_json("TOSTRING", value)?;
            value.to_json().into()
        }
    })
}

#[cfg(test)]
pub(super) const CASES: &[super::testing::Case] = &[
    ("STRINGTOARRAY", r#""[]""#, "[]"),
    ("STRINGTOARRAY", r#"" [ \"a\", [1], {\"b\": null} ] ""#, r#"["a",[1],{"b":null}]"#),
    ("STRINGTOARRAY", r#""[ 'a' ]""#, "undefined"),
    ("STRINGTOARRAY", r#""{}""#, "undefined"),
    ("STRINGTOARRAY", r#""[1] 2""#, "undefined"),
    ("STRINGTOARRAY", "null", "undefined"),
    ("STRINGTOARRAY", "[1]", "undefined"),
    ("STRINGTOBOOLEAN", r#""true""#, "true"),
    ("STRINGTOBOOLEAN", r#""  false ""#, "false"),
    ("STRINGTOBOOLEAN", r#""True""#, "undefined"),
    ("STRINGTOBOOLEAN", r#""1""#, "undefined"),
    ("STRINGTOBOOLEAN", "true", "undefined"),
    ("STRINGTONULL", r#""null""#, "null"),
    ("STRINGTONULL", r#"" null\n""#, "null"),
    ("STRINGTONULL", r#""Null""#, "undefined"),
    ("STRINGTONULL", "null", "undefined"),
    ("STRINGTONUMBER", r#""100""#, "100"),
    ("STRINGTONUMBER", r#""3.14""#, "3.14"),
    ("STRINGTONUMBER", r#""   60   ""#, "60"),
    ("STRINGTONUMBER", r#""-1.79769e+308""#, "-1.79769e+308"),
    ("STRINGTONUMBER", r#""9007199254740993""#, "9007199254740993"),
    ("STRINGTONUMBER", r#""0x10""#, "undefined"),
    ("STRINGTONUMBER", r#""01""#, "undefined"),
    ("STRINGTONUMBER", r#""Hello""#, "undefined"),
    ("STRINGTONUMBER", r#""""#, "undefined"),
    ("STRINGTONUMBER", "NaN", "undefined"),
    ("STRINGTONUMBER", "1", "undefined"),
    ("STRINGTOOBJECT", r#""{\"a\": [1, 2]}""#, r#"{"a":[1,2]}"#),
    ("STRINGTOOBJECT", r#""{}""#, "{}"),
    ("STRINGTOOBJECT", r#""{a: 1}""#, "undefined"),
    ("STRINGTOOBJECT", r#""[]""#, "undefined"),
    ("STRINGTOOBJECT", "{}", "undefined"),
    ("TOSTRING", "125", r#""125""#),
    ("TOSTRING", "0.1234", r#""0.1234""#),
    ("TOSTRING", "false", r#""false""#),
    ("TOSTRING", "null", r#""null""#),
    ("TOSTRING", "[1, 2, 3]", r#""[1,2,3]""#),
    ("TOSTRING", r#"{"department": "Bicycles"}"#, r#""{\"department\":\"Bicycles\"}""#),
    ("TOSTRING", r#""Hello World""#, r#""Hello World""#),
    ("TOSTRING", "NaN", r#""NaN""#),
    ("TOSTRING", "-Infinity", r#""-Infinity""#),
    ("TOSTRING", "undefined", "undefined"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_a_value_that_shares_its_parts_is_bounded() {
        let mut value = Value::Int(1);
        for _ in 0..60 {
            value = Value::array([value.clone(), value]);
        }
        assert!(to_string(&Context::new(0, 0), &[value]).is_err());
    }
}
