//! Numbers: rounding, powers, logarithms.
//!
//! Where mathematics has no answer (`SQRT(-1)`, `LOG(0)`) the result is NaN or infinite, not undefined; what
//! becomes of those in a result is not decided here.

use super::{Args, Family, Function, PlainRun};
use crate::context::Context;
use crate::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    math("ABS", "ABS(n)", "The distance from zero.", abs),
    math("CEILING", "CEILING(n)", "The nearest integer that is not less.", ceiling),
    math("EXP", "EXP(n)", "e to the power of the number.", exp),
    math("FLOOR", "FLOOR(n)", "The nearest integer that is not greater.", floor),
    Function::new(
        "LOG",
        Family::Math,
        Args::between(1, 2),
        "LOG(n [, base])",
        "The logarithm, natural unless a base is given.",
        log,
    ),
    math("LOG10", "LOG10(n)", "The logarithm to base 10.", log10),
    Function::new(
        "NUMBERBIN",
        Family::Math,
        Args::between(1, 2),
        "NUMBERBIN(n [, size])",
        "The number rounded down to a multiple of the size.",
        number_bin,
    ),
    Function::new("POWER", Family::Math, Args::exactly(2), "POWER(n, e)", "n to the power of e.", power),
    Function::new("RAND", Family::Math, Args::exactly(0), "RAND()", "A random number in [0, 1).", rand)
        .reads_context(),
    math("ROUND", "ROUND(n)", "The nearest integer; halves go away from zero.", round),
    math("SIGN", "SIGN(n)", "-1, 0 or 1.", sign),
    math("SQRT", "SQRT(n)", "The square root.", sqrt),
    math("SQUARE", "SQUARE(n)", "The number times itself.", square),
    math("TRUNC", "TRUNC(n)", "The integer part.", trunc),
];

const fn math(name: &'static str, signature: &'static str, help: &'static str, run: PlainRun) -> Function {
    Function::new(name, Family::Math, Args::exactly(1), signature, help, run)
}

/// Applies a function of one double.
pub(super) fn with_double<'a>(args: &[Value<'a>], run: impl FnOnce(f64) -> f64) -> Value<'a> {
    let [number] = args else { return Value::Undefined };
    number.as_f64().map(run).into()
}

/// Applies a function that leaves integers alone, so that those beyond 2^53 stay exact.
fn rounded<'a>(args: &[Value<'a>], round: impl FnOnce(f64) -> f64) -> Value<'a> {
    match args {
        [Value::Int(number)] => Value::Int(*number),
        _ => with_double(args, round),
    }
}

fn abs<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    match args {
        [Value::Int(number)] if *number != i64::MIN => Value::Int(number.abs()),
        _ => with_double(args, f64::abs),
    }
}

fn ceiling<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    rounded(args, f64::ceil)
}

fn exp<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    with_double(args, f64::exp)
}

fn floor<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    rounded(args, f64::floor)
}

fn log<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    match args {
        [number, base] => {
            number.as_f64().zip(base.as_f64()).map(|(number, base)| log_base(number, base)).into()
        }
        _ => with_double(args, f64::ln),
    }
}

/// For the two usual bases a quotient would be off in the last digit.
fn log_base(number: f64, base: f64) -> f64 {
    if base == 10.0 {
        number.log10()
    } else if base == 2.0 {
        number.log2()
    } else {
        number.ln() / base.ln()
    }
}

fn log10<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    with_double(args, f64::log10)
}

fn number_bin<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    let (number, size) = match args {
        [number] => (number.as_f64(), Some(1.0)),
        [number, size] => (number.as_f64(), size.as_f64()),
        _ => return Value::Undefined,
    };
    match (number, size) {
        (Some(number), Some(size)) if size != 0.0 => Value::Double(bin(number, size)),
        _ => Value::Undefined,
    }
}

/// floor(number / size) * size, without the digits that multiplying by 0.1 adds: the result has as many
/// decimals as the size.
fn bin(number: f64, size: f64) -> f64 {
    /// The most decimals an f64 prints exactly after rounding; smaller sizes are left as they are.
    const DECIMALS_MAX: usize = 15;
    let multiple = (number / size).floor() * size;
    let decimals = format!("{size}").split_once('.').map_or(0, |(_, decimals)| decimals.len());
    if !multiple.is_finite() || decimals > DECIMALS_MAX {
        return multiple;
    }
    format!("{multiple:.decimals$}").parse().unwrap_or(multiple)
}

fn power<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    let [base, exponent] = args else { return Value::Undefined };
    base.as_f64().zip(exponent.as_f64()).map(|(base, exponent)| base.powf(exponent)).into()
}

fn rand<'a>(context: &Context<'_>, _: &[Value<'a>]) -> Value<'a> {
    Value::Double(context.random())
}

/// `f64::round` already takes halves away from zero.
fn round<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    rounded(args, f64::round)
}

fn sign<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    match args {
        [Value::Int(number)] => Value::Int(number.signum()),
        // `signum` of zero is one, of NaN is NaN.
        _ => with_double(args, |number| if number == 0.0 { 0.0 } else { number.signum() }),
    }
}

fn sqrt<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    with_double(args, f64::sqrt)
}

fn square<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    with_double(args, |number| number * number)
}

fn trunc<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    rounded(args, f64::trunc)
}

#[cfg(test)]
pub(super) const CASES: &[super::testing::Case] = &[
    ("ABS", "-1", "1"),
    ("ABS", "-1.5", "1.5"),
    ("ABS", "-9007199254740993", "9007199254740993"),
    ("ABS", "-9223372036854775808", "9223372036854775808"),
    ("ABS", "null", "undefined"),
    ("ABS", r#""1""#, "undefined"),
    ("CEILING", "62.6", "63"),
    ("CEILING", "-123.43", "-123"),
    ("CEILING", "9007199254740993", "9007199254740993"),
    ("CEILING", "[]", "undefined"),
    ("EXP", "0", "1"),
    ("EXP", "10", "22026.465794806718"),
    ("EXP", "{}", "undefined"),
    ("FLOOR", "62.6", "62"),
    ("FLOOR", "-120.5", "-121"),
    ("FLOOR", "null", "undefined"),
    ("LOG", "5", "1.6094379124341003"),
    ("LOG", "2,10", "0.3010299956639812"),
    ("LOG", "8,2", "3"),
    ("LOG", "2,4", "0.5"),
    ("LOG", "0", "-Infinity"),
    ("LOG", "-1", "NaN"),
    ("LOG", r#"2,"10""#, "undefined"),
    ("LOG", "undefined", "undefined"),
    ("LOG10", "100", "2"),
    ("LOG10", "true", "undefined"),
    ("NUMBERBIN", "37.752", "37"),
    ("NUMBERBIN", "37.752,-100", "100"),
    ("NUMBERBIN", "37.752,10", "30"),
    ("NUMBERBIN", "37.752,1", "37"),
    ("NUMBERBIN", "37.752,0", "undefined"),
    ("NUMBERBIN", "37.752,0.1", "37.7"),
    ("NUMBERBIN", "37.752,0.01", "37.75"),
    ("NUMBERBIN", "-1.5,1", "-2"),
    ("NUMBERBIN", r#"1,"1""#, "undefined"),
    ("POWER", "2,3", "8"),
    ("POWER", "2.5,3", "15.625"),
    ("POWER", "2,null", "undefined"),
    ("RAND", "", "0.5665615751722809"),
    ("ROUND", "2.4", "2"),
    ("ROUND", "2.5", "3"),
    ("ROUND", "-6.5", "-7"),
    ("ROUND", "-0.5", "-1"),
    ("ROUND", "0.49999999999999994", "0"),
    ("ROUND", "9007199254740993", "9007199254740993"),
    ("ROUND", r#""2""#, "undefined"),
    ("SIGN", "-2", "-1"),
    ("SIGN", "0", "0"),
    ("SIGN", "0.0", "0"),
    ("SIGN", "0.5", "1"),
    ("SIGN", "false", "undefined"),
    ("SQRT", "4", "2"),
    ("SQRT", "-1", "NaN"),
    ("SQRT", "null", "undefined"),
    ("SQUARE", "-3", "9"),
    ("SQUARE", "null", "undefined"),
    ("TRUNC", "2.6", "2"),
    ("TRUNC", "-2.6", "-2"),
    ("TRUNC", "null", "undefined"),
];
