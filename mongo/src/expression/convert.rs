//! Conversions between types, and questions about types.

use bson::DateTime;
use bson::oid::ObjectId;
use bson::spec::BinarySubtype;

use super::binary::{self, ByteOrder, Format};
use super::date_parse::parse_free;
use super::parse::{object_operand, parse_expression};
use super::{Args, Env, Expr, Operator, Out, Scope, form, function};
use mayfly_value::number::Digits;

use crate::calendar::Zone;
use crate::decimal::Decimal;
use crate::error::{CONVERSION_FAILURE, FAILED_TO_PARSE, Result, bail};
use crate::number::Number;
use crate::values::{
    Ref, TYPES, Value, as_integer, field, is_nullish, is_number, is_truthy, show, type_name, type_name_opt,
};

pub(super) const OPERATORS: &[Operator] = &[
    form("$convert", "a value as another type", convert),
    function("$toBool", "as a boolean", (1, 1), |args| to(args, Target::Bool)),
    function("$toDate", "as a date", (1, 1), |args| to(args, Target::Date)),
    function("$toDecimal", "as a decimal", (1, 1), |args| to(args, Target::Decimal)),
    function("$toDouble", "as a double", (1, 1), |args| to(args, Target::Double)),
    function("$toInt", "as an int32", (1, 1), |args| to(args, Target::Int)),
    function("$toLong", "as an int64", (1, 1), |args| to(args, Target::Long)),
    function("$toObjectId", "as an object id", (1, 1), |args| to(args, Target::ObjectId)),
    function("$toString", "as a string", (1, 1), |args| to(args, Target::String)),
    function("$toUUID", "as a UUID", (1, 1), to_uuid),
    function("$isNumber", "whether it is a number", (1, 1), |args| {
        Ok(Some(Value::Boolean(args.at(0).is_some_and(is_number))))
    }),
    function("$type", "the name of the type", (1, 1), |args| {
        Ok(Some(Value::String(type_name_opt(args.at(0)).to_string())))
    }),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    Double,
    String,
    ObjectId,
    Bool,
    Date,
    Int,
    Long,
    Decimal,
    Binary(BinarySubtype),
    /// A type that nothing is converted to.
    Other(&'static str),
}

impl Target {
    fn parse(value: Option<Ref<'_>>) -> Result<Target> {
        let code = match value {
            Some(Ref::String(name)) => match TYPES.iter().find(|(known, _)| *known == name) {
                Some((_, code)) => *code,
                None => bail!(crate::error::BAD_VALUE, "Unknown type name: {name}"),
            },
            Some(value) if is_number(value) => match as_integer(value) {
                Some(code) if TYPES.iter().any(|(_, known)| i64::from(*known) == code) => code as i32,
                _ => bail!(
                    FAILED_TO_PARSE,
                    "In $convert, numeric value for 'to' does not correspond to a BSON type: {}",
                    show(value)
                ),
            },
            other => bail!(
                FAILED_TO_PARSE,
                "$convert's 'to' argument must be a string or number, but is {}",
                type_name_opt(other)
            ),
        };
        Ok(match code {
            1 => Target::Double,
            2 => Target::String,
            5 => Target::Binary(BinarySubtype::Generic),
            7 => Target::ObjectId,
            8 => Target::Bool,
            9 => Target::Date,
            16 => Target::Int,
            18 => Target::Long,
            19 => Target::Decimal,
            _ => Target::Other(
                TYPES.iter().find(|(_, known)| *known == code).map_or("unknown", |(name, _)| name),
            ),
        })
    }
}

fn to(args: &Args<'_>, target: Target) -> Result<Out> {
    match args.at(0) {
        value if is_nullish(value) => Ok(Some(Value::Null)),
        Some(value) => {
            converted(value, target, Way { format: Some(Format::Auto), order: ByteOrder::Little }).map(Some)
        }
        None => Ok(Some(Value::Null)),
    }
}

fn convert(name: &str, operand: Ref<'_>, scope: &mut Scope) -> Result<Expr> {
    let known = ["input", "to", "onError", "onNull", "format", "byteOrder"];
    let object = object_operand(name, operand, &known, (FAILED_TO_PARSE, FAILED_TO_PARSE))?;
    let Some(input) = field(object, "input") else {
        bail!(FAILED_TO_PARSE, "Missing 'input' parameter to $convert")
    };
    let Some(target) = field(object, "to") else {
        bail!(FAILED_TO_PARSE, "Missing 'to' parameter to $convert")
    };
    // An object names a subtype of binary data too.
    let (target, subtype) = match target {
        Ref::Document(parts) => (field(parts, "type"), field(parts, "subtype")),
        target => (Some(target), None),
    };
    let optional = |value: Option<Ref<'_>>, scope: &mut Scope| -> Result<Option<Expr>> {
        value.map(|value| parse_expression(value, scope)).transpose()
    };
    let has_parts = matches!(field(object, "to"), Some(Ref::Document(_)));
    let input = parse_expression(input, scope)?;
    let (target, subtype) = (optional(target, scope)?, optional(subtype, scope)?);
    let (format, order) =
        (optional(field(object, "format"), scope)?, optional(field(object, "byteOrder"), scope)?);
    let on_error = optional(field(object, "onError"), scope)?;
    let on_null = optional(field(object, "onNull"), scope)?;
    Ok(Expr::form(move |env| {
        let value = input.eval(env)?;
        let target = match evaluated(&target, env)? {
            None | Some(Value::Null | Value::Undefined) if !has_parts => None,
            target => Some(Target::parse(target.as_ref().map(Value::as_raw_bson_ref))?),
        };
        let target = match target {
            Some(Target::Binary(_)) if subtype.is_some() => {
                let subtype = evaluated(&subtype, env)?;
                Some(Target::Binary(binary::subtype(subtype.as_ref().map(Value::as_raw_bson_ref))?))
            }
            target => target,
        };
        let value = match value {
            None | Some(Value::Null | Value::Undefined) => {
                return match &on_null {
                    Some(on_null) => on_null.eval(env),
                    None => Ok(Some(Value::Null)),
                };
            }
            Some(value) => value,
        };
        let Some(target) = target else { return Ok(Some(Value::Null)) };
        let (format, order) = (evaluated(&format, env)?, evaluated(&order, env)?);
        let way = Way {
            format: Format::parse(format.as_ref().map(Value::as_raw_bson_ref))?,
            order: ByteOrder::parse(order.as_ref().map(Value::as_raw_bson_ref))?,
        };
        match (converted(value.as_raw_bson_ref(), target, way), &on_error) {
            (Err(error), Some(on_error)) if error.code == CONVERSION_FAILURE => on_error.eval(env),
            (result, _) => result.map(Some),
        }
    }))
}

fn evaluated(expression: &Option<Expr>, env: &mut Env<'_>) -> Result<Out> {
    expression.as_ref().map_or(Ok(None), |expression| expression.eval(env))
}

/// How binary data is read and written.
#[derive(Clone, Copy)]
struct Way {
    format: Option<Format>,
    order: ByteOrder,
}

fn unsupported(value: Ref<'_>, target: &str) -> Result<Value> {
    bail!(
        CONVERSION_FAILURE,
        "Unsupported conversion from {} to {target} in $convert with no onError value",
        type_name(value)
    )
}

fn failed(value: Ref<'_>, why: &str) -> Result<Value> {
    bail!(CONVERSION_FAILURE, "Failed to parse {} in $convert with no onError value: {why}", show(value))
}

fn converted(value: Ref<'_>, target: Target, way: Way) -> Result<Value> {
    match (target, value) {
        (Target::Double, Ref::Binary(bytes)) => {
            return binary::to_double(bytes, way.order).map(Value::Double);
        }
        (Target::Long, Ref::Binary(bytes)) => {
            return binary::to_integer(bytes, way.order, 8).map(Value::Int64);
        }
        (Target::Int, Ref::Binary(bytes)) => {
            return binary::to_integer(bytes, way.order, 4).map(|number| Value::Int32(number as i32));
        }
        (Target::String, Ref::Binary(bytes)) => {
            let Some(format) = way.format else {
                bail!(4341115, "Format must be specified when converting from 'binData' to 'string'")
            };
            return binary::to_text(bytes, format).map(Value::String);
        }
        _ => {}
    }
    match target {
        Target::Other(name) => unsupported(value, name),
        Target::Binary(subtype) => binary::from_value(value, subtype, way.format, way.order),
        Target::Bool => Ok(Value::Boolean(is_truthy(Some(value)))),
        Target::Double => to_double(value),
        Target::Int | Target::Long => to_integer(value, target),
        Target::Decimal => to_decimal(value),
        Target::String => to_text(value),
        Target::Date => to_date(value),
        Target::ObjectId => match value {
            Ref::ObjectId(_) => Ok(value.into()),
            Ref::String(text) => match ObjectId::parse_str(text) {
                Ok(id) => Ok(Value::ObjectId(id)),
                Err(_) => failed(value, "Invalid string length for parsing to OID"),
            },
            _ => unsupported(value, "objectId"),
        },
    }
}

/// Text that is a number and nothing else.
fn is_numeric(text: &str) -> bool {
    let body = text.strip_prefix(['+', '-']).unwrap_or(text);
    body.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && body.chars().all(|c| c.is_ascii_digit() || ".eE+-".contains(c))
}

fn to_double(value: Ref<'_>) -> Result<Value> {
    match value {
        Ref::String(text) => {
            let special = ["inf", "infinity", "nan"]
                .contains(&text.trim_start_matches(['+', '-']).to_lowercase().as_str());
            match text.parse::<f64>() {
                Ok(number) if special || (is_numeric(text) && number.is_finite()) => {
                    Ok(Value::Double(number))
                }
                Ok(_) if is_numeric(text) => failed(value, "Out of range"),
                _ => failed(value, "Did not consume whole string."),
            }
        }
        Ref::Boolean(truth) => Ok(Value::Double(f64::from(u8::from(truth)))),
        Ref::DateTime(date) => Ok(Value::Double(date.timestamp_millis() as f64)),
        Ref::Decimal128(decimal) => {
            let number = Decimal::from_bson(decimal);
            let double = number.to_f64();
            if double.is_infinite() && !number.is_infinite() {
                return failed(value, "Conversion would overflow target type");
            }
            Ok(Value::Double(double))
        }
        _ => match Number::of(value) {
            Some(number) => Ok(Value::Double(number.to_f64())),
            None => unsupported(value, "double"),
        },
    }
}

fn to_integer(value: Ref<'_>, target: Target) -> Result<Value> {
    let name = if target == Target::Int { "int" } else { "long" };
    let whole: Option<i64> = match value {
        Ref::String(text) => {
            let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
            if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                return failed(value, "Did not consume whole string.");
            }
            text.parse().ok()
        }
        Ref::Boolean(truth) => Some(truth.into()),
        Ref::DateTime(date) if target == Target::Long => Some(date.timestamp_millis()),
        Ref::Int32(number) => Some(number.into()),
        Ref::Int64(number) => Some(number),
        Ref::Double(number) if number.is_nan() || number.is_infinite() => {
            return failed(value, "Attempt to convert NaN or infinity value to integer type");
        }
        Ref::Double(number) => (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0)
            .contains(&number)
            .then_some(number as i64),
        Ref::Decimal128(number) => {
            let number = Decimal::from_bson(number);
            if number.is_nan() || number.is_infinite() {
                return failed(value, "Attempt to convert NaN or infinity value to integer type");
            }
            number.to_i64_truncated()
        }
        _ => return unsupported(value, name),
    };
    match (whole, target) {
        (Some(whole), Target::Long) => Ok(Value::Int64(whole)),
        (Some(whole), _) => match i32::try_from(whole) {
            Ok(whole) => Ok(Value::Int32(whole)),
            Err(_) => failed(value, "Conversion would overflow target type"),
        },
        (None, _) => failed(value, "Conversion would overflow target type"),
    }
}

fn to_decimal(value: Ref<'_>) -> Result<Value> {
    let decimal = match value {
        Ref::String(text) => match Decimal::parse(text) {
            Some(decimal) => decimal,
            None => return failed(value, "Failed to parse string to decimal"),
        },
        Ref::Boolean(truth) => Decimal::from_i64(truth.into()),
        Ref::DateTime(date) => Decimal::from_i64(date.timestamp_millis()),
        _ => match Number::of(value) {
            Some(number) => number.to_decimal(),
            None => return unsupported(value, "decimal"),
        },
    };
    Ok(Value::Decimal128(decimal.to_bson()))
}

fn to_date(value: Ref<'_>) -> Result<Value> {
    let millis = match value {
        Ref::String(text) => parse_free(text, &Zone::UTC)?,
        Ref::DateTime(_) => return Ok(value.into()),
        Ref::ObjectId(id) => id_millis(id),
        Ref::Timestamp(value) => i64::from(value.time) * 1000,
        Ref::Int64(millis) => millis,
        Ref::Double(millis) if (-9.223_372_036_854_775e18..9.223_372_036_854_775e18).contains(&millis) => {
            millis as i64
        }
        Ref::Decimal128(millis) => match Decimal::from_bson(millis).to_i64_truncated() {
            Some(millis) => millis,
            None => return failed(value, "Conversion would overflow target type"),
        },
        Ref::Double(_) => return failed(value, "Conversion would overflow target type"),
        _ => return unsupported(value, "date"),
    };
    Ok(Value::DateTime(DateTime::from_millis(millis)))
}

/// When an object id was made. Its seconds have a sign in MongoDB: those after 2038 are before 1970.
pub(super) fn id_millis(id: ObjectId) -> i64 {
    let [a, b, c, d, ..] = id.bytes();
    i64::from(i32::from_be_bytes([a, b, c, d])) * 1000
}

fn to_text(value: Ref<'_>) -> Result<Value> {
    Ok(Value::String(match value {
        Ref::String(text) => text.to_string(),
        Ref::Boolean(truth) => truth.to_string(),
        Ref::Int32(number) => number.to_string(),
        Ref::Int64(number) => number.to_string(),
        Ref::Double(number) => double_text(number),
        Ref::Decimal128(number) => number.to_string(),
        Ref::ObjectId(id) => id.to_hex(),
        Ref::DateTime(date) => super::date_format::iso(date.timestamp_millis())?,
        _ => return unsupported(value, "string"),
    }))
}

fn to_uuid(args: &Args<'_>) -> Result<Out> {
    match args.at(0) {
        value if is_nullish(value) => Ok(Some(Value::Null)),
        Some(value) => {
            binary::from_value(value, BinarySubtype::Uuid, Some(Format::Uuid), ByteOrder::Little).map(Some)
        }
        None => Ok(Some(Value::Null)),
    }
}

/// A double as functions of strings take it, which is as C's `%g` writes it: six digits.
pub(super) fn short_double_text(value: f64) -> String {
    const DIGITS: i32 = 6;
    if value.is_nan() {
        return "nan".to_string();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.to_string();
    }
    let rounded = format!("{value:.5e}");
    let (mantissa, exponent) = rounded.split_once('e').unwrap_or((&rounded, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let without_zeros = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text.to_string(),
    };
    if (-4..DIGITS).contains(&exponent) {
        let places = usize::try_from(DIGITS - 1 - exponent).unwrap_or(0);
        return without_zeros(&format!("{value:.places$}"));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", without_zeros(mantissa), exponent.abs())
}

/// A double as `$toString` writes it: the shortest text, with an exponent where it is long.
pub(crate) fn double_text(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_string();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_string();
    }
    if value == 0.0 {
        return if value.is_sign_negative() { "-0" } else { "0" }.to_string();
    }
    let digits = Digits::of(value.abs());
    let text = match digits.exponent() {
        exponent @ (..-4 | 16..) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{}e{sign}{:02}", digits.mantissa(), exponent.abs())
        }
        _ => digits.plain(),
    };
    if value < 0.0 { format!("-{text}") } else { text }
}
