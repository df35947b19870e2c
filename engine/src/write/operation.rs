//! What a write consists of, and what it answers.

use std::sync::Arc;

use bson::RawDocumentBuf;
use mayfly_value::partition::PartitionKey;

use crate::{
    container::Container,
    error::{Error, Result},
    etag::IfMatch,
    keys::DocumentId,
    record::Record,
};

/// How a document is changed by a function of what it was. May run more than once.
pub type Modify = Arc<dyn Fn(&Record) -> Result<RawDocumentBuf> + Send + Sync>;

/// What becomes of a document.
#[derive(Clone, Debug)]
pub enum Decision {
    /// It stays as it is; nothing is written.
    Keep,
    /// This is its next version, or its first.
    Put(RawDocumentBuf),
    /// This is its next version, with parts of it changed: the log tells the difference.
    Update(RawDocumentBuf),
    /// It goes.
    Remove,
}

/// Decides about a document that may be there. May run more than once.
pub type Decide = Arc<dyn Fn(Option<&Record>) -> Result<Decision> + Send + Sync>;

/// What each operation of a write did, or why it was refused; in their order.
pub type Results = [Result<Outcome>];

/// What a receipt says, as a function of what the operations did; nothing if they may well be tried again.
pub type Note = Arc<dyn Fn(&Results) -> Option<Vec<u8>> + Send + Sync>;

/// Says with a write that it happened, in the same batch: a client that sends it again can be answered without it.
#[derive(Clone)]
pub struct Receipt {
    /// Whose write it is.
    pub session: Vec<u8>,
    /// What to keep, once it is known what the operations do.
    pub note: Note,
}

/// One step of a transaction.
#[derive(Clone)]
pub enum Operation {
    /// Make a document; there may be none.
    Create {
        /// Its id.
        id: DocumentId,
        /// The document.
        body: RawDocumentBuf,
    },
    /// Make a document or put it in the place of the one that is there.
    Upsert {
        /// Its id.
        id: DocumentId,
        /// The document.
        body: RawDocumentBuf,
        /// Only looked at if there is one.
        if_match: Option<IfMatch>,
    },
    /// Put a document in the place of the one that is there.
    Replace {
        /// The id it has.
        id: DocumentId,
        /// The id it gets, if another; there may be no document with that one.
        new_id: Option<DocumentId>,
        /// The document.
        body: RawDocumentBuf,
        /// On the one that is there.
        if_match: Option<IfMatch>,
    },
    /// Change the document that is there.
    Modify {
        /// Its id.
        id: DocumentId,
        /// From old to new.
        modify: Modify,
        /// On the one that is there.
        if_match: Option<IfMatch>,
    },
    /// Remove the document that is there.
    Delete {
        /// Its id.
        id: DocumentId,
        /// On the one that is there.
        if_match: Option<IfMatch>,
    },
    /// Do with a document, or where there is none, what a function of it says.
    Decide {
        /// Its id.
        id: DocumentId,
        /// What to do.
        decide: Decide,
    },
    /// Look at a document as it is at this point of the transaction.
    Read {
        /// Its id.
        id: DocumentId,
    },
}

impl Operation {
    /// The document it names.
    pub fn id(&self) -> &DocumentId {
        match self {
            Self::Create { id, .. }
            | Self::Upsert { id, .. }
            | Self::Replace { id, .. }
            | Self::Modify { id, .. }
            | Self::Delete { id, .. }
            | Self::Decide { id, .. }
            | Self::Read { id } => id,
        }
    }

    /// All documents it names.
    pub(super) fn ids(&self) -> impl Iterator<Item = &DocumentId> {
        let other = match self {
            Self::Replace { new_id, .. } => new_id.as_ref(),
            _ => None,
        };
        std::iter::once(self.id()).chain(other)
    }
}

/// What to do with a `ttl` that is not valid, whether or not time to live is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidTtl {
    /// Refuse the document (the NoSQL API).
    Refuse,
    /// Keep it as plain data; the container's default applies (the Mongo API).
    Ignore,
}

/// What an operation did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// There is a new document.
    Created,
    /// There is a new version.
    Replaced,
    /// There is no document any more.
    Deleted,
    /// Nothing.
    Read,
}

/// The answer to one operation.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What happened.
    pub effect: Effect,
    /// The document as it is after the operation; none after a delete.
    pub record: Option<Record>,
    /// Request units.
    pub charge: f64,
}

/// The answer to a transaction.
#[derive(Clone, Debug)]
pub struct Transaction {
    /// In the order of the operations.
    pub outcomes: Vec<Outcome>,
    /// The slot's sequence number: of this commit, or the last one if nothing was written.
    pub lsn: u64,
}

/// Operations that each stand for themselves.
pub struct StatementList<'a> {
    /// In this order.
    pub operations: &'a [Operation],
    /// Whether nothing is done after one that is refused.
    pub ordered: bool,
    /// Left with what is done.
    pub receipt: Option<&'a Receipt>,
}

/// The answer to a list of operations that each stand for themselves.
#[derive(Debug)]
pub struct Statements {
    /// In the order of the operations. Shorter than they are if an ordered list was stopped: its last one is why.
    pub results: Vec<Result<Outcome>>,
    /// The slot's sequence number: of this commit, or the last one if nothing was written.
    pub lsn: u64,
}

/// The operations of a transaction on one logical partition of one container.
#[derive(Clone)]
pub struct Part {
    /// The container.
    pub container: Arc<Container>,
    /// The partition key that all documents have.
    pub key: PartitionKey,
    /// What to do, in this order.
    pub operations: Vec<Operation>,
}

/// A transaction that was refused: the first operation that could not be done, and why. Nothing was written.
#[derive(Debug)]
pub struct Refused {
    /// Index of the part; 0 where there is one.
    pub part: usize,
    /// Index of the operation in its part.
    pub operation: usize,
    /// The reason.
    pub error: Error,
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Self { part: 0, operation: 0, error }
    }
}
