//! How much one call may build.
//!
//! A query can nest calls that double their input, so every function that makes more than it was given asks
//! here first. Passing a limit fails the query: leaving the value out would look like an answer.

use crate::error::EvalError;
use crate::value::Value;

/// The longest text, in bytes. Twice the largest document.
pub(super) const TEXT_BYTES_MAX: usize = 4 << 20;

/// The most items of an array. More than the largest document can hold.
pub(super) const ITEMS_MAX: usize = 1 << 20;

/// How deep a walk for a limit goes.
const DEPTH_MAX: usize = crate::value::DEPTH_MAX;

/// Checks the length of text before it is built.
pub(super) fn check_text(function: &str, bytes: usize) -> Result<(), EvalError> {
    if bytes <= TEXT_BYTES_MAX {
        return Ok(());
    }
    Err(EvalError::failed(format!("The result of {function} is larger than {TEXT_BYTES_MAX} bytes.")))
}

/// Checks the length of an array before it is built.
pub(super) fn check_items(function: &str, items: usize) -> Result<(), EvalError> {
    if items <= ITEMS_MAX {
        return Ok(());
    }
    Err(EvalError::failed(format!("The result of {function} has more than {ITEMS_MAX} items.")))
}

/// Checks that the JSON text of a value stays within the limit. Values share parts, so that a small one in
/// memory can be huge as text; the walk stops as soon as it knows.
pub(super) fn check_json(function: &str, value: &Value<'_>) -> Result<(), EvalError> {
    let mut left = TEXT_BYTES_MAX;
    if spend(value, &mut left, 0) { Ok(()) } else { check_text(function, usize::MAX) }
}

/// Takes about what `value` needs from `left`; false if that is not enough.
fn spend(value: &Value<'_>, left: &mut usize, depth: usize) -> bool {
    let own = match value {
        Value::String(text) => text.len() + 2,
        _ => 1,
    };
    match left.checked_sub(own) {
        Some(rest) => *left = rest,
        None => return false,
    }
    match value {
        _ if depth >= DEPTH_MAX => true,
        Value::Array(array) => array.iter().all(|item| spend(&item, left, depth + 1)),
        Value::Object(object) => object.iter().all(|(name, value)| {
            *left = left.saturating_sub(name.len());
            spend(&value, left, depth + 1)
        }),
        _ => true,
    }
}
