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
//!   fill, flush   the journal is begun anew; the library does so at 64 MB and not before
//! ```
//!
//! A sweep is a flush and a merge of one tree, from which withered rows are left out.
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
    path::PathBuf,
    sync::Arc,
    thread::{self, Builder},
    time::Duration,
};

use fjall::Keyspace;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::{
    committer::Inlet,
    directory::journal_bytes,
    trees::{Trees, failed},
};
use crate::{
    Error, Result,
    store::{Batch, KEY_BYTES_MAX, Key, Slot, Space, Urgency, Withered},
};

/// Holes in files of values that are worth a second merge, which moves keys and what lives in those files.
const HOLES_BYTES_MIN: u64 = 4 * 1024 * 1024;

/// A journal that is worth being filled up to be let go: some three bytes written for each that comes back.
const JOURNAL_BYTES_MIN: u64 = 16 * 1024 * 1024;

/// Where the library begins a new journal, and some more for what we cannot see of its use.
const JOURNAL_FULL_BYTES: u64 = 66 * 1024 * 1024;

/// The length of the key that no caller can have. What fills the journal is made of it, at one batch each: small
/// enough that nobody notices one in their group, large enough that filling takes few.
const STIR_BYTES: usize = 32 * 1024;

const _: () = assert!(STIR_BYTES > KEY_BYTES_MAX);

const BOTH: [Space; 2] = [Space::Small, Space::Large];

/// How often to look whether the library's workers are done.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Looks at a flush: a minute. One takes a second; if it takes this long a worker failed, and none will do it.
const FLUSH_LOOKS_MAX: usize = 6000;

/// Looks at a journal that should go: half a second. It may have to stay for what was written meanwhile.
const JOURNAL_LOOKS_MAX: usize = 50;

/// Flushes to let a journal go. It goes when each tree has a table with something younger; a merge that happens to
/// end just then may take that away again.
const JOURNAL_FLUSHES_MAX: usize = 3;

/// Everything it takes.
pub struct Reclaim {
    pub trees: Trees,
    pub inlet: Inlet,
    pub tree_path: PathBuf,
    /// Held while one is under way.
    pub turn: Arc<Mutex<()>>,
    /// What to leave out of the merge.
    pub withered: Vec<Withered>,
}

impl Reclaim {
    /// Runs on a thread of its own. Goes on to its end if the caller goes away, and is cut short only with the process:
    /// a merge cannot be stopped, and nobody should wait for one to leave.
    pub async fn run(self) -> Result<()> {
        let (reply, answer) = oneshot::channel();
        let work = move || {
            let done = self.run_here();
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
        self.renew_journal()
    }

    /// Merges the trees that have withered rows, without those. Who only wants space is served by the one who is at it; a
    /// sweep waits for its turn.
    fn sweep(&self) -> Result<()> {
        let _turn = self.turn.lock();
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
        for tree in spaces.iter().map(|space| self.trees.of.of(*space)) {
            tree.rotate_memtable().map_err(failed)?;
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

    /// Makes the library begin a new journal: it does when one is full, so this fills it. The disk sees no more
    /// journal than in daily use.
    fn renew_journal(&self) -> Result<()> {
        if !self.only_one_journal()? {
            return Ok(());
        }
        let used = journal_bytes(&self.tree_path);
        if used < JOURNAL_BYTES_MIN {
            return Ok(());
        }
        for _ in 0..JOURNAL_FULL_BYTES.saturating_sub(used) / STIR_BYTES as u64 {
            self.stir(&[Space::Small])?;
        }
        self.flush(&BOTH)?;
        self.only_one_journal().map(drop)
    }

    /// Lets full journals go. Whether none is left but the one that is being written.
    fn only_one_journal(&self) -> Result<bool> {
        let is_one = || self.trees.db.journal_count() == 1;
        for _ in 0..JOURNAL_FLUSHES_MAX {
            if comes_true(JOURNAL_LOOKS_MAX, is_one) {
                return Ok(true);
            }
            self.flush(&BOTH)?;
        }
        Ok(is_one())
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
