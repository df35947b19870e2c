//! Giving back the space of what was deleted.
//!
//! A delete is a mark above the value it hides. The library drops both where it merges them into the lowest level of
//! a tree, but only what is older than every snapshot, and it keeps the files it merged until every snapshot is past
//! the merge. It looks at neither unless somebody writes; and after a purge nobody may write for hours. So:
//!
//! ```text
//!   stir, flush   the marks lie in tables, and the store's own snapshot is past them
//!   merge         marks and what they hide are gone; twice if values are left in files that are full of holes
//!   stir, flush   the store's own snapshot is past the merge: files that are not referred to are removed
//!   shrink        the log is begun anew
//! ```
//!
//! Merges leave out what is dead (`dead_rows.rs`). To discard ranges is to drop the tables that have nothing else, and then
//! to merge or to delete the rest, whichever is cheaper. To settle (`settling.rs`) is a flush and a merge of one tree, or
//! a flush alone, if a reader that has left kept files from going.
//!
//! To stir is to delete a key that no caller can have: it is too long. So nobody ever sees it, and the library has
//! something to flush.
//!
//! 200,000 documents of 1 KB with six index entries each take 360 MB: 1.1 s when all were deleted, 2.1 s when every
//! other one was, and 5.5 s beside a client that writes as fast as it can, whose longest commit took 0.24 s.
//!
//! Holds: no answer changes, and a crash at any moment leaves what was committed. Reads and writes go on; but a tree
//! takes in no more than 30 memtables while it is merged, so under full load a merge of minutes would hold up writes.

use std::{
    ops::Bound,
    sync::Arc,
    thread::{self, Builder},
    time::Duration,
};

use bytes::Bytes;
use fjall::AbstractTree;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::{committer::Inlet, queue::Errand, settling::Worth, trees::Trees, view::Moment};
use crate::{
    Error, Result,
    store::{Batch, KEY_BYTES_MAX, Key, KeyRange, Slot, Space, Urgency},
};

/// Holes in files of values that are worth a second merge, which moves keys and what lives in those files.
const HOLES_BYTES_MIN: u64 = 4 * 1024 * 1024;

/// The length of the key that no caller can have.
const STIR_BYTES: usize = KEY_BYTES_MAX + 1;

/// Rows that are deleted one by one after a discard: about as dear as a merge of as many megabytes as these are thousands.
const DELETES_MAX: usize = 20_000;

/// Of these in one batch: small enough that clients hardly notice one in their group.
const DELETES_PER_BATCH: usize = 512;

const BOTH: [Space; 2] = [Space::Small, Space::Large];

/// How often to look whether other threads are done.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Looks at a flush: a minute. One takes a second; if it takes this long a worker failed, and none will do it.
pub const FLUSH_LOOKS_MAX: usize = 6000;

/// Looks at files that are let go of.
const FREE_LOOKS_MAX: usize = 20;

/// Everything it takes.
pub struct Reclaim {
    pub trees: Trees,
    pub moment: Moment,
    pub inlet: Inlet,
    /// Held while one is under way.
    pub turn: Arc<Mutex<()>>,
}

impl Reclaim {
    /// Gives space back.
    pub async fn run(self) -> Result<()> {
        self.on_a_thread(Self::run_here).await
    }

    /// Makes a single run of each of some trees, and lets go of what others were merged from.
    pub async fn settle(self, worth: Worth) -> Result<()> {
        self.on_a_thread(move |reclaim| reclaim.settle_here(&worth)).await
    }

    /// Works on a thread of its own. Goes on to its end if the caller goes away, and is cut short only with the process:
    /// a merge cannot be stopped, and nobody should wait for one to leave.
    async fn on_a_thread(self, work: impl FnOnce(&Self) -> Result<()> + Send + 'static) -> Result<()> {
        let (reply, answer) = oneshot::channel();
        let work = move || {
            let done = work(&self);
            // Who hears of the end may open the directory again.
            drop(self);
            let _ = reply.send(done);
        };
        let started = Builder::new().name("mayfly-reclaim".to_owned()).spawn(work);
        started.map_err(|error| Error::Failed(format!("giving space back: no thread: {error}")))?;
        answer.await.unwrap_or_else(|_| Err(Error::Failed("giving space back: a panic".to_owned())))
    }

    /// Removes all rows of these ranges.
    pub async fn discard(self, ranges: Vec<KeyRange>) -> Result<()> {
        self.on_a_thread(move |reclaim| reclaim.discard_here(&ranges)).await
    }

    fn run_here(&self) -> Result<()> {
        let Some(_turn) = self.turn.try_lock() else { return Ok(()) };
        self.flush(&BOTH)?;
        self.merge()?;
        self.flush(&BOTH)?;
        self.inlet.ask(Errand::ShrinkLog)
    }

    fn settle_here(&self, worth: &Worth) -> Result<()> {
        let Some(_turn) = self.turn.try_lock() else { return Ok(()) };
        self.flush(&worth.merge)?;
        for space in &worth.merge {
            self.trees.merge_all(*space)?;
        }
        self.flush(&[&worth.merge[..], &worth.let_go].concat())
    }

    /// Who only wants space is served by the one who is at it; a discard waits for its turn.
    fn discard_here(&self, ranges: &[KeyRange]) -> Result<()> {
        let _turn = self.turn.lock();
        let discarding = self.trees.forgetting.discard(ranges.to_vec());
        let done = BOTH.into_iter().try_fold(false, |were_many, space| {
            let of_space = ranges.iter().filter(|range| range.space == space && !range.is_empty());
            Ok(self.discard_from(space, &of_space.collect::<Vec<_>>())? | were_many)
        });
        // Also after a failure: one tree may have been merged.
        self.moment.forget_read();
        drop(discarding);
        if done? {
            self.flush(&BOTH)?;
            self.inlet.ask(Errand::ShrinkLog)?;
        }
        Ok(())
    }

    /// Whether there were more rows than are deleted one by one.
    fn discard_from(&self, space: Space, ranges: &[&KeyRange]) -> Result<bool> {
        if let Some(few) = self.few_keys(ranges)? {
            return self.delete(space, &few).map(|()| false);
        }
        self.flush(&[space])?;
        for range in ranges {
            let end = range.end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
            let bounds = (Bound::Included(range.start.as_slice()), end);
            self.trees.change_tables(space, |tree| tree.drop_range::<&[u8], _>(bounds))?;
        }
        // A snapshot from before still shows what was dropped.
        self.stir(&[space])?;
        match self.few_keys(ranges)? {
            Some(few) => self.delete(space, &few)?,
            // In tables that have other rows too.
            None => self.trees.merge_all(space)?,
        }
        Ok(true)
    }

    /// All keys of these ranges, if they are few.
    fn few_keys(&self, ranges: &[&KeyRange]) -> Result<Option<Vec<Bytes>>> {
        let view = self.moment.view();
        let mut few = Vec::new();
        for range in ranges {
            let (keys, more) = view.keys(range, DELETES_MAX + 1 - few.len())?;
            few.extend(keys);
            if more || few.len() > DELETES_MAX {
                return Ok(None);
            }
        }
        Ok(Some(few))
    }

    fn delete(&self, space: Space, keys: &[Bytes]) -> Result<()> {
        for some in keys.chunks(DELETES_PER_BATCH) {
            let key = |bytes: &Bytes| Key { space, slot: Slot(0), bytes: bytes.to_vec() };
            let deletes = some.iter().map(key).collect();
            self.inlet.commit(Batch { deletes, urgency: Urgency::Background, ..Batch::default() })?;
        }
        Ok(())
    }

    /// Puts everything written so far into tables, and lets go of files that no snapshot needs.
    ///
    /// The library lets go of what was merged or dropped when it flushes, and after that nobody may write for hours. Then
    /// what is flushed is the row that nobody can ask for, in a table that no reader looks into.
    fn flush(&self, spaces: &[Space]) -> Result<()> {
        self.stir(spaces)?;
        for space in spaces {
            self.inlet.ask(Errand::Seal(*space))?;
            let layers = self.trees.layers.of(*space);
            if !comes_true(FLUSH_LOOKS_MAX, || layers.look().sealed_count() == 0) {
                return Err(Error::Failed("giving space back: a flush does not end".to_owned()));
            }
        }
        // What a client still reads may take longer.
        comes_true(FREE_LOOKS_MAX, || self.trees.retired.is_empty());
        Ok(())
    }

    fn merge(&self) -> Result<()> {
        self.trees.merge_all(Space::Small)?;
        self.trees.merge_all(Space::Large)?;
        // The first merge finds out which files of values have holes; only another one closes them.
        if self.trees.of.large.fragmented_blob_bytes() >= HOLES_BYTES_MIN {
            self.flush(&BOTH)?;
            self.trees.merge_all(Space::Large)?;
        }
        Ok(())
    }

    /// Writes something that nobody can see, and moves the store's own snapshot on to the present.
    fn stir(&self, spaces: &[Space]) -> Result<()> {
        let unreal = |space: &Space| Key { space: *space, slot: Slot(0), bytes: vec![0; STIR_BYTES] };
        let deletes = spaces.iter().map(unreal).collect();
        self.inlet.commit(Batch { deletes, urgency: Urgency::Background, ..Batch::default() }).map(drop)
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "on a thread that may block, waiting for threads without a clock"
)]
pub fn comes_true(looks_max: usize, is_true: impl Fn() -> bool) -> bool {
    (0..looks_max).any(|_| {
        let found = is_true();
        if !found {
            thread::sleep(LOOK_EVERY);
        }
        found
    })
}
