//! Frees what the trees no longer need, away from everyone who waits.
//!
//! A memtable has a hundred thousand nodes that are freed one by one, and a table that was merged is a file to be removed:
//! milliseconds, for whoever drops the last handle. So what is replaced is kept here until this is the last one who
//! has it, and is dropped on a thread that has nothing else to do. Under full load the longest commit fell from
//! 180-320 ms to 60-170 ms when memtables were first freed this way.
//!
//! Holds: memory is only kept longer, never used; losing this thread costs stalls, not data.

use std::{
    io,
    sync::Arc,
    thread::{Builder, JoinHandle},
    time::Duration,
};

use parking_lot::{Condvar, Mutex};

/// How soon to look whether the others have let go of something; each time they have not, half as often, down to the other.
const LOOK_AFTER: [Duration; 2] = [Duration::from_millis(5), Duration::from_millis(640)];

/// Something whose last handle we want to be.
trait Kept: Send {
    fn is_last(&self) -> bool;
}

impl<T: Send + Sync> Kept for Arc<T> {
    fn is_last(&self) -> bool {
        Arc::strong_count(self) == 1
    }
}

/// What is on its way out.
#[derive(Clone, Default)]
pub struct Retired(Arc<Shared>);

#[derive(Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    kept: Vec<Box<dyn Kept>>,
    /// Whether the thread is at something.
    is_dropping: bool,
    is_closed: bool,
}

impl Retired {
    /// Drops this on the thread, once nobody else has it.
    pub fn push<T: Send + Sync + 'static>(&self, kept: Arc<T>) {
        let mut waiting = self.0.waiting.lock();
        if !waiting.is_closed {
            waiting.kept.push(Box::new(kept));
            self.0.changed.notify_all();
        }
    }

    /// Whether nothing is left to be dropped.
    pub fn is_empty(&self) -> bool {
        let waiting = self.0.waiting.lock();
        waiting.kept.is_empty() && !waiting.is_dropping
    }

    /// Starts the thread. It ends when this is closed.
    pub fn start(&self) -> io::Result<JoinHandle<()>> {
        let shared = self.0.clone();
        Builder::new().name("mayfly-free".to_owned()).spawn(move || shared.drop_all())
    }

    /// From here on everything is dropped by who has it last.
    pub fn close(&self) {
        self.0.waiting.lock().is_closed = true;
        self.0.changed.notify_all();
    }
}

impl Shared {
    fn drop_all(&self) {
        let mut pause = LOOK_AFTER[0];
        let mut waiting = self.waiting.lock();
        while !waiting.is_closed {
            let free: Vec<_> = waiting.kept.extract_if(.., |kept| kept.is_last()).collect();
            if !free.is_empty() {
                waiting.is_dropping = true;
                drop(waiting);
                drop(free);
                waiting = self.waiting.lock();
                waiting.is_dropping = false;
                pause = LOOK_AFTER[0];
            } else if waiting.kept.is_empty() {
                self.changed.wait(&mut waiting);
            } else {
                let is_news = !self.changed.wait_for(&mut waiting, pause).timed_out();
                pause = if is_news { LOOK_AFTER[0] } else { (pause * 2).min(LOOK_AFTER[1]) };
            }
        }
        drop(std::mem::take(&mut waiting.kept));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embedded::reclaim::comes_true;

    #[test]
    fn the_last_handle_is_dropped_by_the_thread_and_no_earlier() {
        let retired = Retired::default();
        let thread = retired.start().unwrap();
        let (kept, other) = (Arc::new("kept"), Arc::new("other"));
        let is_there = Arc::downgrade(&kept);
        retired.push(kept.clone());
        retired.push(other);
        assert!(!comes_true(5, || retired.is_empty()), "somebody has one of them");
        drop(kept);
        assert!(comes_true(1000, || retired.is_empty()));
        assert!(is_there.upgrade().is_none());
        retired.close();
        thread.join().unwrap();
    }
}
