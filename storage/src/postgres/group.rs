//! Batches that go to a server as one statement, and what it answers.
//!
//! ```text
//!   batches ──▶ Claimed: those that do not meet ──▶ arrays ──▶ mayfly_commit ──▶ refusals, counters ──▶ answers
//! ```
//!
//! Each batch is of one slot; a group may have batches of many. The server takes all its slots first, in their order, so
//! groups of several nodes wait for each other in one direction.
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
pub struct Claimed {
    batches: usize,
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
        self.batches += 1;
        true
    }
}

impl Claimed {
    /// Whether there may be more.
    pub fn has_room(&self) -> bool {
        self.batches < BATCHES_MAX && (self.bytes < BYTES_MAX || self.batches == 0)
    }

    /// Takes from `waiting` what may go together with what was taken before; the first of all always does.
    pub fn choose<T>(&mut self, waiting: &mut Vec<T>, batch: impl Fn(&T) -> &Batch) -> Vec<T> {
        let mut left = Vec::new();
        let mut chosen = Vec::new();
        for one in waiting.drain(..) {
            if self.has_room() && self.admit(batch(&one)) { chosen.push(one) } else { left.push(one) }
        }
        *waiting = left;
        chosen
    }
}

/// The text of the statement.
const COMMIT: &str = "SELECT * FROM mayfly_commit($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, \
    $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27)";

/// A batch's place in the arrays of a statement, from 1 as the server counts.
fn ordinal(index: usize) -> i32 {
    index as i32 + 1
}

/// A group as the arrays that the server takes.
#[derive(Default)]
struct Arrays<'a> {
    batch_slot: Vec<i32>,
    floor_batch: Vec<i32>,
    floor_version: Vec<i64>,
    guard_batch: Vec<i32>,
    guard_key: Vec<Vec<u8>>,
    guard_version: Vec<Option<Vec<u8>>>,
    counter_slot: Vec<i64>,
    counter_key: Vec<Vec<u8>>,
    advance_batch: Vec<i32>,
    advance_counter: Vec<i32>,
    advance_stamp: Vec<Vec<u8>>,
    advance_first: Vec<i64>,
    advance_second: Vec<i64>,
    put_batch: Vec<i32>,
    put_key: Vec<Vec<u8>>,
    put_value: Vec<&'a [u8]>,
    put_fresh: Vec<bool>,
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
    /// A batch, its slot, and where that stands among the slots of the group.
    fn add(&mut self, place: usize, slot: Slot, batch: &'a Batch) -> Result<()> {
        let number = self.batch_slot.len();
        let of_batch = ordinal(number);
        self.batch_slot.push(ordinal(place));
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
                self.counter_slot.push(i64::from(slot.0));
                self.counter_key.push(stored_key(&advance.counter));
            }
            self.advance_batch.push(of_batch);
            self.advance_counter.push(ordinal(counter));
            self.advance_stamp.push(advance.stamp.to_be_bytes().to_vec());
            self.advance_first.push(advance.tally[0]);
            self.advance_second.push(advance.tally[1]);
        }
        let is_new = makes_new(slot, batch);
        for put in &batch.puts {
            self.put_batch.push(of_batch);
            self.put_key.push(stored_key(&put.key));
            self.put_value.push(&put.value);
            self.put_fresh.push(is_new || put.marks.iter().any(|mark| matches!(mark.at, MarkAt::Key(_))));
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

/// Whether a batch makes something that was not there: then most likely nothing that belongs to it was either. The server
/// puts up with keys that are.
fn makes_new(slot: Slot, batch: &Batch) -> bool {
    let mut own = batch.guards.iter().filter(|guard| guard.key.slot == slot).peekable();
    own.peek().is_some() && own.all(|guard| guard.expect == Expect::Absent)
}

fn expected(guard: &Guard) -> Option<Vec<u8>> {
    match guard.expect {
        Expect::Absent => None,
        Expect::Version(version) => Some(version.to_be_bytes().to_vec()),
    }
}

/// Floors of slots.
pub type Floors = Vec<(Slot, i64)>;

/// What became of a batch.
pub enum Decided {
    Answer(Result<Committed>),
    /// Its slot is not there under this epoch.
    Elsewhere,
    /// Its slot has to be asked for by itself: nobody has written to it yet.
    Alone,
}

/// Batches for slots of one server, on their way.
pub struct Group<'a> {
    /// In ascending order.
    pub slots: Vec<Slot>,
    batches: &'a [(Slot, &'a Batch)],
    arrays: Arrays<'a>,
}

impl<'a> Group<'a> {
    /// Batches that do not meet, and their slots.
    pub fn new(batches: &'a [(Slot, &'a Batch)]) -> Result<Self> {
        let mut slots: Vec<Slot> = batches.iter().map(|(slot, _)| *slot).collect();
        slots.sort_unstable();
        slots.dedup();
        let mut arrays = Arrays::default();
        for (slot, batch) in batches {
            arrays.add(slots.partition_point(|other| other < slot), *slot, batch)?;
        }
        Ok(Self { slots, batches, arrays })
    }

    /// One statement, one round trip. `places` are those of the slots, on one server. `is_whole` if it is a transaction by
    /// itself.
    pub async fn send(
        &self,
        connection: &Object,
        places: &[Place],
        is_whole: bool,
    ) -> std::result::Result<Row, tokio_postgres::Error> {
        let statement = connection.prepare_cached(COMMIT).await?;
        let a = &self.arrays;
        let is_urgent = self.batches.iter().any(|(_, batch)| batch.urgency == Urgency::Foreground);
        let is_synced = is_whole.then_some(is_urgent);
        let slots: Vec<i64> = self.slots.iter().map(|slot| i64::from(slot.0)).collect();
        let groups: Vec<i32> = places.iter().map(|place| place.group).collect();
        let epochs: Vec<i64> = places.iter().map(|place| place.epoch).collect();
        connection
            .query_one(
                &statement,
                &[
                    &slots,
                    &groups,
                    &epochs,
                    &is_synced,
                    &a.batch_slot,
                    &a.floor_batch,
                    &a.floor_version,
                    &a.guard_batch,
                    &a.guard_key,
                    &a.guard_version,
                    &a.counter_slot,
                    &a.counter_key,
                    &a.advance_batch,
                    &a.advance_counter,
                    &a.advance_stamp,
                    &a.advance_first,
                    &a.advance_second,
                    &a.put_batch,
                    &a.put_key,
                    &a.put_value,
                    &a.put_fresh,
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

    /// What the server's answer means for each batch, and the floors of the slots that it took.
    pub fn decide(&self, row: &Row) -> Result<(Vec<Decided>, Floors)> {
        let field =
            |error: tokio_postgres::Error| Error::Unreachable(format!("an answer without sense: {error}"));
        let states: Vec<i32> = row.try_get(0).map_err(field)?;
        let floors: Vec<Option<i64>> = row.try_get(1).map_err(field)?;
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
                0 => Some(Refusal::Slot),
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
        for (number, (slot, batch)) in self.batches.iter().enumerate() {
            answers.push(match refused.get(&number) {
                Some(Refusal::Slot) => match states.get(self.slots.partition_point(|other| other < slot)) {
                    Some(1) => Decided::Elsewhere,
                    _ => Decided::Alone,
                },
                Some(refusal) => Decided::Answer(Err(self.told(batch, refusal, &counters))),
                None => Decided::Answer(Ok(self.committed(batch, &mut counters))),
            });
        }
        let floors = self.slots.iter().zip(floors).filter_map(|(slot, floor)| Some((*slot, floor?)));
        Ok((answers, floors.collect()))
    }

    fn told(&self, batch: &Batch, refusal: &Refusal, counters: &[Counter]) -> Error {
        match refusal {
            Refusal::Guard(guard) => Error::Conflict { key: batch.guards[*guard].key.clone() },
            Refusal::Stale(advance) => {
                let counter = self.arrays.advance_counter.get(*advance).map_or(0, |counter| counter - 1);
                Error::Stale { stamp: counters.get(counter as usize).map_or(0, |counter| counter.stamp) }
            }
            Refusal::Slot => Error::Moved,
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
    Slot,
    Guard(usize),
    NoCounter,
    Stale(usize),
}
