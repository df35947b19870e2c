//! Batches that go to a server as one statement, and what it answers.
//!
//! ```text
//!   batches ──▶ Group::take: those that do not meet ──▶ arrays ──▶ mayfly_commit ──▶ refusals, counters ──▶ answers
//! ```
//!
//! No batch of a group names a key that an earlier one writes, so the server may judge all guards by what is stored.
//! Counters are the exception: batches raise the same one, in the order of the group.
//!
//! Holds: the answers are those that the batches would have got one after the other.

use std::collections::{HashMap, HashSet};

use deadpool_postgres::Object;
use tokio_postgres::Row;

use super::map::Place;
use crate::{
    Error, Result,
    store::{Batch, COMMON_SLOT, Committed, Counter, Expect, Guard, Key, MarkAt, Slot, Space, Urgency},
};

/// Batches in one statement. Beyond this a statement takes longer than it saves.
const BATCHES_MAX: usize = 64;

/// Bytes in one statement, unless one batch alone has more.
const BYTES_MAX: usize = 1 << 20;

/// A key as the table has it: the space, then the key.
pub fn stored_key(key: &Key) -> Vec<u8> {
    stored(key.space, &key.bytes)
}

/// Bytes of a key as the table has them.
pub fn stored(space: Space, bytes: &[u8]) -> Vec<u8> {
    let mut stored = Vec::with_capacity(1 + bytes.len());
    stored.push(space_byte(space));
    stored.extend_from_slice(bytes);
    stored
}

/// What the keys of a space begin with.
pub fn space_byte(space: Space) -> u8 {
    match space {
        Space::Small => 0,
        Space::Large => 1,
    }
}

/// The slots that a batch is about: those it writes to and those whose rows it relies on. The common slot is one of them
/// only if the batch writes there, or is about nothing else.
pub fn slots_of(batch: &Batch) -> Vec<Slot> {
    let puts = batch.puts.iter().map(|put| put.key.slot);
    let deletes = batch.deletes.iter().map(|key| key.slot);
    let advances = batch.advances.iter().map(|advance| advance.counter.slot);
    let mut slots: Vec<Slot> = puts.chain(deletes).chain(advances).collect();
    let guarded = || batch.guards.iter().map(|guard| guard.key.slot);
    slots.extend(guarded().filter(|slot| *slot != COMMON_SLOT));
    if slots.is_empty() {
        slots.extend(guarded());
    }
    slots.sort_unstable();
    slots.dedup();
    slots
}

/// Keys that the batches chosen so far write, and the highest stamp of each counter.
#[derive(Default)]
struct Claimed {
    keys: HashSet<(Space, Vec<u8>)>,
    counters: HashMap<(Space, Vec<u8>), u64>,
    bytes: usize,
}

impl Claimed {
    /// Takes a batch in if it meets none of the others.
    fn admit(&mut self, batch: &Batch) -> bool {
        let name = |key: &Key| (key.space, key.bytes.clone());
        // A key that gets its number from the commit is one that nobody knows yet.
        let plain =
            |put: &&crate::store::Put| !put.marks.iter().any(|mark| matches!(mark.at, MarkAt::Key(_)));
        let writes: Vec<_> = batch
            .puts
            .iter()
            .filter(plain)
            .map(|put| name(&put.key))
            .chain(batch.deletes.iter().map(name))
            .collect();
        let guards = batch.guards.iter().map(|guard| name(&guard.key));
        let meets = guards
            .chain(writes.iter().cloned())
            .any(|key| self.keys.contains(&key) || self.counters.contains_key(&key));
        let raises = |advance: &crate::store::Advance| {
            let key = name(&advance.counter);
            !self.keys.contains(&key) && self.counters.get(&key).is_none_or(|stamp| *stamp <= advance.stamp)
        };
        if meets || !batch.advances.iter().all(raises) {
            return false;
        }
        self.keys.extend(writes);
        self.counters.extend(batch.advances.iter().map(|advance| (name(&advance.counter), advance.stamp)));
        self.bytes += batch.bytes();
        true
    }
}

/// Takes from `waiting` what may go together; the first always does.
pub fn choose<T>(waiting: &mut Vec<T>, batch: impl Fn(&T) -> &Batch) -> Vec<T> {
    let mut claimed = Claimed::default();
    let mut chosen = Vec::new();
    let mut left = Vec::new();
    for one in waiting.drain(..) {
        let has_room = chosen.len() < BATCHES_MAX && (claimed.bytes < BYTES_MAX || chosen.is_empty());
        if has_room && claimed.admit(batch(&one)) {
            chosen.push(one);
        } else {
            left.push(one);
        }
    }
    *waiting = left;
    chosen
}

/// The text of the statement.
const COMMIT: &str = "SELECT * FROM mayfly_commit($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, \
    $16, $17, $18, $19, $20, $21, $22, $23, $24)";

/// A batch's place in the arrays of a statement, from 1 as the server counts.
fn ordinal(index: usize) -> i32 {
    index as i32 + 1
}

/// A group as the arrays that the server takes.
#[derive(Default)]
struct Arrays<'a> {
    floor_batch: Vec<i32>,
    floor_version: Vec<i64>,
    guard_batch: Vec<i32>,
    guard_key: Vec<Vec<u8>>,
    guard_version: Vec<Option<Vec<u8>>>,
    counter_key: Vec<Vec<u8>>,
    advance_batch: Vec<i32>,
    advance_counter: Vec<i32>,
    advance_stamp: Vec<Vec<u8>>,
    advance_first: Vec<i64>,
    advance_second: Vec<i64>,
    put_batch: Vec<i32>,
    put_key: Vec<Vec<u8>>,
    put_value: Vec<&'a [u8]>,
    mark_put: Vec<i32>,
    mark_advance: Vec<i32>,
    mark_in_key: Vec<bool>,
    mark_at: Vec<i32>,
    delete_batch: Vec<i32>,
    delete_key: Vec<Vec<u8>>,
    /// The guard behind each of the floors and of the guards.
    floors: Vec<(usize, usize)>,
    guards: Vec<(usize, usize)>,
    /// The batch behind each advance.
    counters: HashMap<(Space, &'a [u8]), usize>,
}

impl<'a> Arrays<'a> {
    fn add(&mut self, number: usize, slot: Slot, batch: &'a Batch) -> Result<()> {
        let of_batch = ordinal(number);
        for (index, guard) in batch.guards.iter().enumerate() {
            if guard.key.slot == slot {
                self.guards.push((number, index));
                self.guard_batch.push(of_batch);
                self.guard_key.push(stored_key(&guard.key));
                self.guard_version.push(expected(guard));
            } else {
                // A row of the common slot: the slot's floor stands for it.
                let Expect::Version(version) = guard.expect else {
                    return Err(Error::Invalid("a guard on the absence of a key in another slot"));
                };
                self.floors.push((number, index));
                self.floor_batch.push(of_batch);
                self.floor_version.push(i64::try_from(version).unwrap_or(i64::MAX));
            }
        }
        let first_advance = self.advance_batch.len();
        for advance in &batch.advances {
            let next = self.counters.len();
            let name = (advance.counter.space, &advance.counter.bytes[..]);
            let counter = *self.counters.entry(name).or_insert(next);
            if counter == next {
                self.counter_key.push(stored_key(&advance.counter));
            }
            self.advance_batch.push(of_batch);
            self.advance_counter.push(ordinal(counter));
            self.advance_stamp.push(advance.stamp.to_be_bytes().to_vec());
            self.advance_first.push(advance.tally[0]);
            self.advance_second.push(advance.tally[1]);
        }
        for put in &batch.puts {
            self.put_batch.push(of_batch);
            self.put_key.push(stored_key(&put.key));
            self.put_value.push(&put.value);
            for mark in &put.marks {
                let (in_key, at) = match mark.at {
                    // Behind the byte of the space.
                    MarkAt::Key(at) => (true, at + 1),
                    MarkAt::Value(at) => (false, at),
                };
                self.mark_put.push(self.put_key.len() as i32);
                self.mark_advance.push(ordinal(first_advance + usize::from(mark.advance)));
                self.mark_in_key.push(in_key);
                self.mark_at.push(at as i32);
            }
        }
        for key in &batch.deletes {
            self.delete_batch.push(of_batch);
            self.delete_key.push(stored_key(key));
        }
        Ok(())
    }
}

fn expected(guard: &Guard) -> Option<Vec<u8>> {
    match guard.expect {
        Expect::Absent => None,
        Expect::Version(version) => Some(version.to_be_bytes().to_vec()),
    }
}

/// What became of a group.
pub enum Decided {
    /// One answer per batch, and the slot's floor.
    Answers(Vec<Result<Committed>>, i64),
    /// The slot is not there under this epoch.
    Elsewhere,
}

/// Batches for one slot, on their way.
pub struct Group<'a> {
    slot: Slot,
    batches: &'a [&'a Batch],
    arrays: Arrays<'a>,
}

impl<'a> Group<'a> {
    /// Batches that do not meet.
    pub fn new(slot: Slot, batches: &'a [&'a Batch]) -> Result<Self> {
        let mut arrays = Arrays::default();
        for (number, batch) in batches.iter().enumerate() {
            arrays.add(number, slot, batch)?;
        }
        Ok(Self { slot, batches, arrays })
    }

    /// One statement, one round trip.
    pub async fn send(
        &self,
        connection: &Object,
        place: &Place,
    ) -> std::result::Result<Row, tokio_postgres::Error> {
        let statement = connection.prepare_cached(COMMIT).await?;
        let a = &self.arrays;
        let is_synced = self.batches.iter().any(|batch| batch.urgency == Urgency::Foreground);
        connection
            .query_one(
                &statement,
                &[
                    &i64::from(self.slot.0),
                    &place.group,
                    &place.epoch,
                    &is_synced,
                    &a.floor_batch,
                    &a.floor_version,
                    &a.guard_batch,
                    &a.guard_key,
                    &a.guard_version,
                    &a.counter_key,
                    &a.advance_batch,
                    &a.advance_counter,
                    &a.advance_stamp,
                    &a.advance_first,
                    &a.advance_second,
                    &a.put_batch,
                    &a.put_key,
                    &a.put_value,
                    &a.mark_put,
                    &a.mark_advance,
                    &a.mark_in_key,
                    &a.mark_at,
                    &a.delete_batch,
                    &a.delete_key,
                ],
            )
            .await
    }

    /// What the server's answer means for each batch.
    pub fn decide(&self, row: &Row) -> Result<Decided> {
        let field =
            |error: tokio_postgres::Error| Error::Unreachable(format!("an answer without sense: {error}"));
        if !row.try_get::<_, bool>(0).map_err(field)? {
            return Ok(Decided::Elsewhere);
        }
        let batches: Vec<i32> = row.try_get(2).map_err(field)?;
        let kinds: Vec<i32> = row.try_get(3).map_err(field)?;
        let numbers: Vec<i32> = row.try_get(4).map_err(field)?;
        let rows: Vec<Vec<u8>> = row.try_get(5).map_err(field)?;
        let mut counters: Vec<Counter> =
            rows.iter().map(|row| Counter::decode(row).unwrap_or_default()).collect();
        let mut refused: HashMap<usize, Refusal> = HashMap::new();
        for ((batch, kind), number) in batches.iter().zip(kinds).zip(numbers) {
            let index = usize::try_from(number - 1).unwrap_or_default();
            let refusal = match kind {
                1 => self.arrays.guards.get(index).map(|(_, guard)| Refusal::Guard(*guard)),
                2 => self.arrays.floors.get(index).map(|(_, guard)| Refusal::Guard(*guard)),
                3 => Some(Refusal::Stale(index)),
                _ => Some(Refusal::NoCounter),
            };
            let batch = usize::try_from(batch - 1).unwrap_or_default();
            if let Some(refusal) = refusal {
                // The first guard is named, and a guard before all else.
                let first = refused.remove(&batch).map_or(refusal, |earlier| earlier.min(refusal));
                refused.insert(batch, first);
            }
        }
        let mut answers = Vec::with_capacity(self.batches.len());
        for (number, batch) in self.batches.iter().enumerate() {
            answers.push(match refused.get(&number) {
                Some(refusal) => Err(self.told(batch, refusal, &counters)),
                None => Ok(self.committed(batch, &mut counters)),
            });
        }
        Ok(Decided::Answers(answers, row.try_get(1).map_err(field)?))
    }

    fn told(&self, batch: &Batch, refusal: &Refusal, counters: &[Counter]) -> Error {
        match refusal {
            Refusal::Guard(guard) => Error::Conflict { key: batch.guards[*guard].key.clone() },
            Refusal::Stale(advance) => {
                let counter = self.arrays.advance_counter.get(*advance).map_or(0, |counter| counter - 1);
                Error::Stale { stamp: counters.get(counter as usize).map_or(0, |counter| counter.stamp) }
            }
            Refusal::NoCounter => Error::Invalid("an advance of what is no counter"),
        }
    }

    /// Counts along with the server.
    fn committed(&self, batch: &Batch, counters: &mut [Counter]) -> Committed {
        let raise = |advance: &crate::store::Advance| {
            let name = (advance.counter.space, &advance.counter.bytes[..]);
            let counter = self.arrays.counters.get(&name).and_then(|index| counters.get_mut(*index));
            counter.map_or_else(Counter::default, |counter| {
                *counter = counter.advanced(advance).unwrap_or(*counter);
                *counter
            })
        };
        Committed { counters: batch.advances.iter().map(raise).collect() }
    }
}

/// Why a batch was refused; the order says which reason is told.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Refusal {
    Guard(usize),
    NoCounter,
    Stale(usize),
}
