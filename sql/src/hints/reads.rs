//! Which paths of a document a query reads.

use super::Finder;
use crate::plan::{Block, Bound, Input, LikePattern, Over, PathStep};

impl Finder<'_> {
    /// Collects the paths that a block reads; false if it reads a whole document.
    pub(super) fn block_reads(&self, block: &Block, reads: &mut Vec<Vec<PathStep>>) -> bool {
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

    pub(super) fn reads(&self, bound: &Bound, reads: &mut Vec<Vec<PathStep>>) -> bool {
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
            Bound::Call { args, .. } | Bound::FullText { args, .. } => {
                args.iter().all(|arg| self.reads(arg, reads))
            }
            // Whatever the name stands for is read where it is given.
            Bound::Let { parts, .. } => parts.iter().all(|part| self.reads(part, reads)),
            // Both may look at more than their arguments.
            Bound::VectorDistance { .. } | Bound::Udf { .. } => false,
            Bound::Subquery(_, block) => self.block_reads(block, reads),
        }
    }
}
