//! Update operators on arrays: items added, removed, sorted and cut.

use bson::RawDocument;

use super::operators::named;
use super::tree::{Tree, wrapped};
use crate::context::Context;
use crate::error::{BAD_VALUE, QUERY_FEATURE_NOT_ALLOWED, Result, bail};
use crate::expression::{ArrayOrder, sort_array_spec};
use crate::filter::{Details, Node, Predicate, parse_condition, parse_value_condition};
use crate::path::is_reference_part;
use crate::pattern::Pattern;
use crate::values::{
    Ref, Value, array, as_double, as_integer, fields, is_number, items, owned_items, show, type_name,
};

/// A parsed `$push`.
pub(super) struct Push {
    values: Vec<Value>,
    position: Option<i64>,
    slice: Option<i64>,
    order: Option<ArrayOrder>,
}

impl std::fmt::Debug for Push {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Push").field("values", &self.values).finish_non_exhaustive()
    }
}

fn whole(name: &str, value: Ref<'_>) -> Result<i64> {
    match as_integer(value) {
        Some(value) => Ok(value),
        None if is_number(value) && as_double(value).is_some_and(|value| value.fract() == 0.0) => {
            Ok(if as_double(value).is_some_and(|value| value < 0.0) { i64::MIN / 2 } else { i64::MAX / 2 })
        }
        None => bail!(
            BAD_VALUE,
            "The value for {name} must be an integer value, not of type: {}",
            type_name(value)
        ),
    }
}

impl Push {
    pub(super) fn parse(value: Ref<'_>) -> Result<Push> {
        let plain = || Push { values: vec![value.into()], position: None, slice: None, order: None };
        let Ref::Document(object) = value else { return Ok(plain()) };
        if crate::values::field(object, "$each").is_none() {
            return Ok(plain());
        }
        let mut push = Push { values: Vec::new(), position: None, slice: None, order: None };
        for (name, operand) in fields(object) {
            match (name, operand) {
                ("$each", Ref::Array(list)) => push.values = owned_items(list),
                ("$each", other) => bail!(
                    BAD_VALUE,
                    "The argument to $each in $push must be an array but it was of type: {}",
                    type_name(other)
                ),
                ("$position", operand) => push.position = Some(whole("$position", operand)?),
                ("$slice", operand) => push.slice = Some(whole("$slice", operand)?),
                ("$sort", operand) => {
                    if let Ref::Document(pattern) = operand
                        && fields(pattern).next().is_none()
                    {
                        bail!(BAD_VALUE, "The $sort pattern is empty when it should be a set of fields.");
                    }
                    let order = sort_array_spec(operand);
                    push.order =
                        Some(order.map_err(|error| crate::MongoError::new(BAD_VALUE, error.message))?);
                }
                _ => bail!(BAD_VALUE, "Unrecognized clause in $push: {name}"),
            }
        }
        Ok(push)
    }

    pub(super) fn apply(
        &self,
        path: &[String],
        tree: &mut Tree,
        document: &RawDocument,
        context: &Context<'_>,
    ) -> Result<()> {
        tree.check_viable(path)?;
        let mut values = match tree.get(path) {
            None => Vec::new(),
            Some(Value::Array(list)) => owned_items(&list),
            Some(other) => bail!(
                BAD_VALUE,
                "The field '{}' must be an array but is of type {} in document {}",
                path.join("."),
                type_name(other.as_raw_bson_ref()),
                named(document)
            ),
        };
        let length = values.len() as i64;
        let at = match self.position {
            Some(position) if position < 0 => (length + position).max(0),
            Some(position) => position.min(length),
            None => length,
        };
        values.splice(at as usize..at as usize, self.values.iter().cloned());
        if let Some(order) = &self.order {
            order.sort(&mut values, context);
        }
        match self.slice {
            Some(slice) if slice < 0 => {
                let keep = usize::try_from(slice.unsigned_abs()).unwrap_or(usize::MAX);
                values.drain(..values.len().saturating_sub(keep));
            }
            Some(slice) => values.truncate(usize::try_from(slice).unwrap_or(usize::MAX)),
            None => {}
        }
        tree.set(path, array(values))
    }
}

pub(super) fn add_to_set(
    path: &[String],
    tree: &mut Tree,
    document: &RawDocument,
    added: &[Value],
    context: &Context<'_>,
) -> Result<()> {
    tree.check_viable(path)?;
    let mut values = match tree.get(path) {
        None => Vec::new(),
        Some(Value::Array(list)) => owned_items(&list),
        Some(other) => bail!(
            BAD_VALUE,
            "Cannot apply $addToSet to non-array field. Field named '{}' has non-array type {} in the document {}",
            path.last().map(String::as_str).unwrap_or_default(),
            type_name(other.as_raw_bson_ref()),
            named(document)
        ),
    };
    for value in added {
        if !values.iter().any(|known| context.equal(known.as_raw_bson_ref(), value.as_raw_bson_ref())) {
            values.push(value.clone());
        }
    }
    tree.set(path, array(values))
}

pub(super) fn pop(path: &[String], tree: &mut Tree, first: bool) -> Result<()> {
    match tree.get(path) {
        None => {
            // A path that cannot be is a mistake; one that is not there is not.
            tree.check_viable(path)
        }
        Some(Value::Array(list)) => {
            let mut values = owned_items(&list);
            if first && !values.is_empty() {
                values.remove(0);
            } else {
                values.pop();
            }
            tree.set(path, array(values))
        }
        Some(other) => bail!(
            crate::error::TYPE_MISMATCH,
            "Path '{}' contains an element of non-array type '{}'",
            path.join("."),
            type_name(other.as_raw_bson_ref())
        ),
    }
}

/// What `$pull` removes.
#[derive(Debug)]
pub(super) enum Condition {
    /// Items that are objects with such fields.
    Fields(Box<Node>),
    /// Items that pass as a field would: an item that is an array, by its items too.
    Value(Box<Node>),
    Equal(Value),
}

impl Condition {
    pub(super) fn parse(value: Ref<'_>) -> Result<Condition> {
        Ok(match value {
            Ref::Document(object) => match fields(object).next() {
                Some((name @ ("$expr" | "$jsonSchema"), _)) => {
                    bail!(QUERY_FEATURE_NOT_ALLOWED, "{name} is not allowed in this context")
                }
                Some((name, _))
                    if name.starts_with('$')
                        && !is_reference_part(name)
                        && !["$and", "$or", "$nor", "$not", "$comment"].contains(&name) =>
                {
                    Condition::Value(Box::new(parse_value_condition(object)?))
                }
                _ => Condition::Fields(Box::new(parse_condition(object)?)),
            },
            Ref::RegularExpression(regex) => {
                let pattern = Pattern::new(regex.pattern.as_str(), regex.options.as_str())?;
                Condition::Value(Box::new(Node::of_value(Predicate::Pattern(pattern))))
            }
            other => Condition::Equal(other.into()),
        })
    }

    fn removes(&self, item: Ref<'_>, context: &Context<'_>, details: &mut Details) -> bool {
        match self {
            Condition::Fields(node) => match item {
                Ref::Document(object) => node.matches(object, context, details),
                _ => false,
            },
            Condition::Value(node) => node.matches(&wrapped("", item), context, details),
            Condition::Equal(value) => context.equal(value.as_raw_bson_ref(), item),
        }
    }
}

fn retain(
    path: &[String],
    tree: &mut Tree,
    operator: &str,
    mut removes: impl FnMut(Ref<'_>) -> bool,
) -> Result<()> {
    match tree.get(path) {
        None => tree.check_viable(path),
        Some(Value::Array(list)) => {
            let kept: Vec<Value> = items(&list).filter(|item| !removes(*item)).map(Value::from).collect();
            tree.set(path, array(kept))
        }
        Some(other) => {
            bail!(
                BAD_VALUE,
                "Cannot apply {operator} to a non-array value: {}",
                show(other.as_raw_bson_ref())
            )
        }
    }
}

pub(super) fn pull(
    path: &[String],
    tree: &mut Tree,
    context: &Context<'_>,
    operator: &str,
    condition: &Condition,
) -> Result<()> {
    let mut details = Details::default();
    retain(path, tree, operator, |item| condition.removes(item, context, &mut details))?;
    match details.error {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

pub(super) fn pull_all(
    path: &[String],
    tree: &mut Tree,
    context: &Context<'_>,
    values: &[Value],
) -> Result<()> {
    retain(path, tree, "$pullAll", |item| {
        values.iter().any(|value| context.equal(value.as_raw_bson_ref(), item))
    })
}
