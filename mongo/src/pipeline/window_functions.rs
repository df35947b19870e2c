//! Functions over windows: accumulators, ranks, shifts, slopes, areas, moving averages and gaps filled.

use std::sync::Arc;

use super::accumulators::find;
use super::window::{Bound, Part, Window};
use crate::decimal::Decimal;
use crate::error::{FAILED_TO_PARSE, Result, TYPE_MISMATCH, bail};
use crate::expression::{Env, Expr, Names, Scope, Unit, parse_expression};
use crate::values::{Ref, Value, as_double, as_integer, field, fields, is_nullish, items};

/// Computes a value (or nothing) for every document of a part.
pub(super) type Column = Box<dyn Fn(&Part<'_>) -> Result<Vec<Option<Value>>> + Send + Sync>;

/// The functions that are not accumulators, with what they give.
pub const WINDOW_FUNCTIONS: &[(&str, &str)] = &[
    ("$rank", "the place, with gaps after equals"),
    ("$denseRank", "the place, without gaps"),
    ("$documentNumber", "the place, equals apart"),
    ("$shift", "a value of a document before or after"),
    ("$derivative", "the slope over the window"),
    ("$integral", "the area under the window"),
    ("$expMovingAvg", "the exponential moving average"),
    ("$covariancePop", "covariance of all"),
    ("$covarianceSamp", "covariance of a sample"),
    ("$locf", "the last value that is not null"),
    ("$linearFill", "values on the line between neighbours"),
    ("$minMaxScaler", "the place between the window's extremes"),
];

pub(super) fn parse_function(
    name: &str,
    operand: Ref<'_>,
    window: Option<Window>,
    sorted: bool,
    names: &Names,
) -> Result<Column> {
    let needs_order = |code: i32| {
        if !sorted {
            bail!(code, "{name} requires a sortBy");
        }
        Ok(())
    };
    let no_window = || {
        if window.is_some() {
            bail!(5371601, "{name} does not accept a 'window' field");
        }
        Ok(())
    };
    match name {
        "$rank" | "$denseRank" | "$documentNumber" => {
            match operand {
                Ref::Document(object) if fields(object).next().is_none() => {}
                _ => bail!(5371603, "{name} must be specified with '{{}}' as the value"),
            }
            no_window()?;
            needs_order(5371602)?;
            Ok(rank(name.to_string()))
        }
        "$shift" => {
            needs_order(5371602)?;
            no_window()?;
            shift(operand, names)
        }
        "$derivative" | "$integral" => {
            needs_order(5371602)?;
            let window = window.unwrap_or(Window::WHOLE);
            slope_or_area(name, operand, window, names)
        }
        "$expMovingAvg" => {
            needs_order(5371602)?;
            no_window()?;
            moving_average(operand, names)
        }
        "$covariancePop" | "$covarianceSamp" => {
            covariance(operand, window.unwrap_or(Window::WHOLE), name == "$covarianceSamp", names)
        }
        "$locf" => {
            let input = Arc::new(parse_expression(operand, &mut Scope::new(names))?);
            Ok(locf(input))
        }
        "$linearFill" => {
            needs_order(605001)?;
            let input = Arc::new(parse_expression(operand, &mut Scope::new(names))?);
            Ok(linear_fill(input))
        }
        "$minMaxScaler" => scaler(operand, window.unwrap_or(Window::WHOLE), names),
        _ => {
            let Some(definition) = find(name) else {
                bail!(FAILED_TO_PARSE, "Unrecognized window function, {name}")
            };
            let make = (definition.parse)(name, operand, names)?;
            let window = window.unwrap_or(Window::WHOLE);
            Ok(Box::new(move |part| accumulated(part, &window, &make)))
        }
    }
}

/// An accumulator over each window. A window that only grows is added to, others begin anew.
fn accumulated(
    part: &Part<'_>,
    window: &Window,
    make: &super::accumulators::Maker,
) -> Result<Vec<Option<Value>>> {
    let context = part.run.context;
    let grows = matches!(window, Window::Documents(Bound::Unbounded, _));
    let (mut column, mut running, mut added) = (Vec::new(), make(), 0);
    for at in 0..part.documents.len() {
        let frame = window.frame(part, at)?;
        if grows {
            while added < frame.end {
                if let Some(document) = part.documents.get(added) {
                    running.add(&mut Env::new(document, context))?;
                }
                added += 1;
            }
            column.push(Some(running.value(context)?));
            continue;
        }
        let mut fresh = make();
        for document in part.documents.get(frame).unwrap_or_default() {
            fresh.add(&mut Env::new(document, context))?;
        }
        column.push(Some(fresh.value(context)?));
    }
    Ok(column)
}

fn rank(name: String) -> Column {
    Box::new(move |part| {
        let (mut column, mut rank, mut dense) = (Vec::new(), 0_i64, 0_i64);
        for at in 0..part.documents.len() {
            let same = at > 0
                && part.pattern.zip(part.keys.get(at)).zip(part.keys.get(at - 1)).is_some_and(
                    |((pattern, own), before)| pattern.compare(own, before, part.run.context).is_eq(),
                );
            if !same {
                rank = at as i64 + 1;
                dense += 1;
            }
            let number = match name.as_str() {
                "$rank" => rank,
                "$denseRank" => dense,
                _ => at as i64 + 1,
            };
            column.push(Some(crate::values::integer(number)));
        }
        Ok(column)
    })
}

fn evaluated(part: &Part<'_>, input: &Expr) -> Result<Vec<Option<Value>>> {
    part.documents.iter().map(|document| input.eval(&mut Env::new(document, part.run.context))).collect()
}

fn shift(operand: Ref<'_>, names: &Names) -> Result<Column> {
    let Ref::Document(object) = operand else {
        bail!(FAILED_TO_PARSE, "Argument to $shift must be an object")
    };
    for (name, _) in fields(object) {
        if !["output", "by", "default"].contains(&name) {
            bail!(FAILED_TO_PARSE, "Unknown argument in $shift: {name}");
        }
    }
    let Some(output) = field(object, "output") else {
        bail!(FAILED_TO_PARSE, "$shift requires an 'output' expression.")
    };
    let by = match field(object, "by") {
        None => bail!(FAILED_TO_PARSE, "$shift requires 'by' as an integer value."),
        Some(by) => match as_integer(by) {
            Some(by) => by,
            None => bail!(FAILED_TO_PARSE, "'$shift:by' field must be an integer"),
        },
    };
    let output = parse_expression(output, &mut Scope::new(names))?;
    let default = match field(object, "default") {
        None => Value::Null,
        Some(default) => match parse_expression(default, &mut Scope::new(names))? {
            Expr::Constant(value) => value.unwrap_or(Value::Null),
            _ => bail!(FAILED_TO_PARSE, "'$shift:default' expression must yield a constant value."),
        },
    };
    Ok(Box::new(move |part| {
        let values = evaluated(part, &output)?;
        Ok((0..values.len() as i64)
            .map(|at| match usize::try_from(at.saturating_add(by)).ok().and_then(|place| values.get(place)) {
                Some(Some(value)) => Some(value.clone()),
                _ => Some(default.clone()),
            })
            .collect())
    }))
}

/// A sort value as a number: of dates, in milliseconds.
fn position(part: &Part<'_>, at: usize) -> Option<f64> {
    match part.sort_value(at)? {
        Value::DateTime(date) => Some(date.timestamp_millis() as f64),
        value => as_double(value.as_raw_bson_ref()),
    }
}

fn slope_or_area(name: &str, operand: Ref<'_>, window: Window, names: &Names) -> Result<Column> {
    let Ref::Document(object) = operand else { bail!(FAILED_TO_PARSE, "{name} expects an object") };
    for (key, _) in fields(object) {
        if !["input", "unit"].contains(&key) {
            bail!(FAILED_TO_PARSE, "{name} got unexpected argument: {key}");
        }
    }
    let Some(input) = field(object, "input") else {
        bail!(FAILED_TO_PARSE, "{name} requires an 'input' expression")
    };
    let input = parse_expression(input, &mut Scope::new(names))?;
    let unit = match field(object, "unit") {
        None => None,
        Some(Ref::String(unit)) => match Unit::parse(unit)? {
            Unit::Year | Unit::Quarter | Unit::Month => bail!(5490704, "unit must be 'week' or smaller"),
            unit => Some(unit.millis() as f64),
        },
        Some(_) => bail!(FAILED_TO_PARSE, "'unit' must be a string"),
    };
    let area = name == "$integral";
    Ok(Box::new(move |part| {
        let values = evaluated(part, &input)?;
        let number =
            |at: usize| values.get(at)?.as_ref().and_then(|value| as_double(value.as_raw_bson_ref()));
        for at in 0..part.documents.len() {
            let is_date = matches!(part.sort_value(at), Some(Value::DateTime(_)));
            if is_date && unit.is_none() {
                bail!(5624901, "$derivative and $integral need a 'unit' where the sortBy is a date");
            }
            if !is_date && unit.is_some() {
                bail!(5624900, "$derivative and $integral with 'unit' expect the sortBy field to be a date");
            }
        }
        let scale = unit.unwrap_or(1.0);
        let mut column = Vec::new();
        for at in 0..part.documents.len() {
            let frame = window.frame(part, at)?;
            if area && frame.len() < 2 {
                column.push(Some(Value::Int32(0)));
                continue;
            }
            let value = if area {
                let pairs = frame.clone().zip(frame.clone().skip(1));
                let parts = pairs.map(|(a, b)| {
                    let width = (position(part, b)? - position(part, a)?) / scale;
                    Some((number(a)? + number(b)?) / 2.0 * width)
                });
                parts.collect::<Option<Vec<_>>>().map(|parts| parts.iter().sum())
            } else if frame.len() < 2 {
                None
            } else {
                let (first, last) = (frame.start, frame.end - 1);
                let width = position(part, last).zip(position(part, first)).map(|(b, a)| (b - a) / scale);
                let rise = number(last).zip(number(first)).map(|(b, a)| b - a);
                rise.zip(width).filter(|(_, width)| *width != 0.0).map(|(rise, width)| rise / width)
            };
            column.push(Some(value.map_or(Value::Null, Value::Double)));
        }
        Ok(column)
    }))
}

fn moving_average(operand: Ref<'_>, names: &Names) -> Result<Column> {
    let Ref::Document(object) = operand else {
        bail!(FAILED_TO_PARSE, "$expMovingAvg must have an object argument")
    };
    let Some(input) = field(object, "input") else {
        bail!(FAILED_TO_PARSE, "$expMovingAvg requires 'input'")
    };
    let input = parse_expression(input, &mut Scope::new(names))?;
    let alpha = match (field(object, "N"), field(object, "alpha")) {
        (Some(n), None) => match as_integer(n) {
            Some(n) if n > 0 => Decimal::from_i64(2).divide(Decimal::from_i64(n.saturating_add(1))),
            _ => bail!(FAILED_TO_PARSE, "'N' field must be an integer greater than zero"),
        },
        (None, Some(alpha)) => match as_double(alpha) {
            Some(alpha) if alpha > 0.0 && alpha < 1.0 => Decimal::exactly(alpha),
            _ => bail!(FAILED_TO_PARSE, "'alpha' must be between 0 and 1 (exclusive)"),
        },
        _ => bail!(FAILED_TO_PARSE, "$expMovingAvg requires either 'N' or 'alpha'"),
    };
    let rest = Decimal::from_i64(1).subtract(alpha);
    Ok(Box::new(move |part| {
        let mut average: Option<Decimal> = None;
        let values = evaluated(part, &input)?.into_iter();
        Ok(values
            .map(|value| {
                let number = value.as_ref().and_then(|value| as_double(value.as_raw_bson_ref()));
                if let Some(number) = number.map(Decimal::exactly) {
                    let moved = |average: Decimal| number.multiply(alpha).add(average.multiply(rest));
                    average = Some(average.map_or(number, moved));
                }
                Some(average.map_or(Value::Null, |average| Value::Double(average.to_f64())))
            })
            .collect())
    }))
}

fn covariance(operand: Ref<'_>, window: Window, sample: bool, names: &Names) -> Result<Column> {
    let Ref::Array(list) = operand else {
        bail!(FAILED_TO_PARSE, "covariance takes an array of two expressions")
    };
    let parsed: Vec<_> =
        items(list).map(|item| parse_expression(item, &mut Scope::new(names))).collect::<Result<_>>()?;
    if parsed.len() != 2 {
        bail!(FAILED_TO_PARSE, "covariance takes an array of two expressions");
    }
    Ok(Box::new(move |part| {
        let columns: Vec<_> = parsed.iter().map(|input| evaluated(part, input)).collect::<Result<_>>()?;
        let number = |column: usize, at: usize| {
            columns.get(column)?.get(at)?.as_ref().and_then(|value| as_double(value.as_raw_bson_ref()))
        };
        let mut out = Vec::new();
        for at in 0..part.documents.len() {
            let pairs: Vec<(f64, f64)> =
                window.frame(part, at)?.filter_map(|at| number(0, at).zip(number(1, at))).collect();
            let count = pairs.len() as f64;
            let divisor = if sample { count - 1.0 } else { count };
            // One after the other, as MongoDB does it: the last digit depends on the way.
            let (mut x, mut y, mut sum) = (0.0, 0.0, 0.0);
            for (place, pair) in pairs.iter().enumerate() {
                let (count, far) = ((place + 1) as f64, pair.0 - x);
                x += far / count;
                y += (pair.1 - y) / count;
                sum += far * (pair.1 - y);
            }
            out.push(Some(if divisor > 0.0 { Value::Double(sum / divisor) } else { Value::Null }));
        }
        Ok(out)
    }))
}

pub(super) fn locf(input: Arc<Expr>) -> Column {
    Box::new(move |part| {
        let mut last = Value::Null;
        let values = evaluated(part, &input)?.into_iter();
        Ok(values
            .map(|value| {
                if let Some(value) = value.filter(|value| !is_nullish(Some(value.as_raw_bson_ref()))) {
                    last = value;
                }
                Some(last.clone())
            })
            .collect())
    })
}

pub(super) fn linear_fill(input: Arc<Expr>) -> Column {
    Box::new(move |part| {
        let mut values = evaluated(part, &input)?;
        let mut known: Option<usize> = None;
        for at in 0..values.len() {
            if position(part, at).is_none() {
                bail!(TYPE_MISMATCH, "Value of the sortBy field must be numeric or a date");
            }
            let Some(Some(value)) = values.get(at) else { continue };
            if is_nullish(Some(value.as_raw_bson_ref())) {
                continue;
            }
            if as_double(value.as_raw_bson_ref()).is_none() {
                bail!(TYPE_MISMATCH, "Value to be filled must be numeric or nullish");
            }
            if let Some(before) = known {
                fill_between(part, &mut values, before, at)?;
            }
            known = Some(at);
        }
        Ok(values.into_iter().map(|value| Some(value.unwrap_or(Value::Null))).collect())
    })
}

fn fill_between(part: &Part<'_>, values: &mut [Option<Value>], from: usize, to: usize) -> Result<()> {
    let number = |values: &[Option<Value>], at: usize| {
        values.get(at)?.as_ref().and_then(|value| as_double(value.as_raw_bson_ref()))
    };
    let (Some(a), Some(b)) = (number(values, from), number(values, to)) else { return Ok(()) };
    let (Some(start), Some(end)) = (position(part, from), position(part, to)) else { return Ok(()) };
    if start == end {
        bail!(6050106, "There can be no repeated values in the sort field");
    }
    for at in from + 1..to {
        if let (Some(place), Some(here)) = (values.get_mut(at), position(part, at)) {
            *place = Some(Value::Double(a + (here - start) * (b - a) / (end - start)));
        }
    }
    Ok(())
}

fn scaler(operand: Ref<'_>, window: Window, names: &Names) -> Result<Column> {
    let Ref::Document(object) = operand else { bail!(FAILED_TO_PARSE, "$minMaxScaler expects an object") };
    let Some(input) = field(object, "input") else {
        bail!(FAILED_TO_PARSE, "$minMaxScaler requires an 'input'")
    };
    let input = parse_expression(input, &mut Scope::new(names))?;
    let bound = |name: &str, default: f64| match field(object, name) {
        None => Ok(default),
        Some(value) => match as_double(value) {
            Some(value) => Ok(value),
            None => bail!(FAILED_TO_PARSE, "$minMaxScaler '{name}' must be a number"),
        },
    };
    let (low, high) = (bound("min", 0.0)?, bound("max", 1.0)?);
    if low >= high {
        bail!(FAILED_TO_PARSE, "$minMaxScaler 'min' must be less than 'max'");
    }
    Ok(Box::new(move |part| {
        let values = evaluated(part, &input)?;
        let number =
            |at: usize| values.get(at)?.as_ref().and_then(|value| as_double(value.as_raw_bson_ref()));
        let mut out = Vec::new();
        for at in 0..values.len() {
            let frame: Vec<f64> = window.frame(part, at)?.filter_map(number).collect();
            let (least, most) =
                frame.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, m), v| (l.min(*v), m.max(*v)));
            out.push(Some(match number(at) {
                None => bail!(10487001, "$minMaxScaler needs numbers"),
                Some(_) if most == least => Value::Double(low),
                Some(value) => Value::Double((value - least) / (most - least) * (high - low) + low),
            }));
        }
        Ok(out)
    }))
}
