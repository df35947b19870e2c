//! ORDER BY RANK over several ranges.
//!
//! A text score depends on all documents. So the client first adds up the statistics of all ranges and fills
//! them into the placeholders, then asks every range for its best rows by each score, and fuses the ranks.

use super::rewrite::{RESUME_FILTER, from, lines, payload, root_alias};
use super::{MergeInfo, most_similar_first};
use crate::ast::{Direction, Expr, ExprKind, QueryTree, Selection};
use crate::bind::BoundQuery;
use crate::context::Settings;
use crate::error::EvalError;
use crate::plan::Score;

/// The queries of a ranking.
#[derive(Debug, Clone, PartialEq)]
pub struct HybridInfo {
    /// Counts documents, words and hits; the answers are added up.
    pub statistics: String,
    /// One query per score.
    pub components: Vec<MergeInfo>,
    /// One weight for each, or none if all weigh the same.
    pub weights: Vec<f64>,
    /// OFFSET.
    pub skip: Option<u64>,
    /// TOP or LIMIT.
    pub take: Option<u64>,
    /// Whether a score depends on the statistics.
    pub requires_statistics: bool,
}

const DOCUMENTS: &str = "{documentdb-formattablehybridsearchquery-totaldocumentcount}";

/// How many rows each score is asked for at least. A row that is not among them by any score cannot be in the answer.
pub(crate) const CANDIDATES_MIN: u64 = 120;

/// How many rows by each score take part in the fusion if this many are wanted.
pub(crate) fn candidates(wanted: u64) -> u64 {
    wanted.saturating_mul(2).clamp(CANDIDATES_MIN, u64::from(u32::MAX))
}

/// One score as text.
struct Component {
    score: String,
    /// What stands in for a score that cannot be computed: worse than any other.
    missing: &'static str,
    direction: Direction,
}

pub(super) fn distribute(
    tree: &QueryTree,
    bound: &BoundQuery,
    settings: &Settings,
) -> Result<HybridInfo, EvalError> {
    let root = root_alias(tree)?;
    let (Some(rank), Some(order)) = (&bound.block.rank, &tree.order_by) else {
        return Err(EvalError::failed("The query has no ranking."));
    };
    let calls = order.items.iter().flat_map(|item| scores(&item.expr));
    let mut statistics = Vec::new();
    let mut components = Vec::new();
    for (place, (expr, score)) in calls.zip(&rank.scores).enumerate() {
        let weight = rank.weights.get(place).copied().unwrap_or(1.0);
        components.push(component(place, expr, score, weight, settings, &mut statistics));
    }
    let block = &bound.block;
    let wanted = block.limit.unwrap_or(0).saturating_add(block.offset);
    let rows = candidates(wanted);
    let scores: Vec<String> = components.iter().map(|c| format!("({} ?? {})", c.score, c.missing)).collect();
    let payload = payload(tree, root);
    let payload = format!(r#"{{"payload": {payload}, "componentScores": [{}]}}"#, scores.join(", "));
    let is_top = tree.select.top.is_some();
    let infos = components.iter().map(|component| {
        let mut condition = match &tree.filter {
            Some(filter) => format!("(({filter}) AND ({RESUME_FILTER}))"),
            None => format!("({RESUME_FILTER})"),
        };
        if let Selection::Value(expr, _) = &tree.select.what {
            condition = format!("({condition} AND IS_DEFINED({expr}))");
        }
        let score = &component.score;
        let direction = if component.direction == Direction::Descending { " DESC" } else { "" };
        let top = if is_top { format!("TOP {rows} ") } else { String::new() };
        let rewritten = lines(&[
            format!(
                r#"SELECT {top}{root}._rid, [{{"item": {score}}}] AS orderByItems, {payload} AS payload"#
            ),
            from(tree),
            format!("WHERE {condition}"),
            format!("ORDER BY {score}{direction}"),
            if is_top { String::new() } else { format!("OFFSET 0 LIMIT {rows}") },
        ]);
        MergeInfo {
            top: is_top.then_some(rows),
            offset: (!is_top).then_some(0),
            limit: (!is_top).then_some(rows),
            order_by: vec![component.direction],
            order_by_expressions: vec![score.clone()],
            rewritten,
            non_streaming: true,
            ..MergeInfo::nothing()
        }
    });
    let all_same = rank.weights.iter().all(|weight| *weight == 1.0);
    Ok(HybridInfo {
        components: infos.collect(),
        weights: if all_same { Vec::new() } else { rank.weights.clone() },
        skip: tree.offset_limit.as_ref().map(|_| block.offset),
        take: block.limit,
        requires_statistics: !statistics.is_empty(),
        statistics: lines(&[
            format!("SELECT COUNT(1) AS documentCount, [{}] AS fullTextStatistics", statistics.join(", ")),
            from(tree),
        ]),
    })
}

fn component(
    place: usize,
    expr: &Expr,
    score: &Score,
    weight: f64,
    settings: &Settings,
    statistics: &mut Vec<String>,
) -> Component {
    let args: Vec<String> = match &expr.kind {
        ExprKind::Call(call) => call.args.iter().map(Expr::to_string).collect(),
        _ => Vec::new(),
    };
    let best_first = match score {
        Score::Text { .. } => Direction::Descending,
        Score::Vector { distance } => most_similar_first(distance.counts_up(settings)),
    };
    // A negative weight asks for the least relevant.
    let direction = match (weight < 0.0, best_first) {
        (false, direction) => direction,
        (true, Direction::Ascending) => Direction::Descending,
        (true, Direction::Descending) => Direction::Ascending,
    };
    match score {
        Score::Vector { .. } => Component {
            score: format!("_VECTORSCORE({})", args.join(", ")),
            missing: if best_first == Direction::Descending { "-1.79769e+308" } else { "1.79769e+308" },
            direction,
        },
        Score::Text { .. } => {
            let (text, terms) = args.split_first().map_or(("", &[][..]), |(text, terms)| (text, terms));
            let terms: Vec<String> = match (terms, &expr.kind) {
                ([_], ExprKind::Call(call)) => match call.args.get(1).map(|term| &term.kind) {
                    Some(ExprKind::Array(items)) => items.iter().map(Expr::to_string).collect(),
                    _ => terms.to_vec(),
                },
                _ => terms.to_vec(),
            };
            let hits: Vec<String> =
                terms.iter().map(|term| format!("COUNTIF(FULLTEXTCONTAINS({text}, {term}))")).collect();
            statistics.push(format!(
                r#"{{"totalWordCount": SUM(_FULLTEXTWORDCOUNT({text})), "hitCounts": [{}]}}"#,
                hits.join(", ")
            ));
            let words = format!("{{documentdb-formattablehybridsearchquery-totalwordcount-{place}}}");
            let hits = format!("{{documentdb-formattablehybridsearchquery-hitcountsarray-{place}}}");
            Component {
                score: format!(
                    "_FULLTEXTSCORE({text}, [{}], {DOCUMENTS}, {words}, {hits})",
                    terms.join(", ")
                ),
                missing: "-1",
                direction,
            }
        }
    }
}

/// The scores of an item of ORDER BY RANK: itself, or the arguments of RRF without the weights.
fn scores(expr: &Expr) -> Vec<&Expr> {
    match &expr.kind {
        ExprKind::Call(call) if call.name.eq_ignore_ascii_case("RRF") => {
            call.args.iter().filter(|arg| matches!(arg.kind, ExprKind::Call(_))).collect()
        }
        _ => vec![expr],
    }
}
