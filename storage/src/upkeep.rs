//! The upkeep of a store: durability on demand, and giving back the space of what nobody reads any more.
//!
//! Background work calls it, no request waits for it. It is apart from [`Store`](crate::store::Store), so
//! that the contract of reads and commits stays small, but every store has it: a store that has nothing to do
//! says so in a line. No method has a body here; otherwise a wrapper that forgets one would silently test
//! that body instead of the store inside.
//!
//! Holds: upkeep changes no answer about a row that anybody may still ask for.

use std::sync::Arc;

use crate::{
    Result,
    store::{BoxFuture, KeyRange, Space},
};

/// What [`Upkeep::clear`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cleared {
    /// Keys removed.
    pub keys: usize,
    /// Whether the limit was reached before the end of the range.
    pub more: bool,
}

/// What a store may do with a row that it comes across.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Somebody may still ask for it.
    Keep,
    /// No reader shows it to a client any more: it may go at any time. What its key held before must not come
    /// back.
    Drop,
    /// The same, and so it is with whatever its key held before: a store that keeps older values need not hide
    /// them.
    DropAll,
}

/// Tells rows that are dead from others.
///
/// It is a function, as [`Keep`](crate::store::Keep) is: it runs in the process that compacts.
pub trait DeadRows: Send + Sync {
    /// What may be done with this row. Once a row may go, it may go for ever.
    fn judge(&self, space: Space, key: &[u8], value: &[u8]) -> Verdict;

    /// Whether a range may have dead rows at all.
    fn may_be_in(&self, range: &KeyRange) -> bool;
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

    /// Removes all rows of these ranges, which nobody reads any more. Costs little for each row, as whole files may
    /// be dropped. In the background and not atomic: after an error, or before the answer, some may be gone.
    /// Snapshots may show them, or not. `Ok(true)` is: not all of it was done, call again.
    fn discard<'a>(&'a self, ranges: &'a [KeyRange]) -> BoxFuture<'a, Result<bool>>;

    /// From now on rows that are dead may go, wherever the store comes across them. Takes the place of what was
    /// said before, and must let go at least the same rows. Changes nothing by itself.
    fn forget(&self, dead: Arc<dyn DeadRows>);

    /// Values up to this many bytes are looked at for [`Upkeep::forget`], and then dead rows go by themselves;
    /// 0 is none: such a store is to be told what to delete.
    fn forgets_up_to(&self) -> usize;

    /// Bytes of values in [`Space::Large`] that were dropped since the store was opened because their rows were
    /// dead.
    fn forgotten_bytes(&self) -> u64;
}
