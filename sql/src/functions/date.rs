//! Dates and times.
//!
//! Moments are text (`2020-08-13T23:19:54.3002652Z`), ticks of 100 ns since 1970, or timestamps in milliseconds
//! since 1970. The current time is that of the context and does not move while a query runs, so the functions
//! with and without `STATIC` agree.

mod format;
mod part;
mod time;

use part::Part;
use time::{Date, MILLISECOND, Time};

use super::{Args, Family, Function, PlainRun};
use crate::context::Context;
use crate::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    date("AGO", Args::exactly(2), "AGO(part, n)", "The current time minus n parts.", ago).reads_context(),
    date(
        "DATETIMEADD",
        Args::exactly(3),
        "DATETIMEADD(part, n, dt)",
        "The time plus n parts; a day the month lacks becomes its last one.",
        date_time_add,
    ),
    date(
        "DATETIMEBIN",
        Args::between(2, 4),
        "DATETIMEBIN(dt, part [, size [, start]])",
        "The time rounded down to bins of some parts, counted from 1970 or a start.",
        date_time_bin,
    ),
    date(
        "DATETIMEDIFF",
        Args::exactly(3),
        "DATETIMEDIFF(part, start, end)",
        "How many boundaries of the part lie between two times.",
        date_time_diff,
    ),
    date(
        "DATETIMEFORMAT",
        Args::exactly(2),
        "DATETIMEFORMAT(dt, format)",
        "The time in another shape, such as yyyy-MM-dd.",
        date_time_format,
    ),
    date(
        "DATETIMEFROMPARTS",
        Args::between(3, 7),
        "DATETIMEFROMPARTS(year, month, day [, hour, minute, second, fraction])",
        "The time with these parts; the fraction counts 100 ns.",
        date_time_from_parts,
    ),
    date("DATETIMEPART", Args::exactly(2), "DATETIMEPART(part, dt)", "One part of the time.", date_time_part),
    date("DATETIMETOTICKS", Args::exactly(1), "DATETIMETOTICKS(dt)", "The time in ticks.", to_ticks),
    date(
        "DATETIMETOTIMESTAMP",
        Args::exactly(1),
        "DATETIMETOTIMESTAMP(dt)",
        "The time in milliseconds.",
        to_timestamp,
    ),
    date("DAY", Args::exactly(1), "DAY(dt)", "The day of the month.", day),
    now("GETCURRENTDATETIME", "GETCURRENTDATETIME()", "The current time.", now_text),
    now("GETCURRENTDATETIMESTATIC", "GETCURRENTDATETIMESTATIC()", "The time the query began.", now_text),
    now("GETCURRENTTICKS", "GETCURRENTTICKS()", "The current time in ticks.", now_ticks),
    now("GETCURRENTTICKSSTATIC", "GETCURRENTTICKSSTATIC()", "The time the query began, in ticks.", now_ticks),
    now("GETCURRENTTIMESTAMP", "GETCURRENTTIMESTAMP()", "The current time in milliseconds.", now_timestamp),
    now(
        "GETCURRENTTIMESTAMPSTATIC",
        "GETCURRENTTIMESTAMPSTATIC()",
        "The time the query began, in milliseconds.",
        now_timestamp,
    ),
    date("MONTH", Args::exactly(1), "MONTH(dt)", "The month of the year.", month),
    date("NOW", Args::between(0, 2), "NOW([part, n])", "The current time, plus n parts.", now_plus)
        .reads_context(),
    date("TICKSTODATETIME", Args::exactly(1), "TICKSTODATETIME(n)", "The time of these ticks.", from_ticks),
    date(
        "TIMESTAMPTODATETIME",
        Args::exactly(1),
        "TIMESTAMPTODATETIME(n)",
        "The time of these milliseconds.",
        from_timestamp,
    ),
    date("YEAR", Args::exactly(1), "YEAR(dt)", "The year.", year),
];

const fn date(
    name: &'static str,
    args: Args,
    signature: &'static str,
    help: &'static str,
    run: PlainRun,
) -> Function {
    Function::new(name, Family::DateTime, args, signature, help, run)
}

const fn now(name: &'static str, signature: &'static str, help: &'static str, run: PlainRun) -> Function {
    date(name, Args::exactly(0), signature, help, run).reads_context()
}

/// The moment that text stands for.
pub(super) fn parse(text: &str) -> Option<Time> {
    Time::parse(text)
}

fn time_of(value: &Value<'_>) -> Option<Time> {
    value.as_str().and_then(parse)
}

fn part_of(value: &Value<'_>) -> Option<Part> {
    value.as_str().and_then(Part::named)
}

impl From<Time> for Value<'_> {
    fn from(time: Time) -> Self {
        time.to_string().into()
    }
}

fn current(context: &Context<'_>) -> Option<Time> {
    Time::from_millis(context.now_ms)
}

fn shifted<'a>(context: &Context<'_>, part: &Value<'_>, count: Option<i64>) -> Value<'a> {
    let (Some(now), Some(part), Some(count)) = (current(context), part_of(part), count) else {
        return Value::Undefined;
    };
    part.add(now, count).into()
}

fn ago<'a>(context: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    let [part, count] = args else { return Value::Undefined };
    shifted(context, part, count.as_i64().and_then(i64::checked_neg))
}

/// One argument alone is treated as a wrong argument: part and count come together.
fn now_plus<'a>(context: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    match args {
        [] => current(context).into(),
        [part, count] => shifted(context, part, count.as_i64()),
        _ => Value::Undefined,
    }
}

fn now_text<'a>(context: &Context<'_>, _: &[Value<'a>]) -> Value<'a> {
    current(context).into()
}

fn now_ticks<'a>(context: &Context<'_>, _: &[Value<'a>]) -> Value<'a> {
    current(context).map(Time::ticks).into()
}

fn now_timestamp<'a>(context: &Context<'_>, _: &[Value<'a>]) -> Value<'a> {
    Value::Int(context.now_ms)
}

fn date_time_add<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    let [part, count, time] = args else { return Value::Undefined };
    let (Some(part), Some(count), Some(time)) = (part_of(part), count.as_i64(), time_of(time)) else {
        return Value::Undefined;
    };
    part.add(time, count).into()
}

fn date_time_bin<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    /// Bins that start before the year 1601 are refused.
    const START_MIN: Date = Date { year: 1601, month: 1, day: 1 };
    let [time, part, options @ ..] = args else { return Value::Undefined };
    let size = options.first().map_or(Some(1), Value::as_i64).filter(|size| *size > 0);
    let start = options.get(1).map_or_else(|| Time::from_ticks(0), time_of);
    let start = start.filter(|start| Some(*start) >= Time::from_date(START_MIN, 0));
    let (Some(time), Some(part), Some(size), Some(start)) = (time_of(time), part_of(part), size, start)
    else {
        return Value::Undefined;
    };
    part.bin(time, size, start).into()
}

fn date_time_diff<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    let [part, start, end] = args else { return Value::Undefined };
    let (Some(part), Some(start), Some(end)) = (part_of(part), time_of(start), time_of(end)) else {
        return Value::Undefined;
    };
    let count = part.boundaries(start, end);
    // Nanoseconds over centuries do not fit.
    i64::try_from(count).map_or(Value::Double(count as f64), Value::Int)
}

fn date_time_format<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    let [time, Value::String(pattern)] = args else { return Value::Undefined };
    time_of(time).and_then(|time| format::format(time, pattern)).into()
}

fn date_time_from_parts<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    let Some(parts) = args.iter().map(Value::as_i64).collect::<Option<Vec<_>>>() else {
        return Value::Undefined;
    };
    let part = |index: usize| parts.get(index).copied().unwrap_or(0);
    let date = Date { year: part(0), month: part(1), day: part(2) };
    Time::from_parts(date, part(3), part(4), part(5), part(6)).into()
}

fn date_time_part<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    let [part, time] = args else { return Value::Undefined };
    part_of(part).zip(time_of(time)).map(|(part, time)| part.of(time)).into()
}

fn with_time<'a>(args: &[Value<'a>], run: impl FnOnce(Time) -> i64) -> Value<'a> {
    let [time] = args else { return Value::Undefined };
    time_of(time).map(run).into()
}

fn day<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    with_time(args, |time| time.date().day)
}

fn month<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    with_time(args, |time| time.date().month)
}

fn year<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    with_time(args, |time| time.date().year)
}

fn to_ticks<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    with_time(args, Time::ticks)
}

fn to_timestamp<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    with_time(args, |time| time.ticks().div_euclid(MILLISECOND))
}

fn from_ticks<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    let [ticks] = args else { return Value::Undefined };
    ticks.as_i64().and_then(Time::from_ticks).into()
}

fn from_timestamp<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    let [millis] = args else { return Value::Undefined };
    millis.as_i64().and_then(Time::from_millis).into()
}

#[cfg(test)]
mod cases;
#[cfg(test)]
pub(super) use cases::CASES;
