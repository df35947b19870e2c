//! Vector indexes: which one tells the nearest documents, and when it pays to ask it.

use mayfly_engine::{Access, Engine, IndexAccess, Reliance};
use mayfly_sql::Plan;
use mayfly_value::path::Path;

use super::{AccessPlan, Indexes, Planner};
use crate::{error::ApiError, resource::SYSTEM_PROPERTIES};

/// A condition that leads to fewer documents than this is better than the distances of all: to compare so many takes as
/// long as a walk over some ten thousand codes.
const FEW_DOCUMENTS: usize = 1000;

/// The vector index that a query goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByVector {
    /// The generation of the index.
    pub epoch: u32,
    /// The index, by its place in the policy.
    pub index: u16,
}

impl Planner<'_> {
    /// Goes by the vector index of what the rows have to be near to, if there is one and no condition leads to few
    /// documents. The walk of `access` stays, for a filter that refuses too many of the nearest.
    pub(super) async fn by_vector(
        &self,
        engine: &Engine,
        plan: &Plan,
        access: &mut AccessPlan,
    ) -> Result<(), ApiError> {
        let Some((by, path)) = self.vector_index(plan) else { return Ok(()) };
        if let Access::Index(walk) = &access.access {
            let part = IndexAccess { also: Vec::new(), relies: Reliance::Nothing, ..walk.clone() };
            let estimates = engine.estimate(self.container, &[part], FEW_DOCUMENTS).await?;
            if estimates.first().is_some_and(|entries| *entries < FEW_DOCUMENTS) {
                return Ok(());
            }
        }
        access.by_vector = Some(by);
        access.indexes = Indexes { vectors: vec![path], ..Indexes::default() };
        Ok(())
    }

    /// The index of what the rows have to be near to, and its path: nothing that the server adds or computes.
    fn vector_index(&self, plan: &Plan) -> Option<(ByVector, String)> {
        let names = plan.nearest_path()?;
        let first = names.first()?.as_str();
        // A document of a collection is not what is stored, but what is shown of it.
        if SYSTEM_PROPERTIES.contains(&first)
            || self.computed.contains(&first)
            || self.container.is_collection()
        {
            return None;
        }
        let (index, epoch) = (self.container.vector_index(names)?, self.container.whole_index()?);
        let path = Path::from_segments(names.iter().map(String::as_str))?;
        Some((ByVector { epoch, index }, path.to_string()))
    }
}
