//! What of a filter an index could use: bounds on paths that every matching document keeps.
//!
//! The planner narrows by these and the filter decides exactly, so a bound may be wider than the condition and
//! never narrower. Values compare within their type class; arrays are left to the index's own rules.

use super::leaf::Comparison;
use super::{Filter, Node, Predicate};
use crate::geo::Area;
use crate::values::Value;

/// A bound on the values of a path.
#[derive(Debug, Clone, PartialEq)]
pub enum Bound {
    /// One of these values. Null stands for a missing field too.
    OneOf(Vec<Value>),
    /// Greater than this (or equal), within its type class.
    Above(Value, bool),
    /// Less than this (or equal), within its type class.
    Below(Value, bool),
    /// A string that begins so.
    Prefix(String),
    /// The field is there.
    Exists,
    /// A place in an area.
    Place(Area),
}

/// A path and its bound.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition<'a> {
    /// The dotted path.
    pub path: &'a str,
    /// What its values are.
    pub bound: Bound,
}

/// All conditions hold, or one of the alternatives does.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Narrowing<'a> {
    /// Every match keeps all of these.
    pub all: Vec<Condition<'a>>,
    /// For each `$or`: every match keeps the conditions of one branch at least.
    pub any: Vec<Vec<Narrowing<'a>>>,
}

impl Filter {
    /// The bounds that every matching document keeps.
    pub fn narrowing(&self) -> Narrowing<'_> {
        let mut narrowing = Narrowing::default();
        collect(&self.node, &mut narrowing);
        narrowing
    }
}

impl Filter {
    /// The filter as conditions that all hold; none if there is more to it.
    pub fn conditions(&self) -> Option<Vec<Condition<'_>>> {
        fn leaves(node: &Node) -> Option<usize> {
            match node {
                Node::And(nodes) => nodes.iter().map(leaves).sum(),
                Node::Field { .. } => Some(1),
                _ => None,
            }
        }
        let all = self.narrowing().all;
        (leaves(&self.node)? == all.len()).then_some(all)
    }
}

fn collect<'a>(node: &'a Node, narrowing: &mut Narrowing<'a>) {
    match node {
        Node::And(nodes) => nodes.iter().for_each(|node| collect(node, narrowing)),
        Node::Or(nodes) => {
            let branches = nodes.iter().map(|node| {
                let mut branch = Narrowing::default();
                collect(node, &mut branch);
                branch
            });
            narrowing.any.push(branches.collect());
        }
        Node::Field { path, predicate } => {
            if let Some(bound) = bound(predicate) {
                narrowing.all.push(Condition { path: &path.dotted, bound });
            }
        }
        _ => {}
    }
}

fn bound(predicate: &Predicate) -> Option<Bound> {
    Some(match predicate {
        Predicate::Compare(_, Value::MinKey | Value::MaxKey) => return None,
        Predicate::Compare(Comparison::Equal, value) => Bound::OneOf(vec![value.clone()]),
        Predicate::Compare(Comparison::Greater, value) => Bound::Above(value.clone(), false),
        Predicate::Compare(Comparison::GreaterOrEqual, value) => Bound::Above(value.clone(), true),
        Predicate::Compare(Comparison::Less, value) => Bound::Below(value.clone(), false),
        Predicate::Compare(Comparison::LessOrEqual, value) => Bound::Below(value.clone(), true),
        Predicate::In(membership) if membership.patterns.is_empty() => {
            Bound::OneOf(membership.values.clone())
        }
        Predicate::Pattern(pattern) => Bound::Prefix(pattern.prefix()?.to_string()),
        Predicate::Exists => Bound::Exists,
        Predicate::Within(region) | Predicate::Intersects(region) => Bound::Place(region.area()),
        Predicate::Near(near) => Bound::Place(near.area()),
        _ => return None,
    })
}
