//! `$bitsAllSet`, `$bitsAllClear`, `$bitsAnySet`, `$bitsAnyClear`: numbers and binary data looked at bit by bit.

use crate::error::{BAD_VALUE, FAILED_TO_PARSE, Result, bail};
use crate::number::Number;
use crate::values::{Ref, as_integer, items};

/// What the bits have to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BitRule {
    AllSet,
    AllClear,
    AnySet,
    AnyClear,
}

/// A rule and the positions it speaks of.
#[derive(Debug, Clone)]
pub(crate) struct BitTest {
    rule: BitRule,
    positions: Vec<u32>,
}

impl BitTest {
    pub(crate) fn parse(rule: BitRule, operand: Ref<'_>) -> Result<BitTest> {
        let mut positions = Vec::new();
        match operand {
            Ref::Array(array) => {
                for item in items(array) {
                    match as_integer(item) {
                        Some(position) if position >= 0 => {
                            positions.push(u32::try_from(position).unwrap_or(u32::MAX));
                        }
                        Some(_) => bail!(BAD_VALUE, "bit positions must be >= 0"),
                        None => bail!(BAD_VALUE, "bit positions must be an integer"),
                    }
                }
            }
            Ref::Binary(binary) => {
                let bits = binary.bytes.iter().zip(0_u32..).flat_map(|(byte, at)| {
                    (0..8).filter(move |bit| byte >> bit & 1 == 1).map(move |bit| at * 8 + bit)
                });
                positions.extend(bits);
            }
            _ if Number::of(operand).is_some() => match as_integer(operand) {
                Some(mask) if mask >= 0 => positions.extend((0..63).filter(|bit| mask >> bit & 1 == 1)),
                Some(_) => bail!(FAILED_TO_PARSE, "Expected a non-negative number"),
                None => bail!(FAILED_TO_PARSE, "Expected an integer"),
            },
            _ => bail!(BAD_VALUE, "takes an Array, a number, or a BinData but received a different type"),
        }
        Ok(BitTest { rule, positions })
    }

    pub(crate) fn holds(&self, value: Ref<'_>) -> bool {
        let bit: Box<dyn Fn(u32) -> bool> = match value {
            Ref::Binary(binary) => {
                let bytes = binary.bytes.to_vec();
                Box::new(move |at| bytes.get((at / 8) as usize).is_some_and(|byte| byte >> (at % 8) & 1 == 1))
            }
            _ => match as_integer(value) {
                // The sign goes on for ever.
                Some(number) => Box::new(move |at| number >> at.min(63) & 1 == 1),
                None => return false,
            },
        };
        let mut positions = self.positions.iter();
        match self.rule {
            BitRule::AllSet => positions.all(|at| bit(*at)),
            BitRule::AllClear => positions.all(|at| !bit(*at)),
            BitRule::AnySet => positions.any(|at| bit(*at)),
            BitRule::AnyClear => positions.any(|at| !bit(*at)),
        }
    }
}
