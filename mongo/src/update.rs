//! Updates: operators, replacements and pipelines applied to one document.
//!
//! ```text
//!   update ──parse──▶ Update ──apply(document)──▶ new document (or none if nothing changed)
//!                       └──upsert(filter)──▶ the document to insert
//! ```
//!
//! Paths of operators are resolved for each document (`$`, `$[]` and `$[name]` become positions), checked
//! against each other, and applied in the order of the paths: that is why new fields appear sorted. What a
//! change stream says about an update is the difference of the two documents ([`Description`]).

mod arrays;
mod diff;
mod operators;
mod parse;
mod paths;
mod tree;
mod upsert;

use bson::{RawArray, RawDocument, RawDocumentBuf};

pub use diff::{Description, describe};
pub use operators::{OPERATORS, UpdateOperator};
pub(crate) use paths::compare_names;

use crate::context::Context;
use crate::error::{DOLLAR_PREFIXED, FAILED_TO_PARSE, IMMUTABLE_FIELD, INVALID_REFERENCE, Result, bail};
use crate::expression::Names;
use crate::filter::Filter;
use crate::path::is_reference_part;
use crate::pipeline::UpdatePipeline;
use crate::values::{Ref, field, fields, put, show};
use parse::Operation;
use tree::Tree;

/// A parsed update.
#[derive(Debug)]
pub struct Update {
    body: Body,
}

#[derive(Debug)]
enum Body {
    Replacement(RawDocumentBuf),
    Operators { operations: Vec<Operation>, array_filters: Vec<(String, Filter)> },
    Pipeline(UpdatePipeline),
}

impl Update {
    /// Parses an update: a document of operators, a document that replaces, or a pipeline.
    pub fn parse(update: Ref<'_>, array_filters: Option<&RawArray>, names: &Names) -> Result<Update> {
        let body = match update {
            Ref::Array(stages) => {
                if array_filters.is_some() {
                    bail!(FAILED_TO_PARSE, "arrayFilters may not be specified for pipeline-style updates");
                }
                Body::Pipeline(UpdatePipeline::parse(stages, names)?)
            }
            Ref::Document(document) => match fields(document).next() {
                Some((name, _)) if name.starts_with('$') => {
                    let operations = parse::operations(document)?;
                    let array_filters = parse::array_filters(array_filters, &operations)?;
                    Body::Operators { operations, array_filters }
                }
                _ => {
                    if array_filters.is_some_and(|filters| filters.into_iter().next().is_some()) {
                        bail!(
                            FAILED_TO_PARSE,
                            "arrayFilters may not be specified for replacement-style updates"
                        );
                    }
                    Body::Replacement(document.to_owned())
                }
            },
            _ => bail!(FAILED_TO_PARSE, "Update argument must be either an object or an array"),
        };
        Ok(Update { body })
    }

    /// Whether the whole document is replaced; such an update cannot be for many documents.
    pub fn is_replacement(&self) -> bool {
        matches!(self.body, Body::Replacement(_))
    }

    /// The document after the update; none if it is as it was. `position` is the item that the filter matched.
    pub fn apply(
        &self,
        document: &RawDocument,
        position: Option<usize>,
        context: &Context<'_>,
    ) -> Result<Option<RawDocumentBuf>> {
        let updated = self.updated(document, position, false, context)?;
        check_id(document, &updated, self.is_replacement())?;
        if !matches!(self.body, Body::Pipeline(_)) {
            check_dollar_names(document, &updated)?;
        }
        Ok((updated.as_bytes() != document.as_bytes()).then_some(updated))
    }

    fn updated(
        &self,
        document: &RawDocument,
        position: Option<usize>,
        inserting: bool,
        context: &Context<'_>,
    ) -> Result<RawDocumentBuf> {
        match &self.body {
            Body::Replacement(replacement) => Ok(with_id_of(document, replacement)),
            Body::Operators { operations, array_filters } => {
                let mut tree = Tree::of(document);
                let resolved =
                    paths::resolve(operations, array_filters, document, position, inserting, context)?;
                for (path, operation) in &resolved {
                    operation.apply(path, &mut tree, document, context)?;
                }
                Ok(tree.into_document())
            }
            Body::Pipeline(pipeline) => Ok(with_id_of(document, &pipeline.apply(document, context)?)),
        }
    }
}

/// A new version keeps the `_id` of the old one if it says nothing else.
fn with_id_of(old: &RawDocument, new: &RawDocument) -> RawDocumentBuf {
    match field(old, "_id") {
        Some(id) if field(new, "_id").is_none() => {
            let mut with_id = RawDocumentBuf::new();
            put(&mut with_id, "_id", id);
            fields(new).for_each(|(name, value)| put(&mut with_id, name, value));
            with_id
        }
        _ => id_first(new),
    }
}

/// `_id` comes first in a stored document.
fn id_first(document: &RawDocument) -> RawDocumentBuf {
    match field(document, "_id") {
        Some(id) if fields(document).next().is_some_and(|(name, _)| name != "_id") => {
            let mut moved = RawDocumentBuf::new();
            put(&mut moved, "_id", id);
            for (name, value) in fields(document).filter(|(name, _)| *name != "_id") {
                put(&mut moved, name, value);
            }
            moved
        }
        _ => document.to_owned(),
    }
}

/// What an update sets at the top may not begin with a dollar sign, but for the parts of a reference in their order. A document
/// that an upsert inserts may have such names.
fn check_dollar_names(before: &RawDocument, after: &RawDocument) -> Result<()> {
    let mut previous = "";
    let names: Vec<&str> = fields(after).map(|(name, _)| name).collect();
    for (at, (name, value)) in fields(after).enumerate() {
        let left = std::mem::replace(&mut previous, name);
        let same =
            |old: Ref<'_>| mayfly_value::order::compare(mayfly_value::Order::Mongo, old, value).is_eq();
        if !name.starts_with('$') || field(before, name).is_some_and(same) {
            continue;
        }
        let is_text = matches!(value, Ref::String(_));
        match name {
            "$id" if left != "$ref" => bail!(INVALID_REFERENCE, "Found $id field without a $ref before it"),
            "$db" if left != "$id" => bail!(INVALID_REFERENCE, "Found $db field without a $id before it"),
            "$ref" | "$db" if !is_text => bail!(INVALID_REFERENCE, "The DBRef {name} field must be a String"),
            "$ref" if names.get(at + 1) != Some(&"$id") => {
                bail!(INVALID_REFERENCE, "The DBRef $ref field must be followed by a $id field")
            }
            name if is_reference_part(name) => {}
            _ => bail!(
                DOLLAR_PREFIXED,
                "The dollar ($) prefixed field '{name}' in '{name}' is not allowed in the context of an update's \
                 replacement document. Consider using an aggregation pipeline with $replaceWith."
            ),
        }
    }
    Ok(())
}

fn check_id(before: &RawDocument, after: &RawDocument, replaced: bool) -> Result<()> {
    let (Some(old), new) = (field(before, "_id"), field(after, "_id")) else { return Ok(()) };
    let same =
        new.is_some_and(|new| mayfly_value::order::compare(mayfly_value::Order::Mongo, old, new).is_eq());
    if same {
        return Ok(());
    }
    if replaced {
        bail!(
            IMMUTABLE_FIELD,
            "After applying the update, the (immutable) field '_id' was found to have been altered to _id: {}",
            new.map_or("missing".to_string(), show)
        );
    }
    bail!(IMMUTABLE_FIELD, "Performing an update on the path '_id' would modify the immutable field '_id'")
}
