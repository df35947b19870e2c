//! The match language: which documents a filter is true of.
//!
//! ```text
//!   filter document ──parse──▶ Node (and, or, not, field predicate) ──matches(document)──▶ bool
//!                                └──conditions──▶ what an index could narrow
//! ```
//!
//! A filter is parsed once and looks at documents where they lie. Negations negate the whole positive
//! predicate; predicates compare within a type class only.

mod bits;
mod conditions;
mod equalities;
mod leaf;
mod operators;
mod parse;
mod schema;

use bson::RawDocument;

pub use conditions::{Bound, Condition, Narrowing};
pub(crate) use leaf::Predicate;
pub use operators::OPERATORS;
pub(crate) use parse::{parse_condition, parse_value_condition};

use crate::context::Context;
use crate::error::{MongoError, Result};
use crate::expression::{Expression, Names};
use crate::geo::NearQuery;
use crate::path::{Leaf, Path};
use crate::text::TextQuery;
use crate::values::Ref;
use schema::Schema;

/// A parsed filter.
#[derive(Debug, Clone)]
pub struct Filter {
    pub(crate) node: Node,
}

/// One condition of a filter.
#[derive(Debug, Clone)]
pub(crate) enum Node {
    And(Vec<Node>),
    Or(Vec<Node>),
    Nor(Vec<Node>),
    Not(Box<Node>),
    Field { path: Path, predicate: Predicate },
    Expression(Box<Expression>),
    Schema(Box<Schema>),
    SampleRate(f64),
    Constant(bool),
    Text(Box<TextQuery>),
}

/// What a match found on the way.
#[derive(Debug, Default)]
pub struct Details {
    /// The position in the outermost array that matched: what `$` in an update or a projection stands for.
    pub position: Option<usize>,
    /// Something failed while it was evaluated.
    pub(crate) error: Option<MongoError>,
}

impl Filter {
    /// Parses a filter. `names` are the variables that `$expr` may use.
    pub fn parse(filter: &RawDocument, names: &Names) -> Result<Filter> {
        Ok(Filter { node: parse::parse_filter(filter, names)? })
    }

    /// A filter that every document passes.
    pub fn all() -> Filter {
        Filter { node: Node::And(Vec::new()) }
    }

    /// Whether the document passes.
    pub fn matches(&self, document: &RawDocument, context: &Context<'_>) -> Result<bool> {
        self.matches_with(document, context, &mut Details::default())
    }

    /// Whether the document passes, and where in an array it did.
    pub fn matches_with(
        &self,
        document: &RawDocument,
        context: &Context<'_>,
        details: &mut Details,
    ) -> Result<bool> {
        let matched = self.node.matches(document, context, details);
        match details.error.take() {
            Some(error) => Err(error),
            None => Ok(matched),
        }
    }
}

impl Filter {
    /// How far a document is from where `$near` looks from; none if the filter has no `$near`.
    pub fn distance(&self, document: &RawDocument) -> Option<f64> {
        let (path, near) = self.node.near()?;
        let mut least = f64::INFINITY;
        path.any(document, Leaf::Whole, &mut |value, _| {
            least = least.min(value.and_then(|value| near.distance(value)).unwrap_or(f64::INFINITY));
            false
        });
        Some(least)
    }

    /// Whether an aggregation expression is part of it.
    pub fn has_expression(&self) -> bool {
        self.node.has_expression()
    }

    /// The operator in it that looks at whole documents and so finds no item of an array.
    pub(crate) fn of_whole_documents(&self) -> Option<&'static str> {
        self.node.of_whole_documents()
    }

    /// How well a document fits a text search; none if none is asked for, or if it does not.
    pub fn text_score(&self, document: &RawDocument, context: &Context<'_>) -> Option<f64> {
        self.text()?.score(document, context.text?)
    }

    /// The text search that every document has to pass.
    pub(crate) fn text(&self) -> Option<&TextQuery> {
        self.node.text()
    }

    /// Whether words are searched for anywhere in it.
    pub(crate) fn mentions_text(&self) -> bool {
        self.node.mentions_text()
    }

    /// The path of the places that are looked for by distance, and from where.
    pub(crate) fn near_path(&self) -> Option<(&str, &NearQuery)> {
        self.node.near().map(|(path, near)| (path.dotted.as_str(), near))
    }

    /// Whether what it finds comes in the order of distance.
    pub fn is_by_distance(&self) -> bool {
        self.node.near().is_some()
    }
}

impl Node {
    fn near(&self) -> Option<(&Path, &NearQuery)> {
        match self {
            Node::And(nodes) => nodes.iter().find_map(Node::near),
            Node::Field { path, predicate: Predicate::Near(near) } => Some((path, near)),
            _ => None,
        }
    }

    fn has_expression(&self) -> bool {
        match self {
            Node::And(nodes) | Node::Or(nodes) | Node::Nor(nodes) => nodes.iter().any(Node::has_expression),
            Node::Expression(_) => true,
            _ => false,
        }
    }

    fn of_whole_documents(&self) -> Option<&'static str> {
        match self {
            Node::And(nodes) | Node::Or(nodes) | Node::Nor(nodes) => {
                nodes.iter().find_map(Node::of_whole_documents)
            }
            Node::Not(node) => node.of_whole_documents(),
            Node::Expression(_) => Some("$expr"),
            Node::Schema(_) => Some("$jsonSchema"),
            _ => None,
        }
    }

    fn mentions_text(&self) -> bool {
        match self {
            Node::And(nodes) | Node::Or(nodes) => nodes.iter().any(Node::mentions_text),
            Node::Text(_) => true,
            _ => false,
        }
    }

    fn text(&self) -> Option<&TextQuery> {
        match self {
            Node::And(nodes) => nodes.iter().find_map(Node::text),
            Node::Text(query) => Some(query),
            _ => None,
        }
    }

    pub(crate) fn matches(
        &self,
        document: &RawDocument,
        context: &Context<'_>,
        details: &mut Details,
    ) -> bool {
        match self {
            Node::And(nodes) => nodes.iter().all(|node| node.matches(document, context, details)),
            Node::Or(nodes) => nodes.iter().any(|node| node.matches(document, context, details)),
            Node::Nor(nodes) => !nodes.iter().any(|node| node.apart(document, context, details)),
            Node::Not(node) => !node.apart(document, context, details),
            Node::Field { path, predicate } => {
                let leaf = if predicate.wants_whole_arrays() { Leaf::Whole } else { Leaf::Items };
                let mut found = None;
                let matched = path.any(document, leaf, &mut |value, position| {
                    let matched = predicate.matches(value, context, details);
                    if matched {
                        found = position;
                    }
                    matched
                });
                // An $elemMatch has noted the item it found; an array further out counts more.
                if matched && found.is_some() {
                    details.position = found;
                }
                matched
            }
            Node::Expression(expression) => match expression.is_true(document, context) {
                Ok(truth) => truth,
                Err(error) => {
                    details.error.get_or_insert(error);
                    false
                }
            },
            Node::Schema(schema) => schema.matches(Ref::Document(document), context, details),
            Node::SampleRate(rate) => (context.random)() < *rate,
            Node::Constant(truth) => *truth,
            Node::Text(query) => match context.text {
                Some(index) => query.score(document, index).is_some(),
                None => {
                    details.error.get_or_insert_with(|| MongoError::new(27, NO_TEXT_INDEX));
                    false
                }
            },
        }
    }

    /// Matches without telling where: negations have no position.
    fn apart(&self, document: &RawDocument, context: &Context<'_>, details: &mut Details) -> bool {
        let mut inner = Details::default();
        let matched = self.matches(document, context, &mut inner);
        if let Some(error) = inner.error {
            details.error.get_or_insert(error);
        }
        matched
    }

    /// Whether a value by itself passes: predicates are asked about it and not about a path.
    /// A condition on a value that stands in a field without a name.
    pub(crate) fn of_value(predicate: Predicate) -> Node {
        Node::Field { path: Path::new(""), predicate }
    }

    pub(crate) fn matches_value(&self, value: Ref<'_>, context: &Context<'_>, details: &mut Details) -> bool {
        match self {
            Node::And(nodes) => nodes.iter().all(|node| node.matches_value(value, context, details)),
            Node::Or(nodes) => nodes.iter().any(|node| node.matches_value(value, context, details)),
            Node::Nor(nodes) => !nodes.iter().any(|node| node.matches_value(value, context, details)),
            Node::Not(node) => !node.matches_value(value, context, details),
            Node::Field { predicate, .. } => predicate.matches(Some(value), context, details),
            Node::Constant(truth) => *truth,
            Node::SampleRate(rate) => (context.random)() < *rate,
            Node::Schema(schema) => schema.matches(value, context, details),
            Node::Expression(_) | Node::Text(_) => false,
        }
    }
}

/// What a search is told where nothing is indexed for it.
pub(crate) const NO_TEXT_INDEX: &str = "text index required for $text query";

/// A filter on one path: equal to one of these values, and there.
pub(crate) fn presence_filter(path: &str, values: Vec<crate::values::Value>) -> Filter {
    let is_there = Node::Field { path: Path::new(path), predicate: Predicate::Exists };
    Filter { node: Node::And(vec![membership_filter(path, values).node, is_there]) }
}

/// A filter on one path: equal to one of these values.
pub(crate) fn membership_filter(path: &str, values: Vec<crate::values::Value>) -> Filter {
    let predicate = Predicate::In(leaf::Membership::new(values, Vec::new()));
    Filter { node: Node::Field { path: Path::new(path), predicate } }
}
