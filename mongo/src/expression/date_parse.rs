//! Text read as a date: by a format, or in the common forms of ISO 8601 and mail headers.

use crate::calendar::{MILLIS_PER_DAY, Zone, days_from_civil, days_from_iso_week, days_in_month};
use crate::error::{CONVERSION_FAILURE, MongoError, Result, bail};

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// What has been read so far.
#[derive(Default)]
struct Found {
    year: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
    iso: [Option<i64>; 3],
    time: [i64; 4],
    offset: Option<i64>,
    zone: Option<Zone>,
}

fn wrong(text: &str) -> MongoError {
    MongoError::new(CONVERSION_FAILURE, format!("Error parsing date string '{text}'"))
}

/// Takes up to so many digits, and at least one.
fn digits<'a>(rest: &mut &'a str, most: usize) -> Option<&'a str> {
    let count = rest.bytes().take(most).take_while(u8::is_ascii_digit).count();
    let (found, after) = rest.split_at_checked(count)?;
    *rest = after;
    (!found.is_empty()).then_some(found)
}

fn number(rest: &mut &str, most: usize) -> Option<i64> {
    digits(rest, most)?.parse().ok()
}

/// Milliseconds from the digits after the point.
fn fraction(rest: &mut &str, most: usize) -> Option<i64> {
    let found = digits(rest, most)?;
    let padded = format!("{found:0<3}");
    padded.get(..3)?.parse().ok()
}

fn take(rest: &mut &str, what: &str) -> bool {
    match rest.strip_prefix(what) {
        Some(after) => {
            *rest = after;
            true
        }
        None => false,
    }
}

/// An offset from Greenwich: `Z`, `+hh`, `+hhmm` or `+hh:mm`.
fn offset(rest: &mut &str) -> Option<i64> {
    if take(rest, "Z") || take(rest, "z") {
        return Some(0);
    }
    let sign = match rest.bytes().next()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    *rest = rest.get(1..)?;
    let hours = digits(rest, 2)?;
    take(rest, ":");
    let minutes = digits(rest, 2).unwrap_or("0");
    Some(sign * (hours.parse::<i64>().ok()? * 3600 + minutes.parse::<i64>().ok()? * 60))
}

fn word(rest: &mut &str) -> String {
    let count = rest.chars().take_while(|c| c.is_ascii_alphabetic()).count();
    let (found, after) = rest.split_at_checked(count).unwrap_or(("", rest));
    *rest = after;
    found.to_lowercase()
}

fn month_of(word: &str) -> Option<i64> {
    let short = word.get(..3)?;
    MONTHS.iter().position(|month| *month == short).map(|month| month as i64 + 1)
}

impl Found {
    /// The moment, if what was read makes one.
    fn millis(self, text: &str, zone: &Zone, zoned: bool) -> Result<i64> {
        let days = match (self.iso, self.year, self.day_of_year) {
            ([Some(year), week, day], None, _) => {
                days_from_iso_week(year, week.unwrap_or(1), day.unwrap_or(1))
            }
            (_, Some(year), Some(day)) => days_from_civil(year, 1, day),
            (_, Some(year), None) => {
                let (month, day) = (self.month.unwrap_or(1), self.day.unwrap_or(1));
                if !(1..=12).contains(&month) || day < 1 || day > days_in_month(year, month) {
                    return Err(wrong(text));
                }
                days_from_civil(year, month, day)
            }
            _ => return Err(wrong(text)),
        };
        let [hour, minute, second, milli] = self.time;
        if hour > 24 || minute > 59 || second > 60 {
            return Err(wrong(text));
        }
        let local = days * MILLIS_PER_DAY + hour * 3_600_000 + minute * 60_000 + second * 1000 + milli;
        match (self.offset, &self.zone) {
            (Some(_), _) | (_, Some(_)) if zoned => {
                bail!(
                    CONVERSION_FAILURE,
                    "you cannot pass in a date/time string with time zone information ('{text}') together with a timezone argument"
                )
            }
            (Some(offset), _) => Ok(local - offset * 1000),
            (None, Some(found)) => Ok(found.utc(local)),
            (None, None) => Ok(zone.utc(local)),
        }
    }
}

/// Whether a zone was given besides the text: only UTC goes with a text that names its own.
fn is_zoned(zone: &Zone) -> bool {
    !matches!(zone, Zone::Fixed(0))
}

/// Reads a date in one of the common forms.
pub(crate) fn parse_free(text: &str, zone: &Zone) -> Result<i64> {
    read_free(text.trim()).ok_or_else(|| wrong(text))?.millis(text, zone, is_zoned(zone))
}

fn read_free(text: &str) -> Option<Found> {
    let (mut found, mut rest) = (Found::default(), text);
    if rest.starts_with(|c: char| c.is_ascii_alphabetic()) {
        // A weekday or a month comes first.
        let first = word(&mut rest);
        rest = rest.trim_start_matches([',', ' ', '.']);
        if let Some(month) = month_of(&first) {
            found.month = Some(month);
            found.day = number(&mut rest, 2);
            let after =
                rest.trim_start_matches(|c: char| c.is_ascii_alphabetic()).trim_start_matches([',', ' ']);
            rest = after;
            found.year = number(&mut rest, 4);
            return read_time(found, rest);
        }
        if !["mon", "tue", "wed", "thu", "fri", "sat", "sun"].contains(&first.get(..3)?) {
            return None;
        }
    }
    let start = rest;
    let first = digits(&mut rest, 14)?;
    match (first.len(), rest.chars().next()) {
        (4, Some('-' | '/')) => {
            found.year = first.parse().ok();
            rest = rest.get(1..)?;
            if take(&mut rest, "W") {
                found.iso = [found.year.take(), number(&mut rest, 2), Some(1)];
                if take(&mut rest, "-") {
                    found.iso[2] = number(&mut rest, 1);
                }
                return read_time(found, rest);
            }
            if rest.starts_with(|c: char| c.is_ascii_alphabetic()) {
                found.month = month_of(&word(&mut rest));
                found.month?;
            } else {
                let before = rest;
                let digits_found = digits(&mut rest, 3)?;
                if digits_found.len() == 3 {
                    found.day_of_year = digits_found.parse().ok();
                    return read_time(found, rest);
                }
                rest = before;
                found.month = Some(number(&mut rest, 2)?);
            }
            if rest.starts_with(['-', '/']) {
                rest = rest.get(1..)?;
                found.day = Some(number(&mut rest, 2)?);
            }
        }
        (8, _) => {
            found.year = first.get(..4)?.parse().ok();
            found.month = first.get(4..6)?.parse().ok();
            found.day = first.get(6..8)?.parse().ok();
        }
        (14, _) => {
            found.year = first.get(..4)?.parse().ok();
            found.month = first.get(4..6)?.parse().ok();
            found.day = first.get(6..8)?.parse().ok();
            for (at, range) in [(0, 8..10), (1, 10..12), (2, 12..14)] {
                *found.time.get_mut(at)? = first.get(range)?.parse().ok()?;
            }
            return read_zone(found, rest);
        }
        (1 | 2, Some('/')) => {
            // Month first, as Americans write.
            found.month = first.parse().ok();
            rest = rest.get(1..)?;
            found.day = Some(number(&mut rest, 2)?);
            if !take(&mut rest, "/") {
                return None;
            }
            found.year = Some(number(&mut rest, 4)?);
        }
        (1 | 2, Some('.' | '-' | ' ')) => {
            found.day = first.parse().ok();
            rest = rest.get(1..)?;
            if rest.starts_with(|c: char| c.is_ascii_alphabetic()) {
                found.month = Some(month_of(&word(&mut rest))?);
            } else {
                found.month = Some(number(&mut rest, 2)?);
            }
            rest = rest.trim_start_matches([' ', '-', '.', ',']);
            found.year = Some(number(&mut rest, 4)?);
        }
        _ => {
            let _ = start;
            return None;
        }
    }
    read_time(found, rest)
}

fn read_time(mut found: Found, text: &str) -> Option<Found> {
    let mut rest = text.trim_start_matches([' ', ',']);
    if !take(&mut rest, "T") {
        take(&mut rest, "t");
    }
    if rest.is_empty() {
        return Some(found);
    }
    if rest.starts_with(|c: char| c.is_ascii_digit()) {
        found.time[0] = number(&mut rest, 2)?;
        if take(&mut rest, ":") || rest.starts_with(|c: char| c.is_ascii_digit()) {
            found.time[1] = number(&mut rest, 2)?;
        }
        if take(&mut rest, ":") || rest.starts_with(|c: char| c.is_ascii_digit()) {
            found.time[2] = number(&mut rest, 2)?;
        }
        if take(&mut rest, ".") || take(&mut rest, ",") {
            found.time[3] = fraction(&mut rest, 9)?;
        }
        let after = rest.trim_start().to_lowercase();
        for (half, name) in [(0, "am"), (12, "pm")] {
            if after.starts_with(name) {
                found.time[0] = found.time[0] % 12 + half;
                rest = rest.trim_start().get(2..)?;
            }
        }
    }
    read_zone(found, rest)
}

fn read_zone(mut found: Found, text: &str) -> Option<Found> {
    let mut rest = text.trim_start();
    if rest.is_empty() {
        return Some(found);
    }
    if let Some(offset) = offset(&mut rest) {
        found.offset = Some(offset);
        return rest.trim().is_empty().then_some(found);
    }
    found.zone = Some(Zone::parse(&rest.trim().replace("EST", "America/New_York")).ok()?);
    Some(found)
}

/// Reads a date by a format.
pub(crate) fn parse_format(text: &str, format: &str, zone: &Zone) -> Result<i64> {
    let (mut found, mut rest) = (Found::default(), text);
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            if !take(&mut rest, letter.encode_utf8(&mut [0; 4])) {
                return Err(wrong(text));
            }
            continue;
        }
        let Some(directive) = letters.next() else { bail!(18535, "Unmatched '%' at end of format string") };
        read_directive(directive, &mut rest, &mut found, text)?;
    }
    if !rest.is_empty() {
        return Err(wrong(text));
    }
    let natural = found.year.is_some() && found.iso[0].is_none();
    if !natural && found.iso[0].is_none() {
        return Err(wrong(text));
    }
    found.millis(text, zone, is_zoned(zone))
}

fn read_directive(directive: char, rest: &mut &str, found: &mut Found, text: &str) -> Result<()> {
    let mut read = |most: usize| number(rest, most).ok_or_else(|| wrong(text));
    match directive {
        '%' => {
            if !take(rest, "%") {
                return Err(wrong(text));
            }
        }
        'Y' => found.year = Some(read(4)?),
        'm' => found.month = Some(read(2)?),
        'd' => found.day = Some(read(2)?),
        'j' => found.day_of_year = Some(read(3)?),
        'H' => found.time[0] = read(2)?,
        'M' => found.time[1] = read(2)?,
        'S' => found.time[2] = read(2)?,
        'L' => found.time[3] = fraction(rest, 3).ok_or_else(|| wrong(text))?,
        'G' => found.iso[0] = Some(read(4)?),
        'V' => found.iso[1] = Some(read(2)?),
        'u' => found.iso[2] = Some(read(1)?),
        'b' | 'B' => found.month = Some(month_of(&word(rest)).ok_or_else(|| wrong(text))?),
        'z' => found.offset = Some(offset(rest).ok_or_else(|| wrong(text))?),
        'Z' => {
            let negative = take(rest, "-");
            if !negative {
                take(rest, "+");
            }
            let minutes = number(rest, 4).ok_or_else(|| wrong(text))?;
            found.offset = Some(if negative { -minutes * 60 } else { minutes * 60 });
        }
        other => bail!(18536, "Invalid format character '%{other}' in format string"),
    }
    Ok(())
}
