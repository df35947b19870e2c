//! Facts about a query for the query plan endpoint: data only, the server gives it its shape.

use crate::aggregate::Aggregate;
use crate::ast::{Direction, Expr, ExprKind, Item, QueryTree, Selection};
use crate::bind::BoundQuery;
use crate::plan::PathStep;

/// How duplicates are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DistinctType {
    /// There is no DISTINCT.
    None,
    /// Equal rows follow each other: the rows are sorted by all they consist of.
    Ordered,
    /// Equal rows may come anywhere.
    Unordered,
}

/// What a query asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanInfo {
    /// DISTINCT.
    pub distinct: DistinctType,
    /// TOP.
    pub top: Option<u64>,
    /// OFFSET.
    pub offset: Option<u64>,
    /// LIMIT.
    pub limit: Option<u64>,
    /// The sort keys, or the scores of ORDER BY RANK.
    pub order_by: Vec<OrderKey>,
    /// Whether ORDER BY RANK is there.
    pub ranks: bool,
    /// The canonical text of each group key.
    pub group_by: Vec<String>,
    /// The members of a grouped select list: the name, and the aggregate if it is one.
    pub group_by_aliases: Vec<(String, Option<Aggregate>)>,
    /// The aggregates in SELECT, as they are written.
    pub aggregates: Vec<Aggregate>,
    /// Whether it is SELECT VALUE.
    pub has_select_value: bool,
}

/// One sort key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderKey {
    /// Lowest or highest first.
    pub direction: Direction,
    /// The canonical text of the expression.
    pub text: String,
    /// Where in the document the key is, if it is a property: what an index would have to be sorted by.
    pub path: Option<Vec<PathStep>>,
}

impl PlanInfo {
    pub(crate) fn of(tree: &QueryTree, bound: &BoundQuery) -> PlanInfo {
        let block = &bound.block;
        let order = tree.order_by.as_ref();
        let order_items = order.map(|order| order.items.as_slice()).unwrap_or_default();
        let mut aggregates = Vec::new();
        let mut aliases = Vec::new();
        match &tree.select.what {
            Selection::Star(_) => {}
            Selection::Value(expr, _) => collect(expr, &mut aggregates),
            Selection::List(items) => {
                for (name, item) in named(items) {
                    let first = aggregates.len();
                    collect(&item.expr, &mut aggregates);
                    aliases.push((name, aggregates.get(first).copied()));
                }
            }
        }
        PlanInfo {
            distinct: distinct(tree),
            top: tree.select.top.as_ref().and(block.limit),
            offset: tree.offset_limit.as_ref().map(|_| block.offset),
            limit: tree.offset_limit.as_ref().and(block.limit),
            order_by: order_items
                .iter()
                .enumerate()
                .map(|(place, item)| OrderKey {
                    direction: item.direction.unwrap_or(Direction::Ascending),
                    text: item.expr.to_string(),
                    path: block.order.get(place).and_then(|sort| bound.document_path(&sort.key)),
                })
                .collect(),
            ranks: order.is_some_and(|order| order.rank),
            group_by: tree.group_by.iter().map(Expr::to_string).collect(),
            group_by_aliases: if block.group.is_some() { aliases } else { Vec::new() },
            aggregates,
            has_select_value: matches!(tree.select.what, Selection::Value(..)),
        }
    }
}

/// The members of a select list with their names: as given, as the reference ends, or numbered.
pub(crate) fn named(items: &[Item]) -> Vec<(String, &Item)> {
    let mut unnamed = 0;
    let mut name = |item: &Item| match item.alias.as_deref().or_else(|| item.expr.last_name()) {
        Some(name) => name.to_owned(),
        None => {
            unnamed += 1;
            format!("${unnamed}")
        }
    };
    items.iter().map(|item| (name(item), item)).collect()
}

/// What is selected.
pub(crate) fn selected(tree: &QueryTree) -> Vec<&Expr> {
    match &tree.select.what {
        Selection::Star(_) => Vec::new(),
        Selection::Value(expr, _) => vec![expr],
        Selection::List(items) => items.iter().map(|item| &item.expr).collect(),
    }
}

/// How the duplicates of a query are found.
pub(crate) fn distinct(tree: &QueryTree) -> DistinctType {
    if !tree.select.distinct {
        return DistinctType::None;
    }
    let keys = tree.order_by.iter().flat_map(|order| &order.items).map(|item| item.expr.to_string());
    let mut keys: Vec<String> = keys.collect();
    let mut selected: Vec<String> = selected(tree).into_iter().map(Expr::to_string).collect();
    keys.sort();
    selected.sort();
    if !keys.is_empty() && keys == selected { DistinctType::Ordered } else { DistinctType::Unordered }
}

fn collect(expr: &Expr, aggregates: &mut Vec<Aggregate>) {
    if let ExprKind::Call(call) = &expr.kind
        && let Some(aggregate) = Aggregate::find(&call.name)
        && !call.is_udf
    {
        aggregates.push(aggregate);
    }
    expr.kind.parts().into_iter().for_each(|part| collect(part, aggregates));
}
