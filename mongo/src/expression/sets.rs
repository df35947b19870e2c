//! Arrays as sets: order and repetition do not count.

use std::collections::BTreeSet;

use super::{ANY, Args, Operator, Out, function};
use crate::collation::Ordered;
use crate::error::{Result, bail};
use crate::values::{Ref, Value, array, is_nullish, is_truthy, items, type_name_opt};

pub(super) const OPERATORS: &[Operator] = &[
    function("$setEquals", "the same items", ANY, equals),
    function("$setIntersection", "items of all", ANY, intersection),
    function("$setUnion", "items of any", ANY, union),
    function("$setDifference", "items of the first only", (2, 2), difference),
    function("$setIsSubset", "all items of the first are in the second", (2, 2), is_subset),
    function("$allElementsTrue", "no item is false", (1, 1), |args| {
        quantified("$allElementsTrue", 17040, args)
    }),
    function("$anyElementTrue", "some item is true", (1, 1), |args| {
        quantified("$anyElementTrue", 17041, args)
    }),
];

type Set<'a> = BTreeSet<Ordered<'a>>;

fn list<'a>(name: &str, code: i32, value: Option<Ref<'a>>) -> Result<Vec<Ref<'a>>> {
    match value {
        Some(Ref::Array(list)) => Ok(items(list).collect()),
        other => bail!(
            code,
            "All operands of {name} must be arrays. One argument is of type: {}",
            type_name_opt(other)
        ),
    }
}

fn set<'a>(args: &Args<'a>, items: &[Ref<'_>]) -> Set<'a> {
    items.iter().map(|item| Ordered((*item).into(), args.context.collation)).collect()
}

fn values(set: Set<'_>) -> Result<Out> {
    Ok(Some(array(set.into_iter().map(|item| item.0))))
}

fn null() -> Result<Out> {
    Ok(Some(Value::Null))
}

fn equals(args: &Args<'_>) -> Result<Out> {
    if args.len() < 2 {
        bail!(17045, "$setEquals needs at least two arguments had: {}", args.len());
    }
    let mut sets = Vec::new();
    for (at, value) in args.iter().enumerate() {
        let code = if at == 0 { 17044 } else { 5887502 };
        sets.push(set(args, &list("$setEquals", code, value)?));
    }
    Ok(Some(Value::Boolean(sets.windows(2).all(|pair| pair.first() == pair.last()))))
}

fn intersection(args: &Args<'_>) -> Result<Out> {
    let mut result: Option<Set<'_>> = None;
    for value in args.iter() {
        if is_nullish(value) {
            return null();
        }
        let next = set(args, &list("$setIntersection", 17047, value)?);
        result = Some(match result {
            None => next,
            Some(found) => found.into_iter().filter(|item| next.contains(item)).collect(),
        });
    }
    values(result.unwrap_or_default())
}

fn union(args: &Args<'_>) -> Result<Out> {
    let mut result = Set::new();
    for value in args.iter() {
        if is_nullish(value) {
            return null();
        }
        let next = list("$setUnion", 17043, value)?;
        result.extend(next.into_iter().map(|item| Ordered(item.into(), args.context.collation)));
    }
    values(result)
}

fn difference(args: &Args<'_>) -> Result<Out> {
    if is_nullish(args.at(0)) || is_nullish(args.at(1)) {
        return null();
    }
    let first = list("$setDifference", 17048, args.at(0))?;
    let mut seen = set(args, &list("$setDifference", 17049, args.at(1))?);
    // In the order of the first array.
    let kept = first.into_iter().filter(|item| seen.insert(Ordered((*item).into(), args.context.collation)));
    Ok(Some(array(kept.map(Value::from))))
}

fn is_subset(args: &Args<'_>) -> Result<Out> {
    let first = set(args, &list("$setIsSubset", 17046, args.at(0))?);
    let second = set(args, &list("$setIsSubset", 17042, args.at(1))?);
    Ok(Some(Value::Boolean(first.is_subset(&second))))
}

fn quantified(name: &str, code: i32, args: &Args<'_>) -> Result<Out> {
    let Some(Ref::Array(found)) = args.at(0) else {
        bail!(code, "{name}'s argument must be an array, but is {}", type_name_opt(args.at(0)));
    };
    let mut truths = items(found).map(|item| is_truthy(Some(item)));
    Ok(Some(Value::Boolean(if name == "$allElementsTrue" { truths.all(|t| t) } else { truths.any(|t| t) })))
}
