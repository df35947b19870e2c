//! Query plans: what a client is told so that it can run a query over several partition key ranges.
//!
//! The server can answer every query whole, and does for clients that send the query itself. A plan is for
//! those that run it range by range. It leaves the client nothing to do only where the client could not do it
//! and one range has all that the query can find.

use mayfly_sql::{Distribution, Feature, HybridInfo, MergeInfo, ast::Direction, plan_info::DistinctType};
use serde_json::{Map, Value, json};

use super::{ranges::QueryRanges, request::Request};
use crate::error::ApiError;

/// The plan of a query that the server answers whole.
pub fn passed_on(request: &Request, ranges: &QueryRanges) -> Value {
    let has_select_value = request.plan.info().has_select_value;
    let info = query_info(&MergeInfo { has_select_value, ..MergeInfo::nothing() });
    json!({ "partitionedQueryExecutionInfoVersion": 2, "queryInfo": info, "queryRanges": ranges.to_json() })
}

/// The plan of a query that the client merges.
pub fn distributed(distribution: &Distribution, ranges: &QueryRanges) -> Value {
    let (name, info) = match distribution {
        Distribution::Merge(info) => ("queryInfo", query_info(info)),
        Distribution::Fuse(info) => ("hybridSearchQueryInfo", hybrid_info(info)),
    };
    let mut plan = Map::new();
    plan.insert("partitionedQueryExecutionInfoVersion".into(), json!(2));
    plan.insert(name.into(), info);
    plan.insert("queryRanges".into(), ranges.to_json());
    Value::Object(plan)
}

/// Refuses a plan that needs what the client did not list.
pub fn check_features(distribution: &Distribution, supported: Option<&str>) -> Result<(), ApiError> {
    let Some(supported) = supported else { return Ok(()) };
    let is_supported =
        |feature: &Feature| supported.split(',').any(|name| name.trim().eq_ignore_ascii_case(feature.name()));
    let missing: Vec<&str> = distribution
        .features()
        .iter()
        .filter(|feature| !is_supported(feature))
        .map(|feature| feature.name())
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(ApiError::bad_request(format!(
        "Query contains 1 or more unsupported features. Upgrade your SDK to a version that does support the \
         requested features:\r\nQuery contained {}, which the calling client does not support.\r\n",
        missing.join(", ")
    )))
}

fn query_info(info: &MergeInfo) -> Value {
    let distinct = match info.distinct {
        DistinctType::None => "None",
        DistinctType::Ordered => "Ordered",
        DistinctType::Unordered => "Unordered",
    };
    let direction = |direction: &Direction| match direction {
        Direction::Ascending => "Ascending",
        Direction::Descending => "Descending",
    };
    let names: Vec<_> = info.group_by_aliases.iter().map(|(name, _)| name).collect();
    let members = info.group_by_aliases.iter();
    let members: Map<String, Value> = members
        .map(|(name, aggregate)| (name.clone(), json!(aggregate.map(|aggregate| aggregate.plan_name()))))
        .collect();
    json!({
        "distinctType": distinct,
        "top": info.top,
        "offset": info.offset,
        "limit": info.limit,
        "orderBy": info.order_by.iter().map(direction).collect::<Vec<_>>(),
        "orderByExpressions": info.order_by_expressions,
        "groupByExpressions": info.group_by_expressions,
        "groupByAliases": names,
        "aggregates": info.aggregates.iter().map(|aggregate| aggregate.plan_name()).collect::<Vec<_>>(),
        "groupByAliasToAggregateType": members,
        "rewrittenQuery": info.rewritten,
        "hasSelectValue": info.has_select_value,
        "dCountInfo": info.distinct_count.as_ref().map(|alias| json!({ "dCountAlias": alias })),
        "hasNonStreamingOrderBy": info.non_streaming,
    })
}

fn hybrid_info(info: &HybridInfo) -> Value {
    json!({
        "globalStatisticsQuery": info.statistics,
        "componentQueryInfos": info.components.iter().map(query_info).collect::<Vec<_>>(),
        "componentWithoutPayloadQueryInfos": [],
        "projectionQueryInfo": null,
        "componentWeights": info.weights,
        "skip": info.skip,
        "take": info.take,
        "requiresGlobalStatistics": info.requires_statistics,
    })
}
