//! Strings looked for in strings, and replaced.

use super::arrays::{bound, type_of};
use super::parse::{object_operand, parse_expression};
use super::{Args, Expr, Operator, Out, Scope, form, function};
use crate::error::{Result, bail};
use crate::values::{Ref, Value, field, is_nullish};

pub(super) const OPERATORS: &[Operator] = &[
    function("$indexOfBytes", "the place of a string, in bytes", (2, 4), index_of_bytes),
    function("$indexOfCP", "the place of a string, in characters", (2, 4), index_of_cp),
    form("$replaceOne", "the first occurrence replaced", |name, operand, scope| {
        replace(name, operand, scope, false)
    }),
    form("$replaceAll", "all occurrences replaced", |name, operand, scope| {
        replace(name, operand, scope, true)
    }),
];

fn null() -> Result<Out> {
    Ok(Some(Value::Null))
}

fn operands<'a>(name: &str, args: &Args<'a>, codes: (i32, i32)) -> Result<Option<(&'a str, &'a str)>> {
    let text = match args.at(0) {
        value if is_nullish(value) => return Ok(None),
        Some(Ref::String(text)) => text,
        other => bail!(codes.0, "{name} requires a string as the first argument, found: {}", type_of(other)),
    };
    match args.at(1) {
        Some(Ref::String(token)) => Ok(Some((text, token))),
        other => bail!(codes.1, "{name} requires a string as the second argument, found: {}", type_of(other)),
    }
}

fn index_of_bytes(args: &Args<'_>) -> Result<Out> {
    let Some((text, token)) = operands("$indexOfBytes", args, (40091, 40092))? else { return null() };
    let start = if args.len() > 2 { bound("$indexOfBytes", "starting", args.at(2))? } else { 0 };
    let end = if args.len() > 3 { bound("$indexOfBytes", "ending", args.at(3))? } else { text.len() };
    let end = end.min(text.len());
    let found = if start > end {
        None
    } else {
        let window = text.as_bytes().get(start..end).unwrap_or_default();
        find_bytes(window, token.as_bytes()).map(|at| at + start)
    };
    Ok(Some(Value::Int32(found.map_or(-1, |at| at as i32))))
}

fn find_bytes(text: &[u8], token: &[u8]) -> Option<usize> {
    if token.is_empty() {
        return Some(0);
    }
    text.windows(token.len()).position(|window| window == token)
}

fn index_of_cp(args: &Args<'_>) -> Result<Out> {
    let Some((text, token)) = operands("$indexOfCP", args, (40093, 40094))? else { return null() };
    let text: Vec<char> = text.chars().collect();
    let token: Vec<char> = token.chars().collect();
    let start = if args.len() > 2 { bound("$indexOfCP", "starting", args.at(2))? } else { 0 };
    let end = if args.len() > 3 { bound("$indexOfCP", "ending", args.at(3))? } else { text.len() };
    let window = text.get(start..end.min(text.len()));
    let found = window.and_then(|window| match token.len() {
        0 => Some(0),
        length => window.windows(length).position(|part| part == token.as_slice()),
    });
    Ok(Some(Value::Int32(found.map_or(-1, |at| (at + start) as i32))))
}

fn replace(name: &str, operand: Ref<'_>, scope: &mut Scope, all: bool) -> Result<Expr> {
    let object = object_operand(name, operand, &["input", "find", "replacement"], (51751, 51750))?;
    let mut part = |part: &str, code: i32| match field(object, part) {
        Some(value) => parse_expression(value, scope),
        None => bail!(code, "{name} requires '{part}' to be specified"),
    };
    let parts = [part("input", 51749)?, part("find", 51748)?, part("replacement", 51747)?];
    let name = name.to_string();
    Ok(Expr::form(move |env| {
        let (mut texts, mut nullish) = (Vec::new(), false);
        let what = [(10503904, "input"), (10503901, "find"), (10503902, "replacement")];
        for (part, (code, which)) in parts.iter().zip(what) {
            match part.eval(env)? {
                None | Some(Value::Null | Value::Undefined) => nullish = true,
                Some(Value::String(text)) => texts.push(text),
                Some(other) => bail!(
                    code,
                    "{name} requires that '{which}' be a string, found: {}",
                    crate::values::show(other.as_raw_bson_ref())
                ),
            }
        }
        match (nullish, texts.as_slice()) {
            (false, [input, find, replacement]) => {
                let replaced =
                    if all { input.replace(find, replacement) } else { input.replacen(find, replacement, 1) };
                Ok(Some(Value::String(replaced)))
            }
            _ => null(),
        }
    }))
}
