//! `$facet`: several pipelines over the same documents, one document of their answers.

use bson::{RawArrayBuf, RawDocumentBuf};

use super::{Execution, Operator, Parsed, Pipeline, Place, Row, Run, Stage, StageDefinition};
use crate::error::{Result, bail};
use crate::path::is_allowed_dollar_name;
use crate::values::{Ref, fields, items, put, type_name};

pub(super) const STAGES: &[StageDefinition] =
    &[StageDefinition { name: "$facet", help: "several pipelines over the same documents", parse }];

struct Facet(Vec<(String, Pipeline)>);

/// Stages that make no sense inside.
const REFUSED: [&str; 7] =
    ["$facet", "$out", "$merge", "$geoNear", "$collStats", "$indexStats", "$documents"];

fn parse(_: &str, operand: Ref<'_>, place: Place<'_>) -> Result<Parsed> {
    let Ref::Document(object) = operand else {
        bail!(40169, "the $facet specification must be a non-empty object, but found {}", type_name(operand));
    };
    let mut facets = Vec::new();
    for (name, value) in fields(object) {
        if name.starts_with('$') && !is_allowed_dollar_name(name) {
            bail!(16410, "FieldPath field names may not start with '$'");
        }
        if name.contains('.') {
            bail!(16412, "FieldPath field names may not contain '.'");
        }
        let Ref::Array(stages) = value else {
            bail!(40170, "arguments to $facet must be arrays, {name} is type {}", type_name(value));
        };
        for stage in items(stages) {
            let Ref::Document(stage) = stage else {
                bail!(40171, "elements of arrays in $facet spec must be non-empty objects");
            };
            if let Some((inner, _)) = fields(stage).next()
                && REFUSED.contains(&inner)
            {
                let is_empty = |value: Ref<'_>| value.as_document().is_none_or(|inside| inside.is_empty());
                if inner == "$facet" && fields(stage).all(|(_, value)| is_empty(value)) {
                    bail!(40169, "the $facet specification must be a non-empty object");
                }
                bail!(40600, "{inner} is not allowed to be used within a $facet stage");
            }
        }
        facets.push((name.to_string(), Pipeline::parse_within(stages, place.names, true, place.depth + 1)?));
    }
    if facets.is_empty() {
        bail!(40169, "the $facet specification must be a non-empty object");
    }
    Ok(Parsed::Stage(Box::new(Facet(facets))))
}

impl Stage for Facet {
    fn start<'a>(&'a self, run: Run<'a>) -> Box<dyn Operator + 'a> {
        let executions = self.0.iter().map(|(_, pipeline)| pipeline.start(run.context, run.collections));
        Box::new(FacetOperator {
            facet: self,
            run,
            executions: executions.collect(),
            results: vec![Vec::new(); self.0.len()],
            bytes: 0,
        })
    }
}

struct FacetOperator<'a> {
    facet: &'a Facet,
    run: Run<'a>,
    executions: Vec<Execution<'a>>,
    results: Vec<Vec<RawDocumentBuf>>,
    bytes: usize,
}

impl FacetOperator<'_> {
    fn collect(&mut self) -> Result<()> {
        for (execution, results) in self.executions.iter_mut().zip(&mut self.results) {
            for row in execution.take() {
                self.bytes += row.as_bytes().len();
                results.push(row.document);
            }
        }
        self.run.check_memory("$facet", self.bytes)
    }
}

impl Operator for FacetOperator<'_> {
    fn push(&mut self, row: Row, _: &mut Vec<Row>) -> Result<()> {
        for execution in &mut self.executions {
            if !execution.is_done() {
                execution.push(row.clone())?;
            }
        }
        self.collect()
    }

    fn finish(&mut self, out: &mut Vec<Row>) -> Result<()> {
        self.executions.iter_mut().try_for_each(Execution::finish)?;
        self.collect()?;
        let mut document = RawDocumentBuf::new();
        for ((name, _), results) in self.facet.0.iter().zip(self.results.drain(..)) {
            put(&mut document, name, RawArrayBuf::from_iter(results));
        }
        out.push(Row::made(document));
        Ok(())
    }
}
