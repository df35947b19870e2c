//! What can go wrong in the engine, worded as advice to the caller.
//!
//! Each front-end maps these kinds to its protocol in one file. An expired document is `NotFound`: nobody can
//! tell it from one that never was.

use std::panic::Location;

use mayfly_value::{BsonError, keycode::KeycodeError, partition::PartitionKeyError};

/// The result of an engine operation.
pub type Result<T> = std::result::Result<T, Error>;

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// A database.
    Database,
    /// A container or collection.
    Container,
    /// A document.
    Document,
    /// A resource that is only kept: a user, a permission, a script, …
    Kept,
}

/// Kinds of failure. Nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The thing is not there, or has expired. Asking again will not help.
    #[error("{0:?} not found")]
    NotFound(Resource),
    /// There is one already.
    #[error("{0:?} exists already")]
    Exists(Resource),
    /// Another live document of the same logical partition has these values.
    #[error("a unique key is taken")]
    UniqueViolation,
    /// Another live document has these values in a unique index of the collection.
    #[error("the unique index {index} has these values already")]
    Duplicate {
        /// The index's name.
        index: String,
    },
    /// A document has arrays in two fields of one index.
    #[error("cannot index parallel arrays")]
    ParallelArrays,
    /// A document's value cannot be in an index of the collection.
    #[error("{0}")]
    NotIndexable(String),
    /// The caller's etag is not the current one. Read again and decide.
    #[error("the etag does not match")]
    PreconditionFailed,
    /// The document's partition key is not the one the request names.
    #[error("the partition key of the document is not the one of the request")]
    PartitionKeyMismatch,
    /// The request cannot be right. The message is shown to the caller as it is.
    #[error("{message}")]
    BadRequest {
        /// For the caller.
        message: String,
    },
    /// A `ttl` outside the rule; carries the value as JSON text.
    #[error("the ttl {value} is not valid")]
    InvalidTtl {
        /// What was given.
        value: String,
    },
    /// More than the limit.
    #[error("too large: {bytes} bytes where {bytes_max} are allowed")]
    TooLarge {
        /// What it has.
        bytes: usize,
        /// What is allowed.
        bytes_max: usize,
    },
    /// The position to continue from is not one of ours.
    #[error("the continuation is not valid")]
    BadContinuation,
    /// The index is not what the caller planned with. Plan again.
    #[error("the index has changed")]
    IndexChanged,
    /// Too many others change the same thing at once. Try again later.
    #[error("too much contention")]
    Contention,
    /// Writes are refused for now: the disk is nearly full, or the operator said so. Reads go on.
    #[error("the server takes no writes at the moment")]
    ReadOnly,
    /// The store failed. Nothing may be assumed about the last write.
    #[error("the store is not available: {0}")]
    Unavailable(#[source] mayfly_storage::Error),
    /// Stored bytes do not say what they should. Stop and run `mayfly check`.
    #[error("stored data is damaged: {0}")]
    Corrupt(&'static str),
    /// A bug, with the place it was noticed at.
    #[error("internal error at {location}: {message}")]
    Internal {
        /// Where.
        location: &'static Location<'static>,
        /// What.
        message: String,
    },
}

impl Error {
    /// A request that cannot be right.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::BadRequest { message: message.into() }
    }

    /// A bug, noticed here.
    #[track_caller]
    pub fn internal(message: impl Into<String>) -> Self {
        Self::Internal { location: Location::caller(), message: message.into() }
    }
}

impl From<mayfly_storage::Error> for Error {
    fn from(error: mayfly_storage::Error) -> Self {
        match error {
            mayfly_storage::Error::KeyTooLong { bytes_max } => Self::bad_request(format!(
                "The id of a document, or its id with an indexed path and value, is too long: the store behind this \
                 server takes about {bytes_max} bytes together. Shorten them, or leave the path out of the index."
            )),
            mayfly_storage::Error::Apart => Self::bad_request(
                "The documents of this transaction are on several database servers; such transactions are not supported.",
            ),
            error => Self::Unavailable(error),
        }
    }
}

impl From<PartitionKeyError> for Error {
    fn from(error: PartitionKeyError) -> Self {
        Self::bad_request(error.to_string())
    }
}

impl From<BsonError> for Error {
    fn from(_: BsonError) -> Self {
        Self::Corrupt("a document is not valid BSON")
    }
}

impl From<KeycodeError> for Error {
    fn from(_: KeycodeError) -> Self {
        Self::Corrupt("a key cannot be read")
    }
}

impl From<bson::error::Error> for Error {
    fn from(_: bson::error::Error) -> Self {
        Self::Corrupt("a document is not valid BSON")
    }
}
