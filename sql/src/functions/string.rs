//! Text: cutting, joining, changing. Searching is in [`super::string_search`].
//!
//! Lengths and positions count UTF-16 code units ([`super::utf16`]).

use std::borrow::Cow;

use super::{Args, FallibleRun, Family, Function, PlainRun, limits, utf16};
use crate::context::Context;
use crate::error::EvalError;
use crate::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    building("CONCAT", Args::at_least(2), "CONCAT(s1, s2 [, ...])", "The texts one after the other.", concat),
    text("LEFT", Args::exactly(2), "LEFT(s, n)", "The first n characters.", left),
    text("LENGTH", Args::exactly(1), "LENGTH(s)", "How many characters there are.", length),
    text("LOWER", Args::exactly(1), "LOWER(s)", "The text in lower case.", lower),
    text(
        "LTRIM",
        Args::between(1, 2),
        "LTRIM(s [, characters])",
        "Without white space or these in front.",
        ltrim,
    ),
    building("REPLACE", Args::exactly(3), "REPLACE(s, find, with)", "With each find replaced.", replace),
    text("REPLICATE", Args::exactly(2), "REPLICATE(s, n)", "The text n times.", replicate),
    text("REVERSE", Args::exactly(1), "REVERSE(s)", "The text from back to front.", reverse),
    text("RIGHT", Args::exactly(2), "RIGHT(s, n)", "The last n characters.", right),
    text(
        "RTRIM",
        Args::between(1, 2),
        "RTRIM(s [, characters])",
        "Without white space or these behind.",
        rtrim,
    ),
    building(
        "STRINGJOIN",
        Args::exactly(2),
        "STRINGJOIN(a, separator)",
        "The items with separators between.",
        join,
    ),
    building(
        "STRINGSPLIT",
        Args::exactly(2),
        "STRINGSPLIT(s, separator)",
        "What is between the separators.",
        split,
    ),
    text(
        "SUBSTRING",
        Args::exactly(3),
        "SUBSTRING(s, start, length)",
        "The characters from a position on, counted from 0.",
        substring,
    ),
    text(
        "TRIM",
        Args::between(1, 2),
        "TRIM(s [, characters])",
        "Without white space or these on both ends.",
        trim,
    ),
    text("UPPER", Args::exactly(1), "UPPER(s)", "The text in upper case.", upper),
];

const fn text(
    name: &'static str,
    args: Args,
    signature: &'static str,
    help: &'static str,
    run: PlainRun,
) -> Function {
    Function::new(name, Family::String, args, signature, help, run)
}

/// For functions whose result can be larger than what they were given.
const fn building(
    name: &'static str,
    args: Args,
    signature: &'static str,
    help: &'static str,
    run: FallibleRun,
) -> Function {
    Function::failing(name, Family::String, args, signature, help, run)
}

/// The longest result of REPLICATE, in characters, as documented.
const REPLICATE_MAX: usize = 10_000;

fn concat<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    let Some(texts) = args.iter().map(Value::as_str).collect::<Option<Vec<_>>>() else {
        return Ok(Value::Undefined);
    };
    limits::check_text("CONCAT", texts.iter().map(|text| text.len()).sum())?;
    Ok(texts.concat().into())
}

fn left<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    let [Value::String(text), count] = args else { return Value::Undefined };
    count.as_i64().map(|count| Value::String(utf16::slice(text, 0, count.max(0) as usize))).into()
}

fn length<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    let [Value::String(text)] = args else { return Value::Undefined };
    Value::Int(utf16::len(text) as i64)
}

/// Character by character and independent of the language, as .NET's invariant culture does it: what has no
/// single counterpart (`ß`) stays.
fn lower<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    let [Value::String(text)] = args else { return Value::Undefined };
    text.chars().map(|character| single(character, character.to_lowercase())).collect::<String>().into()
}

fn upper<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    let [Value::String(text)] = args else { return Value::Undefined };
    text.chars().map(to_upper).collect::<String>().into()
}

/// The upper case of a character, if it is one character.
pub(super) fn to_upper(character: char) -> char {
    if character.is_ascii() {
        character.to_ascii_uppercase()
    } else {
        single(character, character.to_uppercase())
    }
}

fn single(character: char, mut mapped: impl Iterator<Item = char>) -> char {
    match (mapped.next(), mapped.next()) {
        (Some(other), None) => other,
        _ => character,
    }
}

#[derive(Clone, Copy)]
struct Ends {
    front: bool,
    back: bool,
}

fn ltrim<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    trimmed(args, Ends { front: true, back: false })
}

fn rtrim<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    trimmed(args, Ends { front: false, back: true })
}

fn trim<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    trimmed(args, Ends { front: true, back: true })
}

fn trimmed<'a>(args: &[Value<'a>], ends: Ends) -> Value<'a> {
    match args {
        [Value::String(text)] => cut_ends(text, ends, char::is_whitespace).into(),
        [Value::String(text), Value::String(unwanted)] => {
            cut_ends(text, ends, |character| unwanted.contains(character)).into()
        }
        _ => Value::Undefined,
    }
}

fn cut_ends<'a>(text: &Cow<'a, str>, ends: Ends, unwanted: impl Fn(char) -> bool) -> Option<Value<'a>> {
    let to = if ends.back { text.trim_end_matches(&unwanted).len() } else { text.len() };
    let kept = text.get(..to)?;
    let from = if ends.front { to - kept.trim_start_matches(&unwanted).len() } else { 0 };
    Some(Value::String(utf16::part(text, from, to)))
}

fn replace<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    let [Value::String(text), Value::String(find), Value::String(with)] = args else {
        return Ok(Value::Undefined);
    };
    if find.is_empty() {
        return Ok(Value::Undefined);
    }
    let count = text.matches(find.as_ref()).count();
    if count == 0 {
        return Ok(Value::String(text.clone()));
    }
    limits::check_text(
        "REPLACE",
        (text.len() - count * find.len()).saturating_add(count.saturating_mul(with.len())),
    )?;
    Ok(text.replace(find.as_ref(), with).into())
}

fn replicate<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    let [Value::String(text), count] = args else { return Value::Undefined };
    let Some(count) = count.as_f64().filter(|count| count.is_finite() && *count >= 0.0) else {
        return Value::Undefined;
    };
    // The conversion drops the fraction and stops at the largest usize.
    let count = count as usize;
    match utf16::len(text).checked_mul(count) {
        Some(0) => Value::from(""),
        Some(length) if length <= REPLICATE_MAX => text.repeat(count).into(),
        _ => Value::Undefined,
    }
}

/// By code point: by code unit, as the service does it, would tear pairs apart, and what is left of them is
/// not text.
fn reverse<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    let [Value::String(text)] = args else { return Value::Undefined };
    text.chars().rev().collect::<String>().into()
}

fn right<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    let [Value::String(text), count] = args else { return Value::Undefined };
    let Some(count) = count.as_i64() else { return Value::Undefined };
    let start = utf16::len(text).saturating_sub(count.max(0) as usize);
    Value::String(utf16::slice(text, start, usize::MAX))
}

fn join<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    let [Value::Array(array), Value::String(separator)] = args else { return Ok(Value::Undefined) };
    let mut joined = String::new();
    for (index, item) in array.iter().enumerate() {
        let Value::String(item) = item else { return Ok(Value::Undefined) };
        if index > 0 {
            joined.push_str(separator);
        }
        joined.push_str(&item);
        limits::check_text("STRINGJOIN", joined.len())?;
    }
    Ok(joined.into())
}

fn split<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    let [Value::String(text), Value::String(separator)] = args else { return Ok(Value::Undefined) };
    if separator.is_empty() {
        return Ok(Value::array([Value::String(text.clone())]));
    }
    limits::check_items("STRINGSPLIT", text.matches(separator.as_ref()).count().saturating_add(1))?;
    Ok(match text {
        Cow::Borrowed(text) => Value::array(text.split(separator.as_ref()).map(Value::from)),
        Cow::Owned(text) => Value::array(text.split(separator.as_ref()).map(|piece| piece.to_owned().into())),
    })
}

fn substring<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    let [Value::String(text), start, count] = args else { return Value::Undefined };
    let (Some(start), Some(count)) = (start.as_i64(), count.as_i64()) else { return Value::Undefined };
    match (usize::try_from(start), usize::try_from(count)) {
        (Ok(start), Ok(count)) => Value::String(utf16::slice(text, start, count)),
        _ => Value::from(""),
    }
}

#[cfg(test)]
pub(super) const CASES: &[super::testing::Case] = &[
    ("CONCAT", r#""a","b""#, r#""ab""#),
    ("CONCAT", r#""a","","é","d""#, r#""aéd""#),
    ("CONCAT", r#""a",1"#, "undefined"),
    ("CONCAT", r#""a",undefined"#, "undefined"),
    ("LEFT", r#""AdventureWorks",5"#, r#""Adven""#),
    ("LEFT", r#""AdventureWorks",0"#, r#""""#),
    ("LEFT", r#""AdventureWorks",100"#, r#""AdventureWorks""#),
    ("LEFT", r#""AdventureWorks",-1"#, r#""""#),
    ("LEFT", r#""AdventureWorks",1.5"#, "undefined"),
    ("LEFT", r#""a😀",2"#, r#""a�""#),
    ("LEFT", "5,1", "undefined"),
    ("LENGTH", r#""AdventureWorks""#, "14"),
    ("LENGTH", r#""é😀""#, "3"),
    ("LENGTH", r#""""#, "0"),
    ("LENGTH", "[1]", "undefined"),
    ("LOWER", r#""ABC É İ Σ""#, r#""abc é İ σ""#),
    ("LOWER", "5", "undefined"),
    ("LTRIM", r#""  abc  ""#, r#""abc  ""#),
    ("LTRIM", r#""-_-A-_-","-_""#, r#""A-_-""#),
    ("LTRIM", r#""abc","""#, r#""abc""#),
    ("LTRIM", r#""abc",1"#, "undefined"),
    ("LTRIM", "1", "undefined"),
    ("REPLACE", r#""This is a Test","Test","desk""#, r#""This is a desk""#),
    ("REPLACE", r#""aaa","a","bb""#, r#""bbbbbb""#),
    ("REPLACE", r#""abc","B","x""#, r#""abc""#),
    ("REPLACE", r#""abc","","x""#, "undefined"),
    ("REPLACE", r#""abc","b",1"#, "undefined"),
    ("REPLICATE", r#""Cosmic",3"#, r#""CosmicCosmicCosmic""#),
    ("REPLICATE", r#""ab",1.9"#, r#""ab""#),
    ("REPLICATE", r#""ab",0"#, r#""""#),
    ("REPLICATE", r#""ab",-1"#, "undefined"),
    ("REPLICATE", r#""ab",Infinity"#, "undefined"),
    ("REPLICATE", r#""ab",5001"#, "undefined"),
    ("REPLICATE", r#""ab",1e300"#, "undefined"),
    ("REPLICATE", r#""",1e300"#, r#""""#),
    ("REPLICATE", r#""ab","1""#, "undefined"),
    ("REVERSE", r#""Abc😀""#, r#""😀cbA""#),
    ("REVERSE", "12", "undefined"),
    ("RIGHT", r#""AdventureWorks",5"#, r#""Works""#),
    ("RIGHT", r#""AdventureWorks",0"#, r#""""#),
    ("RIGHT", r#""AdventureWorks",100"#, r#""AdventureWorks""#),
    ("RIGHT", r#""AdventureWorks",-1"#, r#""""#),
    ("RIGHT", r#""AdventureWorks",0.5"#, "undefined"),
    ("RIGHT", "null,1", "undefined"),
    ("RTRIM", r#""  abc  ""#, r#""  abc""#),
    ("RTRIM", r#""-_-A-_-","-_""#, r#""-_-A""#),
    ("RTRIM", "null", "undefined"),
    ("STRINGJOIN", r#"["Iropa","Mountain","Bike"]," ""#, r#""Iropa Mountain Bike""#),
    ("STRINGJOIN", r#"["6","7"],"""#, r#""67""#),
    ("STRINGJOIN", r#"[],",""#, r#""""#),
    ("STRINGJOIN", r#"["a",1],",""#, "undefined"),
    ("STRINGJOIN", r#"["a"],undefined"#, "undefined"),
    ("STRINGJOIN", r#""a",",""#, "undefined"),
    ("STRINGSPLIT", r#""Handlebar","e""#, r#"["Handl","bar"]"#),
    ("STRINGSPLIT", r#""xenmoun mountain bike","moun""#, r#"["xen"," ","tain bike"]"#),
    ("STRINGSPLIT", r#""Helmet","""#, r#"["Helmet"]"#),
    ("STRINGSPLIT", r#""","""#, r#"[""]"#),
    ("STRINGSPLIT", r#""",",""#, r#"[""]"#),
    ("STRINGSPLIT", r#""a",undefined"#, "undefined"),
    ("STRINGSPLIT", r#""a",1"#, "undefined"),
    ("SUBSTRING", r#""AdventureWorks",0,9"#, r#""Adventure""#),
    ("SUBSTRING", r#""AdventureWorks",9,5"#, r#""Works""#),
    ("SUBSTRING", r#""AdventureWorks",9,99"#, r#""Works""#),
    ("SUBSTRING", r#""AdventureWorks",0,-1"#, r#""""#),
    ("SUBSTRING", r#""AdventureWorks",-1,3"#, r#""""#),
    ("SUBSTRING", r#""AdventureWorks",14,1"#, r#""""#),
    ("SUBSTRING", r#""AdventureWorks",0.5,1"#, "undefined"),
    ("SUBSTRING", r#""AdventureWorks",0,1.5"#, "undefined"),
    ("SUBSTRING", r#""",0,1"#, r#""""#),
    ("SUBSTRING", r#""a😀b",1,2"#, r#""😀""#),
    ("SUBSTRING", "1,0,1", "undefined"),
    ("TRIM", r#""   AdventureWorks   ""#, r#""AdventureWorks""#),
    ("TRIM", r#""\u00a0\ta\u2003""#, r#""a""#),
    ("TRIM", r#""---A---""#, r#""---A---""#),
    ("TRIM", r#""-- A --","-""#, r#"" A ""#),
    ("TRIM", r#""-_-A-_-","-_""#, r#""A""#),
    ("TRIM", r#""---","-""#, r#""""#),
    ("TRIM", r#"" a ","""#, r#"" a ""#),
    ("TRIM", "true", "undefined"),
    ("UPPER", r#""Abc é ß""#, r#""ABC É ß""#),
    ("UPPER", "null", "undefined"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_bounded() {
        let context = Context::new(0, 0);
        let long = || Value::from("a".repeat(limits::TEXT_BYTES_MAX));
        assert!(concat(&context, &[long(), Value::from("b")]).is_err());
        assert!(replace(&context, &[long(), Value::from("a"), long()]).is_err());
        assert!(join(&context, &[Value::array([long(), long()]), Value::from("")]).is_err());
        assert!(split(&context, &[long(), Value::from("a")]).is_err());
    }
}
