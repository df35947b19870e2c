//! Exponentials and logarithms of decimals, by series over exact integers scaled by a power of ten.
//!
//! 120 digits are carried and 34 kept: near 1 a logarithm begins 33 digits after the point, and a power of a large number
//! needs as many more digits of its logarithm as it has before the point. Sines and their relatives are not here: an expression that asks for one
//! of a decimal is refused.

use num_bigint::BigInt;

use super::{BigUint, Decimal, ten_to};

/// Digits carried after the point.
const SCALE: u64 = 120;

fn one() -> BigInt {
    BigInt::from(ten_to(SCALE))
}

/// A finite decimal as an integer of `SCALE` places; what is smaller than that is cut off.
fn scaled(value: Decimal) -> Option<BigInt> {
    let Decimal::Finite { negative, coefficient, exponent } = value else { return None };
    let places = SCALE as i64 + i64::from(exponent);
    let magnitude = if places >= 0 {
        BigUint::from(coefficient) * ten_to(places as u64)
    } else {
        BigUint::from(coefficient) / ten_to((-places).min(200) as u64)
    };
    let magnitude = BigInt::from(magnitude);
    Some(if negative { -magnitude } else { magnitude })
}

fn unscaled(value: &BigInt, power_of_ten: i64) -> Decimal {
    let negative = value.sign() == num_bigint::Sign::Minus;
    let exponent = power_of_ten - SCALE as i64;
    Decimal::finish(negative, value.magnitude().clone(), exponent, exponent, true)
}

/// The natural logarithm of a scaled number between about 1 and 10.
fn ln_scaled(value: &BigInt) -> BigInt {
    // Square roots bring the argument near 1, where the series of atanh is short.
    let (one, mut argument, mut doublings) = (one(), value.clone(), 0_u32);
    while (&argument - &one).magnitude() > &ten_to(SCALE - 1) {
        argument = (&argument * &one).sqrt();
        doublings += 1;
    }
    let z = (&argument - &one) * &one / (&argument + &one);
    let square = &z * &z / &one;
    let (mut term, mut sum, mut n) = (z.clone(), z, 3_u32);
    while term != BigInt::ZERO {
        term = term * &square / &one;
        sum += &term / n;
        n += 2;
    }
    sum * 2_u32 * BigInt::from(2_u32).pow(doublings)
}

fn ln_ten() -> BigInt {
    ln_scaled(&(one() * 10_u32))
}

/// Beyond this power of e there is no decimal, large or small.
const EXPONENT_MAX: f64 = 15_000.0;

/// e to a scaled power.
fn exp_of(argument: &BigInt) -> Decimal {
    let (one, ln_ten) = (one(), ln_ten());
    // e^x = 10^k · e^r with |r| below ln 10.
    let tens = argument / &ln_ten;
    let rest = argument - &tens * &ln_ten;
    let (mut term, mut sum, mut n) = (one.clone(), one.clone(), 1_u32);
    while term != BigInt::ZERO {
        term = term * &rest / &one / n;
        sum += &term;
        n += 1;
    }
    unscaled(&sum, i64::try_from(tens).unwrap_or(0))
}

impl Decimal {
    /// The natural logarithm of a positive number.
    pub(crate) fn ln(self) -> Decimal {
        match self {
            Decimal::Infinite { negative: false } => self,
            Decimal::Finite { coefficient: 1, exponent: 0, negative: false } => Decimal::ZERO,
            _ => self.scaled_ln().map_or(Decimal::NaN, |ln| unscaled(&ln, 0)),
        }
    }

    /// The natural logarithm of a finite number above zero, with all digits that are carried.
    fn scaled_ln(self) -> Option<BigInt> {
        let Decimal::Finite { negative: false, coefficient: coefficient @ 1.., exponent } = self else {
            return None;
        };
        let shift = coefficient.to_string().len() as i32 - 1;
        let mantissa = scaled(Decimal::Finite { negative: false, coefficient, exponent: -shift })?;
        Some(ln_scaled(&mantissa) + ln_ten() * (exponent + shift))
    }

    /// The logarithm to base ten of a positive number; exact for powers of ten.
    pub(crate) fn log10(self) -> Decimal {
        if let Decimal::Finite { negative: false, coefficient, exponent } = self {
            let text = coefficient.to_string();
            if text.starts_with('1') && text.bytes().skip(1).all(|digit| digit == b'0') {
                return Decimal::from_i64(i64::from(exponent) + text.len() as i64 - 1);
            }
        }
        match self.scaled_ln() {
            Some(ln) => unscaled(&(ln * one() / ln_ten()), 0),
            None => self.ln(),
        }
    }

    /// e to this power.
    pub(crate) fn exp(self) -> Decimal {
        match self {
            Decimal::NaN => Decimal::NaN,
            Decimal::Infinite { negative: true } => Decimal::ZERO,
            Decimal::Infinite { negative: false } => self,
            Decimal::Finite { coefficient: 0, .. } => Decimal::from_i64(1),
            Decimal::Finite { negative, .. } => {
                if self.abs().to_f64() > EXPONENT_MAX {
                    return if negative { Decimal::ZERO } else { Decimal::Infinite { negative: false } };
                }
                scaled(self).map_or(Decimal::NaN, |argument| exp_of(&argument))
            }
        }
    }

    /// This to a power: exact for small whole powers, otherwise by logarithms.
    pub(crate) fn pow(self, power: Decimal) -> Decimal {
        if let Some(whole) = power.to_i64_exact().filter(|whole| whole.unsigned_abs() <= 6200) {
            let mut result = Decimal::from_i64(1);
            for _ in 0..whole.unsigned_abs() {
                result = result.multiply(self);
            }
            return if whole < 0 { Decimal::from_i64(1).divide(result) } else { result }.padded();
        }
        if power == Decimal::parse("0.5").unwrap_or(Decimal::NaN) {
            return self.sqrt();
        }
        if self.is_zero() {
            return if power.is_negative() { Decimal::Infinite { negative: false } } else { Decimal::ZERO };
        }
        let exponent = self.ln().multiply(power);
        let is_small = exponent.abs().to_f64() <= EXPONENT_MAX;
        match (self.scaled_ln(), scaled(power)) {
            // What the logarithm loses by being rounded, the power would lose many times over.
            (Some(ln), Some(power)) if is_small => exp_of(&(ln * power / one())),
            _ => exponent.exp(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_have_34_digits() {
        let two = Decimal::from_i64(2);
        assert_eq!(two.ln().to_bson().to_string(), "0.6931471805599453094172321214581766");
        assert_eq!(Decimal::from_i64(1).exp().to_bson().to_string(), "2.718281828459045235360287471352662");
        assert_eq!(Decimal::from_i64(1000).log10().to_bson().to_string(), "3");
    }
}
