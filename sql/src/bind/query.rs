//! Clauses: sources, filters, grouping, projection and limits.

use super::Binder;
use super::scope::{Phase, Scope, alias_of, contains, is_aggregate, is_subquery};
use crate::ast::{self, Collection, Count, CountKind, Expr, ExprKind, QueryTree, Selection};
use crate::error::{SqlError, SyntaxError};
use crate::plan::{Block, Bound, Group, Input, Over, Slot, Source};

/// The service's limit.
const JOINS_MAX: usize = 10;

/// Counts in TOP, OFFSET and LIMIT stay below 2^32.
const COUNT_MAX: i64 = u32::MAX as i64;

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
            return Err(match order.rank {
                true => {
                    let message = "The ORDER BY RANK clause is not supported in subqueries.";
                    SqlError::new("SC2228", message, order.span)
                }
                false => SqlError::new("SC2202", "'ORDER BY' is not supported in subqueries.", order.span),
            });
        }
        if let Some(top) = &tree.select.top {
            return Err(SqlError::new("SC2203", "'TOP' is not supported in subqueries.", top.span));
        }
        if let Some(clause) = &tree.offset_limit {
            let message = "'OFFSET LIMIT' clause is not supported in subqueries.";
            return Err(SqlError::new("SC2204", message, clause.span));
        }
        self.query(tree)
    }

    fn clauses(&mut self, tree: &QueryTree) -> Result<Block, SqlError> {
        let (input, sources) = self.from(tree)?;
        let filter = match &tree.filter {
            Some(filter) => Some(self.expr(filter)?),
            None => None,
        };
        let is_grouped = !tree.group_by.is_empty() || selected(tree).any(|e| contains(e, &is_aggregate));
        let keys = self.group_keys(tree)?;
        if is_grouped {
            self.set_phase(Phase::Groups);
        }
        let project = self.selection(tree, &sources, is_grouped)?;
        if is_grouped {
            self.set_phase(Phase::OrderOfGroups);
        }
        let order = self.order_by(tree)?;
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
            offset,
            limit,
        })
    }

    fn from(&mut self, tree: &QueryTree) -> Result<(Input, Vec<Source>), SqlError> {
        let mut input = Input::Once;
        let mut sources = Vec::new();
        for (index, source) in tree.from.iter().enumerate() {
            if index > 0 {
                self.joins += 1;
                if self.joins > JOINS_MAX {
                    let message = format!("The query exceeds the maximum of {JOINS_MAX} JOIN operators.");
                    return Err(SqlError::uncoded(message, source.span));
                }
            }
            let (over, document_slot) = if index == 0 && self.is_first_source() {
                let (new_input, over) = self.input(source)?;
                let slot = match &new_input {
                    Input::Documents { slot } => Some(*slot),
                    _ => None,
                };
                input = new_input;
                (over, slot)
            } else {
                (self.over(source)?, None)
            };
            let slot = self.new_slot();
            self.note_document_path(&over, document_slot, slot, source.iterates);
            if let Some((alias, span)) = alias_of(source) {
                self.add_alias(alias, slot, span)?;
            }
            sources.push(Source { slot, over, iterates: source.iterates });
        }
        Ok((input, sources))
    }

    /// Whether only queries surround this one whose first source it is: then it reads the documents.
    fn is_first_source(&self) -> bool {
        let around = self.scopes.len().saturating_sub(1);
        self.scopes.iter().take(around).all(|scope| scope.reads_first_source)
    }

    /// The first source: the container under any name with a path, or a query that reads it.
    fn input(&mut self, source: &ast::Source) -> Result<(Input, Over), SqlError> {
        match &source.collection {
            Collection::Path(path) => {
                let slot = self.new_slot();
                self.document_paths.insert(slot, Vec::new());
                let over = self.container_path(path, slot)?;
                Ok((Input::Documents { slot }, Over::Value(over)))
            }
            Collection::Call(call) => Ok((Input::Once, Over::Value(self.expr(call)?))),
            Collection::Query(query) => {
                if let Some(scope) = self.scope() {
                    scope.reads_first_source = true;
                }
                let block = self.subquery(query);
                if let Some(scope) = self.scope() {
                    scope.reads_first_source = false;
                }
                let slot = self.new_slot();
                Ok((Input::Rows { slot, block: Box::new(block?) }, Over::Value(Bound::Slot(slot))))
            }
        }
    }

    fn container_path(&mut self, path: &Expr, slot: Slot) -> Result<Bound, SqlError> {
        Ok(match &path.kind {
            ExprKind::Member(of, name) => {
                Bound::Member(Box::new(self.container_path(of, slot)?), name.clone())
            }
            ExprKind::Index(of, index) => {
                Bound::Index(Box::new(self.container_path(of, slot)?), Box::new(self.expr(index)?))
            }
            _ => Bound::Slot(slot),
        })
    }

    fn over(&mut self, source: &ast::Source) -> Result<Over, SqlError> {
        match &source.collection {
            Collection::Query(query) => Ok(Over::Rows(Box::new(self.subquery(query)?))),
            Collection::Path(expr) | Collection::Call(expr) => Ok(Over::Value(self.expr(expr)?)),
        }
    }

    /// Remembers that a source is a part of the document, so that ORDER BY and hints can name its paths.
    fn note_document_path(&mut self, over: &Over, document: Option<Slot>, slot: Slot, iterates: bool) {
        if let (Over::Value(bound), Some(document), false) = (over, document, iterates)
            && let Some((root, steps)) = bound.as_path()
            && root == document
        {
            self.document_paths.insert(slot, steps);
        }
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
                let mut unnamed = 0;
                let mut members = Vec::new();
                for item in items {
                    let name = match item.alias.as_deref().or_else(|| item.expr.last_name()) {
                        Some(name) => name.to_owned(),
                        None => {
                            unnamed += 1;
                            format!("${unnamed}")
                        }
                    };
                    members.push((name, self.expr(&item.expr)?));
                }
                Ok(Bound::Object(members))
            }
        }
    }

    /// TOP and OFFSET LIMIT together: how many rows to skip and how many to give.
    fn limits(&mut self, tree: &QueryTree) -> Result<(u64, Option<u64>), SqlError> {
        const NOT_INTEGER: &str = "The count value provided for a TOP clause must be an integer.";
        if let Some(top) = &tree.select.top {
            if let Some(clause) = &tree.offset_limit {
                let message = "The TOP clause cannot be combined with the OFFSET LIMIT clause.";
                return Err(SqlError::uncoded(message, clause.span));
            }
            let count = match self.count(&top.count)? {
                Some(count) if count <= COUNT_MAX => u64::try_from(count).ok(),
                _ => None,
            };
            return match count {
                Some(count) => Ok((0, Some(count))),
                None => Err(SqlError::new("SC2060", NOT_INTEGER, top.count.span)),
            };
        }
        match &tree.offset_limit {
            Some(clause) => {
                let offset = self.bounded_count(&clause.offset, "SC2062", "OFFSET")?;
                let limit = self.bounded_count(&clause.limit, "SC2061", "LIMIT")?;
                Ok((offset, Some(limit)))
            }
            None => Ok((0, None)),
        }
    }

    fn bounded_count(&self, count: &Count, code: &'static str, clause: &str) -> Result<u64, SqlError> {
        let too_large = || {
            let message = format!("The {clause} count value exceeds the maximum allowed value.");
            SqlError::new(code, message, count.span)
        };
        if let CountKind::Double(_) = count.kind {
            let written = self.text_of(count.span);
            let is_integer = written.bytes().all(|byte| byte.is_ascii_digit());
            return Err(match is_integer {
                true => too_large(),
                false => SyntaxError::Near(written.to_owned()).at(count.span),
            });
        }
        match self.count(count)? {
            Some(value) if value > COUNT_MAX => Err(too_large()),
            value => value.and_then(|value| u64::try_from(value).ok()).ok_or_else(|| {
                let message = format!("The {clause} count value must be a non-negative integer.");
                SqlError::uncoded(message, count.span)
            }),
        }
    }

    /// The integer a count is, if it is one.
    fn count(&self, count: &Count) -> Result<Option<i64>, SqlError> {
        match &count.kind {
            CountKind::Integer(value) => Ok(Some(*value)),
            CountKind::Double(_) => Ok(None),
            CountKind::Parameter(name) => Ok(self.parameter(name, count.span)?.as_i64()),
        }
    }
}

fn selected(tree: &QueryTree) -> impl Iterator<Item = &Expr> {
    let (value, items) = match &tree.select.what {
        Selection::Star(_) => (None, None),
        Selection::Value(expr, _) => (Some(expr), None),
        Selection::List(items) => (None, Some(items)),
    };
    let order = tree.order_by.iter().flat_map(|order| &order.items).map(|item| &item.expr);
    value.into_iter().chain(items.into_iter().flatten().map(|item| &item.expr)).chain(order)
}
