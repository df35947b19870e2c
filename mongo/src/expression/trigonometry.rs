//! Angles. Of decimals only the conversions between degrees and radians are there; the rest is refused.

use super::arithmetic::{number, unary};
use super::{Args, Operator, Out, function};
use crate::decimal::Decimal;
use crate::error::{NOT_IMPLEMENTED, Result, bail};
use crate::number::Number;
use crate::values::{Value, is_nullish};

pub(super) const OPERATORS: &[Operator] = &[
    function("$sin", "sine", (1, 1), |args| finite("$sin", args, f64::sin)),
    function("$cos", "cosine", (1, 1), |args| finite("$cos", args, f64::cos)),
    function("$tan", "tangent", (1, 1), |args| finite("$tan", args, f64::tan)),
    function("$asin", "arcsine", (1, 1), |args| bounded("$asin", args, -1.0, 1.0, f64::asin)),
    function("$acos", "arccosine", (1, 1), |args| bounded("$acos", args, -1.0, 1.0, f64::acos)),
    function("$atan", "arctangent", (1, 1), |args| everywhere("$atan", args, f64::atan)),
    function("$atan2", "arctangent of a quotient", (2, 2), atan2),
    function("$sinh", "hyperbolic sine", (1, 1), |args| everywhere("$sinh", args, f64::sinh)),
    function("$cosh", "hyperbolic cosine", (1, 1), |args| everywhere("$cosh", args, f64::cosh)),
    function("$tanh", "hyperbolic tangent", (1, 1), |args| everywhere("$tanh", args, f64::tanh)),
    function("$asinh", "inverse hyperbolic sine", (1, 1), |args| everywhere("$asinh", args, f64::asinh)),
    function("$acosh", "inverse hyperbolic cosine", (1, 1), |args| {
        bounded("$acosh", args, 1.0, f64::INFINITY, f64::acosh)
    }),
    function("$atanh", "inverse hyperbolic tangent", (1, 1), |args| {
        bounded("$atanh", args, -1.0, 1.0, f64::atanh)
    }),
    function("$degreesToRadians", "radians of degrees", (1, 1), |args| {
        unary(
            "$degreesToRadians",
            args,
            |value| Ok(value.to_radians()),
            |value| Ok(value.multiply(pi()).divide(Decimal::from_i64(180))),
        )
    }),
    function("$radiansToDegrees", "degrees of radians", (1, 1), |args| {
        unary(
            "$radiansToDegrees",
            args,
            |value| Ok(value * (180.0 / std::f64::consts::PI)),
            |value| Ok(value.multiply(Decimal::from_i64(180)).divide(pi())),
        )
    }),
];

fn pi() -> Decimal {
    Decimal::parse("3.141592653589793238462643383279503").unwrap_or(Decimal::NaN)
}

fn no_decimals(name: &str) -> Result<Decimal> {
    bail!(NOT_IMPLEMENTED, "{name} of a decimal is not supported; convert it with $toDouble")
}

fn everywhere(name: &str, args: &Args<'_>, function: fn(f64) -> f64) -> Result<Out> {
    unary(name, args, |value| Ok(function(value)), |_| no_decimals(name))
}

fn finite(name: &str, args: &Args<'_>, function: fn(f64) -> f64) -> Result<Out> {
    let check = |value: f64| {
        if value.is_infinite() {
            bail!(50989, "cannot apply {name} to {value}, value must be in (-inf,inf)");
        }
        Ok(function(value))
    };
    unary(name, args, check, |_| no_decimals(name))
}

fn bounded(name: &str, args: &Args<'_>, low: f64, high: f64, function: fn(f64) -> f64) -> Result<Out> {
    let check = |value: f64| {
        if !value.is_nan() && !(low..=high).contains(&value) {
            bail!(50989, "cannot apply {name} to {value}, value must be in [{low},{high}]");
        }
        Ok(function(value))
    };
    unary(name, args, check, |_| no_decimals(name))
}

fn atan2(args: &Args<'_>) -> Result<Out> {
    if is_nullish(args.at(0)) {
        return Ok(Some(Value::Null));
    }
    let y = number("$atan2", 51044, args.at(0))?;
    if is_nullish(args.at(1)) {
        return Ok(Some(Value::Null));
    }
    match (y, number("$atan2", 51045, args.at(1))?) {
        (Some(Number::Decimal(_)), _) | (_, Some(Number::Decimal(_))) => no_decimals("$atan2").map(|_| None),
        (Some(y), Some(x)) => Ok(Some(Value::Double(y.to_f64().atan2(x.to_f64())))),
        _ => Ok(Some(Value::Null)),
    }
}
