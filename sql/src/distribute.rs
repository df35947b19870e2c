//! Distribution: what a client has to do so that several ranges together give the answer of one query.
//!
//! Each range is sent a rewritten text and answers for its own documents; the client merges. What the client
//! needs to merge by (sort keys, group keys, parts of aggregates) is put beside the row it gives in the end,
//! in the shapes that SDKs have agreed on with the service:
//!
//! ```text
//!   ORDER BY     {"_rid": ..., "orderByItems": [{"item": key}], "payload": row}
//!   GROUP BY     {"groupByItems": [{"item": key}], "payload": row, aggregates in it as {"item": part}}
//!   aggregates   [{"item": part}] for VALUE, {"payload": {name: {"item": part}}} for a list
//!   RANK         statistics of all ranges first, then one ORDER BY query per score       hybrid.rs
//! ```
//!
//! The part of AVG is its sum and its count; MIN and MAX bring their count, so that a range without values is
//! told from one whose values spoil the aggregate.
//!
//! Holds: a rewritten text is an ordinary query once its placeholders are filled in.

mod features;
mod hybrid;
mod rewrite;

pub use features::Feature;
pub use hybrid::HybridInfo;
pub(crate) use hybrid::candidates;

use crate::aggregate::Aggregate;
use crate::ast::Direction;
use crate::bind::BoundQuery;
use crate::context::Settings;
use crate::error::EvalError;
use crate::plan::{Input, Sort, SortDirection};
use crate::plan_info::DistinctType;
use crate::query::{Plan, Query};

/// How the answers of several ranges become one.
#[derive(Debug, Clone, PartialEq)]
pub enum Distribution {
    /// By one pass over the rows of all ranges.
    Merge(MergeInfo),
    /// By fusing several rankings.
    Fuse(HybridInfo),
}

/// What the client does with the rows, in this order: merge sorted, merge groups, drop duplicates, count, skip
/// and take.
#[derive(Debug, Clone, PartialEq)]
pub struct MergeInfo {
    /// DISTINCT.
    pub distinct: DistinctType,
    /// TOP.
    pub top: Option<u64>,
    /// OFFSET.
    pub offset: Option<u64>,
    /// LIMIT.
    pub limit: Option<u64>,
    /// The directions of the sort keys.
    pub order_by: Vec<Direction>,
    /// The texts of the sort keys.
    pub order_by_expressions: Vec<String>,
    /// The texts of the group keys.
    pub group_by_expressions: Vec<String>,
    /// The aggregates of SELECT VALUE.
    pub aggregates: Vec<Aggregate>,
    /// The members of a select list that is grouped, and the aggregates that some of them are.
    pub group_by_aliases: Vec<(String, Option<Aggregate>)>,
    /// The text for each range; empty if it is the text that was asked.
    pub rewritten: String,
    /// Whether it is SELECT VALUE.
    pub has_select_value: bool,
    /// Whether the rows are to be counted, and the name of the count; empty for SELECT VALUE.
    pub distinct_count: Option<String>,
    /// Whether ranges give their rows by score, so that the client has to sort them all.
    pub non_streaming: bool,
}

impl Query {
    /// How several ranges answer this query together; `plan` is its own. An error if they cannot.
    pub fn distribute(&self, plan: &Plan, settings: &Settings) -> Result<Distribution, EvalError> {
        let (tree, bound) = (self.tree(), plan.bound());
        if bound.block.rank.is_some() {
            return hybrid::distribute(tree, bound, settings).map(Distribution::Fuse);
        }
        if let Some(info) = rewrite::distinct_count(tree) {
            return Ok(Distribution::Merge(info));
        }
        if let Input::Rows { block, .. } = &bound.block.input
            && !block.is_streaming()
        {
            let feature = "A subquery in FROM that groups, aggregates or removes duplicates over several partition key ranges";
            return Err(EvalError::Unsupported { feature: feature.into() });
        }
        rewrite::distribute(tree, bound, settings).map(Distribution::Merge)
    }

    /// The text of a sorted query for one range, without its filter; none if this is another query. Clients
    /// resume a sorted query with a further condition in its filter, which makes it no other query.
    pub fn without_resume_filter(&self) -> Option<String> {
        rewrite::without_resume_filter(self.tree())
    }
}

impl Distribution {
    /// Whether the client has nothing to do but pass rows on.
    pub fn is_plain(&self) -> bool {
        self.features().is_empty()
    }
}

/// The directions a client has to merge by.
fn directions(bound: &BoundQuery, settings: &Settings) -> Vec<Direction> {
    let direction = |sort: &Sort| match sort.direction {
        SortDirection::Fixed(direction) => direction,
        SortDirection::MostSimilar => most_similar_first(sort.key.counts_up(settings)),
    };
    bound.block.order.iter().map(direction).collect()
}

fn most_similar_first(counts_up: bool) -> Direction {
    if counts_up { Direction::Ascending } else { Direction::Descending }
}
