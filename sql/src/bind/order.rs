//! ORDER BY: only what an index could have sorted, as the service has it.

use super::Binder;
use super::scope::{Phase, root_of};
use crate::ast::{Collection, Direction, Expr, ExprKind, OrderBy, QueryTree};
use crate::error::SqlError;
use crate::plan::{Bound, Sort, SortDirection};

impl Binder<'_> {
    pub(super) fn order_by(&mut self, tree: &QueryTree) -> Result<Vec<Sort>, SqlError> {
        let Some(order) = &tree.order_by else { return Ok(Vec::new()) };
        if order.rank {
            return self.rank(tree, order);
        }
        let mut keys = Vec::new();
        for item in &order.items {
            let key = self.expr(&item.expr)?;
            let direction = item.direction.unwrap_or(Direction::Ascending);
            let direction = if matches!(key, Bound::VectorDistance { .. }) {
                SortDirection::MostSimilar
            } else {
                self.check_sortable(&item.expr, &key)?;
                SortDirection::Fixed(direction)
            };
            keys.push(Sort { key, direction });
        }
        Ok(keys)
    }

    /// A sort key is a path into the document, or the score that rewritten queries sort by.
    fn check_sortable(&self, expr: &Expr, key: &Bound) -> Result<(), SqlError> {
        if matches!(&expr.kind, ExprKind::Call(call) if call.name.starts_with('_')) {
            return Ok(());
        }
        // After grouping the slots are those of keys and aggregates.
        if self.phase() == Phase::OrderOfGroups {
            return Ok(());
        }
        let not_a_path = SqlError {
            code: Some("2206"),
            message:
                "Unsupported ORDER BY clause. ORDER BY item expression could not be mapped to a document \
                      path."
                    .to_owned(),
            location: None,
        };
        let Some((slot, steps)) = key.as_path() else { return Err(not_a_path) };
        match self.document_paths.get(&slot) {
            Some(before) if before.is_empty() && steps.is_empty() => Err(not_a_path),
            Some(_) => Ok(()),
            None => {
                let message = "Order-by over correlated collections is not supported.";
                let span = root_of(expr).map_or(expr.span, |(_, span)| span);
                Err(SqlError::uncoded(message, span))
            }
        }
    }

    fn rank(&mut self, tree: &QueryTree, order: &OrderBy) -> Result<Vec<Sort>, SqlError> {
        let refuse = |code, message: &str| Err(SqlError::new(code, message, order.span));
        for (index, source) in tree.from.iter().enumerate() {
            if index > 0 {
                return refuse("SC2224", "The JOIN operator is not allowed with the ORDER BY RANK clause.");
            }
            if matches!(source.collection, Collection::Query(_)) {
                let message = "Subqueries in the FROM clause are not allowed with the ORDER BY RANK clause.";
                return refuse("SC2225", message);
            }
            if source.iterates {
                let message =
                    "The FROM clause with the IN operator is not allowed with the ORDER BY RANK clause.";
                return refuse("SC2223", message);
            }
        }
        for item in &order.items {
            let is_score = |name: &str| {
                ["VECTORDISTANCE", "FULLTEXTSCORE", "RRF"].contains(&name.to_ascii_uppercase().as_str())
            };
            match &item.expr.kind {
                ExprKind::Call(call) if !call.is_udf && is_score(&call.name) => {}
                _ => {
                    let message = "The ORDER BY RANK clause must be followed by a VectorDistance and/or a \
                                   FullTextScore function call.";
                    return refuse("SC2221", message);
                }
            }
        }
        self.ranks = true;
        Ok(Vec::new())
    }
}
