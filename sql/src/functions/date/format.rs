//! DATETIMEFORMAT: moments in the shape a query asks for.
//!
//! A run of one letter is a specifier, as in .NET: `yyyy`, `yy`, `MM`, `dd`, `HH`, `hh`, `mm`, `ss`, `fff`
//! (fraction), `FFF` (fraction without zeros at its end), `tt`, and the English names `MMM`, `MMMM`, `ddd`,
//! `dddd`. A backslash makes the next character plain; everything else stands for itself.

use std::fmt::Write as _;

use super::super::limits::TEXT_BYTES_MAX;
use super::part::Part;
use super::time::{SECOND, Time};

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

const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// The longest pattern, in bytes. No specifier makes more than a name of nine letters out of four.
const PATTERN_BYTES_MAX: usize = TEXT_BYTES_MAX / 4;

/// The moment in the shape of the pattern; None if the pattern is wrong.
pub(super) fn format(time: Time, pattern: &str) -> Option<String> {
    if pattern.len() > PATTERN_BYTES_MAX {
        return None;
    }
    let mut out = String::new();
    let mut rest = pattern.chars().peekable();
    while let Some(letter) = rest.next() {
        if letter == '\\' {
            out.push(rest.next()?);
            continue;
        }
        let mut count = 1;
        while rest.next_if_eq(&letter).is_some() {
            count += 1;
        }
        write_run(time, letter, count, &mut out)?;
    }
    Some(out)
}

fn write_run(time: Time, letter: char, count: usize, out: &mut String) -> Option<()> {
    let part = |part: Part| part.of(time);
    match (letter, count) {
        ('y', 1 | 2) => number(part(Part::Year) % 100, count, out),
        ('y', _) => number(part(Part::Year), count.min(MAX_DIGITS), out),
        ('M', 1 | 2) => number(part(Part::Month), count, out),
        ('M', _) => name(&MONTHS, part(Part::Month) - 1, count, out),
        ('d', 1 | 2) => number(part(Part::Day), count, out),
        ('d', _) => name(&DAYS, time.date().weekday(), count, out),
        ('H', _) => number(part(Part::Hour), count.min(2), out),
        ('h', _) => number((part(Part::Hour) + 11) % 12 + 1, count.min(2), out),
        ('m', _) => number(part(Part::Minute), count.min(2), out),
        ('s', _) => number(part(Part::Second), count.min(2), out),
        ('f', 1..=7) => out.push_str(&fraction(time, count)),
        ('F', 1..=7) => out.push_str(fraction(time, count).trim_end_matches('0')),
        ('f' | 'F', _) => return None,
        ('t', _) => {
            let half = if part(Part::Hour) < 12 { "AM" } else { "PM" };
            out.push_str(half.get(..count.min(2))?);
        }
        _ => out.extend(std::iter::repeat_n(letter, count)),
    }
    Some(())
}

/// As many as a year is ever padded to.
const MAX_DIGITS: usize = 16;

fn number(value: i64, digits: usize, out: &mut String) {
    // Writing into a String cannot fail.
    let _ = write!(out, "{value:0digits$}");
}

/// Three letters give the short name, more the whole one.
fn name(names: &[&str], index: i64, count: usize, out: &mut String) {
    let name = usize::try_from(index).ok().and_then(|index| names.get(index)).copied().unwrap_or_default();
    out.push_str(if count == 3 { name.get(..3).unwrap_or(name) } else { name });
}

fn fraction(time: Time, digits: usize) -> String {
    let mut text = format!("{:07}", time.ticks_of_day() % SECOND);
    text.truncate(digits);
    text
}
