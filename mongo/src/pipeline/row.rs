//! What goes through a pipeline: a document, and the stored one that it stands for.
//!
//! Stages that make one document of another, or several of one, hand the origin on; those that make one of many drop it.

use std::{ops::Deref, sync::Arc};

use bson::{RawDocument, RawDocumentBuf};
use mayfly_engine::{Container, Record};

use crate::origin::Origin;

/// A document on its way.
#[derive(Clone, Debug)]
pub struct Row {
    /// What it has become.
    pub document: RawDocumentBuf,
    /// What it was read from, if that is one document.
    pub(crate) origin: Option<Arc<Origin>>,
}

impl Row {
    /// A document that stands for itself.
    pub fn made(document: RawDocumentBuf) -> Self {
        Self { document, origin: None }
    }

    /// Another document of the same origin.
    pub(crate) fn becomes(&self, document: RawDocumentBuf) -> Self {
        Self { document, origin: self.origin.clone() }
    }
}

impl Deref for Row {
    type Target = RawDocument;

    fn deref(&self) -> &RawDocument {
        &self.document
    }
}

/// Where a document lies that is only looked at: what it needs to become a row.
#[derive(Clone, Copy)]
pub struct Provenance<'a>(Option<(&'a Arc<Container>, &'a Record)>);

impl<'a> Provenance<'a> {
    /// From nowhere.
    pub(crate) const NONE: Self = Self(None);

    /// From a container, if it is there.
    pub(crate) fn of(container: Option<&'a Arc<Container>>, record: Option<&'a Record>) -> Self {
        Self(container.zip(record))
    }

    /// A document of this origin.
    pub(crate) fn row(self, document: RawDocumentBuf) -> Row {
        let origin = self.0.map(|(container, record)| Arc::new(Origin::of(container, record)));
        Row { document, origin }
    }
}
