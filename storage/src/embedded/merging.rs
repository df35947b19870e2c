//! Merges tables, on a thread of ours.
//!
//! The library's workers can do it, but badly: the one that is kept free for flushes takes each request to merge out of
//! their queue and puts it back, over and over, for as long as another one merges. That burns a core. So the trees tell
//! the workers that no level is ever full (`trees.rs`), and this thread merges by the library's usual sizes.
//!
//! A directory that was made before has the usual sizes stored in it, and there the workers merge too. The library
//! sees to it that nobody takes tables that another is at.
//!
//! Holds: if this thread fails the store only reads. Else tables would pile up until writes stand still.

use std::{
    io,
    sync::{
        Arc,
        mpsc::{Receiver, SyncSender, TryRecvError, sync_channel},
    },
    thread::{self, Builder, JoinHandle},
    time::Duration,
};

use fjall::{AbstractTree, Keyspace, compaction::Leveled};

use super::trees::Trees;
use crate::{Error, Result};

/// How often to look whether a flush that is under way has left something to merge.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// The bell of the thread, which ends when this is dropped.
pub struct Merging {
    bell: SyncSender<()>,
}

impl Merging {
    /// Starts the thread. `fail` is told why it ended, if that was not in order.
    pub fn start(
        trees: Trees,
        fail: impl FnOnce(Error) + Send + 'static,
    ) -> io::Result<(Self, JoinHandle<()>)> {
        let (bell, rung) = sync_channel(1);
        let merge = move || {
            // The library asserts things about what it merges.
            let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(&trees, &rung)));
            if let Err(error) = ended.unwrap_or_else(|_| Err(Error::Failed("merging: a panic".to_owned()))) {
                fail(error);
            }
        };
        let thread = Builder::new().name("mayfly-merge".to_owned()).spawn(merge)?;
        let merging = Self { bell };
        // What the last process left.
        merging.ring();
        Ok((merging, thread))
    }

    /// To be called when a memtable was sealed, which will soon be a table.
    pub fn ring(&self) {
        // A bell that was rung already, or that nobody hears, is left alone.
        let _ = self.bell.try_send(());
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "on a thread that may block, waiting for threads without a clock"
)]
fn run(trees: &Trees, rung: &Receiver<()>) -> Result<()> {
    while rung.recv().is_ok() {
        loop {
            let has_merged = merge(trees, &trees.of.small)? | merge(trees, &trees.of.large)?;
            if matches!(rung.try_recv(), Err(TryRecvError::Disconnected)) {
                return Ok(());
            }
            if !has_merged {
                let is_flushing = |tree: &Keyspace| tree.sealed_memtable_count() > 0;
                if !is_flushing(&trees.of.small) && !is_flushing(&trees.of.large) {
                    break;
                }
                thread::sleep(LOOK_EVERY);
            }
        }
    }
    Ok(())
}

/// Merges what is most in need of it. Whether the tree is another one now.
fn merge(trees: &Trees, tree: &Keyspace) -> Result<bool> {
    let tree = &tree.tree;
    let before = tree.current_version().id();
    let seen_by_all = trees.db.supervisor.snapshot_tracker.get_seqno_safe_to_gc();
    tree.compact(Arc::new(Leveled::default()), seen_by_all)
        .map_err(|error| Error::Failed(format!("merging: {error}")))?;
    Ok(tree.current_version().id() != before)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embedded::{EmbeddedOptions, reclaim::comes_true};

    const TABLES: usize = 6;
    const LOOKS_MAX: usize = 3000;

    fn table_count(trees: &Trees) -> usize {
        trees.of.small.l0_table_count()
    }

    /// Each of them covers the range of all others, so that none can be moved without a merge.
    fn flush_tables(trees: &Trees) {
        for _ in 0..TABLES {
            trees.of.small.insert("first", "value").unwrap();
            trees.of.small.insert("last", "value").unwrap();
            trees.of.small.rotate_memtable().unwrap();
            assert!(comes_true(LOOKS_MAX, || trees.of.small.sealed_memtable_count() == 0));
        }
    }

    #[test]
    fn tables_are_merged_by_this_thread_and_by_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let trees = Trees::open(folder.path(), folder.path(), &EmbeddedOptions::default()).unwrap();
        flush_tables(&trees);
        assert!(table_count(&trees) >= TABLES - 1, "a worker of the library has merged");

        let (merging, thread) = Merging::start(trees.clone(), |error| panic!("{error}")).unwrap();
        assert!(comes_true(LOOKS_MAX, || table_count(&trees) == 0), "what was left is merged at the start");
        flush_tables(&trees);
        merging.ring();
        assert!(comes_true(LOOKS_MAX, || table_count(&trees) < 4), "and what comes, when the bell is rung");
        assert_eq!(trees.of.small.get("last").unwrap().as_deref(), Some(&b"value"[..]));

        drop(merging);
        thread.join().unwrap();
    }
}
