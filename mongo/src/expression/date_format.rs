//! Dates as text, by formats of percent signs, and text as dates.

use bson::Timestamp;

use super::date_parse::{parse_format, parse_free};
use super::dates::{ZoneExpr, date, eval_millis};
use super::parse::{object_operand, parse_expression};
use super::{Env, Expr, Operator, Out, Scope, form};
use crate::calendar::{Moment, Zone, format_offset};
use crate::error::{CONVERSION_FAILURE, Result, bail};
use crate::values::{Ref, Value, field, type_name};

pub(super) const OPERATORS: &[Operator] = &[
    form("$dateToString", "a date as text", to_string),
    form("$dateFromString", "a date of text", from_string),
];

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// `2024-01-31T12:00:00.000Z`.
pub(crate) fn iso(millis: i64) -> Result<String> {
    format(millis, "%Y-%m-%dT%H:%M:%S.%LZ", &Zone::UTC)
}

/// How a timestamp becomes text.
pub(super) fn stamp(value: Timestamp) -> Result<String> {
    let millis = i64::from(value.time) * 1000;
    let part = |pattern| format(millis, pattern, &Zone::UTC);
    let day = part("%d")?;
    let day = day.trim_start_matches('0');
    Ok(format!("{} {day:>2} {}:{}", part("%b")?, part("%H:%M:%S")?, value.increment))
}

/// Writes a date by a format.
pub(crate) fn format(millis: i64, pattern: &str, zone: &Zone) -> Result<String> {
    let moment = Moment::of(millis, zone);
    let mut text = String::new();
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            text.push(letter);
            continue;
        }
        let Some(directive) = letters.next() else { bail!(18535, "Unmatched '%' at end of format string") };
        let month = MONTHS.get(moment.month as usize - 1).copied().unwrap_or_default();
        match directive {
            '%' => text.push('%'),
            'Y' | 'G' => {
                let year = if directive == 'Y' { moment.year } else { moment.iso_week().0 };
                if !(0..=9999).contains(&year) {
                    bail!(
                        18537,
                        "Could not convert date to string: date component was outside the supported range of 0-9999: {year}"
                    );
                }
                text += &format!("{year:04}");
            }
            'm' => text += &format!("{:02}", moment.month),
            'd' => text += &format!("{:02}", moment.day),
            'H' => text += &format!("{:02}", moment.hour),
            'M' => text += &format!("{:02}", moment.minute),
            'S' => text += &format!("{:02}", moment.second),
            'L' => text += &format!("{:03}", moment.milli),
            'j' => text += &format!("{:03}", moment.day_of_year()),
            'w' => text += &moment.day_of_week().to_string(),
            'u' => text += &moment.iso_day_of_week().to_string(),
            'U' => text += &format!("{:02}", moment.week()),
            'V' => text += &format!("{:02}", moment.iso_week().1),
            'b' => text += month.get(..3).unwrap_or_default(),
            'B' => text += month,
            'z' => text += &format_offset(zone.offset_at(millis), ""),
            'Z' => text += &(zone.offset_at(millis) / 60).to_string(),
            other => bail!(18536, "Invalid format character '%{other}' in format string"),
        }
    }
    Ok(text)
}

fn to_string(name: &str, operand: Ref<'_>, scope: &mut Scope) -> Result<Expr> {
    let object = object_operand(name, operand, &["date", "format", "timezone", "onNull"], (18629, 18534))?;
    let Some(input) = field(object, "date") else {
        bail!(18628, "Missing 'date' parameter to $dateToString")
    };
    let input = parse_expression(input, scope)?;
    let pattern = field(object, "format").map(|format| parse_expression(format, scope)).transpose()?;
    if let Some(Expr::Constant(Some(Value::String(pattern)))) = &pattern {
        format(0, pattern, &Zone::UTC)?;
    }
    let zoned = field(object, "timezone").is_some();
    let zone = ZoneExpr::parse(object, scope)?;
    let on_null = field(object, "onNull").map(|on_null| parse_expression(on_null, scope)).transpose()?;
    Ok(Expr::form(move |env| {
        let absent = |env: &mut Env<'_>| match &on_null {
            Some(on_null) => on_null.eval(env),
            None => Ok(Some(Value::Null)),
        };
        let pattern = match &pattern {
            None => Some(None),
            Some(pattern) => match pattern.eval(env)? {
                None | Some(Value::Null | Value::Undefined) => None,
                Some(Value::String(pattern)) => Some(Some(pattern)),
                Some(other) => bail!(
                    18533,
                    "$dateToString requires that 'format' be a string, found: {}",
                    type_name(other.as_raw_bson_ref())
                ),
            },
        };
        let zone = zone.eval(env)?;
        let Some(millis) = eval_millis(&input, env)? else { return absent(env) };
        let (Some(pattern), Some(zone)) = (pattern, zone) else { return Ok(Some(Value::Null)) };
        let default = if zoned && zone.offset_at(millis) != 0 {
            "%Y-%m-%dT%H:%M:%S.%L"
        } else {
            "%Y-%m-%dT%H:%M:%S.%LZ"
        };
        let default = if zoned && matches!(zone, Zone::Named(_)) { "%Y-%m-%dT%H:%M:%S.%L" } else { default };
        Ok(Some(Value::String(format(millis, pattern.as_deref().unwrap_or(default), &zone)?)))
    }))
}

fn from_string(name: &str, operand: Ref<'_>, scope: &mut Scope) -> Result<Expr> {
    let known = ["dateString", "format", "timezone", "onError", "onNull"];
    let object = object_operand(name, operand, &known, (40540, 40541))?;
    let Some(input) = field(object, "dateString") else {
        bail!(40542, "Missing 'dateString' parameter to $dateFromString")
    };
    let input = parse_expression(input, scope)?;
    let pattern = field(object, "format").map(|format| parse_expression(format, scope)).transpose()?;
    let zone = ZoneExpr::parse(object, scope)?;
    let on_error = field(object, "onError").map(|on_error| parse_expression(on_error, scope)).transpose()?;
    let on_null = field(object, "onNull").map(|on_null| parse_expression(on_null, scope)).transpose()?;
    Ok(Expr::form(move |env| {
        let pattern = match &pattern {
            None => None,
            Some(pattern) => match pattern.eval(env)? {
                None | Some(Value::Null | Value::Undefined) => return Ok(Some(Value::Null)),
                Some(Value::String(pattern)) => Some(pattern),
                Some(other) => bail!(
                    40684,
                    "$dateFromString requires that 'format' be a string, found: {}",
                    type_name(other.as_raw_bson_ref())
                ),
            },
        };
        let zone = zone.eval(env)?;
        let text = match input.eval(env)? {
            None | Some(Value::Null | Value::Undefined) => {
                return match &on_null {
                    Some(on_null) => on_null.eval(env),
                    None => Ok(Some(Value::Null)),
                };
            }
            other => other,
        };
        let Some(zone) = zone else { return Ok(Some(Value::Null)) };
        let parsed: Result<Out> = match text {
            Some(Value::String(text)) => match &pattern {
                Some(pattern) => parse_format(&text, pattern, &zone).map(date),
                None => parse_free(&text, &zone).map(date),
            },
            other => bail_conversion(other),
        };
        match (parsed, &on_error) {
            (Err(error), Some(on_error)) if error.code == CONVERSION_FAILURE => on_error.eval(env),
            (parsed, _) => parsed,
        }
    }))
}

fn bail_conversion(value: Out) -> Result<Out> {
    bail!(
        CONVERSION_FAILURE,
        "$dateFromString requires that 'dateString' be a string, found: {}",
        value.as_ref().map_or("missing", |value| type_name(value.as_raw_bson_ref()))
    )
}
