//! What an upsert takes from its filter: the fields that can have one value only.

use super::leaf::Comparison;
use super::{Filter, Node, Predicate};
use crate::values::Value;

impl Filter {
    /// Paths that must equal a value: from equalities, `$in` and `$all` of one value, `$and`, and an `$or` of one branch.
    pub fn equalities(&self) -> Vec<(&str, &Value)> {
        let mut found = Vec::new();
        collect(&self.node, &mut found);
        found
    }
}

fn collect<'a>(node: &'a Node, found: &mut Vec<(&'a str, &'a Value)>) {
    match node {
        Node::And(nodes) => nodes.iter().for_each(|node| collect(node, found)),
        Node::Or(nodes) if nodes.len() == 1 => nodes.iter().for_each(|node| collect(node, found)),
        Node::Field { path, predicate: Predicate::Compare(Comparison::Equal, value) } => {
            found.push((&path.dotted, value));
        }
        Node::Field { path, predicate: Predicate::In(membership) } => {
            if let ([value], []) = (membership.values.as_slice(), membership.patterns.as_slice()) {
                found.push((&path.dotted, value));
            }
        }
        _ => {}
    }
}
