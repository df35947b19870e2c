//! Scopes: which names a query knows, and which of them are still there after grouping.

use super::{Binder, unresolved};
use crate::aggregate::Aggregate;
use crate::ast::{Collection, Expr, ExprKind};
use crate::error::SqlError;
use crate::plan::{AggregateCall, Bound, Slot};
use crate::token::Span;
use crate::value::Value;

/// The names of one query.
#[derive(Debug, Default)]
pub(super) struct Scope {
    aliases: Vec<(String, Slot)>,
    /// The names of LET that are in effect; the last hides those before it.
    lets: Vec<(String, Slot)>,
    pub phase: Phase,
    /// Whether the first source is being bound, which is a query that reads the documents in its place.
    pub reads_first_source: bool,
    /// The group keys as they print, with their slots.
    pub keys: Vec<(String, Slot)>,
    pub aggregates: Vec<AggregateCall>,
}

/// Which part of the query is being bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Phase {
    /// FROM, WHERE, GROUP BY, and SELECT if nothing is grouped: a row is there.
    #[default]
    Rows,
    /// SELECT after grouping: only keys and aggregates are there.
    Groups,
    /// ORDER BY after grouping.
    OrderOfGroups,
    /// The argument of an aggregate: a row is there again.
    Aggregate,
}

impl Phase {
    fn is_grouped(self) -> bool {
        matches!(self, Phase::Groups | Phase::OrderOfGroups)
    }
}

impl Binder<'_> {
    /// The query being bound. There is one whenever an expression is.
    pub(super) fn scope(&mut self) -> Option<&mut Scope> {
        self.scopes.last_mut()
    }

    pub(super) fn phase(&self) -> Phase {
        self.scopes.last().map_or(Phase::Rows, |scope| scope.phase)
    }

    pub(super) fn set_phase(&mut self, phase: Phase) {
        if let Some(scope) = self.scope() {
            scope.phase = phase;
        }
    }

    pub(super) fn add_alias(&mut self, name: &str, slot: Slot, span: Span) -> Result<(), SqlError> {
        let Some(scope) = self.scope() else { return Ok(()) };
        if scope.aliases.iter().any(|(known, _)| known == name) {
            let message = format!("The input alias '{name}' is specified more than once in the FROM clause.");
            return Err(SqlError::uncoded(message, span));
        }
        scope.aliases.push((name.to_owned(), slot));
        Ok(())
    }

    /// Finds a name in the query and those around it: its slot, and what part of the query that knows it is
    /// being bound. The names of LET are there in every part.
    pub(super) fn find(&self, name: &str) -> Option<(Slot, usize, Phase)> {
        self.scopes.iter().enumerate().rev().find_map(|(place, scope)| {
            let is_it = |known: &&(String, Slot)| known.0 == name;
            let of_let = scope.lets.iter().rev().find(is_it).map(|(_, slot)| (*slot, place, Phase::Rows));
            let alias = || scope.aliases.iter().find(is_it).map(|(_, slot)| (*slot, place, scope.phase));
            of_let.or_else(alias)
        })
    }

    /// Binds something in which `name` stands for what is in `slot`.
    pub(super) fn with_name<T>(
        &mut self,
        name: &str,
        slot: Slot,
        bind: impl FnOnce(&mut Self) -> Result<T, SqlError>,
    ) -> Result<T, SqlError> {
        if let Some(scope) = self.scope() {
            scope.lets.push((name.to_owned(), slot));
        }
        let bound = bind(self);
        if let Some(scope) = self.scope() {
            scope.lets.pop();
        }
        bound
    }

    /// Binds a name with the members and indexers after it.
    pub(super) fn reference(&mut self, expr: &Expr, root: &str, root_span: Span) -> Result<Bound, SqlError> {
        let Some((slot, place, phase)) = self.find(root) else {
            return match (&expr.kind, root) {
                // Not reserved: an alias of this name would be found first.
                (ExprKind::Name(_), "NaN") => Ok(Bound::Constant(Value::Double(f64::NAN))),
                (ExprKind::Name(_), "Infinity") => Ok(Bound::Constant(Value::Double(f64::INFINITY))),
                _ => Ok(self.note(unresolved(root, root_span))),
            };
        };
        if phase.is_grouped() {
            let key = self.key_on_the_way(expr, place);
            return match key {
                Some((key, slot)) => self.steps(expr, key, Bound::Slot(slot)),
                None => Err(self.not_grouped(expr, phase)),
            };
        }
        let mut start = expr;
        while let ExprKind::Member(of, _) | ExprKind::Index(of, _) = &start.kind {
            if let Some(property) = self.computed_property(start) {
                let bound = self.computed_value(property, slot)?;
                return self.steps(expr, start, bound);
            }
            start = of;
        }
        self.steps(expr, start, Bound::Slot(slot))
    }

    /// The slot of the group key that this expression is, if it is one.
    pub(super) fn group_key(&self, expr: &Expr) -> Option<Slot> {
        let scope = self.scopes.last()?;
        if !scope.phase.is_grouped() || scope.keys.is_empty() {
            return None;
        }
        let is_hidden = |part: &Expr| matches!(&part.kind, ExprKind::Name(name) if scope.lets.iter().any(|(hidden, _)| hidden == name));
        if contains(expr, &is_hidden) {
            return None;
        }
        let printed = expr.to_string();
        scope.keys.iter().find(|(key, _)| *key == printed).map(|(_, slot)| *slot)
    }

    /// The longest beginning of a reference that is a group key: `c.a` in `c.a.b`.
    fn key_on_the_way<'e>(&self, expr: &'e Expr, place: usize) -> Option<(&'e Expr, Slot)> {
        let keys = &self.scopes.get(place)?.keys;
        let mut start = expr;
        loop {
            let printed = start.to_string();
            if let Some((_, slot)) = keys.iter().find(|(key, _)| *key == printed) {
                return Some((start, *slot));
            }
            match &start.kind {
                ExprKind::Member(of, _) | ExprKind::Index(of, _) => start = of,
                _ => return None,
            }
        }
    }

    /// The members and indexers between `start` and `expr`, applied to what `start` was bound to.
    fn steps(&mut self, expr: &Expr, start: &Expr, bound: Bound) -> Result<Bound, SqlError> {
        let mut steps = Vec::new();
        let mut at = expr;
        while !std::ptr::eq(at, start) {
            steps.push(at);
            match &at.kind {
                ExprKind::Member(of, _) | ExprKind::Index(of, _) => at = of,
                _ => break,
            }
        }
        steps.into_iter().rev().try_fold(bound, |bound, step| {
            Ok(match &step.kind {
                ExprKind::Member(_, name) => Bound::Member(Box::new(bound), name.clone()),
                ExprKind::Index(_, index) => Bound::Index(Box::new(bound), Box::new(self.expr(index)?)),
                _ => bound,
            })
        })
    }

    fn not_grouped(&self, expr: &Expr, phase: Phase) -> SqlError {
        let reference = self.text_of(expr.span);
        let (code, place) = match phase {
            Phase::OrderOfGroups => ("SC2103", "ORDER BY clause"),
            _ => ("SC2102", "select list"),
        };
        let message = format!(
            "Property reference '{reference}' is invalid in the {place} because it is not contained in either \
             an aggregate function or the GROUP BY clause."
        );
        SqlError::new(code, message, expr.span)
    }
}

/// The name a chain of members and indexers begins with, and its place.
pub(super) fn root_of(expr: &Expr) -> Option<(&str, Span)> {
    match &expr.kind {
        ExprKind::Name(name) => Some((name, expr.span)),
        ExprKind::Member(of, _) | ExprKind::Index(of, _) => root_of(of),
        _ => None,
    }
}

/// Whether an expression contains what `is_it` looks for, outside of subqueries.
pub(crate) fn contains(expr: &Expr, is_it: &dyn Fn(&Expr) -> bool) -> bool {
    is_it(expr) || expr.kind.parts().into_iter().any(|part| contains(part, is_it))
}

pub(crate) fn is_aggregate(expr: &Expr) -> bool {
    matches!(&expr.kind, ExprKind::Call(call) if !call.is_udf && Aggregate::find(&call.name).is_some())
}

pub(super) fn is_subquery(expr: &Expr) -> bool {
    matches!(expr.kind, ExprKind::Subquery(_, _))
}

/// The name a source is known by: its alias, or the last name of its path.
pub(crate) fn alias_of(source: &crate::ast::Source) -> Option<(&str, Span)> {
    if let Some((alias, span)) = &source.alias {
        return Some((alias, *span));
    }
    let Collection::Path(path) = &source.collection else { return None };
    let mut named = path;
    while let ExprKind::Index(of, _) = &named.kind {
        named = of;
    }
    named.last_name().map(|name| (name, path.span))
}
