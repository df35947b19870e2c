//! Parts of dates: years, weeks, hours, in a time zone.

use bson::{DateTime, RawDocumentBuf};

use super::parse::{object_operand, parse_expression};
use super::{Env, Expr, Operator, Out, Scope, form};
use crate::calendar::{MILLIS_PER_DAY, Moment, Zone, days_from_civil, days_from_iso_week};
use crate::error::{Result, bail};
use crate::values::{Ref, Value, as_integer, field, fields, is_nullish, items, put, type_name};

macro_rules! part {
    ($name:literal, $help:literal, $get:expr) => {
        form($name, $help, |name, operand, scope| date_part(name, operand, scope, $get))
    };
}

pub(super) const OPERATORS: &[Operator] = &[
    part!("$year", "the year", |m| Value::Int32(m.year as i32)),
    part!("$month", "the month, from 1", |m| Value::Int32(m.month as i32)),
    part!("$dayOfMonth", "the day of the month", |m| Value::Int32(m.day as i32)),
    part!("$dayOfYear", "the day of the year", |m| Value::Int32(m.day_of_year() as i32)),
    part!("$dayOfWeek", "the day of the week, 1 is Sunday", |m| Value::Int32(m.day_of_week() as i32)),
    part!("$hour", "the hour", |m| Value::Int32(m.hour as i32)),
    part!("$minute", "the minute", |m| Value::Int32(m.minute as i32)),
    part!("$second", "the second", |m| Value::Int32(m.second as i32)),
    part!("$millisecond", "the millisecond", |m| Value::Int32(m.milli as i32)),
    part!("$week", "the week, from Sunday, 0 to 53", |m| Value::Int32(m.week() as i32)),
    part!("$isoWeek", "the ISO week", |m| Value::Int32(m.iso_week().1 as i32)),
    part!("$isoWeekYear", "the year of the ISO week", |m| Value::Int64(m.iso_week().0)),
    part!("$isoDayOfWeek", "the day of the week, 1 is Monday", |m| Value::Int32(m.iso_day_of_week() as i32)),
    form("$dateToParts", "a date taken apart", to_parts),
    form("$dateFromParts", "a date put together", from_parts),
];

/// The moment a value stands for; none for null.
pub(super) fn millis(value: Option<Ref<'_>>) -> Result<Option<i64>> {
    match value {
        value if is_nullish(value) => Ok(None),
        Some(Ref::DateTime(date)) => Ok(Some(date.timestamp_millis())),
        Some(Ref::Timestamp(value)) => Ok(Some(i64::from(value.time) * 1000)),
        Some(Ref::ObjectId(id)) => Ok(Some(super::convert::id_millis(id))),
        other => bail!(16006, "can't convert from BSON type {} to Date", other.map_or("missing", type_name)),
    }
}

pub(super) fn eval_millis(expr: &Expr, env: &mut Env<'_>) -> Result<Option<i64>> {
    let value = expr.eval(env)?;
    millis(value.as_ref().map(Value::as_raw_bson_ref))
}

pub(super) fn date(millis: i64) -> Out {
    Some(Value::DateTime(DateTime::from_millis(millis)))
}

/// A zone that may be computed; none if it is null.
pub(super) struct ZoneExpr(Option<Expr>);

impl ZoneExpr {
    pub(super) fn parse(object: &bson::RawDocument, scope: &mut Scope) -> Result<ZoneExpr> {
        Ok(ZoneExpr(field(object, "timezone").map(|zone| parse_expression(zone, scope)).transpose()?))
    }

    pub(super) fn eval(&self, env: &mut Env<'_>) -> Result<Option<Zone>> {
        let Some(expr) = &self.0 else { return Ok(Some(Zone::UTC)) };
        match expr.eval(env)? {
            None | Some(Value::Null | Value::Undefined) => Ok(None),
            Some(Value::String(name)) => Zone::parse(&name).map(Some),
            Some(other) => bail!(
                40517,
                "timezone must evaluate to a string, found {}",
                type_name(other.as_raw_bson_ref())
            ),
        }
    }
}

fn date_part(name: &str, operand: Ref<'_>, scope: &mut Scope, get: fn(Moment) -> Value) -> Result<Expr> {
    let (date, zone) = match operand {
        Ref::Document(object) if !fields(object).next().is_some_and(|(name, _)| name.starts_with('$')) => {
            object_operand(name, operand, &["date", "timezone"], (40535, 40535))?;
            let Some(date) = field(object, "date") else {
                bail!(40539, "missing 'date' argument to {name}, provided: {}", crate::values::show(operand))
            };
            (parse_expression(date, scope)?, ZoneExpr::parse(object, scope)?)
        }
        Ref::Array(list) => {
            let given: Vec<_> = items(list).collect();
            match given.as_slice() {
                [single] => (parse_expression(*single, scope)?, ZoneExpr(None)),
                _ => bail!(
                    40536,
                    "{name} accepts exactly one argument if given an array, but was given {}",
                    given.len()
                ),
            }
        }
        _ => (parse_expression(operand, scope)?, ZoneExpr(None)),
    };
    Ok(Expr::form(move |env| {
        let Some(zone) = zone.eval(env)? else { return Ok(Some(Value::Null)) };
        let Some(millis) = eval_millis(&date, env)? else { return Ok(Some(Value::Null)) };
        Ok(Some(get(Moment::of(millis, &zone))))
    }))
}

fn to_parts(name: &str, operand: Ref<'_>, scope: &mut Scope) -> Result<Expr> {
    let object = object_operand(name, operand, &["date", "timezone", "iso8601"], (40524, 40520))?;
    let Some(date) = field(object, "date") else { bail!(40522, "Missing 'date' parameter to $dateToParts") };
    let (date, zone) = (parse_expression(date, scope)?, ZoneExpr::parse(object, scope)?);
    let iso = field(object, "iso8601").map(|iso| parse_expression(iso, scope)).transpose()?;
    Ok(Expr::form(move |env| {
        let iso = match &iso {
            None => false,
            Some(iso) => match iso.eval(env)? {
                None | Some(Value::Null | Value::Undefined) => return Ok(Some(Value::Null)),
                Some(Value::Boolean(iso)) => iso,
                Some(_) => bail!(40521, "iso8601 must evaluate to a bool"),
            },
        };
        let Some(zone) = zone.eval(env)? else { return Ok(Some(Value::Null)) };
        let Some(millis) = eval_millis(&date, env)? else { return Ok(Some(Value::Null)) };
        let moment = Moment::of(millis, &zone);
        let mut parts = RawDocumentBuf::new();
        if iso {
            let (year, week) = moment.iso_week();
            put(&mut parts, "isoWeekYear", year as i32);
            put(&mut parts, "isoWeek", week as i32);
            put(&mut parts, "isoDayOfWeek", moment.iso_day_of_week() as i32);
        } else {
            put(&mut parts, "year", moment.year as i32);
            put(&mut parts, "month", moment.month as i32);
            put(&mut parts, "day", moment.day as i32);
        }
        put(&mut parts, "hour", moment.hour as i32);
        put(&mut parts, "minute", moment.minute as i32);
        put(&mut parts, "second", moment.second as i32);
        put(&mut parts, "millisecond", moment.milli as i32);
        Ok(Some(Value::Document(parts)))
    }))
}

const PARTS: [&str; 11] = [
    "year",
    "month",
    "day",
    "hour",
    "minute",
    "second",
    "millisecond",
    "isoWeekYear",
    "isoWeek",
    "isoDayOfWeek",
    "timezone",
];

fn from_parts(name: &str, operand: Ref<'_>, scope: &mut Scope) -> Result<Expr> {
    let object = object_operand(name, operand, &PARTS, (40519, 40518))?;
    let has = |part: &str| field(object, part).is_some();
    let iso = has("isoWeekYear");
    if !has("year") && !iso {
        bail!(40516, "$dateFromParts requires either 'year' or 'isoWeekYear' to be present");
    }
    if has("year") && (iso || has("isoWeek") || has("isoDayOfWeek")) {
        bail!(40489, "$dateFromParts does not allow mixing natural dates with ISO dates");
    }
    if iso && (has("month") || has("day")) {
        bail!(40525, "$dateFromParts does not allow mixing ISO dates with natural dates");
    }
    let names: [&str; 7] = if iso {
        ["isoWeekYear", "isoWeek", "isoDayOfWeek", "hour", "minute", "second", "millisecond"]
    } else {
        ["year", "month", "day", "hour", "minute", "second", "millisecond"]
    };
    let mut parts = Vec::new();
    for part in names {
        parts.push((part, field(object, part).map(|value| parse_expression(value, scope)).transpose()?));
    }
    let zone = ZoneExpr::parse(object, scope)?;
    Ok(Expr::form(move |env| {
        let mut values = Vec::new();
        for (at, (part, expr)) in parts.iter().enumerate() {
            let Some(expr) = expr else {
                values.push(i64::from(at == 1 || at == 2));
                continue;
            };
            let value = expr.eval(env)?;
            let value = match value.as_ref().map(Value::as_raw_bson_ref) {
                value if is_nullish(value) => return Ok(Some(Value::Null)),
                Some(value) => as_integer(value),
                None => None,
            };
            match value {
                Some(value) if at == 0 && !(1..=9999).contains(&value) => {
                    bail!(40523, "'{part}' must evaluate to an integer in the range 1 to 9999, found {value}")
                }
                Some(value) if (-32768..=32767).contains(&value) || at >= 5 => values.push(value),
                Some(value) => bail!(
                    31034,
                    "'{part}' must evaluate to a value in the range [-32768, 32767]; value {value} is not in range"
                ),
                None => bail!(40515, "'{part}' must evaluate to an integer"),
            }
        }
        let Some(zone) = zone.eval(env)? else { return Ok(Some(Value::Null)) };
        let [first, second, third, hour, minute, seconds, milli] = values.as_slice() else { return Ok(None) };
        let days = if iso {
            days_from_iso_week(*first, *second, *third)
        } else {
            days_from_civil(*first, *second, *third)
        };
        let time = hour
            .saturating_mul(3_600_000)
            .saturating_add(minute.saturating_mul(60_000))
            .saturating_add(seconds.saturating_mul(1000))
            .saturating_add(*milli);
        Ok(date(zone.utc((days * MILLIS_PER_DAY).saturating_add(time))))
    }))
}
