//! The client encryption policy: which properties clients encrypt before they send them, and under which keys.
//!
//! The server never sees a key in the clear; it only sees to it that the keys a policy names are there.

use mayfly_engine::ContainerDefinition;
use serde_json::Value;

use super::{items, member, text};
use crate::error::ApiError;

const ALGORITHM: &str = "AEAD_AES_256_CBC_HMAC_SHA256";

/// Checks the policy; `key_exists` says whether the database has a client encryption key of this name.
pub fn check(definition: &ContainerDefinition, key_exists: impl Fn(&str) -> bool) -> Result<(), ApiError> {
    let Some(policy) = definition.others.get("clientEncryptionPolicy") else { return Ok(()) };
    if !policy.is_object() {
        return Err(ApiError::invalid_input());
    }
    let version = member(policy, "policyFormatVersion").map_or(Some(1), Value::as_u64);
    if !matches!(version, Some(1 | 2)) {
        return Err(ApiError::bad_request(
            "The policyFormatVersion of the client encryption policy is neither 1 nor 2.",
        ));
    }
    let mut paths: Vec<&str> = Vec::new();
    for item in items(policy.get("includedPaths"))? {
        let path = text(item, "path")?;
        if !path.starts_with('/') || path.len() < 2 || path[1..].contains('/') {
            return Err(ApiError::bad_request(format!(
                "The path '{path}' of the client encryption policy is not a property at the top of an item."
            )));
        }
        if paths.contains(&path) {
            return Err(ApiError::bad_request(format!(
                "The path '{path}' is more than once in the client encryption policy."
            )));
        }
        let kind = text(item, "encryptionType")?;
        if !["Deterministic", "Randomized"].contains(&kind) {
            return Err(ApiError::bad_request(format!(
                "The encryptionType '{kind}' is neither 'Deterministic' nor 'Randomized'."
            )));
        }
        let algorithm = text(item, "encryptionAlgorithm")?;
        if algorithm != ALGORITHM {
            return Err(ApiError::bad_request(format!(
                "The encryptionAlgorithm '{algorithm}' is not '{ALGORITHM}'."
            )));
        }
        let key = text(item, "clientEncryptionKeyId")?;
        if !key_exists(key) {
            return Err(ApiError::bad_request(format!(
                "ClientEncryptionKey with id '[{key}]' does not exist."
            )));
        }
        paths.push(path);
    }
    Ok(())
}
