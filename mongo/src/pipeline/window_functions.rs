//! Functions over windows: accumulators, ranks, shifts, slopes, areas, moving averages and gaps filled.

use std::sync::Arc;

use super::accumulators::find;
use super::window::{Bound, Part, Window};
use crate::decimal::Decimal;
use crate::error::{FAILED_TO_PARSE, MISSING_FIELD, Result, TYPE_MISMATCH, bail};
use crate::expression::{Env, Expr, Names, Scope, Unit, parse_expression};
use crate::number::{Number, Sum};
use crate::values::{Ref, Value, as_integer, field, fields, is_nullish, items, type_name};

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
    sort_fields: Option<usize>,
    names: &Names,
) -> Result<Column> {
    let needs_order = |code: i32| {
        if sort_fields.is_none() {
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
    let not_allowed = || {
        if window.is_some() {
            bail!(FAILED_TO_PARSE, "'window' field is not allowed in {name}");
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
            if sort_fields != Some(1) {
                bail!(
                    5371602,
                    "{name} must be specified with a top level sortBy expression with exactly one element"
                );
            }
            Ok(rank(name.to_string()))
        }
        "$shift" => {
            needs_order(5371602)?;
            no_window()?;
            shift(operand, names)
        }
        "$derivative" | "$integral" => {
            needs_order(FAILED_TO_PARSE)?;
            if sort_fields != Some(1) {
                bail!(FAILED_TO_PARSE, "{name} requires a non-compound sortBy");
            }
            if name == "$derivative" && window.is_none() {
                bail!(FAILED_TO_PARSE, "$derivative requires explicit window bounds");
            }
            slope_or_area(name, operand, window.unwrap_or(Window::WHOLE), names)
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
            not_allowed()?;
            let input = Arc::new(parse_expression(operand, &mut Scope::new(names))?);
            Ok(locf(input))
        }
        "$linearFill" => {
            not_allowed()?;
            if sort_fields != Some(1) {
                bail!(
                    605001,
                    "$linearFill must be specified with a top level sortBy expression with exactly one element"
                );
            }
            let input = Arc::new(parse_expression(operand, &mut Scope::new(names))?);
            Ok(linear_fill(input))
        }
        "$minMaxScaler" => scaler(operand, window.unwrap_or(Window::WHOLE), names),
        _ => {
            let Some(definition) = find(name).filter(|_| name != "$mergeObjects") else {
                bail!(FAILED_TO_PARSE, "Unrecognized window function, {name}")
            };
            let make = (definition.parse)(name, operand, names)?;
            let window = window.unwrap_or(Window::WHOLE);
            let is_deviation = name.starts_with("$stdDev");
            Ok(Box::new(move |part| accumulated(part, &window, &make, is_deviation)))
        }
    }
}

/// An accumulator over each window. A window that only grows is added to, others begin anew. Where one moves, a deviation
/// that is no number is null, as in MongoDB.
fn accumulated(
    part: &Part<'_>,
    window: &Window,
    make: &super::accumulators::Maker,
    is_deviation: bool,
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
        column.push(Some(match fresh.value(context)? {
            Value::Double(number) if is_deviation && number.is_nan() => Value::Null,
            value => value,
        }));
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
            Unit::Year | Unit::Quarter | Unit::Month => bail!(5490710, "unit must be 'week' or smaller"),
            unit => Some(Number::Long(unit.millis())),
        },
        Some(_) => bail!(FAILED_TO_PARSE, "'unit' must be a string"),
    };
    let compute = if name == "$integral" { area } else { slope };
    Ok(Box::new(move |part| {
        let values = evaluated(part, &input)?;
        let frames = (0..part.documents.len()).map(|at| window.frame(part, at));
        frames
            .map(|frame| {
                let frame = frame?;
                let points: Vec<_> = frame.map(|at| (part.sort_value(at), values.get(at))).collect();
                let points = points.into_iter().map(|(x, y)| (x, y.and_then(Option::as_ref)));
                compute(&points.collect::<Vec<_>>(), unit).map(Some)
            })
            .collect()
    }))
}

/// Where a document stands in the order, and its value.
type Point<'a> = (Option<&'a Value>, Option<&'a Value>);

/// How far two values are apart, of numbers or of dates.
fn apart(to: &Value, from: &Value) -> Result<Number> {
    let numbers = Number::of(to.as_raw_bson_ref()).zip(Number::of(from.as_raw_bson_ref()));
    match (to, from, numbers) {
        (_, _, Some((to, from))) => Ok(to.subtract(from)),
        (Value::DateTime(to), Value::DateTime(from), _) => {
            match to.timestamp_millis().checked_sub(from.timestamp_millis()) {
                Some(millis) => Ok(Number::Long(millis)),
                None => bail!(15, "overflow in $subtract"),
            }
        }
        _ => bail!(
            TYPE_MISMATCH,
            "can't $subtract {} from {}",
            type_name(from.as_raw_bson_ref()),
            type_name(to.as_raw_bson_ref())
        ),
    }
}

/// The slope from the first point of a window to its last.
fn slope(points: &[Point<'_>], unit: Option<Number>) -> Result<Value> {
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return Ok(Value::Null) };
    let is_date = |point: &Point<'_>| matches!(point.0, Some(Value::DateTime(_)));
    let is_number = |point: &Point<'_>| point.0.is_some_and(|x| Number::of(x.as_raw_bson_ref()).is_some());
    match unit {
        Some(_) if !is_date(first) || !is_date(last) => {
            bail!(5624900, "$derivative with 'unit' expects the sortBy field to be a Date")
        }
        None if is_date(first) || is_date(last) => {
            bail!(5624901, "$derivative where the sortBy is a Date requires an 'unit'")
        }
        None if !is_number(first) || !is_number(last) => {
            bail!(5624902, "$derivative (with no 'unit') expects the sortBy field to be numeric")
        }
        _ => {}
    }
    let known = |value: Option<&Value>| is_nullish(value.map(Value::as_raw_bson_ref));
    let (Some(low), Some(high), false, false) = (first.1, last.1, known(first.1), known(last.1)) else {
        bail!(5624903, "$derivative input must not be null or missing")
    };
    let (Some(from), Some(to)) = (first.0, last.0) else { return Ok(Value::Null) };
    let (rise, width) = (apart(high, low)?, apart(to, from)?);
    if width.is_zero() {
        return Ok(Value::Null);
    }
    let slope = rise.divide(width);
    Ok(unit.map_or(slope, |unit| slope.multiply(unit)).value())
}

/// The area under the points of a window.
fn area(points: &[Point<'_>], unit: Option<Number>) -> Result<Value> {
    let mut known = Vec::new();
    for (x, y) in points {
        let y = y.and_then(|y| Number::of(y.as_raw_bson_ref()));
        let is_place =
            |x: &&Value| matches!(x, Value::DateTime(_)) || Number::of(x.as_raw_bson_ref()).is_some();
        let (Some(x), Some(y)) = (x.filter(is_place), y) else {
            bail!(
                5423900,
                "The input value of $integral window function must be a vector of 2 value, the first value must be numeric \
                 or date type and the second must be numeric."
            )
        };
        match (x, unit) {
            (Value::DateTime(_), Some(_)) => {}
            (_, Some(_)) => bail!(5423901, "$integral with 'unit' expects the sortBy field to be a Date"),
            (Value::DateTime(_), None) => {
                bail!(5423902, "$integral (with no 'unit') expects the sortBy field to be numeric")
            }
            _ => {}
        }
        known.push((x, y));
    }
    if known.is_empty() {
        return Ok(Value::Null);
    }
    let mut sum = Sum::default();
    for ((from, low), (to, high)) in known.iter().zip(known.iter().skip(1)) {
        let mut ends = Sum::default();
        ends.add(*low);
        ends.add(*high);
        sum.add(ends.total().multiply(apart(to, from)?).divide(Number::Int(2)));
    }
    Ok(unit.map_or(sum.total(), |unit| sum.total().divide(unit)).value())
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
        (None, Some(alpha)) => match Number::of(alpha).map(|alpha| (alpha.to_f64(), alpha.to_decimal())) {
            Some((near, alpha)) if near > 0.0 && near < 1.0 => alpha,
            _ => bail!(FAILED_TO_PARSE, "'alpha' must be between 0 and 1 (exclusive)"),
        },
        _ => bail!(FAILED_TO_PARSE, "$expMovingAvg requires either 'N' or 'alpha'"),
    };
    let rest = Decimal::from_i64(1).subtract(alpha);
    Ok(Box::new(move |part| {
        // Calculated with decimals throughout; told as one from the first that is met.
        let (mut average, mut is_decimal): (Option<Decimal>, _) = (None, false);
        let values = evaluated(part, &input)?.into_iter();
        Ok(values
            .map(|value| {
                if let Some(number) = value.as_ref().and_then(|value| Number::of(value.as_raw_bson_ref())) {
                    is_decimal |= matches!(number, Number::Decimal(_));
                    let number = number.to_decimal();
                    let moved = |average: Decimal| number.multiply(alpha).add(average.multiply(rest));
                    average = Some(average.map_or(number, moved));
                }
                Some(match average {
                    None => Value::Null,
                    Some(average) if is_decimal => Number::Decimal(average).value(),
                    Some(average) => Value::Double(average.to_f64()),
                })
            })
            .collect())
    }))
}

fn covariance(operand: Ref<'_>, window: Window, sample: bool, names: &Names) -> Result<Column> {
    let input = parse_expression(operand, &mut Scope::new(names))?;
    Ok(Box::new(move |part| {
        let pair = |value: Option<Value>| {
            let Some(Value::Array(list)) = value else { return None };
            match items(&list).map(Number::of).collect::<Vec<_>>().as_slice() {
                [Some(x), Some(y)] => Some((*x, *y)),
                _ => None,
            }
        };
        let pairs: Vec<_> = evaluated(part, &input)?.into_iter().map(pair).collect();
        let mut out = Vec::new();
        for at in 0..part.documents.len() {
            let seen = pairs.get(window.frame(part, at)?).unwrap_or_default().iter().flatten();
            out.push(Some(covariance_of(seen, sample)));
        }
        Ok(out)
    }))
}

/// The covariance of pairs, one after the other, as MongoDB does it: the last digit depends on the way.
fn covariance_of<'a>(pairs: impl Iterator<Item = &'a (Number, Number)>, sample: bool) -> Value {
    let (mut x, mut y, mut sum, mut endless) = (Sum::default(), Sum::default(), Sum::default(), false);
    for (a, b) in pairs {
        if !a.to_f64().is_finite() || !b.to_f64().is_finite() {
            endless = true;
            continue;
        }
        let far = a.subtract(x.mean().unwrap_or(Number::Int(0)));
        x.add(*a);
        y.add(*b);
        sum.add(far.multiply(b.subtract(y.mean().unwrap_or(Number::Int(0)))));
    }
    match (sum.count, sample) {
        (0, _) | (1, true) => Value::Null,
        (1, false) => Value::Double(0.0),
        _ if endless => Value::Double(f64::NAN),
        (count, _) => sum.total().divide(Number::Long(count - i64::from(sample))).value(),
    }
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
        let mut dates: Option<bool> = None;
        for at in 0..values.len() {
            let is_date = match part.sort_value(at) {
                Some(Value::DateTime(_)) => true,
                Some(value) if Number::of(value.as_raw_bson_ref()).is_some() => false,
                other => bail!(
                    TYPE_MISMATCH,
                    "Value of the sortBy field must be numeric or a date, but found {}",
                    other.map_or("missing", |value| type_name(value.as_raw_bson_ref()))
                ),
            };
            if *dates.get_or_insert(is_date) != is_date {
                bail!(TYPE_MISMATCH, "Conflicting sort value types: numbers and dates");
            }
            let Some(Some(value)) = values.get(at) else { continue };
            let value = value.as_raw_bson_ref();
            if is_nullish(Some(value)) {
                continue;
            }
            if Number::of(value).is_none() {
                bail!(
                    TYPE_MISMATCH,
                    "Value to be filled must be numeric or nullish, but found {}",
                    type_name(value)
                );
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
        values.get(at)?.as_ref().and_then(|value| Number::of(value.as_raw_bson_ref()))
    };
    let (Some(low), Some(high)) = (number(values, from), number(values, to)) else { return Ok(()) };
    let (Some(start), Some(end)) = (part.sort_value(from), part.sort_value(to)) else { return Ok(()) };
    let width = apart(end, start)?;
    if width.is_zero() {
        bail!(6050106, "There can be no repeated values in the sort field");
    }
    let slope = high.subtract(low).divide(width);
    for at in from + 1..to {
        if let (Some(place), Some(here)) = (values.get_mut(at), part.sort_value(at)) {
            *place = Some(low.add(apart(here, start)?.multiply(slope)).value());
        }
    }
    Ok(())
}

/// What `$minMaxScaler` is told.
const SCALER_OPTIONS: [&str; 3] = ["input", "min", "max"];

fn scaler(operand: Ref<'_>, window: Window, names: &Names) -> Result<Column> {
    let Ref::Document(object) = operand else { bail!(TYPE_MISMATCH, "$minMaxScaler expects an object") };
    if let Some((name, _)) = fields(object).find(|(name, _)| !SCALER_OPTIONS.contains(name)) {
        bail!(40415, "BSON field 'root.$minMaxScaler.{name}' is an unknown field.");
    }
    let Some(input) = field(object, "input") else {
        bail!(MISSING_FIELD, "BSON field 'root.$minMaxScaler.input' is missing but a required field")
    };
    let input = parse_expression(input, &mut Scope::new(names))?;
    let bound = |value: Ref<'_>| match Number::of(value) {
        Some(number) => Ok(number),
        None => bail!(FAILED_TO_PARSE, "'min' and 'max' of $minMaxScaler must be of a numeric type"),
    };
    let (low, high) = match (field(object, "min"), field(object, "max")) {
        (None, None) => (Number::Int(0), Number::Int(1)),
        (Some(low), Some(high)) => (bound(low)?, bound(high)?),
        _ => bail!(
            FAILED_TO_PARSE,
            "Only one of 'min' and 'max' were specified as an argument to $minMaxScaler. Neither or both must be specified"
        ),
    };
    if low.to_f64() >= high.to_f64() {
        bail!(
            FAILED_TO_PARSE,
            "the 'max' must be strictly greater than 'min', as arguments to $minMaxScaler"
        );
    }
    if !window.has_current() {
        bail!(FAILED_TO_PARSE, "the window of $minMaxScaler must have the current document in it");
    }
    let span = high.subtract(low);
    Ok(Box::new(move |part| {
        let values = evaluated(part, &input)?;
        let number = |at: usize| {
            let value = values.get(at).and_then(Option::as_ref);
            match value.and_then(|value| Number::of(value.as_raw_bson_ref())) {
                Some(number) => Ok(number),
                None => bail!(
                    10487001,
                    "'input' argument to $minMaxScaler must evaluate to a numeric type, got: {}",
                    value.map_or("missing", |value| type_name(value.as_raw_bson_ref()))
                ),
            }
        };
        let order = |a: &Number, b: &Number| {
            part.run.context.compare(a.value().as_raw_bson_ref(), b.value().as_raw_bson_ref())
        };
        let mut out = Vec::new();
        for at in 0..values.len() {
            let seen = window.frame(part, at)?.map(number).collect::<Result<Vec<_>>>()?;
            let value = number(at)?;
            let least = seen.iter().copied().min_by(order).unwrap_or(value);
            let most = seen.iter().copied().max_by(order).unwrap_or(value);
            let width = most.subtract(least);
            out.push(Some(match width.is_zero() {
                true => low.value(),
                false => value.subtract(least).divide(width).multiply(span).add(low).value(),
            }));
        }
        Ok(out)
    }))
}
