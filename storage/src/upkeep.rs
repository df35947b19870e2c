//! The upkeep of a store: durability on demand, and giving back the space of what nobody reads any more.
//!
//! Background work calls it, no request waits for it. It is apart from [`Store`](crate::store::Store), so
//! that the contract of reads and commits stays small, but every store has it: a store that has nothing to do
//! says so in a line. No method has a body here; otherwise a wrapper that forgets one would silently test
//! that body instead of the store inside.
//!
//! Holds: upkeep changes no answer about a row that anybody may still ask for.

use crate::{
    Result,
    store::{BoxFuture, KeyRange},
};

/// What [`Upkeep::clear`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cleared {
    /// Keys removed.
    pub keys: usize,
    /// Whether the limit was reached before the end of the range.
    pub more: bool,
}

/// Rows that nobody asks for any more, told by their values: those in a range that begin with `lead` and go
/// on with a number (eight bytes, big-endian) of at most `through`.
///
/// It is data and not a function, so that it survives a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Withered {
    /// Where to look.
    pub range: KeyRange,
    /// The first byte of the value.
    pub lead: u8,
    /// The largest number after it.
    pub through: u64,
}

impl Withered {
    /// Whether a row with this value is one of them, if its key is in the range.
    pub fn includes(&self, value: &[u8]) -> bool {
        let number = value.get(1..9).and_then(|bytes| <[u8; 8]>::try_from(bytes).ok());
        value.first() == Some(&self.lead)
            && number.is_some_and(|bytes| u64::from_be_bytes(bytes) <= self.through)
    }
}

/// What the background does to a store.
pub trait Upkeep: Send + Sync + 'static {
    /// Removes up to `limit` keys of a range that nobody reads any more. In the background, and not atomic:
    /// call again while `more`.
    fn clear<'a>(&'a self, range: &'a KeyRange, limit: usize) -> BoxFuture<'a, Result<Cleared>>;

    /// Makes everything acknowledged so far durable, whatever the configuration.
    fn sync(&self) -> BoxFuture<'_, Result<()>>;

    /// Gives back the space of what was deleted, as far as it is worth the work.
    ///
    /// In the background: safe at any time, changes no answer, and holds nobody up for long. But it may go
    /// through all that is stored, so call it when much was deleted since the last time. One at a time; a
    /// second call does nothing. A failure is one of the medium and says nothing about what is stored.
    fn reclaim(&self) -> BoxFuture<'_, Result<()>>;

    /// Compacts what was written, so that reads are cheaper, if it is worth the work and nothing was written
    /// since the last call; whether it was done. To be called every second or so. Like [`Upkeep::reclaim`],
    /// it changes no answer.
    fn compact_when_idle(&self) -> BoxFuture<'_, Result<bool>>;

    /// Removes all rows that are withered. For many of them: it may go through all that is stored, which is
    /// cheaper than so many deletes.
    ///
    /// In the background and not atomic. Snapshots may show such rows, or not. After `Ok`, those that were
    /// there before the call are gone for good; after an error any of them may be.
    fn sweep(&self, withered: Vec<Withered>) -> BoxFuture<'_, Result<()>>;

    /// Announces rows that a later sweep removes. A compaction that comes across them before the sweep may
    /// leave them out already; without that, a store that is just compacting would do the work of the sweep
    /// twice.
    fn wither(&self, withered: Vec<Withered>);
}
