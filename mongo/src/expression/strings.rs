//! Strings: joined, cut, trimmed, measured and changed.

use super::parse::{object_operand, parse_expression};
use super::{Args, Expr, Operator, Out, Scope, form, function};
use crate::error::{Result, bail};
use crate::values::{Ref, Value, array, as_integer, field, is_nullish, show, type_name_opt};

pub(super) const OPERATORS: &[Operator] = &[
    function("$concat", "one string of many", super::ANY, concat),
    function("$split", "parts between separators", (2, 2), split),
    function("$strLenBytes", "bytes of UTF-8", (1, 1), |args| {
        let text = required("$strLenBytes", 34473, args.at(0))?;
        Ok(Some(Value::Int32(text.len() as i32)))
    }),
    function("$strLenCP", "characters", (1, 1), |args| {
        let text = required("$strLenCP", 34471, args.at(0))?;
        Ok(Some(Value::Int32(text.chars().count() as i32)))
    }),
    function("$strcasecmp", "compared without regard to case", (2, 2), strcasecmp),
    function("$substr", "as `$substrBytes`", (3, 3), substr_bytes),
    function("$substrBytes", "a part by bytes", (3, 3), substr_bytes),
    function("$substrCP", "a part by characters", (3, 3), substr_cp),
    function("$toLower", "small letters, of ASCII", (1, 1), |args| {
        Ok(Some(Value::String(coerce("$toLower", args.at(0))?.to_ascii_lowercase())))
    }),
    function("$toUpper", "capital letters, of ASCII", (1, 1), |args| {
        Ok(Some(Value::String(coerce("$toUpper", args.at(0))?.to_ascii_uppercase())))
    }),
    form("$trim", "without characters at both ends", |name, operand, scope| {
        trim(name, operand, scope, (true, true))
    }),
    form("$ltrim", "without characters at the start", |name, operand, scope| {
        trim(name, operand, scope, (true, false))
    }),
    form("$rtrim", "without characters at the end", |name, operand, scope| {
        trim(name, operand, scope, (false, true))
    }),
];

/// The longest string an expression may make: more cannot be stored.
const LENGTH_MAX: usize = 16 * 1024 * 1024;

fn null() -> Result<Out> {
    Ok(Some(Value::Null))
}

fn required<'a>(name: &str, code: i32, value: Option<Ref<'a>>) -> Result<&'a str> {
    match value {
        Some(Ref::String(text) | Ref::Symbol(text)) => Ok(text),
        other => bail!(code, "{name} requires a string argument, found: {}", type_name_opt(other)),
    }
}

/// Numbers and dates stand for their text, null for the empty string.
pub(super) fn coerce(name: &str, value: Option<Ref<'_>>) -> Result<String> {
    Ok(match value {
        value if is_nullish(value) => String::new(),
        Some(Ref::String(text) | Ref::Symbol(text) | Ref::JavaScriptCode(text)) => text.to_string(),
        Some(Ref::Int32(value)) => value.to_string(),
        Some(Ref::Int64(value)) => value.to_string(),
        Some(Ref::Double(value)) => super::convert::short_double_text(value),
        Some(Ref::Decimal128(value)) => value.to_string(),
        Some(Ref::DateTime(date)) => super::date_format::iso(date.timestamp_millis())?,
        Some(Ref::Timestamp(value)) => super::date_format::stamp(value)?,
        other => bail!(16007, "can't convert from BSON type {} to String in {name}", type_name_opt(other)),
    })
}

fn concat(args: &Args<'_>) -> Result<Out> {
    let mut text = String::new();
    for value in args.iter() {
        match value {
            value if is_nullish(value) => return null(),
            Some(Ref::String(part) | Ref::Symbol(part)) => text.push_str(part),
            other => bail!(16702, "$concat only supports strings, not {}", type_name_opt(other)),
        }
        if text.len() > LENGTH_MAX {
            bail!(10334, "$concat makes a string of more than {LENGTH_MAX} bytes");
        }
    }
    Ok(Some(Value::String(text)))
}

fn split(args: &Args<'_>) -> Result<Out> {
    let (text, separator) = (args.at(0), args.at(1));
    if is_nullish(text) || is_nullish(separator) {
        return null();
    }
    let text = match text {
        Some(Ref::String(text)) => text,
        other => bail!(
            40085,
            "$split requires an expression that evaluates to a string as a first argument, found: {}",
            type_name_opt(other)
        ),
    };
    let parts: Vec<Value> = match separator {
        Some(Ref::String("")) => bail!(40087, "$split requires a non-empty separator"),
        Some(Ref::String(separator)) => {
            text.split(separator).map(|part| Value::String(part.to_string())).collect()
        }
        other => bail!(
            10503900,
            "$split requires an expression that evaluates to a string as a second argument, found: {}",
            type_name_opt(other)
        ),
    };
    Ok(Some(array(parts)))
}

fn strcasecmp(args: &Args<'_>) -> Result<Out> {
    let (a, b) = (coerce("$strcasecmp", args.at(0))?, coerce("$strcasecmp", args.at(1))?);
    Ok(Some(Value::Int32(a.to_ascii_uppercase().cmp(&b.to_ascii_uppercase()) as i32)))
}

fn position(name: &str, code: i32, which: &str, value: Option<Ref<'_>>) -> Result<i64> {
    match value.and_then(crate::values::as_double) {
        Some(place) if place.is_finite() => Ok(place as i64),
        _ => bail!(code, "{name}: {which} must be a numeric type (is BSON type {})", type_name_opt(value)),
    }
}

fn substr_bytes(args: &Args<'_>) -> Result<Out> {
    let text = coerce("$substrBytes", args.at(0))?;
    let start = position("$substrBytes", 16034, "starting index", args.at(1))?;
    let length = position("$substrBytes", 16035, "length", args.at(2))?;
    if start < 0 {
        bail!(50752, "$substrBytes: starting index must be non-negative (got: {start})");
    }
    let start = usize::try_from(start).unwrap_or(usize::MAX);
    if start >= text.len() {
        return Ok(Some(Value::String(String::new())));
    }
    if !text.is_char_boundary(start) {
        bail!(28656, "$substrBytes: Invalid range, starting index is a UTF-8 continuation byte.");
    }
    let end = match usize::try_from(length) {
        Ok(length) => start.saturating_add(length).min(text.len()),
        Err(_) => text.len(),
    };
    if !text.is_char_boundary(end) {
        bail!(28657, "$substrBytes: Invalid range, ending index is in the middle of a UTF-8 character.");
    }
    Ok(Some(Value::String(text.get(start..end).unwrap_or_default().to_string())))
}

fn substr_cp(args: &Args<'_>) -> Result<Out> {
    let text = coerce("$substrCP", args.at(0))?;
    let number = |place: usize, codes: (i32, i32), which: &str| match args.at(place) {
        Some(value) if crate::values::is_number(value) => match as_integer(value) {
            Some(value) => Ok(value),
            None => bail!(
                codes.1,
                "$substrCP: {which} cannot be represented as a 32-bit integral value: {}",
                show(value)
            ),
        },
        other => bail!(
            codes.0,
            "$substrCP: {which} must be a numeric type (is BSON type {})",
            type_name_opt(other)
        ),
    };
    let start = number(1, (34450, 34451), "starting index")?;
    let length = number(2, (34452, 34453), "length")?;
    if start < 0 {
        bail!(34455, "$substrCP: the starting index must be a non-negative integer.");
    }
    if length < 0 {
        bail!(34454, "$substrCP: length must be a nonnegative integer.");
    }
    Ok(Some(Value::String(text.chars().skip(start as usize).take(length as usize).collect())))
}

/// What `$trim` takes away unless told: white space, and the character zero.
const BLANKS: [char; 20] = [
    '\0', ' ', '\t', '\n', '\u{b}', '\u{c}', '\r', '\u{a0}', '\u{1680}', '\u{2000}', '\u{2001}', '\u{2002}',
    '\u{2003}', '\u{2004}', '\u{2005}', '\u{2006}', '\u{2007}', '\u{2008}', '\u{2009}', '\u{200a}',
];

fn trim(name: &str, operand: Ref<'_>, scope: &mut Scope, (left, right): (bool, bool)) -> Result<Expr> {
    let object = object_operand(name, operand, &["input", "chars"], (50696, 50694))?;
    let Some(input) = field(object, "input") else { bail!(50695, "{name} requires an 'input' field") };
    let input = parse_expression(input, scope)?;
    let chars = field(object, "chars").map(|chars| parse_expression(chars, scope)).transpose()?;
    let name = name.to_string();
    Ok(Expr::form(move |env| {
        let text = match input.eval(env)? {
            None | Some(Value::Null | Value::Undefined) => return null(),
            Some(Value::String(text)) => text,
            Some(other) => bail!(
                50699,
                "{name} requires its input to be a string, got {}",
                show(other.as_raw_bson_ref())
            ),
        };
        let chars: Vec<char> = match &chars {
            None => BLANKS.to_vec(),
            Some(chars) => match chars.eval(env)? {
                None | Some(Value::Null | Value::Undefined) => return null(),
                Some(Value::String(chars)) => chars.chars().collect(),
                Some(other) => {
                    bail!(
                        50700,
                        "{name} requires 'chars' to be a string, got {}",
                        show(other.as_raw_bson_ref())
                    )
                }
            },
        };
        let mut rest = text.as_str();
        if left {
            rest = rest.trim_start_matches(chars.as_slice());
        }
        if right {
            rest = rest.trim_end_matches(chars.as_slice());
        }
        Ok(Some(Value::String(rest.to_string())))
    }))
}
