//! Which of several ways to the documents is best: a look at the index tells how many entries each has.

use mayfly_engine::{Access, Direction, Engine, IndexName, Reliance, ValueRange};
use mayfly_sql::Plan;

use super::{
    AccessPlan, COVERING, IN_ORDER, LOOKED_UP, NO_INDEX, Planner, REVERSED, Reading, candidates::Candidate,
};
use crate::error::ApiError;

/// Entries counted to tell access paths apart: more than a page of documents is many.
const ESTIMATE_MAX: usize = 256;

/// Up to so many documents are sorted rather than walked through in order: about as many as a walk would have to look
/// at to find a page of those that pass.
const SORT_MAX: usize = 1000;

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
        if ordered.is_some_and(|access| found.is_empty() || is_direct(access)) {
            return Ok(in_order(ordered));
        }
        if found.is_empty() {
            let covers = self.covering(plan).reading != Reading::Documents;
            return Ok(if covers { COVERING } else { NO_INDEX });
        }
        // A range over all partitions is not worth it for one, unless it is small.
        let is_sure = |candidate: &Candidate| {
            !is_partition || (candidate.single && matches!(candidate.index, IndexName::Path(_)))
        };
        if let ([candidate], None) = (found, ordered)
            && is_sure(candidate)
        {
            return Ok(0);
        }
        let paths: Vec<_> = found
            .iter()
            .map(|candidate| self.index(candidate.index.clone(), candidate.ranges.clone(), Reliance::Nothing))
            .collect();
        let most = if ordered.is_some() { SORT_MAX } else { ESTIMATE_MAX };
        let estimates = engine.estimate(self.container, &paths, most).await?;
        let rank = |candidate: &Candidate| match (candidate.single, &candidate.index) {
            (_, IndexName::Composite(_)) => 0,
            (true, _) => 1,
            (false, _) => 2,
        };
        let best = found.iter().zip(&estimates).enumerate();
        let best = best.min_by_key(|(_, (candidate, estimate))| (**estimate, rank(candidate)));
        let Some((place, (candidate, estimate))) = best else { return Ok(NO_INDEX) };
        if *estimate >= most && ordered.is_some() {
            return Ok(in_order(ordered));
        }
        if *estimate >= most && !is_sure(candidate) {
            return Ok(NO_INDEX);
        }
        let looked_up = *estimate >= ESTIMATE_MAX && plan.reads_documents();
        Ok(place as u8 | if looked_up { LOOKED_UP } else { 0 })
    }
}
