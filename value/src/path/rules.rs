//! Indexing rules: which leaves of a document the patterns of a policy include.
//!
//! The patterns become a trie. A walk over a document carries a `RuleCursor` down with it, so each step
//! costs one lookup among the patterns' own segments, and nothing once no pattern lies deeper.
//!
//! Precedence: the pattern that matches most segments decides; at the same depth `/?` beats `/*`; if one
//! pattern is both included and excluded, it is excluded. A leaf that no pattern covers is not included.

use super::pattern::{PathPattern, PatternKind, PatternSegment};
use crate::keycode::PathStep;

/// The included and excluded patterns of one policy, ready for matching.
#[derive(Debug, Clone)]
pub struct PathRules {
    /// Never empty; the first is the root.
    nodes: Vec<Node>,
}

/// Everything the patterns say about one place.
#[derive(Debug, Clone, Default)]
struct Node {
    /// What a `/?` here decides.
    scalar: Option<bool>,
    /// What a `/*` here decides.
    subtree: Option<bool>,
    /// Sorted by name.
    properties: Vec<(String, u32)>,
    item: Option<u32>,
    /// Some pattern here or below includes something.
    includes_below: bool,
}

impl PathRules {
    /// Rules from the patterns of an indexing policy.
    pub fn new(included: impl AsRef<[PathPattern]>, excluded: impl AsRef<[PathPattern]>) -> PathRules {
        let mut rules = PathRules { nodes: vec![Node::default()] };
        for (patterns, decision) in [(included.as_ref(), true), (excluded.as_ref(), false)] {
            for pattern in patterns {
                rules.add(pattern, decision);
            }
        }
        // Children come after their parents, so one pass backwards sees every child first.
        for index in (0..rules.nodes.len()).rev() {
            let includes_below = rules.nodes.get(index).is_some_and(|node| {
                let own = node.scalar == Some(true) || node.subtree == Some(true);
                own || node.children().any(|child| rules.node(child).is_some_and(|node| node.includes_below))
            });
            if let Some(node) = rules.nodes.get_mut(index) {
                node.includes_below = includes_below;
            }
        }
        rules
    }

    /// The policy that includes everything, system properties as well.
    pub fn all() -> PathRules {
        PathRules { nodes: vec![Node { subtree: Some(true), includes_below: true, ..Node::default() }] }
    }

    /// Whether some leaf may be included.
    pub fn include_some(&self) -> bool {
        self.nodes.first().is_some_and(|root| root.includes_below)
    }

    /// Whether the leaf at `path` is included.
    pub fn decide(&self, path: &[PathStep<'_>]) -> bool {
        let cursor = path.iter().fold(self.root(), |cursor, step| match step {
            PathStep::Property(name) => cursor.property(name),
            PathStep::Item => cursor.item(),
        });
        cursor.includes_leaf()
    }

    /// A cursor at the document itself.
    pub fn root(&self) -> RuleCursor<'_> {
        RuleCursor { rules: self, node: None, inherited: false }.at(self.nodes.first())
    }

    fn node(&self, index: u32) -> Option<&Node> {
        self.nodes.get(index as usize)
    }

    fn add(&mut self, pattern: &PathPattern, decision: bool) {
        let mut at = 0;
        for segment in pattern.segments() {
            at = self.child(at, segment);
        }
        if let Some(node) = self.nodes.get_mut(at as usize) {
            match pattern.kind() {
                PatternKind::Scalar => node.scalar = Some(decision),
                PatternKind::Subtree => node.subtree = Some(decision),
            }
        }
    }

    /// The child for a segment, made if it is not there yet.
    fn child(&mut self, parent: u32, segment: &PatternSegment) -> u32 {
        let next = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        let Some(node) = self.nodes.get_mut(parent as usize) else { return parent };
        let child = match segment {
            PatternSegment::Item => *node.item.get_or_insert(next),
            PatternSegment::Property(name) => match node.search(name) {
                Ok(found) => found,
                Err(place) => {
                    node.properties.insert(place, (name.clone(), next));
                    next
                }
            },
        };
        if child == next {
            self.nodes.push(Node::default());
        }
        child
    }
}

impl Node {
    /// The child of that name, or where it would have to stand.
    fn search(&self, name: &str) -> Result<u32, usize> {
        let place = self.properties.partition_point(|(other, _)| other.as_str() < name);
        match self.properties.get(place) {
            Some((other, child)) if other == name => Ok(*child),
            _ => Err(place),
        }
    }

    fn children(&self) -> impl Iterator<Item = u32> {
        self.properties.iter().map(|(_, child)| *child).chain(self.item)
    }
}

/// A place in a document, as the rules see it. Cheap to copy; moving it allocates nothing.
#[derive(Debug, Clone, Copy)]
pub struct RuleCursor<'r> {
    rules: &'r PathRules,
    /// The patterns that go through this place; none if all of them were left behind.
    node: Option<&'r Node>,
    /// What the deepest `/*` on the way here decided.
    inherited: bool,
}

impl<'r> RuleCursor<'r> {
    /// The place of a property of the object here.
    pub fn property(self, name: &str) -> RuleCursor<'r> {
        let child = self.node.and_then(|node| node.search(name).ok());
        self.at(child.and_then(|child| self.rules.node(child)))
    }

    /// The place of the items of the array here.
    pub fn item(self) -> RuleCursor<'r> {
        let child = self.node.and_then(|node| node.item);
        self.at(child.and_then(|child| self.rules.node(child)))
    }

    /// Whether a leaf at this place is included.
    pub fn includes_leaf(self) -> bool {
        self.node.and_then(|node| node.scalar).unwrap_or(self.inherited)
    }

    /// Whether anything at or below this place can be included; if not, the subtree can be skipped.
    pub fn may_include(self) -> bool {
        self.inherited || self.node.is_some_and(|node| node.includes_below)
    }

    fn at(self, node: Option<&'r Node>) -> RuleCursor<'r> {
        let inherited = node.and_then(|node| node.subtree).unwrap_or(self.inherited);
        RuleCursor { node, inherited, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(included: &[&str], excluded: &[&str]) -> PathRules {
        let parse = |texts: &[&str]| -> Vec<PathPattern> {
            texts.iter().map(|text| PathPattern::parse(text).unwrap()).collect()
        };
        PathRules::new(parse(included), parse(excluded))
    }

    /// Steps of a path like `a/[]/b`.
    #[track_caller]
    fn check(rules: &PathRules, path: &str, included: bool) {
        let step = |name| if name == "[]" { PathStep::Item } else { PathStep::Property(name) };
        let steps: Vec<_> = path.split('/').map(step).collect();
        assert_eq!(rules.decide(&steps), included, "{path}");
    }

    #[test]
    fn the_default_policy_leaves_out_only_the_etag() {
        let rules = rules(&["/*"], &["/\"_etag\"/?"]);
        check(&rules, "a", true);
        check(&rules, "a/[]/b", true);
        check(&rules, "_etag", false);
        check(&rules, "_etag/a", true);
        check(&rules, "a/_etag", true);
    }

    #[test]
    fn the_more_precise_pattern_wins() {
        let rules = rules(&["/a/b/*", "/*", "/x/?"], &["/a/*", "/a/b/c/?", "/x/*"]);
        check(&rules, "q", true);
        check(&rules, "a", false);
        check(&rules, "a/q", false);
        check(&rules, "a/b", true);
        check(&rules, "a/b/q/q", true);
        check(&rules, "a/b/c", false);
        check(&rules, "a/b/c/d", true);
        check(&rules, "x", true);
        check(&rules, "x/y", false);
    }

    #[test]
    fn array_items_need_their_own_segment_or_a_star() {
        let rules = rules(&["/tags/[]/?", "/name/?", "/list/[]/v/?"], &["/*"]);
        check(&rules, "tags/[]", true);
        check(&rules, "tags", false);
        check(&rules, "name", true);
        check(&rules, "name/[]", false);
        check(&rules, "list/[]/v", true);
        check(&rules, "list/v", false);
        check(&rules, "other", false);
    }

    #[test]
    fn subtrees_that_hold_nothing_can_be_skipped() {
        assert!(!rules(&[], &[]).root().may_include());
        let rules = rules(&["/a/b/?"], &["/*"]);
        assert!(rules.root().may_include());
        assert!(rules.root().property("a").may_include());
        assert!(!rules.root().property("a").property("c").may_include());
        assert!(!rules.root().property("b").may_include());
        assert!(!rules.root().property("a").property("b").property("c").may_include());
        assert!(PathRules::all().root().property("x").item().includes_leaf());
    }

    #[test]
    fn a_pattern_on_both_sides_is_excluded() {
        check(&rules(&["/*", "/a/?"], &["/a/?"]), "a", false);
    }
}
