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

/// Checks that the JSON text of a value stays within about the limit.
pub(super) fn check_json(function: &str, value: &Value<'_>) -> Result<(), EvalError> {
    let fits = value.check_size(TEXT_BYTES_MAX);
    fits.or_else(|_| check_text(function, usize::MAX))
}
