//! What can go wrong in a store, worded as advice to the caller.

use crate::store::Key;

/// The result of a store operation.
pub type Result<T> = std::result::Result<T, Error>;

/// Kinds of failure. Nothing was written unless said otherwise.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A guard did not hold: someone else changed this key first. Read again and decide again.
    #[error("a guarded key was changed by someone else")]
    Conflict {
        /// The guard's key.
        key: Key,
    },
    /// The batch's stamp is below the counter's. Take a stamp at least this high and commit again.
    #[error("the stamp is behind the counter's {stamp}")]
    Stale {
        /// The counter's stamp.
        stamp: u64,
    },
    /// The batch or range itself is not allowed by the contract. A bug of the caller.
    #[error("not a valid request to the store: {0}")]
    Invalid(&'static str),
    /// A key has more bytes than this store can order. Nothing else is wrong with the batch.
    #[error("a key has more than {bytes_max} bytes")]
    KeyTooLong {
        /// What it takes for certain; longer keys that compress may be taken too.
        bytes_max: usize,
    },
    /// The batch is for slots that several servers hold, and is not divided.
    #[error("the slots of a batch are on several servers")]
    Apart,
    /// The medium failed. The store refuses writes until it is opened again: what a failed sync left on disk is
    /// unknown, and pretending otherwise loses data.
    #[error("the store failed: {0}")]
    Failed(String),
    /// An earlier failure closed the store for writes. Open it again.
    #[error("the store is closed for writes after an earlier failure")]
    Poisoned,
    /// A server on the network cannot be reached, or was lost before it answered. Nothing may be assumed about this
    /// batch; the store goes on, so try again.
    #[error("the database cannot be reached: {0}")]
    Unreachable(String),
    /// The slot is on its way to another server, or went there. Take another snapshot and try again.
    #[error("the slot has moved to another server")]
    Moved,
    /// The directory is not one of ours, or of a version we do not know, or damaged. The message says what to do.
    #[error("{0}")]
    Unusable(String),
}
