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
        let Some(path) = plan.nearest_path() else { return Ok(()) };
        let (Some(index), Some(epoch)) = (self.vector_index(path), self.container.whole_index()) else {
            return Ok(());
        };
        if let Access::Index(walk) = &access.access {
            let part = IndexAccess { also: Vec::new(), relies: Reliance::Nothing, ..walk.clone() };
            let estimates = engine.estimate(self.container, &[part], FEW_DOCUMENTS).await?;
            if estimates.first().is_some_and(|entries| *entries < FEW_DOCUMENTS) {
                return Ok(());
            }
        }
        access.by_vector = Some(ByVector { epoch, index });
        access.indexes = Indexes { vectors: vector_spec(path).into_iter().collect(), ..Indexes::default() };
        Ok(())
    }

    /// The index of the vectors at a path: nothing that the server adds or computes.
    pub(super) fn vector_index(&self, path: &[String]) -> Option<u16> {
        let first = path.first()?.as_str();
        // A document of a collection is not what is stored, but what is shown of it.
        let is_stored = !SYSTEM_PROPERTIES.contains(&first)
            && !self.computed.contains(&first)
            && !self.container.is_collection();
        self.container.vector_index(path).filter(|_| is_stored)
    }
}

/// A vector index as explanations name it.
pub(super) fn vector_spec(path: &[String]) -> Option<String> {
    Path::from_segments(path.iter().map(String::as_str)).map(|path| path.to_string())
}
