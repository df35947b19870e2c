//! Hints: what a query says about the documents it needs, for whoever looks for them.
//!
//! `WHERE c.a = 1 AND STARTSWITH(c.b, "x") AND f(c.d)` lets only documents through that have `a = 1` and a
//! string beginning with `x` in `b`. An index may be asked for those; the filter itself is evaluated on every
//! document in any case, so a hint that is not used, or used loosely, changes no answer. Where hints say all
//! that the filter says, and an index holds all that the query reads, the documents need not be read at all.
//!
//! An index that stores numbers as doubles must widen the bounds it takes from a hint where an integer does
//! not fit a double: values are compared exactly here.

mod conditions;
mod reads;
mod words;

use crate::aggregate::Aggregate;
use crate::ast::Direction;
use crate::bind::BoundQuery;
use crate::plan::{Bound, Input, PathStep, SortDirection};
use crate::value::{Kind, Value};
pub use words::WordHint;

/// One thing that holds for every document the filter lets through.
#[derive(Debug, Clone)]
pub struct Hint {
    /// Where in the document.
    pub path: Vec<PathStep>,
    /// Whether it is about some item of the array there, not about the value itself.
    pub of_item: bool,
    /// What is there: a value in one of these.
    pub spans: Vec<Span>,
    /// Whether the condition is nothing but that.
    pub exact: bool,
    /// How many of the values there pass, as far as the condition tells.
    pub selects: Selects,
    /// Whether arrays and objects pass as well, which no index lists.
    pub beyond_scalars: bool,
}

/// How much a condition leaves of the values in its spans, or the spans of all values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selects {
    /// The spans are small, and all in them pass: an index leads there.
    Few,
    /// The spans are wide, or what is in them has to be looked at one by one.
    Many,
}

/// Values that a path can have.
#[derive(Debug, Clone)]
pub enum Span {
    /// This one.
    Value(Value<'static>),
    /// A value of the bounds' type between them.
    Between {
        /// The lowest.
        low: Bounded,
        /// The highest.
        high: Bounded,
    },
    /// A string that begins with this.
    StartsWith(String),
    /// Any value of a type that is a scalar.
    Kind(Kind),
}

/// One end of a range.
#[derive(Debug, Clone)]
pub enum Bounded {
    /// This value or beyond.
    Inclusive(Value<'static>),
    /// Beyond this value.
    Exclusive(Value<'static>),
    /// No bound within the type of the other end.
    Open,
}

/// All hints of a query.
#[derive(Debug, Clone, Default)]
pub struct Hints {
    /// What holds, all at once.
    pub all: Vec<Hint>,
    /// Whether the filter is nothing but that.
    pub exact: bool,
    /// The ids a document can have, if the filter says.
    pub ids: Option<Vec<String>>,
    /// The paths that the query reads; none if it reads documents as a whole.
    pub reads: Option<Vec<Vec<PathStep>>>,
    /// The paths that the filter reads; none if it reads documents as a whole.
    pub filter_reads: Option<Vec<Vec<PathStep>>>,
    /// Words that documents must have, for an index of words. The filter says more.
    pub words: Vec<WordHint>,
    /// What the rows are sorted by, if all of it is paths.
    pub order: Vec<(Vec<PathStep>, Direction)>,
    /// What the query is about, if it is nothing else.
    pub summary: Option<Summary>,
}

/// A query that gives one row about all documents that pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Summary {
    /// How many there are.
    Count,
    /// The lowest value at a path.
    Lowest(Vec<PathStep>),
    /// The highest value at a path.
    Highest(Vec<PathStep>),
}

/// What a query says about documents.
pub(crate) fn of(query: &BoundQuery) -> Hints {
    let mut block = &query.block;
    // A query over the rows of another filters those; what the inner one says still holds for documents.
    while let Input::Rows { block: inner, .. } = &block.input {
        block = inner;
    }
    let finder = Finder { query };
    let mut hints = Hints { exact: true, ..Hints::default() };
    let mut filter_reads = Vec::new();
    let mut parts_only = true;
    if let Some(filter) = &block.filter {
        hints.exact = finder.collect(filter, &mut hints.all);
        finder.words(filter, &mut hints.words);
        parts_only = finder.reads(filter, &mut filter_reads);
    }
    hints.filter_reads = parts_only.then_some(filter_reads);
    hints.ids = hints.all.iter().find_map(ids);
    let mut reads = Vec::new();
    hints.reads = finder.block_reads(&query.block, &mut reads).then_some(reads);
    hints.order = finder.order().unwrap_or_default();
    hints.summary = finder.summary();
    hints
}

/// Whether a condition reads something of a document, and nothing but these paths.
pub(crate) fn reads_only(query: &BoundQuery, condition: &Bound, paths: &[Vec<String>]) -> bool {
    let mut reads = Vec::new();
    let is_held = |read: &Vec<PathStep>| {
        paths.iter().any(|path| {
            path.len() == read.len()
                && path
                    .iter()
                    .zip(read)
                    .all(|(name, step)| matches!(step, PathStep::Name(read) if read == name))
        })
    };
    Finder { query }.reads(condition, &mut reads) && !reads.is_empty() && reads.iter().all(is_held)
}

/// The ids that a hint on `id` allows.
fn ids(hint: &Hint) -> Option<Vec<String>> {
    let is_id = matches!(hint.path.as_slice(), [PathStep::Name(name)] if name == "id") && !hint.of_item;
    let values = hint.spans.iter().map(|span| match span {
        // An id is a string; other values match none.
        Span::Value(value) => Some(value.as_str().map(str::to_owned)),
        _ => None,
    });
    if is_id {
        values.collect::<Option<Vec<_>>>().map(|ids| ids.into_iter().flatten().collect())
    } else {
        None
    }
}

struct Finder<'q> {
    query: &'q BoundQuery,
}

impl Finder<'_> {
    /// The path in the document that an expression reads.
    fn path(&self, bound: &Bound) -> Option<Vec<PathStep>> {
        let path = self.query.document_path(bound)?;
        if path.is_empty() { None } else { Some(path) }
    }

    fn order(&self) -> Option<Vec<(Vec<PathStep>, Direction)>> {
        let sorts = self.query.block.order.iter().map(|sort| match sort.direction {
            SortDirection::Fixed(direction) => Some((self.path(&sort.key)?, direction)),
            SortDirection::MostSimilar => None,
        });
        sorts.collect()
    }

    fn summary(&self) -> Option<Summary> {
        let block = &self.query.block;
        let Input::Documents { .. } = block.input else { return None };
        let group = block.group.as_ref().filter(|group| !group.is_explicit)?;
        let [call] = group.aggregates.as_slice() else { return None };
        let is_document = |slot| self.query.document_paths.get(&slot).is_some_and(Vec::is_empty);
        let plain = !block.distinct && block.order.is_empty() && block.offset == 0 && block.limit.is_none();
        if !plain || !block.sources.iter().all(|source| is_document(source.slot)) {
            return None;
        }
        match (call.aggregate, &call.argument) {
            (Aggregate::Count, Bound::Constant(value)) if value.is_defined() => Some(Summary::Count),
            // A document is always there.
            (Aggregate::Count, Bound::Slot(slot)) if is_document(*slot) => Some(Summary::Count),
            (Aggregate::Min, argument) => Some(Summary::Lowest(self.path(argument)?)),
            (Aggregate::Max, argument) => Some(Summary::Highest(self.path(argument)?)),
            _ => None,
        }
    }
}
