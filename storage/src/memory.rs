//! A store in memory: the reference for what the contract means.
//!
//! One persistent ordered map, so a snapshot is a copy of a pointer and a commit is "change a copy, then swap it
//! in". Tests of everything above run on it, and each disk backend is proved equal to it.
//!
//! It is strict about slots: the slot is part of the place. Who asks with another slot than they wrote with gets
//! nothing here, though an embedded store, which ignores slots, would answer. Running on both finds the mistake.
//!
//! Holds: a commit is visible whole or not at all, and nothing is kept when the process ends.

use std::{ops::Bound, sync::Arc};

use bytes::Bytes;
use imbl::OrdMap;
use parking_lot::Mutex;

use crate::{
    Error, Result,
    batch::{check_batch, check_key, check_scan},
    peers::Unshared,
    store::{
        Advance, Batch, BoxFuture, Committed, Counter, Direction, Expect, Guard, Keep, Key, KeyRange,
        MayHold, Page, PageLimit, Sieved, Slot, Snapshot, Space, Stats, Store,
    },
    upkeep::{Cleared, Upkeep, Withered},
};

/// A store without files.
#[derive(Default)]
pub struct MemoryStore {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    image: Image,
    stats: Stats,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Another store with the same content, from here on independent. Costs nothing.
    pub fn fork(&self) -> Self {
        let image = self.state.lock().image.clone();
        Self { state: Mutex::new(State { image, stats: Stats::default() }) }
    }

    fn commit_now(&self, batch: Batch) -> Result<Committed> {
        check_batch(&batch)?;
        let mut state = self.state.lock();
        let mut image = state.image.clone();
        let answer = image.apply(batch);
        match &answer {
            Ok(_) => {
                state.image = image;
                state.stats.commits += 1;
                state.stats.groups += 1;
            }
            Err(Error::Conflict { .. } | Error::Stale { .. }) => state.stats.conflicts += 1,
            Err(_) => {}
        }
        answer
    }

    fn clear_now(&self, range: &KeyRange, limit: usize) -> Result<Cleared> {
        check_scan(range, limit)?;
        let mut state = self.state.lock();
        let page = state.image.scan(range, Direction::Forward, PageLimit { rows: limit, bytes: usize::MAX });
        for (bytes, _) in &page.rows {
            let key = Key { space: range.space, slot: range.slot, bytes: bytes.to_vec() };
            state.image.0.remove(&key);
        }
        Ok(Cleared { keys: page.rows.len(), more: page.more })
    }
}

impl Store for MemoryStore {
    fn get<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Bytes>>> {
        Box::pin(async move { self.state.lock().image.get(key) })
    }

    fn get_both<'a>(&'a self, [first, second]: &'a [Key; 2]) -> BoxFuture<'a, Result<[Option<Bytes>; 2]>> {
        Box::pin(async move {
            let state = self.state.lock();
            Ok([state.image.get(first)?, state.image.get(second)?])
        })
    }

    fn peek<'a>(&'a self, range: &'a KeyRange, rows: usize) -> BoxFuture<'a, Result<Vec<(Bytes, Bytes)>>> {
        Box::pin(async move {
            check_scan(range, rows)?;
            let limit = PageLimit { rows, bytes: usize::MAX };
            Ok(self.state.lock().image.scan(range, Direction::Forward, limit).rows)
        })
    }

    fn snapshot(&self) -> BoxFuture<'_, Result<Arc<dyn Snapshot>>> {
        Box::pin(async move { Ok(Arc::new(self.state.lock().image.clone()) as Arc<dyn Snapshot>) })
    }

    /// It has no caches.
    fn background_snapshot(&self) -> BoxFuture<'_, Result<Arc<dyn Snapshot>>> {
        self.snapshot()
    }

    fn commit(&self, batch: Batch) -> BoxFuture<'_, Result<Committed>> {
        Box::pin(async move { self.commit_now(batch) })
    }

    fn stats(&self) -> Stats {
        self.state.lock().stats
    }
}

impl Upkeep for MemoryStore {
    fn clear<'a>(&'a self, range: &'a KeyRange, limit: usize) -> BoxFuture<'a, Result<Cleared>> {
        Box::pin(async move { self.clear_now(range, limit) })
    }

    /// Nothing outlives the process, so everything is as durable as it will be.
    fn sync(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async { Ok(()) })
    }

    /// A deleted row is gone with its last snapshot.
    fn reclaim(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async { Ok(()) })
    }

    fn compact_when_idle(&self) -> BoxFuture<'_, Result<bool>> {
        Box::pin(async { Ok(false) })
    }

    fn sweep(&self, withered: Vec<Withered>) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            withered.iter().try_for_each(|rows| check_scan(&rows.range, 1))?;
            let mut state = self.state.lock();
            for rows in &withered {
                state.image.sweep(rows);
            }
            Ok(())
        })
    }

    /// It compacts nothing before the sweep.
    fn wither(&self, _: Vec<Withered>) {}
}

impl Unshared for MemoryStore {}

/// Everything in the store at one moment.
#[derive(Clone, Default)]
struct Image(OrdMap<Key, Bytes>);

impl Image {
    fn get(&self, key: &Key) -> Result<Option<Bytes>> {
        check_key(key)?;
        Ok(self.0.get(key).cloned())
    }

    /// Changes this image by a checked batch. After an error it is to be thrown away.
    fn apply(&mut self, batch: Batch) -> Result<Committed> {
        if let Some(broken) = batch.guards.into_iter().find(|guard| !self.holds(guard)) {
            return Err(Error::Conflict { key: broken.key });
        }
        let counters: Vec<Counter> =
            batch.advances.iter().map(|advance| self.advanced(advance)).collect::<Result<_>>()?;
        for (advance, counter) in batch.advances.into_iter().zip(&counters) {
            self.0.insert(advance.counter, Bytes::copy_from_slice(&counter.encode()));
        }
        for key in &batch.deletes {
            self.0.remove(key);
        }
        for put in batch.puts {
            let (key, value) = put.filled(&counters);
            self.0.insert(key, value.into());
        }
        Ok(Committed { counters })
    }

    fn holds(&self, guard: &Guard) -> bool {
        match (guard.expect, self.0.get(&guard.key)) {
            (Expect::Absent, found) => found.is_none(),
            (Expect::Version(version), Some(value)) => value.starts_with(&version.to_be_bytes()),
            (Expect::Version(_), None) => false,
        }
    }

    fn advanced(&self, advance: &Advance) -> Result<Counter> {
        let counter = match self.0.get(&advance.counter) {
            None => Counter::default(),
            Some(value) => {
                Counter::decode(value).ok_or(Error::Invalid("an advance of what is no counter"))?
            }
        };
        counter.advanced(advance).ok_or(Error::Stale { stamp: counter.stamp })
    }

    fn sweep(&mut self, withered: &Withered) {
        let everything = PageLimit { rows: usize::MAX, bytes: usize::MAX };
        let page = self.scan(&withered.range, Direction::Forward, everything);
        for (bytes, value) in page.rows {
            if withered.includes(&value) {
                let (space, slot) = (withered.range.space, withered.range.slot);
                self.0.remove(&Key { space, slot, bytes: bytes.to_vec() });
            }
        }
    }

    fn scan(&self, range: &KeyRange, direction: Direction, limit: PageLimit) -> Page {
        let mut page = Page::default();
        if range.is_empty() {
            return page;
        }
        let start = Key { space: range.space, slot: range.slot, bytes: range.start.clone() };
        let end = match &range.end {
            Some(end) => Bound::Excluded(Key { space: range.space, slot: range.slot, bytes: end.clone() }),
            None => slot_end(range.space, range.slot),
        };
        let mut rows = self.0.range((Bound::Included(start), end));
        let mut next = || match direction {
            Direction::Forward => rows.next(),
            Direction::Reverse => rows.next_back(),
        };
        let mut bytes = 0;
        while let Some((key, value)) = next() {
            if !page.rows.is_empty() && limit.is_reached(page.rows.len(), bytes) {
                page.more = true;
                break;
            }
            bytes += key.bytes.len() + value.len();
            page.rows.push((Bytes::copy_from_slice(&key.bytes), value.clone()));
        }
        page
    }
}

/// The bound past every key of a slot.
fn slot_end(space: Space, slot: Slot) -> Bound<Key> {
    let start_of = |space, slot| Bound::Excluded(Key { space, slot, bytes: Vec::new() });
    match (slot.0.checked_add(1), space) {
        (Some(next), _) => start_of(space, Slot(next)),
        (None, Space::Small) => start_of(Space::Large, Slot(0)),
        (None, Space::Large) => Bound::Unbounded,
    }
}

impl Snapshot for Image {
    fn get<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Bytes>>> {
        Box::pin(async move { self.get(key) })
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Bytes>>>> {
        Box::pin(async move { keys.iter().map(|key| self.get(key)).collect() })
    }

    fn scan<'a>(
        &'a self,
        range: &'a KeyRange,
        direction: Direction,
        limit: PageLimit,
    ) -> BoxFuture<'a, Result<Page>> {
        Box::pin(async move {
            check_scan(range, limit.rows)?;
            Ok(self.scan(range, direction, limit))
        })
    }

    /// Asks `may_hold` about each value, as a store with blocks does about many at once. So a reader on this store meets
    /// every denial that is possible.
    fn sieve<'a>(
        &'a self,
        range: &'a KeyRange,
        direction: Direction,
        limit: PageLimit,
        may_hold: Option<&'a MayHold<'_>>,
        keep: &'a mut Keep<'_>,
    ) -> BoxFuture<'a, Result<Sieved>> {
        Box::pin(async move {
            check_scan(range, limit.rows)?;
            let mut keep = |key: &[u8], value: &[u8], _: bool| {
                keep(key, value, may_hold.is_none_or(|may_hold| may_hold(value)))
            };
            Ok(Sieved::of(self.scan(range, direction, limit), &mut keep))
        })
    }
}
