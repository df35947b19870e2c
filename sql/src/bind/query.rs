//! Clauses: sources, filters, grouping, projection and limits.

use super::Binder;
use super::scope::{Phase, Scope, contains, is_aggregate, is_subquery};
use crate::ast::{ExprKind, QueryTree, Selection};
use crate::error::SqlError;
use crate::plan::{Block, Bound, Group, Slot, Source};
use crate::plan_info::{named, selected};

impl Binder<'_> {
    /// Binds a query that reads the documents itself.
    pub(super) fn query(&mut self, tree: &QueryTree) -> Result<Block, SqlError> {
        self.scopes.push(Scope::default());
        let block = self.clauses(tree);
        self.scopes.pop();
        block
    }

    /// Binds a subquery, which reads what the queries around it know.
    pub(super) fn subquery(&mut self, tree: &QueryTree) -> Result<Block, SqlError> {
        if let Some(order) = &tree.order_by {
            self.note(match order.rank {
                true => {
                    let message = "The ORDER BY RANK clause is not supported in subqueries.";
                    SqlError::new("SC2228", message, order.span)
                }
                false => SqlError::new("SC2202", "'ORDER BY' is not supported in subqueries.", order.span),
            });
        }
        if let Some(top) = &tree.select.top {
            self.note(SqlError::new("SC2203", "'TOP' is not supported in subqueries.", top.span));
        }
        if let Some(clause) = &tree.offset_limit {
            let message = "'OFFSET LIMIT' clause is not supported in subqueries.";
            self.note(SqlError::new("SC2204", message, clause.span));
        }
        self.query(tree)
    }

    fn clauses(&mut self, tree: &QueryTree) -> Result<Block, SqlError> {
        let (input, sources) = self.from(tree)?;
        let filter = match &tree.filter {
            Some(filter) => Some(self.expr(filter)?),
            None => None,
        };
        let sorts = tree.order_by.iter().flat_map(|order| &order.items).map(|item| &item.expr);
        let sorts_aggregates = sorts.into_iter().any(|expr| contains(expr, &is_aggregate));
        let aggregates = sorts_aggregates || selected(tree).into_iter().any(|e| contains(e, &is_aggregate));
        let is_grouped = !tree.group_by.is_empty() || aggregates;
        // Without GROUP BY there is one row, whatever it is sorted by: the service takes the clause, and so do we.
        let order_is_moot = is_grouped && tree.group_by.is_empty() && !sorts_aggregates;
        if order_is_moot {
            self.order_by(tree)?;
        }
        let keys = self.group_keys(tree)?;
        if is_grouped {
            self.set_phase(Phase::Groups);
        }
        let project = self.selection(tree, &sources, is_grouped)?;
        if is_grouped {
            self.set_phase(Phase::OrderOfGroups);
        }
        let order = if order_is_moot { Vec::new() } else { self.order_by(tree)? };
        let rank = self.rank(tree)?;
        let (offset, limit) = self.limits(tree)?;
        let aggregates = self.scope().map(|scope| std::mem::take(&mut scope.aggregates)).unwrap_or_default();
        let group = is_grouped.then_some(Group { keys, aggregates, is_explicit: !tree.group_by.is_empty() });
        Ok(Block {
            input,
            sources,
            filter,
            group,
            project,
            distinct: tree.select.distinct,
            order,
            rank,
            offset,
            limit,
        })
    }

    fn group_keys(&mut self, tree: &QueryTree) -> Result<Vec<(Bound, Slot)>, SqlError> {
        let mut keys = Vec::new();
        for expr in &tree.group_by {
            if contains(expr, &is_subquery) {
                let message = "Subqueries are not allowed in the GROUP BY clause.";
                return Err(SqlError::uncoded(message, expr.span));
            }
            let has_reference = contains(expr, &|part| matches!(part.kind, ExprKind::Name(_)));
            let bound = self.expr(expr)?;
            if !has_reference {
                let message = "A GROUP BY expression must contain at least one property reference.";
                return Err(SqlError::uncoded(message, expr.span));
            }
            let slot = self.new_slot();
            keys.push((bound, slot));
            if let Some(scope) = self.scope() {
                scope.keys.push((expr.to_string(), slot));
            }
        }
        Ok(keys)
    }

    fn selection(
        &mut self,
        tree: &QueryTree,
        sources: &[Source],
        is_grouped: bool,
    ) -> Result<Bound, SqlError> {
        match &tree.select.what {
            Selection::Star(span) if is_grouped => {
                Err(SqlError::new("SC2041", "'SELECT *' is not allowed with GROUP BY.", *span))
            }
            Selection::Star(span) => {
                let message = match sources {
                    [] => "'SELECT *' is not valid if FROM clause is omitted.",
                    [source] => return Ok(Bound::Slot(source.slot)),
                    _ => "'SELECT *' is only valid with a single input set.",
                };
                Err(SqlError::uncoded(message, *span))
            }
            Selection::Value(expr, _) => self.expr(expr),
            Selection::List(items) => {
                let mut members = Vec::new();
                for (name, item) in named(items) {
                    members.push((name, self.expr(&item.expr)?));
                }
                Ok(Bound::Object(members))
            }
        }
    }
}
