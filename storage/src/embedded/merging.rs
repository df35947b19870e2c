//! Merges tables, on a thread of ours.
//!
//! The library's workers can do it, but badly: the one that is kept free for flushes takes each request to merge out of
//! their queue and puts it back, over and over, for as long as another one is at work. That burns a core. So the trees
//! tell the workers that no level is ever full, and this thread merges by sizes of ours (`trees.rs`).
//!
//! A directory that was made before has the usual sizes stored in it, and there a worker may merge once, at the start. The
//! library sees to it that nobody takes tables that another is at.
//!
//! Holds: if this thread fails the store only reads. Else tables would pile up until writes stand still.

use std::{
    io,
    sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel},
    thread::{Builder, JoinHandle},
};

use super::{trees::Trees, view::Moment};
use crate::{Error, Result, store::Space};

/// The bell of the thread, which ends when this is dropped.
pub struct Merging {
    bell: SyncSender<()>,
}

impl Merging {
    /// Starts the thread. `fail` is told why it ended, if that was not in order.
    pub fn start(
        trees: Trees,
        moment: Moment,
        fail: impl FnOnce(Error) + Send + 'static,
    ) -> io::Result<(Self, JoinHandle<()>)> {
        let (bell, rung) = sync_channel(1);
        let merge = move || {
            // The library asserts things about what it merges.
            let ended =
                std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(&trees, &moment, &rung)));
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

    /// To be called when there is another table.
    pub fn ring(&self) {
        // A bell that was rung already, or that nobody hears, is left alone.
        let _ = self.bell.try_send(());
    }
}

fn run(trees: &Trees, moment: &Moment, rung: &Receiver<()>) -> Result<()> {
    while rung.recv().is_ok() {
        while trees.merge_some(Space::Small)? | trees.merge_some(Space::Large)? {
            moment.catch_up();
            if matches!(rung.try_recv(), Err(TryRecvError::Disconnected)) {
                return Ok(());
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embedded::{EmbeddedOptions, reclaim::comes_true, trees::FLUSHED_MAX};

    const TABLES: usize = FLUSHED_MAX.small as usize + 2;
    const LOOKS_MAX: usize = 3000;

    fn table_count(trees: &Trees) -> usize {
        trees.of.small.l0_table_count()
    }

    /// Each of them covers the range of all others, so that none can be moved without a merge.
    fn flush_tables(trees: &Trees) {
        for _ in 0..TABLES {
            for key in ["first", "last"] {
                trees.apply(Space::Small, key.into(), Some("value".into()), trees.next_seqno());
            }
            assert!(trees.seal(Space::Small) && trees.flush_oldest(Space::Small).unwrap());
        }
    }

    #[test]
    fn tables_are_merged_by_this_thread_and_by_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let trees = Trees::open(folder.path(), folder.path(), &EmbeddedOptions::default()).unwrap();
        let moment = Moment::of(trees.clone(), 0);
        flush_tables(&trees);
        assert!(table_count(&trees) >= TABLES - 1, "a worker of the library has merged");

        let (merging, thread) = Merging::start(trees.clone(), moment, |error| panic!("{error}")).unwrap();
        assert!(comes_true(LOOKS_MAX, || table_count(&trees) == 0), "what was left is merged at the start");
        flush_tables(&trees);
        merging.ring();
        assert!(
            comes_true(LOOKS_MAX, || table_count(&trees) < usize::from(FLUSHED_MAX.small)),
            "and what comes, when the bell is rung"
        );
        assert_eq!(trees.get(Space::Small, b"last").unwrap().as_deref(), Some(&b"value"[..]));

        drop(merging);
        thread.join().unwrap();
    }
}
