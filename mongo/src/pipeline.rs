//! Aggregation pipelines: stages that documents are pushed through.
//!
//! ```text
//!   pipeline ──parse──▶ Pipeline ──start──▶ Execution ──push(document)*, finish()──▶ documents
//!                          └──effect──▶ what $merge or $out want done with them
//! ```
//!
//! Stages stand in `STAGES`, one definition each. A stage is shared and has no state; starting it gives an
//! operator that has. Operators pass on what they can at once; those that must see everything first hold it
//! within `Context::memory_max` and are refused beyond. Other collections are read through [`Collections`].

mod accumulators;
mod bucket;
mod bucket_auto;
mod densify;
mod documents;
mod facet;
mod fill;
mod geo_near;
mod graph_lookup;
mod group;
mod group_keys;
mod limits;
mod lookup;
mod matching;
mod moving;
mod output;
mod redact;
mod reshape;
mod row;
mod sorting;
mod union;
mod unwind;
mod window;
mod window_functions;

use bson::{RawArray, RawDocument, RawDocumentBuf};

pub use accumulators::{ACCUMULATORS, AccumulatorDefinition};
pub use geo_near::GeoNear;
pub(crate) use moving::filters_first;
pub use output::{Effect, Merge, Out, WhenMatched, WhenNotMatched};
pub use row::{Provenance, Row};
pub use window_functions::WINDOW_FUNCTIONS;

use crate::context::Context;
use crate::error::{EXCEEDED_MEMORY, INVALID_OPTIONS, Result, TYPE_MISMATCH, bail};
use crate::expression::{Failures, Names};
use crate::filter::Filter;
use crate::values::{Ref, fields, items};

/// Reads other collections, for `$lookup` and its relatives.
pub trait Collections {
    /// Shows `visit` the documents that may match `filter` until it says false. It may show more than those:
    /// the caller filters again.
    fn scan(
        &self,
        collection: &str,
        filter: &Filter,
        visit: &mut dyn FnMut(Row) -> Result<bool>,
    ) -> Result<()>;
}

/// A world without other collections.
pub struct NoCollections;

impl Collections for NoCollections {
    fn scan(&self, _: &str, _: &Filter, _: &mut dyn FnMut(Row) -> Result<bool>) -> Result<()> {
        Ok(())
    }
}

/// What operators know.
#[derive(Clone, Copy)]
pub(crate) struct Run<'a> {
    pub(crate) context: &'a Context<'a>,
    pub(crate) collections: &'a dyn Collections,
}

impl Run<'_> {
    /// Refuses to hold more than the limit.
    pub(crate) fn check_memory(&self, stage: &str, bytes: usize) -> Result<()> {
        if bytes > self.context.memory_max {
            bail!(
                EXCEEDED_MEMORY,
                "Exceeded memory limit for {stage} of {} bytes: this server does not spill to disk",
                self.context.memory_max
            );
        }
        Ok(())
    }
}

/// A parsed stage.
pub(crate) trait Stage: Send + Sync {
    fn start<'a>(&'a self, run: Run<'a>) -> Box<dyn Operator + 'a>;
}

/// A stage at work.
pub(crate) trait Operator {
    /// Takes a document and passes on what it can.
    fn push(&mut self, row: Row, out: &mut Vec<Row>) -> Result<()>;

    /// The same for a document that lies elsewhere; operators that only look at it make no copy.
    fn push_ref(&mut self, document: &RawDocument, from: Provenance<'_>, out: &mut Vec<Row>) -> Result<()> {
        self.push(from.row(document.to_owned()), out)
    }

    /// Passes on the rest: no more documents come.
    fn finish(&mut self, _out: &mut Vec<Row>) -> Result<()> {
        Ok(())
    }

    /// Whether more documents would change nothing.
    fn is_done(&self) -> bool {
        false
    }
}

/// What a stage's parser knows.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) names: &'a Names,
    /// The first stage of its pipeline.
    pub(crate) first: bool,
    /// The last stage of its pipeline.
    pub(crate) last: bool,
    /// Inside of `$facet`.
    pub(crate) facet: bool,
    /// Pipelines around this one.
    pub(crate) depth: usize,
    /// Some stage asks for a score, so all others hand on what documents carry.
    pub(crate) scored: bool,
}

/// What a definition makes of its operand.
pub(crate) enum Parsed {
    Stage(Box<dyn Stage>),
    /// Several stages that do the same.
    Stages(Vec<Box<dyn Stage>>),
    Sort(sorting::Sort),
    Limit(usize),
    Effect(Box<Effect>),
    Source(documents::Documents),
}

/// A stage of the pipeline language.
pub struct StageDefinition {
    /// With its dollar sign.
    pub name: &'static str,
    /// What it does.
    pub help: &'static str,
    pub(crate) parse: fn(&str, Ref<'_>, Place<'_>) -> Result<Parsed>,
}

/// All stages.
pub const STAGES: &[&[StageDefinition]] = &[
    matching::STAGES,
    reshape::STAGES,
    group::STAGES,
    sorting::STAGES,
    limits::STAGES,
    unwind::STAGES,
    bucket::STAGES,
    bucket_auto::STAGES,
    facet::STAGES,
    redact::STAGES,
    lookup::STAGES,
    graph_lookup::STAGES,
    union::STAGES,
    window::STAGES,
    densify::STAGES,
    fill::STAGES,
    documents::STAGES,
    geo_near::STAGES,
    output::STAGES,
];

/// Most stages of one pipeline.
const STAGES_MAX: usize = 1000;
/// Most pipelines within each other.
const DEPTH_MAX: usize = 20;

/// A parsed pipeline.
pub struct Pipeline {
    stages: Vec<Box<dyn Stage>>,
    effect: Option<Box<Effect>>,
    source: Option<documents::Documents>,
}

impl std::fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pipeline").field("stages", &self.stages.len()).field("effect", &self.effect).finish()
    }
}

impl Pipeline {
    /// Parses a pipeline. `names` are the variables in sight.
    pub fn parse(stages: &RawArray, names: &Names) -> Result<Pipeline> {
        Pipeline::parse_within(stages, names, false, 0)
    }

    pub(crate) fn parse_within(
        stages: &RawArray,
        names: &Names,
        facet: bool,
        depth: usize,
    ) -> Result<Pipeline> {
        if depth > DEPTH_MAX {
            bail!(165, "pipelines nest deeper than {DEPTH_MAX} levels");
        }
        let moved = filters_first(stages, names);
        let stages = moved.as_deref().unwrap_or(stages);
        let specifications: Vec<_> = items(stages).collect();
        if specifications.len() > STAGES_MAX {
            bail!(7749501, "Pipeline length must be no longer than {STAGES_MAX} stages.");
        }
        let (count, scored) = (specifications.len(), mentions_metadata(stages));
        let (mut parsed, mut pipeline) =
            (Vec::new(), Pipeline { stages: Vec::new(), effect: None, source: None });
        for (at, specification) in specifications.into_iter().enumerate() {
            let place = Place { names, first: at == 0, last: at + 1 == count, facet, depth, scored };
            parsed.push(parse_stage(specification, place)?);
        }
        let mut parsed = parsed.into_iter().peekable();
        while let Some(stage) = parsed.next() {
            match stage {
                Parsed::Stage(stage) => pipeline.stages.push(stage),
                Parsed::Stages(stages) => pipeline.stages.extend(stages),
                Parsed::Sort(mut sort) => {
                    // The first few of an order need not keep the rest.
                    if let Some(Parsed::Limit(limit)) = parsed.peek() {
                        sort.limit = Some(*limit);
                    }
                    pipeline.stages.push(Box::new(sort));
                }
                Parsed::Limit(limit) => pipeline.stages.push(Box::new(limits::Limit(limit))),
                Parsed::Effect(effect) => pipeline.effect = Some(effect),
                Parsed::Source(source) => pipeline.source = Some(source),
            }
        }
        Ok(pipeline)
    }

    /// Leaves the first stage out: whoever reads the documents does what it says.
    pub(crate) fn without_first(mut self) -> Pipeline {
        if !self.stages.is_empty() {
            self.stages.remove(0);
        }
        self
    }

    /// What is to be done with the documents instead of giving them back.
    pub fn effect(&self) -> Option<&Effect> {
        self.effect.as_deref()
    }

    /// Whether the documents come from the pipeline itself (`$documents`) and not from a collection.
    pub fn has_source(&self) -> bool {
        self.source.is_some()
    }

    /// The documents that `$documents` gives.
    pub fn source_documents(&self, context: &Context<'_>) -> Result<Vec<Row>> {
        match &self.source {
            Some(source) => Ok(source.evaluate(context)?.into_iter().map(Row::made).collect()),
            None => Ok(Vec::new()),
        }
    }

    /// Starts an execution.
    pub fn start<'a>(&'a self, context: &'a Context<'a>, collections: &'a dyn Collections) -> Execution<'a> {
        let run = Run { context, collections };
        let operators = self.stages.iter().map(|stage| (stage.start(run), Vec::new())).collect();
        Execution { operators, out: Vec::new() }
    }

    /// Runs over documents that are all there.
    pub(crate) fn run_over(&self, rows: impl IntoIterator<Item = Row>, run: Run<'_>) -> Result<Vec<Row>> {
        let mut execution = self.start(run.context, run.collections);
        for row in rows {
            if execution.is_done() {
                break;
            }
            execution.push(row)?;
        }
        execution.finish()?;
        Ok(execution.take())
    }
}

/// Whether some stage asks for a score or a distance; only then do documents carry theirs.
pub(crate) fn mentions_metadata(stages: &RawArray) -> bool {
    stages.as_bytes().windows(5).any(|bytes| bytes == b"$meta")
}

fn parse_stage(specification: Ref<'_>, place: Place<'_>) -> Result<Parsed> {
    let Ref::Document(specification) = specification else {
        bail!(TYPE_MISMATCH, "Each element of the 'pipeline' array must be an object");
    };
    let mut entries = fields(specification);
    let (Some((name, operand)), None) = (entries.next(), entries.next()) else {
        bail!(40323, "A pipeline stage specification object must contain exactly one field.");
    };
    match STAGES.iter().copied().flatten().find(|definition| definition.name == name) {
        Some(definition) => (definition.parse)(name, operand, place),
        None => bail!(40324, "Unrecognized pipeline stage name: '{name}'"),
    }
}

/// A pipeline at work: documents go in, documents come out.
pub struct Execution<'a> {
    operators: Vec<(Box<dyn Operator + 'a>, Vec<Row>)>,
    out: Vec<Row>,
}

impl Execution<'_> {
    /// Pushes a document through.
    pub fn push(&mut self, row: Row) -> Result<()> {
        push_through(&mut self.operators, row, &mut self.out)
    }

    /// Pushes a document through that lies elsewhere.
    pub fn push_ref(&mut self, document: &RawDocument, from: Provenance<'_>) -> Result<()> {
        let Some(((operator, buffer), rest)) = self.operators.split_first_mut() else {
            self.out.push(from.row(document.to_owned()));
            return Ok(());
        };
        operator.push_ref(document, from, buffer)?;
        for row in buffer.drain(..) {
            push_through(rest, row, &mut self.out)?;
        }
        Ok(())
    }

    /// No more documents come: everything that was held goes on its way.
    pub fn finish(&mut self) -> Result<()> {
        let mut operators = self.operators.as_mut_slice();
        while let Some(((operator, buffer), rest)) = operators.split_first_mut() {
            operator.finish(buffer)?;
            for row in buffer.drain(..) {
                push_through(rest, row, &mut self.out)?;
            }
            operators = rest;
        }
        Ok(())
    }

    /// Whether more documents would change nothing.
    pub fn is_done(&self) -> bool {
        self.operators.iter().any(|(operator, _)| operator.is_done())
    }

    /// Whether something has come out since the last call.
    pub fn has_results(&self) -> bool {
        !self.out.is_empty()
    }

    /// What has come out since the last call.
    pub fn take(&mut self) -> Vec<Row> {
        std::mem::take(&mut self.out)
    }
}

fn push_through<'a>(
    operators: &mut [(Box<dyn Operator + 'a>, Vec<Row>)],
    row: Row,
    out: &mut Vec<Row>,
) -> Result<()> {
    let Some(((operator, buffer), rest)) = operators.split_first_mut() else {
        out.push(row);
        return Ok(());
    };
    let mut emitted = std::mem::take(buffer);
    operator.push(row, &mut emitted)?;
    for row in emitted.drain(..) {
        push_through(rest, row, out)?;
    }
    *buffer = emitted;
    Ok(())
}

/// A stage that makes at most one document of each.
pub(crate) struct Each<F>(pub(crate) F);

impl<F> Stage for Each<F>
where
    F: Fn(RawDocumentBuf, &Context<'_>) -> Result<Option<RawDocumentBuf>> + Send + Sync,
{
    fn start<'a>(&'a self, run: Run<'a>) -> Box<dyn Operator + 'a> {
        Box::new(EachOperator { function: &self.0, run })
    }
}

struct EachOperator<'a, F> {
    function: &'a F,
    run: Run<'a>,
}

impl<F> Operator for EachOperator<'_, F>
where
    F: Fn(RawDocumentBuf, &Context<'_>) -> Result<Option<RawDocumentBuf>>,
{
    fn push(&mut self, row: Row, out: &mut Vec<Row>) -> Result<()> {
        let Row { document, origin } = row;
        let becomes = (self.function)(document, self.run.context)?;
        out.extend(becomes.map(|document| Row { document, origin }));
        Ok(())
    }
}

pub(crate) fn each(
    function: impl Fn(RawDocumentBuf, &Context<'_>) -> Result<Option<RawDocumentBuf>> + Send + Sync + 'static,
) -> Parsed {
    Parsed::Stage(Box::new(Each(function)))
}

/// The stages that an update may consist of.
const UPDATE_STAGES: [&str; 6] = ["$addFields", "$set", "$project", "$unset", "$replaceRoot", "$replaceWith"];

/// A pipeline that updates one document.
#[derive(Debug)]
pub(crate) struct UpdatePipeline(Pipeline);

impl UpdatePipeline {
    pub(crate) fn parse(stages: &RawArray, names: &Names) -> Result<UpdatePipeline> {
        for stage in items(stages) {
            let name = stage.as_document().and_then(|stage| fields(stage).next()).map(|(name, _)| name);
            match name {
                Some(name) if UPDATE_STAGES.contains(&name) => {}
                Some(name) if STAGES.iter().copied().flatten().any(|definition| definition.name == name) => {
                    bail!(INVALID_OPTIONS, "{name} is not allowed to be used within an update")
                }
                _ => {}
            }
        }
        let names = Names(names.0.clone(), Failures::ForDocuments);
        Ok(UpdatePipeline(Pipeline::parse(stages, &names)?))
    }

    pub(crate) fn apply(&self, document: &RawDocument, context: &Context<'_>) -> Result<RawDocumentBuf> {
        let run = Run { context, collections: &NoCollections };
        let mut rows = self.0.run_over([Row::made(document.to_owned())], run)?;
        Ok(rows.pop().map(|row| row.document).unwrap_or_default())
    }
}

/// The operand of a stage that takes named options: an object with these and no others.
pub(crate) fn options<'a>(name: &str, operand: Ref<'a>, known: &[&str]) -> Result<&'a RawDocument> {
    let Ref::Document(object) = operand else {
        bail!(crate::error::FAILED_TO_PARSE, "the {name} stage specification must be an object");
    };
    for (found, _) in fields(object) {
        if !known.contains(&found) {
            bail!(crate::error::UNKNOWN_FIELD, "BSON field '{name}.{found}' is an unknown field.");
        }
    }
    Ok(object)
}
