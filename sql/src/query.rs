//! The three steps of a query as the server takes them: parse, bind, run.

use std::fmt::{self, Display, Formatter};

use crate::ast::QueryTree;
use crate::bind::{self, BoundQuery};
use crate::computed::ComputedProperty;
use crate::context::{Context, DEFAULT_SETTINGS, Settings};
use crate::error::{EvalError, SqlError};
use crate::eval::{Env, eval};
use crate::hints::{self, Hints};
use crate::operators::memory::Memory;
pub use crate::operators::stage::Progress;
use crate::operators::stage::Stage;
pub use crate::operators::window::{After, Place, Ties, Window, WindowPage};
use crate::parser;
use crate::plan::{Bound, Input};
use crate::plan_info::PlanInfo;
use crate::value::{Document, Object, Value};

/// A query whose syntax is right.
#[derive(Debug, Clone)]
pub struct Query {
    text: String,
    tree: QueryTree,
}

impl Query {
    /// Parses a query.
    pub fn parse(text: &str) -> Result<Query, SqlError> {
        match parser::parse(text) {
            Ok(tree) => Ok(Query { text: text.to_owned(), tree }),
            Err(error) => Err(error.located_in(text)),
        }
    }

    /// The syntax tree.
    pub fn tree(&self) -> &QueryTree {
        &self.tree
    }

    /// Resolves names, functions and parameters (named with or without `@`).
    pub fn bind(&self, params: &[(&str, Value<'_>)]) -> Result<Plan, SqlError> {
        self.bind_with(params, &[], &DEFAULT_SETTINGS)
    }

    /// The same in a container that has computed properties, and settings.
    pub fn bind_with(
        &self,
        params: &[(&str, Value<'_>)],
        computed: &[ComputedProperty],
        settings: &Settings,
    ) -> Result<Plan, SqlError> {
        let bound = bind::bind(&self.tree, &self.text, params, (computed, settings));
        let bound = bound.map_err(|error| error.located_in(&self.text))?;
        // A ranking counts all documents, not only those that can pass the filter.
        let hints = if bound.block.rank.is_some() { Hints::default() } else { hints::of(&bound) };
        let info = PlanInfo::of(&self.tree, &bound);
        Ok(Plan { bound, hints, info })
    }
}

/// The query in its canonical form.
impl Display for Query {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.tree.fmt(f)
    }
}

/// A query that is ready to run.
#[derive(Debug)]
pub struct Plan {
    bound: BoundQuery,
    hints: Hints,
    info: PlanInfo,
}

/// Which rows of all are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowLimit {
    /// How many are left out first.
    pub offset: u64,
    /// How many are given at most; None is all.
    pub limit: Option<u64>,
}

impl Plan {
    /// Whether every document gives its rows when it is pushed. Such a query can be continued later from the
    /// next document with [`Plan::resume`].
    pub fn is_streaming(&self) -> bool {
        self.bound.block.is_streaming()
    }

    /// Whether no row is known before all documents were pushed.
    pub fn needs_all_documents(&self) -> bool {
        self.reads_documents() && !self.is_streaming()
    }

    /// Whether it looks at documents at all. If not, `finish` gives all rows.
    pub fn reads_documents(&self) -> bool {
        self.bound.block.reads_documents()
    }

    /// Whether documents that are alike in all that is read of them can be pushed as one, with their number.
    pub fn merges_alike(&self) -> bool {
        self.bound.block.merges_alike()
    }

    /// Whether each document that passes the filter is one row, as it is: `SELECT * FROM c WHERE …`. Whoever knows that
    /// a document passes need only ask [`Run::gives`].
    pub fn gives_documents(&self) -> bool {
        self.has_documents_as_rows() && self.bound.block.is_streaming()
    }

    /// The same of a query that sorts: `SELECT * FROM c ORDER BY …`. See [`WindowRun::push_known`].
    pub fn sorts_documents(&self) -> bool {
        self.has_documents_as_rows() && self.paging() == Paging::Sorted
    }

    fn has_documents_as_rows(&self) -> bool {
        let block = &self.bound.block;
        let is_document = |slot| self.bound.document_paths.get(&slot).is_some_and(Vec::is_empty);
        let reads_whole = matches!(block.input, Input::Documents { .. })
            && block.sources.iter().all(|s| is_document(s.slot));
        let gives_whole = matches!(block.project, Bound::Slot(slot) if is_document(slot));
        reads_whole && gives_whole
    }

    /// Whether documents have to pass a filter.
    pub fn filters(&self) -> bool {
        self.bound.block.filter.is_some()
    }

    /// TOP, or OFFSET and LIMIT.
    pub fn limit(&self) -> RowLimit {
        RowLimit { offset: self.bound.block.offset, limit: self.bound.block.limit }
    }

    pub(crate) fn bound(&self) -> &BoundQuery {
        &self.bound
    }

    /// What the filter says about the documents it can let through.
    pub fn hints(&self) -> &Hints {
        &self.hints
    }

    /// Facts for the query plan endpoint.
    pub fn info(&self) -> &PlanInfo {
        &self.info
    }

    /// Starts the query.
    pub fn run<'p>(&'p self, context: Context<'p>) -> Result<Run<'p>, EvalError> {
        self.resume(context, Progress::default())
    }

    /// How the rows of the query can be divided into pages.
    pub fn paging(&self) -> Paging {
        let block = &self.bound.block;
        let input_streams = match &block.input {
            Input::Once => false,
            Input::Documents { .. } => true,
            Input::Rows { block, .. } => block.is_streaming(),
        };
        let is_grouped = block.group.as_ref().is_some_and(|group| group.is_explicit);
        match () {
            () if block.is_streaming() => Paging::Streaming,
            () if !input_streams || block.rank.is_some() => Paging::Whole,
            () if block.group.is_none() && block.order.is_empty() && block.distinct => Paging::Distinct,
            () if block.group.is_none() && !block.distinct => Paging::Sorted,
            () if is_grouped && block.order.is_empty() && !block.distinct => Paging::Grouped,
            () => Paging::Whole,
        }
    }

    /// Starts a query that is sorted, grouped or distinct, for a page of its rows.
    pub fn run_window<'p>(
        &'p self,
        context: Context<'p>,
        window: Window,
    ) -> Result<WindowRun<'p>, EvalError> {
        let stage = Stage::windowed(&self.bound.block, self.bound.slots, window, &context)?;
        Ok(WindowRun { stage, context })
    }

    /// The rows of a query that only counts, given the count.
    pub fn counted<'p>(&'p self, context: &Context<'p>, count: u64) -> Result<Vec<Value<'p>>, EvalError> {
        let block = &self.bound.block;
        let mut env = Env::new(self.bound.slots, context);
        for call in block.group.iter().flat_map(|group| &group.aggregates) {
            env.set(call.slot, Value::Int(i64::try_from(count).unwrap_or(i64::MAX)));
        }
        let row = eval(&block.project, &mut env)?;
        Ok(if row.is_defined() { vec![row.into_owned()] } else { Vec::new() })
    }

    /// Starts a streaming query in the middle: `progress` is that of the run that gave the rows before.
    pub fn resume<'p>(&'p self, context: Context<'p>, progress: Progress) -> Result<Run<'p>, EvalError> {
        let mut stage = Stage::new(&self.bound.block, self.bound.slots, &context)?;
        *stage.progress() = progress;
        let memory = Memory::of(&context);
        Ok(Run { is_streaming: self.is_streaming(), stage, context, kept: Vec::new(), memory })
    }
}

/// How the rows of a query can be divided into pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paging {
    /// Between any two documents, and between the rows of one.
    Streaming,
    /// By sort key and document: see [`Window`].
    Sorted,
    /// By group key.
    Grouped,
    /// By row.
    Distinct,
    /// Not at all: all rows are computed each time.
    Whole,
}

/// A query that is running for a page of its rows.
pub struct WindowRun<'p> {
    stage: Stage<'p>,
    context: Context<'p>,
}

impl<'p> WindowRun<'p> {
    /// Gives the query the next document; `place` orders documents that the query does not. It stands for `times`
    /// documents: more than one only if the plan [merges alike ones](Plan::merges_alike).
    pub fn push(&mut self, document: &Document<'_>, place: &[u8], times: u64) -> Result<(), EvalError> {
        self.stage.begin(place);
        self.stage.repeat(times);
        let document = Value::Object(Object::Document(*document));
        self.stage.push(document, &self.context).map(|_| ())
    }

    /// The same, of a plan that [sorts documents](Plan::sorts_documents), for whoever keeps the document until the end: its row
    /// is `number`, and weighs `size`. What the filter and the sort keys read has to be there.
    pub fn push_known(
        &mut self,
        document: &Document<'_>,
        place: &[u8],
        number: u32,
        size: usize,
    ) -> Result<(), EvalError> {
        self.stage.stand_in(number, size);
        self.push(document, place, 1)
    }

    /// How many rows were taken into the page so far, those included that had to leave again.
    pub fn taken(&self) -> u64 {
        self.stage.taken()
    }

    /// Whether further documents cannot change the page.
    pub fn is_done(&self) -> bool {
        self.stage.is_done()
    }

    /// The page.
    pub fn finish(self) -> Result<WindowPage<'p>, EvalError> {
        self.stage.finish_window(&self.context)
    }
}

/// A query that is running.
pub struct Run<'p> {
    is_streaming: bool,
    stage: Stage<'p>,
    context: Context<'p>,
    /// Rows of a query that does not stream although they are known already (DISTINCT).
    kept: Vec<Value<'static>>,
    memory: Memory,
}

impl<'p> Run<'p> {
    /// Gives the query the next document. The rows are those of this document if the query streams; if it
    /// does not, there are none before [`Run::finish`].
    pub fn push<'d>(&mut self, document: &Document<'d>) -> Result<Vec<Value<'d>>, EvalError>
    where
        'p: 'd,
    {
        let document = Value::Object(Object::Document(*document));
        let rows = self.stage.push(document, &self.context)?;
        if self.is_streaming {
            return Ok(rows);
        }
        for row in rows {
            self.memory.take(row.size())?;
            self.kept.push(row.into_owned());
        }
        Ok(Vec::new())
    }

    /// Whether the next document is given as a row, if it is known to pass the filter and the plan [gives
    /// documents](Plan::gives_documents). Such a document need not be pushed.
    pub fn gives(&mut self) -> bool {
        self.stage.gives()
    }

    /// The same for a document that stands for `times`: more than one only if the plan
    /// [merges alike ones](Plan::merges_alike). It gives no rows before the end.
    pub fn push_times(&mut self, document: &Document<'_>, times: u64) -> Result<(), EvalError> {
        self.stage.repeat(times);
        self.push(document).map(|_| ())
    }

    /// Whether further documents cannot change the rows any more: the scan may stop.
    pub fn is_done(&self) -> bool {
        self.stage.is_done()
    }

    /// How many rows were skipped and given so far, for [`Plan::resume`].
    pub fn progress(&mut self) -> Progress {
        *self.stage.progress()
    }

    /// The rows that had to wait for the last document.
    pub fn finish(self) -> Result<Vec<Value<'p>>, EvalError> {
        let mut rows: Vec<Value<'p>> = self.kept;
        rows.extend(self.stage.finish(&self.context)?);
        Ok(rows)
    }
}
