//! What fits nowhere else: literals, chance, sizes, hashes, metadata, vectors, and what is refused.

use super::parse::{object_operand, parse_expression};
use super::{Args, Expr, Kind, Operator, Out, form, function};
use crate::error::{BAD_VALUE, NOT_IMPLEMENTED, Result, bail};
use crate::values::{Ref, Value, as_double, field, fields, is_nullish, items, type_name_opt};

const fn refused(name: &'static str, help: &'static str, code: i32, message: &'static str) -> Operator {
    Operator { name, help, kind: Kind::Refused(code, message) }
}

pub(super) const OPERATORS: &[Operator] = &[
    form("$literal", "the operand as it stands", |_, operand, _| Ok(Expr::Constant(Some(operand.into())))),
    form("$const", "as `$literal`", |_, operand, _| Ok(Expr::Constant(Some(operand.into())))),
    form("$expr", "the expression", |_, operand, scope| parse_expression(operand, scope)),
    form("$rand", "a number from 0 to 1 by chance", |_, operand, _| match operand {
        Ref::Document(object) if fields(object).next().is_none() => {
            Ok(Expr::form(|env| Ok(Some(Value::Double((env.context.random)())))))
        }
        Ref::Array(list) if items(list).next().is_none() => {
            Ok(Expr::form(|env| Ok(Some(Value::Double((env.context.random)())))))
        }
        _ => bail!(10065, "$rand does not currently accept arguments"),
    }),
    form("$meta", "metadata of the document", |_, operand, _| match operand {
        Ref::String(
            name @ ("textScore" | "indexKey" | "recordId" | "geoNearDistance" | "geoNearPoint" | "randVal"
            | "sortKey" | "searchScore" | "vectorSearchScore"),
        ) => {
            let name = name.to_string();
            Ok(Expr::form(move |env| Ok(env.context.meta(env.root, &name))))
        }
        Ref::String(name) => bail!(17308, "Unsupported argument to $meta: {name}"),
        _ => bail!(17307, "$meta only supports string arguments"),
    }),
    function("$binarySize", "bytes of a string or of binary data", (1, 1), |args| match args.at(0) {
        value if is_nullish(value) => Ok(Some(Value::Null)),
        Some(Ref::String(text)) => Ok(Some(Value::Int32(text.len() as i32))),
        Some(Ref::Binary(binary)) => Ok(Some(Value::Int32(binary.bytes.len() as i32))),
        other => {
            bail!(51276, "$binarySize requires a string or BinData argument, found: {}", type_name_opt(other))
        }
    }),
    function("$bsonSize", "bytes of an object", (1, 1), |args| match args.at(0) {
        value if is_nullish(value) => Ok(Some(Value::Null)),
        Some(Ref::Document(object)) => Ok(Some(Value::Int32(object.as_bytes().len() as i32))),
        other => bail!(31393, "$bsonSize requires a document input, found: {}", type_name_opt(other)),
    }),
    function("$tsSecond", "seconds of a timestamp", (1, 1), |args| timestamp("$tsSecond", 5687301, args)),
    function("$tsIncrement", "increment of a timestamp", (1, 1), |args| {
        timestamp("$tsIncrement", 5687302, args)
    }),
    form("$similarityDotProduct", "dot product of two vectors", |name, operand, scope| {
        similarity(
            name,
            operand,
            scope,
            |a, b| a.iter().zip(b).map(|(a, b)| a * b).sum(),
            |raw| (1.0 + raw) / 2.0,
        )
    }),
    form("$similarityCosine", "cosine of two vectors", |name, operand, scope| {
        similarity(
            name,
            operand,
            scope,
            |a, b| {
                let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
                let lengths = dot(a, a).sqrt() * dot(b, b).sqrt();
                if lengths == 0.0 { 0.0 } else { dot(a, b) / lengths }
            },
            |raw| (1.0 + raw) / 2.0,
        )
    }),
    form("$similarityEuclidean", "distance of two vectors", |name, operand, scope| {
        similarity(
            name,
            operand,
            scope,
            |a, b| a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt(),
            |raw| 1.0 / (1.0 + raw),
        )
    }),
    refused(
        "$function",
        "JavaScript is not run",
        NOT_IMPLEMENTED,
        "$function is not supported: this server does not run JavaScript",
    ),
    refused(
        "$toHashedIndexKey",
        "MongoDB's hash of a value",
        NOT_IMPLEMENTED,
        "$toHashedIndexKey is not supported",
    ),
];

fn timestamp(name: &str, code: i32, args: &Args<'_>) -> Result<Out> {
    match args.at(0) {
        value if is_nullish(value) => Ok(Some(Value::Null)),
        Some(Ref::Timestamp(value)) => {
            let part = if name == "$tsSecond" { value.time } else { value.increment };
            Ok(Some(Value::Int64(part.into())))
        }
        other => bail!(code, "Argument to {name} must be a timestamp, but is {}", type_name_opt(other)),
    }
}

fn similarity(
    name: &str,
    operand: Ref<'_>,
    scope: &mut super::Scope,
    measure: fn(&[f64], &[f64]) -> f64,
    score: fn(f64) -> f64,
) -> Result<Expr> {
    let (parts, scored) = match operand {
        Ref::Document(object) if field(object, "vectors").is_some() => {
            object_operand(name, operand, &["vectors", "score"], (BAD_VALUE, BAD_VALUE))?;
            let vectors = field(object, "vectors").unwrap_or(Ref::Null);
            (
                super::parse::arguments(name, vectors, (2, 2), scope)?,
                field(object, "score") == Some(Ref::Boolean(true)),
            )
        }
        _ => (super::parse::arguments(name, operand, (2, 2), scope)?, false),
    };
    let name = name.to_string();
    Ok(Expr::form(move |env| {
        let mut vectors = Vec::new();
        for part in &parts {
            match part.eval(env)? {
                None | Some(Value::Null | Value::Undefined) => return Ok(Some(Value::Null)),
                Some(Value::Array(list)) => {
                    let numbers: Option<Vec<f64>> = items(&list).map(as_double).collect();
                    let Some(numbers) = numbers else { bail!(10413202, "{name} needs arrays of numbers") };
                    vectors.push(numbers);
                }
                Some(_) => bail!(10413200, "{name} needs arrays of numbers"),
            }
        }
        match vectors.as_slice() {
            [a, b] if a.len() == b.len() => {
                let raw = measure(a, b);
                Ok(Some(Value::Double(if scored { score(raw) } else { raw })))
            }
            _ => bail!(10413203, "{name} needs arrays of the same length"),
        }
    }))
}
