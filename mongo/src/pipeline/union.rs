//! `$unionWith`: documents of another collection after these.

use super::lookup::fetch;
use super::{Operator, Parsed, Pipeline, Place, Row, Run, Stage, StageDefinition, options};
use crate::error::{FAILED_TO_PARSE, Result, TYPE_MISMATCH, bail};
use crate::filter::Filter;
use crate::values::{Ref, field};

pub(super) const STAGES: &[StageDefinition] =
    &[StageDefinition { name: "$unionWith", help: "documents of another collection after these", parse }];

struct Union {
    from: Option<String>,
    pipeline: Option<Pipeline>,
}

fn parse(name: &str, operand: Ref<'_>, place: Place<'_>) -> Result<Parsed> {
    if let Ref::String(from) = operand {
        return Ok(Parsed::Stage(Box::new(Union { from: Some(from.to_string()), pipeline: None })));
    }
    let Ref::Document(_) = operand else {
        bail!(FAILED_TO_PARSE, "the $unionWith stage specification must be an object or string");
    };
    let object = options(name, operand, &["coll", "pipeline"])?;
    let from = match field(object, "coll") {
        None => None,
        Some(Ref::String(from)) => Some(from.to_string()),
        Some(_) => {
            bail!(TYPE_MISMATCH, "BSON field '$unionWith.coll' is the wrong type, expected type 'string'")
        }
    };
    let pipeline = match field(object, "pipeline") {
        None => None,
        Some(Ref::Array(stages)) => {
            Some(Pipeline::parse_within(stages, place.names, place.facet, place.depth + 1)?)
        }
        Some(_) => {
            bail!(TYPE_MISMATCH, "BSON field '$unionWith.pipeline' is the wrong type, expected type 'array'")
        }
    };
    if pipeline.as_ref().is_some_and(|pipeline| pipeline.effect().is_some()) {
        bail!(31441, "$out and $merge are not allowed within a $unionWith's sub-pipeline");
    }
    if from.is_none() && !pipeline.as_ref().is_some_and(Pipeline::has_source) {
        bail!(
            FAILED_TO_PARSE,
            "$unionWith stage without explicit collection must have a pipeline with $documents as first stage"
        );
    }
    Ok(Parsed::Stage(Box::new(Union { from, pipeline })))
}

impl Stage for Union {
    fn start<'a>(&'a self, run: Run<'a>) -> Box<dyn Operator + 'a> {
        Box::new(UnionOperator { union: self, run })
    }
}

struct UnionOperator<'a> {
    union: &'a Union,
    run: Run<'a>,
}

impl Operator for UnionOperator<'_> {
    fn push(&mut self, row: Row, out: &mut Vec<Row>) -> Result<()> {
        out.push(row);
        Ok(())
    }

    fn finish(&mut self, out: &mut Vec<Row>) -> Result<()> {
        let Union { from, pipeline } = self.union;
        let found = match (from, pipeline) {
            (_, Some(pipeline)) if pipeline.has_source() => pipeline.source_documents(self.run.context)?,
            (Some(from), _) => fetch(self.run, "$unionWith", from, &Filter::all())?,
            (None, _) => Vec::new(),
        };
        match pipeline {
            Some(pipeline) => out.extend(pipeline.run_over(found, self.run)?),
            None => out.extend(found),
        }
        Ok(())
    }
}
