//! Calculations with dates: moved, cut off, and how far apart, in units of the calendar.

use super::dates::{ZoneExpr, date};
use super::parse::{object_operand, parse_expression};
use super::{Env, Expr, Operator, Scope, form};
use crate::calendar::{MILLIS_PER_DAY, Moment, Zone, days_in_month};
use crate::error::{FAILED_TO_PARSE, Result, bail};
use crate::values::{Ref, Value, as_integer, field, is_nullish, type_name};

pub(super) const OPERATORS: &[Operator] = &[
    form("$dateAdd", "a date moved", |name, operand, scope| moved(name, operand, scope, 1)),
    form("$dateSubtract", "a date moved back", |name, operand, scope| moved(name, operand, scope, -1)),
    form("$dateDiff", "how many units lie between", diff),
    form("$dateTrunc", "a date cut off to a unit", trunc),
];

/// A unit of the calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Year,
    Quarter,
    Month,
    Week,
    Day,
    Hour,
    Minute,
    Second,
    Millisecond,
}

impl Unit {
    pub(crate) fn parse(name: &str) -> Result<Unit> {
        Ok(match name {
            "year" => Unit::Year,
            "quarter" => Unit::Quarter,
            "month" => Unit::Month,
            "week" => Unit::Week,
            "day" => Unit::Day,
            "hour" => Unit::Hour,
            "minute" => Unit::Minute,
            "second" => Unit::Second,
            "millisecond" => Unit::Millisecond,
            _ => bail!(FAILED_TO_PARSE, "unknown time unit value: {name}"),
        })
    }

    fn months(self) -> Option<i64> {
        match self {
            Unit::Year => Some(12),
            Unit::Quarter => Some(3),
            Unit::Month => Some(1),
            _ => None,
        }
    }

    /// Milliseconds of the units that always last as long; days and weeks on the wall.
    pub(crate) fn millis(self) -> i64 {
        match self {
            Unit::Week => 7 * MILLIS_PER_DAY,
            Unit::Day => MILLIS_PER_DAY,
            Unit::Hour => 3_600_000,
            Unit::Minute => 60_000,
            Unit::Second => 1000,
            _ => 1,
        }
    }
}

/// Moves a moment by so many units; the day of a shorter month is its last.
pub(crate) fn add(millis: i64, unit: Unit, amount: i64, zone: &Zone) -> Option<i64> {
    if let Some(months) = unit.months() {
        let months = amount.checked_mul(months)?;
        let mut moment = Moment::of(millis, zone);
        let total = moment.year.checked_mul(12)?.checked_add(moment.month - 1)?.checked_add(months)?;
        moment.year = total.div_euclid(12);
        moment.month = total.rem_euclid(12) + 1;
        if moment.year.abs() > 200_000_000 {
            return None;
        }
        moment.day = moment.day.min(days_in_month(moment.year, moment.month));
        return Some(zone.utc_first(moment.to_local()));
    }
    let by = amount.checked_mul(unit.millis())?;
    match unit {
        Unit::Week | Unit::Day => Some(zone.utc_first(zone.local(millis).checked_add(by)?)),
        _ => millis.checked_add(by),
    }
}

/// The expression of a unit; none if it is null.
struct UnitExpr(Expr);

impl UnitExpr {
    fn eval(&self, name: &str, code: i32, env: &mut Env<'_>) -> Result<Option<Unit>> {
        match self.0.eval(env)? {
            None | Some(Value::Null | Value::Undefined) => Ok(None),
            Some(Value::String(unit)) => Unit::parse(&unit).map(Some),
            Some(other) => bail!(
                code,
                "{name} requires 'unit' to be a string, but got {}",
                type_name(other.as_raw_bson_ref())
            ),
        }
    }
}

fn null() -> Result<super::Out> {
    Ok(Some(Value::Null))
}

fn moved(name: &str, operand: Ref<'_>, scope: &mut Scope, sign: i64) -> Result<Expr> {
    let object =
        object_operand(name, operand, &["startDate", "unit", "amount", "timezone"], (5166400, 5166401))?;
    let mut part = |part: &str| match field(object, part) {
        Some(value) => parse_expression(value, scope),
        None => bail!(5166402, "{name} requires startDate, unit, and amount to be present"),
    };
    let (start, unit, amount) = (part("startDate")?, UnitExpr(part("unit")?), part("amount")?);
    let (zone, name) = (ZoneExpr::parse(object, scope)?, name.to_string());
    Ok(Expr::form(move |env| {
        let value = start.eval(env)?;
        let unit = unit.eval(&name, 5439013, env)?;
        let amount = amount.eval(env)?;
        let zone = zone.eval(env)?;
        let start = match value {
            None | Some(Value::Null | Value::Undefined) => return null(),
            Some(value) => match super::dates::millis(Some(value.as_raw_bson_ref())) {
                Ok(Some(millis)) => millis,
                _ => bail!(5166403, "{name} requires startDate to be convertible to a date"),
            },
        };
        let (Some(unit), Some(zone)) = (unit, zone) else { return null() };
        let amount = match amount {
            None | Some(Value::Null | Value::Undefined) => return null(),
            Some(amount) => match as_integer(amount.as_raw_bson_ref()) {
                Some(amount) => amount,
                None => bail!(5166405, "{name} expects integer amount of time units"),
            },
        };
        let Some(amount) = amount.checked_mul(sign) else {
            bail!(6045000, "invalid {name} 'amount' parameter value");
        };
        match add(start, unit, amount, &zone) {
            Some(millis) => Ok(date(millis)),
            None => bail!(5976500, "{name} amount is out of range"),
        }
    }))
}

/// Days of the week, from Monday.
const DAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

/// The first day of a week, 0 for Monday; none if it is null.
fn week_start(name: &str, expr: Option<&Expr>, unit: Unit, env: &mut Env<'_>) -> Result<Option<i64>> {
    let Some(expr) = expr.filter(|_| unit == Unit::Week) else { return Ok(Some(6)) };
    match expr.eval(env)? {
        None | Some(Value::Null | Value::Undefined) => Ok(None),
        Some(Value::String(day)) => {
            let day = day.to_lowercase();
            match DAYS.iter().position(|known| *known == day || known.get(..3) == Some(&day)) {
                Some(day) => Ok(Some(day as i64)),
                None => bail!(
                    5439016,
                    "{name} parameter 'startOfWeek' value cannot be recognized as a day of a week: {day}"
                ),
            }
        }
        Some(_) => bail!(5439015, "{name} requires 'startOfWeek' to be a string"),
    }
}

/// Which unit a local time lies in, counted from some start.
fn ordinal(local: i64, unit: Unit, week_start: i64) -> i64 {
    let moment = Moment::of_local(local);
    match unit {
        Unit::Year => moment.year,
        Unit::Quarter => moment.year * 4 + (moment.month - 1) / 3,
        Unit::Month => moment.year * 12 + moment.month - 1,
        // 1970-01-01 was a Thursday: day 3 of a week from Monday.
        Unit::Week => (local.div_euclid(MILLIS_PER_DAY) + 3 - week_start).div_euclid(7),
        _ => local.div_euclid(unit.millis()),
    }
}

fn diff(name: &str, operand: Ref<'_>, scope: &mut Scope) -> Result<Expr> {
    let known = ["startDate", "endDate", "unit", "timezone", "startOfWeek"];
    let object = object_operand(name, operand, &known, (5166301, 5166302))?;
    let mut part = |part: &str, code: i32| match field(object, part) {
        Some(value) => parse_expression(value, scope),
        None => bail!(code, "Missing '{part}' parameter to $dateDiff"),
    };
    let (start, end) = (part("startDate", 5166303)?, part("endDate", 5166304)?);
    let unit = UnitExpr(part("unit", 5166305)?);
    let zone = ZoneExpr::parse(object, scope)?;
    let week = field(object, "startOfWeek").map(|week| parse_expression(week, scope)).transpose()?;
    Ok(Expr::form(move |env| {
        let dates = [start.eval(env)?, end.eval(env)?];
        let dates = dates.each_ref().map(|date| date.as_ref().map(Value::as_raw_bson_ref));
        if dates.into_iter().any(is_nullish) {
            return null();
        }
        let Some(zone) = zone.eval(env)? else { return null() };
        let Some(unit) = unit.eval("$dateDiff", 5439013, env)? else { return null() };
        let Some(week_start) = week_start("$dateDiff", week.as_ref(), unit, env)? else { return null() };
        let [Ok(Some(start)), Ok(Some(end))] = dates.map(super::dates::millis) else {
            bail!(5166307, "$dateDiff requires its dates to be convertible to dates");
        };
        let at = |millis: i64| match unit {
            Unit::Hour | Unit::Minute | Unit::Second | Unit::Millisecond => {
                // Hours last as long when a clock is changed between.
                ordinal(millis.saturating_add(zone.offset_at(start) * 1000), unit, week_start)
            }
            _ => ordinal(zone.local(millis), unit, week_start),
        };
        match at(end).checked_sub(at(start)) {
            Some(count) => Ok(Some(Value::Int64(count))),
            None => bail!(5166308, "dateDiff overflowed"),
        }
    }))
}

fn trunc(name: &str, operand: Ref<'_>, scope: &mut Scope) -> Result<Expr> {
    let known = ["date", "unit", "binSize", "timezone", "startOfWeek"];
    let object = object_operand(name, operand, &known, (5439007, 5439008))?;
    let Some(input) = field(object, "date") else { bail!(5439009, "Missing 'date' parameter to $dateTrunc") };
    let Some(unit) = field(object, "unit") else { bail!(5439010, "Missing 'unit' parameter to $dateTrunc") };
    let input = parse_expression(input, scope)?;
    let unit = UnitExpr(parse_expression(unit, scope)?);
    let zone = ZoneExpr::parse(object, scope)?;
    let size = field(object, "binSize").map(|size| parse_expression(size, scope)).transpose()?;
    let week = field(object, "startOfWeek").map(|week| parse_expression(week, scope)).transpose()?;
    Ok(Expr::form(move |env| {
        let value = input.eval(env)?;
        let millis = match super::dates::millis(value.as_ref().map(Value::as_raw_bson_ref)) {
            Ok(millis) => millis,
            Err(_) => bail!(5166307, "$dateTrunc requires 'date' to be a date"),
        };
        let size = match &size {
            None => Some(1),
            Some(size) => match size.eval(env)? {
                None | Some(Value::Null | Value::Undefined) => None,
                Some(size) => match as_integer(size.as_raw_bson_ref()) {
                    Some(size) if size > 0 => Some(size),
                    Some(_) => bail!(5439018, "$dateTrunc requires 'binSize' to be greater than 0"),
                    None => bail!(5439017, "$dateTrunc requires 'binSize' to be a 64-bit integer"),
                },
            },
        };
        let unit = unit.eval("$dateTrunc", 5439013, env)?;
        let zone = zone.eval(env)?;
        let (Some(millis), Some(size), Some(unit), Some(zone)) = (millis, size, unit, zone) else {
            return null();
        };
        let Some(week_start) = week_start("$dateTrunc", week.as_ref(), unit, env)? else { return null() };
        Ok(date(truncate(millis, unit, size, week_start, &zone)))
    }))
}

/// The start of the bin that a moment lies in; bins are counted from the start of the year 2000.
pub(crate) fn truncate(millis: i64, unit: Unit, size: i64, week_start: i64, zone: &Zone) -> i64 {
    const REFERENCE: i64 = 946_684_800_000;
    if let Some(months) = unit.months() {
        let moment = Moment::of(millis, zone);
        let size = months.saturating_mul(size);
        let since = (moment.year - 2000) * 12 + moment.month - 1;
        let start = since.div_euclid(size) * size;
        let first = Moment {
            year: 2000 + start.div_euclid(12),
            month: start.rem_euclid(12) + 1,
            day: 1,
            hour: 0,
            minute: 0,
            second: 0,
            milli: 0,
        };
        return zone.utc(first.to_local());
    }
    let size = unit.millis().saturating_mul(size);
    match unit {
        Unit::Week | Unit::Day => {
            let reference = match unit {
                // The first such day of the week on or after the reference, a Saturday.
                Unit::Week => REFERENCE + (week_start - 5).rem_euclid(7) * MILLIS_PER_DAY,
                _ => REFERENCE,
            };
            let local = zone.local(millis);
            zone.utc(reference + (local - reference).div_euclid(size) * size)
        }
        _ => {
            let reference = zone.utc(REFERENCE);
            reference + (millis - reference).div_euclid(size) * size
        }
    }
}
