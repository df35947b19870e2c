//! The body of a PATCH: operations, and the condition they depend on.
//!
//! SDKs send an object with both, or a bare array of operations.

use bson::Bson;
use mayfly_engine::patch::{OPERATIONS_MAX, PatchOperation, Pointer};
use mayfly_value::{
    json::{self, JsonLimits},
    partition::KeyDefinition,
};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::item_body;
use crate::{error::ApiError, resource::SYSTEM_PROPERTIES};

#[derive(Deserialize)]
struct Whole<'a> {
    condition: Option<String>,
    #[serde(borrow)]
    operations: Vec<Step<'a>>,
}

#[derive(Deserialize)]
struct Step<'a> {
    op: String,
    path: String,
    from: Option<String>,
    #[serde(borrow)]
    value: Option<&'a RawValue>,
}

/// Reads a patch. `key` is the container's partition key, which a patch may not touch.
pub fn parse(text: &[u8], key: &KeyDefinition) -> Result<Vec<PatchOperation>, ApiError> {
    let (condition, steps) = match first_byte(text) {
        Some(b'[') => (None, serde_json::from_slice::<Vec<Step<'_>>>(text).map_err(malformed)?),
        _ => {
            let whole: Whole<'_> = serde_json::from_slice(text).map_err(malformed)?;
            (whole.condition, whole.operations)
        }
    };
    if condition.is_some_and(|condition| !condition.trim().is_empty()) {
        return Err(ApiError::not_implemented("A condition on a patch"));
    }
    if steps.is_empty() || steps.len() > OPERATIONS_MAX {
        return Err(ApiError::bad_request(format!(
            "A patch has from 1 to {OPERATIONS_MAX} operations; this one has {}.",
            steps.len()
        )));
    }
    steps.iter().map(|step| operation(step, key)).collect()
}

fn first_byte(text: &[u8]) -> Option<u8> {
    text.iter().copied().find(|byte| !byte.is_ascii_whitespace())
}

fn malformed(error: serde_json::Error) -> ApiError {
    ApiError::bad_request(format!("The patch is invalid: {error}."))
}

fn operation(step: &Step<'_>, key: &KeyDefinition) -> Result<PatchOperation, ApiError> {
    let to = pointer(&step.path, key)?;
    Ok(match step.op.to_ascii_lowercase().as_str() {
        "add" => PatchOperation::Add(to, value(step)?),
        "set" => PatchOperation::Set(to, value(step)?),
        "replace" => PatchOperation::Replace(to, value(step)?),
        "remove" => PatchOperation::Remove(to),
        "incr" | "increment" => match value(step)? {
            by @ (Bson::Int32(_) | Bson::Int64(_) | Bson::Double(_)) => PatchOperation::Increment(to, by),
            _ => return Err(ApiError::bad_request("The value of an increment must be a number.")),
        },
        "move" => {
            let from = step.from.as_deref();
            let from = from.ok_or_else(|| ApiError::bad_request("A move needs the property 'from'."))?;
            PatchOperation::Move { from: pointer(from, key)?, to }
        }
        other => return Err(ApiError::bad_request(format!("There is no patch operation '{other}'."))),
    })
}

fn value(step: &Step<'_>) -> Result<Bson, ApiError> {
    let text = step
        .value
        .ok_or_else(|| ApiError::bad_request(format!("The patch operation '{}' needs a value.", step.op)))?;
    let value =
        json::parse_value(text.get().as_bytes(), JsonLimits::default()).map_err(item_body::refused)?;
    Bson::try_from(value).map_err(|_| ApiError::invalid_input())
}

fn pointer(path: &str, key: &KeyDefinition) -> Result<Pointer, ApiError> {
    let pointer = Pointer::parse(path)?;
    let segments = pointer.segments();
    let root = segments.first().map(String::as_str).unwrap_or_default();
    let is_key = key.paths.iter().any(|path| {
        let both = path.segments().len().min(segments.len());
        path.segments()[..both] == segments[..both]
    });
    if root == "id" || SYSTEM_PROPERTIES.contains(&root) || is_key {
        return Err(ApiError::bad_request(format!(
            "A patch cannot change '{path}': ids, partition keys and system properties stay as they are."
        )));
    }
    Ok(pointer)
}
