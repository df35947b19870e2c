//! Angles, in radians.

use super::math::with_double;
use super::{Args, Family, Function, PlainRun};
use crate::context::Context;
use crate::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    angle("ACOS", "ACOS(n)", "The angle with this cosine.", acos),
    angle("ASIN", "ASIN(n)", "The angle with this sine.", asin),
    angle("ATAN", "ATAN(n)", "The angle with this tangent.", atan),
    Function::new(
        "ATN2",
        Family::Math,
        Args::exactly(2),
        "ATN2(y, x)",
        "The angle of the point (x, y).",
        atn2,
    ),
    angle("COS", "COS(n)", "The cosine of an angle.", cos),
    angle("COT", "COT(n)", "The cotangent of an angle.", cot),
    angle("DEGREES", "DEGREES(n)", "The angle in degrees.", degrees),
    Function::new(
        "PI",
        Family::Math,
        Args::exactly(0),
        "PI()",
        "Half the circumference of the unit circle.",
        pi,
    ),
    angle("RADIANS", "RADIANS(n)", "The angle of these degrees.", radians),
    angle("SIN", "SIN(n)", "The sine of an angle.", sin),
    angle("TAN", "TAN(n)", "The tangent of an angle.", tan),
];

const fn angle(name: &'static str, signature: &'static str, help: &'static str, run: PlainRun) -> Function {
    Function::new(name, Family::Math, Args::exactly(1), signature, help, run)
}

fn acos<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    with_double(args, f64::acos)
}

fn asin<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    with_double(args, f64::asin)
}

fn atan<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    with_double(args, f64::atan)
}

fn atn2<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    let [y, x] = args else { return Value::Undefined };
    y.as_f64().zip(x.as_f64()).map(|(y, x)| y.atan2(x)).into()
}

fn cos<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    with_double(args, f64::cos)
}

fn cot<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    with_double(args, |angle| 1.0 / angle.tan())
}

fn degrees<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    with_double(args, |angle| angle * 180.0 / std::f64::consts::PI)
}

fn pi<'a>(_: &Context<'_>, _: &[Value<'a>]) -> Value<'a> {
    Value::Double(std::f64::consts::PI)
}

fn radians<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    with_double(args, |degrees| std::f64::consts::PI * degrees / 180.0)
}

fn sin<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    with_double(args, f64::sin)
}

fn tan<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    with_double(args, f64::tan)
}

#[cfg(test)]
pub(super) const CASES: &[super::testing::Case] = &[
    ("ACOS", "-1", "3.141592653589793"),
    ("ACOS", "2", "NaN"),
    ("ACOS", "null", "undefined"),
    ("ASIN", "-1", "-1.5707963267948966"),
    ("ASIN", r#""1""#, "undefined"),
    ("ATAN", "1", "0.7853981633974483"),
    ("ATAN", "[]", "undefined"),
    ("ATN2", "35.175643,129.44", "0.265344532064832"),
    ("ATN2", "1,null", "undefined"),
    ("COS", "0", "1"),
    ("COS", "true", "undefined"),
    ("COT", "124.1332", "-0.040311998371148884"),
    ("COT", "null", "undefined"),
    ("DEGREES", "3.141592653589793", "180"),
    ("DEGREES", "{}", "undefined"),
    ("PI", "", "3.141592653589793"),
    ("RADIANS", "180", "3.141592653589793"),
    ("RADIANS", "null", "undefined"),
    ("SIN", "0", "0"),
    ("SIN", "null", "undefined"),
    ("TAN", "1.5707963267948966", "16331239353195370"),
    ("TAN", "null", "undefined"),
];
