//! `$lookup`: documents of another collection beside each document.

use bson::RawDocument;

use super::unwind::with_nested;
use super::{Operator, Parsed, Pipeline, Place, Row, Run, Stage, StageDefinition};
use crate::error::{FAILED_TO_PARSE, MISSING_FIELD, Result, TYPE_MISMATCH, UNKNOWN_FIELD, bail};
use crate::expression::{Expression, Names, split_path};
use crate::filter::{Filter, membership_filter};
use crate::path::parse_index;
use crate::values::{Ref, Value, array, field, fields, items, type_name};

pub(super) const STAGES: &[StageDefinition] =
    &[StageDefinition { name: "$lookup", help: "documents of another collection that match", parse }];

struct Lookup {
    from: Option<String>,
    equality: Option<(Vec<String>, String)>,
    variables: Vec<(String, Expression)>,
    pipeline: Option<Pipeline>,
    target: Vec<String>,
}

/// The name of a collection, or of one of another database.
pub(super) fn collection(stage: &str, value: Ref<'_>) -> Result<String> {
    match value {
        Ref::String(name) => Ok(name.to_string()),
        Ref::Document(object) => match field(object, "coll") {
            Some(Ref::String(_)) if field(object, "db").is_some() => {
                bail!(
                    FAILED_TO_PARSE,
                    "{stage} with syntax {{from: {{db:<>, coll:<>}},..}} is not supported for db: and coll:"
                )
            }
            _ => bail!(FAILED_TO_PARSE, "{stage} argument must be a string"),
        },
        other => {
            bail!(FAILED_TO_PARSE, "{stage} argument must be a string, but found type {}", type_name(other))
        }
    }
}

/// Variables for an inner pipeline.
pub(super) fn variables(value: Ref<'_>, names: &Names) -> Result<Vec<(String, Expression)>> {
    let Ref::Document(object) = value else {
        bail!(FAILED_TO_PARSE, "$lookup argument 'let' must be an object")
    };
    fields(object)
        .map(|(name, value)| {
            if !name.starts_with(|c: char| c.is_ascii_lowercase() || !c.is_ascii()) {
                bail!(FAILED_TO_PARSE, "'{name}' starts with an invalid character for a user variable name");
            }
            Ok((name.to_string(), Expression::parse(value, names)?))
        })
        .collect()
}

fn parse(_: &str, operand: Ref<'_>, place: Place<'_>) -> Result<Parsed> {
    let Ref::Document(object) = operand else {
        bail!(
            FAILED_TO_PARSE,
            "the $lookup stage specification must be an object, but found {}",
            type_name(operand)
        );
    };
    let (mut from, mut target, mut local, mut foreign, mut stages) = (None, None, None, None, None);
    let mut lets = Vec::new();
    for (name, value) in fields(object) {
        match (name, value) {
            ("from", value) => from = Some(collection("$lookup", value)?),
            ("pipeline", Ref::Array(list)) => stages = Some(list),
            ("pipeline", _) => bail!(TYPE_MISMATCH, "A pipeline must be an array of objects"),
            ("let", value) => lets = variables(value, place.names)?,
            ("as", Ref::String(text)) => target = Some(split_path(text)?),
            ("localField", Ref::String(text)) => local = Some(split_path(text)?),
            ("foreignField", Ref::String(text)) => {
                split_path(text)?;
                foreign = Some(text.to_string());
            }
            ("as" | "localField" | "foreignField", other) => {
                bail!(
                    FAILED_TO_PARSE,
                    "$lookup argument '{name}' must be a string, found {}",
                    type_name(other)
                )
            }
            _ => bail!(UNKNOWN_FIELD, "BSON field '$lookup.{name}' is an unknown field."),
        }
    }
    let Some(target) = target else {
        bail!(MISSING_FIELD, "BSON field '$lookup.as' is missing but a required field")
    };
    let equality = match (local, foreign) {
        (Some(local), Some(foreign)) => Some((local, foreign)),
        (None, None) => None,
        _ => bail!(
            FAILED_TO_PARSE,
            "$lookup requires both or neither of 'localField' and 'foreignField' to be specified"
        ),
    };
    if equality.is_none() && stages.is_none() {
        bail!(
            FAILED_TO_PARSE,
            "$lookup requires either 'pipeline' or both 'localField' and 'foreignField' to be specified"
        );
    }
    if stages.is_none() && !lets.is_empty() {
        bail!(FAILED_TO_PARSE, "$lookup with 'let' needs a 'pipeline'");
    }
    let mut names = place.names.clone();
    names.0.extend(lets.iter().map(|(name, _)| name.clone()));
    let pipeline =
        stages.map(|stages| Pipeline::parse_within(stages, &names, false, place.depth + 1)).transpose()?;
    if pipeline.as_ref().is_some_and(|inner| inner.effect().is_some()) {
        bail!(51047, "$out and $merge are not allowed within a $lookup's sub-pipeline");
    }
    if from.is_none() && !pipeline.as_ref().is_some_and(Pipeline::has_source) {
        bail!(FAILED_TO_PARSE, "must specify 'from' field for a $lookup");
    }
    Ok(Parsed::Stage(Box::new(Lookup { from, equality, variables: lets, pipeline, target })))
}

/// All values at a path: of arrays the items, or the one whose number stands there. A missing field has none.
pub(super) fn local_values(document: &RawDocument, path: &[String]) -> Vec<Value> {
    fn collect(value: Ref<'_>, path: &[String], found: &mut Vec<Value>) {
        match (path.split_first(), value) {
            (None, Ref::Array(list)) => found.extend(items(list).map(Value::from)),
            (None, value) => found.push(value.into()),
            (Some((first, rest)), Ref::Document(object)) => {
                field(object, first).into_iter().for_each(|value| collect(value, rest, found));
            }
            (Some((first, rest)), Ref::Array(list)) => match parse_index(first) {
                Some(place) => items(list).nth(place).into_iter().for_each(|item| collect(item, rest, found)),
                None => items(list)
                    .filter(|item| matches!(item, Ref::Document(_)))
                    .for_each(|item| collect(item, path, found)),
            },
            (Some(_), _) => {}
        }
    }
    let mut found = Vec::new();
    collect(Ref::Document(document), path, &mut found);
    found
}

impl Stage for Lookup {
    fn start<'a>(&'a self, run: Run<'a>) -> Box<dyn Operator + 'a> {
        Box::new(LookupOperator { lookup: self, run })
    }
}

struct LookupOperator<'a> {
    lookup: &'a Lookup,
    run: Run<'a>,
}

/// The documents of a collection that pass a filter, within the memory limit.
pub(super) fn fetch(run: Run<'_>, stage: &str, from: &str, filter: &Filter) -> Result<Vec<Row>> {
    let (mut found, mut bytes) = (Vec::new(), 0);
    run.collections.scan(from, filter, &mut |row| {
        if filter.matches(&row, run.context)? {
            bytes += row.as_bytes().len();
            run.check_memory(stage, bytes)?;
            found.push(row);
        }
        Ok(true)
    })?;
    Ok(found)
}

impl LookupOperator<'_> {
    fn matches(&self, document: &RawDocument) -> Result<Vec<Row>> {
        let Lookup { from, equality, variables, pipeline, .. } = self.lookup;
        let filter = match equality {
            Some((local, foreign)) => {
                let mut values = local_values(document, local);
                // Nothing matches null.
                if values.is_empty() {
                    values.push(Value::Null);
                }
                membership_filter(foreign, values)
            }
            None => Filter::all(),
        };
        let mut context = self.run.context.clone();
        for (name, expression) in variables {
            let value = expression.evaluate(document, self.run.context)?;
            context.variables.push((name.clone(), value.unwrap_or(Value::Undefined)));
        }
        let found = match (from, pipeline) {
            (_, Some(pipeline)) if pipeline.has_source() => pipeline.source_documents(&context)?,
            (Some(from), _) => fetch(self.run, "$lookup", from, &filter)?,
            (None, _) => Vec::new(),
        };
        match pipeline {
            Some(pipeline) => {
                let run = Run { context: &context, collections: self.run.collections };
                pipeline.run_over(found, run)
            }
            None => Ok(found),
        }
    }
}

impl Operator for LookupOperator<'_> {
    fn push(&mut self, row: Row, out: &mut Vec<Row>) -> Result<()> {
        let found = self.matches(&row)?;
        let list = array(found.into_iter().map(|found| Value::Document(found.document)));
        out.push(row.becomes(with_nested(&row, &self.lookup.target, Some(list))));
        Ok(())
    }
}
