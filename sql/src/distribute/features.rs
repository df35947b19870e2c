//! What a client must be able to do to merge, by the names clients use for it.

use super::{Distribution, MergeInfo};
use crate::aggregate::Aggregate;
use crate::plan_info::DistinctType;

/// Something a client's query engine may be able to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the protocol")]
pub enum Feature {
    Aggregate,
    CountIf,
    DCount,
    Distinct,
    GroupBy,
    HybridSearch,
    ListAndSetAggregate,
    MultipleAggregates,
    MultipleOrderBy,
    NonStreamingOrderBy,
    NonValueAggregate,
    OffsetAndLimit,
    OrderBy,
    Top,
    WeightedRankFusion,
}

impl Feature {
    /// The name as clients list it.
    pub fn name(self) -> &'static str {
        match self {
            Feature::Aggregate => "Aggregate",
            Feature::CountIf => "CountIf",
            Feature::DCount => "DCount",
            Feature::Distinct => "Distinct",
            Feature::GroupBy => "GroupBy",
            Feature::HybridSearch => "HybridSearch",
            Feature::ListAndSetAggregate => "ListAndSetAggregate",
            Feature::MultipleAggregates => "MultipleAggregates",
            Feature::MultipleOrderBy => "MultipleOrderBy",
            Feature::NonStreamingOrderBy => "NonStreamingOrderBy",
            Feature::NonValueAggregate => "NonValueAggregate",
            Feature::OffsetAndLimit => "OffsetAndLimit",
            Feature::OrderBy => "OrderBy",
            Feature::Top => "Top",
            Feature::WeightedRankFusion => "WeightedRankFusion",
        }
    }
}

impl Distribution {
    /// What the client must be able to do.
    pub fn features(&self) -> Vec<Feature> {
        match self {
            Distribution::Merge(info) => merging(info),
            Distribution::Fuse(info) if info.weights.is_empty() => vec![Feature::HybridSearch],
            Distribution::Fuse(_) => vec![Feature::HybridSearch, Feature::WeightedRankFusion],
        }
    }
}

fn merging(info: &MergeInfo) -> Vec<Feature> {
    let listed = info.group_by_aliases.iter().filter_map(|(_, aggregate)| *aggregate);
    let all: Vec<Aggregate> = info.aggregates.iter().copied().chain(listed.clone()).collect();
    let lists = |aggregate: &Aggregate| matches!(aggregate, Aggregate::MakeList | Aggregate::MakeSet);
    let needed = [
        (Feature::Aggregate, !info.aggregates.is_empty()),
        (Feature::NonValueAggregate, listed.clone().next().is_some()),
        (Feature::MultipleAggregates, listed.count() > 1),
        (Feature::CountIf, all.contains(&Aggregate::CountIf)),
        (Feature::ListAndSetAggregate, all.iter().any(lists)),
        (Feature::GroupBy, !info.group_by_expressions.is_empty()),
        (Feature::Distinct, info.distinct != DistinctType::None),
        (Feature::DCount, info.distinct_count.is_some()),
        (Feature::OrderBy, info.order_by.len() == 1 && !info.non_streaming),
        (Feature::MultipleOrderBy, info.order_by.len() > 1 && !info.non_streaming),
        (Feature::NonStreamingOrderBy, info.non_streaming),
        (Feature::Top, info.top.is_some()),
        (Feature::OffsetAndLimit, info.offset.is_some()),
    ];
    needed.into_iter().filter(|(_, is_needed)| *is_needed).map(|(feature, _)| feature).collect()
}
