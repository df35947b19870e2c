//! Numbers of the four BSON types in calculations: which type the result has, and what happens on overflow.
//!
//! A decimal makes everything decimal, a double everything double. Integers stay integers and widen from 32 to
//! 64 bits when they must; past 64 bits an expression gives a double, an update is refused.

use crate::decimal::Decimal;
use crate::values::{Ref, Value};

/// A number of any type.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Number {
    Int(i32),
    Long(i64),
    Double(f64),
    Decimal(Decimal),
}

impl Number {
    pub(crate) fn of(value: Ref<'_>) -> Option<Number> {
        match value {
            Ref::Int32(value) => Some(Number::Int(value)),
            Ref::Int64(value) => Some(Number::Long(value)),
            Ref::Double(value) => Some(Number::Double(value)),
            Ref::Decimal128(value) => Some(Number::Decimal(Decimal::from_bson(value))),
            _ => None,
        }
    }

    pub(crate) fn value(self) -> Value {
        match self {
            Number::Int(value) => Value::Int32(value),
            Number::Long(value) => Value::Int64(value),
            Number::Double(value) => Value::Double(value),
            Number::Decimal(value) => Value::Decimal128(value.to_bson()),
        }
    }

    pub(crate) fn to_f64(self) -> f64 {
        match self {
            Number::Int(value) => value.into(),
            Number::Long(value) => value as f64,
            Number::Double(value) => value,
            Number::Decimal(value) => value.to_f64(),
        }
    }

    pub(crate) fn to_decimal(self) -> Decimal {
        match self {
            Number::Int(value) => Decimal::from_i64(value.into()),
            Number::Long(value) => Decimal::from_i64(value),
            Number::Double(value) => Decimal::from_f64(value),
            Number::Decimal(value) => value,
        }
    }

    /// The integer this is, if its type is an integer type.
    pub(crate) fn as_long(self) -> Option<i64> {
        match self {
            Number::Int(value) => Some(value.into()),
            Number::Long(value) => Some(value),
            Number::Double(_) | Number::Decimal(_) => None,
        }
    }

    pub(crate) fn is_nan(self) -> bool {
        match self {
            Number::Double(value) => value.is_nan(),
            Number::Decimal(value) => value.is_nan(),
            _ => false,
        }
    }

    pub(crate) fn is_zero(self) -> bool {
        match self {
            Number::Int(value) => value == 0,
            Number::Long(value) => value == 0,
            Number::Double(value) => value == 0.0,
            Number::Decimal(value) => value.is_zero(),
        }
    }

    /// Combines two numbers: integers by `int` (an overflow becomes a double), others by their type's operation.
    fn combine(
        self,
        other: Number,
        int: fn(i64, i64) -> Option<i64>,
        double: fn(f64, f64) -> f64,
        decimal: fn(Decimal, Decimal) -> Decimal,
    ) -> Number {
        match (self, other) {
            (Number::Decimal(_), _) | (_, Number::Decimal(_)) => {
                Number::Decimal(decimal(self.to_decimal(), other.to_decimal()))
            }
            (Number::Double(_), _) | (_, Number::Double(_)) => {
                Number::Double(double(self.to_f64(), other.to_f64()))
            }
            _ => {
                let (a, b) = (self.as_long().unwrap_or(0), other.as_long().unwrap_or(0));
                let long = matches!(self, Number::Long(_)) || matches!(other, Number::Long(_));
                match int(a, b) {
                    Some(result) if long => Number::Long(result),
                    Some(result) => i32::try_from(result).map_or(Number::Long(result), Number::Int),
                    None => Number::Double(double(self.to_f64(), other.to_f64())),
                }
            }
        }
    }

    pub(crate) fn add(self, other: Number) -> Number {
        self.combine(other, i64::checked_add, |a, b| a + b, Decimal::add)
    }

    pub(crate) fn subtract(self, other: Number) -> Number {
        self.combine(other, i64::checked_sub, |a, b| a - b, Decimal::subtract)
    }

    pub(crate) fn multiply(self, other: Number) -> Number {
        self.combine(other, i64::checked_mul, |a, b| a * b, Decimal::multiply)
    }

    /// The quotient, which is never an integer.
    pub(crate) fn divide(self, other: Number) -> Number {
        match (self, other) {
            (Number::Decimal(_), _) | (_, Number::Decimal(_)) => {
                Number::Decimal(self.to_decimal().divide(other.to_decimal()))
            }
            _ => Number::Double(self.to_f64() / other.to_f64()),
        }
    }

    /// An int64 as an int32 again, if it fits and the other number is one.
    pub(crate) fn narrowed(self, other: Number) -> Number {
        match (self, other) {
            (Number::Long(value), Number::Int(_)) => i32::try_from(value).map_or(self, Number::Int),
            _ => self,
        }
    }

    /// The sum for an update: none if integers overflow.
    pub(crate) fn checked_add(self, other: Number) -> Option<Number> {
        self.exact(other, self.add(other))
    }

    /// The product for an update: none if integers overflow.
    pub(crate) fn checked_multiply(self, other: Number) -> Option<Number> {
        self.exact(other, self.multiply(other))
    }

    fn exact(self, other: Number, result: Number) -> Option<Number> {
        let integers = self.as_long().is_some() && other.as_long().is_some();
        (!integers || result.as_long().is_some()).then_some(result)
    }
}

/// A sum that does not lose the small parts: doubles are added with compensation, integers exactly.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sum {
    long: i128,
    wide: bool,
    double: Option<(f64, f64)>,
    decimal: Option<Decimal>,
    pub(crate) count: i64,
}

impl Sum {
    pub(crate) fn add(&mut self, number: Number) {
        self.count += 1;
        match number {
            Number::Int(value) => self.long += i128::from(value),
            Number::Long(value) => {
                self.long += i128::from(value);
                self.wide = true;
            }
            Number::Double(value) => {
                let (sum, lost) = self.double.unwrap_or((0.0, 0.0));
                let next = sum + value;
                let error =
                    if sum.abs() >= value.abs() { (sum - next) + value } else { (value - next) + sum };
                self.double = Some((next, if next.is_finite() { lost + error } else { 0.0 }));
            }
            Number::Decimal(value) => self.decimal = Some(self.decimal.unwrap_or(Decimal::ZERO).add(value)),
        }
    }

    fn integers(&self) -> Number {
        match i64::try_from(self.long) {
            Ok(value) if self.wide => Number::Long(value),
            Ok(value) => i32::try_from(value).map_or(Number::Long(value), Number::Int),
            Err(_) => Number::Double(self.long as f64),
        }
    }

    /// The sum of everything that was added: the integer zero if nothing was.
    pub(crate) fn total(&self) -> Number {
        match (self.double, self.decimal) {
            (None, None) => self.integers(),
            (Some(_), None) => Number::Double(self.double_total()),
            (_, Some(decimal)) => {
                let rest = Decimal::parse(&self.long.to_string()).unwrap_or(Decimal::NaN);
                let rest = self
                    .double
                    .map_or(rest, |(sum, lost)| rest.add(Decimal::exactly(sum)).add(Decimal::exactly(lost)));
                Number::Decimal(if self.long == 0 && self.double.is_none() {
                    decimal
                } else {
                    decimal.add(rest)
                })
            }
        }
    }

    fn double_total(&self) -> f64 {
        let (sum, lost) = self.double.unwrap_or((0.0, 0.0));
        // Added with its own compensation, for an integer may be far larger than the doubles.
        let long = self.long as f64;
        let next = sum + long;
        let error = if sum.abs() >= long.abs() { (sum - next) + long } else { (long - next) + sum };
        if next.is_finite() { next + (lost + error) } else { next }
    }

    /// The mean; none of nothing.
    pub(crate) fn mean(&self) -> Option<Number> {
        if self.count == 0 {
            return None;
        }
        Some(match self.decimal {
            Some(_) => Number::Decimal(self.total().to_decimal().divide(Decimal::from_i64(self.count))),
            None => Number::Double(self.double_total() / self.count as f64),
        })
    }
}
