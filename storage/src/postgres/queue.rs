//! Batches that wait for a server while other commits are under way there, and go together when one of them is done.
//!
//! ```text
//!   commit ──▶ the slot's queue ──▶ ready slots, in order of arrival ──▶ a runner: one statement for as many as there are
//!                    ▲                                                        │
//!                    └── the slot again, if more came meanwhile ◀─────────────┘ answers
//! ```
//!
//! Each server that is written to has a few runners. One sends whatever waits for slots that no other runner has, as one
//! statement, answers, and looks again. The slower the server and the more writers there are, the larger the groups; a
//! transaction, and its wait for the disk, is shared by all in it. Work of the background does not queue here: its batches
//! are large and go alone, few at a time. But who has deleted much and wants the slot at last gets it before the batches
//! that wait ([`turn`]): the server lets in whoever comes when a slot is free, and that would always be a batch.
//!
//! A batch that waited may rely on what a group before it has just changed. That is known here, so it is refused here:
//! many that want the same row do not ask the server one by one.
//!
//! Holds: once queued, a batch is decided even if its caller goes away.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use deadpool_postgres::Object;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::{
    Inner, MOVES_MAX,
    changed::Changed,
    group::{Claimed, Decided, Group},
    is_urgent, pause_for_move,
    removal::Removal,
    server::pause,
    vacuum,
};
use crate::{
    Error, Result,
    store::{Batch, BoxFuture, Committed, Slot},
};

/// Statements under way at a time to one server: one that the server works on while another waits for the disk. More would
/// be smaller, and a transaction costs the server as much as several batches.
const RUNNERS_MAX: usize = 2;

/// Batches that are worth a statement beside one that is under way.
const GROUP_MIN: usize = 8;

/// With fewer batches than this at a time, each goes at once: there is nothing to share.
const LIGHT: usize = 4;

/// What waits, by the server that had its slot when it came.
#[derive(Default)]
pub struct Queues(Mutex<HashMap<i32, Line>>);

/// What waits for one server.
#[derive(Default)]
struct Line {
    /// Slots that somebody waits for, or that are being written to.
    slots: HashMap<Slot, Waiting>,
    /// Those that somebody waits for and nobody writes to, in the order in which they came to be so.
    ready: VecDeque<Slot>,
    /// Batches that wait for those.
    ready_batches: usize,
    /// Batches that runners have.
    under_way: usize,
    /// Batches of the group that was sent last.
    recent: usize,
    runners: usize,
}

#[derive(Default)]
struct Waiting {
    jobs: Vec<Job>,
    /// Somebody writes to the slot.
    is_taken: bool,
    /// The first so many of the jobs were there when that was sent.
    older: usize,
    /// Who wants to write to it beside the queue, next.
    claims: VecDeque<oneshot::Sender<Turn>>,
}

struct Job {
    batch: Batch,
    reply: oneshot::Sender<Result<Committed>>,
}

/// Batches of a group, each with its slot.
type Jobs = Vec<(Slot, Job)>;

impl Line {
    /// Queues a batch; whether a runner is to be started.
    fn push(&mut self, slot: Slot, job: Job) -> bool {
        let waiting = self.slots.entry(slot).or_default();
        if !waiting.is_taken {
            if waiting.jobs.is_empty() {
                self.ready.push_back(slot);
            }
            self.ready_batches += 1;
        }
        waiting.jobs.push(job);
        self.wants_runner()
    }

    /// Whether another runner is to be started. It is counted as one already.
    fn wants_runner(&mut self) -> bool {
        let is_wanted = self.is_worth_a_statement(self.runners);
        self.runners += usize::from(is_wanted);
        is_wanted
    }

    /// Whether what is ready should go now, beside the statements of so many runners. If not, the next of them takes it.
    fn is_worth_a_statement(&self, runners: usize) -> bool {
        let is_light = self.under_way.max(self.recent) < LIGHT;
        !self.ready.is_empty()
            && match runners {
                0 => true,
                _ if is_light => runners < LIGHT,
                _ => runners < RUNNERS_MAX && self.ready_batches >= GROUP_MIN,
            }
    }

    /// What a runner sends next. Nothing ends the runner.
    fn take(&mut self) -> Jobs {
        if !self.is_worth_a_statement(self.runners - 1) {
            self.runners -= 1;
            return Vec::new();
        }
        let mut claimed = Claimed::default();
        let mut taken = Vec::new();
        // Half of them, so that the server has something to do while it waits for the disk.
        let enough = GROUP_MIN.max(self.ready_batches / 2);
        while claimed.has_room() && taken.len() < enough {
            let Some(slot) = self.ready.pop_front() else { break };
            let Some(waiting) = self.slots.get_mut(&slot) else { continue };
            self.ready_batches -= waiting.jobs.len();
            waiting.is_taken = true;
            // At least one: what batches of two slots write cannot be the same.
            let chosen = claimed.choose(&mut waiting.jobs, |job| &job.batch);
            waiting.older = waiting.jobs.len();
            taken.extend(chosen.into_iter().map(|job| (slot, job)));
        }
        self.recent = taken.len();
        self.under_way += taken.len();
        taken
    }

    /// Takes a slot from those that are ready, or gets in line for it. Whether it was taken.
    fn claim(&mut self, slot: Slot, tell: oneshot::Sender<Turn>) -> bool {
        let waiting = self.slots.entry(slot).or_default();
        if waiting.is_taken {
            waiting.claims.push_back(tell);
            return false;
        }
        waiting.is_taken = true;
        waiting.older = waiting.jobs.len();
        self.ready_batches -= waiting.jobs.len();
        self.ready.retain(|other| *other != slot);
        true
    }

    /// A slot is written to no longer.
    fn release(&mut self, store: &Arc<Inner>, server: i32, slot: Slot, changed: &Changed) {
        let Some(waiting) = self.slots.get_mut(&slot) else { return };
        waiting.is_taken = false;
        let jobs = std::mem::take(&mut waiting.jobs);
        for (place, job) in jobs.into_iter().enumerate() {
            match changed.refuses(&job.batch, place < waiting.older).cloned() {
                None => waiting.jobs.push(job),
                Some(key) => {
                    let answer = Err(Error::Conflict { key });
                    count(store, std::slice::from_ref(&answer));
                    let _ = job.reply.send(answer);
                }
            }
        }
        while let Some(claim) = waiting.claims.pop_front() {
            match claim.send(Turn { store: store.clone(), server, slot, is_void: false }) {
                Ok(()) => {
                    (waiting.is_taken, waiting.older) = (true, waiting.jobs.len());
                    return;
                }
                // Given up: there is nothing to release.
                Err(mut turn) => turn.is_void = true,
            }
        }
        if waiting.jobs.is_empty() {
            self.slots.remove(&slot);
        } else {
            self.ready_batches += waiting.jobs.len();
            self.ready.push_back(slot);
        }
    }
}

/// A slot that no batch of the queue is sent to.
pub struct Turn {
    store: Arc<Inner>,
    server: i32,
    slot: Slot,
    /// It was never given.
    is_void: bool,
}

impl Drop for Turn {
    fn drop(&mut self) {
        if self.is_void {
            return;
        }
        let is_wanted = {
            let mut lines = self.store.queues.0.lock();
            let line = lines.entry(self.server).or_default();
            line.release(&self.store, self.server, self.slot, &Changed::default());
            line.wants_runner()
        };
        if is_wanted {
            self.store.spawn(run(self.store.clone(), self.server));
        }
    }
}

/// Waits until no batch of the queue is under way to a slot, but not for longer than that.
pub async fn turn(store: &Arc<Inner>, slot: Slot, wait_max: Duration) -> Option<Turn> {
    let (tell, told) = oneshot::channel();
    let server = store.place(slot).number;
    let is_taken = store.queues.0.lock().entry(server).or_default().claim(slot, tell);
    if is_taken {
        return Some(Turn { store: store.clone(), server, slot, is_void: false });
    }
    tokio::select! {
        turn = told => turn.ok(),
        () = pause(wait_max) => None,
    }
}

/// Commits a batch of one slot.
pub async fn commit(store: &Arc<Inner>, slot: Slot, batch: Batch) -> Result<Committed> {
    let (reply, answer) = oneshot::channel();
    let job = Job { batch, reply };
    if is_urgent(&job.batch) {
        let server = store.place(slot).number;
        let is_wanted = store.queues.0.lock().entry(server).or_default().push(slot, job);
        if is_wanted {
            store.spawn(run(store.clone(), server));
        }
    } else {
        let alone = store.clone();
        store.spawn(async move {
            // Closed never: it belongs to the store.
            let _turn = alone.background.acquire().await;
            match remove(&alone, slot, &job.batch).await {
                Some(answer) => drop(job.reply.send(answer)),
                None => drop(settle(&alone, vec![(slot, job)]).await),
            }
        });
    }
    answer.await.unwrap_or(Err(Error::Poisoned))
}

/// Commits a batch that removes many rows. Nothing if it is something else, or if it is not clear that it can be.
async fn remove(store: &Arc<Inner>, slot: Slot, batch: &Batch) -> Option<Result<Committed>> {
    let (removal, place) = (Removal::of(slot, batch)?, store.place(slot));
    let removed = match removal.send(store, &place).await {
        Ok(removed) => removed,
        Err(error) => return Some(Err(error)),
    };
    if let Some(floor) = removed.floor {
        store.saw_floor(slot, floor);
    }
    let answer = Ok(Committed { counters: removed.counter?.into_iter().collect() });
    count(store, std::slice::from_ref(&answer));
    vacuum::deleted(store, &place.server, batch.deletes.len());
    Some(answer)
}

/// Commits what waits for a server until nothing does.
fn run(store: Arc<Inner>, server: i32) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        loop {
            let jobs = store.queues.0.lock().entry(server).or_default().take();
            if jobs.is_empty() {
                return;
            }
            process(&store, server, jobs).await;
            // Those that were answered come again, if they are let; then they go together.
            tokio::task::yield_now().await;
        }
    })
}

/// Decides a group and answers. Slots that the statement could not take are settled by themselves meanwhile.
async fn process(store: &Arc<Inner>, server: i32, jobs: Jobs) {
    let batches = jobs.len();
    let mut slots: Vec<Slot> = jobs.iter().map(|(slot, _)| *slot).collect();
    slots.sort_unstable();
    slots.dedup();
    let mut changed = Changed::default();
    let left = match send(store, &jobs).await {
        // One that the server cannot take must not spoil it for the others.
        Err(Error::Invalid(_) | Error::KeyTooLong { .. } | Error::Moved) => jobs,
        sent => answer(jobs, sent, &mut changed),
    };
    let mut alone: HashMap<Slot, Jobs> = HashMap::new();
    left.into_iter().for_each(|(slot, job)| alone.entry(slot).or_default().push((slot, job)));
    {
        let mut lines = store.queues.0.lock();
        let line = lines.entry(server).or_default();
        line.under_way -= batches;
        slots.retain(|slot| !alone.contains_key(slot));
        slots.iter().for_each(|slot| line.release(store, server, *slot, &changed));
    }
    for (slot, jobs) in alone {
        let settled = store.clone();
        store.spawn(async move {
            let changed = settle(&settled, jobs).await;
            let is_wanted = {
                let mut lines = settled.queues.0.lock();
                let line = lines.entry(server).or_default();
                line.release(&settled, server, slot, &changed);
                line.wants_runner()
            };
            if is_wanted {
                run(settled, server).await;
            }
        });
    }
}

/// Sends a group to the server that has its slots.
async fn send(store: &Arc<Inner>, jobs: &Jobs) -> Result<Vec<Decided>> {
    let batches: Vec<(Slot, &Batch)> = jobs.iter().map(|(slot, job)| (*slot, &job.batch)).collect();
    let group = Group::new(&batches)?;
    let places: Vec<_> = group.slots.iter().map(|slot| store.place(*slot)).collect();
    let Some(first) = places.first() else { return Ok(Vec::new()) };
    if places.iter().any(|place| place.number != first.number) {
        // They were on one server when they came.
        return Err(Error::Moved);
    }
    let write = async |connection: Object| group.send(&connection, &places, true).await;
    let (decided, floors) = group.decide(&first.server.write(write).await?)?;
    floors.into_iter().for_each(|(slot, floor)| store.saw_floor(slot, floor));
    let answers = decided.iter().filter_map(|decided| match decided {
        Decided::Answer(answer) => Some(answer),
        Decided::Elsewhere | Decided::Alone => None,
    });
    count(store, answers);
    let done = |(_, decided): &(_, &Decided)| matches!(decided, Decided::Answer(Ok(_)));
    let done = batches.iter().zip(&decided).filter(done);
    vacuum::deleted(store, &first.server, done.map(|((_, batch), _)| batch.deletes.len()).sum());
    Ok(decided)
}

/// Tells everybody what has been decided. Those that are left wait for slots that were not there.
fn answer(jobs: Jobs, sent: Result<Vec<Decided>>, changed: &mut Changed) -> Jobs {
    let mut left = Vec::new();
    match sent {
        Ok(decided) => {
            for ((slot, job), decided) in jobs.into_iter().zip(decided) {
                let Decided::Answer(answer) = decided else {
                    left.push((slot, job));
                    continue;
                };
                if let Ok(committed) = &answer {
                    changed.add(&job.batch, committed);
                }
                let _ = job.reply.send(answer);
            }
        }
        Err(error) => jobs.into_iter().for_each(|(_, job)| drop(job.reply.send(Err(copy(&error))))),
    }
    left
}

/// Decides batches of one slot wherever it is, each by itself if one of them spoils it for the others.
async fn settle(store: &Arc<Inner>, jobs: Jobs) -> Changed {
    let mut changed = Changed::default();
    let mut groups = vec![jobs];
    let mut moves = 0;
    while let Some(jobs) = groups.pop() {
        let sent = match send(store, &jobs).await {
            Err(Error::Invalid(_) | Error::KeyTooLong { .. }) if jobs.len() > 1 => {
                groups.extend(jobs.into_iter().rev().map(|job| vec![job]));
                continue;
            }
            sent => sent,
        };
        let left = answer(jobs, sent, &mut changed);
        if left.is_empty() {
            continue;
        }
        moves += 1;
        let followed = if moves < MOVES_MAX { store.reload_map().await } else { Err(Error::Moved) };
        match followed {
            Ok(()) => {
                pause_for_move(moves).await;
                groups.push(left);
            }
            Err(error) => drop(answer(left, Err(error), &mut changed)),
        }
    }
    changed
}

/// Counts what became of batches that went together.
pub fn count<'a>(store: &Inner, answers: impl IntoIterator<Item = &'a Result<Committed>>) {
    let (mut accepted, mut refused) = (0, 0);
    for answer in answers {
        accepted += u64::from(answer.is_ok());
        refused += u64::from(matches!(answer, Err(Error::Conflict { .. } | Error::Stale { .. })));
    }
    store.tallies.commits.fetch_add(accepted, Relaxed);
    store.tallies.groups.fetch_add(u64::from(accepted > 0), Relaxed);
    store.tallies.conflicts.fetch_add(refused, Relaxed);
}

/// The same error for each of several callers.
fn copy(error: &Error) -> Error {
    match error {
        Error::Unreachable(text) => Error::Unreachable(text.clone()),
        Error::Invalid(text) => Error::Invalid(text),
        Error::Moved => Error::Moved,
        Error::KeyTooLong { bytes_max } => Error::KeyTooLong { bytes_max: *bytes_max },
        _ => Error::Poisoned,
    }
}
