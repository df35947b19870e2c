//! The calendar: milliseconds since 1970 to years, weeks and hours in a time zone, and back.
//!
//! The Gregorian calendar is followed in both directions without end, over all 64-bit dates. Only the offsets
//! of named zones come from elsewhere (`jiff` with its bundled IANA database), so that the machine's own
//! settings decide nothing.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::error::{Result, bail};

pub(crate) const MILLIS_PER_DAY: i64 = 86_400_000;

/// A time zone.
#[derive(Debug, Clone)]
pub(crate) enum Zone {
    /// Seconds east of Greenwich.
    Fixed(i64),
    Named(TimeZone),
}

/// A moment on the wall of a zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) year: i64,
    /// From 1.
    pub(crate) month: i64,
    /// From 1.
    pub(crate) day: i64,
    pub(crate) hour: i64,
    pub(crate) minute: i64,
    pub(crate) second: i64,
    pub(crate) milli: i64,
}

/// Days since 1970-01-01 of a day; months and days may lie outside of their ranges.
pub(crate) fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = (year + (month - 1).div_euclid(12), (month - 1).rem_euclid(12) + 1);
    // Years begin in March here, so that the leap day is the last.
    let shifted = if month <= 2 { year - 1 } else { year };
    let era = shifted.div_euclid(400);
    let year_of_era = shifted.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468 + day - 1
}

fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

pub(crate) fn days_in_month(year: i64, month: i64) -> i64 {
    days_from_civil(year, month + 1, 1) - days_from_civil(year, month, 1)
}

impl Zone {
    pub(crate) const UTC: Zone = Zone::Fixed(0);

    /// Reads `America/New_York`, `UTC`, `+03`, `+0330` or `+03:30`.
    pub(crate) fn parse(name: &str) -> Result<Zone> {
        if matches!(name, "UTC" | "GMT" | "Z") {
            return Ok(Zone::UTC);
        }
        if let Some(offset) = parse_offset(name) {
            return Ok(Zone::Fixed(offset));
        }
        // The database knows names; other spellings that jiff reads (POSIX rules) are not zones here.
        match jiff::tz::db().get(name) {
            Ok(zone) if name.starts_with(char::is_alphabetic) => Ok(Zone::Named(zone)),
            _ => bail!(40485, "unrecognized time zone identifier: \"{name}\""),
        }
    }

    /// Seconds east of Greenwich at a moment.
    pub(crate) fn offset_at(&self, millis: i64) -> i64 {
        match self {
            Zone::Fixed(offset) => *offset,
            Zone::Named(zone) => {
                let clamped = millis.clamp(
                    Timestamp::MIN.as_millisecond() + MILLIS_PER_DAY * 2,
                    Timestamp::MAX.as_millisecond() - MILLIS_PER_DAY * 2,
                );
                let timestamp = Timestamp::from_millisecond(clamped).unwrap_or(Timestamp::UNIX_EPOCH);
                zone.to_offset(timestamp).seconds().into()
            }
        }
    }

    /// Milliseconds as the wall shows them.
    pub(crate) fn local(&self, millis: i64) -> i64 {
        millis.saturating_add(self.offset_at(millis) * 1000)
    }

    /// The moment at which the wall shows this; the second of two where a clock is put back.
    pub(crate) fn utc(&self, local: i64) -> i64 {
        let [before, after] = self.candidates(local);
        if self.local(after) == local { after } else { before }
    }

    /// The same, but the first of two.
    pub(crate) fn utc_first(&self, local: i64) -> i64 {
        let [before, after] = self.candidates(local);
        if self.local(before) == local || self.local(after) != local { before } else { after }
    }

    /// By the offset of the day before and of the day after. Where a clock is put forward neither shows the
    /// time; then the old offset counts on.
    fn candidates(&self, local: i64) -> [i64; 2] {
        [-MILLIS_PER_DAY, MILLIS_PER_DAY]
            .map(|by| local.saturating_sub(self.offset_at(local.saturating_add(by)) * 1000))
    }
}

fn parse_offset(text: &str) -> Option<i64> {
    let sign = match text.bytes().next()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let digits = text.get(1..)?;
    let (hours, minutes) = match digits.len() {
        2 => (digits, "0"),
        4 => (digits.get(..2)?, digits.get(2..)?),
        5 if digits.as_bytes().get(2) == Some(&b':') => (digits.get(..2)?, digits.get(3..)?),
        _ => return None,
    };
    if !hours.bytes().chain(minutes.bytes()).all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(sign * (hours.parse::<i64>().ok()? * 3600 + minutes.parse::<i64>().ok()? * 60))
}

/// `+hhmm`, with something between hours and minutes.
pub(crate) fn format_offset(offset: i64, between: &str) -> String {
    let sign = if offset < 0 { '-' } else { '+' };
    let minutes = offset.abs() / 60;
    format!("{sign}{:02}{between}{:02}", minutes / 60, minutes % 60)
}

impl Moment {
    /// A moment in a zone.
    pub(crate) fn of(millis: i64, zone: &Zone) -> Moment {
        Moment::of_local(zone.local(millis))
    }

    /// What the wall shows.
    pub(crate) fn of_local(local: i64) -> Moment {
        let (year, month, day) = civil_from_days(local.div_euclid(MILLIS_PER_DAY));
        let rest = local.rem_euclid(MILLIS_PER_DAY);
        Moment {
            year,
            month,
            day,
            hour: rest / 3_600_000,
            minute: rest / 60_000 % 60,
            second: rest / 1000 % 60,
            milli: rest % 1000,
        }
    }

    fn days(&self) -> i64 {
        days_from_civil(self.year, self.month, self.day)
    }

    pub(crate) fn to_local(self) -> i64 {
        let time = self.hour * 3_600_000 + self.minute * 60_000 + self.second * 1000 + self.milli;
        self.days().saturating_mul(MILLIS_PER_DAY).saturating_add(time)
    }

    /// 1 is Sunday.
    pub(crate) fn day_of_week(&self) -> i64 {
        (self.days() + 4).rem_euclid(7) + 1
    }

    /// 1 is Monday.
    pub(crate) fn iso_day_of_week(&self) -> i64 {
        (self.days() + 3).rem_euclid(7) + 1
    }

    /// From 1.
    pub(crate) fn day_of_year(&self) -> i64 {
        self.days() - days_from_civil(self.year, 1, 1) + 1
    }

    /// Weeks begin on Sunday; days before the first Sunday are in week 0.
    pub(crate) fn week(&self) -> i64 {
        (self.day_of_year() + 7 - self.day_of_week()) / 7
    }

    /// The year and number of the ISO week: weeks begin on Monday, the first has the year's first Thursday.
    pub(crate) fn iso_week(&self) -> (i64, i64) {
        let thursday = self.days() + 4 - self.iso_day_of_week();
        let (year, ..) = civil_from_days(thursday);
        (year, (thursday - days_from_civil(year, 1, 1)) / 7 + 1)
    }
}

/// The local day on which an ISO week begins, for weeks and days outside of their ranges too.
pub(crate) fn days_from_iso_week(year: i64, week: i64, day: i64) -> i64 {
    let fourth = days_from_civil(year, 1, 4);
    let monday = fourth - (fourth + 3).rem_euclid(7);
    monday + (week - 1) * 7 + day - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_go_there_and_back() {
        for days in (-800_000..800_000).step_by(37) {
            let (year, month, day) = civil_from_days(days);
            assert_eq!(days_from_civil(year, month, day), days);
        }
        assert_eq!(civil_from_days(0), (1970, 1, 1));
        assert_eq!(civil_from_days(-1), (1969, 12, 31));
    }

    #[test]
    fn zones_have_their_offsets() {
        let zone = Zone::parse("America/New_York").unwrap();
        assert_eq!(zone.offset_at(1_500_000_000_000), -4 * 3600);
        assert_eq!(Zone::parse("+0330").unwrap().offset_at(0), 12_600);
        assert!(Zone::parse("Nowhere").is_err());
    }
}
