//! A walk over records that several threads share: for a filter that lets few documents pass.
//!
//! Records lie by the hashes of their partition keys. Hashes are spread evenly, so a range of them tells about how many
//! documents it has. What follows a position is cut into pieces of as many documents as a page may look at, each piece is
//! walked by a thread of its own, and what they find is put together in order. A piece that has more than it should ends
//! the page: what was found behind it is thrown away, and found again.
//!
//! Holds: the same documents in the same order as one thread finds, all of one snapshot. No more threads run than there
//! are cores, whoever asks: one that finds them taken walks alone.

use std::{
    panic::resume_unwind,
    sync::atomic::{AtomicUsize, Ordering},
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
    Opened, Wanted,
    state::counter,
    walk::{Page, Walk},
};
use crate::{
    access::{Access, HashRange},
    error::{Error, Result},
    keys::Family,
    position::{After, Leg, Position},
};

/// Documents of a piece: some milliseconds of work, so that a thread pays off.
const PIECE_DOCUMENTS: u64 = 10_000;

/// What a piece may have at most. Where documents share few partition keys, pieces differ much.
const PIECE_ENTRIES_MAX: usize = 2 * PIECE_DOCUMENTS as usize;

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

/// The right to use some threads.
struct Helpers(usize);

impl Helpers {
    /// As many as there are, up to `wanted`.
    fn take(wanted: usize) -> Self {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let free = |busy: usize| wanted.min(cores.saturating_sub(1).saturating_sub(busy));
        let taken =
            HELPERS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |busy| Some(busy + free(busy)));
        Self(taken.map_or(0, free))
    }
}

impl Drop for Helpers {
    fn drop(&mut self) {
        HELPERS.fetch_sub(self.0, Ordering::Relaxed);
    }
}

/// The pieces of a walk and where it goes on after all of them.
struct Pieces {
    ranges: Vec<HashRange>,
    next: Option<Position>,
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
        let Some(pieces) = self.pieces(within, position, helpers.0 + 1).await? else { return Ok(None) };
        let accesses: Vec<_> = pieces.ranges.iter().cloned().map(Access::Records).collect();
        let walks = accesses.iter().map(|access| {
            let walk = self.walk(access, direction);
            Walk { wanted, entries_max: PIECE_ENTRIES_MAX, ..walk }
        });
        let found = walk_all(&walks.collect::<Vec<_>>(), position, limit)?;
        Ok(Some(joined(found, pieces.next, limit)))
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
        let bounds = container.definition().partition_key.slot_bounds(container.slots());
        let bound = |slot: usize| bounds.get(slot).map_or(HASH_END, top);
        let (low, high) = (bound(usize::from(slot)), bound(usize::from(slot) + 1));
        let end = within.end.as_ref().map_or(high, |end| top(end).min(high));
        let start = top(&Epk(keycode::take_bytes(key)?.0));
        let piece = u128::from(high - low) * u128::from(PIECE_DOCUMENTS) / u128::from(documents);
        // What is left is shared evenly if it is less than the threads could do.
        let left = u128::from(end.saturating_sub(start));
        let piece = piece.min(left.div_ceil(count as u128)).max(1);
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
                return Ok(Some(Pieces { ranges, next }));
            }
            from = end.unwrap_or_default();
        }
        let mut key = Vec::new();
        keycode::push_bytes(&mut key, &from.0);
        let next = Some(Position { after: After::Key(key), ..Position::start_of(slot) });
        Ok(Some(Pieces { ranges, next }))
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

/// Runs each walk on a thread: the first one, which goes on at `position`, on this.
fn walk_all(walks: &[Walk<'_>], position: &Position, limit: PageLimit) -> Result<Vec<Walked>> {
    let runtime = Handle::current();
    let Some((first, others)) = walks.split_first() else { return Err(Error::internal("no walks")) };
    block_in_place(|| {
        thread::scope(|scope| {
            let runtime = &runtime;
            let spawn = |walk| {
                let work = move || runtime.block_on(Walk::page(walk, None, limit, true));
                thread::Builder::new().name("scan".into()).spawn_scoped(scope, work)
            };
            let running: Vec<_> = others.iter().map(spawn).collect();
            let mut pages = vec![runtime.block_on(first.page(Some(position.clone()), limit, true))?];
            for (thread, walk) in running.into_iter().zip(others) {
                pages.push(match thread {
                    Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic))?,
                    // No thread to be had: it is done here.
                    Err(_) => runtime.block_on(walk.page(None, limit, true))?,
                });
            }
            Ok(pages)
        })
    })
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
