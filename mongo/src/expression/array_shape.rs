//! Arrays made anew: ranges, pairs, sorted arrays, and the first, last, smallest or largest few.

use std::cmp::Ordering;

use super::arrays::int32;
use super::parse::{object_operand, parse_expression};
use super::{Args, Expr, Operator, Out, Scope, form, function};
use crate::context::Context;
use crate::error::{BAD_VALUE, Result, bail};
use crate::sort::SortPattern;
use crate::values::{Ref, Value, array, as_integer, field, is_number, items, owned_items, type_name_opt};

pub(super) const OPERATORS: &[Operator] = &[
    function("$range", "whole numbers from one to another", (2, 3), range),
    form("$zip", "arrays side by side", zip),
    form("$sortArray", "sorted, whole or by fields", sort_array),
    form("$firstN", "the first items", |name, operand, scope| n_items(name, operand, scope, first_n)),
    form("$lastN", "the last items", |name, operand, scope| n_items(name, operand, scope, last_n)),
    form("$maxN", "the largest items", |name, operand, scope| n_items(name, operand, scope, max_n)),
    form("$minN", "the smallest items", |name, operand, scope| n_items(name, operand, scope, min_n)),
];

/// The most items that `$range` makes: what fits MongoDB's memory limit for it.
const RANGE_MAX: i64 = 6_000_000;

fn null() -> Result<Out> {
    Ok(Some(Value::Null))
}

fn range(args: &Args<'_>) -> Result<Out> {
    let integer = |place: usize, codes: (i32, i32), which: &str| match args.at(place) {
        Some(value) if is_number(value) => match int32(value) {
            Some(value) => Ok(value),
            None => bail!(codes.1, "$range requires a {which} that can be represented as a 32-bit integer"),
        },
        other => {
            bail!(codes.0, "$range requires a numeric {which}, found value of type: {}", type_name_opt(other))
        }
    };
    let start = integer(0, (34443, 34444), "starting value")?;
    let end = integer(1, (34445, 34446), "ending value")?;
    let step = if args.len() > 2 { integer(2, (34447, 34448), "step value")? } else { 1 };
    if step == 0 {
        bail!(34449, "$range requires a non-zero step value");
    }
    let count = ((end - start) as f64 / step as f64).ceil().max(0.0) as i64;
    if count > RANGE_MAX {
        bail!(146, "$range would use too much memory and cannot spill");
    }
    Ok(Some(array((0..count).map(|at| Value::Int32((start + at * step) as i32)))))
}

fn zip(name: &str, operand: Ref<'_>, scope: &mut Scope) -> Result<Expr> {
    let object = match operand {
        Ref::Document(object) => object,
        other => {
            bail!(34460, "$zip only supports an object as an argument, found {}", type_name_opt(Some(other)))
        }
    };
    object_operand(name, operand, &["inputs", "defaults", "useLongestLength"], (34460, 34464))?;
    let list = |part: &str, code: i32, scope: &mut Scope| match field(object, part) {
        None => Ok(None),
        Some(Ref::Array(list)) => {
            items(list).map(|item| parse_expression(item, scope)).collect::<Result<Vec<_>>>().map(Some)
        }
        Some(_) => bail!(code, "{part} must be an array of expressions"),
    };
    let Some(inputs) = list("inputs", 34461, scope)?.filter(|inputs| !inputs.is_empty()) else {
        bail!(34465, "$zip requires at least one input array");
    };
    let defaults = list("defaults", 34462, scope)?.unwrap_or_default();
    let longest = match field(object, "useLongestLength") {
        None => false,
        Some(Ref::Boolean(longest)) => longest,
        Some(_) => bail!(34463, "useLongestLength must be a bool"),
    };
    if !defaults.is_empty() && !longest {
        bail!(34466, "cannot specify defaults unless useLongestLength is true");
    }
    if !defaults.is_empty() && defaults.len() != inputs.len() {
        bail!(34467, "defaults and inputs must have the same length");
    }
    Ok(Expr::form(move |env| {
        let mut lists = Vec::new();
        for input in &inputs {
            match input.eval(env)? {
                None | Some(Value::Null | Value::Undefined) => return null(),
                Some(Value::Array(list)) => lists.push(owned_items(&list)),
                Some(other) => bail!(
                    34468,
                    "$zip found a non-array expression in input: {}",
                    type_name_opt(Some(other.as_raw_bson_ref()))
                ),
            }
        }
        let defaults: Vec<_> = defaults.iter().map(|default| default.eval(env)).collect::<Result<_>>()?;
        let lengths = lists.iter().map(Vec::len);
        let length = if longest { lengths.max() } else { lengths.min() }.unwrap_or(0);
        let row = |at: usize| {
            // A default without a value leaves its place out.
            let cells = lists.iter().enumerate().filter_map(|(place, list)| match list.get(at) {
                Some(item) => Some(item.clone()),
                None => defaults.get(place).cloned().unwrap_or(Some(Value::Null)),
            });
            array(cells)
        };
        Ok(Some(array((0..length).map(row))))
    }))
}

/// How `$sortArray` and a `$push` sort: by the items, or by fields of them.
pub(crate) enum ArrayOrder {
    Whole { descending: bool },
    Fields(SortPattern),
}

/// Reads `1`, `-1` or a pattern.
pub(crate) fn sort_array_spec(value: Ref<'_>) -> Result<ArrayOrder> {
    match value {
        Ref::Document(pattern) => Ok(ArrayOrder::Fields(SortPattern::parse_any_names(pattern)?)),
        value if is_number(value) => match as_integer(value) {
            Some(1) => Ok(ArrayOrder::Whole { descending: false }),
            Some(-1) => Ok(ArrayOrder::Whole { descending: true }),
            _ => bail!(BAD_VALUE, "The $sort element value must be either 1 or -1"),
        },
        _ => bail!(
            BAD_VALUE,
            "The $sort is invalid: use 1/-1 to sort the whole element, or {{field:1/-1}} to sort embedded fields"
        ),
    }
}

impl ArrayOrder {
    pub(crate) fn sort(&self, values: &mut [Value], context: &Context<'_>) {
        match self {
            ArrayOrder::Whole { descending } => values.sort_by(|a, b| {
                let ordering = context.compare(a.as_raw_bson_ref(), b.as_raw_bson_ref());
                if *descending { ordering.reverse() } else { ordering }
            }),
            ArrayOrder::Fields(pattern) => {
                values.sort_by(|a, b| {
                    pattern.compare_values(a.as_raw_bson_ref(), b.as_raw_bson_ref(), context)
                });
            }
        }
    }
}

fn sort_array(name: &str, operand: Ref<'_>, scope: &mut Scope) -> Result<Expr> {
    let object = object_operand(name, operand, &["input", "sortBy"], (2942500, 2942501))?;
    let Some(input) = field(object, "input") else {
        bail!(2942502, "$sortArray requires 'input' to be specified")
    };
    let Some(sort_by) = field(object, "sortBy") else {
        bail!(2942503, "$sortArray requires 'sortBy' to be specified")
    };
    let input = parse_expression(input, scope)?;
    let order = match (sort_array_spec(sort_by), sort_by) {
        (Err(_), value) if is_number(value) => {
            bail!(2942506, "The $sort element value must be either 1 or -1")
        }
        (order, _) => order?,
    };
    Ok(Expr::form(move |env| match input.eval(env)? {
        None | Some(Value::Null | Value::Undefined) => null(),
        Some(Value::Array(list)) => {
            let mut values = owned_items(&list);
            order.sort(&mut values, env.context);
            Ok(Some(array(values)))
        }
        Some(other) => bail!(
            2942504,
            "The input argument to $sortArray must be an array, but was of type: {}",
            type_name_opt(Some(other.as_raw_bson_ref()))
        ),
    }))
}

type Pick = fn(Vec<Value>, usize, &Context<'_>) -> Vec<Value>;

fn n_items(name: &str, operand: Ref<'_>, scope: &mut Scope, pick: Pick) -> Result<Expr> {
    let object = object_operand(name, operand, &["n", "input"], (5787801, 5787901))?;
    let Some(n) = field(object, "n") else { bail!(5787906, "Missing value for 'n'") };
    let Some(input) = field(object, "input") else { bail!(5787907, "Missing value for 'input'") };
    let (n, input, name) = (parse_expression(n, scope)?, parse_expression(input, scope)?, name.to_string());
    Ok(Expr::form(move |env| {
        let n = n.eval(env)?;
        let n = count(&name, n.as_ref().map(Value::as_raw_bson_ref))?;
        match input.eval(env)? {
            Some(Value::Array(list)) => Ok(Some(array(pick(owned_items(&list), n, env.context)))),
            _ => bail!(5788200, "Input must be an array"),
        }
    }))
}

/// The `n` of `$firstN` and its relatives.
pub(crate) fn count(name: &str, value: Option<Ref<'_>>) -> Result<usize> {
    match value {
        Some(value) if is_number(value) => match as_integer(value) {
            Some(n) if n > 0 => Ok(usize::try_from(n).unwrap_or(usize::MAX)),
            Some(_) => bail!(5787908, "'n' must be greater than 0, found in {name}"),
            None => bail!(5787903, "Value for 'n' must be of integral type"),
        },
        _ => bail!(5787902, "Value for 'n' must be of integral type"),
    }
}

fn first_n(mut values: Vec<Value>, n: usize, _: &Context<'_>) -> Vec<Value> {
    values.truncate(n);
    values
}

fn last_n(mut values: Vec<Value>, n: usize, _: &Context<'_>) -> Vec<Value> {
    values.drain(..values.len().saturating_sub(n));
    values
}

fn max_n(values: Vec<Value>, n: usize, context: &Context<'_>) -> Vec<Value> {
    sorted_n(values, n, context, Ordering::reverse)
}

fn min_n(values: Vec<Value>, n: usize, context: &Context<'_>) -> Vec<Value> {
    sorted_n(values, n, context, |ordering| ordering)
}

fn sorted_n(
    mut values: Vec<Value>,
    n: usize,
    context: &Context<'_>,
    direction: fn(Ordering) -> Ordering,
) -> Vec<Value> {
    values.retain(|value| !matches!(value, Value::Null | Value::Undefined));
    values.sort_by(|a, b| direction(context.compare(a.as_raw_bson_ref(), b.as_raw_bson_ref())));
    values.truncate(n);
    values
}
