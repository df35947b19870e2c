//! From an update document to operations, with MongoDB's errors for what makes no sense.

use std::collections::BTreeMap;

use bson::{RawArray, RawDocument};

use super::arrays::{Condition, Push};
use super::operators::{BitChange, Change};
use crate::error::{
    BAD_VALUE, CONFLICTING_UPDATE, EMPTY_FIELD_NAME, FAILED_TO_PARSE, Result, TYPE_MISMATCH, bail,
};
use crate::expression::Names;
use crate::filter::Filter;
use crate::number::Number;
use crate::values::{Ref, Value, as_integer, field, fields, items, show, type_name};

/// A change at a path.
#[derive(Debug)]
pub(super) struct Operation {
    pub(super) path: Vec<String>,
    pub(super) change: Change,
}

/// Reads a document whose names are operators.
pub(super) fn operations(update: &RawDocument) -> Result<Vec<Operation>> {
    let mut operations = Vec::new();
    for (operator, operand) in fields(update) {
        if !super::OPERATORS.iter().any(|known| known.name == operator) {
            bail!(
                FAILED_TO_PARSE,
                "Unknown modifier: {operator}. Expected a valid update modifier or pipeline-style update specified as \
                 an array"
            );
        }
        let Ref::Document(changes) = operand else {
            bail!(
                FAILED_TO_PARSE,
                "Modifiers operate on fields but we found type {} instead. For example: {{$mod: {{<field>: ...}}}} not \
                 {{{operator}: {}}}",
                type_name(operand),
                show(operand)
            );
        };
        for (path, value) in fields(changes) {
            let path = parse_path(path)?;
            operations.push(Operation { change: change(operator, &path, value)?, path });
        }
    }
    check_conflicts(&operations)?;
    Ok(operations)
}

/// A part of a path that stands for items of an array.
pub(super) fn is_positional(part: &str) -> bool {
    part == "$" || (part.starts_with("$[") && part.ends_with(']'))
}

fn parse_path(dotted: &str) -> Result<Vec<String>> {
    if dotted.is_empty() {
        bail!(EMPTY_FIELD_NAME, "An empty update path is not valid.");
    }
    let parts: Vec<String> = dotted.split('.').map(str::to_string).collect();
    for (at, part) in parts.iter().enumerate() {
        if part.is_empty() {
            bail!(
                EMPTY_FIELD_NAME,
                "The update path '{dotted}' contains an empty field name, which is not allowed."
            );
        }
        if at == 0 && is_positional(part) {
            let what = if part == "$" {
                "positional (i.e. '$')"
            } else {
                "array filter identifier (i.e. '$[<id>]')"
            };
            bail!(BAD_VALUE, "Cannot have {what} element in the first position in path '{dotted}'");
        }
    }
    if parts.iter().filter(|part| *part == "$").count() > 1 {
        bail!(BAD_VALUE, "Too many positional (i.e. '$') elements found in path '{dotted}'");
    }
    Ok(parts)
}

fn number(operator: &str, path: &[String], value: Ref<'_>) -> Result<Number> {
    match Number::of(value) {
        Some(number) => Ok(number),
        None => bail!(
            TYPE_MISMATCH,
            "Cannot {} with non-numeric argument: {{{}: {}}}",
            if operator == "$inc" { "increment" } else { "multiply" },
            path.join("."),
            show(value)
        ),
    }
}

fn change(operator: &str, path: &[String], value: Ref<'_>) -> Result<Change> {
    Ok(match operator {
        "$set" => Change::Set(value.into()),
        "$setOnInsert" => Change::SetOnInsert(value.into()),
        "$unset" => Change::Unset,
        "$inc" => Change::Increment(number(operator, path, value)?),
        "$mul" => Change::Multiply(number(operator, path, value)?),
        "$min" => Change::Minimum(value.into()),
        "$max" => Change::Maximum(value.into()),
        "$rename" => Change::Rename(rename(path, value)?),
        "$currentDate" => Change::CurrentDate { timestamp: current_date(value)? },
        "$push" => Change::Push(Push::parse(value)?),
        "$addToSet" => Change::AddToSet(add_to_set(value)?),
        "$pop" => match as_integer(value) {
            Some(1) => Change::Pop { first: false },
            Some(-1) => Change::Pop { first: true },
            _ => bail!(FAILED_TO_PARSE, "$pop expects 1 or -1, found: {}", show(value)),
        },
        "$pull" => Change::Pull(Condition::parse(value)?),
        "$pullAll" => match value {
            Ref::Array(list) => Change::PullAll(items(list).map(Value::from).collect()),
            _ => bail!(BAD_VALUE, "$pullAll requires an array argument but was given a {}", type_name(value)),
        },
        "$bit" => Change::Bits(bits(value)?),
        _ => bail!(FAILED_TO_PARSE, "Unknown modifier: {operator}"),
    })
}

/// Renaming is written as a change of the target; the source comes with it.
fn rename(source: &[String], value: Ref<'_>) -> Result<Vec<String>> {
    let Ref::String(target) = value else {
        bail!(
            BAD_VALUE,
            "The 'to' field for $rename must be a string: {}: {}",
            source.join("."),
            show(value)
        );
    };
    if target.contains('\0') {
        bail!(BAD_VALUE, "The 'to' field for $rename cannot contain an embedded null byte");
    }
    let target = parse_path(target)?;
    for path in [source, &target] {
        if path.iter().any(|part| is_positional(part)) {
            bail!(
                BAD_VALUE,
                "The source and target field for $rename may not be dynamic: {}",
                path.join(".")
            );
        }
    }
    if target == source {
        bail!(BAD_VALUE, "The source and target field for $rename must differ: {}", source.join("."));
    }
    if target.starts_with(source) || source.starts_with(&target) {
        bail!(
            BAD_VALUE,
            "The source and target field for $rename must not be on the same path: {}",
            source.join(".")
        );
    }
    Ok(target)
}

fn current_date(value: Ref<'_>) -> Result<bool> {
    match value {
        Ref::Boolean(_) => Ok(false),
        Ref::Document(object) => match (fields(object).count(), field(object, "$type")) {
            (1, Some(Ref::String("date"))) => Ok(false),
            (1, Some(Ref::String("timestamp"))) => Ok(true),
            (1, Some(_)) => bail!(
                BAD_VALUE,
                "The '$type' string field is required to be 'date' or 'timestamp': {{$currentDate: {{field : {{$type: \
                 'date'}}}}}}"
            ),
            _ => bail!(BAD_VALUE, "Unrecognized $currentDate option"),
        },
        other => bail!(
            BAD_VALUE,
            "{} is not valid type for $currentDate. Please use a boolean ('true') or a $type expression ({{$type: \
             'timestamp/date'}}).",
            type_name(other)
        ),
    }
}

fn add_to_set(value: Ref<'_>) -> Result<Vec<Value>> {
    let Ref::Document(object) = value else { return Ok(vec![value.into()]) };
    match fields(object).next() {
        Some(("$each", list)) => {
            if fields(object).count() > 1 {
                bail!(BAD_VALUE, "Found unexpected fields after $each in $addToSet: {}", show(value));
            }
            match list {
                Ref::Array(list) => Ok(items(list).map(Value::from).collect()),
                other => bail!(
                    TYPE_MISMATCH,
                    "The argument to $each in $addToSet must be an array but it was of type {}",
                    type_name(other)
                ),
            }
        }
        _ => Ok(vec![value.into()]),
    }
}

/// `and`, `or` and `xor` with integers.
fn bits(value: Ref<'_>) -> Result<Vec<BitChange>> {
    let Ref::Document(object) = value else {
        bail!(
            BAD_VALUE,
            "The $bit modifier is not compatible with a {}. You must pass in an embedded document: {{$bit: {{field: \
             {{and/or/xor: #}}}}}}",
            type_name(value)
        );
    };
    let mut changes = Vec::new();
    for (name, operand) in fields(object) {
        let combine: fn(i64, i64) -> i64 = match name {
            "and" => |a, b| a & b,
            "or" => |a, b| a | b,
            "xor" => |a, b| a ^ b,
            _ => bail!(
                BAD_VALUE,
                "The $bit modifier only supports 'and', 'or', and 'xor', not '{name}' which is an unknown operator"
            ),
        };
        match operand {
            Ref::Int32(_) | Ref::Int64(_) => changes.push((combine, Value::from(operand))),
            _ => bail!(
                BAD_VALUE,
                "The $bit modifier field must be an Integer(32/64 bit); a '{}' is not supported here",
                type_name(operand)
            ),
        }
    }
    if changes.is_empty() {
        bail!(BAD_VALUE, "You must pass in at least one bitwise operation.");
    }
    Ok(changes)
}

/// No two operations may speak of the same path, or of a path and its parent.
fn check_conflicts(operations: &[Operation]) -> Result<()> {
    let mut paths: Vec<&[String]> = Vec::new();
    for operation in operations {
        paths.push(&operation.path);
        if let Change::Rename(target) = &operation.change {
            paths.push(target);
        }
    }
    // One level of an array is changed either by filters or by names, not by both.
    let mut kinds: BTreeMap<&[String], bool> = BTreeMap::new();
    for path in &paths {
        for (at, part) in path.iter().enumerate() {
            let (Some(prefix), filtered) = (path.get(..at), part.starts_with("$[")) else { continue };
            if *kinds.entry(prefix).or_insert(filtered) != filtered {
                bail!(
                    CONFLICTING_UPDATE,
                    "Updating the path '{}' would create a conflict at '{}'",
                    path.join("."),
                    prefix.join(".")
                );
            }
        }
    }
    conflict_among(&mut paths)
}

pub(super) fn conflict_among(paths: &mut [&[String]]) -> Result<()> {
    paths.sort_unstable();
    for pair in paths.windows(2) {
        if let [first, second] = pair
            && second.starts_with(first)
        {
            bail!(
                CONFLICTING_UPDATE,
                "Updating the path '{}' would create a conflict at '{}'",
                second.join("."),
                first.join(".")
            );
        }
    }
    Ok(())
}

/// Filters on items, by the name that stands for the item.
pub(super) fn array_filters(
    filters: Option<&RawArray>,
    operations: &[Operation],
) -> Result<Vec<(String, Filter)>> {
    let mut parsed: Vec<(String, Filter)> = Vec::new();
    for filter in filters.into_iter().flat_map(items) {
        let Ref::Document(filter) = filter else { bail!(TYPE_MISMATCH, "arrayFilters must hold objects") };
        let name = identifier(filter)?;
        if parsed.iter().any(|(known, _)| *known == name) {
            bail!(FAILED_TO_PARSE, "Found multiple array filters with the same top-level field name {name}");
        }
        parsed.push((name, Filter::parse(filter, &Names::default())?));
    }
    let used = |name: &str| {
        operations.iter().any(|operation| operation.path.iter().any(|part| part == &format!("$[{name}]")))
    };
    for (name, _) in &parsed {
        if !used(name) {
            bail!(FAILED_TO_PARSE, "The array filter for identifier '{name}' was not used in the update");
        }
    }
    for operation in operations {
        for part in &operation.path {
            let name = part.strip_prefix("$[").and_then(|part| part.strip_suffix(']')).unwrap_or_default();
            if !name.is_empty() && !parsed.iter().any(|(known, _)| known == name) {
                bail!(
                    BAD_VALUE,
                    "No array filter found for identifier '{name}' in path '{}'",
                    operation.path.join(".")
                );
            }
        }
    }
    Ok(parsed)
}

/// The one name that all conditions of a filter begin with.
fn identifier(filter: &RawDocument) -> Result<String> {
    let mut names = Vec::new();
    collect(filter, &mut names);
    names.dedup();
    let Some(first) = names.first().cloned() else {
        bail!(FAILED_TO_PARSE, "Cannot use an expression without a top-level field name in arrayFilters");
    };
    if let Some(other) = names.iter().find(|name| **name != first) {
        bail!(
            FAILED_TO_PARSE,
            "Error parsing array filter :: caused by :: Expected a single top-level field name, found '{first}' and '{other}'"
        );
    }
    let valid = first.starts_with(|c: char| c.is_ascii_lowercase())
        && first.chars().all(|c| c.is_ascii_alphanumeric());
    if !valid {
        bail!(
            BAD_VALUE,
            "Error parsing array filter :: caused by :: The top-level field name must be an alphanumeric string \
             beginning with a lowercase letter, found '{first}'"
        );
    }
    Ok(first)
}

fn collect(filter: &RawDocument, names: &mut Vec<String>) {
    for (name, value) in fields(filter) {
        match (name, value) {
            ("$and" | "$or" | "$nor", Ref::Array(list)) => {
                items(list).filter_map(|item| item.as_document()).for_each(|inner| collect(inner, names));
            }
            (name, _) if name.starts_with('$') => {}
            (name, _) => names.push(name.split('.').next().unwrap_or_default().to_string()),
        }
    }
}
