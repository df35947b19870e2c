//! Explain: the steps of a query, from what it gives back to what it reads.
//!
//! ```text
//!   Take 0, 10  ◀  Sort c.n DESC  ◀  Project c.id  ◀  Filter (c.n > 1)  ◀  Join t IN c.tags  ◀  Read c
//! ```

use crate::ast::{Collection, Direction, Expr, Item, OrderItem, QueryTree, Selection, Source};
use crate::bind::{contains, is_aggregate};
use crate::plan_info::selected;
use crate::query::{Plan, Query};

/// One step, and the steps that feed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// What is done.
    pub operator: &'static str,
    /// With what, as text of the query.
    pub detail: String,
    /// Where its rows come from; none for the step that reads documents.
    pub input: Option<Box<Step>>,
}

impl Query {
    /// The steps of the query; `plan` is its own.
    pub fn explain(&self, plan: &Plan) -> Step {
        let limit = plan.limit();
        let take = match (limit.offset, limit.limit) {
            (0, None) => None,
            (skip, None) => Some(format!("skip {skip}")),
            (0, Some(rows)) => Some(format!("{rows} rows")),
            (skip, Some(rows)) => Some(format!("{rows} rows after {skip}")),
        };
        let step = steps(self.tree());
        match take {
            Some(detail) => after(step, "Take", detail),
            None => step,
        }
    }
}

fn steps(tree: &QueryTree) -> Step {
    let mut step = read(tree);
    for source in tree.from.iter().skip(1) {
        step = after(step, "Join", source.to_string());
    }
    if let Some(filter) = &tree.filter {
        step = after(step, "Filter", filter.to_string());
    }
    let aggregates = selected(tree).into_iter().any(|expr| contains(expr, &is_aggregate));
    if !tree.group_by.is_empty() {
        step = after(step, "Group", list(&tree.group_by, Expr::to_string));
    } else if aggregates {
        step = after(step, "Aggregate", list(&selected(tree), |expr| expr.to_string()));
    }
    let projection = match &tree.select.what {
        Selection::Star(_) => None,
        Selection::Value(expr, _) => Some(expr.to_string()),
        Selection::List(items) => Some(list(items, Item::to_string)),
    };
    if let Some(projection) = projection {
        step = after(step, "Project", projection);
    }
    if tree.select.distinct {
        step = after(step, "Distinct", String::new());
    }
    match &tree.order_by {
        Some(order) => {
            let operator = if order.rank { "Rank" } else { "Sort" };
            after(step, operator, list(&order.items, key_text))
        }
        None => step,
    }
}

/// The first source: the container, or a query over it.
fn read(tree: &QueryTree) -> Step {
    let Some(source) = tree.from.first() else {
        return Step { operator: "Once", detail: String::new(), input: None };
    };
    match &source.collection {
        Collection::Query(inner) => after(steps(inner), "Rows", alias(source)),
        Collection::Path(_) | Collection::Call(_) => {
            Step { operator: "Read", detail: source.to_string(), input: None }
        }
    }
}

fn alias(source: &Source) -> String {
    source.alias.as_ref().map(|(alias, _)| alias.clone()).unwrap_or_default()
}

fn key_text(item: &OrderItem) -> String {
    let direction = if item.direction == Some(Direction::Descending) { " DESC" } else { "" };
    format!("{}{direction}", item.expr)
}

fn after(input: Step, operator: &'static str, detail: String) -> Step {
    Step { operator, detail, input: Some(Box::new(input)) }
}

fn list<T>(items: &[T], text: impl Fn(&T) -> String) -> String {
    items.iter().map(text).collect::<Vec<_>>().join(", ")
}
