//! Sums, means, extremes and spreads of the arguments, or of the items of a lone array.

use super::parse::{object_operand, parse_expression};
use super::{Args, Expr, Operator, Out, Scope, form, function};
use crate::error::{BAD_VALUE, Result, TYPE_MISMATCH, bail};
use crate::number::{Number, Sum};
use crate::values::{Ref, Value, array, as_double, field, is_nullish, items};

pub(super) const OPERATORS: &[Operator] = &[
    function("$sum", "sum of the numbers", super::ANY, |args| {
        let mut sum = Sum::default();
        each(args, &mut |value| add(&mut sum, value));
        Ok(Some(sum.total().value()))
    }),
    function("$avg", "mean of the numbers", super::ANY, |args| {
        let mut sum = Sum::default();
        each(args, &mut |value| add(&mut sum, value));
        Ok(Some(sum.mean().map_or(Value::Null, Number::value)))
    }),
    function("$min", "the smallest", super::ANY, |args| extreme(args, |ordering| ordering.is_lt())),
    function("$max", "the largest", super::ANY, |args| extreme(args, |ordering| ordering.is_gt())),
    function("$stdDevPop", "standard deviation of all", super::ANY, |args| deviation(args, false)),
    function("$stdDevSamp", "standard deviation of a sample", super::ANY, |args| deviation(args, true)),
    form("$median", "the middle value", percentile),
    form("$percentile", "values at shares of the order", |name, operand, scope| {
        percentile(name, operand, scope)
    }),
];

/// A lone array argument stands for its items.
fn each(args: &Args<'_>, visit: &mut dyn FnMut(Ref<'_>)) {
    match (args.len(), args.at(0)) {
        (1, Some(Ref::Array(list))) => items(list).for_each(visit),
        _ => args.iter().flatten().for_each(visit),
    }
}

fn add(sum: &mut Sum, value: Ref<'_>) {
    if let Some(number) = Number::of(value) {
        sum.add(number);
    }
}

fn extreme(args: &Args<'_>, better: fn(std::cmp::Ordering) -> bool) -> Result<Out> {
    let mut best: Option<Value> = None;
    each(args, &mut |value| {
        if is_nullish(Some(value)) {
            return;
        }
        let wins =
            best.as_ref().is_none_or(|best| better(args.context.compare(value, best.as_raw_bson_ref())));
        if wins {
            best = Some(value.into());
        }
    });
    Ok(Some(best.unwrap_or(Value::Null)))
}

fn deviation(args: &Args<'_>, sample: bool) -> Result<Out> {
    let mut numbers = Vec::new();
    each(args, &mut |value| numbers.extend(as_double(value)));
    Ok(Some(standard_deviation(&numbers, sample).map_or(Value::Null, Value::Double)))
}

/// The standard deviation, by Welford's method; none of too few numbers.
pub(crate) fn standard_deviation(numbers: &[f64], sample: bool) -> Option<f64> {
    let (mut mean, mut squares, mut count) = (0.0, 0.0, 0.0);
    for number in numbers {
        count += 1.0;
        let delta = number - mean;
        mean += delta / count;
        squares += delta * (number - mean);
    }
    let divisor = if sample { count - 1.0 } else { count };
    (divisor > 0.0).then(|| (squares / divisor).sqrt())
}

/// The shares asked for.
pub(crate) fn shares(name: &str, object: &bson::RawDocument) -> Result<Vec<f64>> {
    match field(object, "method") {
        Some(Ref::String("approximate")) => {}
        Some(Ref::String(method)) => {
            bail!(
                BAD_VALUE,
                "Currently only 'approximate' can be used as percentile 'method', not '{method}'."
            )
        }
        Some(_) => bail!(TYPE_MISMATCH, "'method' must be a string"),
        None => bail!(40414, "BSON field '{name}.method' is missing but a required field"),
    }
    if name == "$median" {
        return Ok(vec![0.5]);
    }
    let Some(Ref::Array(list)) = field(object, "p") else {
        bail!(7750301, "The {name} 'p' field must be an array of numbers from [0.0, 1.0]");
    };
    let mut shares = Vec::new();
    for item in items(list) {
        match as_double(item) {
            Some(share) if (0.0..=1.0).contains(&share) => shares.push(share),
            Some(_) => bail!(7750303, "The {name} 'p' field must be an array of numbers from [0.0, 1.0]"),
            None => bail!(7750302, "The {name} 'p' field must be an array of numbers from [0.0, 1.0]"),
        }
    }
    if shares.is_empty() {
        bail!(7750301, "The {name} 'p' field cannot be empty");
    }
    Ok(shares)
}

/// The numbers at these shares of the order: the discrete percentile.
pub(crate) fn percentile_of(numbers: &mut [f64], share: f64) -> Value {
    numbers.sort_by(f64::total_cmp);
    let rank = (share * numbers.len() as f64).ceil().max(1.0) as usize - 1;
    numbers
        .get(rank.min(numbers.len().saturating_sub(1)))
        .map_or(Value::Null, |number| Value::Double(*number))
}

fn percentile(name: &str, operand: Ref<'_>, scope: &mut Scope) -> Result<Expr> {
    let known: &[&str] = if name == "$median" { &["input", "method"] } else { &["input", "p", "method"] };
    let object = object_operand(name, operand, known, (7436100, 40415))?;
    let shares = shares(name, object)?;
    let Some(input) = field(object, "input") else {
        bail!(40414, "BSON field '{name}.input' is missing but a required field")
    };
    let (input, single) = (parse_expression(input, scope)?, name == "$median");
    Ok(Expr::form(move |env| {
        let mut numbers: Vec<f64> = match input.eval(env)? {
            Some(Value::Array(list)) => items(&list).filter_map(as_double).collect(),
            Some(value) => as_double(value.as_raw_bson_ref()).into_iter().collect(),
            None => Vec::new(),
        };
        numbers.retain(|number| !number.is_nan());
        let mut found = shares.iter().map(|share| percentile_of(&mut numbers, *share));
        Ok(if single { found.next() } else { Some(array(found)) })
    }))
}
