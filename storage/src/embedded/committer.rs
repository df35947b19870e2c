//! The one thread that writes.
//!
//! It takes all batches that wait, decides each in order, writes the accepted ones as one record of the log, syncs
//! once, and answers everyone. Between groups it sees to what is full: memtables and the log. While it syncs, the next group gathers by itself: the slower the disk and the more
//! writers there are, the larger the groups.
//!
//! ```text
//!   callers ──▶ queue ──▶ group: guards, counters ──▶ log, sync ──▶ trees ──▶ answers
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

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::{
    Durability,
    flushing::Flushing,
    group::Ledger,
    log::Log,
    merging::Merging,
    queue::{Closed, Errand, Group, Job, Queue},
    reclaim::{FLUSH_LOOKS_MAX, comes_true},
    retire::Retired,
    trees::Trees,
    unflushed::Unflushed,
    view::Moment,
};
use crate::{
    Error, Result,
    batch::check_batch,
    store::{Batch, Committed, Space, Urgency},
};

/// How much of the log may be needed. All of it is read at the next start: 0.4 s in the bench.
const LOG_BYTES_MAX: u64 = 64 * 1024 * 1024;

const BOTH: [Space; 2] = [Space::Small, Space::Large];

/// The handle to the thread and its helpers. Dropping it writes and syncs what waits.
pub struct Committer {
    shared: Arc<Shared>,
    retired: Retired,
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
    pub fn start(trees: Trees, moment: Moment, logged: Logged, durability: Durability) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let retired = trees.retired.clone();
        // From here on the threads are owned, and ended if one of the others cannot be started.
        let committer = Self { shared: shared.clone(), retired, threads: Mutex::default() };
        let own = |thread| committer.threads.lock().push(thread);
        let fail = |shared: Arc<Shared>| move |error| shared.poison(&error);
        let (merging, thread) = Merging::start(trees.clone(), moment.clone(), fail(shared.clone()))?;
        own(thread);
        let (flushing, thread) =
            Flushing::start(trees.clone(), moment.clone(), merging, fail(shared.clone()))?;
        own(thread);
        own(committer.retired.start()?);
        let mut writer = Writer {
            shared: shared.clone(),
            trees,
            moment,
            durability,
            ledger: Ledger::default(),
            logged,
            flushing,
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
        self.shared.queue.ask(Errand::Sync, reply)?;
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
        self.retired.close();
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

    /// Has an errand done and blocks.
    pub fn ask(&self, errand: Errand) -> Result<()> {
        let (reply, answer) = oneshot::channel();
        self.0.queue.ask(errand, reply)?;
        answer.blocking_recv().unwrap_or(Err(Error::Poisoned))
    }
}

impl Drop for Committer {
    fn drop(&mut self) {
        // Nobody is left to tell; `EmbeddedStore::close` is for those who want to know.
        let _ = self.close();
    }
}

/// The log, and what it is needed for.
pub struct Logged {
    pub log: Log,
    pub unflushed: Unflushed,
}

/// What runs on the thread.
struct Writer {
    shared: Arc<Shared>,
    trees: Trees,
    moment: Moment,
    durability: Durability,
    ledger: Ledger,
    logged: Logged,
    flushing: Flushing,
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
        if let Err(error) = self.logged.log.sync() {
            self.shared.poison(&logging(error));
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
        let mut so_far = written;
        if group.sync_due {
            so_far = so_far.and_then(|()| self.logged.log.sync().map_err(logging));
        }
        for (errand, reply) in group.errands {
            so_far = so_far.and_then(|()| self.run_errand(errand));
            let _ = reply.send(so_far.as_ref().map_err(copy).copied());
        }
        so_far.and_then(|()| self.tidy_up())
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
            let answer = self.ledger.admit(&self.moment, &self.trees, batch);
            match &answer {
                Ok(_) => {
                    accepted += 1;
                    is_urgent |= urgency == Urgency::Foreground;
                }
                Err(refused @ (Error::Conflict { .. } | Error::Stale { .. })) => {
                    if let Error::Conflict { key } = refused {
                        self.moment.doubt(key);
                    }
                    self.shared.tallies.conflicts.fetch_add(1, Relaxed);
                }
                Err(Error::Invalid(_)) => {}
                Err(error) => failure = Err(copy(error)),
            }
            answers.push((reply, answer));
        }
        failure?;

        // The bytes are the system's in any case, so a killed process loses nothing in any mode.
        if self.carry_out(is_urgent && self.durability == Durability::Fsync)? {
            self.shared.tallies.groups.fetch_add(1, Relaxed);
        }
        self.shared.tallies.commits.fetch_add(accepted, Relaxed);
        Ok(())
    }

    /// Writes what was accepted to the log, and then to the trees. `false` when there was nothing to write.
    fn carry_out(&mut self, sync: bool) -> Result<bool> {
        let writes = self.ledger.take();
        if writes.small.is_empty() && writes.large.is_empty() {
            return Ok(false);
        }
        let Logged { log, unflushed } = &mut self.logged;
        self.moment.write(|wrote| {
            let seqno = self.trees.next_seqno();
            for space in BOTH {
                for (key, value) in writes.of(space) {
                    log.add(space, key, value.as_deref());
                }
            }
            log.raise_floor(unflushed.floor(&self.trees, log.next()));
            let number = log.append(seqno, sync).map_err(logging)?;
            for (space, writes) in [(Space::Small, writes.small), (Space::Large, writes.large)] {
                if !writes.is_empty() {
                    unflushed.wrote(space, number);
                }
                for (key, value) in writes {
                    wrote(space, &key);
                    self.trees.apply(space, key, value, seqno);
                }
            }
            self.trees.publish(seqno);
            Ok(())
        })?;
        Ok(true)
    }

    fn run_errand(&mut self, errand: Errand) -> Result<()> {
        match errand {
            Errand::Sync => self.logged.log.sync().map_err(logging),
            Errand::Seal(space) => self.seal(space),
            Errand::ShrinkLog => {
                let Logged { log, unflushed } = &mut self.logged;
                log.raise_floor(unflushed.floor(&self.trees, log.next()));
                log.shrink().map_err(logging)
            }
        }
    }

    /// Has what is in memory flushed.
    fn seal(&mut self, space: Space) -> Result<()> {
        // A table must not have a half of what the log may lose.
        self.logged.log.sync().map_err(logging)?;
        if self.trees.seal(space) {
            self.logged.unflushed.sealed(space);
            self.flushing.ring();
        }
        Ok(())
    }

    /// Sees to what is full, when everybody has their answer.
    fn tidy_up(&mut self) -> Result<()> {
        let is_log_full = self.logged.log.live_bytes() > LOG_BYTES_MAX;
        let is_due =
            |space| self.trees.is_full(space) || (is_log_full && self.logged.unflushed.is_holding(space));
        let due = BOTH.map(is_due);
        for (space, _) in BOTH.into_iter().zip(due).filter(|(_, is_due)| *is_due) {
            self.seal(space)?;
        }
        if due.contains(&true) {
            self.wait_for_tables();
        }
        Ok(())
    }

    /// Holds writes up while tables are not made and merged fast enough.
    fn wait_for_tables(&self) {
        let is_behind = || BOTH.into_iter().any(|space| self.trees.is_behind(space));
        while !comes_true(FLUSH_LOOKS_MAX, || self.shared.queue.is_poisoned() || !is_behind()) {}
    }
}

/// A failure to write the log.
fn logging(error: io::Error) -> Error {
    Error::Failed(format!("writing the log: {error}"))
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
