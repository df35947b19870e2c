//! Collation: strings compared as people of a language do, instead of by bytes.
//!
//! The hook through which a collation enters every comparison: a [`Collation`] holds a function that compares
//! two strings. Strings inside objects and arrays compare by it too; field names never do.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use bson::RawBson;
use mayfly_value::Order;
use mayfly_value::order;

use crate::values::{Ref, fields, items};

/// Compares two strings.
pub type CompareStrings = Arc<dyn Fn(&str, &str) -> Ordering + Send + Sync>;

/// How strings compare.
#[derive(Clone)]
pub struct Collation {
    compare: CompareStrings,
}

impl fmt::Debug for Collation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Collation")
    }
}

impl Collation {
    /// A collation by a comparison of strings, which must be a total order of classes of equal strings.
    pub fn new(compare: CompareStrings) -> Collation {
        Collation { compare }
    }

    /// Compares two values in MongoDB's order, strings by this collation.
    pub fn compare(&self, a: Ref<'_>, b: Ref<'_>) -> Ordering {
        self.compare_at(a, b, 0)
    }

    fn compare_at(&self, a: Ref<'_>, b: Ref<'_>, depth: usize) -> Ordering {
        use Ref as V;
        if depth > mayfly_value::foreign::DEPTH_MAX {
            return order::compare(Order::Mongo, a, b);
        }
        match (a, b) {
            (V::String(a) | V::Symbol(a), V::String(b) | V::Symbol(b)) => (self.compare)(a, b),
            (V::Array(a), V::Array(b)) => {
                sequences(items(a), items(b), |a, b| self.compare_at(a, b, depth + 1))
            }
            (V::Document(a), V::Document(b)) => sequences(fields(a), fields(b), |a, b| {
                let class = |value| order::type_rank(Order::Mongo, value);
                let by_class = class(a.1).cmp(&class(b.1));
                by_class.then_with(|| a.0.cmp(b.0)).then_with(|| self.compare_at(a.1, b.1, depth + 1))
            }),
            _ => order::compare(Order::Mongo, a, b),
        }
    }
}

/// Compares item by item; the shorter one of two that agree comes first.
fn sequences<T>(
    mut a: impl Iterator<Item = T>,
    mut b: impl Iterator<Item = T>,
    compare: impl Fn(T, T) -> Ordering,
) -> Ordering {
    loop {
        match (a.next(), b.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
            (Some(a), Some(b)) => match compare(a, b) {
                Ordering::Equal => {}
                different => return different,
            },
        }
    }
}

/// A value that sorts by MongoDB's order, so that it can be a key of a map.
#[derive(Debug, Clone)]
pub(crate) struct Ordered<'a>(pub(crate) RawBson, pub(crate) Option<&'a Collation>);

impl PartialEq for Ordered<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Ordered<'_> {}

impl PartialOrd for Ordered<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ordered<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let (a, b) = (self.0.as_raw_bson_ref(), other.0.as_raw_bson_ref());
        match self.1 {
            Some(collation) => collation.compare(a, b),
            None => order::compare(Order::Mongo, a, b),
        }
    }
}
