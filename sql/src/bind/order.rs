//! ORDER BY: only what an index could have sorted, as the service has it.

use super::Binder;
use super::scope::{Phase, root_of};
use crate::ast::{Direction, Expr, ExprKind, QueryTree};
use crate::error::SqlError;
use crate::plan::{Bound, Sort, SortDirection};

impl Binder<'_> {
    pub(super) fn order_by(&mut self, tree: &QueryTree) -> Result<Vec<Sort>, SqlError> {
        let Some(order) = &tree.order_by else { return Ok(Vec::new()) };
        // Scores are bound in `rank.rs`.
        if order.rank {
            return Ok(Vec::new());
        }
        let mut keys = Vec::new();
        for item in &order.items {
            let key = self.expr(&item.expr)?;
            let direction = if key.is_distance() && !is_internal(&item.expr) {
                if item.direction.is_some() {
                    let message = "Specifying a sorting order (ASC or DESC) with VectorDistance function is not supported.";
                    return Err(SqlError::uncoded(message, order.span));
                }
                SortDirection::MostSimilar
            } else {
                self.check_sortable(&item.expr, &key)?;
                SortDirection::Fixed(item.direction.unwrap_or(Direction::Ascending))
            };
            keys.push(Sort { key, direction });
        }
        Ok(keys)
    }

    /// A sort key is a path into the document, a computed property, or the score that rewritten queries sort by.
    fn check_sortable(&self, expr: &Expr, key: &Bound) -> Result<(), SqlError> {
        if is_internal(expr) || self.computed_property(expr).is_some() {
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
            more: Vec::new(),
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
}

/// Whether it is a call of one of the functions that only rewritten queries use.
fn is_internal(expr: &Expr) -> bool {
    matches!(&expr.kind, ExprKind::Call(call) if call.name.starts_with('_'))
}
