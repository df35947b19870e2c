//! Hints: what a query says about the documents it needs, for whoever looks for them.
//!
//! `WHERE c.a = 1 AND STARTSWITH(c.b, "x") AND f(c.d)` lets only documents through that have `a = 1` and a
//! string beginning with `x` in `b`. An index may be asked for those; the filter itself is evaluated on every
//! document in any case, so a hint that is not used, or used loosely, changes no answer. Where hints say all
//! that the filter says, and an index holds all that the query reads, the documents need not be read at all.
//!
//! An index that stores numbers as doubles must widen the bounds it takes from a hint where an integer does
//! not fit a double: values are compared exactly here.

use crate::aggregate::Aggregate;
use crate::ast::{BinaryOp, Direction, UnaryOp};
use crate::bind::BoundQuery;
use crate::context::Context;
use crate::eval::{Env, eval};
use crate::plan::{Block, Bound, Input, LikePattern, Over, PathStep, SortDirection};
use crate::value::{Kind, Value};

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
    /// Collects what a condition says; tells whether that is all it says.
    fn collect(&self, bound: &Bound, hints: &mut Vec<Hint>) -> bool {
        if let Bound::And(operands) = bound {
            let mut exact = true;
            for operand in operands {
                exact &= self.collect(operand, hints);
            }
            return exact;
        }
        match self.hint(bound) {
            Some(hint) => {
                let exact = hint.exact;
                hints.push(hint);
                exact
            }
            None => bound.constant().is_some_and(Value::is_true),
        }
    }

    fn hint(&self, bound: &Bound) -> Option<Hint> {
        let exactly = |path, spans| Some(Hint { path, of_item: false, spans, exact: true });
        match bound {
            Bound::Binary(operator, a, b) => match (self.path(a), constant(b)) {
                (Some(path), Some(value)) => exactly(path, comparison(*operator, &value)?),
                _ => exactly(self.path(b)?, comparison(mirrored(*operator)?, &constant(a)?)?),
            },
            Bound::In { negated: false, value, list } => {
                let values: Option<Vec<_>> = list.iter().map(constant).collect();
                let defined = values?.into_iter().filter(Value::is_defined).map(Span::Value).collect();
                exactly(self.path(value)?, defined)
            }
            Bound::Between { negated: false, operands } => {
                let [value, low, high] = &**operands;
                let (low, high) = (scalar(&constant(low)?)?, scalar(&constant(high)?)?);
                let spans = match low.kind() == high.kind() {
                    true => {
                        vec![Span::Between { low: Bounded::Inclusive(low), high: Bounded::Inclusive(high) }]
                    }
                    // No value compares with both.
                    false => Vec::new(),
                };
                exactly(self.path(value)?, spans)
            }
            Bound::Like { negated: false, value, pattern } => match &**pattern {
                LikePattern::Fixed(pattern) => {
                    let spans = vec![Span::StartsWith(pattern.prefix())];
                    Some(Hint { path: self.path(value)?, of_item: false, spans, exact: false })
                }
                LikePattern::Computed(..) => None,
            },
            Bound::Or(operands) => self.any_of(operands),
            // A filter that is a property alone, as in `WHERE c.active AND NOT c.deleted`.
            Bound::Member(..) | Bound::Index(..) => exactly(self.path(bound)?, is(true)),
            Bound::Unary(UnaryOp::Not, operand) => exactly(self.path(operand)?, is(false)),
            Bound::Call { function, args } => self.call(function.name, args),
            _ => None,
        }
    }

    fn call(&self, name: &str, args: &[Bound]) -> Option<Hint> {
        let kind = match name {
            "IS_NULL" => Some(Kind::Null),
            "IS_BOOL" => Some(Kind::Bool),
            "IS_NUMBER" => Some(Kind::Number),
            "IS_STRING" => Some(Kind::String),
            _ => None,
        };
        let (path, of_item, spans) = match (name, kind, args) {
            (_, Some(kind), [value]) => (self.path(value)?, false, vec![Span::Kind(kind)]),
            ("ARRAY_CONTAINS", _, [Bound::Constant(Value::Array(array)), value]) => {
                (self.path(value)?, false, array.iter().map(Span::Value).collect())
            }
            ("ARRAY_CONTAINS", _, [array, Bound::Constant(value)]) => {
                (self.path(array)?, true, vec![Span::Value(scalar(value)?)])
            }
            // With a third argument the case may not matter.
            ("STARTSWITH", _, [value, prefix]) => {
                let prefix = prefix.constant()?.as_str()?.to_owned();
                (self.path(value)?, false, vec![Span::StartsWith(prefix)])
            }
            ("STRINGEQUALS", _, [value, Bound::Constant(text)]) if text.as_str().is_some() => {
                (self.path(value)?, false, vec![Span::Value(text.clone())])
            }
            _ => return None,
        };
        Some(Hint { path, of_item, spans, exact: true })
    }

    /// `c.a = 1 OR c.a > 7`: values in one span or the other, if all are about one path.
    fn any_of(&self, operands: &[Bound]) -> Option<Hint> {
        let mut all: Option<Hint> = None;
        for operand in operands {
            let hint = self.hint(operand)?;
            match &mut all {
                None => all = Some(hint),
                Some(all) if all.path == hint.path && !all.of_item && !hint.of_item => {
                    all.spans.extend(hint.spans);
                    all.exact &= hint.exact;
                }
                Some(_) => return None,
            }
        }
        all
    }

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

    /// Collects the paths that a block reads; false if it reads a whole document.
    fn block_reads(&self, block: &Block, reads: &mut Vec<Vec<PathStep>>) -> bool {
        let inner = match &block.input {
            Input::Rows { block, .. } => self.block_reads(block, reads),
            Input::Once | Input::Documents { .. } => true,
        };
        let sources = block.sources.iter().all(|source| {
            match (self.query.document_paths.get(&source.slot), &source.over) {
                (Some(path), _) => {
                    // A source that is missing gives no rows, so it is read.
                    reads.extend((!path.is_empty()).then(|| path.clone()));
                    true
                }
                (None, Over::Value(bound)) => self.reads(bound, reads),
                (None, Over::Rows(block)) => self.block_reads(block, reads),
            }
        });
        let group = block.group.iter().all(|group| {
            group.keys.iter().all(|(key, _)| self.reads(key, reads))
                && group.aggregates.iter().all(|call| self.reads(&call.argument, reads))
        });
        inner
            && sources
            && group
            && block.rank.is_none()
            && block.filter.iter().all(|filter| self.reads(filter, reads))
            && block.order.iter().all(|sort| self.reads(&sort.key, reads))
            && self.reads(&block.project, reads)
    }

    fn reads(&self, bound: &Bound, reads: &mut Vec<Vec<PathStep>>) -> bool {
        if let Some(path) = self.query.document_path(bound) {
            let is_part = !path.is_empty();
            if is_part && !reads.contains(&path) {
                reads.push(path);
            }
            return is_part;
        }
        let mut all = |bounds: &[&Bound]| bounds.iter().all(|bound| self.reads(bound, reads));
        match bound {
            Bound::Constant(_) | Bound::Slot(_) => true,
            Bound::Member(of, _) | Bound::Unary(_, of) => all(&[of]),
            Bound::Index(a, b) | Bound::Binary(_, a, b) | Bound::Coalesce(a, b) => all(&[a, b]),
            Bound::Array(items) | Bound::And(items) | Bound::Or(items) => {
                items.iter().all(|item| self.reads(item, reads))
            }
            Bound::Object(members) => members.iter().all(|(_, member)| self.reads(member, reads)),
            Bound::Conditional(three) => three.iter().all(|part| self.reads(part, reads)),
            Bound::Between { operands, .. } => operands.iter().all(|part| self.reads(part, reads)),
            Bound::In { value, list, .. } => {
                self.reads(value, reads) && list.iter().all(|item| self.reads(item, reads))
            }
            Bound::Like { value, pattern, .. } => {
                let pattern = match &**pattern {
                    LikePattern::Fixed(_) => true,
                    LikePattern::Computed(pattern, _) => self.reads(pattern, reads),
                };
                pattern && self.reads(value, reads)
            }
            Bound::Call { args, .. } => args.iter().all(|arg| self.reads(arg, reads)),
            // Whatever the name stands for is read where it is given.
            Bound::Let { parts, .. } => parts.iter().all(|part| self.reads(part, reads)),
            // Both may look at more than their arguments.
            Bound::VectorDistance { .. } | Bound::Udf { .. } => false,
            Bound::Subquery(_, block) => self.block_reads(block, reads),
        }
    }
}

fn is(value: bool) -> Vec<Span> {
    vec![Span::Value(Value::Bool(value))]
}

fn comparison(operator: BinaryOp, value: &Value<'static>) -> Option<Vec<Span>> {
    let between = |low, high| Some(vec![Span::Between { low, high }]);
    match operator {
        // Nothing equals undefined.
        BinaryOp::Equal => Some(value.is_defined().then(|| Span::Value(value.clone())).into_iter().collect()),
        BinaryOp::Less => between(Bounded::Open, Bounded::Exclusive(scalar(value)?)),
        BinaryOp::LessOrEqual => between(Bounded::Open, Bounded::Inclusive(scalar(value)?)),
        BinaryOp::Greater => between(Bounded::Exclusive(scalar(value)?), Bounded::Open),
        BinaryOp::GreaterOrEqual => between(Bounded::Inclusive(scalar(value)?), Bounded::Open),
        _ => None,
    }
}

/// The value, if `<` means something for it and an index lists it.
fn scalar(value: &Value<'static>) -> Option<Value<'static>> {
    match value {
        Value::Undefined | Value::Array(_) | Value::Object(_) => None,
        value => Some(value.clone()),
    }
}

/// The value of an expression that is the same for all documents: a constant, or arithmetic with constants.
fn constant(bound: &Bound) -> Option<Value<'static>> {
    fn is_constant(bound: &Bound) -> bool {
        match bound {
            Bound::Constant(_) => true,
            Bound::Unary(_, of) => is_constant(of),
            Bound::Binary(_, a, b) => is_constant(a) && is_constant(b),
            _ => false,
        }
    }
    if !is_constant(bound) {
        return None;
    }
    let context = Context::new(0, 0);
    eval(bound, &mut Env::new(0, &context)).ok().map(Value::into_owned)
}

/// The operator that says the same with its operands exchanged.
fn mirrored(operator: BinaryOp) -> Option<BinaryOp> {
    Some(match operator {
        BinaryOp::Equal => BinaryOp::Equal,
        BinaryOp::Less => BinaryOp::Greater,
        BinaryOp::LessOrEqual => BinaryOp::GreaterOrEqual,
        BinaryOp::Greater => BinaryOp::Less,
        BinaryOp::GreaterOrEqual => BinaryOp::LessOrEqual,
        _ => return None,
    })
}
