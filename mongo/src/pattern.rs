//! Regular expressions of MongoDB (PCRE2) on a Rust engine with look-around and backreferences.

use fancy_regex::{Regex, RegexBuilder};

use crate::error::{BAD_VALUE, MongoError, Result, bail};
use crate::values::Ref;

/// Steps of backtracking before a match is given up: enough for sane patterns, milliseconds for others.
const BACKTRACK_MAX: usize = 1_000_000;

/// A compiled regular expression.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    pub(crate) source: String,
    pub(crate) options: String,
    pub(crate) regex: Regex,
}

impl Pattern {
    /// Compiles a pattern with the letters `i`, `m`, `s`, `x` and `u`.
    pub(crate) fn new(source: &str, options: &str) -> Result<Pattern> {
        if source.contains('\0') {
            bail!(BAD_VALUE, "Regular expression cannot contain an embedded null byte");
        }
        if options.contains('\0') {
            bail!(BAD_VALUE, "Regular expression options string cannot contain an embedded null byte");
        }
        let mut flags = String::new();
        for letter in options.chars() {
            match letter {
                'i' | 'm' | 's' | 'x' => flags.push(letter),
                'u' => {}
                _ => bail!(51108, "invalid flag in regex options: {letter}"),
            }
        }
        let text = translate(source);
        let text = if flags.is_empty() { text } else { format!("(?{flags}){text}") };
        let regex = RegexBuilder::new(&text).backtrack_limit(BACKTRACK_MAX).build();
        let regex = regex
            .map_err(|error| MongoError::new(51091, format!("Regular expression is invalid: {error}")))?;
        Ok(Pattern { source: source.to_string(), options: options.to_string(), regex })
    }

    /// Whether a string matches.
    pub(crate) fn is_match(&self, text: &str) -> Result<bool> {
        let matched = self.regex.is_match(text).map_err(Pattern::gave_up)?;
        // A dollar sign also stands before a newline that ends the text.
        match text.strip_suffix('\n') {
            Some(line) if !matched && self.source.contains('$') => {
                self.regex.is_match(line).map_err(Pattern::gave_up)
            }
            _ => Ok(matched),
        }
    }

    /// The error for a match that took too long.
    pub(crate) fn gave_up(error: fancy_regex::Error) -> MongoError {
        MongoError::new(51156, format!("Error occurred while executing the regular expression: {error}"))
    }

    /// A stored regular expression matches itself.
    pub(crate) fn is_same(&self, value: Ref<'_>) -> bool {
        match value {
            Ref::RegularExpression(regex) => {
                regex.pattern.as_str() == self.source && regex.options.as_str() == self.options
            }
            _ => false,
        }
    }

    /// What every matching string begins with, if the pattern says so: an index can be narrowed to it.
    pub(crate) fn prefix(&self) -> Option<&str> {
        if self.options.contains(['i', 'm', 'x']) || self.source.contains('|') {
            return None;
        }
        let rest = self.source.strip_prefix('^').or_else(|| self.source.strip_prefix("\\A"))?;
        let special = |c: char| "\\^$.[]()?*+{}|".contains(c);
        let end = rest.find(special).unwrap_or(rest.len());
        let mut prefix = rest.get(..end)?;
        // The last letter may be repeated zero times.
        if rest.get(end..).is_some_and(|next| next.starts_with(['?', '*', '{'])) {
            prefix = prefix.get(..prefix.char_indices().next_back()?.0)?;
        }
        (!prefix.is_empty()).then_some(prefix)
    }
}

/// Spells what PCRE2 means differently: `\w`, `\d`, `\s` and `\b` are about ASCII, `\Z` is the end before a last
/// newline, and inside of brackets only `]`, `\`, `^` and `-` are special.
fn translate(source: &str) -> String {
    let (mut text, mut in_class) = (String::new(), false);
    let mut letters = source.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => escape(letters.next(), in_class, &mut text),
            '[' if !in_class => {
                in_class = true;
                text.push('[');
                // A bracket that closes at once is meant as itself.
                if letters.next_if_eq(&'^').is_some() {
                    text.push('^');
                }
                if letters.next_if_eq(&']').is_some() {
                    text.push_str("\\]");
                }
            }
            '[' if letters.peek() == Some(&':') => {
                text.push('[');
                for inner in letters.by_ref() {
                    text.push(inner);
                    if inner == ']' {
                        break;
                    }
                }
            }
            '[' | '&' | '~' if in_class => text.extend(['\\', letter]),
            ']' if in_class => {
                in_class = false;
                text.push(']');
            }
            other => text.push(other),
        }
    }
    text
}

fn escape(letter: Option<char>, in_class: bool, text: &mut String) {
    let set = match letter {
        Some('w' | 'W') => "0-9A-Za-z_",
        Some('d' | 'D') => "0-9",
        Some('s' | 'S') => " \\t\\n\\r\\x0B\\x0C",
        Some('Z') if !in_class => {
            text.push_str("(?=\\n?\\z)");
            return;
        }
        Some('b') if !in_class => {
            let word = "[0-9A-Za-z_]";
            *text += &format!("(?:(?<={word})(?!{word})|(?<!{word})(?={word}))");
            return;
        }
        Some(other) => {
            text.extend(['\\', other]);
            return;
        }
        None => {
            text.push('\\');
            return;
        }
    };
    let negated = letter.is_some_and(char::is_uppercase);
    match (in_class, negated) {
        (true, false) => text.push_str(set),
        (_, true) => *text += &format!("[^{set}]"),
        (false, false) => *text += &format!("[{set}]"),
    }
}
