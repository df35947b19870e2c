//! A moment: reading it, writing it, taking it apart.
//!
//! The calendar is the Gregorian one, also before 1582, from year 1 to 9999; there are no time zones and no
//! leap seconds. Text is `YYYY-MM-DD`, then optionally `T` or a space and `hh:mm:ss` with up to seven digits
//! of a fraction, then optionally `Z`.

/// Ticks of 100 ns per unit.
pub(super) const MILLISECOND: i64 = 10_000;
pub(super) const SECOND: i64 = 1_000 * MILLISECOND;
pub(super) const MINUTE: i64 = 60 * SECOND;
pub(super) const HOUR: i64 = 60 * MINUTE;
pub(super) const DAY: i64 = 24 * HOUR;

const YEAR_MIN: i64 = 1;
const YEAR_MAX: i64 = 9_999;

/// A moment, in ticks of 100 ns since 1970.
///
/// Holds: the year is between 1 and 9999, so that sums of a few of them fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Time {
    ticks: i64,
}

/// A day of the calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Date {
    pub year: i64,
    /// From 1 to 12.
    pub month: i64,
    /// From 1 to 31.
    pub day: i64,
}

impl Time {
    pub fn from_ticks(ticks: i64) -> Option<Time> {
        let first = Date { year: YEAR_MIN, month: 1, day: 1 }.days() * DAY;
        let after = Date { year: YEAR_MAX + 1, month: 1, day: 1 }.days() * DAY;
        (first..after).contains(&ticks).then_some(Time { ticks })
    }

    pub fn from_millis(millis: i64) -> Option<Time> {
        Time::from_ticks(millis.checked_mul(MILLISECOND)?)
    }

    /// A day of the calendar and the ticks since its midnight; None if one of them does not exist.
    pub fn from_date(date: Date, ticks: i64) -> Option<Time> {
        if !date.exists() || !(0..DAY).contains(&ticks) {
            return None;
        }
        Time::from_ticks(date.days() * DAY + ticks)
    }

    pub fn ticks(self) -> i64 {
        self.ticks
    }

    pub fn date(self) -> Date {
        Date::of_days(self.ticks.div_euclid(DAY))
    }

    /// The ticks since midnight.
    pub fn ticks_of_day(self) -> i64 {
        self.ticks.rem_euclid(DAY)
    }

    /// The same time of the day, `months` later or earlier. A day that the month lacks becomes its last one.
    pub fn add_months(self, months: i64) -> Option<Time> {
        let Date { year, month, day } = self.date();
        let month = (year * 12 + month - 1).checked_add(months)?;
        let (year, month) = (month.div_euclid(12), month.rem_euclid(12) + 1);
        if !(YEAR_MIN..=YEAR_MAX).contains(&year) {
            return None;
        }
        Time::from_date(Date { year, month, day: day.min(days_in_month(year, month)) }, self.ticks_of_day())
    }

    pub fn parse(text: &str) -> Option<Time> {
        let mut rest = text.strip_suffix('Z').unwrap_or(text).as_bytes();
        let date = Date { year: digits(&mut rest, 4)?, month: dashed(&mut rest)?, day: dashed(&mut rest)? };
        if rest.is_empty() {
            return Time::from_date(date, 0);
        }
        expect(&mut rest, b"T ")?;
        let hour = digits(&mut rest, 2)?;
        expect(&mut rest, b":")?;
        let minute = digits(&mut rest, 2)?;
        expect(&mut rest, b":")?;
        let second = digits(&mut rest, 2)?;
        Time::from_parts(date, hour, minute, second, fraction(rest)?)
    }

    pub fn from_parts(date: Date, hour: i64, minute: i64, second: i64, fraction: i64) -> Option<Time> {
        let fits = (0..24).contains(&hour)
            && (0..60).contains(&minute)
            && (0..60).contains(&second)
            && (0..SECOND).contains(&fraction);
        if !fits {
            return None;
        }
        Time::from_date(date, hour * HOUR + minute * MINUTE + second * SECOND + fraction)
    }
}

impl std::fmt::Display for Time {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Date { year, month, day }, ticks) = (self.date(), self.ticks_of_day());
        let (hour, minute, second) = (ticks / HOUR, ticks / MINUTE % 60, ticks / SECOND % 60);
        let fraction = ticks % SECOND;
        write!(out, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{fraction:07}Z")
    }
}

impl Date {
    fn exists(self) -> bool {
        (YEAR_MIN..=YEAR_MAX).contains(&self.year)
            && (1..=12).contains(&self.month)
            && (1..=days_in_month(self.year, self.month)).contains(&self.day)
    }

    /// Days since 1970. Counted in years that begin in March, so that the leap day is the last one; 400 of
    /// them always have 146,097 days.
    fn days(self) -> i64 {
        let year = if self.month <= 2 { self.year - 1 } else { self.year };
        let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
        let day_of_year = (153 * ((self.month + 9) % 12) + 2) / 5 + self.day - 1;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        era * 146_097 + day_of_era - 719_468
    }

    /// The inverse of [`Date::days`].
    fn of_days(days: i64) -> Date {
        let days = days + 719_468;
        let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
        let year = era * 400 + year_of_era + i64::from(month <= 2);
        Date { year, month, day }
    }

    /// 0 is Sunday.
    pub fn weekday(self) -> i64 {
        // 1970 began on a Thursday.
        (self.days() + 4).rem_euclid(7)
    }
}

fn days_in_month(year: i64, month: i64) -> i64 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn expect(rest: &mut &[u8], one_of: &[u8]) -> Option<()> {
    let (first, after) = rest.split_first()?;
    *rest = after;
    one_of.contains(first).then_some(())
}

/// A number of exactly this many digits.
fn digits(rest: &mut &[u8], count: usize) -> Option<i64> {
    let (number, after) = rest.split_at_checked(count)?;
    *rest = after;
    number.iter().try_fold(0, |sum, byte| byte.is_ascii_digit().then(|| sum * 10 + i64::from(byte - b'0')))
}

fn dashed(rest: &mut &[u8]) -> Option<i64> {
    expect(rest, b"-")?;
    digits(rest, 2)
}

/// What follows the seconds, in ticks: nothing, or a point and one to seven digits.
fn fraction(mut rest: &[u8]) -> Option<i64> {
    if rest.is_empty() {
        return Some(0);
    }
    expect(&mut rest, b".")?;
    let count = rest.len();
    if !(1..=7).contains(&count) {
        return None;
    }
    Some(digits(&mut rest, count)? * 10_i64.pow(7 - count as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_dates_agree() {
        let (mut days, last) =
            (Date { year: 1, month: 1, day: 1 }.days(), Date { year: 9999, month: 12, day: 31 });
        assert_eq!(Date { year: 1970, month: 1, day: 1 }.days(), 0);
        assert_eq!(Date { year: 2024, month: 10, day: 14 }.weekday(), 1);
        while days <= last.days() {
            let date = Date::of_days(days);
            assert!(date.exists());
            assert_eq!(date.days(), days);
            days += 13;
        }
    }

    #[test]
    fn text_reads_back() {
        for text in
            ["0001-01-01T00:00:00.0000000Z", "9999-12-31T23:59:59.9999999Z", "1969-12-31T23:59:59.9999999Z"]
        {
            assert_eq!(Time::parse(text).map(|time| time.to_string()).as_deref(), Some(text));
        }
        assert_eq!(Time::from_ticks(i64::MAX), None);
        assert_eq!(Time::from_ticks(i64::MIN), None);
        assert_eq!(
            Time::parse("9999-12-31T23:59:59.9999999").and_then(|time| time.add_months(i64::MAX)),
            None
        );
    }
}
