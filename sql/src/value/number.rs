//! Numbers: one type to a query, two representations inside.
//!
//! Integers stay exact as long as nothing is computed with them; arithmetic is done in doubles. Comparing an
//! integer with a double compares their exact values, never a rounded one.

use std::cmp::Ordering;
use std::fmt::Write as _;

use mayfly_value::number::{Digits, compare_doubles};

/// The first double above every i64: 2^63.
const ABOVE_INT64: f64 = 9_223_372_036_854_775_808.0;

/// The integer this double is, if it has no fraction and fits.
pub fn exact_i64(double: f64) -> Option<i64> {
    let fits = (-ABOVE_INT64..ABOVE_INT64).contains(&double);
    if fits && double.trunc() == double { Some(double as i64) } else { None }
}

/// Compares an integer with a double by exact value. NaN is below every number.
pub fn compare_int_double(int: i64, double: f64) -> Ordering {
    if double.is_nan() || double < -ABOVE_INT64 {
        return Ordering::Greater;
    }
    if double >= ABOVE_INT64 {
        return Ordering::Less;
    }
    // In this range the whole part converts without loss; the fraction decides between equals.
    let whole = double.trunc();
    int.cmp(&(whole as i64)).then_with(|| compare_doubles(0.0, double - whole))
}

/// Appends a double the way JavaScript prints it: the shortest digits that read back as the same double,
/// without a fraction if it has none. NaN and the infinities print as words.
pub fn write_double(double: f64, out: &mut String) {
    if double.is_nan() {
        return out.push_str("NaN");
    }
    if double.is_infinite() {
        return out.push_str(if double < 0.0 { "-Infinity" } else { "Infinity" });
    }
    if double == 0.0 {
        return out.push('0');
    }
    if double < 0.0 {
        out.push('-');
    }
    let digits = Digits::of(double.abs());
    // Writing into a String cannot fail.
    let _ = match digits.exponent() {
        exponent @ (..-6 | 21..) => write!(out, "{}e{exponent:+}", digits.mantissa()),
        _ => write!(out, "{}", digits.plain()),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_print_like_javascript() {
        let check = |double: f64, expected: &str| {
            let mut text = String::new();
            write_double(double, &mut text);
            assert_eq!(text, expected);
        };
        check(1.0, "1");
        check(-0.0, "0");
        check(0.1, "0.1");
        check(16331239353195370.0, "16331239353195370");
        check(1e20, "100000000000000000000");
        check(1.5e21, "1.5e+21");
        check(1.5e-7, "1.5e-7");
        check(0.000001, "0.000001");
        check(1.25e-6, "0.00000125");
        check(9.5e-7, "9.5e-7");
        check(1e21, "1e+21");
        check(5e-324, "5e-324");
        check(f64::MAX, "1.7976931348623157e+308");
        check(-12.5, "-12.5");
        check(123_456_789_012_345_680_000.0, "123456789012345680000");
    }

    #[test]
    fn of_two_equally_near_texts_the_even_one_is_written() {
        let mut text = String::new();
        write_double(-194_875_444_511_757.0 - 0.125, &mut text);
        assert_eq!(text, "-194875444511757.12");
    }

    #[test]
    fn integers_and_doubles_compare_exactly() {
        assert_eq!(compare_int_double(9_007_199_254_740_993, 9_007_199_254_740_992.0), Ordering::Greater);
        assert_eq!(compare_int_double(i64::MAX, i64::MAX as f64), Ordering::Less);
        assert_eq!(compare_int_double(1, 1.5), Ordering::Less);
        assert_eq!(compare_int_double(-1, -1.5), Ordering::Greater);
        assert_eq!(exact_i64(1e19), None);
        assert_eq!(exact_i64(-9_223_372_036_854_775_808.0), Some(i64::MIN));
    }
}
