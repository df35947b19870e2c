//! Sums, products, quotients, powers, roots, logarithms and rounding.

use bson::DateTime;

use super::{ANY, Args, Operator, Out, function};
use crate::decimal::{Decimal, Rounding};
use crate::error::{BAD_VALUE, Result, TYPE_MISMATCH, bail};
use crate::number::Number;
use crate::values::{Ref, Value, as_integer, is_nullish, is_number, type_name};

pub(super) const OPERATORS: &[Operator] = &[
    function("$abs", "without the sign", (1, 1), abs),
    function("$add", "sum of numbers, or a date moved by milliseconds", ANY, add),
    function("$ceil", "rounded up", (1, 1), ceil),
    function("$divide", "quotient, never of integers", (2, 2), divide),
    function("$exp", "e to a power", (1, 1), exp),
    function("$floor", "rounded down", (1, 1), floor),
    function("$ln", "natural logarithm", (1, 1), ln),
    function("$log", "logarithm to a base", (2, 2), log),
    function("$log10", "logarithm to base 10", (1, 1), log10),
    function("$mod", "remainder, with the sign of the dividend", (2, 2), modulo),
    function("$multiply", "product", ANY, multiply),
    function("$pow", "power", (2, 2), pow),
    function("$round", "rounded to a place, ties to even", (1, 2), round),
    function("$sqrt", "square root", (1, 1), sqrt),
    function("$subtract", "difference of numbers or dates", (2, 2), subtract),
    function("$trunc", "cut off at a place", (1, 2), trunc),
    function("$sigmoid", "1 / (1 + e^-x)", (1, 1), sigmoid),
];

/// The one number a function is about; null if there is none.
pub(super) fn number(name: &str, code: i32, value: Option<Ref<'_>>) -> Result<Option<Number>> {
    match value {
        value if is_nullish(value) => Ok(None),
        Some(value) => match Number::of(value) {
            Some(number) => Ok(Some(number)),
            None => bail!(code, "{name} only supports numeric types, not {}", type_name(value)),
        },
        None => Ok(None),
    }
}

fn null() -> Result<Out> {
    Ok(Some(Value::Null))
}

fn done(number: Number) -> Result<Out> {
    Ok(Some(number.value()))
}

/// Applies a function to the only argument: doubles by `double`, decimals by `decimal`.
pub(super) fn unary(
    name: &str,
    args: &Args<'_>,
    double: impl Fn(f64) -> Result<f64>,
    decimal: impl Fn(Decimal) -> Result<Decimal>,
) -> Result<Out> {
    match number(name, 28765, args.at(0))? {
        None => null(),
        Some(Number::Decimal(value)) => done(Number::Decimal(decimal(value)?)),
        Some(other) => done(Number::Double(double(other.to_f64())?)),
    }
}

fn abs(args: &Args<'_>) -> Result<Out> {
    match number("$abs", 28765, args.at(0))? {
        None => null(),
        Some(Number::Int(value)) => match value.checked_abs() {
            Some(value) => done(Number::Int(value)),
            None => done(Number::Long(i64::from(value).abs())),
        },
        Some(Number::Long(value)) => match value.checked_abs() {
            Some(value) => done(Number::Long(value)),
            None => bail!(28680, "can't take $abs of long long min"),
        },
        Some(Number::Double(value)) => done(Number::Double(value.abs())),
        Some(Number::Decimal(value)) => done(Number::Decimal(value.abs())),
    }
}

/// A date moved by a number of milliseconds.
fn moved(name: &str, date: DateTime, by: Number) -> Result<Out> {
    let by = match by {
        Number::Double(value) if value.is_finite() && value.abs() < 9.2e18 => Some(value.round() as i64),
        Number::Decimal(value) => value.round_to(0, Rounding::HalfEven).to_i64_exact(),
        other => other.as_long(),
    };
    match by.and_then(|by| date.timestamp_millis().checked_add(by)) {
        Some(millis) => Ok(Some(Value::DateTime(DateTime::from_millis(millis)))),
        None => bail!(15, "date overflow in {name}"),
    }
}

fn add(args: &Args<'_>) -> Result<Out> {
    let (mut sum, mut date, mut nullish) = (Number::Int(0), None, false);
    for value in args.iter() {
        match value {
            value if is_nullish(value) => nullish = true,
            Some(Ref::DateTime(found)) => {
                if date.replace(found).is_some() {
                    bail!(16612, "only one date allowed in an $add expression");
                }
            }
            Some(value) => match Number::of(value) {
                Some(number) => sum = sum.add(number),
                None => {
                    bail!(TYPE_MISMATCH, "$add only supports numeric or date types, not {}", type_name(value))
                }
            },
            None => nullish = true,
        }
        if nullish {
            return null();
        }
    }
    match date {
        Some(date) => moved("$add", date, sum),
        None => done(sum),
    }
}

fn subtract(args: &Args<'_>) -> Result<Out> {
    let (a, b) = (args.at(0), args.at(1));
    if is_nullish(a) || is_nullish(b) {
        return null();
    }
    let (Some(a), Some(b)) = (a, b) else { return null() };
    match (a, b, Number::of(a), Number::of(b)) {
        (_, _, Some(a), Some(b)) => done(a.subtract(b)),
        (Ref::DateTime(a), Ref::DateTime(b), ..) => {
            match a.timestamp_millis().checked_sub(b.timestamp_millis()) {
                Some(millis) => Ok(Some(Value::Int64(millis))),
                None => bail!(15, "overflow in $subtract"),
            }
        }
        (Ref::DateTime(date), _, _, Some(by)) => moved("$subtract", date, Number::Int(0).subtract(by)),
        _ => bail!(TYPE_MISMATCH, "can't $subtract {} from {}", type_name(b), type_name(a)),
    }
}

fn multiply(args: &Args<'_>) -> Result<Out> {
    let mut product = Number::Int(1);
    for value in args.iter() {
        if is_nullish(value) {
            return null();
        }
        match number("$multiply", TYPE_MISMATCH, value)? {
            Some(factor) => product = product.multiply(factor),
            None => return null(),
        }
    }
    done(product)
}

/// Two numbers; none if one of them is null.
fn pair(name: &str, code: i32, args: &Args<'_>) -> Result<Option<(Number, Number)>> {
    let (a, b) = (args.at(0), args.at(1));
    if is_nullish(a) || is_nullish(b) {
        return Ok(None);
    }
    let numbers = (a.and_then(Number::of), b.and_then(Number::of));
    match numbers {
        (Some(a), Some(b)) => Ok(Some((a, b))),
        _ => bail!(
            code,
            "{name} only supports numeric types, not {} and {}",
            a.map_or("missing", type_name),
            b.map_or("missing", type_name)
        ),
    }
}

fn divide(args: &Args<'_>) -> Result<Out> {
    let Some((a, b)) = pair("$divide", TYPE_MISMATCH, args)? else { return null() };
    if b.is_zero() {
        bail!(BAD_VALUE, "can't $divide by zero");
    }
    done(a.divide(b))
}

fn modulo(args: &Args<'_>) -> Result<Out> {
    let Some((a, b)) = pair("$mod", 16611, args)? else { return null() };
    if b.is_zero() {
        bail!(16610, "can't $mod by zero");
    }
    match (a, b) {
        (Number::Decimal(_), _) | (_, Number::Decimal(_)) => {
            done(Number::Decimal(a.to_decimal().remainder(b.to_decimal())))
        }
        (Number::Double(_), _) | (_, Number::Double(_)) => done(Number::Double(a.to_f64() % b.to_f64())),
        (Number::Int(a), Number::Int(b)) => done(Number::Int(a.wrapping_rem(b))),
        _ => done(Number::Long(a.as_long().unwrap_or(0).wrapping_rem(b.as_long().unwrap_or(1)))),
    }
}

fn pow(args: &Args<'_>) -> Result<Out> {
    let (a, b) = (args.at(0), args.at(1));
    if is_nullish(a) || is_nullish(b) {
        return null();
    }
    let (Some(base), Some(power)) = (number("$pow's base", 28762, a)?, number("$pow's exponent", 28763, b)?)
    else {
        return null();
    };
    let negative_power = power.to_f64() < 0.0;
    if base.is_zero() && negative_power {
        bail!(28764, "$pow cannot take a base of 0 and a negative exponent");
    }
    if matches!(base, Number::Decimal(_)) || matches!(power, Number::Decimal(_)) {
        return done(Number::Decimal(base.to_decimal().pow(power.to_decimal())));
    }
    let exact = match (base.as_long(), power.as_long()) {
        (Some(base), Some(power)) => integer_power(base, power),
        _ => None,
    };
    let double = base.to_f64().powf(power.to_f64());
    match exact {
        Some(value) if matches!(base, Number::Long(_)) || matches!(power, Number::Long(_)) => {
            done(Number::Long(value))
        }
        Some(value) => done(i32::try_from(value).map_or(Number::Long(value), Number::Int)),
        None => done(Number::Double(double)),
    }
}

/// An integer to a power, if that is an integer of 64 bits.
fn integer_power(base: i64, power: i64) -> Option<i64> {
    match (base, u32::try_from(power)) {
        (1, _) => Some(1),
        (-1, _) => Some(if power % 2 == 0 { 1 } else { -1 }),
        (_, Ok(power)) => base.checked_pow(power),
        (_, Err(_)) => None,
    }
}

fn exp(args: &Args<'_>) -> Result<Out> {
    unary("$exp", args, |value| Ok(value.exp()), |value| Ok(value.exp()))
}

fn positive(name: &str, code: i32, negative: bool) -> Result<()> {
    if negative {
        bail!(code, "{name}'s argument must be a positive number");
    }
    Ok(())
}

fn ln(args: &Args<'_>) -> Result<Out> {
    unary(
        "$ln",
        args,
        |value| positive("$ln", 28766, value <= 0.0).map(|()| value.ln()),
        |value| positive("$ln", 28766, value.is_zero() || value.is_negative()).map(|()| value.ln()),
    )
}

fn log10(args: &Args<'_>) -> Result<Out> {
    unary(
        "$log10",
        args,
        |value| positive("$log10", 28761, value <= 0.0).map(|()| value.log10()),
        |value| positive("$log10", 28761, value.is_zero() || value.is_negative()).map(|()| value.log10()),
    )
}

fn log(args: &Args<'_>) -> Result<Out> {
    let (a, b) = (args.at(0), args.at(1));
    if is_nullish(a) || is_nullish(b) {
        return null();
    }
    let (Some(value), Some(base)) = (number("$log's argument", 28756, a)?, number("$log's base", 28757, b)?)
    else {
        return null();
    };
    let (v, base_double) = (value.to_f64(), base.to_f64());
    if !(v > 0.0 || v.is_nan()) {
        bail!(28758, "$log's argument must be a positive number, but is {v}");
    }
    if !((base_double > 0.0 && base_double != 1.0) || base_double.is_nan()) {
        bail!(28759, "$log's base must be a positive number not equal to 1, but is {base_double}");
    }
    if matches!(value, Number::Decimal(_)) || matches!(base, Number::Decimal(_)) {
        let quotient = value.to_decimal().ln().divide(base.to_decimal().ln());
        return done(Number::Decimal(quotient));
    }
    done(Number::Double(v.ln() / base_double.ln()))
}

fn sqrt(args: &Args<'_>) -> Result<Out> {
    let check = |negative: bool| {
        if negative {
            bail!(28714, "$sqrt's argument must be greater than or equal to 0");
        }
        Ok(())
    };
    unary(
        "$sqrt",
        args,
        |value| check(value < 0.0).map(|()| value.sqrt()),
        |value| check(value.is_negative() && !value.is_zero()).map(|()| value.sqrt()),
    )
}

fn sigmoid(args: &Args<'_>) -> Result<Out> {
    let one = Decimal::from_i64(1);
    match number("$sigmoid", TYPE_MISMATCH, args.at(0))? {
        None => null(),
        Some(Number::Decimal(value)) => done(Number::Decimal(one.divide(one.add(value.negated().exp())))),
        Some(other) => done(Number::Double(1.0 / (1.0 + (-other.to_f64()).exp()))),
    }
}

fn whole(args: &Args<'_>, name: &str, double: fn(f64) -> f64, rounding: Rounding) -> Result<Out> {
    match number(name, 28765, args.at(0))? {
        None => null(),
        Some(Number::Double(value)) => done(Number::Double(double(value))),
        Some(Number::Decimal(value)) => done(Number::Decimal(value.round_to(0, rounding))),
        Some(integer) => done(integer),
    }
}

fn ceil(args: &Args<'_>) -> Result<Out> {
    whole(args, "$ceil", f64::ceil, Rounding::Ceiling)
}

fn floor(args: &Args<'_>) -> Result<Out> {
    whole(args, "$floor", f64::floor, Rounding::Floor)
}

fn round(args: &Args<'_>) -> Result<Out> {
    to_place("$round", args, Rounding::HalfEven)
}

fn trunc(args: &Args<'_>) -> Result<Out> {
    to_place("$trunc", args, Rounding::Down)
}

fn to_place(name: &str, args: &Args<'_>, rounding: Rounding) -> Result<Out> {
    let Some(number) = number(name, 51081, args.at(0))? else { return null() };
    let places = match args.at(1) {
        None if args.len() < 2 => 0,
        None => return null(),
        value if is_nullish(value) => return null(),
        Some(value) if !is_number(value) => {
            bail!(16004, "can't convert from BSON type {} to long", type_name(value))
        }
        Some(value) => match as_integer(value) {
            Some(places) if (-20..=100).contains(&places) => places as i32,
            Some(_) => bail!(51083, "cannot apply {name} with precision value out of range [-20, 100]"),
            None => bail!(51082, "precision argument to {name} must be a integral value"),
        },
    };
    match number {
        Number::Double(value) if !value.is_finite() => done(number),
        Number::Double(value) if places == 0 => done(Number::Double(match rounding {
            Rounding::HalfEven => value.round_ties_even(),
            _ => value.trunc(),
        })),
        Number::Double(value) => {
            let exact = Decimal::parse(&format!("{value:e}")).unwrap_or(Decimal::from_f64(value));
            // The digits beyond the shortest form matter for what is exactly between.
            let exact =
                if value.abs() < 1e15 && value.abs() > 1e-6 { full(value).unwrap_or(exact) } else { exact };
            done(Number::Double(exact.round_to(places, rounding).to_f64()))
        }
        Number::Decimal(value) => done(Number::Decimal(value.round_to(places, rounding))),
        _ if places >= 0 => done(number),
        Number::Int(value) => {
            let rounded = Decimal::from_i64(value.into()).round_to(places, rounding).to_i64_exact();
            match rounded {
                Some(value) => done(i32::try_from(value).map_or(Number::Long(value), Number::Int)),
                None => bail!(51080, "invalid conversion from Decimal128 result in {name}"),
            }
        }
        Number::Long(value) => match Decimal::from_i64(value).round_to(places, rounding).to_i64_exact() {
            Some(value) => done(Number::Long(value)),
            None => bail!(51080, "invalid conversion from Decimal128 result in {name}"),
        },
    }
}

/// A double's first 34 digits.
fn full(value: f64) -> Option<Decimal> {
    Decimal::parse(&format!("{value:.33e}"))
}
