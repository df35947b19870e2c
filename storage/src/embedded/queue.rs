//! Batches that wait for the committer, and which of them go together.
//!
//! Foreground goes first. Background goes behind it, but each group takes one along, so that a steady stream of
//! clients cannot keep the purge from ever running.
//!
//! Holds: batches of one urgency leave in the order they came, and a closed queue takes none.

use std::{collections::VecDeque, mem, time::Duration};

use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

use crate::{
    Error, Result,
    store::{Batch, Committed, Space, Urgency},
};

/// Batches that share a record of the log. At some 40 µs each this bounds how long the first one waits for the others.
const GROUP_BATCHES_MAX: usize = 256;

/// The same in bytes, for large documents: a few milliseconds of a slow disk.
const GROUP_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A batch and who waits for the answer.
pub struct Job {
    pub batch: Batch,
    pub reply: oneshot::Sender<Result<Committed>>,
}

/// What else there is to do for the one thread that writes, once it has written what waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errand {
    /// Make everything durable.
    Sync,
    /// Have what is in memory flushed.
    Seal(Space),
    /// Give back files of the log that are not needed.
    ShrinkLog,
}

/// An errand and who waits for its end.
pub type Asked = (Errand, oneshot::Sender<Result<()>>);

/// What the committer does in one go.
#[derive(Default)]
pub struct Group {
    pub jobs: Vec<Job>,
    pub errands: Vec<Asked>,
    /// Whether the interval between two syncs is over.
    pub sync_due: bool,
}

#[derive(Default)]
struct Waiting {
    foreground: VecDeque<Job>,
    background: VecDeque<Job>,
    errands: Vec<Asked>,
    sync_due: bool,
    closed: Option<Closed>,
}

/// Why a queue takes no more.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Closed {
    /// The store is being closed.
    Orderly,
    /// The store failed.
    Poisoned,
}

#[derive(Default)]
pub struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
    /// Wakes only the one that waits for the end, so that it does not swallow a wake-up meant for the committer.
    closing: Condvar,
}

impl Queue {
    pub fn push(&self, job: Job) -> Result<()> {
        let mut waiting = self.waiting.lock();
        if waiting.closed.is_some() {
            return Err(Error::Poisoned);
        }
        match job.batch.urgency {
            Urgency::Foreground => waiting.foreground.push_back(job),
            Urgency::Background => waiting.background.push_back(job),
        }
        self.changed.notify_one();
        Ok(())
    }

    pub fn ask(&self, errand: Errand, reply: oneshot::Sender<Result<()>>) -> Result<()> {
        let mut waiting = self.waiting.lock();
        if waiting.closed.is_some() {
            return Err(Error::Poisoned);
        }
        waiting.errands.push((errand, reply));
        self.changed.notify_one();
        Ok(())
    }

    /// Waits for work. `None` when the queue is closed and everything in it is done.
    pub fn next_group(&self) -> Option<Group> {
        let mut waiting = self.waiting.lock();
        loop {
            let group = waiting.take_group();
            if group.is_some() || waiting.closed.is_some() {
                return group;
            }
            self.changed.wait(&mut waiting);
        }
    }

    /// Asks for a sync every `interval`, until the queue is closed.
    pub fn ask_for_syncs(&self, interval: Duration) {
        let mut waiting = self.waiting.lock();
        while waiting.closed.is_none() {
            if self.closing.wait_for(&mut waiting, interval).timed_out() {
                waiting.sync_due = true;
                self.changed.notify_one();
            }
        }
    }

    /// Takes no more. What is inside is still handed out after an orderly close, and refused after a failure.
    pub fn close(&self, why: Closed) {
        let mut waiting = self.waiting.lock();
        if waiting.closed != Some(Closed::Poisoned) {
            waiting.closed = Some(why);
        }
        self.changed.notify_one();
        self.closing.notify_all();
        if why == Closed::Poisoned {
            let refused = mem::replace(&mut *waiting, Waiting { closed: Some(why), ..Waiting::default() });
            drop(waiting);
            refused.refuse();
        }
    }

    pub fn is_poisoned(&self) -> bool {
        self.waiting.lock().closed == Some(Closed::Poisoned)
    }
}

impl Waiting {
    fn take_group(&mut self) -> Option<Group> {
        let mut group = Group {
            errands: mem::take(&mut self.errands),
            sync_due: mem::take(&mut self.sync_due),
            ..Group::default()
        };
        let mut bytes = 0;
        take_while_room(&mut self.foreground, &mut group.jobs, &mut bytes, GROUP_BATCHES_MAX);
        // Beside clients one background batch comes along, however full the group is; alone they fill it.
        let background_max = if group.jobs.is_empty() { GROUP_BATCHES_MAX } else { 1 };
        let mut background_bytes = 0;
        take_while_room(&mut self.background, &mut group.jobs, &mut background_bytes, background_max);
        (!group.jobs.is_empty() || !group.errands.is_empty() || group.sync_due).then_some(group)
    }

    /// Answers everyone with "closed after a failure". A caller that went away needs none.
    fn refuse(self) {
        for job in self.foreground.into_iter().chain(self.background) {
            let _ = job.reply.send(Err(Error::Poisoned));
        }
        for (_, reply) in self.errands {
            let _ = reply.send(Err(Error::Poisoned));
        }
    }
}

/// Moves jobs while there are fewer than `batches` more and the bytes so far leave room; the first always fits.
fn take_while_room(from: &mut VecDeque<Job>, to: &mut Vec<Job>, bytes: &mut usize, batches: usize) {
    for _ in 0..batches {
        if *bytes >= GROUP_BYTES_MAX {
            return;
        }
        let Some(job) = from.pop_front() else { return };
        *bytes += job.batch.bytes();
        to.push(job);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Key, Put, Slot};

    fn push(queue: &Queue, urgency: Urgency, value_bytes: usize) {
        let key = Key { space: Space::Large, slot: Slot(0), bytes: vec![1] };
        let put = Put { key, value: vec![0; value_bytes], marks: vec![] };
        let (reply, _) = oneshot::channel();
        assert!(
            queue.push(Job { batch: Batch { puts: vec![put], urgency, ..Batch::default() }, reply }).is_ok()
        );
    }

    fn next(queue: &Queue) -> Vec<Urgency> {
        queue.next_group().unwrap().jobs.iter().map(|job| job.batch.urgency).collect()
    }

    /// Foreground leaves first, and one background batch with each group.
    #[test]
    fn background_goes_behind_but_goes() {
        let queue = Queue::default();
        push(&queue, Urgency::Background, 1);
        push(&queue, Urgency::Background, 1);
        push(&queue, Urgency::Foreground, 1);
        push(&queue, Urgency::Foreground, 1);
        assert_eq!(next(&queue), [Urgency::Foreground, Urgency::Foreground, Urgency::Background]);
        assert_eq!(next(&queue), [Urgency::Background]);
    }

    /// A full group still takes one background batch along.
    #[test]
    fn groups_are_bounded() {
        let queue = Queue::default();
        for _ in 0..3 {
            push(&queue, Urgency::Foreground, GROUP_BYTES_MAX / 2);
        }
        push(&queue, Urgency::Background, 1);
        assert_eq!(next(&queue).len(), 3);
        assert_eq!(next(&queue), [Urgency::Foreground]);
        for _ in 0..GROUP_BATCHES_MAX + 1 {
            push(&queue, Urgency::Foreground, 1);
        }
        assert_eq!(next(&queue).len(), GROUP_BATCHES_MAX);
    }

    /// An orderly close hands out what is inside, then ends.
    #[test]
    fn a_closed_queue_drains() {
        let queue = Queue::default();
        push(&queue, Urgency::Background, 1);
        queue.close(Closed::Orderly);
        assert_eq!(next(&queue), [Urgency::Background]);
        assert!(queue.next_group().is_none());
    }

    /// A failure answers who waits and refuses who comes.
    #[test]
    fn a_poisoned_queue_refuses() {
        let queue = Queue::default();
        let (reply, mut answer) = oneshot::channel();
        queue.push(Job { batch: Batch::default(), reply }).unwrap();
        queue.close(Closed::Poisoned);
        assert!(matches!(answer.try_recv(), Ok(Err(Error::Poisoned))));
        let (reply, _) = oneshot::channel();
        assert!(matches!(queue.push(Job { batch: Batch::default(), reply }), Err(Error::Poisoned)));
        let (reply, _) = oneshot::channel();
        assert!(matches!(queue.ask(Errand::Sync, reply), Err(Error::Poisoned)));
        assert!(queue.next_group().is_none());
        // Closing in order afterwards does not hide the failure.
        queue.close(Closed::Orderly);
        assert!(queue.is_poisoned());
    }
}
