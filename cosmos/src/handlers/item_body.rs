//! The body of an item on its way in.

use bson::{RawBsonRef, RawDocument, RawDocumentBuf};
use mayfly_engine::DocumentId;
use mayfly_value::json::{self, JsonError, JsonLimits};

use crate::{
    binary_json,
    call::item_id,
    error::ApiError,
    resource::{ADDED, PLACE_OF_ADDED, SYSTEM_PROPERTIES},
};

/// An item as a client sends it: its id, and the document without what the server owns.
pub fn parse(text: &[u8]) -> Result<(DocumentId, RawDocumentBuf), ApiError> {
    let document = match binary_json::is_binary(text) {
        true => binary_json::parse_document(text, JsonLimits::default())?,
        false => json::parse_document(text, JsonLimits::default()).map_err(refused)?,
    };
    let id = match document.get("id") {
        Ok(Some(RawBsonRef::String(id))) => item_id(id)?,
        Ok(Some(_)) => return Err(ApiError::invalid_input()),
        _ => return Err(ApiError::missing_properties(&["id"])),
    };
    Ok((id, without_system_properties(document)?))
}

/// Clients send back what they read; what the server owns is dropped, never trusted. Its place is kept if all of it stood there
/// and something comes behind: as in the service, a property that a client adds to what it has read is the last.
pub fn without_system_properties(document: RawDocumentBuf) -> Result<RawDocumentBuf, ApiError> {
    if !has_system_properties(&document) {
        return Ok(document);
    }
    let mut kept = RawDocumentBuf::new();
    let mut in_a_row = Vec::new();
    for element in document.iter() {
        let (name, value) = element.map_err(|_| ApiError::invalid_input())?;
        if SYSTEM_PROPERTIES.contains(&name.as_str()) {
            in_a_row.push(name);
            continue;
        }
        if ADDED.iter().all(|added| in_a_row.iter().any(|name| name.as_str() == *added)) {
            kept.append(PLACE_OF_ADDED, RawBsonRef::Null);
        }
        in_a_row.clear();
        kept.append(name, value);
    }
    Ok(kept)
}

fn has_system_properties(document: &RawDocument) -> bool {
    document.iter().any(|element| element.is_ok_and(|(name, _)| SYSTEM_PROPERTIES.contains(&name.as_str())))
}

/// A body that is not a document.
pub fn refused(error: JsonError) -> ApiError {
    match error {
        JsonError::TooLarge { .. } => ApiError::too_large(),
        error => ApiError::bad_request(format!("The input content is invalid: {error}.")),
    }
}
