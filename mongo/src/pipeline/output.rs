//! `$merge` and `$out`: what is to be done with the documents. Doing it is left to the caller.

use std::sync::Arc;

use super::{Parsed, Pipeline, Place, StageDefinition, options};
use crate::error::{BAD_VALUE, Result, TYPE_MISMATCH, bail};
use crate::expression::{Expression, Names};
use crate::values::{Ref, field, items, type_name};

pub(super) const STAGES: &[StageDefinition] = &[
    StageDefinition { name: "$merge", help: "documents written into a collection", parse: merge },
    StageDefinition { name: "$out", help: "documents in place of a collection", parse: out },
];

/// What a pipeline wants done with its documents.
#[derive(Debug)]
pub enum Effect {
    /// Write them into a collection, one by one.
    Merge(Arc<Merge>),
    /// Replace a collection by them.
    Out(Out),
}

/// `$out`.
#[derive(Debug)]
pub struct Out {
    /// None is the database of the pipeline.
    pub database: Option<String>,
    /// The collection that is replaced.
    pub collection: String,
}

/// `$merge`.
#[derive(Debug)]
pub struct Merge {
    /// None is the database of the pipeline.
    pub database: Option<String>,
    /// The collection that is written to.
    pub collection: String,
    /// The fields that tell whether a document is there already; they need a unique index.
    pub on: Vec<String>,
    /// What to do with a document that is there.
    pub when_matched: WhenMatched,
    /// What to do with one that is not.
    pub when_not_matched: WhenNotMatched,
    /// Variables for the pipeline of `whenMatched`; without them `$$new` is the document.
    pub variables: Vec<(String, Expression)>,
}

/// What `$merge` does with a document that is there.
#[derive(Debug)]
pub enum WhenMatched {
    /// Set the fields of the new document.
    Merge,
    /// Put the new document in its place.
    Replace,
    /// Leave it.
    KeepExisting,
    /// Fail with a duplicate key.
    Fail,
    /// Update it by a pipeline.
    Pipeline(Box<Pipeline>),
}

/// What `$merge` does with a document that is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenNotMatched {
    /// Insert it.
    Insert,
    /// Forget it.
    Discard,
    /// Fail.
    Fail,
}

fn namespace(stage: &str, value: Ref<'_>) -> Result<(Option<String>, String)> {
    match value {
        Ref::String(collection) => Ok((None, collection.to_string())),
        Ref::Document(object) => {
            let text = |name: &str| match field(object, name) {
                Some(Ref::String(text)) => Ok(Some(text.to_string())),
                None => Ok(None),
                Some(_) => bail!(
                    TYPE_MISMATCH,
                    "BSON field '{stage}.{name}' is the wrong type, expected type 'string'"
                ),
            };
            match (text("db")?, text("coll")?) {
                (database, Some(collection)) => Ok((database, collection)),
                _ => bail!(BAD_VALUE, "{stage} needs a collection"),
            }
        }
        other => {
            bail!(16990, "{stage} only supports a string or object argument, but found {}", type_name(other))
        }
    }
}

fn check_last(name: &str, place: Place<'_>) -> Result<()> {
    if !place.last {
        bail!(40601, "{name} can only be the final stage in the pipeline");
    }
    Ok(())
}

fn out(name: &str, operand: Ref<'_>, place: Place<'_>) -> Result<Parsed> {
    check_last(name, place)?;
    if let Ref::Document(object) = operand
        && field(object, "timeseries").is_some()
    {
        bail!(crate::error::NOT_IMPLEMENTED, "$out into a time series is not supported");
    }
    let (database, collection) = namespace(name, operand)?;
    Ok(Parsed::Effect(Box::new(Effect::Out(Out { database, collection }))))
}

fn merge(name: &str, operand: Ref<'_>, place: Place<'_>) -> Result<Parsed> {
    check_last(name, place)?;
    if let Ref::String(collection) = operand {
        return Ok(effect(merge_of((None, collection.to_string()))));
    }
    let Ref::Document(_) = operand else {
        bail!(TYPE_MISMATCH, "$merge only supports a string or object argument, not {}", type_name(operand));
    };
    let object = options(
        name,
        operand,
        &["into", "on", "let", "whenMatched", "whenNotMatched", "targetCollectionVersion"],
    )?;
    let Some(into) = field(object, "into") else {
        bail!(crate::error::MISSING_FIELD, "BSON field '$merge.into' is missing but a required field");
    };
    let mut merge = merge_of(namespace(name, into)?);
    if let Some(on) = field(object, "on") {
        merge.on = fields_of(on)?;
    }
    let mut names = place.names.clone();
    if let Some(lets) = field(object, "let") {
        merge.variables = super::lookup::variables(lets, place.names)?;
        names.0.extend(merge.variables.iter().map(|(name, _)| name.clone()));
    } else {
        names.0.push("new".to_string());
    }
    merge.when_matched = when_matched(field(object, "whenMatched"), &names)?;
    merge.when_not_matched = match field(object, "whenNotMatched") {
        None | Some(Ref::String("insert")) => WhenNotMatched::Insert,
        Some(Ref::String("discard")) => WhenNotMatched::Discard,
        Some(Ref::String("fail")) => WhenNotMatched::Fail,
        Some(Ref::String(other)) => {
            bail!(BAD_VALUE, "Enumeration value '{other}' for field 'whenNotMatched' is not a valid value.")
        }
        Some(_) => bail!(
            TYPE_MISMATCH,
            "BSON field '$merge.whenNotMatched' is the wrong type, expected type 'string'"
        ),
    };
    // Nothing, or nothing but failures, would come of these.
    if matches!(merge.when_matched, WhenMatched::KeepExisting | WhenMatched::Fail)
        && !matches!(merge.when_not_matched, WhenNotMatched::Insert)
    {
        bail!(51181, "Combination of $merge modes 'whenMatched' and 'whenNotMatched' is not supported");
    }
    Ok(effect(merge))
}

fn effect(merge: Merge) -> Parsed {
    Parsed::Effect(Box::new(Effect::Merge(Arc::new(merge))))
}

fn merge_of((database, collection): (Option<String>, String)) -> Merge {
    Merge {
        database,
        collection,
        on: vec!["_id".to_string()],
        when_matched: WhenMatched::Merge,
        when_not_matched: WhenNotMatched::Insert,
        variables: Vec::new(),
    }
}

fn fields_of(on: Ref<'_>) -> Result<Vec<String>> {
    let names: Vec<String> = match on {
        Ref::String(name) => vec![name.to_string()],
        Ref::Array(list) => items(list)
            .map(|item| match item {
                Ref::String(name) => Ok(name.to_string()),
                other => {
                    bail!(51134, "$merge 'on' array elements must be strings, but found {}", type_name(other))
                }
            })
            .collect::<Result<_>>()?,
        other => bail!(
            51186,
            "$merge 'on' field must be either a string or an array of strings, but found {}",
            type_name(other)
        ),
    };
    if names.is_empty() {
        bail!(51187, "If explicitly specifying $merge 'on', must include at least one field");
    }
    Ok(names)
}

fn when_matched(value: Option<Ref<'_>>, names: &Names) -> Result<WhenMatched> {
    Ok(match value {
        None | Some(Ref::String("merge")) => WhenMatched::Merge,
        Some(Ref::String("replace")) => WhenMatched::Replace,
        Some(Ref::String("keepExisting")) => WhenMatched::KeepExisting,
        Some(Ref::String("fail")) => WhenMatched::Fail,
        Some(Ref::String(other)) => {
            bail!(BAD_VALUE, "Enumeration value '{other}' for field 'whenMatched' is not a valid value.")
        }
        Some(Ref::Array(stages)) => WhenMatched::Pipeline(Box::new(Pipeline::parse(stages, names)?)),
        Some(other) => bail!(
            51191,
            "$merge 'whenMatched' field must be either a string or an array, but found {}",
            type_name(other)
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::rawdoc;

    #[test]
    fn a_merge_has_its_defaults() {
        let stages = bson::RawArrayBuf::from_iter([rawdoc! { "$merge": { "into": "x" } }]);
        let pipeline = Pipeline::parse(&stages, &Names::default()).unwrap();
        let Some(Effect::Merge(merge)) = pipeline.effect() else { panic!("no merge") };
        assert_eq!((merge.collection.as_str(), merge.on.as_slice()), ("x", ["_id".to_string()].as_slice()));
        assert!(matches!(merge.when_matched, WhenMatched::Merge));
        let wrong =
            bson::RawArrayBuf::from_iter([rawdoc! { "$merge": { "into": "x" } }, rawdoc! { "$limit": 1 }]);
        assert_eq!(Pipeline::parse(&wrong, &Names::default()).unwrap_err().code, 40601);
    }
}
