//! `$project`, `$addFields`, `$unset`, `$replaceRoot`: one document becomes another.

use bson::{RawDocument, RawDocumentBuf};

use super::{Parsed, Place, StageDefinition, each, options};
use crate::error::{MISSING_FIELD, Result, bail};
use crate::expression::Expression;
use crate::projection::Projection;
use crate::values::{META, Ref, Value, carrying, field, items, show, type_name_opt};

pub(super) const STAGES: &[StageDefinition] = &[
    StageDefinition { name: "$project", help: "fields kept, left out or computed", parse: project },
    StageDefinition { name: "$addFields", help: "fields added or set", parse: add_fields },
    StageDefinition { name: "$set", help: "as `$addFields`", parse: add_fields },
    StageDefinition { name: "$unset", help: "fields removed", parse: unset },
    StageDefinition {
        name: "$replaceRoot",
        help: "an object of the document in its place",
        parse: replace_root,
    },
    StageDefinition { name: "$replaceWith", help: "as `$replaceRoot`", parse: replace_with },
];

fn project(_: &str, operand: Ref<'_>, place: Place<'_>) -> Result<Parsed> {
    let Ref::Document(specification) = operand else {
        bail!(15969, "$project specification must be an object")
    };
    let projection = Projection::parse_project(specification, place.names)?;
    let scored = place.scored;
    Ok(each(move |document, context| {
        let projected = projection.apply(&document, context)?;
        Ok(Some(if scored { with_metadata(projected, &document) } else { projected }))
    }))
}

/// What a document becomes, with the score that it carries.
fn with_metadata(becomes: RawDocumentBuf, document: &RawDocument) -> RawDocumentBuf {
    match field(document, META) {
        Some(metadata) => carrying(&becomes, metadata),
        _ => becomes,
    }
}

fn add_fields(name: &str, operand: Ref<'_>, place: Place<'_>) -> Result<Parsed> {
    let Ref::Document(specification) = operand else {
        bail!(40272, "{name} specification stage must be an object, got {}", type_name_opt(Some(operand)));
    };
    let projection = Projection::parse_add(specification, place.names)?;
    Ok(each(move |document, context| projection.apply(&document, context).map(Some)))
}

fn unset(_: &str, operand: Ref<'_>, _: Place<'_>) -> Result<Parsed> {
    let paths: Vec<String> = match operand {
        Ref::String(path) => vec![path.to_string()],
        Ref::Array(list) => {
            let paths = items(list).map(|item| match item {
                Ref::String(path) => Ok(path.to_string()),
                _ => bail!(
                    31120,
                    "$unset specification must be a string or an array containing only string values"
                ),
            });
            paths.collect::<Result<_>>()?
        }
        _ => bail!(31002, "$unset specification must be a string or an array"),
    };
    if paths.is_empty() {
        bail!(31119, "$unset specification must be a string or an array with at least one field");
    }
    let projection = Projection::exclude(&paths)?;
    Ok(each(move |document, context| projection.apply(&document, context).map(Some)))
}

fn replace_root(name: &str, operand: Ref<'_>, place: Place<'_>) -> Result<Parsed> {
    let Ref::Document(_) = operand else {
        bail!(40229, "expected an object as specification for $replaceRoot stage")
    };
    let object = options(name, operand, &["newRoot"])?;
    match field(object, "newRoot") {
        Some(root) => replaced("'newRoot' expression ", root, place),
        None => bail!(MISSING_FIELD, "BSON field '$replaceRoot.newRoot' is missing but a required field"),
    }
}

fn replace_with(_: &str, operand: Ref<'_>, place: Place<'_>) -> Result<Parsed> {
    replaced("'replacement document' ", operand, place)
}

fn replaced(what: &'static str, root: Ref<'_>, place: Place<'_>) -> Result<Parsed> {
    let (root, scored) = (Expression::parse(root, place.names)?, place.scored);
    Ok(each(move |document, context| match root.evaluate(&document, context)? {
        Some(Value::Document(object)) if scored => Ok(Some(with_metadata(object, &document))),
        Some(Value::Document(object)) => Ok(Some(object)),
        other => {
            let other = other.as_ref().map(Value::as_raw_bson_ref);
            bail!(
                40228,
                "{what}must evaluate to an object, but resulting value was: {}. Type of resulting value: '{}'.",
                other.map_or("MISSING".to_string(), show),
                type_name_opt(other)
            )
        }
    }))
}
