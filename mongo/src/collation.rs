//! Collation: strings compared as people of a language do, instead of by bytes.
//!
//! The hook through which a collation enters every comparison: a [`Collation`] compares two strings, and gives the key of
//! one, by which those that it takes for equal are found in an index. Strings inside objects and arrays are compared by it
//! too; field names never are.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use bson::{Document, RawArrayBuf, RawBson, RawDocumentBuf};
use mayfly_value::Order;
use mayfly_value::order;

use crate::values::{Ref, fields, items};

/// The order of strings.
pub trait Strings: Send + Sync {
    /// Compares two. A total order of classes of equal strings.
    fn compare(&self, a: &str, b: &str) -> Ordering;

    /// A text that compares to those of other strings, by its bytes, as the strings do.
    fn key(&self, text: &str) -> String;
}

/// How strings compare.
#[derive(Clone)]
pub struct Collation {
    /// All that is said about it, so that the same rules are the same document.
    spec: Document,
    strings: Arc<dyn Strings>,
}

impl fmt::Debug for Collation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Collation")
    }
}

impl Collation {
    /// The collation that a document describes, by its order of strings.
    pub fn new(spec: Document, strings: Arc<dyn Strings>) -> Collation {
        Collation { spec, strings }
    }

    /// The description, with everything that goes without saying.
    pub fn spec(&self) -> &Document {
        &self.spec
    }

    /// A value with the keys of its strings instead of them, which compares as the value does by this collation. Nothing
    /// if there are no strings in it.
    pub fn fold(&self, value: Ref<'_>) -> Option<RawBson> {
        self.fold_at(value, 0)
    }

    fn fold_at(&self, value: Ref<'_>, depth: usize) -> Option<RawBson> {
        // Deeper values are compared as they are, see `compare_at`.
        if depth > mayfly_value::foreign::DEPTH_MAX {
            return None;
        }
        match value {
            Ref::String(text) | Ref::Symbol(text) => Some(RawBson::String(self.strings.key(text))),
            Ref::Array(list) => {
                let mut folded = RawArrayBuf::new();
                for item in items(list) {
                    folded.push(self.fold_at(item, depth + 1).unwrap_or_else(|| RawBson::from(item)));
                }
                Some(RawBson::Array(folded))
            }
            Ref::Document(object) => {
                let mut folded = RawDocumentBuf::new();
                for (name, item) in fields(object) {
                    let item = self.fold_at(item, depth + 1).unwrap_or_else(|| RawBson::from(item));
                    folded.append(bson::raw::CString::try_from(name).ok()?, item);
                }
                Some(RawBson::Document(folded))
            }
            _ => None,
        }
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
            (V::String(a) | V::Symbol(a), V::String(b) | V::Symbol(b)) => self.strings.compare(a, b),
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
