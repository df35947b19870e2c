//! Computed properties: bound where they are named, as if their expression stood there.

use super::Binder;
use super::scope::Scope;
use crate::ast::{Expr, ExprKind};
use crate::computed::ComputedProperty;
use crate::error::SqlError;
use crate::plan::{Bound, Slot};

impl<'b> Binder<'b> {
    /// The computed property that an expression names: the name of a document, and its own.
    pub(super) fn computed_property(&self, expr: &Expr) -> Option<&'b ComputedProperty> {
        if self.computed.is_empty() {
            return None;
        }
        let (of, name) = match &expr.kind {
            ExprKind::Member(of, name) => (of, name.clone()),
            ExprKind::Index(of, index) => match &index.kind {
                ExprKind::Parameter(name) => {
                    (of, self.parameter(name, index.span).ok()?.as_str()?.to_owned())
                }
                _ => return None,
            },
            _ => return None,
        };
        let ExprKind::Name(root) = &of.kind else { return None };
        let (slot, ..) = self.find(root)?;
        self.computed_of_document(slot, &name)
    }

    /// The computed property of this name, if the slot holds a document.
    pub(super) fn computed_of_document(&self, slot: Slot, name: &str) -> Option<&'b ComputedProperty> {
        let property = self.computed.iter().find(|property| property.name() == name)?;
        self.documents.contains(&slot).then_some(property)
    }

    /// What a computed property is for the document in a slot.
    pub(super) fn computed_value(
        &mut self,
        property: &ComputedProperty,
        slot: Slot,
    ) -> Result<Bound, SqlError> {
        // A computed property cannot read another: what has the same name is a stored one.
        let computed = std::mem::take(&mut self.computed);
        self.scopes.push(Scope::default());
        let bound = self.with_name(property.alias(), slot, |binder| binder.expr(property.expr()));
        self.scopes.pop();
        self.computed = computed;
        bound
    }
}
