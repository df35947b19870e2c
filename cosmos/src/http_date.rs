//! RFC 1123 dates (`Thu, 27 Apr 2017 00:51:12 GMT`), to and from seconds since 1970.
//!
//! Signatures carry this form and responses show it; nothing else of a calendar is needed, so a date
//! library is not. The two civil-calendar functions are public because certificates want whole days too.
//!
//! Holds: `parse(&format(s)) == Some(s)` for every second up to the end of the year 9999.

use std::cell::RefCell;

const DAY_SECONDS: u64 = 86_400;
const WEEKDAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// A day of the Gregorian calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CivilDay {
    /// Year, 1970 or later for every value this module makes.
    pub year: u32,
    /// Month, 1 to 12.
    pub month: u32,
    /// Day of the month, 1 to 31.
    pub day: u32,
}

/// Reads an RFC 1123 date. Letter case is free, as in the signed text; the zone must be GMT.
///
/// The weekday has to be a weekday but need not fit the date: hand-written clients get it wrong, and the
/// signature covers the text as sent. Requests of one second bring the same text.
pub fn parse(text: &str) -> Option<u64> {
    thread_local! {
        static LAST: RefCell<Option<(String, u64)>> = const { RefCell::new(None) };
    }
    LAST.with_borrow_mut(|last| match last {
        Some((known, seconds)) if known == text => Some(*seconds),
        _ => {
            let seconds = read(text)?;
            *last = Some((text.to_owned(), seconds));
            Some(seconds)
        }
    })
}

fn read(text: &str) -> Option<u64> {
    let (weekday, rest) = text.trim().split_once(',')?;
    position(&WEEKDAYS, weekday)?;
    let mut words = rest.split_ascii_whitespace();
    let day = number(words.next()?, 2)?;
    let month = position(&MONTHS, words.next()?)? + 1;
    let year = number(words.next()?, 4)?;
    let mut clock = words.next()?.split(':');
    let (hour, minute, second) =
        (number(clock.next()?, 2)?, number(clock.next()?, 2)?, number(clock.next()?, 2)?);
    let zone = words.next()?;
    if clock.next().is_some() || words.next().is_some() || !zone.eq_ignore_ascii_case("gmt") {
        return None;
    }
    if year < 1970 || day < 1 || day > days_in_month(year, month) || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let days = days_from_civil(CivilDay { year, month, day });
    Some(days * DAY_SECONDS + u64::from(hour) * 3600 + u64::from(minute) * 60 + u64::from(second))
}

/// Writes an RFC 1123 date.
pub fn format(unix_seconds: u64) -> String {
    let days = unix_seconds / DAY_SECONDS;
    let CivilDay { year, month, day } = civil_from_days(days);
    let second_of_day = unix_seconds % DAY_SECONDS;
    // 1970-01-01 was a Thursday, index 3.
    let weekday = WEEKDAYS[((days + 3) % 7) as usize];
    let month = MONTHS[(month - 1) as usize];
    let (hour, minute, second) = (second_of_day / 3600, second_of_day / 60 % 60, second_of_day % 60);
    format!("{weekday}, {day:02} {month} {year:04} {hour:02}:{minute:02}:{second:02} GMT")
}

/// Appends the same. Answers of one second share it.
pub fn push(unix_seconds: u64, out: &mut Vec<u8>) {
    thread_local! {
        static LAST: RefCell<(u64, String)> = const { RefCell::new((u64::MAX, String::new())) };
    }
    LAST.with_borrow_mut(|(second, text)| {
        if *second != unix_seconds {
            (*second, *text) = (unix_seconds, format(unix_seconds));
        }
        out.extend_from_slice(text.as_bytes());
    });
}

/// The day that is `days` after 1970-01-01.
///
/// Years are counted from March, so that the leap day is the last day of its year and months follow a fixed
/// pattern; 400 such years always have 146,097 days.
pub fn civil_from_days(days: u64) -> CivilDay {
    // 719,468 days lie between 0000-03-01 and 1970-01-01.
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    CivilDay { year: u32::try_from(year).unwrap_or(u32::MAX), month: month as u32, day: day as u32 }
}

/// Days from 1970-01-01 to `day`; zero for anything earlier.
pub fn days_from_civil(day: CivilDay) -> u64 {
    let CivilDay { year, month, day } = day;
    let year = u64::from(year) - u64::from(month <= 2 && year > 0);
    let month_from_march = u64::from(if month > 2 { month - 3 } else { month + 9 });
    let day_of_year = (153 * month_from_march + 2) / 5 + u64::from(day).saturating_sub(1);
    let (era, year_of_era) = (year / 400, year % 400);
    let day_of_era = 365 * year_of_era + year_of_era / 4 - year_of_era / 100 + day_of_year;
    (era * 146_097 + day_of_era).saturating_sub(719_468)
}

fn days_in_month(year: u32, month: u32) -> u32 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// A decimal number of at most `digits_max` digits, without a sign.
fn number(text: &str, digits_max: usize) -> Option<u32> {
    let plain = !text.is_empty() && text.len() <= digits_max && text.bytes().all(|b| b.is_ascii_digit());
    if plain { text.parse().ok() } else { None }
}

fn position(names: &[&str], text: &str) -> Option<u32> {
    names.iter().position(|name| name.eq_ignore_ascii_case(text)).map(|index| index as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_moments_read_and_write() {
        for (text, seconds) in [
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
            ("Thu, 27 Apr 2017 00:51:12 GMT", 1_493_254_272),
            ("Thu, 01 Jan 2026 00:00:00 GMT", 1_767_225_600),
            ("Tue, 29 Feb 2000 12:00:00 GMT", 951_825_600),
            ("Thu, 29 Feb 2024 23:59:59 GMT", 1_709_251_199),
            ("Fri, 01 Mar 2024 00:00:00 GMT", 1_709_251_200),
            ("Sun, 28 Feb 2100 23:59:59 GMT", 4_107_542_399),
            ("Mon, 01 Mar 2100 00:00:00 GMT", 4_107_542_400),
            ("Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799),
        ] {
            assert_eq!(parse(text), Some(seconds), "{text}");
            assert_eq!(format(seconds), text);
        }
    }

    #[test]
    fn case_is_free_and_the_weekday_may_lie() {
        assert_eq!(parse("thu, 01 jan 1970 00:00:01 gmt"), Some(1));
        assert_eq!(parse("Mon, 1 Jan 1970 00:00:01 GMT"), Some(1));
    }

    #[test]
    fn what_is_not_such_a_date_is_refused() {
        for text in [
            "",
            "now",
            "2026-01-01T00:00:00Z",
            "Thu, 29 Feb 2023 00:00:00 GMT",
            "Mon, 29 Feb 2100 00:00:00 GMT",
            "Thu, 31 Apr 2026 00:00:00 GMT",
            "Thu, 00 Jan 2026 00:00:00 GMT",
            "Thu, 01 Foo 2026 00:00:00 GMT",
            "Thu, 01 Jan 1969 00:00:00 GMT",
            "Thu, 01 Jan 2026 24:00:00 GMT",
            "Thu, 01 Jan 2026 00:60:00 GMT",
            "Thu, 01 Jan 2026 00:00:60 GMT",
            "Thu, 01 Jan 2026 00:00 GMT",
            "Thu, 01 Jan 2026 00:00:00:00 GMT",
            "Thu, 01 Jan 2026 00:00:00 CET",
            "Thu, 01 Jan 2026 00:00:00 GMT GMT",
            "Thu, +1 Jan 2026 00:00:00 GMT",
            "Xyz, 01 Jan 2026 00:00:00 GMT",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_second_survives_the_round_trip(seconds in 0u64..253_402_300_800) {
            prop_assert_eq!(parse(&format(seconds)), Some(seconds));
        }

        #[test]
        fn no_text_panics(text in "\\PC*") {
            let _ = parse(&text);
        }
    }
}
