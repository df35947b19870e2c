//! The order of values: what sorts before what, in Cosmos and in MongoDB.
//!
//! Each protocol has one table of type classes, lowest first; values of different classes compare by it,
//! values of one class by their content. `keycode.rs` encodes the same order into bytes and uses the same
//! tables, so a change here is a change of the stored format.
//!
//! - Cosmos: numbers as doubles; objects by their properties sorted by name, so that two objects with the
//!   same properties are equal in any order of writing. BSON types that JSON lacks come after all others.
//! - Mongo: numbers by exact value; objects field by field as stored: type class, then name, then value.
//! - Both: strings by UTF-8 bytes, arrays item by item, a shorter prefix first.
//!
//! Holds: `compare` is a total order, whatever bytes a document consists of. Below `DEPTH_MAX` containers
//! compare by their bytes; a malformed container compares as if it ended where reading fails.

#[cfg(test)]
mod tests;

use std::cmp::Ordering;

use bson::{RawArray, RawBsonRef, RawDocument};

use crate::foreign::{DEPTH_MAX, db_pointer_parts};
use crate::number::{Number, compare_doubles, compare_exact};

/// Whose order is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Order {
    /// The order of `ORDER BY` and of indexes in the Cosmos NoSQL API.
    Cosmos,
    /// The BSON comparison order of MongoDB.
    Mongo,
}

/// Values that compare by content; two values of different classes compare by the class alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    Undefined,
    Null,
    Bool,
    Number,
    String,
    Array,
    Object,
    MinKey,
    Binary,
    ObjectId,
    DateTime,
    Timestamp,
    Regex,
    DbPointer,
    Code,
    CodeWithScope,
    MaxKey,
}

const CLASSES: usize = 17;

/// Lowest first.
const COSMOS: [Class; CLASSES] = [
    Class::Undefined,
    Class::Null,
    Class::Bool,
    Class::Number,
    Class::String,
    Class::Array,
    Class::Object,
    Class::MinKey,
    Class::Binary,
    Class::ObjectId,
    Class::DateTime,
    Class::Timestamp,
    Class::Regex,
    Class::DbPointer,
    Class::Code,
    Class::CodeWithScope,
    Class::MaxKey,
];

/// Lowest first.
const MONGO: [Class; CLASSES] = [
    Class::MinKey,
    Class::Undefined,
    Class::Null,
    Class::Number,
    Class::String,
    Class::Object,
    Class::Array,
    Class::Binary,
    Class::ObjectId,
    Class::Bool,
    Class::DateTime,
    Class::Timestamp,
    Class::Regex,
    Class::DbPointer,
    Class::Code,
    Class::CodeWithScope,
    Class::MaxKey,
];

const COSMOS_RANKS: [u8; CLASSES] = ranks(&COSMOS);
const MONGO_RANKS: [u8; CLASSES] = ranks(&MONGO);

/// Turns a table around: from class to position.
#[expect(clippy::indexing_slicing, reason = "evaluated at compile time, where a bad index does not compile")]
const fn ranks(ascending: &[Class; CLASSES]) -> [u8; CLASSES] {
    let mut ranks = [u8::MAX; CLASSES];
    let mut rank = 0;
    while rank < CLASSES {
        ranks[ascending[rank] as usize] = rank as u8;
        rank += 1;
    }
    let mut class = 0;
    while class < CLASSES {
        assert!(ranks[class] != u8::MAX, "every class has a place in the table");
        class += 1;
    }
    ranks
}

impl Class {
    pub(crate) fn of(value: RawBsonRef<'_>) -> Class {
        match value {
            RawBsonRef::Undefined => Class::Undefined,
            RawBsonRef::Null => Class::Null,
            RawBsonRef::Boolean(_) => Class::Bool,
            RawBsonRef::Int32(_)
            | RawBsonRef::Int64(_)
            | RawBsonRef::Double(_)
            | RawBsonRef::Decimal128(_) => Class::Number,
            RawBsonRef::String(_) | RawBsonRef::Symbol(_) => Class::String,
            RawBsonRef::Array(_) => Class::Array,
            RawBsonRef::Document(_) => Class::Object,
            RawBsonRef::MinKey => Class::MinKey,
            RawBsonRef::Binary(_) => Class::Binary,
            RawBsonRef::ObjectId(_) => Class::ObjectId,
            RawBsonRef::DateTime(_) => Class::DateTime,
            RawBsonRef::Timestamp(_) => Class::Timestamp,
            RawBsonRef::RegularExpression(_) => Class::Regex,
            RawBsonRef::DbPointer(_) => Class::DbPointer,
            RawBsonRef::JavaScriptCode(_) => Class::Code,
            RawBsonRef::JavaScriptCodeWithScope(_) => Class::CodeWithScope,
            RawBsonRef::MaxKey => Class::MaxKey,
        }
    }

    pub(crate) fn rank(self, order: Order) -> u8 {
        let ranks = match order {
            Order::Cosmos => &COSMOS_RANKS,
            Order::Mongo => &MONGO_RANKS,
        };
        ranks.get(self as usize).copied().unwrap_or(u8::MAX)
    }

    pub(crate) fn of_rank(rank: u8, order: Order) -> Option<Class> {
        let ascending = match order {
            Order::Cosmos => &COSMOS,
            Order::Mongo => &MONGO,
        };
        ascending.get(usize::from(rank)).copied()
    }
}

/// The place of a value's type class, lowest first. Values of equal rank compare by content.
pub fn type_rank(order: Order, value: RawBsonRef<'_>) -> u8 {
    Class::of(value).rank(order)
}

/// Compares two values.
pub fn compare(order: Order, a: RawBsonRef<'_>, b: RawBsonRef<'_>) -> Ordering {
    compare_at(order, a, b, 0)
}

/// Compares two values that may be absent: the lowest of all in Cosmos, the same as null in MongoDB.
pub fn compare_opt(order: Order, a: Option<RawBsonRef<'_>>, b: Option<RawBsonRef<'_>>) -> Ordering {
    let absent = match order {
        Order::Cosmos => RawBsonRef::Undefined,
        Order::Mongo => RawBsonRef::Null,
    };
    compare(order, a.unwrap_or(absent), b.unwrap_or(absent))
}

fn compare_at(order: Order, a: RawBsonRef<'_>, b: RawBsonRef<'_>, depth: usize) -> Ordering {
    let by_class = type_rank(order, a).cmp(&type_rank(order, b));
    by_class.then_with(|| compare_content(order, a, b, depth))
}

/// Compares values of the same class.
fn compare_content(order: Order, a: RawBsonRef<'_>, b: RawBsonRef<'_>, depth: usize) -> Ordering {
    use RawBsonRef as V;
    if let (Some(a), Some(b)) = (Number::of(a), Number::of(b)) {
        return match order {
            Order::Cosmos => compare_doubles(a.to_double(), b.to_double()),
            Order::Mongo => compare_exact(a, b),
        };
    }
    match (a, b) {
        (V::Boolean(a), V::Boolean(b)) => a.cmp(&b),
        (V::String(a) | V::Symbol(a), V::String(b) | V::Symbol(b)) => a.cmp(b),
        (V::Array(a), V::Array(b)) => compare_arrays(order, a, b, depth),
        (V::Document(a), V::Document(b)) => compare_objects(order, a, b, depth),
        (V::Binary(a), V::Binary(b)) => {
            let key = |v: bson::RawBinaryRef<'_>| (v.bytes.len(), u8::from(v.subtype));
            key(a).cmp(&key(b)).then_with(|| a.bytes.cmp(b.bytes))
        }
        (V::ObjectId(a), V::ObjectId(b)) => a.bytes().cmp(&b.bytes()),
        (V::DateTime(a), V::DateTime(b)) => a.timestamp_millis().cmp(&b.timestamp_millis()),
        (V::Timestamp(a), V::Timestamp(b)) => (a.time, a.increment).cmp(&(b.time, b.increment)),
        (V::RegularExpression(a), V::RegularExpression(b)) => {
            (a.pattern.as_str(), a.options.as_str()).cmp(&(b.pattern.as_str(), b.options.as_str()))
        }
        (V::DbPointer(a), V::DbPointer(b)) => db_pointer_parts(a).cmp(&db_pointer_parts(b)),
        (V::JavaScriptCode(a), V::JavaScriptCode(b)) => a.cmp(b),
        (V::JavaScriptCodeWithScope(a), V::JavaScriptCodeWithScope(b)) => {
            a.code.cmp(b.code).then_with(|| compare_objects(order, a.scope, b.scope, depth))
        }
        // Undefined, null, the smallest and the largest key have no content.
        _ => Ordering::Equal,
    }
}

fn compare_arrays(order: Order, a: &RawArray, b: &RawArray, depth: usize) -> Ordering {
    if depth >= DEPTH_MAX {
        return a.as_bytes().cmp(b.as_bytes());
    }
    compare_sequences(items(a), items(b), |a, b| compare_at(order, a, b, depth + 1))
}

fn compare_objects(order: Order, a: &RawDocument, b: &RawDocument, depth: usize) -> Ordering {
    if depth >= DEPTH_MAX {
        return a.as_bytes().cmp(b.as_bytes());
    }
    match order {
        Order::Cosmos => {
            compare_sequences(sorted_fields(a).into_iter(), sorted_fields(b).into_iter(), |a, b| {
                a.0.cmp(b.0).then_with(|| compare_at(order, a.1, b.1, depth + 1))
            })
        }
        Order::Mongo => compare_sequences(fields(a), fields(b), |a, b| {
            let by_class = type_rank(order, a.1).cmp(&type_rank(order, b.1));
            by_class.then_with(|| a.0.cmp(b.0)).then_with(|| compare_content(order, a.1, b.1, depth + 1))
        }),
    }
}

/// Compares item by item; the shorter one of two that agree comes first.
fn compare_sequences<T>(
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

/// The items of an array as far as they can be read.
pub(crate) fn items(array: &RawArray) -> impl Iterator<Item = RawBsonRef<'_>> {
    array.into_iter().map_while(Result::ok)
}

/// The fields of an object as far as they can be read.
pub(crate) fn fields(object: &RawDocument) -> impl Iterator<Item = (&str, RawBsonRef<'_>)> {
    object.iter().map_while(Result::ok).map(|(name, value)| (name.as_str(), value))
}

/// The fields by name; foreign documents may repeat a name, then the stored order decides.
pub(crate) fn sorted_fields(object: &RawDocument) -> Vec<(&str, RawBsonRef<'_>)> {
    let mut fields: Vec<_> = fields(object).collect();
    fields.sort_by_key(|(name, _)| *name);
    fields
}
