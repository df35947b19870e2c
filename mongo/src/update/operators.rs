//! The update operators: the table for the documentation, and what each does at a path.

use bson::{RawDocument, Timestamp};

use super::arrays::{Condition, Push};
use super::parse::Operation;
use super::tree::Tree;
use crate::context::Context;
use crate::error::{BAD_VALUE, IMMUTABLE_FIELD, Result, TYPE_MISMATCH, bail};
use crate::number::Number;
use crate::values::{Ref, Value, field, show, type_name};

/// An operator of updates.
#[derive(Debug, Clone, Copy)]
pub struct UpdateOperator {
    /// With its dollar sign.
    pub name: &'static str,
    /// What it does.
    pub help: &'static str,
}

const fn operator(name: &'static str, help: &'static str) -> UpdateOperator {
    UpdateOperator { name, help }
}

/// All operators.
pub const OPERATORS: &[UpdateOperator] = &[
    operator("$set", "sets a field"),
    operator("$setOnInsert", "sets a field if an upsert inserts"),
    operator("$unset", "removes a field"),
    operator("$inc", "adds a number"),
    operator("$mul", "multiplies by a number"),
    operator("$min", "sets a smaller value"),
    operator("$max", "sets a larger value"),
    operator("$rename", "moves a field to another name"),
    operator("$currentDate", "sets the time, as a date or a timestamp"),
    operator("$push", "adds to an array (`$each`, `$position`, `$slice`, `$sort`)"),
    operator("$addToSet", "adds to an array what is not there (`$each`)"),
    operator("$pop", "removes the first or last item"),
    operator("$pull", "removes the items that match"),
    operator("$pullAll", "removes the items that are equal to one of these"),
    operator("$bit", "and, or, xor with an integer"),
];

/// What happens at a path.
#[derive(Debug)]
pub(super) enum Change {
    Set(Value),
    SetOnInsert(Value),
    Unset,
    Increment(Number),
    Multiply(Number),
    Minimum(Value),
    Maximum(Value),
    /// To this path.
    Rename(Vec<String>),
    CurrentDate {
        timestamp: bool,
    },
    Push(Push),
    AddToSet(Vec<Value>),
    Pop {
        first: bool,
    },
    Pull(Condition),
    PullAll(Vec<Value>),
    Bits(Vec<BitChange>),
}

/// How two integers are combined, and with which.
pub(super) type BitChange = (fn(i64, i64) -> i64, Value);

impl Operation {
    /// Where a field may appear: that decides the order of changes.
    pub(super) fn target<'a>(&'a self, path: &'a [String]) -> &'a [String] {
        match &self.change {
            Change::Rename(target) => target,
            _ => path,
        }
    }

    pub(super) fn apply(
        &self,
        path: &[String],
        tree: &mut Tree,
        document: &RawDocument,
        context: &Context<'_>,
    ) -> Result<()> {
        match &self.change {
            Change::Set(value) | Change::SetOnInsert(value) => tree.set(path, value.clone()),
            Change::Unset => {
                tree.remove(path);
                Ok(())
            }
            Change::Increment(by) => {
                let old = old_number(path, tree, document, "$inc", "increment")?;
                match old.map_or(Some(*by), |old| old.checked_add(*by)) {
                    Some(sum) => tree.set(path, sum.value()),
                    None => overflow("$inc", path, document),
                }
            }
            Change::Multiply(by) => {
                let old = old_number(path, tree, document, "$mul", "apply $mul to")?;
                let product = match old {
                    Some(old) => old.checked_multiply(*by),
                    // Zero of the operand's type.
                    None => Number::Int(0).checked_multiply(*by),
                };
                match product {
                    Some(product) => tree.set(path, product.value()),
                    None => overflow("$mul", path, document),
                }
            }
            Change::Minimum(value) => extreme(path, tree, value, context, std::cmp::Ordering::is_lt),
            Change::Maximum(value) => extreme(path, tree, value, context, std::cmp::Ordering::is_gt),
            Change::Rename(target) => rename(path, target, tree, document),
            Change::CurrentDate { timestamp } => {
                let now = context.now.timestamp_millis();
                let value = if *timestamp {
                    let seconds = u32::try_from(now.div_euclid(1000)).unwrap_or(0);
                    Value::Timestamp(
                        context.cluster_time.unwrap_or(Timestamp { time: seconds, increment: 1 }),
                    )
                } else {
                    Value::DateTime(context.now)
                };
                tree.set(path, value)
            }
            Change::Push(push) => push.apply(path, tree, document, context),
            Change::AddToSet(values) => super::arrays::add_to_set(path, tree, document, values, context),
            Change::Pop { first } => super::arrays::pop(path, tree, *first),
            Change::Pull(condition) => super::arrays::pull(path, tree, context, "$pull", condition),
            Change::PullAll(values) => super::arrays::pull_all(path, tree, context, values),
            Change::Bits(changes) => bits(path, tree, document, changes),
        }
    }
}

/// How a document is named in a message.
pub(super) fn named(document: &RawDocument) -> String {
    format!("{{_id: {}}}", field(document, "_id").map_or("null".to_string(), show))
}

fn old_number(
    path: &[String],
    tree: &mut Tree,
    document: &RawDocument,
    operator: &str,
    verb: &str,
) -> Result<Option<Number>> {
    tree.check_viable(path)?;
    let Some(old) = tree.get(path) else { return Ok(None) };
    match Number::of(old.as_raw_bson_ref()) {
        Some(number) => Ok(Some(number)),
        None if operator == "$inc" => bail!(
            TYPE_MISMATCH,
            "Cannot apply $inc to a value of non-numeric type. {} has the field '{}' of non-numeric type {}",
            named(document),
            path.last().map(String::as_str).unwrap_or_default(),
            type_name(old.as_raw_bson_ref())
        ),
        None => bail!(
            TYPE_MISMATCH,
            "Cannot {verb} a value of non-numeric type. {} has the field '{}' of non-numeric type {}",
            named(document),
            path.last().map(String::as_str).unwrap_or_default(),
            type_name(old.as_raw_bson_ref())
        ),
    }
}

fn overflow(operator: &str, path: &[String], document: &RawDocument) -> Result<()> {
    bail!(
        BAD_VALUE,
        "Failed to apply {operator} operations to current value of '{}' for document {}",
        path.join("."),
        named(document)
    )
}

fn extreme(
    path: &[String],
    tree: &mut Tree,
    value: &Value,
    context: &Context<'_>,
    better: fn(std::cmp::Ordering) -> bool,
) -> Result<()> {
    let wins = match tree.get(path) {
        None => true,
        Some(old) => better(context.compare(value.as_raw_bson_ref(), old.as_raw_bson_ref())),
    };
    if wins { tree.set(path, value.clone()) } else { Ok(()) }
}

fn rename(source: &[String], target: &[String], tree: &mut Tree, document: &RawDocument) -> Result<()> {
    let Some(value) = tree.get(source) else {
        return tree.check_named(source);
    };
    if [source, target].iter().any(|path| path.first().is_some_and(|first| first == "_id")) {
        bail!(
            IMMUTABLE_FIELD,
            "Performing an update on the path '_id' would modify the immutable field '_id'"
        );
    }
    if tree.passes_array(source) {
        bail!(
            BAD_VALUE,
            "The source field cannot be an array element, '{}' in doc with {} has an array field called '{}'",
            source.join("."),
            named(document),
            source.first().map(String::as_str).unwrap_or_default()
        );
    }
    if tree.passes_array(target) {
        bail!(
            BAD_VALUE,
            "The destination field cannot be an array element, '{}' in doc with {} has an array field called '{}'",
            target.join("."),
            named(document),
            target.first().map(String::as_str).unwrap_or_default()
        );
    }
    tree.set(target, value)?;
    tree.remove(source);
    Ok(())
}

fn bits(path: &[String], tree: &mut Tree, document: &RawDocument, changes: &[BitChange]) -> Result<()> {
    tree.check_viable(path)?;
    let old = tree.get(path).unwrap_or(Value::Int32(0));
    let (mut bits, mut long) = match old.as_raw_bson_ref() {
        Ref::Int32(value) => (i64::from(value), false),
        Ref::Int64(value) => (value, true),
        other => bail!(
            BAD_VALUE,
            "Cannot apply $bit to a value of non-integral type.{} has the field {} of non-integer type {}",
            named(document),
            path.last().map(String::as_str).unwrap_or_default(),
            type_name(other)
        ),
    };
    for (combine, operand) in changes {
        match operand {
            Value::Int64(operand) => {
                bits = combine(bits, *operand);
                long = true;
            }
            Value::Int32(operand) => bits = combine(bits, (*operand).into()),
            _ => {}
        }
    }
    tree.set(path, if long { Value::Int64(bits) } else { Value::Int32(bits as i32) })
}
