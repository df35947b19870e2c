//! Fields of objects: read, set, removed, merged, and objects as arrays.

use bson::{RawDocument, RawDocumentBuf};

use super::parse::{object_operand, parse_expression};
use super::{Args, Expr, Operator, Out, Scope, form, function};
use crate::error::{Result, bail};
use crate::values::{Ref, Value, array, field, fields, is_nullish, items, put, type_name_opt};

pub(super) const OPERATORS: &[Operator] = &[
    form("$getField", "a field by any name", get_field),
    form("$setField", "a field set, by any name", set_field),
    form("$unsetField", "a field removed, by any name", unset_field),
    function("$mergeObjects", "one object of many", super::ANY, merge),
    function("$objectToArray", "names and values", (1, 1), to_array),
    function("$arrayToObject", "an object of names and values", (1, 1), to_object),
];

fn null() -> Result<Out> {
    Ok(Some(Value::Null))
}

fn get_field(name: &str, operand: Ref<'_>, scope: &mut Scope) -> Result<Expr> {
    let (wanted, input) = match operand {
        Ref::Document(object) if !fields(object).next().is_some_and(|(name, _)| name.starts_with('$')) => {
            object_operand(name, operand, &["field", "input"], (3041702, 3041701))?;
            let Some(wanted) = field(object, "field") else {
                bail!(3041702, "$getField requires 'field' to be specified")
            };
            let Some(input) = field(object, "input") else {
                bail!(3041703, "$getField requires 'input' to be specified")
            };
            (parse_expression(wanted, scope)?, parse_expression(input, scope)?)
        }
        _ => (parse_expression(operand, scope)?, parse_expression(Ref::String("$$CURRENT"), scope)?),
    };
    Ok(Expr::form(move |env| {
        let wanted = match wanted.eval(env)? {
            Some(Value::String(wanted)) => wanted,
            other => bail!(
                3041704,
                "$getField requires 'field' to evaluate to type String, but got {}",
                type_name_opt(other.as_ref().map(Value::as_raw_bson_ref))
            ),
        };
        match input.eval(env)? {
            Some(Value::Document(object)) => Ok(field(&object, &wanted).map(Value::from)),
            Some(value @ (Value::Null | Value::Undefined)) => Ok(Some(value)),
            _ => Ok(None),
        }
    }))
}

/// The name of a field that is set: a constant string, possibly a `$literal`.
fn constant_name(name: &str, object: &RawDocument, scope: &mut Scope) -> Result<String> {
    let Some(wanted) = field(object, "field") else {
        bail!(4161102, "{name} requires 'field' to be specified")
    };
    match parse_expression(wanted, scope)? {
        Expr::Constant(Some(Value::String(wanted))) => Ok(wanted),
        Expr::Constant(_) => bail!(4161107, "{name} requires 'field' to evaluate to type String"),
        Expr::Path { .. } => bail!(4161108, "'field' in {name} must be a constant, not a path"),
        _ => bail!(4161106, "{name} requires 'field' to evaluate to a constant"),
    }
}

fn set_field(name: &str, operand: Ref<'_>, scope: &mut Scope) -> Result<Expr> {
    let object = object_operand(name, operand, &["field", "input", "value"], (4161100, 4161101))?;
    let wanted = constant_name(name, object, scope)?;
    let Some(value) = field(object, "value") else {
        bail!(4161103, "$setField requires 'value' to be specified")
    };
    let Some(input) = field(object, "input") else {
        bail!(4161109, "$setField requires 'input' to be specified")
    };
    let (value, input) = (parse_expression(value, scope)?, parse_expression(input, scope)?);
    Ok(change(wanted, input, Some(value)))
}

fn unset_field(name: &str, operand: Ref<'_>, scope: &mut Scope) -> Result<Expr> {
    let object = object_operand(name, operand, &["field", "input"], (4161110, 4161111))?;
    let wanted = constant_name(name, object, scope)?;
    let Some(input) = field(object, "input") else {
        bail!(4161109, "$unsetField requires 'input' to be specified")
    };
    let input = parse_expression(input, scope)?;
    Ok(change(wanted, input, None))
}

fn change(wanted: String, input: Expr, value: Option<Expr>) -> Expr {
    Expr::form(move |env| {
        let object = match input.eval(env)? {
            None | Some(Value::Null | Value::Undefined) => return null(),
            Some(Value::Document(object)) => object,
            Some(_) => bail!(4161105, "$setField requires 'input' to evaluate to type Object"),
        };
        let value = match &value {
            Some(value) => value.eval(env)?,
            None => None,
        };
        Ok(Some(Value::Document(with_field(&object, &wanted, value))))
    })
}

/// The object with a field set in its place or at the end, or removed.
pub(crate) fn with_field(object: &RawDocument, wanted: &str, value: Out) -> RawDocumentBuf {
    let (mut changed, mut value, mut found) = (RawDocumentBuf::new(), value, false);
    for (name, old) in fields(object) {
        if name != wanted {
            put(&mut changed, name, old);
        } else if !found {
            found = true;
            if let Some(value) = value.take() {
                put(&mut changed, name, value);
            }
        }
    }
    if let Some(value) = value {
        put(&mut changed, wanted, value);
    }
    changed
}

fn merge(args: &Args<'_>) -> Result<Out> {
    let mut merged = Vec::new();
    let values: Vec<_> = args.iter().collect();
    match values.as_slice() {
        // An array alone stands for its items, as with other accumulators.
        [Some(Ref::Array(list))] => {
            for item in items(list) {
                merge_into(&mut merged, Some(item))?;
            }
        }
        values => {
            for value in values {
                merge_into(&mut merged, *value)?;
            }
        }
    }
    Ok(Some(object_of(merged)))
}

/// Adds the fields of an object to those that are there; a name keeps its place.
pub(crate) fn merge_into(merged: &mut Vec<(String, Value)>, value: Option<Ref<'_>>) -> Result<()> {
    match value {
        value if is_nullish(value) => Ok(()),
        Some(Ref::Document(object)) => {
            for (name, value) in fields(object) {
                match merged.iter_mut().find(|(found, _)| found == name) {
                    Some((_, place)) => *place = value.into(),
                    None => merged.push((name.to_string(), value.into())),
                }
            }
            Ok(())
        }
        other => bail!(
            40400,
            "$mergeObjects requires object inputs, but input is of type {}",
            type_name_opt(other)
        ),
    }
}

/// An object of these fields.
pub(crate) fn object_of(merged: Vec<(String, Value)>) -> Value {
    let mut object = RawDocumentBuf::new();
    for (name, value) in merged {
        put(&mut object, &name, value);
    }
    Value::Document(object)
}

fn to_array(args: &Args<'_>) -> Result<Out> {
    match args.at(0) {
        value if is_nullish(value) => null(),
        Some(Ref::Document(object)) => Ok(Some(array(fields(object).map(|(name, value)| {
            let mut entry = RawDocumentBuf::new();
            put(&mut entry, "k", name);
            put(&mut entry, "v", value);
            Value::Document(entry)
        })))),
        other => bail!(40390, "$objectToArray requires a document input, found: {}", type_name_opt(other)),
    }
}

fn to_object(args: &Args<'_>) -> Result<Out> {
    let list = match args.at(0) {
        value if is_nullish(value) => return null(),
        Some(Ref::Array(list)) => list,
        other => bail!(40386, "$arrayToObject requires an array input, found: {}", type_name_opt(other)),
    };
    let pairs = items(list).next().is_some_and(|first| matches!(first, Ref::Array(_)));
    let mut entries: Vec<(String, Value)> = Vec::new();
    for item in items(list) {
        let (name, value) = if pairs { entry_of_pair(item)? } else { entry_of_object(item)? };
        if name.contains('\0') {
            bail!(4940400, "Key field cannot contain an embedded null byte");
        }
        match entries.iter_mut().find(|(found, _)| found == name) {
            Some((_, place)) => *place = value,
            None => entries.push((name.to_string(), value)),
        }
    }
    Ok(Some(object_of(entries)))
}

fn entry_of_pair(item: Ref<'_>) -> Result<(&str, Value)> {
    let Ref::Array(pair) = item else {
        bail!(
            40396,
            "$arrayToObject requires a consistent input format. Elements must all be arrays or all be objects."
        );
    };
    let parts: Vec<_> = items(pair).collect();
    match parts.as_slice() {
        [Ref::String(name), value] => Ok((name, (*value).into())),
        [_, _] => bail!(
            40395,
            "$arrayToObject requires an array of key-value pairs, where the key must be of type string."
        ),
        _ => bail!(40397, "$arrayToObject requires an array of size 2 arrays"),
    }
}

fn entry_of_object(item: Ref<'_>) -> Result<(&str, Value)> {
    let Ref::Document(object) = item else {
        match item {
            Ref::Array(_) => bail!(40391, "$arrayToObject requires a consistent input format."),
            _ => bail!(40398, "Unrecognised input type format for $arrayToObject"),
        }
    };
    if fields(object).count() != 2 {
        bail!(40392, "$arrayToObject requires an object keys of 'k' and 'v'.");
    }
    match (field(object, "k"), field(object, "v")) {
        (Some(Ref::String(name)), Some(value)) => Ok((name, value.into())),
        (Some(_), Some(_)) => bail!(
            40394,
            "$arrayToObject requires an object with keys 'k' and 'v', where the value of 'k' must be of type string."
        ),
        _ => bail!(40393, "$arrayToObject requires an object with keys 'k' and 'v'."),
    }
}
