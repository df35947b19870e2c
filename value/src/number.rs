//! Numbers across their four BSON types (int32, int64, double, decimal128).
//!
//! Cosmos sees one number type, the double, and compares after conversion. MongoDB compares by exact value.
//! Integers and doubles are compared directly; as soon as a decimal takes part, both sides become an
//! `Exact`: a sign and 34 decimal digits at a power of ten, which hold every decimal and every int64, and
//! enough of every double to place it (two doubles never share their first 34 digits).
//!
//! Holds: both comparisons are total. NaN equals NaN and is the lowest number, -0 equals 0.

use std::cmp::{Ordering, Reverse};

use bson::{Decimal128, RawBsonRef};

/// A number of any BSON type.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Number {
    Int(i64),
    Double(f64),
    Decimal(Decimal128),
}

impl Number {
    pub(crate) fn of(value: RawBsonRef<'_>) -> Option<Number> {
        match value {
            RawBsonRef::Int32(value) => Some(Number::Int(value.into())),
            RawBsonRef::Int64(value) => Some(Number::Int(value)),
            RawBsonRef::Double(value) => Some(Number::Double(value)),
            RawBsonRef::Decimal128(value) => Some(Number::Decimal(value)),
            _ => None,
        }
    }

    /// The nearest double.
    pub(crate) fn to_double(self) -> f64 {
        match self {
            Number::Int(value) => value as f64,
            Number::Double(value) => value,
            Number::Decimal(value) => match DecimalParts::of(value) {
                DecimalParts::NaN => f64::NAN,
                DecimalParts::Infinite { negative } => signed(f64::INFINITY, negative),
                DecimalParts::Finite { negative, coefficient, exponent } => {
                    // The text form goes through the standard library's correctly rounding parser.
                    let magnitude = format!("{coefficient}e{exponent}").parse().unwrap_or(f64::NAN);
                    signed(magnitude, negative)
                }
            },
        }
    }
}

fn signed(magnitude: f64, negative: bool) -> f64 {
    if negative { -magnitude } else { magnitude }
}

/// The value of a BSON number as a double: what Cosmos computes with. None for other types.
pub fn as_double(value: RawBsonRef<'_>) -> Option<f64> {
    Number::of(value).map(Number::to_double)
}

/// Orders doubles totally: NaN first, -0 equal to 0.
pub fn compare_doubles(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| b.is_nan().cmp(&a.is_nan()))
}

/// Orders numbers by their exact value.
pub(crate) fn compare_exact(a: Number, b: Number) -> Ordering {
    match (a, b) {
        (Number::Int(a), Number::Int(b)) => a.cmp(&b),
        (Number::Double(a), Number::Double(b)) => compare_doubles(a, b),
        (Number::Int(a), Number::Double(b)) => compare_int_double(a, b),
        (Number::Double(a), Number::Int(b)) => compare_int_double(b, a).reverse(),
        _ => Exact::of(a).cmp(&Exact::of(b)),
    }
}

/// The first double above every i64: 2^63.
const ABOVE_INT64: f64 = 9_223_372_036_854_775_808.0;

fn compare_int_double(int: i64, double: f64) -> Ordering {
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

/// A number's exact place among all numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exact {
    NaN,
    BelowAll,
    Negative(Reverse<Magnitude>),
    Zero,
    Positive(Magnitude),
    AboveAll,
}

/// A positive number as `d.ddd... × 10^adjusted` with 34 digits; the field order is the number order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Magnitude {
    /// The power of ten of the first digit.
    pub(crate) adjusted: i32,
    /// The first 34 digits: at least 10^33, below 10^34.
    pub(crate) coefficient: u128,
    /// Further digits follow that are not all zero (doubles only).
    pub(crate) more: bool,
}

pub(crate) const DIGITS: u32 = 34;
const DIGITS_BOUND: u128 = 10_u128.pow(DIGITS);

impl Exact {
    pub(crate) fn of(number: Number) -> Exact {
        match number {
            Number::Int(value) => {
                Exact::signed(value < 0, Magnitude::of_integer(value.unsigned_abs().into(), 0))
            }
            Number::Double(value) if value.is_nan() => Exact::NaN,
            Number::Double(value) if value.is_infinite() => Exact::infinite(value < 0.0),
            Number::Double(value) => Exact::signed(value < 0.0, Magnitude::of_double(value.abs())),
            Number::Decimal(value) => match DecimalParts::of(value) {
                DecimalParts::NaN => Exact::NaN,
                DecimalParts::Infinite { negative } => Exact::infinite(negative),
                DecimalParts::Finite { negative, coefficient, exponent } => {
                    Exact::signed(negative, Magnitude::of_integer(coefficient, exponent))
                }
            },
        }
    }

    fn infinite(negative: bool) -> Exact {
        if negative { Exact::BelowAll } else { Exact::AboveAll }
    }

    fn signed(negative: bool, magnitude: Option<Magnitude>) -> Exact {
        match magnitude {
            None => Exact::Zero,
            Some(magnitude) if negative => Exact::Negative(Reverse(magnitude)),
            Some(magnitude) => Exact::Positive(magnitude),
        }
    }
}

impl Magnitude {
    /// `coefficient × 10^exponent`; none for zero. The coefficient has at most 34 digits.
    fn of_integer(coefficient: u128, exponent: i32) -> Option<Magnitude> {
        let digits = coefficient.checked_ilog10()? + 1;
        let shift = DIGITS.checked_sub(digits)?;
        Some(Magnitude {
            adjusted: exponent + digits as i32 - 1,
            coefficient: coefficient * 10_u128.pow(shift),
            more: false,
        })
    }

    /// The digits of a finite, not negative double; none for zero.
    fn of_double(value: f64) -> Option<Magnitude> {
        if value == 0.0 {
            return None;
        }
        // No double has more than 767 significant digits, so this is its exact value.
        let text = format!("{value:.766e}");
        let (digits, exponent) = text.split_once('e')?;
        let mut coefficient = 0_u128;
        let mut more = false;
        for (place, digit) in digits.bytes().filter(u8::is_ascii_digit).enumerate() {
            if place < DIGITS as usize {
                coefficient = coefficient * 10 + u128::from(digit - b'0');
            } else {
                more |= digit != b'0';
            }
        }
        Some(Magnitude { adjusted: exponent.parse().ok()?, coefficient, more })
    }

    /// The number as an int64 if it is one, else as a decimal. None if no decimal holds it.
    pub(crate) fn to_number(self, negative: bool) -> Option<Number> {
        if self.more || self.coefficient >= DIGITS_BOUND {
            return None;
        }
        let mut coefficient = self.coefficient;
        let mut exponent = self.adjusted.checked_sub(DIGITS as i32 - 1)?;
        while coefficient != 0 && coefficient.is_multiple_of(10) {
            coefficient /= 10;
            exponent += 1;
        }
        let sign = if negative { "-" } else { "" };
        let integer = u32::try_from(exponent)
            .ok()
            .and_then(|exponent| 10_u128.checked_pow(exponent))
            .and_then(|power| coefficient.checked_mul(power))
            .and_then(|magnitude| format!("{sign}{magnitude}").parse::<i64>().ok());
        match integer {
            Some(integer) => Some(Number::Int(integer)),
            None => format!("{sign}{coefficient}E{exponent}").parse().ok().map(Number::Decimal),
        }
    }
}

/// Up to here, 2^53, every integer is a double.
const EXACT_INTEGERS: u64 = 1 << f64::MANTISSA_DIGITS;

/// The nearest double towards zero, and what is lost by it.
///
/// The second part is None exactly if the double has the number's value. NaN and the infinities are exact.
pub(crate) fn truncate_to_double(number: Number) -> (f64, Option<Magnitude>) {
    let nearest = number.to_double();
    let exact = match number {
        Number::Double(_) => return (nearest, None),
        // Almost all integers: no need to look at digits.
        Number::Int(value) if value.unsigned_abs() <= EXACT_INTEGERS => return (nearest, None),
        _ => Exact::of(number),
    };
    let magnitude = match exact {
        Exact::Negative(Reverse(magnitude)) | Exact::Positive(magnitude) => magnitude,
        Exact::NaN | Exact::BelowAll | Exact::AboveAll | Exact::Zero => return (nearest, None),
    };
    let negative = matches!(exact, Exact::Negative(_));
    let mut double = nearest.abs().min(f64::MAX);
    match Magnitude::of_double(double).cmp(&Some(magnitude)) {
        Ordering::Equal => return (signed(double, negative), None),
        // Rounded away from zero: one step back. It cannot be zero, which would compare less.
        Ordering::Greater => double = f64::from_bits(double.to_bits() - 1),
        Ordering::Less => {}
    }
    (signed(double, negative), Some(magnitude))
}

/// A decimal taken apart.
enum DecimalParts {
    NaN,
    Infinite { negative: bool },
    Finite { negative: bool, coefficient: u128, exponent: i32 },
}

impl DecimalParts {
    /// Reads the binary integer form of IEEE 754-2008 decimals, least significant byte first.
    fn of(decimal: Decimal128) -> DecimalParts {
        const EXPONENT_BIAS: i32 = 6176;
        let bits = u128::from_le_bytes(decimal.bytes());
        let negative = bits >> 127 == 1;
        match (bits >> 122) & 0x1F {
            0x1F => return DecimalParts::NaN,
            0x1E => return DecimalParts::Infinite { negative },
            _ => {}
        }
        let large_form = (bits >> 125) & 0x3 == 0x3;
        let exponent_bits = if large_form { bits >> 111 } else { bits >> 113 } & 0x3FFF;
        let stored = bits & ((1 << 113) - 1);
        // The large form and coefficients of 35 digits are not canonical; the standard reads them as zero.
        let coefficient = if large_form || stored >= DIGITS_BOUND { 0 } else { stored };
        DecimalParts::Finite { negative, coefficient, exponent: exponent_bits as i32 - EXPONENT_BIAS }
    }
}

/// The digits of a positive finite double, and how many of them stand before the point: `("15", 22)` for 1.5e21.
///
/// Of the shortest texts that read back as the double the nearest is taken, and of two equally near the even one, as
/// JavaScript and MongoDB do. The standard library takes the odd one, so the digits come from the writer of JSON.
#[derive(Debug)]
pub struct Digits {
    digits: String,
    point: i32,
}

impl Digits {
    /// Those of a double.
    pub fn of(double: f64) -> Self {
        let mut text = Vec::new();
        crate::json::write_double(double, &mut text);
        let text = String::from_utf8_lossy(&text);
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let exponent: i32 = exponent.parse().unwrap_or(0);

        let digits = format!("{whole}{fraction}");
        let significant = digits.trim_start_matches('0');
        let leading_zeros = (digits.len() - significant.len()) as i32;
        let point = whole.len() as i32 + exponent - leading_zeros;
        Self { digits: significant.trim_end_matches('0').to_owned(), point }
    }

    /// The power of ten of the first digit.
    pub fn exponent(&self) -> i32 {
        self.point - 1
    }

    /// The text before an exponent: one digit, and the others behind a point.
    pub fn mantissa(&self) -> String {
        let (first, rest) = self.digits.split_at(1.min(self.digits.len()));
        let dot = if rest.is_empty() { "" } else { "." };
        format!("{first}{dot}{rest}")
    }

    /// The text without an exponent.
    pub fn plain(&self) -> String {
        let Self { digits, point } = self;
        let count = digits.len() as i32;
        match *point {
            ..=0 => format!("0.{digits:0>width$}", width = (count - point) as usize),
            point if point >= count => format!("{digits:0<width$}", width = point as usize),
            point => {
                let (whole, fraction) = digits.split_at(point as usize);
                format!("{whole}.{fraction}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(text: &str) -> Number {
        Number::Decimal(text.parse().unwrap())
    }

    /// `numbers` ascend strictly.
    #[track_caller]
    fn check_ascending(numbers: &[Number]) {
        for (i, a) in numbers.iter().enumerate() {
            for (j, b) in numbers.iter().enumerate() {
                assert_eq!(compare_exact(*a, *b), i.cmp(&j), "{a:?} and {b:?}");
            }
        }
    }

    #[track_caller]
    fn check_equal(numbers: &[Number]) {
        for a in numbers {
            for b in numbers {
                assert_eq!(compare_exact(*a, *b), Ordering::Equal, "{a:?} and {b:?}");
            }
        }
    }

    #[test]
    fn numbers_compare_by_exact_value() {
        let two_to_53 = 9_007_199_254_740_992_i64;
        check_ascending(&[
            Number::Double(f64::NAN),
            Number::Double(f64::NEG_INFINITY),
            decimal("-1E6144"),
            Number::Double(f64::MIN),
            Number::Double(-9.3e18),
            Number::Int(i64::MIN),
            Number::Int(-1),
            decimal("-0.1"),
            Number::Double(-1e-300),
            decimal("-1E-6176"),
            Number::Int(0),
            decimal("1E-6176"),
            Number::Double(5e-324),
            decimal("0.1"),
            Number::Double(0.1), // 0.1000000000000000055...
            Number::Double(two_to_53 as f64),
            Number::Int(two_to_53 + 1),
            decimal("9007199254740993.5"),
            Number::Double((two_to_53 + 2) as f64),
            decimal("9223372036854775806.5"),
            Number::Int(i64::MAX),
            Number::Double(i64::MAX as f64),
            Number::Double(f64::MAX),
            decimal("1E6144"),
            Number::Double(f64::INFINITY),
        ]);
        check_equal(&[Number::Double(f64::NAN), Number::Double(-f64::NAN), decimal("NaN"), decimal("-NaN")]);
        check_equal(&[Number::Int(0), Number::Double(-0.0), decimal("0E+10"), decimal("-0")]);
        check_equal(&[Number::Int(5), Number::Double(5.0), decimal("5.000"), decimal("0.5E1")]);
        check_equal(&[Number::Double(f64::INFINITY), decimal("Infinity")]);
        check_equal(&[Number::Double(0.5), decimal("0.50")]);
    }

    #[test]
    fn conversion_to_double_rounds_to_the_nearest() {
        let check = |number: Number, double: f64| assert_eq!(number.to_double(), double, "{number:?}");
        check(decimal("0.1"), 0.1);
        check(decimal("-2.5"), -2.5);
        check(decimal("1E6144"), f64::INFINITY);
        check(decimal("1E-6176"), 0.0);
        check(Number::Int(i64::MAX), 9_223_372_036_854_775_808.0);
    }

    #[test]
    fn truncation_tells_what_it_lost() {
        let check = |number: Number, double: f64, exact: bool| {
            let (truncated, lost) = truncate_to_double(number);
            assert_eq!((truncated, lost.is_none()), (double, exact), "{number:?}");
            if let Some(lost) = lost {
                let back = lost.to_number(double.is_sign_negative()).unwrap();
                assert_eq!(compare_exact(back, number), Ordering::Equal);
            }
        };
        check(Number::Int(5), 5.0, true);
        check(Number::Int(i64::MAX), 9_223_372_036_854_774_784.0, false);
        check(Number::Int(-9_007_199_254_740_993), -9_007_199_254_740_992.0, false);
        check(decimal("0.5"), 0.5, true);
        check(decimal("0.1"), 0.09999999999999999, false);
        check(decimal("1E6144"), f64::MAX, false);
        check(decimal("-1E-6176"), -0.0, false);
        check(decimal("9.999999999999999999999999999999999E6144"), f64::MAX, false);
    }
}
