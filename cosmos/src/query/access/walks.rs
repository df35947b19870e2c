//! The walks themselves: over documents, over a part of an index, over an index that holds all that the query reads.

use mayfly_engine::{Access, Across, Direction, IndexAccess, IndexName, Lookup, Reliance, ValueRange};
use mayfly_sql::{PathStep, Plan, hints::Summary};

use super::{
    AccessPlan, Indexes, LOOKED_UP, Planner, Reading,
    candidates::Candidate,
    names,
    specs::{hint_spec, parts_spec, path_spec},
    words::text_spec,
};
use crate::query::spans;

impl Planner<'_> {
    /// The walk over all documents of the scope.
    pub(super) fn documents(&self) -> AccessPlan {
        AccessPlan::new(Access::Records(self.scope.clone()), Direction::Forward, false)
    }

    pub(super) fn index(&self, index: IndexName, ranges: Vec<ValueRange>, relies: Reliance) -> IndexAccess {
        let (also, within, across) = (Vec::new(), self.scope.clone(), Across::SlotBySlot);
        IndexAccess { index, ranges, also, within, relies, across }
    }

    /// The walk of a candidate.
    pub(super) fn by_candidate(&self, plan: &Plan, candidate: Candidate, choice: u8) -> AccessPlan {
        let mut index = self.index(candidate.index.clone(), candidate.ranges, Reliance::Nothing);
        let mut served = candidate.hints.clone();
        let mut indexes = Indexes::default();
        if choice & LOOKED_UP != 0 {
            for (place, hint) in
                self.hints.all.iter().enumerate().filter(|(n, _)| !candidate.hints.contains(n))
            {
                let path = self.index_path(&hint.path, hint.of_item);
                if let (Some(path), Some((value, true))) = (path, spans::one(&hint.spans)) {
                    index.also.push(Lookup { index: IndexName::Path(path), value });
                    served.extend(hint.exact.then_some(place));
                    indexes.single.extend(hint_spec(hint));
                }
            }
        }
        if choice & LOOKED_UP != 0 {
            let words = self.other_words(&index);
            index.also.extend(words);
        }
        let is_exact = self.hints.exact
            && candidate.exact
            && (0..self.hints.all.len()).all(|place| served.contains(&place));
        match &candidate.index {
            IndexName::Path(_) => {
                let hints = candidate.hints.iter().filter_map(|place| self.hints.all.get(*place));
                indexes.single.extend(hints.filter_map(hint_spec));
            }
            IndexName::Composite(number) => {
                let spec = self.container.composite_indexes().nth(usize::from(*number));
                indexes.composite.extend(spec.map(|parts| parts_spec(&parts)));
            }
            IndexName::Text(number) => indexes.texts.extend(text_spec(self.container, *number)),
        }
        indexes.single.sort();
        indexes.single.dedup();
        let mut access = AccessPlan::new(Access::Index(index), Direction::Forward, false);
        access.indexes = indexes;
        let of_item = candidate.hints.iter().any(|place| self.hints.all[*place].of_item);
        if !of_item && !candidate.exact {
            access.entry_paths = candidate.paths.clone();
        }
        if let Some(epoch) = self.container.complete_index() {
            match &self.hints.summary {
                Some(Summary::Count) if is_exact => access.reading = Reading::EntryCount,
                Some(Summary::Lowest(path) | Summary::Highest(path)) if is_exact && !of_item => {
                    let held = names(path).is_some_and(
                        |names| matches!(&candidate.paths[..], [one] if one.iter().eq(names.iter())),
                    );
                    let alone = matches!(&access.access, Access::Index(index) if index.also.is_empty());
                    match held && alone && matches!(candidate.index, IndexName::Path(_)) {
                        true => access.reading = Reading::Ends(candidate.paths),
                        false => self.cover(plan, &mut access, candidate.paths),
                    }
                }
                _ if !of_item => self.cover(plan, &mut access, candidate.paths),
                _ => {}
            }
            if let (Access::Index(index), true) = (&mut access.access, access.reading != Reading::Documents) {
                index.relies = Reliance::Complete { epoch };
            }
            // What the filter also lets through is in no index, so there must be no such document.
            if let (Access::Index(index), true) = (&mut access.access, candidate.beyond_scalars)
                && let IndexName::Path(path) = &index.index
                && let Some(relies) = self.covered(path, epoch)
            {
                index.relies = relies;
            }
        }
        access
    }

    /// The walk over all documents of the scope, or over an index that holds what the query reads of them.
    pub(super) fn covering(&self, plan: &Plan) -> AccessPlan {
        let documents = self.documents();
        if self.hints.summary == Some(Summary::Count) && self.hints.exact && self.hints.all.is_empty() {
            return AccessPlan { reading: Reading::DocumentCount, ..documents };
        }
        if !self.scope.is_all() || self.scope.slots(self.container).len() != 1 || !plan.reads_documents() {
            return documents;
        }
        let (Some(epoch), Some([path])) = (self.container.complete_index(), self.hints.reads.as_deref())
        else {
            return documents;
        };
        let Some(encoded) = self.index_path(path, false) else { return documents };
        let (Some(relies), Some(names)) = (self.covered(&encoded, epoch), names(path)) else {
            return documents;
        };
        let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
        let index = self.index(IndexName::Path(encoded), vec![ValueRange::all()], relies);
        let mut access = AccessPlan::new(Access::Index(index), Direction::Forward, false);
        access.indexes.single.push(path_spec(&names));
        let is_end = matches!(&self.hints.summary, Some(Summary::Lowest(_) | Summary::Highest(_)));
        access.reading = match is_end && self.hints.exact && self.hints.all.is_empty() {
            true => Reading::Ends(vec![names]),
            false => Reading::Entries(vec![names]),
        };
        access
    }

    /// What may be relied on if every document has an entry with its whole value at a path.
    pub(super) fn covered(&self, path: &[u8], epoch: u32) -> Option<Reliance> {
        match (self.resumed, self.container.covers(path)) {
            (true, _) => Some(Reliance::Complete { epoch }),
            (false, true) => Some(Reliance::Covered { epoch }),
            (false, false) => None,
        }
    }

    /// Takes the entries for the documents, if they hold all that the query reads.
    pub(super) fn cover(&self, plan: &Plan, access: &mut AccessPlan, paths: Vec<Vec<String>>) {
        let Some(reads) = &self.hints.reads else { return };
        if paths.is_empty() {
            return;
        }
        let is_held = |read: &Vec<PathStep>| {
            names(read).is_some_and(|names| paths.iter().any(|path| path.iter().eq(names.iter())))
        };
        let apart = |path: &Vec<String>| {
            !paths.iter().any(|other| other.len() > path.len() && other.starts_with(path))
        };
        if plan.reads_documents() && reads.iter().all(is_held) && paths.iter().all(apart) {
            access.reading = Reading::Entries(paths);
        }
    }
}
