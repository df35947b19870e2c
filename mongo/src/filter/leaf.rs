//! Predicates about one value: comparisons, membership, patterns, types, sizes, items, bits and places.

use std::cmp::Ordering;

use mayfly_value::Order;
use mayfly_value::order::{compare, type_rank};

use super::bits::BitTest;
use super::{Details, Node};
use crate::context::Context;
use crate::decimal::Decimal;
use crate::geo::{NearQuery, Region};
use crate::number::Number;
use crate::pattern::Pattern;
use crate::values::{Ref, Value, array_as_object, items, type_code};

/// The comparisons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
}

/// A question about one value.
#[derive(Debug, Clone)]
pub(crate) enum Predicate {
    Compare(Comparison, Value),
    In(Membership),
    Pattern(Pattern),
    Exists,
    /// One of these types, by number.
    Type(Vec<i32>),
    Modulo {
        divisor: i64,
        remainder: i64,
    },
    Size(i64),
    /// Some item that is an object passes.
    ItemObject(Box<Node>),
    /// Some item passes.
    ItemValue(Box<Node>),
    Bits(BitTest),
    Within(Region),
    Intersects(Region),
    Near(NearQuery),
}

/// The operands of `$in`.
#[derive(Debug, Clone)]
pub(crate) struct Membership {
    /// In MongoDB's order.
    pub(crate) values: Vec<Value>,
    pub(crate) patterns: Vec<Pattern>,
}

impl Comparison {
    fn allows(self, ordering: Ordering) -> bool {
        match self {
            Comparison::Equal => ordering == Ordering::Equal,
            Comparison::Greater => ordering == Ordering::Greater,
            Comparison::GreaterOrEqual => ordering != Ordering::Less,
            Comparison::Less => ordering == Ordering::Less,
            Comparison::LessOrEqual => ordering != Ordering::Greater,
        }
    }

    fn allows_equal(self) -> bool {
        self.allows(Ordering::Equal)
    }

    /// Compares within a type class; across classes only null with missing, and the two extremes.
    fn holds(self, value: Option<Ref<'_>>, operand: Ref<'_>, context: &Context<'_>) -> bool {
        if matches!(operand, Ref::MinKey | Ref::MaxKey) {
            let same = value.is_some_and(|value| type_code(value) == type_code(operand));
            let ordering = match operand {
                _ if same => Ordering::Equal,
                Ref::MinKey => Ordering::Greater,
                _ => Ordering::Less,
            };
            return self.allows(ordering);
        }
        let Some(value) = value else {
            return self.allows_equal() && matches!(operand, Ref::Null);
        };
        if type_rank(Order::Mongo, value) != type_rank(Order::Mongo, operand) {
            return false;
        }
        let is_nan = |value| Number::of(value).is_some_and(Number::is_nan);
        match (is_nan(value), is_nan(operand)) {
            (false, false) => self.allows(context.compare(value, operand)),
            (true, true) => self.allows_equal(),
            _ => false,
        }
    }
}

impl Membership {
    pub(crate) fn new(mut values: Vec<Value>, patterns: Vec<Pattern>) -> Membership {
        values.sort_by(|a, b| compare(Order::Mongo, a.as_raw_bson_ref(), b.as_raw_bson_ref()));
        Membership { values, patterns }
    }

    fn contains(&self, value: Option<Ref<'_>>, context: &Context<'_>, details: &mut Details) -> bool {
        let wanted = value.unwrap_or(Ref::Null);
        let listed = if context.collation.is_some() {
            self.values.iter().any(|listed| context.equal(listed.as_raw_bson_ref(), wanted))
        } else {
            let found = self
                .values
                .binary_search_by(|listed| compare(Order::Mongo, listed.as_raw_bson_ref(), wanted));
            found.is_ok()
        };
        listed || self.patterns.iter().any(|pattern| matches_pattern(pattern, value, details))
    }
}

fn matches_pattern(pattern: &Pattern, value: Option<Ref<'_>>, details: &mut Details) -> bool {
    match value {
        Some(Ref::String(text) | Ref::Symbol(text)) => pattern.is_match(text).unwrap_or_else(|error| {
            details.error.get_or_insert(error);
            false
        }),
        Some(value) => pattern.is_same(value),
        None => false,
    }
}

fn modulo(value: Ref<'_>, divisor: i64, remainder: i64) -> bool {
    let whole = match value {
        Ref::Int32(value) => Some(i64::from(value)),
        Ref::Int64(value) => Some(value),
        Ref::Double(value) if value.is_finite() && value.abs() < 9.223_372_036_854_775e18 => {
            Some(value as i64)
        }
        Ref::Decimal128(value) => Decimal::from_bson(value).to_i64_truncated(),
        _ => None,
    };
    whole.is_some_and(|whole| whole.wrapping_rem(divisor) == remainder)
}

impl Predicate {
    /// Asked about whole arrays and not about their items.
    pub(crate) fn wants_whole_arrays(&self) -> bool {
        matches!(
            self,
            Predicate::Size(_)
                | Predicate::ItemObject(_)
                | Predicate::ItemValue(_)
                | Predicate::Within(_)
                | Predicate::Intersects(_)
                | Predicate::Near(_)
        )
    }

    pub(crate) fn matches(
        &self,
        value: Option<Ref<'_>>,
        context: &Context<'_>,
        details: &mut Details,
    ) -> bool {
        match (self, value) {
            (Predicate::Compare(comparison, operand), _) => {
                comparison.holds(value, operand.as_raw_bson_ref(), context)
            }
            (Predicate::In(membership), _) => membership.contains(value, context, details),
            (Predicate::Pattern(pattern), _) => matches_pattern(pattern, value, details),
            (Predicate::Exists, _) => value.is_some(),
            (_, None) => false,
            (Predicate::Type(types), Some(value)) => types.contains(&type_code(value)),
            (Predicate::Modulo { divisor, remainder }, Some(value)) => modulo(value, *divisor, *remainder),
            (Predicate::Size(size), Some(Ref::Array(array))) => items(array).count() as i64 == *size,
            (Predicate::ItemObject(node), Some(Ref::Array(array))) => {
                let mut passes = |item| match item {
                    Ref::Document(object) => node.matches(object, context, details),
                    Ref::Array(inner) => {
                        array_as_object(inner).is_some_and(|object| node.matches(object, context, details))
                    }
                    _ => false,
                };
                let found = items(array).position(&mut passes);
                if found.is_some() {
                    details.position = found;
                }
                found.is_some()
            }
            (Predicate::ItemValue(node), Some(Ref::Array(array))) => {
                let found = items(array).position(|item| node.matches_value(item, context, details));
                if found.is_some() {
                    details.position = found;
                }
                found.is_some()
            }
            (Predicate::Bits(test), Some(value)) => test.holds(value),
            (Predicate::Within(region), Some(value)) => region.contains(value),
            (Predicate::Intersects(region), Some(value)) => region.intersects(value),
            (Predicate::Near(near), Some(value)) => near.reaches(value),
            (Predicate::Size(_) | Predicate::ItemObject(_) | Predicate::ItemValue(_), Some(_)) => false,
        }
    }
}
