//! The document that an upsert inserts: what the filter says for certain, then the update.

use bson::oid::ObjectId;
use bson::{RawDocument, RawDocumentBuf};

use super::tree::Tree;
use super::{Body, Update, check_id, id_first};
use crate::context::Context;
use crate::error::{NOT_SINGLE_VALUE, Result, bail};
use crate::filter::Filter;
use crate::values::{field, fields, put};

impl Update {
    /// The document to insert if nothing matched `filter`. `new_id` is used if nothing else says what `_id` is.
    pub fn upsert(&self, filter: &Filter, new_id: ObjectId, context: &Context<'_>) -> Result<RawDocumentBuf> {
        let base = base(filter, matches!(self.body, Body::Replacement(_)))?;
        let updated = self.updated(&base, None, true, context)?;
        check_id(&base, &updated, self.is_replacement())?;
        if field(&updated, "_id").is_some() {
            return Ok(id_first(&updated));
        }
        let mut with_id = RawDocumentBuf::new();
        put(&mut with_id, "_id", new_id);
        fields(&updated).for_each(|(name, value)| put(&mut with_id, name, value));
        Ok(with_id)
    }
}

/// The fields that every match would have had; of a replacement only `_id`.
fn base(filter: &Filter, replaced: bool) -> Result<RawDocumentBuf> {
    let empty = RawDocumentBuf::new();
    let mut tree = Tree::of(&empty as &RawDocument);
    let mut seen: Vec<Vec<String>> = Vec::new();
    for (path, value) in filter.equalities() {
        if replaced && path != "_id" {
            continue;
        }
        let path: Vec<String> = path.split('.').map(str::to_string).collect();
        if seen.iter().any(|other| other.starts_with(&path) || path.starts_with(other)) {
            bail!(
                NOT_SINGLE_VALUE,
                "cannot infer query fields to set, path '{}' is matched twice",
                path.join(".")
            );
        }
        tree.set(&path, value.clone())?;
        seen.push(path);
    }
    Ok(tree.into_document())
}
