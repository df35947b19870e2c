//! A stage: one block that documents are pushed through.
//!
//! What a document gives at once comes back from `push`; what has to wait for all of them (groups, sorted
//! rows) comes from `finish`. A block that reads the rows of another is a stage on top of a stage.

use super::Flow;
use super::distinct::Distinct;
use super::group::Groups;
use super::memory::Memory;
use super::rank::Ranker;
use super::sort::Sorter;
use super::source::rows;
use super::window::{Collector, Place, RowsLeft, Window, WindowPage, place_keys};
use crate::ast::Direction;
use crate::context::Context;
use crate::error::EvalError;
use crate::eval::{Env, eval, negate};
use crate::plan::{Block, Input, Over, Sort, SortDirection};
use crate::value::Value;

/// How far a query has come with the rows it gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Rows left out for OFFSET.
    pub skipped: u64,
    /// Rows given.
    pub given: u64,
}

pub(crate) struct Stage<'p> {
    block: &'p Block,
    slots: usize,
    inner: Option<Box<Stage<'p>>>,
    groups: Option<Groups<'p>>,
    tail: Tail<'p>,
    /// How many documents are like the one that is pushed.
    times: u64,
}

/// The part after grouping: project, distinct, sort, offset and limit.
struct Tail<'p> {
    block: &'p Block,
    distinct: Option<Distinct>,
    sorter: Option<Sorter>,
    ranker: Option<Ranker<'p>>,
    /// Instead of all of these, for a page of a query that has to see all documents.
    collector: Option<Collector>,
    /// What a document that whoever asks keeps is known by, and its size.
    stand_in: Option<(u32, usize)>,
    /// How each sort key is made of what the query sorts by.
    keys: Vec<KeyForm>,
    memory: Memory,
    /// The rows given since the last document: a join can make endlessly many of one.
    page: Memory,
    progress: Progress,
}

impl<'p> Stage<'p> {
    pub(crate) fn new(block: &'p Block, slots: usize, context: &Context<'_>) -> Result<Stage<'p>, EvalError> {
        let inner = match &block.input {
            Input::Rows { block, .. } => Some(Box::new(Stage::new(block, slots, context)?)),
            _ => None,
        };
        let is_sorted = !block.order.is_empty();
        let wanted = block.limit.map(|limit| limit.saturating_add(block.offset));
        let sorter = is_sorted.then(|| Sorter::new(directions(block), block.distinct, wanted));
        let ranker = match &block.rank {
            Some(rank) => Some(Ranker::new(rank, wanted, context)?),
            None => None,
        };
        let tail = Tail {
            block,
            distinct: (block.distinct && !is_sorted).then(Distinct::default),
            sorter,
            ranker,
            collector: None,
            stand_in: None,
            keys: block.order.iter().map(|sort| KeyForm::of(sort, context)).collect(),
            memory: Memory::of(context),
            page: Memory::of(context),
            progress: Progress::default(),
        };
        Ok(Stage { block, slots, inner, groups: block.group.as_ref().map(Groups::new), tail, times: 1 })
    }

    /// A stage that gives a window of the block's rows at its end. The block's input must stream.
    pub(crate) fn windowed(
        block: &'p Block,
        slots: usize,
        window: Window,
        context: &Context<'_>,
    ) -> Result<Stage<'p>, EvalError> {
        let mut stage = Stage::new(block, slots, context)?;
        let left = RowsLeft {
            offset: block.offset.saturating_sub(window.progress.skipped),
            limit: block.limit.map(|limit| limit.saturating_sub(window.progress.given)),
        };
        if let Some(group) = &block.group {
            stage.groups = Some(Groups::window(group, &window, left));
        }
        let tail = &mut stage.tail;
        (tail.sorter, tail.distinct) = (None, None);
        tail.collector = Some(Collector::new(directions(block), block.distinct, window, left));
        Ok(stage)
    }

    /// From now on rows are those of this document.
    pub(crate) fn begin(&mut self, document: &[u8]) {
        if let Some(collector) = &mut self.tail.collector {
            collector.begin(document);
        }
    }

    /// From now on the row of a document is this number, and weighs so much.
    pub(crate) fn stand_in(&mut self, number: u32, size: usize) {
        self.tail.stand_in = Some((number, size));
    }

    /// From now on each document stands for so many: see [`Block::merges_alike`].
    pub(crate) fn repeat(&mut self, times: u64) {
        self.times = times;
    }

    /// The rows of a windowed stage.
    pub(crate) fn finish_window(mut self, context: &Context<'_>) -> Result<WindowPage<'p>, EvalError> {
        if let (Some(groups), Some(plan)) = (self.groups.take(), &self.block.group) {
            let mut env = Env::new(self.slots, context);
            let (groups, next) = groups.finish_window();
            for (place, group) in groups {
                group.put(plan, &mut env);
                let row = eval(&self.block.project, &mut env)?;
                self.tail.take_group(place, row)?;
            }
            let mut page = self.tail.finish_window();
            // Groups without a row may have been the last of the page.
            let is_over = self.block.limit.is_some_and(|limit| page.progress.given >= limit);
            page.next = if is_over { None } else { page.next.or(next) };
            return Ok(page);
        }
        Ok(self.tail.finish_window())
    }

    pub(crate) fn progress(&mut self) -> &mut Progress {
        &mut self.tail.progress
    }

    /// How many rows a window took.
    pub(crate) fn taken(&self) -> u64 {
        self.tail.collector.as_ref().map_or(0, Collector::taken)
    }

    /// The ranking, if the rows are ranked.
    pub(crate) fn ranker(&mut self) -> Option<&mut Ranker<'p>> {
        self.tail.ranker.as_mut()
    }

    /// Whether no further document can change the rows.
    pub(crate) fn is_done(&self) -> bool {
        let inner_done = self.inner.as_ref().is_some_and(|inner| inner.is_done());
        let enough = self.groups.is_none() && self.tail.is_in_order_of_arrival() && self.tail.is_full();
        let collected = self.tail.collector.as_ref().is_some_and(Collector::is_done);
        self.block.limit == Some(0) || enough || inner_done || collected
    }

    pub(crate) fn push<'d>(
        &mut self,
        document: Value<'d>,
        context: &Context<'_>,
    ) -> Result<Vec<Value<'d>>, EvalError>
    where
        'p: 'd,
    {
        let mut out = Vec::new();
        if let Input::Once = self.block.input {
            return Ok(out);
        }
        self.tail.page = Memory::of(context);
        let inputs = match &mut self.inner {
            Some(inner) => inner.push(document, context)?,
            None => vec![document],
        };
        for input in inputs {
            self.feed(Some(input), context, &mut out)?;
        }
        Ok(out)
    }

    /// Whether the next row is given, which is the document itself: OFFSET and LIMIT are all that is left to
    /// say so.
    pub(crate) fn gives(&mut self) -> bool {
        !self.is_done() && self.tail.admits()
    }

    pub(crate) fn finish(mut self, context: &Context<'_>) -> Result<Vec<Value<'p>>, EvalError> {
        let mut out = Vec::new();
        if let Input::Once = self.block.input {
            self.feed(None, context, &mut out)?;
        }
        if let Some(inner) = self.inner.take() {
            for input in inner.finish(context)? {
                self.feed(Some(input), context, &mut out)?;
            }
        }
        if let (Some(groups), Some(plan)) = (self.groups.take(), &self.block.group) {
            let mut env = Env::new(self.slots, context);
            for group in groups.finish() {
                group.put(plan, &mut env);
                if self.tail.take(&mut env, &mut out)? == Flow::Enough {
                    break;
                }
            }
        }
        self.tail.finish(context, &mut out)?;
        Ok(out)
    }

    /// Lets one input through the sources and the filter.
    fn feed<'d>(
        &mut self,
        input: Option<Value<'d>>,
        context: &Context<'_>,
        out: &mut Vec<Value<'d>>,
    ) -> Result<(), EvalError>
    where
        'p: 'd,
    {
        if self.is_done() {
            return Ok(());
        }
        let mut env = Env::new(self.slots, context);
        let slot = match &self.block.input {
            Input::Once => None,
            Input::Documents { slot } | Input::Rows { slot, .. } => Some(*slot),
        };
        if let (Some(slot), Some(input)) = (slot, input) {
            env.set(slot, input);
        }
        self.count_document(&mut env)?;
        let (groups, tail, times) = (&mut self.groups, &mut self.tail, self.times);
        rows(self.block, &mut env, &mut |env| match groups {
            Some(groups) => groups.add(env, times, &mut tail.memory).map(|()| Flow::More),
            None => tail.take(env, out),
        })?;
        Ok(())
    }

    /// Scores depend on all documents, also on those the filter refuses.
    fn count_document<'d>(&mut self, env: &mut Env<'d, '_>) -> Result<(), EvalError>
    where
        'p: 'd,
    {
        let block: &'d Block = self.block;
        let Some(ranker) = &mut self.tail.ranker else { return Ok(()) };
        // A ranked query has one source, and it is a part of the document.
        if let Some(source) = block.sources.first()
            && let Over::Value(bound) = &source.over
        {
            let value = eval(bound, env)?;
            env.set(source.slot, value);
        }
        ranker.count(env)
    }
}

impl<'p> Tail<'p> {
    fn is_in_order_of_arrival(&self) -> bool {
        self.sorter.is_none() && self.ranker.is_none()
    }

    /// Projects the row in the slots and sends it on its way.
    fn take<'d>(&mut self, env: &mut Env<'d, '_>, out: &mut Vec<Value<'d>>) -> Result<Flow, EvalError>
    where
        'p: 'd,
    {
        let block: &'d Block = self.block;
        if self.collector.is_some() {
            return self.collect(env);
        }
        let row = eval(&block.project, env)?;
        if !row.is_defined() {
            return Ok(Flow::More);
        }
        if let Some(sorter) = &mut self.sorter {
            let mut keys = Vec::with_capacity(block.order.len());
            for (sort, form) in block.order.iter().zip(&self.keys) {
                keys.push(form.key(eval(&sort.key, env)?).into_owned());
            }
            sorter.add(keys, row.into_owned(), &mut self.memory)?;
            return Ok(Flow::More);
        }
        if let Some(ranker) = &mut self.ranker {
            ranker.add(row, env, &mut self.memory)?;
            return Ok(Flow::More);
        }
        self.pass(row, out)
    }

    /// Takes a row into the window, if it can be in it.
    fn collect<'d>(&mut self, env: &mut Env<'d, '_>) -> Result<Flow, EvalError>
    where
        'p: 'd,
    {
        let block: &'d Block = self.block;
        let Some(collector) = &mut self.collector else { return Ok(Flow::More) };
        if collector.is_distinct() {
            let row = eval(&block.project, env)?;
            if row.is_defined() {
                let keys = place_keys(std::slice::from_ref(&row));
                let size = row.size();
                collector.add(keys, row, size, &mut self.memory)?;
            }
            return Ok(Flow::More);
        }
        let mut keys = Vec::with_capacity(block.order.len());
        for (sort, form) in block.order.iter().zip(&self.keys) {
            keys.push(form.key(eval(&sort.key, env)?));
        }
        // Rows are numbered within their document whether they are in the page or not.
        let admits = collector.admits(&keys);
        let (row, size) = match self.stand_in {
            _ if !admits => (Value::Undefined, 0),
            Some((number, size)) => (Value::Int(number.into()), size),
            None => {
                let row = eval(&block.project, env)?;
                let size = row.size();
                (row, size)
            }
        };
        if row.is_defined() {
            let keys = keys.into_iter().map(Value::into_owned).collect();
            collector.add(keys, row, size, &mut self.memory)?;
        } else {
            collector.pass_over();
        }
        Ok(Flow::More)
    }

    /// Takes the row of a group into the window.
    fn take_group(&mut self, place: Place, row: Value<'_>) -> Result<(), EvalError> {
        match &mut self.collector {
            Some(collector) if row.is_defined() => {
                let size = row.size();
                collector.put(place, row, size, &mut self.memory)
            }
            _ => Ok(()),
        }
    }

    fn finish_window<'d>(mut self) -> WindowPage<'d> {
        let (offset, limit) = (self.block.offset, self.block.limit);
        match self.collector {
            Some(collector) => collector.finish(offset, limit, &mut self.memory),
            None => WindowPage {
                rows: Vec::new(),
                next: None,
                progress: self.progress,
                inexact: false,
                lost: false,
            },
        }
    }

    /// DISTINCT, then OFFSET and LIMIT.
    fn pass<'d>(&mut self, row: Value<'d>, out: &mut Vec<Value<'d>>) -> Result<Flow, EvalError> {
        if let Some(distinct) = &mut self.distinct
            && !distinct.is_new(&row, &mut self.memory)?
        {
            return Ok(Flow::More);
        }
        self.deliver(row, out)
    }

    /// OFFSET and LIMIT.
    fn deliver<'d>(&mut self, row: Value<'d>, out: &mut Vec<Value<'d>>) -> Result<Flow, EvalError> {
        if self.admits() {
            self.page.take(row.size())?;
            out.push(row);
        }
        Ok(if self.is_full() { Flow::Enough } else { Flow::More })
    }

    /// Counts the next row; whether it is given.
    fn admits(&mut self) -> bool {
        if self.progress.skipped < self.block.offset {
            self.progress.skipped += 1;
            return false;
        }
        let is_given = !self.is_full();
        self.progress.given += u64::from(is_given);
        is_given
    }

    fn is_full(&self) -> bool {
        self.block.limit.is_some_and(|limit| self.progress.given >= limit)
    }

    fn finish<'d>(mut self, context: &Context<'_>, out: &mut Vec<Value<'d>>) -> Result<(), EvalError> {
        if let Some(sorter) = self.sorter.take() {
            // The sorter has removed duplicates already.
            let sorted: Vec<_> = sorter.finish(&mut self.memory).collect();
            for row in sorted {
                self.deliver(row, out)?;
            }
        }
        if let Some(ranker) = self.ranker.take() {
            for row in ranker.finish(context)? {
                self.pass(row, out)?;
            }
        }
        Ok(())
    }
}

fn directions(block: &Block) -> Vec<Direction> {
    let direction = |sort: &Sort| match sort.direction {
        SortDirection::Fixed(direction) => direction,
        SortDirection::MostSimilar => Direction::Descending,
    };
    block.order.iter().map(direction).collect()
}

/// How a sort key is made of what the query sorts by.
#[derive(Clone, Copy)]
enum KeyForm {
    /// It is that.
    Plain,
    /// A distance that grows as vectors differ. Rows are sorted by its negative, downwards: the nearest come
    /// first, and what an index does not list because it has no distance comes last.
    Negative,
    /// The same where no index lists the vectors. The service sorts such distances upwards, and what is
    /// undefined comes before every number.
    NegativeOrFirst,
}

impl KeyForm {
    fn of(sort: &Sort, context: &Context<'_>) -> KeyForm {
        match sort.direction == SortDirection::MostSimilar && sort.key.counts_up(context.settings) {
            false => KeyForm::Plain,
            true if sort.key.is_indexed_distance(context.settings) => KeyForm::Negative,
            true => KeyForm::NegativeOrFirst,
        }
    }

    fn key<'v>(self, value: Value<'v>) -> Value<'v> {
        match self {
            KeyForm::Plain => value,
            KeyForm::Negative => negate(&value),
            // No distance is below zero, so nothing else comes before this.
            KeyForm::NegativeOrFirst if !value.is_defined() => Value::Double(f64::INFINITY),
            KeyForm::NegativeOrFirst => negate(&value),
        }
    }
}
