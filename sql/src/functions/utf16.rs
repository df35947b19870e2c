//! Positions in text, counted in UTF-16 code units as the service counts them.
//!
//! Text is UTF-8 here and cannot hold half of a surrogate pair: where a cut would leave one, U+FFFD takes its
//! place. Text of ASCII only, which most is, has the same positions in both.

use std::borrow::Cow;

/// The length.
pub(super) fn len(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().map(char::len_utf16).sum() }
}

/// Where a unit begins, in bytes; the end of the text for a unit past it, None inside of a pair.
fn byte_at(text: &str, unit: usize) -> Option<usize> {
    let mut units = 0;
    for (byte, character) in text.char_indices() {
        if units >= unit {
            return (units == unit).then_some(byte);
        }
        units += character.len_utf16();
    }
    (units <= unit).then_some(text.len())
}

/// The same, rounded up to the next character.
pub(super) fn byte_from(text: &str, unit: usize) -> usize {
    if text.is_ascii() {
        return unit.min(text.len());
    }
    byte_at(text, unit).or_else(|| byte_at(text, unit.saturating_add(1))).unwrap_or(text.len())
}

/// `count` units from `start` on, as far as there are any.
pub(super) fn slice<'a>(text: &Cow<'a, str>, start: usize, count: usize) -> Cow<'a, str> {
    let end = start.saturating_add(count);
    let (from, to) = if text.is_ascii() {
        (Some(start.min(text.len())), Some(end.min(text.len())))
    } else {
        (byte_at(text, start), byte_at(text, end))
    };
    match (from, to) {
        (Some(from), Some(to)) => part(text, from, to),
        _ => {
            let units: Vec<u16> = text.encode_utf16().skip(start).take(count).collect();
            Cow::Owned(String::from_utf16_lossy(&units))
        }
    }
}

/// The text between two bytes that begin characters. Borrows from where `text` borrows.
pub(super) fn part<'a>(text: &Cow<'a, str>, from: usize, to: usize) -> Cow<'a, str> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.get(from..to).unwrap_or_default()),
        Cow::Owned(text) => Cow::Owned(text.get(from..to).unwrap_or_default().to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_code_units() {
        let check = |start, count, expected: &str| {
            assert_eq!(slice(&Cow::Borrowed("a😀é"), start, count), expected);
        };
        assert_eq!(len("a😀é"), 4);
        check(0, 1, "a");
        check(1, 2, "😀");
        check(3, 9, "é");
        check(0, usize::MAX, "a😀é");
        check(4, 1, "");
        check(0, 2, "a\u{FFFD}");
        check(2, 2, "\u{FFFD}é");
        assert_eq!(byte_from("a😀é", 2), 5);
        assert_eq!(byte_from("a😀é", 99), 7);
    }
}
