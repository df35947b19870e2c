//! The contract every backend keeps: ordered bytes, snapshots, guarded atomic batches.
//!
//! The engine above reads a snapshot, decides, and commits one [`Batch`]. The batch carries *guards*: what
//! the engine saw and relied on. It is applied whole if every guard still holds and not at all otherwise, so
//! there are no locks and no borrowed iterators in this interface and it survives a network hop.
//! [`Snapshot::sieve`] alone takes functions: they run in the process that reads, wherever the rows come
//! from.
//!
//! ```text
//!   get / snapshot ──▶ decide ──▶ commit(guards, puts, deletes, advances)
//!                                   │ all guards hold          │ one does not
//!                                   ▼                          ▼
//!                             Committed { seqs }            Conflict: read again, decide again
//! ```
//!
//! Four things deserve a word.
//!
//! *Slots.* A [`Key`] names the [`Slot`] it lives in. An embedded store keeps all slots in one tree and ignores
//! the number; a distributed one places slots on servers by it. The same bytes are never used in two slots, so
//! both views agree.
//!
//! *Sequences.* Commit order inside a slot is only known at commit. An [`Advance`] asks the store to raise a
//! counter row by one, and [`SeqMark`]s say where in the batch's own keys and values the new number is written
//! (eight bytes, big-endian). Nobody can observe number n + 1 before n: that is the order of a change feed.
//!
//! *Rows of other slots.* A batch is of one slot, as a rule, and may guard a row of [`COMMON_SLOT`] by its version: the
//! definition that it was decided by, say. All batches of a slot guard the same one, if they guard any; and whoever
//! changes it calls [`Peers::raise_floor`] first.
//!
//! *Stamps.* An advance also carries a `stamp` that may never go down along the sequence: a batch with a smaller
//! one is refused as [`Error::Stale`](crate::Error::Stale). What the number means is the caller's business.
//!
//! What the background does to a store is in [`upkeep`](crate::upkeep), what other processes have to do with
//! it in [`peers`](crate::peers); every store is both.
//!
//! Holds: `commit` is atomic and isolated; after `Ok` every later read sees it; with [`Urgency::Foreground`]
//! and a durable configuration it also survives a crash.

use std::{future::Future, pin::Pin, sync::Arc};

use bytes::Bytes;

use crate::{Result, peers::Peers, upkeep::Upkeep};

/// A future as it crosses the seam. One box per page or batch, never per row.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The unit of placement. An opaque number to the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub u32);

/// The slot whose rows batches of other slots may rely on, by their version; see [`Peers::raise_floor`].
pub const COMMON_SLOT: Slot = Slot(0);

/// Which tree a key lives in. A hint about value size, so that a backend may keep large values apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Space {
    /// Many keys with values of a few bytes.
    Small,
    /// Values of about a kilobyte and more.
    Large,
}

/// A place in the store.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The tree.
    pub space: Space,
    /// The unit of placement; derived from `bytes` by the caller, so equal bytes have equal slots.
    pub slot: Slot,
    /// Compared as unsigned bytes. Not empty, at most [`KEY_BYTES_MAX`].
    pub bytes: Vec<u8>,
}

/// The longest key a backend must accept.
pub const KEY_BYTES_MAX: usize = 8 * 1024;

/// All keys of one space and slot in `start..end`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    /// The tree.
    pub space: Space,
    /// The unit of placement.
    pub slot: Slot,
    /// Inclusive.
    pub start: Vec<u8>,
    /// Exclusive; `None` is past every key.
    pub end: Option<Vec<u8>>,
}

impl KeyRange {
    /// Every key that begins with `prefix`.
    pub fn prefix(space: Space, slot: Slot, prefix: Vec<u8>) -> Self {
        let end = prefix_end(&prefix);
        Self { space, slot, start: prefix, end }
    }

    /// Whether no key can be inside.
    pub fn is_empty(&self) -> bool {
        self.end.as_ref().is_some_and(|end| *end <= self.start)
    }
}

/// The smallest byte string greater than every string that begins with `prefix`, if there is one.
pub fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != 0xFF)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

/// How far a scan goes.
#[derive(Clone, Copy, Debug)]
pub struct PageLimit {
    /// At most this many rows; at least 1.
    pub rows: usize,
    /// Stop after the row that reaches this many bytes of keys and values.
    pub bytes: usize,
}

/// Which way a scan goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Ascending keys.
    Forward,
    /// Descending keys.
    Reverse,
}

/// One page of a scan, in the order of its direction.
#[derive(Debug, Default)]
pub struct Page {
    /// Key bytes and value.
    pub rows: Vec<(Bytes, Bytes)>,
    /// Whether the limit cut the scan short. Continue just past the last row's key.
    pub more: bool,
}

/// What a sieve has let through.
#[derive(Debug, Default)]
pub struct Sieved {
    /// Key bytes and value of the rows that are kept.
    pub rows: Vec<(Bytes, Bytes)>,
    /// Rows that were met, kept or not.
    pub met: usize,
    /// The last key that was met, if the limit cut the walk short. Continue just past it.
    pub cut_after: Option<Bytes>,
}

impl Sieved {
    /// What is kept of a page, by a store that asks about each row alone.
    pub fn of(page: Page, keep: &mut Keep<'_>) -> Self {
        let cut_after = page.rows.last().filter(|_| page.more).map(|(key, _)| key.clone());
        let met = page.rows.len();
        let rows = page.rows.into_iter().filter(|(key, value)| keep(key, value, true)).collect();
        Self { rows, met, cut_after }
    }
}

/// Whether a row is kept, by its key and its value. The last argument is false if [`MayHold`] has denied it
/// already.
pub type Keep<'a> = dyn FnMut(&[u8], &[u8], bool) -> bool + Send + 'a;

/// Whether bytes may hold, among other things, a value that is kept.
pub type MayHold<'a> = dyn Fn(&[u8]) -> bool + Sync + 'a;

/// What a guard expects to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// No value at this key.
    Absent,
    /// A value whose first eight bytes, big-endian, are this number. The versions of a row that is guarded go
    /// up: who relies on a lower one than is there has looked too early.
    Version(u64),
}

/// A condition of a batch.
#[derive(Clone, Debug)]
pub struct Guard {
    /// Where to look.
    pub key: Key,
    /// What must be there.
    pub expect: Expect,
}

/// Where a commit writes the sequence number it was given: eight bytes, big-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeqMark {
    /// Index into [`Batch::advances`].
    pub advance: u8,
    /// The place.
    pub at: MarkAt,
}

/// The place of a [`SeqMark`], as a byte offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkAt {
    /// In the key.
    Key(u32),
    /// In the value.
    Value(u32),
}

/// A value to write.
#[derive(Clone, Debug)]
pub struct Put {
    /// Where.
    pub key: Key,
    /// What.
    pub value: Vec<u8>,
    /// Places in `key` and `value` to fill in at commit.
    pub marks: Vec<SeqMark>,
}

/// Raise a counter row by one, and its tallies by the given amounts.
#[derive(Clone, Debug)]
pub struct Advance {
    /// The counter row. Created as zero when absent.
    pub counter: Key,
    /// May not be below the counter's; becomes the counter's.
    pub stamp: u64,
    /// Added to the counter's tallies.
    pub tally: [i64; 2],
}

/// A counter row, 32 bytes: sequence, stamp, two tallies, each big-endian.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counter {
    /// The last number given out.
    pub seq: u64,
    /// The highest stamp seen.
    pub stamp: u64,
    /// Running sums of the advances' tallies.
    pub tally: [i64; 2],
}

impl Counter {
    /// The encoded length.
    pub const LEN: usize = 32;

    /// The row's bytes.
    pub fn encode(&self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[0..8].copy_from_slice(&self.seq.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.stamp.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.tally[0].to_be_bytes());
        bytes[24..32].copy_from_slice(&self.tally[1].to_be_bytes());
        bytes
    }

    /// Reads a row; `None` when the bytes are not one.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let word = |at: usize| <[u8; 8]>::try_from(bytes.get(at..at + 8)?).ok();
        if bytes.len() != Self::LEN {
            return None;
        }
        Some(Self {
            seq: u64::from_be_bytes(word(0)?),
            stamp: u64::from_be_bytes(word(8)?),
            tally: [i64::from_be_bytes(word(16)?), i64::from_be_bytes(word(24)?)],
        })
    }

    /// The row after `advance`, or `None` if its stamp is below this row's.
    pub fn advanced(&self, advance: &Advance) -> Option<Self> {
        (advance.stamp >= self.stamp).then(|| Self {
            seq: self.seq + 1,
            stamp: advance.stamp,
            tally: [self.tally[0] + advance.tally[0], self.tally[1] + advance.tally[1]],
        })
    }
}

/// Who waits for a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Urgency {
    /// A client. Durable before it is acknowledged, if the store is configured so.
    #[default]
    Foreground,
    /// Nobody. Goes behind the others and is not synced for its own sake: it may be lost in a crash, whole.
    Background,
}

/// A change: applied whole if all guards hold, else not at all.
///
/// A key is written at most once in a batch: it is put or deleted, not both. Counter rows are touched by
/// advances alone.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Conditions on the state before the batch.
    pub guards: Vec<Guard>,
    /// Values to write.
    pub puts: Vec<Put>,
    /// Keys to remove; absent ones are fine.
    pub deletes: Vec<Key>,
    /// Counters to raise.
    pub advances: Vec<Advance>,
    /// Who waits.
    pub urgency: Urgency,
}

/// What a commit answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Committed {
    /// The new counter rows, in the order of [`Batch::advances`].
    pub counters: Vec<Counter>,
}

/// What a store can say about itself. Figures for people, not for decisions.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stats {
    /// Bytes on disk, all files together; 0 for a store without files.
    pub disk_bytes: u64,
    /// Batches committed since the store was opened.
    pub commits: u64,
    /// Groups those were written in: one sync each when durable.
    pub groups: u64,
    /// Batches refused by a guard or a stamp.
    pub conflicts: u64,
}

/// Ordered bytes with snapshots and guarded batches. See the module's head for what holds.
///
/// Every method is required, here and in [`Upkeep`], [`Peers`] and [`Snapshot`]: a wrapper cannot forget one
/// and have a default answer in place of the store inside.
pub trait Store: Upkeep + Peers {
    /// The latest value at `key`.
    fn get<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Bytes>>>;

    /// The latest values at two keys of one slot, both of one moment.
    fn get_both<'a>(&'a self, keys: &'a [Key; 2]) -> BoxFuture<'a, Result<[Option<Bytes>; 2]>>;

    /// The first rows of a range, at most so many, as they are now. For a range with few and small ones:
    /// unlike a snapshot it holds nothing, and it is one question where a snapshot over a network is several.
    fn peek<'a>(&'a self, range: &'a KeyRange, rows: usize) -> BoxFuture<'a, Result<Vec<(Bytes, Bytes)>>>;

    /// A view of everything committed so far. Meant for one page of work: it holds back reclamation.
    fn snapshot(&self) -> BoxFuture<'_, Result<Arc<dyn Snapshot>>>;

    /// The same view for background work, which goes through many rows once: what it reads does not push out of
    /// the store's caches what requests read.
    fn background_snapshot(&self) -> BoxFuture<'_, Result<Arc<dyn Snapshot>>>;

    /// Applies a batch if its guards hold.
    ///
    /// `Err(Conflict)` and `Err(Stale)` mean that nothing was written; any other error that nothing may be
    /// assumed about this batch and that the store refuses writes until it is opened again.
    fn commit(&self, batch: Batch) -> BoxFuture<'_, Result<Committed>>;

    /// Figures for people.
    fn stats(&self) -> Stats;
}

/// A view that does not change.
pub trait Snapshot: Send + Sync {
    /// The value at `key`.
    fn get<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Bytes>>>;

    /// The values at `keys`, in their order.
    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Bytes>>>>;

    /// One page of `range`.
    fn scan<'a>(
        &'a self,
        range: &'a KeyRange,
        direction: Direction,
        limit: PageLimit,
    ) -> BoxFuture<'a, Result<Page>>;

    /// The rows of such a page that are kept. For whoever looks at many to keep few: a store that has them in
    /// memory need not hand out the others. One that has them side by side asks `may_hold` about many at
    /// once. The limit counts all that are met.
    fn sieve<'a>(
        &'a self,
        range: &'a KeyRange,
        direction: Direction,
        limit: PageLimit,
        may_hold: Option<&'a MayHold<'_>>,
        keep: &'a mut Keep<'_>,
    ) -> BoxFuture<'a, Result<Sieved>>;
}
