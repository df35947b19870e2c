//! The texts for ranges: of sorted, grouped, aggregated, distinct and limited queries.

use super::{MergeInfo, directions};
use crate::aggregate::Aggregate;
use crate::ast::{Call, Collection, Direction, Expr, ExprKind, Item, Literal, OrderBy, QueryTree, Selection};
use crate::bind::{BoundQuery, alias_of, contains, is_aggregate};
use crate::context::Settings;
use crate::error::EvalError;
use crate::plan_info::{self, DistinctType};
use crate::print::quoted;

/// Where the client puts the condition that resumes a sorted query, or `true`.
pub(super) const RESUME_FILTER: &str = "{documentdb-formattableorderbyquery-filter}";

/// The distribution of a query that is not ranked and whose sources stream.
pub(super) fn distribute(
    tree: &QueryTree,
    bound: &BoundQuery,
    settings: &Settings,
) -> Result<MergeInfo, EvalError> {
    let mut info = plain(tree, bound);
    let selected = plan_info::selected(tree);
    let aggregates = selected.iter().any(|expr| contains(expr, &is_aggregate));
    if aggregates || !tree.group_by.is_empty() {
        grouped(tree, &mut info)?;
        return Ok(info);
    }
    match &tree.order_by {
        Some(order) => sorted(tree, bound, order, settings, &mut info)?,
        None if info.distinct != DistinctType::None && (info.top.is_some() || info.offset.is_some()) => {
            let select = format!("SELECT DISTINCT {}", selection(tree));
            info.rewritten = lines(&[select, from(tree), filter(tree)]);
        }
        None if info.distinct == DistinctType::None => info.rewritten = limited(tree, &info),
        None => {}
    }
    Ok(info)
}

/// `SELECT COUNT(1) FROM (SELECT DISTINCT ...)`: ranges give the distinct rows, the client counts them.
pub(super) fn distinct_count(tree: &QueryTree) -> Option<MergeInfo> {
    let [source] = tree.from.as_slice() else { return None };
    let Collection::Query(inner) = &source.collection else { return None };
    let is_whole = tree.filter.is_none()
        && tree.group_by.is_empty()
        && tree.order_by.is_none()
        && tree.offset_limit.is_none()
        && tree.select.top.is_none()
        && !tree.select.distinct
        && !source.iterates;
    let is_simple = inner.select.distinct
        && inner.group_by.is_empty()
        && !plan_info::selected(inner).iter().any(|expr| contains(expr, &is_aggregate));
    let reads_container =
        inner.from.first().is_some_and(|source| matches!(source.collection, Collection::Path(_)));
    let (count, alias) = match &tree.select.what {
        Selection::Value(expr, _) => (expr, String::new()),
        Selection::List(items) => match items.as_slice() {
            [item] => (&item.expr, item.alias.clone().unwrap_or_else(|| "$1".to_owned())),
            _ => return None,
        },
        Selection::Star(_) => return None,
    };
    let counts_all = match &count.kind {
        ExprKind::Call(Call { is_udf: false, name, args, .. }) if name.eq_ignore_ascii_case("COUNT") => {
            matches!(args.as_slice(), [Expr { kind: ExprKind::Literal(literal), .. }] if *literal != Literal::Undefined)
        }
        _ => false,
    };
    (is_whole && is_simple && reads_container && counts_all).then(|| MergeInfo {
        distinct: DistinctType::Unordered,
        rewritten: inner.to_string(),
        has_select_value: alias.is_empty(),
        distinct_count: Some(alias),
        ..MergeInfo::nothing()
    })
}

impl MergeInfo {
    /// Nothing to do.
    pub fn nothing() -> MergeInfo {
        MergeInfo {
            distinct: DistinctType::None,
            top: None,
            offset: None,
            limit: None,
            order_by: Vec::new(),
            order_by_expressions: Vec::new(),
            group_by_expressions: Vec::new(),
            aggregates: Vec::new(),
            group_by_aliases: Vec::new(),
            rewritten: String::new(),
            has_select_value: false,
            distinct_count: None,
            non_streaming: false,
        }
    }
}

fn plain(tree: &QueryTree, bound: &BoundQuery) -> MergeInfo {
    let block = &bound.block;
    MergeInfo {
        distinct: plan_info::distinct(tree),
        top: tree.select.top.as_ref().and(block.limit),
        offset: tree.offset_limit.as_ref().map(|_| block.offset),
        limit: tree.offset_limit.as_ref().and(block.limit),
        has_select_value: matches!(tree.select.what, Selection::Value(..)),
        ..MergeInfo::nothing()
    }
}

/// OFFSET and LIMIT become a LIMIT that is large enough for the client to skip in. TOP stays as it is.
fn limited(tree: &QueryTree, info: &MergeInfo) -> String {
    match (info.offset, info.limit) {
        (Some(offset), Some(limit)) => {
            let select = format!("SELECT {}", selection(tree));
            lines(&[select, from(tree), filter(tree), room(offset, limit)])
        }
        _ => String::new(),
    }
}

fn room(offset: u64, limit: u64) -> String {
    /// The largest count a query may have.
    const COUNT_MAX: u64 = u32::MAX as u64;
    format!("OFFSET 0 LIMIT {}", offset.saturating_add(limit).min(COUNT_MAX))
}

fn sorted(
    tree: &QueryTree,
    bound: &BoundQuery,
    order: &OrderBy,
    settings: &Settings,
    info: &mut MergeInfo,
) -> Result<(), EvalError> {
    let root = root_alias(tree)?;
    let keys: Vec<String> = order.items.iter().map(|item| item.expr.to_string()).collect();
    let items: Vec<String> = keys.iter().map(|key| format!(r#"{{"item": {key}}}"#)).collect();
    let is_distinct = info.distinct != DistinctType::None;
    let top = match info.top {
        Some(top) if !is_distinct => format!("TOP {top} "),
        _ => String::new(),
    };
    let select = format!(
        "SELECT {top}{root}._rid, [{}] AS orderByItems, {} AS payload",
        items.join(", "),
        payload(tree, root)
    );
    let mut condition = match &tree.filter {
        Some(filter) => format!("(({filter}) AND ({RESUME_FILTER}))"),
        None => format!("({RESUME_FILTER})"),
    };
    if let Selection::Value(expr, _) = &tree.select.what {
        condition = format!("({condition} AND IS_DEFINED({expr}))");
    }
    let ordered = order.items.iter().map(|item| format!("{}{}", item.expr, direction_text(item.direction)));
    let order_by = format!("ORDER BY {}", ordered.collect::<Vec<_>>().join(", "));
    let limit = match (info.offset, info.limit) {
        (Some(offset), Some(limit)) if !is_distinct => room(offset, limit),
        _ => String::new(),
    };
    info.order_by = directions(bound, settings);
    info.order_by_expressions = keys;
    info.non_streaming = bound.block.order.iter().any(|sort| sort.key.is_distance());
    info.rewritten = lines(&[select, from(tree), format!("WHERE {condition}"), order_by, limit]);
    Ok(())
}

/// A sorted query as [`sorted`] writes it, or as clients do that rewrite by themselves, without its filter.
pub(super) fn without_resume_filter(tree: &QueryTree) -> Option<String> {
    const MEMBERS: [&str; 3] = ["_rid", "orderByItems", "payload"];
    tree.order_by.as_ref()?;
    let is_for_a_range = match &tree.select.what {
        Selection::List(items) => plan_info::named(items).iter().map(|(name, _)| name.as_str()).eq(MEMBERS),
        Selection::Value(Expr { kind: ExprKind::Object(members), .. }, _) => {
            members.iter().map(|(name, _)| name.as_str()).eq(MEMBERS)
        }
        _ => false,
    };
    is_for_a_range.then(|| QueryTree { filter: None, ..tree.clone() }.to_string())
}

fn direction_text(direction: Option<Direction>) -> &'static str {
    match direction {
        None => "",
        Some(Direction::Ascending) => " ASC",
        Some(Direction::Descending) => " DESC",
    }
}

fn grouped(tree: &QueryTree, info: &mut MergeInfo) -> Result<(), EvalError> {
    if tree.order_by.is_some() && !tree.group_by.is_empty() {
        let feature = "ORDER BY together with GROUP BY over several partition key ranges";
        return Err(EvalError::Unsupported { feature: feature.into() });
    }
    let keys: Vec<String> = tree.group_by.iter().map(Expr::to_string).collect();
    let items: Vec<String> = keys.iter().map(|key| format!(r#"{{"item": {key}}}"#)).collect();
    let payload = match &tree.select.what {
        Selection::Star(_) => String::new(),
        Selection::Value(expr, _) => match part_of(expr)? {
            Some((aggregate, part)) => {
                info.aggregates = vec![aggregate];
                format!("[{part}]")
            }
            None => expr.to_string(),
        },
        Selection::List(items) => {
            let mut members = Vec::new();
            for (name, item) in plan_info::named(items) {
                let (aggregate, text) = match part_of(&item.expr)? {
                    Some((aggregate, part)) => (Some(aggregate), part),
                    None => (None, item.expr.to_string()),
                };
                members.push(format!("{}: {text}", quoted(&name)));
                info.group_by_aliases.push((name, aggregate));
            }
            format!("{{{}}}", members.join(", "))
        }
    };
    let select = match (keys.is_empty(), info.has_select_value) {
        (false, _) => format!("SELECT [{}] AS groupByItems, {payload} AS payload", items.join(", ")),
        (true, true) => format!("SELECT VALUE {payload}"),
        (true, false) => format!("SELECT {payload} AS payload"),
    };
    let group_by = if keys.is_empty() { String::new() } else { format!("GROUP BY {}", keys.join(", ")) };
    info.group_by_expressions = keys;
    info.rewritten = lines(&[select, from(tree), filter(tree), group_by]);
    Ok(())
}

/// What a range gives for an aggregate; None if the expression has none.
fn part_of(expr: &Expr) -> Result<Option<(Aggregate, String)>, EvalError> {
    let call = match &expr.kind {
        ExprKind::Call(call) if !call.is_udf => Aggregate::find(&call.name).map(|found| (found, call)),
        _ => None,
    };
    let Some((aggregate, call)) = call else {
        return match contains(expr, &is_aggregate) {
            true => {
                Err(EvalError::failed("Compositions of aggregates and other expressions are not allowed."))
            }
            false => Ok(None),
        };
    };
    let argument = call.args.iter().map(Expr::to_string).collect::<Vec<_>>().join(", ");
    let part = match aggregate {
        Aggregate::Average => {
            format!(r#"{{"item": {{"sum": SUM({argument}), "count": COUNT({argument})}}}}"#)
        }
        Aggregate::Min | Aggregate::Max => {
            let (name, member) = if aggregate == Aggregate::Min { ("MIN", "min") } else { ("MAX", "max") };
            format!(
                r#"{{"item": {name}({argument}), "item2": {{"{member}": {name}({argument}), "count": COUNT({argument})}}}}"#
            )
        }
        _ => format!(r#"{{"item": {expr}}}"#),
    };
    Ok(Some((aggregate, part)))
}

/// The name of the document itself: clients tell rows apart by its `_rid`.
pub(super) fn root_alias(tree: &QueryTree) -> Result<&str, EvalError> {
    let source = tree.from.first();
    let is_root = |path: &Expr| matches!(path.kind, ExprKind::Name(_));
    let root = source.filter(|source| match &source.collection {
        Collection::Path(path) => is_root(path) && !source.iterates,
        _ => false,
    });
    root.and_then(alias_of).map(|(alias, _)| alias).ok_or_else(|| EvalError::Unsupported {
        feature: "ORDER BY without the container itself in FROM over several partition key ranges".into(),
    })
}

/// The row that is given in the end, as an expression.
pub(super) fn payload(tree: &QueryTree, root: &str) -> String {
    match &tree.select.what {
        Selection::Star(_) => root.to_owned(),
        Selection::Value(expr, _) => expr.to_string(),
        Selection::List(items) => {
            let member = |(name, item): (String, &Item)| format!("{}: {}", quoted(&name), item.expr);
            format!("{{{}}}", plan_info::named(items).into_iter().map(member).collect::<Vec<_>>().join(", "))
        }
    }
}

/// What follows SELECT and its TOP.
fn selection(tree: &QueryTree) -> String {
    match &tree.select.what {
        Selection::Star(_) => "*".to_owned(),
        Selection::Value(expr, _) => format!("VALUE {expr}"),
        Selection::List(items) => items.iter().map(Item::to_string).collect::<Vec<_>>().join(", "),
    }
}

/// FROM and JOIN.
pub(super) fn from(tree: &QueryTree) -> String {
    let sources = tree.from.iter().enumerate();
    let line = |(index, source)| format!("{} {source}", if index == 0 { "FROM" } else { "JOIN" });
    sources.map(line).collect::<Vec<_>>().join("\n")
}

/// WHERE.
pub(super) fn filter(tree: &QueryTree) -> String {
    tree.filter.as_ref().map(|filter| format!("WHERE {filter}")).unwrap_or_default()
}

/// Clauses, one per line, without those that are not there.
pub(super) fn lines(clauses: &[String]) -> String {
    let present: Vec<&str> = clauses.iter().map(String::as_str).filter(|clause| !clause.is_empty()).collect();
    present.join("\n")
}
