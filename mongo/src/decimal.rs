//! Decimal128: sums, products, quotients, remainders, roots and rounding as IEEE 754-2008 defines them.
//!
//! 34 digits, ties to the even digit, and the exponent that the standard prefers: `1.10 + 2.2` is `3.30`. The
//! steps in between are exact (`num-bigint`), so every result is rounded once. Functions beyond these (sines,
//! logarithms) are in `decimal/functions.rs`.

mod functions;

use std::cmp::Ordering;

use bson::Decimal128;
use num_bigint::BigUint;

const DIGITS: u64 = 34;
const EXPONENT_MIN: i32 = -6176;
const EXPONENT_MAX: i32 = 6111;

/// A decimal taken apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Decimal {
    NaN,
    Infinite { negative: bool },
    Finite { negative: bool, coefficient: u128, exponent: i32 },
}

/// Where a value between two integers goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rounding {
    HalfEven,
    Down,
    Floor,
    Ceiling,
}

fn ten_to(power: u64) -> BigUint {
    BigUint::from(10_u32).pow(u32::try_from(power).unwrap_or(u32::MAX))
}

fn digits(value: &BigUint) -> u64 {
    if *value == BigUint::ZERO { 1 } else { value.to_string().len() as u64 }
}

/// Divides and rounds; `sticky` says that the numerator had more digits that are not zero.
fn divide_rounded(
    numerator: &BigUint,
    denominator: &BigUint,
    rounding: Rounding,
    negative: bool,
    sticky: bool,
) -> BigUint {
    let quotient = numerator / denominator;
    let remainder = numerator - &quotient * denominator;
    let exact = remainder == BigUint::ZERO && !sticky;
    let odd = quotient.bit(0);
    let half =
        (&remainder * 2_u32).cmp(denominator).then(if sticky { Ordering::Greater } else { Ordering::Equal });
    let up = match rounding {
        _ if exact => false,
        Rounding::HalfEven => half == Ordering::Greater || (half == Ordering::Equal && odd),
        Rounding::Down => false,
        Rounding::Floor => negative,
        Rounding::Ceiling => !negative,
    };
    if up { quotient + 1_u32 } else { quotient }
}

impl Decimal {
    pub(crate) const ZERO: Decimal = Decimal::Finite { negative: false, coefficient: 0, exponent: 0 };

    pub(crate) fn from_bson(decimal: Decimal128) -> Decimal {
        let bits = u128::from_le_bytes(decimal.bytes());
        let negative = bits >> 127 == 1;
        match (bits >> 122) & 0x1F {
            0x1F => return Decimal::NaN,
            0x1E => return Decimal::Infinite { negative },
            _ => {}
        }
        let large_form = (bits >> 125) & 0x3 == 0x3;
        let exponent_bits = if large_form { bits >> 111 } else { bits >> 113 } & 0x3FFF;
        let stored = bits & ((1 << 113) - 1);
        let coefficient = if large_form || stored >= 10_u128.pow(34) { 0 } else { stored };
        Decimal::Finite { negative, coefficient, exponent: exponent_bits as i32 + EXPONENT_MIN }
    }

    pub(crate) fn to_bson(self) -> Decimal128 {
        let bits: u128 = match self {
            Decimal::NaN => 0x1F << 122,
            Decimal::Infinite { negative } => (0x1E << 122) | (u128::from(negative) << 127),
            Decimal::Finite { negative, coefficient, exponent } => {
                let biased = (exponent - EXPONENT_MIN) as u128;
                (u128::from(negative) << 127) | (biased << 113) | coefficient
            }
        };
        Decimal128::from_bytes(bits.to_le_bytes())
    }

    /// Rounds an exact value to what fits. `preferred` is the exponent an exact result should have.
    fn finish(negative: bool, coefficient: BigUint, exponent: i64, preferred: i64, sticky: bool) -> Decimal {
        let (mut coefficient, mut exponent) = (coefficient, exponent);
        if !sticky {
            // Exact: zeros at the end go as far as the preferred exponent.
            while exponent < preferred
                && coefficient != BigUint::ZERO
                && &coefficient % 10_u32 == BigUint::ZERO
            {
                coefficient /= 10_u32;
                exponent += 1;
            }
            if exponent < preferred && coefficient == BigUint::ZERO {
                exponent = preferred;
            }
        }
        let excess = digits(&coefficient) as i64 - DIGITS as i64;
        let drop = excess.max(i64::from(EXPONENT_MIN) - exponent).max(0);
        if drop > 0 {
            // More than all digits gone is the same as one more than all.
            let shift = drop.min(digits(&coefficient) as i64 + 2);
            coefficient =
                divide_rounded(&coefficient, &ten_to(shift as u64), Rounding::HalfEven, negative, sticky);
            exponent += drop;
            if digits(&coefficient) > DIGITS {
                coefficient /= 10_u32;
                exponent += 1;
            }
        }
        while exponent > preferred.max(i64::from(EXPONENT_MIN))
            && digits(&coefficient) < DIGITS
            && drop == 0
            && !sticky
        {
            coefficient *= 10_u32;
            exponent -= 1;
        }
        if coefficient == BigUint::ZERO {
            let exponent = exponent.clamp(EXPONENT_MIN.into(), EXPONENT_MAX.into()) as i32;
            return Decimal::Finite { negative, coefficient: 0, exponent };
        }
        while exponent > i64::from(EXPONENT_MAX) && digits(&coefficient) < DIGITS {
            coefficient *= 10_u32;
            exponent -= 1;
        }
        if exponent > i64::from(EXPONENT_MAX) {
            return Decimal::Infinite { negative };
        }
        let coefficient = u128::try_from(&coefficient).unwrap_or(0);
        Decimal::Finite { negative, coefficient, exponent: exponent as i32 }
    }

    pub(crate) fn is_zero(self) -> bool {
        matches!(self, Decimal::Finite { coefficient: 0, .. })
    }

    pub(crate) fn is_nan(self) -> bool {
        self == Decimal::NaN
    }

    pub(crate) fn is_infinite(self) -> bool {
        matches!(self, Decimal::Infinite { .. })
    }

    pub(crate) fn is_negative(self) -> bool {
        match self {
            Decimal::NaN => false,
            Decimal::Infinite { negative } | Decimal::Finite { negative, .. } => negative,
        }
    }

    pub(crate) fn from_i64(value: i64) -> Decimal {
        Decimal::Finite { negative: value < 0, coefficient: value.unsigned_abs().into(), exponent: 0 }
    }

    /// Fifteen significant digits of a double, as MongoDB converts them.
    pub(crate) fn from_f64(value: f64) -> Decimal {
        if value.is_nan() {
            return Decimal::NaN;
        }
        if value.is_infinite() {
            return Decimal::Infinite { negative: value < 0.0 };
        }
        if value == 0.0 {
            return Decimal::Finite { negative: value.is_sign_negative(), coefficient: 0, exponent: 0 };
        }
        let text = format!("{:.14e}", value.abs());
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let coefficient = mantissa.replace('.', "").parse().unwrap_or(0);
        let exponent = exponent.parse::<i32>().unwrap_or(0) - 14;
        Decimal::Finite { negative: value < 0.0, coefficient, exponent }
    }

    /// From a double, with as many digits as it has and fit; without zeros at the end of a fraction.
    pub(crate) fn exactly(value: f64) -> Decimal {
        if !value.is_finite() || value == 0.0 {
            return Decimal::from_f64(value);
        }
        let text = format!("{:.33e}", value.abs());
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let mut coefficient = mantissa.replace('.', "").parse::<u128>().unwrap_or(0);
        let mut exponent = exponent.parse::<i32>().unwrap_or(0) - 33;
        while exponent < 0 && coefficient.is_multiple_of(10) {
            coefficient /= 10;
            exponent += 1;
        }
        Decimal::Finite { negative: value < 0.0, coefficient, exponent }
    }

    /// Reads a decimal literal.
    pub(crate) fn parse(text: &str) -> Option<Decimal> {
        // The parser below takes a text without a digit for zero.
        let start = text.strip_prefix(['+', '-']).unwrap_or(text).trim_start_matches('.');
        if !start.starts_with(|letter: char| letter.is_ascii_digit() || "iInN".contains(letter)) {
            return None;
        }
        text.parse::<Decimal128>().ok().map(Decimal::from_bson)
    }

    pub(crate) fn to_f64(self) -> f64 {
        mayfly_value::number::as_double(bson::RawBsonRef::Decimal128(self.to_bson())).unwrap_or(f64::NAN)
    }

    pub(crate) fn negated(self) -> Decimal {
        match self {
            Decimal::NaN => Decimal::NaN,
            Decimal::Infinite { negative } => Decimal::Infinite { negative: !negative },
            Decimal::Finite { negative, coefficient, exponent } => {
                Decimal::Finite { negative: !negative, coefficient, exponent }
            }
        }
    }

    pub(crate) fn abs(self) -> Decimal {
        if self.is_negative() { self.negated() } else { self }
    }

    pub(crate) fn add(self, other: Decimal) -> Decimal {
        use Decimal as D;
        match (self, other) {
            (D::NaN, _) | (_, D::NaN) => D::NaN,
            (D::Infinite { negative: a }, D::Infinite { negative: b }) if a != b => D::NaN,
            (D::Infinite { .. }, _) => self,
            (_, D::Infinite { .. }) => other,
            (
                D::Finite { negative: an, coefficient: ac, exponent: ae },
                D::Finite { negative: bn, coefficient: bc, exponent: be },
            ) => {
                let exponent = ae.min(be);
                let a = BigUint::from(ac) * ten_to((ae - exponent) as u64);
                let b = BigUint::from(bc) * ten_to((be - exponent) as u64);
                let (negative, sum) = match (an == bn, a.cmp(&b)) {
                    (true, _) => (an, a + b),
                    (false, Ordering::Equal) => (false, BigUint::ZERO),
                    (false, Ordering::Greater) => (an, a - b),
                    (false, Ordering::Less) => (bn, b - a),
                };
                D::finish(negative, sum, exponent.into(), exponent.into(), false)
            }
        }
    }

    pub(crate) fn subtract(self, other: Decimal) -> Decimal {
        self.add(other.negated())
    }

    pub(crate) fn multiply(self, other: Decimal) -> Decimal {
        use Decimal as D;
        let negative = self.is_negative() != other.is_negative();
        match (self, other) {
            (D::NaN, _) | (_, D::NaN) => D::NaN,
            (D::Infinite { .. }, _) if other.is_zero() => D::NaN,
            (_, D::Infinite { .. }) if self.is_zero() => D::NaN,
            (D::Infinite { .. }, _) | (_, D::Infinite { .. }) => D::Infinite { negative },
            (
                D::Finite { coefficient: a, exponent: ae, .. },
                D::Finite { coefficient: b, exponent: be, .. },
            ) => {
                let exponent = i64::from(ae) + i64::from(be);
                D::finish(negative, BigUint::from(a) * BigUint::from(b), exponent, exponent, false)
            }
        }
    }

    pub(crate) fn divide(self, other: Decimal) -> Decimal {
        use Decimal as D;
        let negative = self.is_negative() != other.is_negative();
        match (self, other) {
            (D::NaN, _) | (_, D::NaN) | (D::Infinite { .. }, D::Infinite { .. }) => D::NaN,
            (D::Infinite { .. }, _) => D::Infinite { negative },
            (_, D::Infinite { .. }) => D::Finite { negative, coefficient: 0, exponent: EXPONENT_MIN },
            (
                D::Finite { coefficient: a, exponent: ae, .. },
                D::Finite { coefficient: b, exponent: be, .. },
            ) => {
                if b == 0 {
                    return if a == 0 { D::NaN } else { D::Infinite { negative } };
                }
                let preferred = i64::from(ae) - i64::from(be);
                // Enough zeros that the quotient has more digits than will be kept.
                let zeros = 2 * DIGITS + 2;
                let numerator = BigUint::from(a) * ten_to(zeros);
                let denominator = BigUint::from(b);
                let quotient = &numerator / &denominator;
                let sticky = &quotient * &denominator != numerator;
                D::finish(negative, quotient, preferred - zeros as i64, preferred, sticky)
            }
        }
    }

    /// The remainder of a division that truncates; it has the sign of `self`.
    pub(crate) fn remainder(self, other: Decimal) -> Decimal {
        use Decimal as D;
        match (self, other) {
            (D::NaN, _) | (_, D::NaN) | (D::Infinite { .. }, _) => D::NaN,
            (_, D::Infinite { .. }) => self,
            (
                D::Finite { negative, coefficient: a, exponent: ae },
                D::Finite { coefficient: b, exponent: be, .. },
            ) => {
                if b == 0 {
                    return D::NaN;
                }
                let exponent = ae.min(be);
                let a = BigUint::from(a) * ten_to((ae - exponent) as u64);
                let b = BigUint::from(b) * ten_to((be - exponent) as u64);
                D::finish(negative, a % b, exponent.into(), exponent.into(), false)
            }
        }
    }

    /// The square root of something that is not negative.
    pub(crate) fn sqrt(self) -> Decimal {
        match self {
            Decimal::Finite { negative, coefficient, exponent } if coefficient == 0 => {
                Decimal::Finite { negative, coefficient, exponent: exponent.div_euclid(2) }
            }
            Decimal::Finite { negative: false, coefficient, exponent } => {
                let preferred = i64::from(exponent.div_euclid(2));
                let odd = exponent.rem_euclid(2) as u64;
                let zeros = 2 * DIGITS + 2;
                let value = BigUint::from(coefficient) * ten_to(2 * zeros + odd);
                let root = value.sqrt();
                let sticky = &root * &root != value;
                Decimal::finish(false, root, preferred - zeros as i64, preferred, sticky)
            }
            Decimal::Infinite { negative: false } => self,
            _ => Decimal::NaN,
        }
    }

    /// Rounds to a number of places after the point (before it, if negative).
    pub(crate) fn round_to(self, places: i32, rounding: Rounding) -> Decimal {
        match self {
            Decimal::Finite { negative, coefficient, exponent } if exponent < -places => {
                let drop = (-places - exponent) as u64;
                let shift = drop.min(80);
                let rounded =
                    divide_rounded(&BigUint::from(coefficient), &ten_to(shift), rounding, negative, false);
                Decimal::finish(negative, rounded, (-places).into(), (-places).into(), false)
            }
            Decimal::Finite { negative, coefficient: 0, .. } => {
                Decimal::Finite { negative, coefficient: 0, exponent: -places }
            }
            // As many zeros are written as there is room for.
            Decimal::Finite { negative, coefficient, exponent } if exponent > -places => {
                Decimal::finish(negative, coefficient.into(), exponent.into(), (-places).into(), false)
            }
            other => other,
        }
    }

    /// The same value with all 34 digits, as functions that approximate give it.
    pub(crate) fn padded(self) -> Decimal {
        match self {
            Decimal::Finite { negative, coefficient, exponent } if coefficient > 0 => {
                Decimal::finish(negative, coefficient.into(), exponent.into(), EXPONENT_MIN.into(), false)
            }
            Decimal::Finite { negative, coefficient, .. } => {
                Decimal::Finite { negative, coefficient, exponent: EXPONENT_MIN }
            }
            other => other,
        }
    }

    /// The whole number this is; none if it has a fraction or does not fit.
    pub(crate) fn to_i64_exact(self) -> Option<i64> {
        let whole = self.to_i64_truncated()?;
        (self.subtract(Decimal::from_i64(whole)).is_zero()).then_some(whole)
    }

    /// The whole part, if it fits.
    pub(crate) fn to_i64_truncated(self) -> Option<i64> {
        match self.round_to(0, Rounding::Down) {
            Decimal::Finite { negative, coefficient, exponent } => {
                if coefficient == 0 {
                    return Some(0);
                }
                if exponent > 19 {
                    return None;
                }
                let magnitude = coefficient.checked_mul(10_u128.pow(exponent as u32))?;
                let signed = i128::try_from(magnitude).ok()?;
                i64::try_from(if negative { -signed } else { signed }).ok()
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(text: &str) -> Decimal {
        Decimal::parse(text).unwrap()
    }

    #[track_caller]
    fn check(result: Decimal, expected: &str) {
        assert_eq!(result.to_bson().to_string(), expected);
    }

    #[test]
    fn arithmetic_keeps_the_preferred_exponent() {
        check(decimal("1.10").add(decimal("2.2")), "3.30");
        check(decimal("1").divide(decimal("3")), "0.3333333333333333333333333333333333");
        check(decimal("10.00").divide(decimal("2")), "5.00");
        check(decimal("1.10").multiply(decimal("3.0")), "3.300");
        check(decimal("5.5").remainder(decimal("2")), "1.5");
        check(decimal("2").sqrt(), "1.414213562373095048801688724209698");
        check(decimal("4").sqrt(), "2");
        check(decimal("9E6144").multiply(decimal("10")), "Infinity");
        check(decimal("1E-6176").divide(decimal("10")), "0E-6176");
        check(decimal("2.5").round_to(0, Rounding::HalfEven), "2");
        check(decimal("-2.5").round_to(0, Rounding::Floor), "-3");
        check(Decimal::from_f64(0.1), "0.100000000000000");
        check(Decimal::exactly(0.1), "0.1000000000000000055511151231257827");
        check(Decimal::exactly(-2.5), "-2.5");
        check(Decimal::exactly(300.0), "300");
        check(decimal("1E+34").add(decimal("1")), "1.000000000000000000000000000000000E+34");
    }
}
