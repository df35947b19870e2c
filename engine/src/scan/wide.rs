//! A walk over records that several threads share: for a filter that lets few documents pass.
//!
//! Records lie by the hashes of their partition keys. Hashes are spread evenly, so a range of them tells about how many
//! documents it has. What follows a position is cut into pieces, several for each thread; whoever has walked one takes the
//! next, so all are done at about the same time, and what they find is put together in order. A piece that has more than it
//! should, or more documents than the page has room for, ends the page: no further one is begun, and what was found behind
//! it is thrown away, and found again.
//!
//! Holds: the same documents in the same order as one thread finds, all of one snapshot. No more threads run than there
//! are cores, whoever asks: one that finds them taken walks alone.

use std::{
    panic::resume_unwind,
    sync::{
        LazyLock,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    thread,
};

use mayfly_storage::store::{Direction, PageLimit};
use mayfly_value::{
    keycode,
    partition::{Epk, KeyKind},
};
use tokio::{
    runtime::{Handle, RuntimeFlavor},
    task::block_in_place,
};

use super::{
    Opened, Wanted, cores,
    state::counter,
    walk::{Page, Walk},
};
use crate::{
    access::{Access, HashRange},
    error::{Error, Result},
    keys::Family,
    position::{After, Leg, Position},
};

/// Documents of a piece: less than a millisecond of work, which is the longest that a thread waits for another, and many
/// times what it takes to find the start of a piece.
const PIECE_DOCUMENTS: u64 = 1250;

/// Smaller pieces are not worth looking for their start.
const PIECE_DOCUMENTS_MIN: u64 = 500;

/// Pieces for each thread of a page: threads are started for each page, and at its end they wait for each other.
const PIECES_EACH: usize = 40;

/// What a piece may have at most. Where documents share few partition keys, pieces differ much.
const PIECE_ENTRIES_MAX: usize = 20_000;

/// So many documents have to be left for threads to be worth their start.
const LEFT_MIN: u64 = 2000;

/// Threads of one walk. More would bring more to be thrown away.
const THREADS_MAX: usize = 4;

/// Whoever wants fewer documents than this finds them soon, if they are there.
const ROWS_MIN: usize = 256;

/// The two top bits of a hash are zero.
const HASH_END: u64 = 1 << 62;

/// Threads that help, in the whole process.
static HELPERS: AtomicUsize = AtomicUsize::new(0);

/// Asked for once: the answer is read from several files.
static CORES: LazyLock<usize> = LazyLock::new(|| thread::available_parallelism().map_or(1, usize::from));

/// The right to use some threads.
struct Helpers(usize);

impl Helpers {
    /// As many as there are, up to `wanted`.
    fn take(wanted: usize) -> Self {
        let free = |busy: usize| wanted.min(CORES.saturating_sub(1).saturating_sub(busy));
        let taken = HELPERS.fetch_update(Relaxed, Relaxed, |busy| Some(busy + free(busy)));
        Self(taken.map_or(0, free))
    }
}

impl Drop for Helpers {
    fn drop(&mut self) {
        HELPERS.fetch_sub(self.0, Relaxed);
    }
}

/// The pieces of a walk and where it goes on after all of them.
struct Pieces {
    slot: u16,
    ranges: Vec<HashRange>,
    next: Option<Position>,
}

impl Pieces {
    /// Where a walk goes on after the first `count` of them.
    fn after(&self, count: usize) -> Option<Position> {
        match self.ranges.get(count) {
            Some(range) => Some(start_of(self.slot, range)),
            None => self.next.clone(),
        }
    }
}

/// The place before the first document of a piece.
fn start_of(slot: u16, range: &HashRange) -> Position {
    let mut key = Vec::new();
    keycode::push_bytes(&mut key, &range.start.0);
    Position { after: After::Key(key), ..Position::start_of(slot) }
}

impl Opened {
    /// A page of the documents after `position`, if it is worth several threads and there are any.
    pub(super) async fn wide_page(
        &self,
        access: &Access,
        direction: Direction,
        position: Option<&Position>,
        limit: PageLimit,
        wanted: Option<Wanted<'_>>,
    ) -> Result<Option<(Page, Option<Position>)>> {
        // The first page of a walk is walked alone: it shows whether few documents pass.
        let (Access::Records(within), Direction::Forward, Some(position), Some(Wanted::Document(_))) =
            (access, direction, position, wanted)
        else {
            return Ok(None);
        };
        let has_threads =
            Handle::try_current().is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread);
        let key = &self.container.definition().partition_key;
        let is_even = key.kind == KeyKind::MultiHash || key.version > 1;
        if limit.rows < ROWS_MIN || !has_threads || !is_even || position.leg != Leg::Main {
            return Ok(None);
        }
        let helpers = Helpers::take(THREADS_MAX - 1);
        if helpers.0 == 0 {
            return Ok(None);
        }
        let threads = helpers.0 + 1;
        let Some(pieces) = self.pieces(within, position, threads * PIECES_EACH).await? else {
            return Ok(None);
        };
        let accesses: Vec<_> = pieces.ranges.iter().cloned().map(Access::Records).collect();
        let walks = accesses.iter().map(|access| {
            let walk = self.walk(access, direction);
            Walk { wanted, entries_max: PIECE_ENTRIES_MAX, ..walk }
        });
        let found = Shared::new(walks.collect(), position, limit, threads).walked()?;
        let next = pieces.after(found.len());
        Ok(Some(joined(found, next, limit)))
    }

    /// Cuts what follows `position` in its slot into at most `count` pieces. None if there is too little left.
    async fn pieces(&self, within: &HashRange, position: &Position, count: usize) -> Result<Option<Pieces>> {
        let After::Key(key) = &position.after else { return Ok(None) };
        let (container, slot) = (&self.container, position.slot);
        let shard = container.shard(u32::from(slot));
        let mut documents = 0;
        for family in [Family::Counter, Family::Purged] {
            documents += counter(&*self.snapshot, shard, family).await?.tally[0];
        }
        let Ok(documents @ 1..) = u64::try_from(documents) else { return Ok(None) };
        let bounds = container.slot_bounds();
        let bound = |slot: usize| bounds.get(slot).map_or(HASH_END, top);
        let (low, high) = (bound(usize::from(slot)), bound(usize::from(slot) + 1));
        let end = within.end.as_ref().map_or(high, |end| top(end).min(high));
        let start = top(&Epk(keycode::take_bytes(key)?.0));
        let share = |of: u64| u128::from(high - low) * u128::from(of) / u128::from(documents);
        // What is left is shared evenly if it is less than the threads could do.
        let left = u128::from(end.saturating_sub(start));
        let even = left.div_ceil(count as u128).max(share(PIECE_DOCUMENTS_MIN));
        let piece = share(PIECE_DOCUMENTS).min(even).max(1);
        if left * u128::from(documents) < u128::from(LEFT_MIN) * u128::from(high - low) {
            return Ok(None);
        }
        let cut =
            |n: usize| u64::try_from(u128::from(start) + piece * n as u128).unwrap_or(u64::MAX).min(end);
        let slot_end = bounds.get(usize::from(slot) + 1).cloned();
        let last = match (&within.end, slot_end) {
            (Some(end), Some(slot_end)) => Some(end.clone().min(slot_end)),
            (end, slot_end) => end.clone().or(slot_end),
        };
        let ends = (1..=count).map(|n| if cut(n) < end { Some(epk(cut(n))) } else { last.clone() });
        let mut ranges: Vec<HashRange> = Vec::with_capacity(count);
        let mut from = bounds.get(usize::from(slot)).cloned().unwrap_or_default().max(within.start.clone());
        for end in ends {
            let is_last = end == last;
            ranges.push(HashRange { start: from, end: end.clone() });
            if is_last {
                let slots = within.slots(container);
                let next = slots.iter().find(|other| **other > slot).map(|slot| Position::start_of(*slot));
                return Ok(Some(Pieces { slot, ranges, next }));
            }
            from = end.unwrap_or_default();
        }
        let next = Some(start_of(slot, &HashRange { start: from, end: None }));
        Ok(Some(Pieces { slot, ranges, next }))
    }
}

/// The first eight bytes of a hash, as a number.
fn top(hash: &Epk) -> u64 {
    let mut first = [0; 8];
    for (place, byte) in first.iter_mut().zip(&hash.0) {
        *place = *byte;
    }
    u64::from_be_bytes(first).min(HASH_END)
}

fn epk(top: u64) -> Epk {
    Epk(top.to_be_bytes().to_vec())
}

type Walked = (Page, Option<Position>);

/// Walks that follow each other, and how far threads are with them.
struct Shared<'a> {
    walks: Vec<Walk<'a>>,
    /// Where the first one goes on.
    position: &'a Position,
    limit: PageLimit,
    threads: usize,
    /// Walks that somebody has begun, besides the first one of each thread.
    taken: AtomicUsize,
    /// Documents that were found, and their bytes.
    rows: AtomicUsize,
    bytes: AtomicUsize,
    /// Whether what follows would be thrown away.
    is_over: AtomicBool,
}

impl<'a> Shared<'a> {
    fn new(walks: Vec<Walk<'a>>, position: &'a Position, limit: PageLimit, threads: usize) -> Self {
        let (taken, rows, bytes) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
        Self { walks, position, limit, threads, taken, rows, bytes, is_over: AtomicBool::new(false) }
    }

    /// Runs the walks, from the first on as far as the page has room: what each of them found.
    fn walked(&self) -> Result<Vec<Walked>> {
        let runtime = Handle::current();
        let mut found = thread::scope(|scope| {
            let runtime = &runtime;
            let ours = cores::current();
            let spawn = |n| {
                let work = move || {
                    cores::leave(ours);
                    self.work(runtime, n)
                };
                (n, thread::Builder::new().name("scan".into()).spawn_scoped(scope, work))
            };
            let running: Vec<_> = (1..self.threads).map(spawn).collect();
            block_in_place(|| {
                let mut found = self.work(runtime, 0)?;
                for (n, thread) in running {
                    found.extend(match thread {
                        Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic))?,
                        // No thread to be had: its first walk is done here.
                        Err(_) => self.work(runtime, n)?,
                    });
                }
                Ok::<_, Error>(found)
            })
        })?;
        found.sort_unstable_by_key(|(n, _)| *n);
        Ok(found.into_iter().map(|(_, walked)| walked).collect())
    }

    /// Does the walk `n`, and then whichever nobody has begun. So those that were begun are the first ones.
    fn work(&self, runtime: &Handle, mut n: usize) -> Result<Vec<(usize, Walked)>> {
        let mut done = Vec::new();
        while let Some(walk) = self.walks.get(n) {
            let position = (n == 0).then(|| self.position.clone());
            let walked = runtime.block_on(walk.page(position, self.limit, true));
            let has_room = walked.as_ref().is_ok_and(|(page, next)| {
                let (rows, bytes) = (page.found.len(), page.bytes);
                let rows = rows + self.rows.fetch_add(rows, Relaxed);
                let bytes = bytes + self.bytes.fetch_add(bytes, Relaxed);
                next.is_none() && rows < self.limit.rows && bytes < self.limit.bytes
            });
            self.is_over.fetch_or(!has_room, Relaxed);
            done.push((n, walked?));
            if self.is_over.load(Relaxed) {
                break;
            }
            n = self.threads + self.taken.fetch_add(1, Relaxed);
        }
        Ok(done)
    }
}

/// One page of several that follow each other.
fn joined(found: Vec<Walked>, after_all: Option<Position>, limit: PageLimit) -> Walked {
    let mut whole = Page { records: true, ..Page::default() };
    for (page, next) in found {
        whole.scanned += page.scanned;
        whole.bytes += page.bytes;
        whole.refused += page.refused;
        whole.refused_bytes += page.refused_bytes;
        whole.found.extend(page.found);
        if whole.found.len() > limit.rows {
            whole.found.truncate(limit.rows);
            let next = whole.found.last().map(super::Entry::position);
            return (whole, next);
        }
        if next.is_some() {
            return (whole, next);
        }
    }
    (whole, after_all)
}
