//! LIKE: patterns with wildcards.
//!
//! `%` is any run of characters, `_` any one, `[a-f]` one of a set, `[^a-f]` one outside it. A wildcard in
//! brackets is literal, and so is a `[` that is never closed. Matching goes over the whole text and needs at
//! most text times pattern steps: only the last `%` is ever tried again.

/// A compiled pattern.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pattern {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq)]
enum Part {
    Any,
    One,
    Literal(char),
    Set { negated: bool, ranges: Vec<(char, char)> },
}

impl Pattern {
    pub(crate) fn new(text: &str, escape: Option<char>) -> Pattern {
        let characters: Vec<char> = text.chars().collect();
        let mut parts = Vec::new();
        let mut rest = characters.as_slice();
        while let Some((&character, after)) = rest.split_first() {
            rest = after;
            let part = match character {
                character if Some(character) == escape => match rest.split_first() {
                    Some((&next, after)) => {
                        rest = after;
                        Part::Literal(next)
                    }
                    None => Part::Literal(character),
                },
                '%' => Part::Any,
                '_' => Part::One,
                '[' => match set(rest) {
                    Some((set, after)) => {
                        rest = after;
                        set
                    }
                    None => Part::Literal('['),
                },
                character => Part::Literal(character),
            };
            parts.push(part);
        }
        Pattern { parts }
    }

    /// The text every match begins with.
    pub(crate) fn prefix(&self) -> String {
        let literals = self.parts.iter().map_while(|part| match part {
            Part::Literal(character) => Some(*character),
            _ => None,
        });
        literals.collect()
    }

    pub(crate) fn matches(&self, text: &str) -> bool {
        let mut parts = self.parts.as_slice();
        let mut rest = text.chars();
        // The parts after the last `%`, and the text from which they are tried next.
        let mut retry: Option<(&[Part], std::str::Chars<'_>)> = None;
        loop {
            match parts.split_first() {
                Some((Part::Any, after)) => {
                    parts = after;
                    retry = Some((after, rest.clone()));
                    continue;
                }
                Some((part, after)) => {
                    let mut ahead = rest.clone();
                    if ahead.next().is_some_and(|character| part.fits(character)) {
                        parts = after;
                        rest = ahead;
                        continue;
                    }
                }
                None if rest.as_str().is_empty() => return true,
                None => {}
            }
            // No fit here: let the last `%` take one more character.
            let Some((after, from)) = &mut retry else { return false };
            if from.next().is_none() {
                return false;
            }
            parts = after;
            rest = from.clone();
        }
    }
}

impl Part {
    fn fits(&self, character: char) -> bool {
        match self {
            Part::Any => false,
            Part::One => true,
            Part::Literal(literal) => *literal == character,
            Part::Set { negated, ranges } => {
                ranges.iter().any(|(low, high)| (*low..=*high).contains(&character)) != *negated
            }
        }
    }
}

/// Reads a set after its `[`; none if it is never closed. A `]` directly after the start is one of the set.
fn set(text: &[char]) -> Option<(Part, &[char])> {
    let (negated, inside) = match text.split_first() {
        Some(('^', after)) => (true, after),
        _ => (false, text),
    };
    let length = 1 + inside.iter().skip(1).position(|character| *character == ']')?;
    let (mut members, after) = (inside.get(..length)?, inside.get(length + 1..)?);
    let mut ranges = Vec::new();
    loop {
        match members {
            [low, '-', high, rest @ ..] => {
                ranges.push((*low, *high));
                members = rest;
            }
            [one, rest @ ..] => {
                ranges.push((*one, *one));
                members = rest;
            }
            [] => return Some((Part::Set { negated, ranges }, after)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, escape: Option<char>, text: &str, expected: bool) {
        assert_eq!(Pattern::new(pattern, escape).matches(text), expected, "{text:?} LIKE {pattern:?}");
    }

    #[test]
    fn patterns_match_whole_texts() {
        check("", None, "", true);
        check("%", None, "", true);
        check("a%", None, "abc", true);
        check("%c", None, "abc", true);
        check("%b%", None, "abc", true);
        check("b%", None, "abc", false);
        check("a_c", None, "abc", true);
        check("a_c", None, "ac", false);
        check("%a%a%b", None, "aaaaaaaaaaaaaaaaaaaaaaaac", false);
        check("%_", None, "line\nbreak", true);
        check("[a-c]x", None, "bx", true);
        check("[^a-c]x", None, "bx", false);
        check("[%]", None, "%", true);
        check("[%]", None, "x", false);
        check("[[]x", None, "[x", true);
        check("]", None, "]", true);
        check("[ab", None, "[ab", true);
        check("50!%", Some('!'), "50%", true);
        check("50!%", Some('!'), "50x", false);
        check("é_", None, "éé", true);
        assert_eq!(Pattern::new("ab_%", None).prefix(), "ab");
    }
}
