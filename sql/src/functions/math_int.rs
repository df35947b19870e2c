//! 64-bit integers: arithmetic and bits.
//!
//! Every argument must be an integer that fits 64 bits, written as one or not (`3.0` is). Results that do not
//! fit wrap around, since the service does not say otherwise; shifts take the count modulo 64, as .NET does.

use super::{Args, Family, Function, PlainRun};
use crate::context::Context;
use crate::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    int("INTADD", "INTADD(a, b)", "a + b.", add),
    int("INTBITAND", "INTBITAND(a, b)", "The bits that are in both.", and).also(&["INTBITWISEAND"]),
    int("INTBITLEFTSHIFT", "INTBITLEFTSHIFT(a, n)", "The bits of a, n places to the left.", left)
        .also(&["INTBITWISELEFTSHIFT"]),
    Function::new(
        "INTBITNOT",
        Family::Math,
        Args::exactly(1),
        "INTBITNOT(a)",
        "The bits that are not in a.",
        not,
    )
    .also(&["INTBITWISENOT"]),
    int("INTBITOR", "INTBITOR(a, b)", "The bits that are in a or in b.", or).also(&["INTBITWISEOR"]),
    int(
        "INTBITRIGHTSHIFT",
        "INTBITRIGHTSHIFT(a, n)",
        "The bits of a, n places to the right, keeping the sign.",
        right,
    )
    .also(&["INTBITWISERIGHTSHIFT"]),
    int("INTBITXOR", "INTBITXOR(a, b)", "The bits that are in only one.", xor).also(&["INTBITWISEXOR"]),
    int("INTDIV", "INTDIV(a, b)", "a / b without its fraction.", div),
    int("INTMOD", "INTMOD(a, b)", "What INTDIV leaves over, with the sign of a.", rem),
    int("INTMUL", "INTMUL(a, b)", "a * b.", mul).also(&["INTMULTIPLY"]),
    int("INTSUB", "INTSUB(a, b)", "a - b.", sub),
];

const fn int(name: &'static str, signature: &'static str, help: &'static str, run: PlainRun) -> Function {
    Function::new(name, Family::Math, Args::exactly(2), signature, help, run)
}

fn with_ints<'a>(args: &[Value<'a>], run: impl FnOnce(i64, i64) -> i64) -> Value<'a> {
    let [a, b] = args else { return Value::Undefined };
    a.as_i64().zip(b.as_i64()).map(|(a, b)| run(a, b)).into()
}

/// The same for operations that zero has no part in.
fn with_divisor<'a>(args: &[Value<'a>], run: impl FnOnce(i64, i64) -> i64) -> Value<'a> {
    match args.get(1).and_then(Value::as_i64) {
        Some(0) => Value::Undefined,
        _ => with_ints(args, run),
    }
}

fn add<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    with_ints(args, i64::wrapping_add)
}

fn and<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    with_ints(args, |a, b| a & b)
}

fn left<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    with_ints(args, |a, count| a.wrapping_shl(count as u32))
}

fn not<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    let [number] = args else { return Value::Undefined };
    number.as_i64().map(|number| !number).into()
}

fn or<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    with_ints(args, |a, b| a | b)
}

fn right<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    with_ints(args, |a, count| a.wrapping_shr(count as u32))
}

fn xor<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    with_ints(args, |a, b| a ^ b)
}

fn div<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    with_divisor(args, i64::wrapping_div)
}

fn rem<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    with_divisor(args, i64::wrapping_rem)
}

fn mul<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    with_ints(args, i64::wrapping_mul)
}

fn sub<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    with_ints(args, i64::wrapping_sub)
}

#[cfg(test)]
pub(super) const CASES: &[super::testing::Case] = &[
    ("INTADD", "20,10", "30"),
    ("INTADD", "20,-0.0", "20"),
    ("INTADD", "20,0.1", "undefined"),
    ("INTADD", "9223372036854775807,1", "-9223372036854775808"),
    ("INTADD", "1e300,1", "undefined"),
    ("INTADD", r#"1,"1""#, "undefined"),
    ("INTBITAND", "15,25", "9"),
    ("INTBITAND", "15,1.5", "undefined"),
    ("INTBITLEFTSHIFT", "16,4", "256"),
    ("INTBITLEFTSHIFT", "16,0.4", "undefined"),
    ("INTBITLEFTSHIFT", "1,63", "-9223372036854775808"),
    ("INTBITLEFTSHIFT", "1,64", "1"),
    ("INTBITNOT", "65", "-66"),
    ("INTBITNOT", "0", "-1"),
    ("INTBITNOT", "0.1", "undefined"),
    ("INTBITOR", "56,100", "124"),
    ("INTBITOR", "null,1", "undefined"),
    ("INTBITRIGHTSHIFT", "16,4", "1"),
    ("INTBITRIGHTSHIFT", "-16,2", "-4"),
    ("INTBITRIGHTSHIFT", "16,0.4", "undefined"),
    ("INTBITXOR", "56,100", "92"),
    ("INTBITXOR", "56,true", "undefined"),
    ("INTDIV", "10,2", "5"),
    ("INTDIV", "-7,2", "-3"),
    ("INTDIV", "10,0", "undefined"),
    ("INTDIV", "10,0.1", "undefined"),
    ("INTDIV", "-9223372036854775808,-1", "-9223372036854775808"),
    ("INTMOD", "12,5", "2"),
    ("INTMOD", "12,-5", "2"),
    ("INTMOD", "-12,-5", "-2"),
    ("INTMOD", "12,0", "undefined"),
    ("INTMOD", "-9223372036854775808,-1", "0"),
    ("INTMUL", "5,-2", "-10"),
    ("INTMUL", "5,0.5", "undefined"),
    ("INTMUL", "9223372036854775807,2", "-2"),
    ("INTSUB", "25,-5", "30"),
    ("INTSUB", "-9223372036854775808,1", "9223372036854775807"),
    ("INTSUB", "25,-0.5", "undefined"),
];
