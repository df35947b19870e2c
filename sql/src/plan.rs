//! The plan: a query whose names are resolved.
//!
//! Every value that a query can refer to by name (the document, each alias, each group key, each aggregate)
//! has a slot of its own, numbered once for the whole query with its subqueries. Running a query is writing
//! and reading slots; nothing is looked up by name any more.
//!
//! ```text
//!   Input ──▶ sources ──▶ filter ──▶ [group] ──▶ project ──▶ [distinct] ──▶ [sort] ──▶ offset, limit
//! ```

use mayfly_value::text::Language;

use crate::aggregate::Aggregate;
use crate::ast::{BinaryOp, Direction, SubqueryKind, UnaryOp};
use crate::context::Settings;
use crate::functions::Function;
use crate::like::Pattern;
use crate::value::Value;

/// A place for a value while a query runs.
pub(crate) type Slot = usize;

/// A query or subquery.
#[derive(Debug)]
pub(crate) struct Block {
    pub input: Input,
    pub sources: Vec<Source>,
    pub filter: Option<Bound>,
    pub group: Option<Group>,
    /// Rows for which this is undefined are dropped.
    pub project: Bound,
    pub distinct: bool,
    /// Empty: in the order of arrival.
    pub order: Vec<Sort>,
    pub rank: Option<Rank>,
    pub offset: u64,
    pub limit: Option<u64>,
}

/// Where the rows of a block begin.
#[derive(Debug)]
pub(crate) enum Input {
    /// One row without values: there is no FROM, or all of FROM refers to the outer query.
    Once,
    /// One row per document.
    Documents { slot: Slot },
    /// One row per row of a query that itself reads the documents.
    Rows { slot: Slot, block: Box<Block> },
}

/// One source: what it makes of the row so far.
#[derive(Debug)]
pub(crate) struct Source {
    /// Where the value goes.
    pub slot: Slot,
    pub over: Over,
    /// Whether each value is an array whose items are the rows.
    pub iterates: bool,
}

#[derive(Debug)]
pub(crate) enum Over {
    Value(Bound),
    Rows(Box<Block>),
}

/// GROUP BY and aggregates. Without keys there is exactly one group.
#[derive(Debug)]
pub(crate) struct Group {
    pub keys: Vec<(Bound, Slot)>,
    pub aggregates: Vec<AggregateCall>,
    /// Whether GROUP BY was written: then no rows make no group.
    pub is_explicit: bool,
}

#[derive(Debug)]
pub(crate) struct AggregateCall {
    pub aggregate: Aggregate,
    pub argument: Bound,
    pub slot: Slot,
}

/// One sort key.
#[derive(Debug)]
pub(crate) struct Sort {
    pub key: Bound,
    pub direction: SortDirection,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SortDirection {
    Fixed(Direction),
    /// By vector distance: what is nearest comes first, whichever way the distance function counts.
    MostSimilar,
}

/// ORDER BY RANK.
#[derive(Debug)]
pub(crate) struct Rank {
    pub scores: Vec<Score>,
    /// One for each score.
    pub weights: Vec<f64>,
    /// Whether ranks are added up (RRF), or there is only one score.
    pub fuses: bool,
}

#[derive(Debug)]
pub(crate) enum Score {
    Text { text: Bound, terms: Vec<Bound>, language: Language },
    Vector { distance: Bound },
}

/// A step of a path into a document.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PathStep {
    /// A property.
    Name(String),
    /// An item of an array.
    Item(usize),
}

/// An expression whose names are slots.
#[derive(Debug)]
pub(crate) enum Bound {
    Constant(Value<'static>),
    Slot(Slot),
    Member(Box<Bound>, String),
    Index(Box<Bound>, Box<Bound>),
    Array(Vec<Bound>),
    Object(Vec<(String, Bound)>),
    Unary(UnaryOp, Box<Bound>),
    Binary(BinaryOp, Box<Bound>, Box<Bound>),
    And(Vec<Bound>),
    Or(Vec<Bound>),
    Coalesce(Box<Bound>, Box<Bound>),
    Conditional(Box<[Bound; 3]>),
    Between {
        negated: bool,
        operands: Box<[Bound; 3]>,
    },
    In {
        negated: bool,
        value: Box<Bound>,
        list: Vec<Bound>,
    },
    Like {
        negated: bool,
        value: Box<Bound>,
        pattern: Box<LikePattern>,
    },
    Call {
        function: &'static Function,
        args: Vec<Bound>,
    },
    VectorDistance {
        function: &'static Function,
        args: Vec<Bound>,
        path: Option<Vec<String>>,
    },
    /// A function that looks at words.
    FullText {
        function: &'static Function,
        args: Vec<Bound>,
        language: Language,
    },
    /// A value that is given a name while the body is evaluated.
    Let {
        slot: Slot,
        parts: Box<[Bound; 2]>,
    },
    Udf {
        name: String,
    },
    Subquery(SubqueryKind, Box<Block>),
}

/// The pattern of LIKE: compiled if it is constant.
#[derive(Debug)]
pub(crate) enum LikePattern {
    Fixed(Pattern),
    Computed(Bound, Option<char>),
}

impl Bound {
    pub(crate) fn constant(&self) -> Option<&Value<'static>> {
        match self {
            Bound::Constant(value) => Some(value),
            _ => None,
        }
    }

    /// Whether it is the distance of two vectors.
    pub(crate) fn is_distance(&self) -> bool {
        matches!(self, Bound::VectorDistance { .. })
    }

    /// Whether it is a distance that grows as vectors differ. Only the euclidean one does; the query or the
    /// container's vector policy says which it is.
    pub(crate) fn counts_up(&self, settings: &Settings) -> bool {
        let Bound::VectorDistance { args, path, .. } = self else { return false };
        let options = args.get(3).and_then(Bound::constant);
        let named = options.map(|options| options.property("distanceFunction"));
        let policy = path.as_deref().and_then(|path| settings.distance_function(path));
        let function = named.as_ref().and_then(|named| named.as_str()).or(policy).unwrap_or_default();
        function.eq_ignore_ascii_case("euclidean")
    }

    /// Whether it is the distance of vectors that an index lists.
    pub(crate) fn is_indexed_distance(&self, settings: &Settings) -> bool {
        let Bound::VectorDistance { path: Some(path), .. } = self else { return false };
        settings.is_indexed(path)
    }

    /// The slot and the constant path that this expression reads, if it is nothing but that.
    pub(crate) fn as_path(&self) -> Option<(Slot, Vec<PathStep>)> {
        let (of, step) = match self {
            Bound::Slot(slot) => return Some((*slot, Vec::new())),
            Bound::Member(of, name) => (of, PathStep::Name(name.clone())),
            Bound::Index(of, index) => match index.constant()? {
                Value::String(name) => (of, PathStep::Name(name.to_string())),
                number => (of, PathStep::Item(usize::try_from(number.as_i64()?).ok()?)),
            },
            _ => return None,
        };
        let (slot, mut steps) = of.as_path()?;
        steps.push(step);
        Some((slot, steps))
    }
}

impl Block {
    /// Whether each document gives its rows at once and for good.
    pub(crate) fn is_streaming(&self) -> bool {
        let input_streams = match &self.input {
            Input::Once => false,
            Input::Documents { .. } => true,
            Input::Rows { block, .. } => block.is_streaming(),
        };
        let in_order_of_arrival = self.order.is_empty() && self.rank.is_none();
        input_streams && self.group.is_none() && !self.distinct && in_order_of_arrival
    }

    /// Whether documents that are alike in all that is read of them can come as one: only how many there are matters.
    pub(crate) fn merges_alike(&self) -> bool {
        let sorts = !self.order.is_empty() || self.rank.is_some();
        matches!(self.input, Input::Documents { .. }) && (self.group.is_some() || (self.distinct && !sorts))
    }

    pub(crate) fn reads_documents(&self) -> bool {
        match &self.input {
            Input::Once => false,
            Input::Documents { .. } => true,
            Input::Rows { block, .. } => block.reads_documents(),
        }
    }
}
