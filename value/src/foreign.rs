//! Foreign BSON: what can be wrong with document bytes that someone else wrote.
//!
//! Documents arrive over the Mongo wire or from disk as bytes whose insides nobody has checked yet. Every
//! walk over them (JSON output, index leaves, comparison, key encoding) reads through the lazy `bson`
//! iterators and is bounded by the one depth limit below, so that no document can overflow the stack.

use bson::{RawBsonRef, RawDbPointerRef, RawDocumentBuf};

/// Nested objects and arrays a walk over BSON enters before it gives up.
///
/// Cosmos allows 128 and MongoDB 180; the margin is for the wrappers the front-ends put around documents.
pub const DEPTH_MAX: usize = 200;

/// A document's bytes are not the BSON they should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BsonError {
    /// The bytes do not follow the BSON layout.
    #[error("the document is malformed: {message}")]
    Malformed {
        /// What the reader stumbled over.
        message: String,
    },
    /// Objects and arrays are nested deeper than any front-end accepts.
    #[error("the document nests objects and arrays deeper than {depth_max} levels")]
    TooDeep {
        /// The limit that was passed.
        depth_max: usize,
    },
}

impl From<bson::error::Error> for BsonError {
    fn from(error: bson::error::Error) -> Self {
        BsonError::Malformed { message: error.to_string() }
    }
}

impl BsonError {
    /// Refuses a container at `depth` (the outermost has depth 1) that lies below the limit.
    pub(crate) fn check_depth(depth: usize) -> Result<(), BsonError> {
        if depth > DEPTH_MAX { Err(BsonError::TooDeep { depth_max: DEPTH_MAX }) } else { Ok(()) }
    }
}

/// The namespace and object id of a DBPointer.
///
/// The bson crate keeps the fields of this deprecated type to itself, so they are read from its bytes:
/// length, name type and empty name (6), the namespace as a string, 12 bytes of id, the document's end.
pub(crate) fn db_pointer_parts(pointer: RawDbPointerRef<'_>) -> (String, [u8; 12]) {
    let mut document = RawDocumentBuf::new();
    document.append(bson::raw::cstr!(""), RawBsonRef::DbPointer(pointer));
    let bytes = document.as_bytes();
    let (namespace_from, id_from) = (6 + 4, bytes.len().saturating_sub(12 + 1));
    let namespace = bytes.get(namespace_from..id_from.saturating_sub(1)).unwrap_or_default();
    let id = bytes.get(id_from..id_from + 12).and_then(|id| id.try_into().ok()).unwrap_or_default();
    (String::from_utf8_lossy(namespace).into_owned(), id)
}
