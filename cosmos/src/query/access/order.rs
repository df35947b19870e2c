//! ORDER BY from an index: which order an index has, and which one a container must have an index for.

use mayfly_engine::{Access, Across, Direction, IndexAccess, IndexName, IndexingMode, Reliance, ValueRange};
use mayfly_sql::{Paging, PathStep, Plan, ast::Direction as Sort};
use mayfly_value::keycode::PathStep as KeyStep;

use super::{
    AccessPlan, Planner, names,
    specs::{parts_spec, path_spec},
};
use crate::error::ApiError;

impl Planner<'_> {
    /// Refuses an order that no index of the container has, as the service does.
    pub(super) fn check_order(&self) -> Result<(), ApiError> {
        let refused = |text: &str| {
            let errors = serde_json::json!({ "Errors": [text] });
            Err(ApiError::bad_request(format!("Message: {errors}")))
        };
        match &self.hints.order[..] {
            [] => Ok(()),
            [(path, _)] => {
                let steps: Vec<_> = path
                    .iter()
                    .map(|step| match step {
                        PathStep::Name(name) => KeyStep::Property(name),
                        PathStep::Item(_) => KeyStep::Item,
                    })
                    .collect();
                let always = matches!(&steps[..], [KeyStep::Property("id" | "_ts")]);
                let has_index = self.container.definition().indexing.mode != IndexingMode::None;
                match self.container.is_indexed(&steps) || (always && has_index) {
                    true => Ok(()),
                    false => {
                        refused("The index path corresponding to the specified order-by item is excluded.")
                    }
                }
            }
            order => match self.container.composite_indexes().any(|parts| walks(&parts, order).is_some()) {
                true => Ok(()),
                false => refused(
                    "The order by query does not have a corresponding composite index that it can be served from.",
                ),
            },
        }
    }

    /// A walk in the order of the query.
    pub(super) fn ordered(&self, plan: &Plan) -> Option<AccessPlan> {
        if plan.paging() != Paging::Sorted || self.hints.order.is_empty() {
            return None;
        }
        if let [(path, sort)] = &self.hints.order[..]
            && matches!(&path[..], [PathStep::Name(name)] if name == "_ts")
        {
            // The writes of a slot are numbered by it alone: no number says where another slot would go on.
            let [_slot] = self.scope.slots(self.container)[..] else { return None };
            let direction = direction(*sort);
            return Some(AccessPlan::new(Access::Writes(self.scope.clone()), direction, true));
        }
        let epoch = self.container.complete_index()?;
        self.ordered_by_path(plan, epoch).or_else(|| self.ordered_by_composite(plan, epoch))
    }

    /// An index whose order is wanted, over all slots.
    fn index_in_order(&self, index: IndexName, ranges: Vec<ValueRange>, relies: Reliance) -> IndexAccess {
        IndexAccess { across: Across::InOrder, ..self.index(index, ranges, relies) }
    }

    pub(super) fn ordered_by_path(&self, plan: &Plan, epoch: u32) -> Option<AccessPlan> {
        let [(path, sort)] = &self.hints.order[..] else { return None };
        let encoded = self.index_path(path, false)?;
        let own = self.ranges_at(path).filter(|(_, hints)| {
            !hints.iter().filter_map(|place| self.hints.all.get(*place)).all(|hint| hint.beyond_scalars)
        });
        // Without a value in the filter's ranges a document is not asked for, so those that lack one do not matter.
        let (ranges, relies) = match own {
            Some((ranges, _)) => (ranges.ranges, Reliance::Complete { epoch }),
            None => (vec![ValueRange::all()], self.covered(&encoded, epoch)?),
        };
        let names: Vec<String> = names(path)?.into_iter().map(str::to_owned).collect();
        let index = self.index_in_order(IndexName::Path(encoded), ranges, relies);
        let mut access = AccessPlan::new(Access::Index(index), direction(*sort), true);
        access.indexes.single.push(path_spec(&names));
        access.entry_paths = vec![names.clone()];
        self.cover(plan, &mut access, vec![names]);
        Some(access)
    }

    pub(super) fn ordered_by_composite(&self, plan: &Plan, epoch: u32) -> Option<AccessPlan> {
        let composites = self.container.composite_indexes().enumerate();
        let mut usable = composites.filter_map(|(number, parts)| {
            let (candidate, fixed) = self.composite(number as u16, &parts, 0)?;
            // The parts that the filter fixes do not change the order.
            let order = &self.hints.order;
            let direction = walks(&parts, order).or_else(|| walks(parts.get(fixed..)?, order))?;
            Some((candidate, direction, parts_spec(&parts)))
        });
        let (candidate, direction, spec) = usable.next()?;
        let index = self.index_in_order(candidate.index, candidate.ranges, Reliance::Complete { epoch });
        let mut access = AccessPlan::new(Access::Index(index), direction, true);
        access.indexes.composite.push(spec);
        access.entry_paths = candidate.paths.clone();
        self.cover(plan, &mut access, candidate.paths);
        Some(access)
    }
}

fn direction(sort: Sort) -> Direction {
    match sort {
        Sort::Ascending => Direction::Forward,
        Sort::Descending => Direction::Reverse,
    }
}

/// Which way the parts of a composite index have to be walked for an order, if they are the same paths.
fn walks(parts: &[(&[String], bool)], order: &[(Vec<PathStep>, Sort)]) -> Option<Direction> {
    let mut way = None;
    if parts.len() != order.len() {
        return None;
    }
    for ((segments, descending), (path, sort)) in parts.iter().zip(order) {
        if !names(path)?.iter().eq(segments.iter()) {
            return None;
        }
        let this = match *descending == (*sort == Sort::Descending) {
            true => Direction::Forward,
            false => Direction::Reverse,
        };
        if way.is_some_and(|way| way != this) {
            return None;
        }
        way = Some(this);
    }
    way
}
