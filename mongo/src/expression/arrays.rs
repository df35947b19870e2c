//! Items of arrays: by place, by value, and how many.

use super::{Args, Operator, Out, function};
use crate::error::{Result, bail};
use crate::values::{
    Ref, Value, array, as_integer, is_nullish, is_number, items, show, type_name, type_name_opt,
};

pub(super) const OPERATORS: &[Operator] = &[
    function("$arrayElemAt", "the item at a place, from the end if negative", (2, 2), elem_at),
    function("$concatArrays", "arrays one after the other", super::ANY, concat),
    function("$first", "the first item", (1, 1), |args| end("$first", args, |list| list.next())),
    function("$last", "the last item", (1, 1), |args| end("$last", args, |list| list.last())),
    function("$in", "whether an array has a value", (2, 2), contains),
    function("$indexOfArray", "the place of a value", (2, 4), index_of),
    function("$isArray", "whether it is an array", (1, 1), |args| {
        Ok(Some(Value::Boolean(matches!(args.at(0), Some(Ref::Array(_))))))
    }),
    function("$reverseArray", "the other way round", (1, 1), reverse),
    function("$size", "how many items", (1, 1), size),
    function("$slice", "a part of an array", (2, 3), slice),
];

fn null() -> Result<Out> {
    Ok(Some(Value::Null))
}

/// A whole number of 32 bits.
pub(super) fn int32(value: Ref<'_>) -> Option<i64> {
    as_integer(value).filter(|value| i32::try_from(*value).is_ok())
}

fn elem_at(args: &Args<'_>) -> Result<Out> {
    let (list, place) = (args.at(0), args.at(1));
    if is_nullish(list) || is_nullish(place) {
        return null();
    }
    let Some(Ref::Array(list)) = list else {
        bail!(28689, "$arrayElemAt's first argument must be an array, but is {}", type_name_opt(list));
    };
    let place = match place {
        Some(value) if is_number(value) => match int32(value) {
            Some(place) => place,
            None => bail!(
                28691,
                "$arrayElemAt's second argument must be representable as a 32-bit integer: {}",
                show(value)
            ),
        },
        other => bail!(
            28690,
            "$arrayElemAt's second argument must be a numeric value, but is {}",
            type_name_opt(other)
        ),
    };
    let place = match usize::try_from(place) {
        Ok(place) => Some(place),
        Err(_) => items(list).count().checked_sub(place.unsigned_abs() as usize),
    };
    Ok(place.and_then(|place| items(list).nth(place)).map(Value::from))
}

fn end(
    name: &str,
    args: &Args<'_>,
    take: for<'i> fn(&mut dyn Iterator<Item = Ref<'i>>) -> Option<Ref<'i>>,
) -> Result<Out> {
    match args.at(0) {
        value if is_nullish(value) => null(),
        Some(Ref::Array(list)) => Ok(take(&mut items(list)).map(Value::from)),
        other => bail!(28689, "{name}'s argument must be an array, but is {}", type_name_opt(other)),
    }
}

fn concat(args: &Args<'_>) -> Result<Out> {
    let mut all = Vec::new();
    for value in args.iter() {
        match value {
            value if is_nullish(value) => return null(),
            Some(Ref::Array(list)) => all.extend(items(list).map(Value::from)),
            other => bail!(28664, "$concatArrays only supports arrays, not {}", type_name_opt(other)),
        }
    }
    Ok(Some(array(all)))
}

fn contains(args: &Args<'_>) -> Result<Out> {
    let Some(Ref::Array(list)) = args.at(1) else {
        bail!(40081, "$in requires an array as a second argument, found: {}", type_name_opt(args.at(1)));
    };
    let wanted = args.at(0).unwrap_or(Ref::Undefined);
    Ok(Some(Value::Boolean(items(list).any(|item| args.context.equal(item, wanted)))))
}

/// A place to start or end at: a whole number that is not negative.
pub(super) fn bound(name: &str, which: &str, value: Option<Ref<'_>>) -> Result<usize> {
    let Some(place) = value.and_then(int32) else {
        bail!(
            if name == "$indexOfArray" { 9711600 } else { 40096 },
            "{name} requires an integral {which} index, found a value of type: {}",
            type_name_opt(value)
        );
    };
    match usize::try_from(place) {
        Ok(place) => Ok(place),
        Err(_) if name == "$indexOfArray" => {
            bail!(9711601, "{name} requires a nonnegative {which} index, found: {place}")
        }
        Err(_) => bail!(40097, "{name} requires a nonnegative {which} index, found: {place}"),
    }
}

fn index_of(args: &Args<'_>) -> Result<Out> {
    let list = match args.at(0) {
        value if is_nullish(value) => return null(),
        Some(Ref::Array(list)) => list,
        other => bail!(
            40090,
            "$indexOfArray requires an array as a first argument, found: {}",
            type_name_opt(other)
        ),
    };
    let start = if args.len() > 2 { bound("$indexOfArray", "starting", args.at(2))? } else { 0 };
    let end = if args.len() > 3 { bound("$indexOfArray", "ending", args.at(3))? } else { usize::MAX };
    let wanted = args.at(1).unwrap_or(Ref::Undefined);
    let mut places = items(list).enumerate().skip(start).take_while(|(at, _)| *at < end);
    let found = places.find(|(_, item)| args.context.equal(*item, wanted)).map_or(-1, |(at, _)| at as i32);
    Ok(Some(Value::Int32(found)))
}

fn reverse(args: &Args<'_>) -> Result<Out> {
    match args.at(0) {
        value if is_nullish(value) => null(),
        Some(Ref::Array(list)) => {
            let mut all: Vec<_> = items(list).map(Value::from).collect();
            all.reverse();
            Ok(Some(array(all)))
        }
        other => bail!(
            34435,
            "The argument to $reverseArray must be an array, but was of type: {}",
            type_name_opt(other)
        ),
    }
}

fn size(args: &Args<'_>) -> Result<Out> {
    match args.at(0) {
        Some(Ref::Array(list)) => Ok(Some(Value::Int32(items(list).count() as i32))),
        other => {
            bail!(17124, "The argument to $size must be an array, but was of type: {}", type_name_opt(other))
        }
    }
}

fn slice(args: &Args<'_>) -> Result<Out> {
    if args.iter().any(is_nullish) {
        return null();
    }
    let Some(Ref::Array(list)) = args.at(0) else {
        bail!(
            28724,
            "First argument to $slice must be an array, but is of type: {}",
            type_name_opt(args.at(0))
        );
    };
    let integer = |value: Option<Ref<'_>>, codes: (i32, i32), which: &str| match value {
        Some(value) if is_number(value) => match int32(value) {
            Some(value) => Ok(value),
            None => bail!(
                codes.1,
                "{which} argument to $slice can't be represented as a 32-bit integer: {}",
                show(value)
            ),
        },
        other => bail!(
            codes.0,
            "{which} argument to $slice must be numeric, but is of type: {}",
            type_name_opt(other)
        ),
    };
    let all: Vec<_> = items(list).collect();
    let length = all.len() as i64;
    let second = integer(args.at(1), (28725, 28726), "Second")?;
    let (from, count) = if args.len() == 2 {
        if second >= 0 { (0, second) } else { ((length + second).max(0), -second) }
    } else {
        let count = integer(args.at(2), (28727, 28728), "Third")?;
        if count <= 0 {
            bail!(28729, "Third argument to $slice must be positive: {count}");
        }
        (if second >= 0 { second } else { (length + second).max(0) }, count)
    };
    let part = all.into_iter().skip(from as usize).take(count as usize);
    Ok(Some(array(part.map(Value::from))))
}

/// For messages that name a type.
pub(super) fn type_of(value: Option<Ref<'_>>) -> &'static str {
    value.map_or("missing", type_name)
}
