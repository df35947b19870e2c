//! `$unwind`: one document for each item of an array.

use bson::RawDocumentBuf;

use super::{Operator, Parsed, Place, Row, Run, Stage, StageDefinition};
use crate::error::{Result, bail};
use crate::expression::{split_path, with_field};
use crate::values::{Ref, Value, field, fields, items, type_name};

pub(super) const STAGES: &[StageDefinition] =
    &[StageDefinition { name: "$unwind", help: "one document for each item of an array", parse }];

struct Unwind {
    path: Vec<String>,
    keep_empty: bool,
    index: Option<Vec<String>>,
}

fn parse(_: &str, operand: Ref<'_>, _: Place<'_>) -> Result<Parsed> {
    let (mut path, mut keep_empty, mut index) = (None, false, None);
    match operand {
        Ref::String(text) => path = Some(text),
        Ref::Document(object) => {
            for (name, value) in fields(object) {
                match (name, value) {
                    ("path", Ref::String(text)) => path = Some(text),
                    ("path", other) => bail!(
                        28808,
                        "expected a string as the path for $unwind stage, got {}",
                        type_name(other)
                    ),
                    ("preserveNullAndEmptyArrays", Ref::Boolean(keep)) => keep_empty = keep,
                    ("preserveNullAndEmptyArrays", other) => {
                        bail!(
                            28809,
                            "expected a boolean for the preserveNullAndEmptyArrays option to $unwind stage, got {}",
                            type_name(other)
                        )
                    }
                    ("includeArrayIndex", Ref::String("")) | ("includeArrayIndex", Ref::Null) => {
                        bail!(
                            28810,
                            "expected a non-empty string for the includeArrayIndex option to $unwind stage"
                        )
                    }
                    ("includeArrayIndex", Ref::String(text)) if text.starts_with('$') => {
                        bail!(
                            28822,
                            "includeArrayIndex option to $unwind stage should not be prefixed with a '$': {text}"
                        )
                    }
                    ("includeArrayIndex", Ref::String(text)) => index = Some(split_path(text)?),
                    ("includeArrayIndex", _) => {
                        bail!(
                            28810,
                            "expected a non-empty string for the includeArrayIndex option to $unwind stage"
                        )
                    }
                    _ => bail!(28811, "unrecognized option to $unwind stage: {name}"),
                }
            }
        }
        other => bail!(
            15981,
            "expected either a string or an object as specification for $unwind stage, got {}",
            type_name(other)
        ),
    }
    let Some(path) = path.filter(|path| !path.is_empty()) else {
        bail!(28812, "no path specified to $unwind stage")
    };
    let Some(path) = path.strip_prefix('$') else {
        bail!(28818, "path option to $unwind stage should be prefixed with a '$': {path}");
    };
    Ok(Parsed::Stage(Box::new(Unwind { path: split_path(path)?, keep_empty, index })))
}

impl Stage for Unwind {
    fn start<'a>(&'a self, _: Run<'a>) -> Box<dyn Operator + 'a> {
        Box::new(UnwindOperator(self))
    }
}

struct UnwindOperator<'a>(&'a Unwind);

/// The value at a path through objects only.
pub(super) fn nested<'a>(document: &'a bson::RawDocument, path: &[String]) -> Option<Ref<'a>> {
    let (first, rest) = path.split_first()?;
    match (field(document, first)?, rest.is_empty()) {
        (value, true) => Some(value),
        (Ref::Document(inner), false) => nested(inner, rest),
        _ => None,
    }
}

/// The document with a value set at a path through objects.
pub(super) fn with_nested(
    document: &bson::RawDocument,
    path: &[String],
    value: Option<Value>,
) -> RawDocumentBuf {
    match path {
        [] => document.to_owned(),
        [last] => with_field(document, last, value),
        [first, rest @ ..] => {
            let inner = match field(document, first) {
                Some(Ref::Document(inner)) => with_nested(inner, rest, value),
                _ => with_nested(&RawDocumentBuf::new(), rest, value),
            };
            with_field(document, first, Some(Value::Document(inner)))
        }
    }
}

impl Operator for UnwindOperator<'_> {
    fn push(&mut self, row: Row, out: &mut Vec<Row>) -> Result<()> {
        let Unwind { path, keep_empty, index } = self.0;
        let indexed = |unwound: Row, at: Option<i64>| match index {
            Some(index) => {
                let place = at.map_or(Value::Null, Value::Int64);
                unwound.becomes(with_nested(&unwound, index, Some(place)))
            }
            None => unwound,
        };
        match nested(&row, path) {
            Some(Ref::Array(list)) => {
                let mut empty = true;
                for (at, item) in items(list).enumerate() {
                    empty = false;
                    let unwound = with_nested(&row, path, Some(item.into()));
                    out.push(indexed(row.becomes(unwound), Some(at as i64)));
                }
                if empty && *keep_empty {
                    out.push(indexed(row.becomes(with_nested(&row, path, None)), None));
                }
            }
            None | Some(Ref::Null | Ref::Undefined) => {
                if *keep_empty {
                    out.push(indexed(row, None));
                }
            }
            Some(_) => out.push(indexed(row, None)),
        }
        Ok(())
    }
}
