//! Computed properties: names for expressions over a document, given by the container.
//!
//! A query reads them like properties. They are bound where they are named, so a filter on one is a filter on
//! what it is computed from, and an index on that serves it. `SELECT *` and `SELECT c` give the document as it
//! is stored.

use crate::ast::{Collection, Expr, ExprKind, Selection};
use crate::bind::{contains, is_aggregate};
use crate::functions::{Family, Function};
use crate::query::Query;

/// A computed property.
#[derive(Debug, Clone)]
pub struct ComputedProperty {
    name: String,
    /// What the document is called in the expression.
    alias: String,
    expr: Expr,
}

/// The most a container may have.
pub const COMPUTED_PROPERTIES_MAX: usize = 20;

/// Names that the server gives properties itself.
const SYSTEM_NAMES: [&str; 6] = ["id", "_rid", "_ts", "_self", "_etag", "_attachments"];

impl ComputedProperty {
    /// Reads a definition. The error says what is wrong with it.
    pub fn parse(name: &str, text: &str) -> Result<ComputedProperty, String> {
        let wrong = |what: &str| Err(format!("The definition of the computed property '{name}' {what}."));
        if name.is_empty() || name.contains(['/', '\0']) {
            return wrong("needs the name of a property at the top of a document");
        }
        if SYSTEM_NAMES.contains(&name) {
            return wrong("has the name of a system property");
        }
        let query = match Query::parse(text) {
            Ok(query) => query,
            Err(error) => return wrong(&format!("is no query: {}", error.message.trim_end_matches('.'))),
        };
        if let Err(error) = query.bind(&[]) {
            return wrong(&format!("is no query: {}", error.message.trim_end_matches('.')));
        }
        let tree = query.tree();
        let Selection::Value(expr, _) = &tree.select.what else {
            return wrong("must be of the form SELECT VALUE <expression> FROM <alias>");
        };
        let alias = match tree.from.as_slice() {
            [source] if !source.iterates => match &source.collection {
                Collection::Path(Expr { kind: ExprKind::Name(root), .. }) => {
                    source.alias.as_ref().map_or(root, |(alias, _)| alias).clone()
                }
                _ => return wrong("must read the container itself in FROM"),
            },
            _ => return wrong("must read the container itself in FROM, and nothing else"),
        };
        let has_clauses = tree.filter.is_some()
            || !tree.group_by.is_empty()
            || tree.order_by.is_some()
            || tree.offset_limit.is_some()
            || tree.select.top.is_some()
            || tree.select.distinct;
        if has_clauses {
            return wrong("cannot have WHERE, GROUP BY, ORDER BY, TOP, DISTINCT or OFFSET LIMIT");
        }
        if contains(expr, &|part| matches!(part.kind, ExprKind::Subquery(..))) {
            return wrong("cannot have a subquery");
        }
        if contains(expr, &is_aggregate) {
            return wrong("cannot have an aggregate");
        }
        if contains(expr, &is_not_deterministic) {
            return wrong(
                "can call built-in functions only that are neither spatial nor different from time to time",
            );
        }
        Ok(ComputedProperty { name: name.to_owned(), alias, expr: expr.clone() })
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the document is called in the expression.
    pub(crate) fn alias(&self) -> &str {
        &self.alias
    }

    /// What it is.
    pub(crate) fn expr(&self) -> &Expr {
        &self.expr
    }
}

fn is_not_deterministic(expr: &Expr) -> bool {
    let ExprKind::Call(call) = &expr.kind else { return false };
    let function = Function::find(&call.name);
    call.is_udf || function.is_some_and(|f| f.reads_context || f.family == Family::Spatial)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Result<(), &str>) {
        let found = ComputedProperty::parse("cp", text).map(drop);
        match (found, expected) {
            (Ok(()), Ok(())) => {}
            (Err(found), Err(expected)) => assert!(found.contains(expected), "{found}"),
            (found, expected) => panic!("{text}: {found:?}, should be {expected:?}"),
        }
    }

    #[test]
    fn only_an_expression_over_the_document_is_taken() {
        check("SELECT VALUE LOWER(c.name) FROM c", Ok(()));
        check("SELECT VALUE x.a + 1 FROM root AS x", Ok(()));
        check("SELECT VALUE", Err("is no query: Syntax error, unexpected end-of-file."));
        check("SELECT VALUE d.a FROM c", Err("Identifier 'd' could not be resolved."));
        check("SELECT c.a FROM c", Err("must be of the form"));
        check("SELECT VALUE 1", Err("must read the container itself"));
        check("SELECT VALUE c.b FROM c.a AS c", Err("must read the container itself"));
        check("SELECT VALUE t FROM c JOIN t IN c.t", Err("and nothing else"));
        check("SELECT VALUE c.a FROM c WHERE c.b", Err("cannot have WHERE"));
        check("SELECT DISTINCT VALUE c.a FROM c", Err("DISTINCT"));
        check("SELECT VALUE EXISTS(SELECT VALUE 1) FROM c", Err("cannot have a subquery"));
        check("SELECT VALUE COUNT(c.a) FROM c", Err("cannot have an aggregate"));
        check("SELECT VALUE RAND() FROM c", Err("different from time to time"));
        check("SELECT VALUE GETCURRENTDATETIME() FROM c", Err("different from time to time"));
        check("SELECT VALUE ST_AREA(c.shape) FROM c", Err("spatial"));
        check("SELECT VALUE udf.f(c.a) FROM c", Err("built-in"));
        check("SELECT VALUE @p FROM c", Err("could not be resolved"));
        assert!(ComputedProperty::parse("_ts", "SELECT VALUE c.a FROM c").is_err());
    }
}
