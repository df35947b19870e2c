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
//! A sweep is a flush and a merge of one tree, from which withered rows are left out. To settle (`settling.rs`) is the same
//! with all rows.
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
    sync::Arc,
    thread::{self, Builder},
    time::Duration,
};

use fjall::Keyspace;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::{
    committer::Inlet,
    queue::Errand,
    trees::{Trees, failed},
    view::Moment,
};
use crate::{
    Error, Result,
    store::{Batch, KEY_BYTES_MAX, Key, Slot, Space, Urgency},
    upkeep::Withered,
};

/// Holes in files of values that are worth a second merge, which moves keys and what lives in those files.
const HOLES_BYTES_MIN: u64 = 4 * 1024 * 1024;

/// The length of the key that no caller can have.
const STIR_BYTES: usize = KEY_BYTES_MAX + 1;

const BOTH: [Space; 2] = [Space::Small, Space::Large];

/// How often to look whether the library's workers are done.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Looks at a flush: a minute. One takes a second; if it takes this long a worker failed, and none will do it.
pub const FLUSH_LOOKS_MAX: usize = 6000;

/// Everything it takes.
pub struct Reclaim {
    pub trees: Trees,
    pub moment: Moment,
    pub inlet: Inlet,
    /// Held while one is under way.
    pub turn: Arc<Mutex<()>>,
    /// What to leave out of the merge.
    pub withered: Vec<Withered>,
}

impl Reclaim {
    /// Gives space back.
    pub async fn run(self) -> Result<()> {
        self.on_a_thread(Self::run_here).await
    }

    /// Makes a single run of each of these trees.
    pub async fn settle(self, spaces: Vec<Space>) -> Result<()> {
        self.on_a_thread(move |reclaim| reclaim.settle_here(&spaces)).await
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

    fn run_here(&self) -> Result<()> {
        if !self.withered.is_empty() {
            return self.sweep();
        }
        let Some(_turn) = self.turn.try_lock() else { return Ok(()) };
        self.flush(&BOTH)?;
        self.merge()?;
        self.flush(&BOTH)?;
        self.inlet.ask(Errand::ShrinkLog)
    }

    fn settle_here(&self, spaces: &[Space]) -> Result<()> {
        let Some(_turn) = self.turn.try_lock() else { return Ok(()) };
        self.flush(spaces)?;
        for space in spaces {
            self.trees.of.of(*space).major_compact().map_err(failed)?;
        }
        // The library lets go of what was merged when it flushes, and nobody may write for hours. What is flushed is the row
        // that nobody can ask for, in a table that no reader looks into.
        self.flush(spaces)
    }

    /// Merges the trees that have withered rows, without those. Who only wants space is served by the one who is at it; a
    /// sweep waits for its turn.
    fn sweep(&self) -> Result<()> {
        let _turn = self.turn.lock();
        let swept = self.sweep_trees();
        // Also after a failure: one tree may have been merged.
        self.moment.forget_withered();
        swept
    }

    fn sweep_trees(&self) -> Result<()> {
        let _swept = self.trees.sweeping.begin(self.withered.clone());
        for space in BOTH {
            if self.withered.iter().any(|rows| rows.range.space == space) {
                self.flush(&[space])?;
                self.trees.of.of(space).major_compact().map_err(failed)?;
                // A snapshot from before the merge still shows what it left out.
                self.stir(&[space])?;
            }
        }
        Ok(())
    }

    /// Puts everything written so far into tables, and lets go of files that no snapshot needs.
    fn flush(&self, spaces: &[Space]) -> Result<()> {
        self.stir(spaces)?;
        for space in spaces {
            self.inlet.ask(Errand::Seal(*space))?;
            let tree = self.trees.of.of(*space);
            if !comes_true(FLUSH_LOOKS_MAX, || tree.sealed_memtable_count() == 0) {
                return Err(Error::Failed("giving space back: a flush does not end".to_owned()));
            }
        }
        Ok(())
    }

    fn merge(&self) -> Result<()> {
        let merge = |tree: &Keyspace| tree.major_compact().map_err(failed);
        merge(&self.trees.of.small)?;
        merge(&self.trees.of.large)?;
        // The first merge finds out which files of values have holes; only another one closes them.
        if self.trees.of.large.fragmented_blob_bytes() >= HOLES_BYTES_MIN {
            self.flush(&BOTH)?;
            merge(&self.trees.of.large)?;
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
