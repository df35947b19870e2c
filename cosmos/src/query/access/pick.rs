//! Which of several ways to the documents is best: a look at the index tells how many entries each has.

use mayfly_engine::{Access, Direction, Engine, IndexAccess, IndexName, Reliance, ValueRange};
use mayfly_sql::{Plan, hints::Selects};
use mayfly_value::keycode::DecodedValue;

use super::{
    AccessPlan, COVERING, IN_ORDER, LOOKED_UP, NO_INDEX, Planner, REVERSED, Reading, candidates::Candidate,
};
use crate::{error::ApiError, query::part::PartFilter};

/// Entries counted to tell access paths apart: more than a page of documents is many.
const ESTIMATE_MAX: usize = 256;

/// Up to so many documents are sorted rather than walked through in order: about as many as a walk would have to look
/// at to find a page of those that pass.
const SORT_MAX: usize = 1000;

/// Reading a document by its entry takes several times as long as meeting it in a walk over all of them, and an entry is
/// several times as short: walking the index pays if at most one in so many entries is kept.
const FEW_OF: usize = 8;

impl Planner<'_> {
    /// Which of the ways is best.
    pub(super) async fn pick(
        &self,
        engine: &Engine,
        plan: &Plan,
        found: &[Candidate],
        ordered: Option<&AccessPlan>,
    ) -> Result<u8, ApiError> {
        let is_partition = !self.scope.is_all();
        let is_direct = |access: &AccessPlan| match &access.access {
            Access::Index(index) => index.ranges != [ValueRange::all()],
            _ => false,
        };
        // Walking a whole index for one partition's share of it does not pay.
        let ordered = ordered.filter(|access| !is_partition || is_direct(access));
        let in_order = |ordered: Option<&AccessPlan>| {
            let reversed = ordered.is_some_and(|access| access.direction == Direction::Reverse);
            IN_ORDER | if reversed { REVERSED } else { 0 }
        };
        let few: Vec<_> =
            found.iter().enumerate().filter(|(_, candidate)| candidate.selects == Selects::Few).collect();
        if ordered.is_some_and(|access| few.is_empty() || is_direct(access)) {
            return Ok(in_order(ordered));
        }
        if few.is_empty() {
            return self.pick_walk(engine, plan, found).await;
        }
        // A range over all partitions is not worth it for one, unless it is small.
        let is_sure = |candidate: &Candidate| {
            !is_partition || (candidate.single && !matches!(candidate.index, IndexName::Composite(_)))
        };
        if let ([(place, candidate)], None) = (&few[..], ordered)
            && is_sure(candidate)
        {
            return Ok(*place as u8);
        }
        let paths: Vec<_> = few.iter().map(|(_, candidate)| self.part(candidate)).collect();
        let most = if ordered.is_some() { SORT_MAX } else { ESTIMATE_MAX };
        let estimates = engine.estimate(self.container, &paths, most).await?;
        let rank = |candidate: &Candidate| match (candidate.single, &candidate.index) {
            (_, IndexName::Composite(_)) => 0,
            (true, _) => 1,
            (false, _) => 2,
        };
        let best = few.into_iter().zip(&estimates);
        let best = best.min_by_key(|((_, candidate), estimate)| (**estimate, rank(candidate)));
        let Some(((place, candidate), estimate)) = best else { return Ok(NO_INDEX) };
        if *estimate >= most && ordered.is_some() {
            return Ok(in_order(ordered));
        }
        if *estimate >= most && !is_sure(candidate) {
            return Ok(NO_INDEX);
        }
        let looked_up = *estimate >= ESTIMATE_MAX && plan.reads_documents();
        Ok(place as u8 | if looked_up { LOOKED_UP } else { 0 })
    }

    /// Where no condition leads to a small part of an index: walking an index pays if it holds all that the query reads,
    /// or if what its entries say about most documents is that they are not wanted.
    async fn pick_walk(&self, engine: &Engine, plan: &Plan, found: &[Candidate]) -> Result<u8, ApiError> {
        let covers = self.covering(plan).reading != Reading::Documents;
        let otherwise = if covers { COVERING } else { NO_INDEX };
        if !self.scope.is_all() {
            return Ok(otherwise);
        }
        for (place, candidate) in found.iter().enumerate() {
            let place = place as u8;
            let access = self.by_candidate(plan, candidate.clone(), place);
            if access.reading != Reading::Documents {
                return Ok(place);
            }
            let Some(filter) = PartFilter::new(plan, &access.entry_paths, self.now) else { continue };
            let keep = |values: &[DecodedValue]| filter.keeps(values);
            let (looked, kept) =
                engine.sample(self.container, &self.part(candidate), ESTIMATE_MAX, &keep).await?;
            if looked < ESTIMATE_MAX || kept * FEW_OF <= looked {
                return Ok(place);
            }
        }
        Ok(otherwise)
    }

    /// The part of its index that a candidate is about.
    fn part(&self, candidate: &Candidate) -> IndexAccess {
        self.index(candidate.index.clone(), candidate.ranges.clone(), Reliance::Nothing)
    }
}
