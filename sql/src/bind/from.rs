//! FROM and JOIN: what a query reads.
//!
//! The first source of a query that no other query surrounds is the container, whatever its name; a query in
//! that place reads the container in turn. Everywhere else a source begins with a name that is known.

use super::Binder;
use super::scope::alias_of;
use crate::ast::{self, Collection, Expr, ExprKind, QueryTree};
use crate::error::SqlError;
use crate::plan::{Bound, Input, Over, Slot, Source};

/// The service's limit.
const JOINS_MAX: usize = 10;

impl Binder<'_> {
    pub(super) fn from(&mut self, tree: &QueryTree) -> Result<(Input, Vec<Source>), SqlError> {
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
            self.note_document(&over, slot, source.iterates);
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
                self.documents.insert(slot);
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
                let computed = self.computed_of_document(slot, name);
                if let (ExprKind::Name(_), Some(property)) = (&of.kind, computed) {
                    return self.computed_value(property, slot);
                }
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

    /// Remembers that a source is the document itself, under whatever name.
    fn note_document(&mut self, over: &Over, slot: Slot, iterates: bool) {
        if let (Over::Value(Bound::Slot(of)), false) = (over, iterates)
            && self.documents.contains(of)
        {
            self.documents.insert(slot);
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
}
