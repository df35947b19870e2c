//! Regular expressions.
//!
//! Most patterns run on an engine whose time grows with the text only. Patterns with look-around or back
//! references need backtracking; for those the text and the number of steps are limited, and passing a limit
//! fails the query. A compiled pattern is kept for the run.

use std::fmt::Write as _;

use super::{Args, Family, Function};
use crate::context::Context;
use crate::error::EvalError;
use crate::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[Function::failing(
    "REGEXMATCH",
    Family::String,
    Args::between(2, 3),
    "REGEXMATCH(s, pattern [, modifiers])",
    "Whether the pattern is found in s; modifiers are any of m, s, i and x.",
    regex_match,
)
.also(&["REGEX_MATCH"])];

/// The longest pattern, in bytes.
const PATTERN_BYTES_MAX: usize = 16 << 10;

/// The memory a compiled pattern may take.
const COMPILED_BYTES_MAX: usize = 1 << 20;

/// How often a match may go back.
const BACKTRACKS_MAX: usize = 100_000;

/// The longest text for backtracking: each step may look at all of it.
const BACKTRACKING_TEXT_MAX: usize = 16 << 10;

enum Pattern {
    Linear(regex::Regex),
    Backtracking(fancy_regex::Regex),
    Invalid,
}

fn regex_match<'a>(context: &Context<'_>, args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    let (text, pattern, modifiers) = match args {
        [Value::String(text), Value::String(pattern)] => (text, pattern, ""),
        [Value::String(text), Value::String(pattern), Value::String(modifiers)] => {
            (text, pattern, modifiers.as_ref())
        }
        _ => return Ok(Value::Undefined),
    };
    let Some(source) = source(pattern, modifiers) else { return Ok(Value::Undefined) };
    match context.cached(&source, || Pattern::new(&source)).as_ref() {
        Pattern::Invalid => Ok(Value::Undefined),
        Pattern::Linear(regex) => Ok(Value::Bool(regex.is_match(text))),
        Pattern::Backtracking(_) if text.len() > BACKTRACKING_TEXT_MAX => Err(too_much("is too long")),
        Pattern::Backtracking(regex) => match regex.is_match(text.as_ref()) {
            Ok(found) => Ok(Value::Bool(found)),
            Err(_) => Err(too_much("takes too many steps")),
        },
    }
}

/// The pattern with its modifiers in front; None if one of them is unknown or the pattern is too long.
fn source(pattern: &str, modifiers: &str) -> Option<String> {
    if pattern.len() > PATTERN_BYTES_MAX || !modifiers.chars().all(|modifier| "msix".contains(modifier)) {
        return None;
    }
    let mut source = String::new();
    for modifier in "msix".chars().filter(|modifier| modifiers.contains(*modifier)) {
        // Writing into a String cannot fail.
        let _ = write!(source, "(?{modifier})");
    }
    source.push_str(pattern);
    Some(source)
}

impl Pattern {
    fn new(source: &str) -> Pattern {
        let linear = regex::RegexBuilder::new(source)
            .size_limit(COMPILED_BYTES_MAX)
            .dfa_size_limit(COMPILED_BYTES_MAX)
            .build();
        match linear {
            Ok(regex) => Pattern::Linear(regex),
            // Backtracking would not make it smaller.
            Err(regex::Error::CompiledTooBig(_)) => Pattern::Invalid,
            Err(_) => Pattern::backtracking(source),
        }
    }

    fn backtracking(source: &str) -> Pattern {
        let regex = fancy_regex::RegexBuilder::new(source)
            .backtrack_limit(BACKTRACKS_MAX)
            .delegate_size_limit(COMPILED_BYTES_MAX)
            .delegate_dfa_size_limit(COMPILED_BYTES_MAX)
            .build();
        regex.map_or(Pattern::Invalid, Pattern::Backtracking)
    }
}

fn too_much(what: &str) -> EvalError {
    EvalError::failed(format!(
        "REGEXMATCH: the text {what} for a pattern with look-around or back references. Use a pattern without \
         them, or narrow the query with another filter."
    ))
}

#[cfg(test)]
pub(super) const CASES: &[super::testing::Case] = &[
    ("REGEXMATCH", r#""abcd","ABC""#, "false"),
    ("REGEXMATCH", r#""abcd","ABC","i""#, "true"),
    ("REGEXMATCH", r#""abcd","ab.","""#, "true"),
    ("REGEXMATCH", r#""abcd","ab c","x""#, "true"),
    ("REGEXMATCH", r#""abcd","aB c","ix""#, "true"),
    ("REGEXMATCH", r#""03a","[0-9]""#, "true"),
    ("REGEXMATCH", r#""salt3824908","salt{1}""#, "true"),
    ("REGEXMATCH", r#""shame","s....","i""#, "true"),
    ("REGEXMATCH", r#""a\nb","a.b""#, "false"),
    ("REGEXMATCH", r#""a\nb","a.b","s""#, "true"),
    ("REGEXMATCH", r#""a\nb","^b""#, "false"),
    ("REGEXMATCH", r#""a\nb","^b","m""#, "true"),
    ("REGEXMATCH", r#""a\nB","^b$","mi""#, "true"),
    ("REGEXMATCH", r#""abc","(?=.*c)ab""#, "true"),
    ("REGEXMATCH", r#""abab","(ab)\\1""#, "true"),
    ("REGEXMATCH", r#""abc","(?!a)b","i""#, "true"),
    ("REGEXMATCH", r#""abc","a","q""#, "undefined"),
    ("REGEXMATCH", r#""abc","(""#, "undefined"),
    ("REGEXMATCH", r#""abc","a{1000}{1000}{1000}""#, "undefined"),
    ("REGEXMATCH", r#""abc",1"#, "undefined"),
    ("REGEXMATCH", r#"1,"1""#, "undefined"),
    ("REGEXMATCH", r#""abc","a",null"#, "undefined"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backtracking_is_bounded() {
        let context = Context::new(0, 0);
        let evil = |text: String, pattern| regex_match(&context, &[text.into(), Value::from(pattern)]);
        assert!(evil("a".repeat(60), r"^(a|a)*\1$(?=b)").is_err());
        assert!(evil("a".repeat(BACKTRACKING_TEXT_MAX + 1), "(?=a)a").is_err());
        assert!(evil("(".repeat(PATTERN_BYTES_MAX), "(?=a)a").is_ok());
        assert!(matches!(evil("a".into(), "x".repeat(PATTERN_BYTES_MAX + 1).leak()), Ok(Value::Undefined)));
        assert!(matches!(evil("a".into(), "(".repeat(9_000).leak()), Ok(Value::Undefined)));
    }
}
