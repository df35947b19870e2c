//! Finding text in text.
//!
//! Without regard to case means: both sides in upper case, character by character.

use std::borrow::Cow;

use super::string::to_upper;
use super::{Args, Family, Function, PlainRun, all, any, utf16};
use crate::context::Context;
use crate::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    find(
        "CONTAINS",
        Args::between(2, 3),
        "CONTAINS(s, sub [, ignore_case])",
        "Whether sub is in s.",
        contains,
    ),
    list(
        "CONTAINS_ALL_CI",
        "CONTAINS_ALL_CI(s, sub1 [, ...])",
        "Whether every text is in s, whatever its case.",
        contains_all_ci,
    )
    .also(&["CONTAINSALLCI"]),
    list(
        "CONTAINS_ALL_CS",
        "CONTAINS_ALL_CS(s, sub1 [, ...])",
        "Whether every text is in s.",
        contains_all_cs,
    )
    .also(&["CONTAINSALLCS"]),
    list(
        "CONTAINS_ANY_CI",
        "CONTAINS_ANY_CI(s, sub1 [, ...])",
        "Whether one of the texts is in s, whatever its case.",
        contains_any_ci,
    )
    .also(&["CONTAINSANYCI"]),
    list(
        "CONTAINS_ANY_CS",
        "CONTAINS_ANY_CS(s, sub1 [, ...])",
        "Whether one of the texts is in s.",
        contains_any_cs,
    )
    .also(&["CONTAINSANYCS"]),
    find(
        "ENDSWITH",
        Args::between(2, 3),
        "ENDSWITH(s, sub [, ignore_case])",
        "Whether s ends with sub.",
        ends_with,
    ),
    find(
        "INDEX_OF",
        Args::between(2, 3),
        "INDEX_OF(s, sub [, start])",
        "Where sub first is in s, counted from 0; -1 if it is not.",
        index_of,
    )
    .also(&["INDEXOF"]),
    find(
        "LASTINDEXOF",
        Args::between(2, 3),
        "LASTINDEXOF(s, sub [, end])",
        "Where sub last is in s, not reaching beyond end; -1 if it is not.",
        last_index_of,
    )
    .also(&["LAST_INDEX_OF"]),
    find(
        "STARTSWITH",
        Args::between(2, 3),
        "STARTSWITH(s, sub [, ignore_case])",
        "Whether s starts with sub.",
        starts_with,
    ),
    find(
        "STRINGEQUALS",
        Args::between(2, 3),
        "STRINGEQUALS(s1, s2 [, ignore_case])",
        "Whether the texts are the same.",
        string_equals,
    )
    .also(&["STRING_EQUALS"]),
];

const fn find(
    name: &'static str,
    args: Args,
    signature: &'static str,
    help: &'static str,
    run: PlainRun,
) -> Function {
    Function::new(name, Family::String, args, signature, help, run)
}

/// For functions with a list of texts, where undefined counts as an answer that is not known.
const fn list(name: &'static str, signature: &'static str, help: &'static str, run: PlainRun) -> Function {
    find(name, Args::at_least(2), signature, help, run).sees_undefined()
}

fn folded(text: &str) -> Cow<'_, str> {
    let has_upper = text.chars().any(|character| to_upper(character) != character);
    if has_upper { Cow::Owned(text.chars().map(to_upper).collect()) } else { Cow::Borrowed(text) }
}

/// Asks about two texts, ignoring case if the third argument says so.
fn ask<'a>(args: &[Value<'a>], question: impl Fn(&str, &str) -> bool) -> Value<'a> {
    match args {
        [Value::String(text), Value::String(other)]
        | [Value::String(text), Value::String(other), Value::Bool(false)] => question(text, other).into(),
        [Value::String(text), Value::String(other), Value::Bool(true)] => {
            question(&folded(text), &folded(other)).into()
        }
        _ => Value::Undefined,
    }
}

fn contains<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    ask(args, |text, other| text.contains(other))
}

fn ends_with<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    ask(args, |text, other| text.ends_with(other))
}

fn starts_with<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    ask(args, |text, other| text.starts_with(other))
}

fn string_equals<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    ask(args, |text, other| text == other)
}

fn contains_all_cs<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    all(answers(args, |text| Cow::Borrowed(text)).into_iter()).into()
}

fn contains_all_ci<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    all(answers(args, folded).into_iter()).into()
}

fn contains_any_cs<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    any(answers(args, |text| Cow::Borrowed(text)).into_iter()).into()
}

fn contains_any_ci<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    any(answers(args, folded).into_iter()).into()
}

/// For each text of the list whether it is in the first argument; None if one of the two is not text.
fn answers(args: &[Value<'_>], prepare: impl Fn(&str) -> Cow<'_, str>) -> Vec<Option<bool>> {
    let Some((text, list)) = args.split_first() else { return Vec::new() };
    let text = text.as_str().map(&prepare);
    let answer = |other: &Value<'_>| Some(text.as_ref()?.contains(prepare(other.as_str()?).as_ref()));
    list.iter().map(answer).collect()
}

fn index_of<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    let (text, other, start) = match args {
        [Value::String(text), Value::String(other)] => (text, other, Some(0)),
        [Value::String(text), Value::String(other), start] => (text, other, start.as_i64()),
        _ => return Value::Undefined,
    };
    let Some(start) = start else { return Value::Undefined };
    // A start before the text is its start, as in JavaScript; the service does not say.
    let from = utf16::byte_from(text, start.max(0) as usize);
    let found = text.get(from..).and_then(|rest| rest.find(other.as_ref())).map(|at| from + at);
    position(text, found)
}

fn last_index_of<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    let (text, other, last) = match args {
        [Value::String(text), Value::String(other)] => (text, other, Some(i64::MAX)),
        [Value::String(text), Value::String(other), last] => (text, other, last.as_i64()),
        _ => return Value::Undefined,
    };
    let Some(last) = last else { return Value::Undefined };
    // The character at `last` is still looked at; before the text there is none.
    let to = utf16::byte_from(text, last.saturating_add(1).max(0) as usize);
    position(text, text.get(..to).and_then(|head| head.rfind(other.as_ref())))
}

fn position<'a>(text: &str, byte: Option<usize>) -> Value<'a> {
    let before = byte.and_then(|byte| text.get(..byte));
    Value::Int(before.map_or(-1, |before| utf16::len(before) as i64))
}

#[cfg(test)]
pub(super) const CASES: &[super::testing::Case] = &[
    ("CONTAINS", r#""abc","ab""#, "true"),
    ("CONTAINS", r#""abc","AB""#, "false"),
    ("CONTAINS", r#""abc","AB",true"#, "true"),
    ("CONTAINS", r#""CAFÉ","fé",true"#, "true"),
    ("CONTAINS", r#""abc","AB",false"#, "false"),
    ("CONTAINS", r#""abc","""#, "true"),
    ("CONTAINS", r#""abc","a",1"#, "undefined"),
    ("CONTAINS", r#""abc","a",undefined"#, "undefined"),
    ("CONTAINS", r#"1,"a""#, "undefined"),
    ("CONTAINS", r#""a",null"#, "undefined"),
    ("CONTAINS_ALL_CI", r#""Have a nice day!","HAVE","NICE","DAY!""#, "true"),
    ("CONTAINS_ALL_CI", r#""Have a nice day!","had","nice""#, "false"),
    ("CONTAINS_ALL_CI", r#""Have a nice day!",undefined,"nice""#, "undefined"),
    ("CONTAINS_ALL_CI", r#""Have a nice day!",undefined,"had""#, "false"),
    ("CONTAINS_ALL_CS", r#""Have a nice day!","Have","nice""#, "true"),
    ("CONTAINS_ALL_CS", r#""Have a nice day!","have","nice""#, "false"),
    ("CONTAINS_ALL_CS", r#""Have",1"#, "undefined"),
    ("CONTAINS_ALL_CS", r#"undefined,"a""#, "undefined"),
    ("CONTAINS_ANY_CI", r#""Have a nice day!","HAD","NICE""#, "true"),
    ("CONTAINS_ANY_CI", r#""Have a nice day!","had""#, "false"),
    ("CONTAINS_ANY_CS", r#""Have a nice day!","have","nice""#, "true"),
    ("CONTAINS_ANY_CS", r#""Have a nice day!","HAVE","NICE""#, "false"),
    ("CONTAINS_ANY_CS", r#""Have a nice day!",undefined,"nice""#, "true"),
    ("CONTAINS_ANY_CS", r#""Have a nice day!",undefined,"had""#, "undefined"),
    ("CONTAINS_ANY_CS", r#"5,"5""#, "undefined"),
    ("ENDSWITH", r#""abc","bc""#, "true"),
    ("ENDSWITH", r#""abc","BC""#, "false"),
    ("ENDSWITH", r#""abc","BC",true"#, "true"),
    ("ENDSWITH", r#""abc","""#, "true"),
    ("ENDSWITH", r#"["abc"],"bc""#, "undefined"),
    ("INDEX_OF", r#""AdventureWorks","Works""#, "9"),
    ("INDEX_OF", r#""AdventureWorks","Cosmos""#, "-1"),
    ("INDEX_OF", r#""AdventureWorks","Works",5"#, "9"),
    ("INDEX_OF", r#""AdventureWorks","Adventure",5"#, "-1"),
    ("INDEX_OF", r#""AdventureWorks","A",-5"#, "0"),
    ("INDEX_OF", r#""abc","c",99"#, "-1"),
    ("INDEX_OF", r#""abc","c",0.5"#, "undefined"),
    ("INDEX_OF", r#""abc","""#, "0"),
    ("INDEX_OF", r#""é😀b","b""#, "3"),
    ("INDEX_OF", r#""😀b","b",1"#, "2"),
    ("INDEX_OF", r#"1,"b""#, "undefined"),
    ("LASTINDEXOF", r#""abcdeabc","abc""#, "5"),
    ("LASTINDEXOF", r#""abcdeabc","abc",6"#, "0"),
    ("LASTINDEXOF", r#""abcdeabc","abc",7"#, "5"),
    ("LASTINDEXOF", r#""abcdeabc","abc",99"#, "5"),
    ("LASTINDEXOF", r#""abcdeabc","fg""#, "-1"),
    ("LASTINDEXOF", r#""abc","a",-1"#, "-1"),
    ("LASTINDEXOF", r#""abc","a",0.5"#, "undefined"),
    ("LASTINDEXOF", r#""abc",1"#, "undefined"),
    ("STARTSWITH", r#""abc","ab""#, "true"),
    ("STARTSWITH", r#""abc","AB""#, "false"),
    ("STARTSWITH", r#""abc","AB",true"#, "true"),
    ("STARTSWITH", r#""abc","""#, "true"),
    ("STARTSWITH", r#"null,"a""#, "undefined"),
    ("STRINGEQUALS", r#""AdventureWorks","AdventureWorks""#, "true"),
    ("STRINGEQUALS", r#""AdventureWorks","adventureworks""#, "false"),
    ("STRINGEQUALS", r#""AdventureWorks","adventureworks",true"#, "true"),
    ("STRINGEQUALS", r#""ß","SS",true"#, "false"),
    ("STRINGEQUALS", "1,1", "undefined"),
];
