//! Variables, and walks over arrays that set them.

use super::parse::{object_operand, parse_expression};
use super::{Expr, Operator, Scope, form};
use crate::error::{FAILED_TO_PARSE, Result, bail};
use crate::values::{Ref, Value, array, as_integer, field, fields, is_truthy, owned_items, type_name};

pub(super) const OPERATORS: &[Operator] = &[
    form("$let", "an expression with variables", let_form),
    form("$map", "an array with an expression applied to each item", map),
    form("$filter", "the items that pass", filter),
    form("$reduce", "one value of all items", reduce),
];

/// A user's variable begins with a small letter.
fn check_variable(name: &str) -> Result<()> {
    let Some(first) = name.chars().next() else { bail!(16866, "empty variable names are not allowed") };
    if !first.is_ascii_lowercase() && first.is_ascii() {
        bail!(FAILED_TO_PARSE, "'{name}' starts with an invalid character for a user variable name");
    }
    if let Some(bad) = name.chars().find(|c| c.is_ascii() && !c.is_ascii_alphanumeric() && *c != '_') {
        bail!(FAILED_TO_PARSE, "'{name}' contains an invalid character for a variable name: '{bad}'");
    }
    Ok(())
}

fn let_form(name: &str, operand: Ref<'_>, scope: &mut Scope) -> Result<Expr> {
    let object = object_operand(name, operand, &["vars", "in"], (16874, 16875))?;
    let vars = match field(object, "vars") {
        Some(Ref::Document(vars)) => vars,
        Some(_) => bail!(10065, "invalid parameter: expected an object (vars)"),
        None => bail!(16876, "Missing 'vars' parameter to $let"),
    };
    let Some(body) = field(object, "in") else { bail!(16877, "Missing 'in' parameter to $let") };
    let (mut names, mut values) = (Vec::new(), Vec::new());
    for (name, value) in fields(vars) {
        check_variable(name)?;
        names.push(name);
        values.push(parse_expression(value, scope)?);
    }
    let body = scope.with(&names, |scope| parse_expression(body, scope))?;
    Ok(Expr::form(move |env| {
        let values: Vec<_> = values.iter().map(|value| value.eval(env)).collect::<Result<_>>()?;
        env.with(values, |env| body.eval(env))
    }))
}

/// The items to walk over; none if the input is null.
fn input(name: &str, code: i32, value: super::Out) -> Result<Option<Vec<Value>>> {
    match value {
        None | Some(Value::Null | Value::Undefined) => Ok(None),
        Some(Value::Array(list)) => Ok(Some(owned_items(&list))),
        Some(other) => {
            bail!(code, "input to {name} must be an array not {}", type_name(other.as_raw_bson_ref()))
        }
    }
}

/// The name of the variable for the item: `this` unless `as` says otherwise.
fn item_name(object: &bson::RawDocument) -> Result<&str> {
    match field(object, "as") {
        None => Ok("this"),
        Some(Ref::String(name)) => check_variable(name).map(|()| name),
        Some(_) => bail!(crate::error::TYPE_MISMATCH, "'as' must be a string"),
    }
}

fn map(name: &str, operand: Ref<'_>, scope: &mut Scope) -> Result<Expr> {
    let object = object_operand(name, operand, &["input", "as", "in", "arrayIndexAs"], (16878, 16879))?;
    let Some(list) = field(object, "input") else { bail!(16880, "Missing 'input' parameter to $map") };
    let Some(body) = field(object, "in") else { bail!(16882, "Missing 'in' parameter to $map") };
    if field(object, "arrayIndexAs").is_some() {
        bail!(16879, "Unrecognized parameter to $map: arrayIndexAs");
    }
    let list = parse_expression(list, scope)?;
    let body = scope.with(&[item_name(object)?], |scope| parse_expression(body, scope))?;
    Ok(Expr::form(move |env| {
        let Some(items) = input("$map", 16883, list.eval(env)?)? else { return Ok(Some(Value::Null)) };
        let mapped = items.into_iter().map(|item| {
            let value = env.with(vec![Some(item)], |env| body.eval(env))?;
            Ok(value.unwrap_or(Value::Null))
        });
        Ok(Some(array(mapped.collect::<Result<Vec<_>>>()?)))
    }))
}

fn filter(name: &str, operand: Ref<'_>, scope: &mut Scope) -> Result<Expr> {
    let object =
        object_operand(name, operand, &["input", "as", "cond", "limit", "arrayIndexAs"], (28646, 28647))?;
    let Some(list) = field(object, "input") else { bail!(28648, "Missing 'input' parameter to $filter") };
    let Some(cond) = field(object, "cond") else { bail!(28650, "Missing 'cond' parameter to $filter") };
    if field(object, "arrayIndexAs").is_some() {
        bail!(28647, "Unrecognized parameter to $filter: arrayIndexAs");
    }
    let list = parse_expression(list, scope)?;
    let limit = field(object, "limit").map(|limit| parse_expression(limit, scope)).transpose()?;
    let cond = scope.with(&[item_name(object)?], |scope| parse_expression(cond, scope))?;
    Ok(Expr::form(move |env| {
        let Some(items) = input("$filter", 28651, list.eval(env)?)? else { return Ok(Some(Value::Null)) };
        let limit = match &limit {
            None => usize::MAX,
            Some(limit) => match limit.eval(env)? {
                None | Some(Value::Null | Value::Undefined) => usize::MAX,
                Some(value) => match as_integer(value.as_raw_bson_ref()) {
                    Some(limit) if limit > 0 => usize::try_from(limit).unwrap_or(usize::MAX),
                    Some(_) => bail!(327392, "$filter: limit must be greater than 0"),
                    None => bail!(327391, "$filter: limit must be represented as a 32-bit integral value"),
                },
            },
        };
        let mut kept = Vec::new();
        for item in items {
            let passes = env.with(vec![Some(item.clone())], |env| cond.eval(env))?;
            if is_truthy(passes.as_ref().map(Value::as_raw_bson_ref)) {
                kept.push(item);
                if kept.len() >= limit {
                    break;
                }
            }
        }
        Ok(Some(array(kept)))
    }))
}

fn reduce(name: &str, operand: Ref<'_>, scope: &mut Scope) -> Result<Expr> {
    let object = object_operand(name, operand, &["input", "initialValue", "in"], (40075, 40076))?;
    let Some(list) = field(object, "input") else { bail!(40077, "$reduce requires 'input' to be specified") };
    let Some(initial) = field(object, "initialValue") else {
        bail!(40078, "$reduce requires 'initialValue' to be specified")
    };
    let Some(body) = field(object, "in") else { bail!(40079, "$reduce requires 'in' to be specified") };
    let list = parse_expression(list, scope)?;
    let initial = parse_expression(initial, scope)?;
    let body = scope.with(&["this", "value"], |scope| parse_expression(body, scope))?;
    Ok(Expr::form(move |env| {
        let Some(items) = input("$reduce", 40080, list.eval(env)?)? else { return Ok(Some(Value::Null)) };
        let mut value = initial.eval(env)?;
        for item in items {
            value = env.with(vec![Some(item), value], |env| body.eval(env))?;
        }
        Ok(value)
    }))
}
