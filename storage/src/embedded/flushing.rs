//! Makes tables of memtables that are full, on a thread of ours.
//!
//! The library's workers do it for its own memtables, which are empty here (`layers.rs`). They also sync its journal before each
//! flush, and spin while there are two of them and one is at it.
//!
//! Holds: of each tree the oldest memtable is flushed first, so tables are in the order of their rows; and if this thread
//! fails the store only reads. Else memory would fill up.

use std::{
    io,
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    thread::{Builder, JoinHandle},
};

use super::{merging::Merging, trees::Trees, view::Moment};
use crate::{Error, Result, store::Space};

/// The bell of the thread, which ends when this is dropped.
pub struct Flushing {
    bell: SyncSender<()>,
}

impl Flushing {
    /// Starts the thread, which rings for merges. `fail` is told why it ended, if that was not in order.
    pub fn start(
        trees: Trees,
        moment: Moment,
        merging: Merging,
        fail: impl FnOnce(Error) + Send + 'static,
    ) -> io::Result<(Self, JoinHandle<()>)> {
        let (bell, rung) = sync_channel(1);
        let flush = move || {
            // The library asserts things about what it writes.
            let work = std::panic::AssertUnwindSafe(|| run(&trees, &moment, &merging, &rung));
            let ended = std::panic::catch_unwind(work);
            if let Err(error) = ended.unwrap_or_else(|_| Err(Error::Failed("flushing: a panic".to_owned()))) {
                fail(error);
            }
        };
        let thread = Builder::new().name("mayfly-flush".to_owned()).spawn(flush)?;
        let flushing = Self { bell };
        // What the log of the last process has filled.
        flushing.ring();
        Ok((flushing, thread))
    }

    /// To be called when a memtable was sealed.
    pub fn ring(&self) {
        // A bell that was rung already, or that nobody hears, is left alone.
        let _ = self.bell.try_send(());
    }
}

fn run(trees: &Trees, moment: &Moment, merging: &Merging, rung: &Receiver<()>) -> Result<()> {
    while rung.recv().is_ok() {
        while trees.flush_oldest(Space::Small)? | trees.flush_oldest(Space::Large)? {
            moment.catch_up();
            merging.ring();
        }
    }
    Ok(())
}
