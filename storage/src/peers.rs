//! What a store knows of the other processes that share it: whether there are any, what they rely on, who
//! does the background work of a slot, and a way to wake each other.
//!
//! A store of one process has none of it and says so with [`Unshared`]. A wrapper passes every method on:
//! none has a body that would answer in its place.
//!
//! Holds: nothing here decides what a read answers; a process that misses all of it is slower, not wrong,
//! because a batch below the floor is refused where it is committed.

use crate::{
    Result,
    store::{BoxFuture, Slot},
};

/// The other processes that share a store.
pub trait Peers: Send + Sync + 'static {
    /// Whether others may write to the same place, so that what was read once may be old.
    fn is_shared(&self) -> bool;

    /// Refuses from here on every batch for these slots that guards a row of
    /// [`COMMON_SLOT`](crate::store::COMMON_SLOT) by a version below `floor`.
    ///
    /// Call it before such a row is changed, with the version it has and one: a store that is spread over
    /// servers cannot look at the row itself. A store in one place looks, and has nothing to do here.
    fn raise_floor<'a>(&'a self, slots: &'a [Slot], floor: u64) -> BoxFuture<'a, Result<()>>;

    /// The highest floor of a slot that this store has met, in any answer. A decision by a version below it
    /// is a decision by what is old.
    fn floor(&self, slot: Slot) -> u64;

    /// Says a word to the processes that share the store, where the store passes words on. One may be lost:
    /// look now and then as well.
    fn say(&self, word: u64) -> BoxFuture<'_, ()>;

    /// Ends when a process, this one or another, has said this word after this was called, and perhaps
    /// without that.
    fn heard(&self, word: u64) -> BoxFuture<'_, ()>;

    /// Whether the background work of a slot is this process's, at the moment. Effort is all that rests on
    /// it.
    fn tends(&self, slot: Slot) -> bool;
}

/// A store that belongs to one process: it has no peers, and its [`Peers`] follow from that.
pub trait Unshared: Send + Sync + 'static {}

impl<S: Unshared + ?Sized> Peers for S {
    fn is_shared(&self) -> bool {
        false
    }

    /// A commit looks at the guarded row itself.
    fn raise_floor<'a>(&'a self, _: &'a [Slot], _: u64) -> BoxFuture<'a, Result<()>> {
        Box::pin(async { Ok(()) })
    }

    fn floor(&self, _: Slot) -> u64 {
        0
    }

    fn say(&self, _: u64) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    fn heard(&self, _: u64) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }

    fn tends(&self, _: Slot) -> bool {
        true
    }
}
