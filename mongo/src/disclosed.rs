//! What a `find` tells of how a document is kept: its record id (`showRecordId`), or the index entry it was found by (`returnKey`).
//!
//! A record id is the place in the order of writes where the document was made, so it grows from one to the next and stays what it is.
//! An entry is made of the document again; a document of which an index has several entries is refused, because it is not known
//! which of them led to it.

use bson::{RawBsonRef, RawDocument, RawDocumentBuf, raw::cstr};

use crate::{
    failure::{Failure, Result},
    planner::Plan,
    reader::Body,
    values::{Ref, field, fields, put},
};

/// What is told beside a document, or instead of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disclosed {
    /// Beside the document, its record id.
    RecordId,
    /// Instead of the document, its entry in the index that was used.
    Key,
}

/// The fields of the index that a plan walks; none where it walks no index.
pub fn key_paths(plan: &Plan) -> Result<Vec<String>> {
    match plan {
        Plan::Scan => Ok(Vec::new()),
        Plan::Ids(_) | Plan::IdRange(_) => Ok(vec!["_id".to_owned()]),
        Plan::Index { spec, .. } => {
            let spec = RawDocument::from_bytes(spec)?;
            let Some(RawBsonRef::Document(key)) = spec.get("key")? else { return Ok(Vec::new()) };
            let is_plain =
                fields(key).all(|(name, way)| !matches!(way, Ref::String(_)) && !name.contains("$**"));
            if !is_plain || spec.get("collation")?.is_some() {
                return Err(Failure::new(
                    238,
                    "find with returnKey is not supported with an index of this kind",
                ));
            }
            Ok(fields(key).map(|(name, _)| name.to_owned()).collect())
        }
    }
}

/// The entry of a document in an index of these fields.
pub fn key(document: &RawDocument, paths: &[String]) -> Result<RawDocumentBuf> {
    let mut entry = RawDocumentBuf::new();
    for path in paths {
        let mut value = Some(Ref::Document(document));
        for part in path.split('.') {
            value = match value {
                Some(Ref::Document(object)) => field(object, part),
                Some(Ref::Array(_)) => break,
                _ => None,
            };
        }
        match value {
            Some(Ref::Array(_)) => {
                let message =
                    "find with returnKey is not supported where the index has several entries of a document";
                return Err(Failure::new(238, message));
            }
            Some(value) => put(&mut entry, path, value),
            None => put(&mut entry, path, Ref::Null),
        }
    }
    Ok(entry)
}

/// The record id of a document.
pub fn record_id(document: &Body) -> Result<i64> {
    let Some(record) = document.record() else {
        let message = "a document that the transaction itself has written has no record id yet";
        return Err(Failure::new(238, message));
    };
    // There are at most 65,536 documents in a commit.
    Ok(((record.birth.lsn << 16) | u64::from(record.birth.ordinal)) as i64)
}

/// A document with its record id.
pub fn with_record_id(mut document: RawDocumentBuf, id: i64) -> RawDocumentBuf {
    document.append(cstr!("$recordId"), id);
    document
}
