//! Parts of a moment: years, months ... nanoseconds, and arithmetic in them.

use super::time::{DAY, Date, HOUR, MILLISECOND, MINUTE, SECOND, Time};

/// What a query calls `"yyyy"`, `"mm"` and so on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
    Millisecond,
    Microsecond,
    Nanosecond,
}

/// How a part is counted.
enum Unit {
    Months(i64),
    Nanoseconds(i64),
}

/// Nanoseconds per tick.
const TICK: i64 = 100;

impl Part {
    /// By any of its names, in any case.
    pub fn named(name: &str) -> Option<Part> {
        Some(match name.to_ascii_lowercase().as_str() {
            "year" | "yyyy" | "yy" => Part::Year,
            "month" | "mm" | "m" => Part::Month,
            "day" | "dd" | "d" => Part::Day,
            "hour" | "hh" => Part::Hour,
            "minute" | "mi" | "n" => Part::Minute,
            "second" | "ss" | "s" => Part::Second,
            "millisecond" | "ms" => Part::Millisecond,
            "microsecond" | "mcs" => Part::Microsecond,
            "nanosecond" | "ns" => Part::Nanosecond,
            _ => return None,
        })
    }

    fn unit(self) -> Unit {
        match self {
            Part::Year => Unit::Months(12),
            Part::Month => Unit::Months(1),
            Part::Day => Unit::Nanoseconds(DAY * TICK),
            Part::Hour => Unit::Nanoseconds(HOUR * TICK),
            Part::Minute => Unit::Nanoseconds(MINUTE * TICK),
            Part::Second => Unit::Nanoseconds(SECOND * TICK),
            Part::Millisecond => Unit::Nanoseconds(MILLISECOND * TICK),
            Part::Microsecond => Unit::Nanoseconds(1_000),
            Part::Nanosecond => Unit::Nanoseconds(1),
        }
    }

    /// This part of a moment. Below the second it is all that is below the second.
    pub fn of(self, time: Time) -> i64 {
        let (Date { year, month, day }, ticks) = (time.date(), time.ticks_of_day());
        match self {
            Part::Year => year,
            Part::Month => month,
            Part::Day => day,
            Part::Hour => ticks / HOUR,
            Part::Minute => ticks / MINUTE % 60,
            Part::Second => ticks / SECOND % 60,
            Part::Millisecond => ticks % SECOND / MILLISECOND,
            Part::Microsecond => ticks % SECOND / 10,
            Part::Nanosecond => ticks % SECOND * TICK,
        }
    }

    /// `count` parts later or earlier. Nanoseconds that make no whole tick are dropped.
    pub fn add(self, time: Time, count: i64) -> Option<Time> {
        match self.unit() {
            Unit::Months(months) => time.add_months(count.checked_mul(months)?),
            Unit::Nanoseconds(unit) => {
                let ticks = i128::from(count) * i128::from(unit) / i128::from(TICK);
                Time::from_ticks(time.ticks().checked_add(i64::try_from(ticks).ok()?)?)
            }
        }
    }

    /// How many boundaries of this part lie between two moments; negative if the end comes first.
    pub fn boundaries(self, start: Time, end: Time) -> i128 {
        match self.unit() {
            Unit::Months(months) => {
                let count = |time: Time| (time.date().year * 12 + time.date().month - 1).div_euclid(months);
                i128::from(count(end) - count(start))
            }
            Unit::Nanoseconds(unit) => {
                let count = |time: Time| nanoseconds(time.ticks()).div_euclid(i128::from(unit));
                count(end) - count(start)
            }
        }
    }

    /// The last of the moments `origin`, `origin` + `size` parts, ... (and before it) that is not after `time`.
    /// `size` is positive.
    pub fn bin(self, time: Time, size: i64, origin: Time) -> Option<Time> {
        match self.unit() {
            Unit::Months(months) => {
                let size = size.checked_mul(months)?;
                let bins = i64::try_from(Part::Month.boundaries(origin, time)).ok()?.div_euclid(size);
                // The day of the origin may not have come yet in the month of `time`.
                let bin = origin.add_months(bins.checked_mul(size)?).filter(|bin| *bin <= time);
                bin.or_else(|| origin.add_months((bins - 1).checked_mul(size)?))
            }
            Unit::Nanoseconds(unit) => {
                let size = i128::from(unit) * i128::from(size);
                let since = nanoseconds(time.ticks()) - nanoseconds(origin.ticks());
                let bin = nanoseconds(origin.ticks()) + since.div_euclid(size) * size;
                Time::from_ticks(i64::try_from(bin.div_euclid(i128::from(TICK))).ok()?)
            }
        }
    }
}

fn nanoseconds(ticks: i64) -> i128 {
    i128::from(ticks) * i128::from(TICK)
}
