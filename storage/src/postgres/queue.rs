//! Batches that wait for a slot while another commit to it is under way, and go together when it is done.
//!
//! Each slot that is being written to has a runner: it sends what waits as one statement, answers, and looks again. The
//! slower the server and the more writers there are, the larger the groups. Work of the background goes alone, and only
//! between groups.
//!
//! A batch that waited may rely on what a group before it has just changed. That is known here, so it is refused here:
//! many that want the same row do not ask the server one by one.
//!
//! Holds: once queued, a batch is decided even if its caller goes away.

use std::{
    collections::HashMap,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use deadpool_postgres::Object;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::{
    Inner, MOVES_MAX,
    group::{Decided, Group, choose, slots_of},
    is_urgent,
    map::Place,
    server::pause,
};
use crate::{
    Error, Result,
    store::{Batch, Committed, Expect, Key, MarkAt, Slot, Space},
};

/// How long to wait for a group of slots that is on its way to another server.
const MOVE_PAUSE: Duration = Duration::from_millis(20);

/// What waits for each slot that has a runner.
#[derive(Default)]
pub struct Queues(Mutex<HashMap<Slot, Waiting>>);

#[derive(Default)]
struct Waiting {
    urgent: Vec<Job>,
    background: Vec<Job>,
}

struct Job {
    batch: Batch,
    reply: oneshot::Sender<Result<Committed>>,
}

impl Waiting {
    fn push(&mut self, job: Job) {
        if is_urgent(&job.batch) { self.urgent.push(job) } else { self.background.push(job) }
    }

    /// Refuses what relies on rows that have been changed since it was queued.
    fn refuse_late(&mut self, store: &Inner, changed: &Changed) {
        for jobs in [&mut self.urgent, &mut self.background] {
            for job in jobs.extract_if(.., |job| changed.refuses(&job.batch).is_some()) {
                let key = changed.refuses(&job.batch).cloned();
                let answer = key.map_or(Err(Error::Poisoned), |key| Err(Error::Conflict { key }));
                count(store, std::slice::from_ref(&answer));
                let _ = job.reply.send(answer);
            }
        }
    }
}

/// Commits a batch of one slot.
pub async fn commit(store: &Arc<Inner>, slot: Slot, batch: Batch) -> Result<Committed> {
    let (reply, answer) = oneshot::channel();
    let job = Job { batch, reply };
    let first = {
        let mut queues = store.queues.0.lock();
        match queues.get_mut(&slot) {
            Some(waiting) => {
                waiting.push(job);
                None
            }
            None => {
                queues.insert(slot, Waiting::default());
                Some(job)
            }
        }
    };
    if let Some(job) = first {
        let runner = run(store.clone(), slot, job);
        store.spawn(runner);
    }
    answer.await.unwrap_or(Err(Error::Poisoned))
}

/// Commits `first` and whatever comes meanwhile.
async fn run(store: Arc<Inner>, slot: Slot, first: Job) {
    let mut group = vec![first];
    loop {
        let changed = process(&store, slot, group).await;
        let (urgent, background) = {
            let mut queues = store.queues.0.lock();
            let Some(waiting) = queues.get_mut(&slot) else { return };
            waiting.refuse_late(&store, &changed);
            let urgent = choose(&mut waiting.urgent, |job| &job.batch);
            let background = (!waiting.background.is_empty()).then(|| waiting.background.remove(0));
            if urgent.is_empty() && background.is_none() {
                queues.remove(&slot);
                return;
            }
            (urgent, background)
        };
        if !urgent.is_empty() {
            let changed = process(&store, slot, urgent).await;
            if let Some(waiting) = store.queues.0.lock().get_mut(&slot) {
                waiting.refuse_late(&store, &changed);
            }
        }
        // Nothing if there is no background work: then this is a look at what came meanwhile.
        group = background.into_iter().collect();
    }
}

/// Decides a group, answers, and says what it has changed.
async fn process(store: &Arc<Inner>, slot: Slot, jobs: Vec<Job>) -> Changed {
    let mut changed = Changed::default();
    if jobs.is_empty() {
        return changed;
    }
    let (batches, replies): (Vec<_>, Vec<_>) = jobs.into_iter().map(|job| (job.batch, job.reply)).unzip();
    let borrowed: Vec<&Batch> = batches.iter().collect();
    let answers = match decide(store, slot, &borrowed).await {
        // One that the server cannot take must not spoil it for the others.
        Err(Error::Invalid(_) | Error::KeyTooLong { .. }) if borrowed.len() > 1 => {
            let mut answers = Vec::new();
            for batch in borrowed {
                let alone = decide(store, slot, &[batch]).await;
                answers.push(alone.and_then(|mut answers| answers.pop().unwrap_or(Err(Error::Poisoned))));
            }
            Ok(answers)
        }
        decided => decided,
    };
    match answers {
        Ok(answers) => {
            for ((reply, answer), batch) in replies.into_iter().zip(answers).zip(&batches) {
                if let Ok(committed) = &answer {
                    changed.add(batch, committed);
                }
                let _ = reply.send(answer);
            }
        }
        Err(error) => {
            for reply in replies {
                let _ = reply.send(Err(copy(&error)));
            }
        }
    }
    changed
}

/// What guards find at keys that were just written: nothing, or a value with its version, if it is long enough for one.
#[derive(Default)]
struct Changed(HashMap<(Space, Vec<u8>), Option<Option<u64>>>);

impl Changed {
    fn add(&mut self, batch: &Batch, committed: &Committed) {
        let version = |value: &[u8]| value.first_chunk().map(|bytes| u64::from_be_bytes(*bytes));
        let name = |key: &Key| (key.space, key.bytes.clone());
        for put in &batch.puts {
            // The numbers that the commit filled in stand in the first bytes, or nowhere that a guard looks.
            let at_start = put.marks.iter().find(|mark| mark.at == MarkAt::Value(0));
            let filled = at_start.and_then(|mark| committed.counters.get(usize::from(mark.advance)));
            let is_known = put.marks.iter().all(|mark| match mark.at {
                MarkAt::Key(_) => false,
                MarkAt::Value(at) => at == 0 || at >= 8,
            });
            if is_known {
                let found = filled.map_or_else(|| version(&put.value), |counter| Some(counter.seq));
                self.0.insert(name(&put.key), Some(found));
            }
        }
        self.0.extend(batch.deletes.iter().map(|key| (name(key), None)));
        let counters = batch.advances.iter().zip(&committed.counters);
        self.0.extend(counters.map(|(advance, row)| (name(&advance.counter), Some(Some(row.seq)))));
    }

    /// The first key that does not hold what a batch relies on.
    fn refuses<'a>(&self, batch: &'a Batch) -> Option<&'a Key> {
        let broken = batch.guards.iter().find(|guard| {
            let found = self.0.get(&(guard.key.space, guard.key.bytes.clone()));
            found.is_some_and(|found| match guard.expect {
                Expect::Absent => found.is_some(),
                Expect::Version(version) => *found != Some(Some(version)),
            })
        });
        broken.map(|guard| &guard.key)
    }
}

/// Sends a group to wherever its slot is.
async fn decide(store: &Arc<Inner>, slot: Slot, batches: &[&Batch]) -> Result<Vec<Result<Committed>>> {
    let group = Group::new(slot, batches)?;
    for _ in 0..MOVES_MAX {
        let place = store.place(slot);
        let row =
            place.server.write(async |connection: Object| group.send(&connection, &place).await).await?;
        match group.decide(&row)? {
            Decided::Answers(answers, floor) => {
                store.saw_floor(slot, floor);
                count(store, &answers);
                return Ok(answers);
            }
            Decided::Elsewhere => {
                store.reload_map().await?;
                pause(MOVE_PAUSE).await;
            }
        }
    }
    Err(Error::Moved)
}

fn count(store: &Inner, answers: &[Result<Committed>]) {
    let accepted = answers.iter().filter(|answer| answer.is_ok()).count() as u64;
    let refused = |answer: &&Result<_>| matches!(answer, Err(Error::Conflict { .. } | Error::Stale { .. }));
    store.tallies.commits.fetch_add(accepted, Relaxed);
    store.tallies.groups.fetch_add(u64::from(accepted > 0), Relaxed);
    store.tallies.conflicts.fetch_add(answers.iter().filter(refused).count() as u64, Relaxed);
}

/// Commits a batch that writes to several slots of one server, as one transaction of several statements.
pub async fn commit_across(store: &Arc<Inner>, batch: Batch) -> Result<Committed> {
    let parts = split(&batch)?;
    for _ in 0..MOVES_MAX {
        let places: Vec<Place> = parts.iter().map(|part| store.place(part.slot)).collect();
        let Some(first) = places.first() else { return Ok(Committed::default()) };
        if places.iter().any(|place| place.number != first.number) {
            return Err(Error::Apart);
        }
        let answer = first.server.write(async |connection: Object| {
            connection.batch_execute("BEGIN").await?;
            let answers = send_parts(&connection, &parts, &places).await;
            let is_good = matches!(&answers, Ok(Ok(_)));
            let ended = connection.batch_execute(if is_good { "COMMIT" } else { "ROLLBACK" }).await;
            if ended.is_err() {
                // In an unknown state, so not for anybody else.
                drop(Object::take(connection));
            }
            let answers = answers?;
            ended.map(|()| answers)
        });
        match answer.await? {
            Ok(rows) => {
                let committed = Committed { counters: in_order(&batch, &parts, rows) };
                count(store, &[Ok(committed.clone())]);
                return Ok(committed);
            }
            Err(Error::Moved) => {
                store.reload_map().await?;
                pause(MOVE_PAUSE).await;
            }
            Err(error) => {
                let answer = Err(error);
                count(store, std::slice::from_ref(&answer));
                return answer;
            }
        }
    }
    Err(Error::Moved)
}

/// The part of a batch that one slot is concerned with, and which of the batch's advances it has.
struct Part {
    slot: Slot,
    batch: Batch,
    advances: Vec<usize>,
}

fn split(batch: &Batch) -> Result<Vec<Part>> {
    let mut slots = slots_of(batch);
    slots.extend(batch.guards.iter().map(|guard| guard.key.slot));
    slots.sort_unstable();
    slots.dedup();
    slots.into_iter().map(|slot| part(batch, slot)).collect()
}

fn part(batch: &Batch, slot: Slot) -> Result<Part> {
    let advances: Vec<usize> =
        (0..batch.advances.len()).filter(|index| batch.advances[*index].counter.slot == slot).collect();
    let mut part = Batch {
        guards: batch.guards.iter().filter(|guard| guard.key.slot == slot).cloned().collect(),
        puts: batch.puts.iter().filter(|put| put.key.slot == slot).cloned().collect(),
        deletes: batch.deletes.iter().filter(|key| key.slot == slot).cloned().collect(),
        advances: advances.iter().map(|index| batch.advances[*index].clone()).collect(),
        urgency: batch.urgency,
    };
    for put in &mut part.puts {
        for mark in &mut put.marks {
            let index = advances.iter().position(|index| *index == usize::from(mark.advance));
            let Some(index) = index else {
                return Err(Error::Invalid("a mark of an advance in another slot"));
            };
            mark.advance = index as u8;
        }
    }
    Ok(Part { slot, batch: part, advances })
}

type Rows = Vec<Committed>;

async fn send_parts(
    connection: &Object,
    parts: &[Part],
    places: &[Place],
) -> std::result::Result<Result<Rows>, tokio_postgres::Error> {
    let mut rows = Vec::new();
    for (part, place) in parts.iter().zip(places) {
        let batches = [&part.batch];
        let group = match Group::new(part.slot, &batches) {
            Ok(group) => group,
            Err(error) => return Ok(Err(error)),
        };
        let row = group.send(connection, place).await?;
        match group.decide(&row) {
            Ok(Decided::Answers(mut answers, _)) => match answers.pop() {
                Some(Ok(committed)) => rows.push(committed),
                Some(Err(error)) => return Ok(Err(error)),
                None => return Ok(Err(Error::Poisoned)),
            },
            Ok(Decided::Elsewhere) => return Ok(Err(Error::Moved)),
            Err(error) => return Ok(Err(error)),
        }
    }
    Ok(Ok(rows))
}

/// Counters in the order of the batch's advances.
fn in_order(batch: &Batch, parts: &[Part], rows: Rows) -> Vec<crate::store::Counter> {
    let mut counters = vec![crate::store::Counter::default(); batch.advances.len()];
    for (part, row) in parts.iter().zip(rows) {
        for (index, counter) in part.advances.iter().zip(row.counters) {
            counters[*index] = counter;
        }
    }
    counters
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
