//! The one thread that writes.
//!
//! It takes all batches that wait, decides each in order, writes the accepted ones as one journal entry, syncs
//! once, and answers everyone. While it syncs, the next group gathers by itself: the slower the disk and the more
//! writers there are, the larger the groups.
//!
//! ```text
//!   callers ──▶ queue ──▶ group: guards, counters ──▶ journal, sync ──▶ trees ──▶ answers
//! ```
//!
//! Holds: an answer goes out only after the group is visible, and durable if it has to be. After the first
//! failure every batch is refused: what a failed sync left on disk is unknown.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread::{Builder, JoinHandle},
};

use fjall::PersistMode;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::{
    Durability,
    group::Ledger,
    merging::Merging,
    queue::{Closed, Group, Job, Queue},
    retire::Retiring,
    trees::Trees,
    view::Moment,
};
use crate::{
    Error, Result,
    batch::check_batch,
    store::{Batch, Committed, Urgency},
};

/// The handle to the thread and its helpers. Dropping it writes and syncs what waits.
pub struct Committer {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Default)]
struct Shared {
    queue: Queue,
    tallies: Tallies,
    /// What closed the store, for who asks how the end went.
    failure: Mutex<Option<String>>,
}

impl Shared {
    fn poison(&self, error: &Error) {
        self.failure.lock().get_or_insert_with(|| error.to_string());
        self.queue.close(Closed::Poisoned);
    }
}

/// See [`Stats`](crate::store::Stats).
#[derive(Default)]
pub struct Tallies {
    pub commits: AtomicU64,
    pub groups: AtomicU64,
    pub conflicts: AtomicU64,
}

impl Committer {
    pub fn start(trees: Trees, moment: Moment, durability: Durability) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let (retiring, freeing) = Retiring::start()?;
        let failing = shared.clone();
        let (merging, merger) = Merging::start(trees.clone(), move |error| failing.poison(&error))?;
        // From here on the threads are owned, and ended if one of the others cannot be started.
        let committer = Self { shared: shared.clone(), threads: Mutex::new(vec![freeing, merger]) };
        let mut writer = Writer {
            shared: shared.clone(),
            trees,
            moment,
            durability,
            ledger: Ledger::default(),
            retiring,
            merging,
            is_dirty: false,
        };
        let writing = Builder::new().name("mayfly-commit".to_owned()).spawn(move || writer.run())?;
        committer.threads.lock().insert(0, writing);
        if let Durability::Interval(interval) = durability {
            let ask = move || shared.queue.ask_for_syncs(interval);
            committer.threads.lock().push(Builder::new().name("mayfly-sync".to_owned()).spawn(ask)?);
        }
        Ok(committer)
    }

    /// Checks, queues and waits. Once queued, a batch is decided even if the caller goes away.
    pub async fn commit(&self, batch: Batch) -> Result<Committed> {
        check_batch(&batch)?;
        let (reply, answer) = oneshot::channel();
        self.shared.queue.push(Job { batch, reply })?;
        answer.await.unwrap_or(Err(Error::Poisoned))
    }

    pub async fn sync(&self) -> Result<()> {
        let (reply, answer) = oneshot::channel();
        self.shared.queue.push_sync(reply)?;
        answer.await.unwrap_or(Err(Error::Poisoned))
    }

    /// A way in for a thread that may block.
    pub fn inlet(&self) -> Inlet {
        Inlet(self.shared.clone())
    }

    pub fn tallies(&self) -> &Tallies {
        &self.shared.tallies
    }

    /// Writes and syncs what waits and ends the threads. Says whether all of it is safe.
    pub fn close(&self) -> Result<()> {
        self.shared.queue.close(Closed::Orderly);
        for thread in self.threads.lock().drain(..) {
            // A panic in there poisoned the queue, which is what is reported.
            let _ = thread.join();
        }
        match (self.shared.failure.lock().clone(), self.shared.queue.is_poisoned()) {
            (Some(failure), _) => Err(Error::Failed(failure)),
            (None, true) => Err(Error::Poisoned),
            (None, false) => Ok(()),
        }
    }
}

/// Commits from a thread of our own. Keeps nothing open: once the store is closed it is refused.
pub struct Inlet(Arc<Shared>);

impl Inlet {
    /// Queues and blocks. Nothing is checked, so keys may be such as no caller can have.
    pub fn commit(&self, batch: Batch) -> Result<Committed> {
        let (reply, answer) = oneshot::channel();
        self.0.queue.push(Job { batch, reply })?;
        answer.blocking_recv().unwrap_or(Err(Error::Poisoned))
    }
}

impl Drop for Committer {
    fn drop(&mut self) {
        // Nobody is left to tell; `EmbeddedStore::close` is for those who want to know.
        let _ = self.close();
    }
}

/// What runs on the thread.
struct Writer {
    shared: Arc<Shared>,
    trees: Trees,
    moment: Moment,
    durability: Durability,
    ledger: Ledger,
    retiring: Retiring,
    merging: Merging,
    /// Whether something was written since the last sync.
    is_dirty: bool,
}

/// Someone who waits for the end of the group, and what they will hear if it ends well.
type Answer = (oneshot::Sender<Result<Committed>>, Result<Committed>);

impl Writer {
    fn run(&mut self) {
        // A panic in the library must not leave callers waiting for ever.
        let _poison = PoisonIfPanicking(self.shared.clone());
        while let Some(group) = self.shared.queue.next_group() {
            if let Err(error) = self.process(group) {
                self.shared.poison(&error);
                return;
            }
        }
        if self.is_dirty
            && let Err(error) = self.trees.persist()
        {
            self.shared.poison(&error);
        }
    }

    fn process(&mut self, group: Group) -> Result<()> {
        let mut answers = Vec::with_capacity(group.jobs.len());
        let written = self.write(group.jobs, &mut answers);
        // Refusals wait as well: who reads again must find what they were refused for.
        for (reply, answer) in answers {
            let _ = reply.send(match &written {
                Ok(()) => answer,
                Err(error) => Err(copy(error)),
            });
        }
        let synced = written.and_then(|()| {
            let due = !group.syncs.is_empty() || (group.sync_due && self.is_dirty);
            if due { self.sync() } else { Ok(()) }
        });
        for reply in group.syncs {
            let _ = reply.send(synced.as_ref().map_err(copy).copied());
        }
        synced
    }

    /// Decides and writes; leaves in `answers` what to tell whom.
    fn write(&mut self, jobs: Vec<Job>, answers: &mut Vec<Answer>) -> Result<()> {
        let mut failure = Ok(());
        let mut accepted = 0;
        let mut is_urgent = false;
        for Job { batch, reply } in jobs {
            if failure.is_err() {
                answers.push((reply, Err(Error::Poisoned)));
                continue;
            }
            let urgency = batch.urgency;
            let answer = self.ledger.admit(&self.trees, batch);
            match &answer {
                Ok(_) => {
                    accepted += 1;
                    is_urgent |= urgency == Urgency::Foreground;
                }
                Err(Error::Conflict { .. } | Error::Stale { .. }) => {
                    self.shared.tallies.conflicts.fetch_add(1, Relaxed);
                }
                Err(Error::Invalid(_)) => {}
                Err(error) => failure = Err(copy(error)),
            }
            answers.push((reply, answer));
        }
        failure?;

        // `Buffer` hands the bytes to the system, so a killed process loses nothing in any mode.
        let is_synced = is_urgent && self.durability == Durability::Fsync;
        let mode = if is_synced { PersistMode::SyncData } else { PersistMode::Buffer };
        if self.moment.write(|| self.ledger.flush(&self.trees, mode))? {
            if self.retiring.look(&self.trees) {
                self.merging.ring();
            }
            self.is_dirty = !is_synced;
            self.shared.tallies.groups.fetch_add(1, Relaxed);
        }
        self.shared.tallies.commits.fetch_add(accepted, Relaxed);
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        self.trees.persist()?;
        self.is_dirty = false;
        Ok(())
    }
}

struct PoisonIfPanicking(Arc<Shared>);

impl Drop for PoisonIfPanicking {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.queue.close(Closed::Poisoned);
        }
    }
}

/// The same failure for one more caller.
fn copy(error: &Error) -> Error {
    match error {
        Error::Failed(message) => Error::Failed(message.clone()),
        _ => Error::Poisoned,
    }
}
