//! Comparing values: three questions that have different answers.
//!
//! - [`equals`]: the operator `=`. Undefined if a side is undefined, false between different types.
//! - [`compare`]: the operators `<`, `<=`, `>`, `>=`. Only between two numbers, strings, booleans or nulls.
//! - [`order`]: ORDER BY, MIN and MAX. A total order of all values, by type first.
//!
//! Holds: `order` says Equal exactly where [`same`] says true, and `key.rs` gives equal bytes.

use std::cmp::Ordering;

use mayfly_value::number::compare_doubles;

use super::number::compare_int_double;
use super::{Array, DEPTH_MAX, Member, Object, Value};

/// `a = b`. None is undefined.
pub fn equals(a: &Value<'_>, b: &Value<'_>) -> Option<bool> {
    if a.is_defined() && b.is_defined() { Some(same(a, b)) } else { None }
}

/// Whether two values are deeply equal; undefined equals undefined here.
pub fn same(a: &Value<'_>, b: &Value<'_>) -> bool {
    match (a, b) {
        (Value::String(a), Value::String(b)) => a == b,
        _ => order(a, b) == Ordering::Equal,
    }
}

/// How `a` stands to `b` for `<`, `<=`, `>` and `>=`. None is undefined.
pub fn compare(a: &Value<'_>, b: &Value<'_>) -> Option<Ordering> {
    match (a, b) {
        (Value::Null, Value::Null) => Some(Ordering::Equal),
        (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        _ => compare_numbers(a, b),
    }
}

/// The order of ORDER BY: undefined, null, false, true, numbers, strings, arrays, objects.
pub fn order(a: &Value<'_>, b: &Value<'_>) -> Ordering {
    order_at(a, b, 0)
}

fn compare_numbers(a: &Value<'_>, b: &Value<'_>) -> Option<Ordering> {
    Some(match (a, b) {
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::Double(a), Value::Double(b)) => compare_doubles(*a, *b),
        (Value::Int(a), Value::Double(b)) => compare_int_double(*a, *b),
        (Value::Double(a), Value::Int(b)) => compare_int_double(*b, *a).reverse(),
        _ => return None,
    })
}

fn order_at(a: &Value<'_>, b: &Value<'_>, depth: usize) -> Ordering {
    a.kind().cmp(&b.kind()).then_with(|| match (a, b) {
        (Value::Array(_), _) | (Value::Object(_), _) if depth >= DEPTH_MAX => Ordering::Equal,
        (Value::Array(a), Value::Array(b)) => order_arrays(a, b, depth + 1),
        (Value::Object(a), Value::Object(b)) => order_objects(a, b, depth + 1),
        _ => compare(a, b).unwrap_or(Ordering::Equal),
    })
}

fn order_arrays(a: &Array<'_>, b: &Array<'_>, depth: usize) -> Ordering {
    let (mut a, mut b) = (a.iter(), b.iter());
    loop {
        match (a.next(), b.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
            (Some(a), Some(b)) => match order_at(&a, &b, depth) {
                Ordering::Equal => {}
                different => return different,
            },
        }
    }
}

/// Objects compare by their members sorted by name, so that the order of writing does not matter.
fn order_objects(a: &Object<'_>, b: &Object<'_>, depth: usize) -> Ordering {
    let (a, b) = (sorted(a), sorted(b));
    for ((a_name, a_value), (b_name, b_value)) in a.iter().zip(&b) {
        let by_member = a_name.cmp(b_name).then_with(|| order_at(a_value, b_value, depth));
        if by_member != Ordering::Equal {
            return by_member;
        }
    }
    a.len().cmp(&b.len())
}

fn sorted<'a>(object: &Object<'a>) -> Vec<Member<'a>> {
    let mut members: Vec<_> = object.iter().collect();
    members.sort_by(|(a, _), (b, _)| a.cmp(b));
    members
}
