//! Projections: which fields of a document are shown, which are left out, and which are computed.
//!
//! One tree serves `find`, `$project`, `$addFields` and `$unset`. Included fields keep the document's order,
//! computed ones follow in the order of the projection. A path into an array goes to each of its objects.

mod apply;
mod parse;

use bson::{RawDocument, RawDocumentBuf};

use crate::context::Context;
use crate::error::Result;
use crate::expression::{Env, Expr, Names};
use crate::filter::Filter;
use crate::values::Value;

/// A parsed projection.
#[derive(Debug)]
pub struct Projection {
    kind: ProjectionKind,
    tree: Tree,
    positional: Option<Filter>,
}

/// What happens to fields that are not named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProjectionKind {
    /// They are left out.
    Inclusion,
    /// They are kept.
    Exclusion,
    /// They are kept, and the named ones are set.
    Addition,
}

/// Fields and what happens to each.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    fields: Vec<(String, Action)>,
}

/// What happens to a field.
#[derive(Debug)]
pub(crate) enum Action {
    Include,
    Exclude,
    Compute(Expr),
    Slice {
        skip: Option<i64>,
        count: i64,
    },
    ElemMatch(Filter),
    /// The one item that the query matched.
    Positional,
    Nested(Tree),
}

impl Projection {
    /// Parses the projection of a `find`. The filter tells which item a `$` stands for.
    pub fn parse_find(projection: &RawDocument, filter: &Filter, names: &Names) -> Result<Projection> {
        parse::find(projection, filter, names)
    }

    /// Parses a `$project`.
    pub(crate) fn parse_project(projection: &RawDocument, names: &Names) -> Result<Projection> {
        parse::project(projection, names)
    }

    /// Parses a `$addFields`.
    pub(crate) fn parse_add(fields: &RawDocument, names: &Names) -> Result<Projection> {
        parse::add_fields(fields, names)
    }

    /// A projection that leaves these paths out.
    pub(crate) fn exclude(paths: &[String]) -> Result<Projection> {
        parse::exclude(paths)
    }

    /// A projection that sets these paths, as `$addFields` does.
    pub(crate) fn set(values: Vec<(&[String], Value)>) -> Result<Projection> {
        parse::set(values)
    }

    /// Whether it asks for the item that the query matched.
    pub(crate) fn is_positional(&self) -> bool {
        self.positional.is_some()
    }

    /// Whether a field is after it what it was before. Where fields are added somewhere in a field, all of it counts as changed: an item
    /// of an array that was no object becomes one.
    pub(crate) fn keeps(&self, path: &[String]) -> bool {
        self.tree.keeps(path, self.kind)
    }

    /// What is left of a document.
    pub fn apply(&self, document: &RawDocument, context: &Context<'_>) -> Result<RawDocumentBuf> {
        self.apply_in(document, &mut Env::new(document, context))
    }

    pub(crate) fn apply_in(&self, document: &RawDocument, env: &mut Env<'_>) -> Result<RawDocumentBuf> {
        let position = match &self.positional {
            None => None,
            Some(filter) => {
                let mut details = crate::filter::Details::default();
                filter.matches_with(document, env.context, &mut details)?;
                details.position
            }
        };
        let mut out = RawDocumentBuf::new();
        self.tree.apply(document, self.kind, position, env, &mut out)?;
        Ok(out)
    }
}

impl Tree {
    fn keeps(&self, path: &[String], kind: ProjectionKind) -> bool {
        let Some((first, rest)) = path.split_first() else { return false };
        match self.fields.iter().find(|(name, _)| name == first).map(|(_, action)| action) {
            None => kind != ProjectionKind::Inclusion,
            Some(Action::Include) => true,
            Some(Action::Nested(inner)) => kind != ProjectionKind::Addition && inner.keeps(rest, kind),
            Some(_) => false,
        }
    }
}
