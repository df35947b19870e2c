//! What a container keeps for life. A replacement that leaves it out means it as it is; one that says otherwise is
//! refused.

use mayfly_engine::ContainerDefinition;
use serde_json::{Map, Value, json};

use super::{Object, member, vectors};
use crate::error::ApiError;

/// How conflicts between regions are settled unless a container says otherwise.
pub fn default_conflict_resolution() -> Value {
    json!({ "mode": "LastWriterWins", "conflictResolutionPath": "/_ts", "conflictResolutionProcedure": "" })
}

/// Reads a conflict resolution policy and fills in what it leaves out.
pub fn conflict_resolution(policy: &Object) -> Result<Value, ApiError> {
    let policy = Value::Object(policy.clone());
    let text = |name: &str| match member(&policy, name) {
        None => Ok(""),
        Some(value) => value.as_str().ok_or_else(ApiError::invalid_input),
    };
    let (mode, path, procedure) =
        (text("mode")?, text("conflictResolutionPath")?, text("conflictResolutionProcedure")?);
    match mode.to_ascii_lowercase().as_str() {
        "" | "lastwriterwins" if !procedure.is_empty() => Err(ApiError::bad_request(
            "A conflict resolution policy of mode LastWriterWins has no conflictResolutionProcedure.",
        )),
        "" | "lastwriterwins" => {
            let path = if path.is_empty() { "/_ts" } else { path };
            if !path.starts_with('/') {
                return Err(ApiError::bad_request(format!(
                    "The conflictResolutionPath '{path}' is not a path."
                )));
            }
            Ok(
                json!({ "mode": "LastWriterWins", "conflictResolutionPath": path, "conflictResolutionProcedure": "" }),
            )
        }
        "custom" if !path.is_empty() => Err(ApiError::bad_request(
            "A conflict resolution policy of mode Custom has no conflictResolutionPath.",
        )),
        "custom" => Ok(json!({
            "mode": "Custom", "conflictResolutionPath": "", "conflictResolutionProcedure": procedure
        })),
        _ => Err(ApiError::bad_request(format!(
            "The conflict resolution mode '{mode}' is neither 'LastWriterWins' nor 'Custom'."
        ))),
    }
}

/// Takes over from the present definition what `body`, the replacement as it was sent, leaves out and cannot change.
pub fn keep(present: &ContainerDefinition, next: &mut ContainerDefinition, body: &Map<String, Value>) {
    let left_out = |name: &str| body.get(name).is_none_or(Value::is_null);
    if left_out("uniqueKeyPolicy") {
        next.unique_keys = present.unique_keys.clone();
    }
    for name in ["conflictResolutionPolicy", "clientEncryptionPolicy"] {
        if let (true, Some(value)) = (left_out(name), present.others.get(name)) {
            next.others.insert(name.into(), value.clone());
        }
    }
}

/// Refuses to change what is fixed. Name, partition key and unique keys are the engine's to refuse.
pub fn check(present: &ContainerDefinition, next: &ContainerDefinition) -> Result<(), ApiError> {
    let policy = |definition: &ContainerDefinition| definition.others.get("clientEncryptionPolicy").cloned();
    if policy(present) != policy(next) {
        return Err(ApiError::bad_request(
            "'clientEncryptionPolicy' cannot be changed as part of collection replace operation.",
        ));
    }
    let resolution = |definition: &ContainerDefinition| {
        definition.others.get("conflictResolutionPolicy").cloned().unwrap_or_else(default_conflict_resolution)
    };
    if resolution(present) != resolution(next) {
        return Err(ApiError::bad_request(
            "'conflictResolutionPolicy' cannot be changed as part of collection replace operation.",
        ));
    }
    vectors::check_replacement(present, next)
}
