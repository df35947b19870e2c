//! A batch of the background that removes rows of known versions, as those of purge do: many documents, each guarded by
//! its version, and little else.
//!
//! `mayfly_commit` would look for each row to judge its guard and again to delete it, and hold the slot all the while.
//! `mayfly_remove` deletes the rows and looks at what it has deleted, which takes one look, and undoes that if it was not as
//! expected. It takes the slot when that is done, so that writers go on meanwhile.
//!
//! Holds: it does what `mayfly_commit` would do with the batch, or nothing at all; then that one is asked.

use std::{sync::Arc, time::Duration};

use deadpool_postgres::Object;
use tokio_postgres::{error::SqlState, types::ToSql};

use super::{Inner, group::stored_key, map::Place, queue, server::Answered, transaction::Transaction};
use crate::{
    Result,
    store::{Batch, Counter, Expect, Slot, Urgency},
};

/// Rows that are worth it: with fewer both take as long.
const ROWS_MIN: usize = 16;

/// How long it waits for rows and for the slot. Writers hold a slot for some milliseconds, while the disk syncs; in the rare
/// case that one of them waits for these rows meanwhile, it waits for this long.
const WAIT: &str = "200ms";
const WAIT_MAX: Duration = Duration::from_millis(200);

const REMOVE: &str = "SELECT mayfly_remove($1, $2, $3, $4, $5, $6, $7)";
const REMOVED: &str = "SELECT * FROM mayfly_removed($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";

/// Such a batch as the arrays that the server takes.
#[derive(Default)]
pub struct Removal<'a> {
    slot: Slot,
    floors: Vec<i64>,
    guards: Vec<Vec<u8>>,
    expected: Vec<Option<Vec<u8>>>,
    /// Rows that go if they have the version beside them, in the order of their keys.
    rows: Vec<Vec<u8>>,
    versions: Vec<Vec<u8>>,
    deletes: Vec<Vec<u8>>,
    counter: Option<Vec<u8>>,
    tally: [i64; 2],
    puts: Vec<Vec<u8>>,
    values: Vec<&'a [u8]>,
}

/// What the server did with one.
#[derive(Default)]
pub struct Removed {
    /// Nothing if it did nothing; otherwise the counter as it is now, if one was raised.
    pub counter: Option<Option<Counter>>,
    /// The slot's floor, if it was looked at and is there.
    pub floor: Option<i64>,
}

impl<'a> Removal<'a> {
    /// The removal that a batch is; nothing if it is something else.
    pub fn of(slot: Slot, batch: &'a Batch) -> Option<Self> {
        let counters_max = 1;
        let is_plain = batch.urgency == Urgency::Background
            && batch.puts.iter().all(|put| put.marks.is_empty())
            && batch.advances.len() <= counters_max
            && batch.advances.iter().all(|advance| advance.stamp == 0);
        if !is_plain || batch.deletes.len() < ROWS_MIN {
            return None;
        }
        let mut removal = Self { slot, ..Self::default() };
        let mut rows = Vec::with_capacity(batch.guards.len());
        let mut deletes: std::collections::HashSet<Vec<u8>, ahash::RandomState> =
            batch.deletes.iter().map(stored_key).collect();
        for guard in &batch.guards {
            match guard.expect {
                Expect::Version(version) if guard.key.slot != slot => {
                    removal.floors.push(i64::try_from(version).unwrap_or(i64::MAX));
                }
                Expect::Absent if guard.key.slot != slot => return None,
                Expect::Absent => {
                    removal.guards.push(stored_key(&guard.key));
                    removal.expected.push(None);
                }
                Expect::Version(version) => {
                    let (key, version) = (stored_key(&guard.key), version.to_be_bytes().to_vec());
                    if deletes.remove(&key) {
                        rows.push((key, version));
                    } else {
                        removal.guards.push(key);
                        removal.expected.push(Some(version));
                    }
                }
            }
        }
        if rows.len() < ROWS_MIN {
            return None;
        }
        rows.sort_unstable();
        (removal.rows, removal.versions) = rows.into_iter().unzip();
        removal.deletes = deletes.into_iter().collect();
        // Rows that were written together are met together.
        removal.deletes.sort_unstable();
        for advance in &batch.advances {
            (removal.counter, removal.tally) = (Some(stored_key(&advance.counter)), advance.tally);
        }
        for put in &batch.puts {
            removal.puts.push(stored_key(&put.key));
            removal.values.push(&put.value);
        }
        Some(removal)
    }

    /// A transaction of its own, of two statements.
    pub async fn send(&self, store: &Arc<Inner>, place: &Place) -> Result<Removed> {
        let sent = place.server.write(async |connection: Object| {
            let transaction = Transaction::begin(connection, "BEGIN").await?;
            let removed = match self.send_halves(store, &transaction, place).await {
                // Somebody else has one of the rows, or the slot.
                Err(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => Removed::default(),
                removed => removed?,
            };
            match removed.counter {
                Some(_) => transaction.commit().await?,
                None => transaction.rollback().await?,
            }
            Ok(removed)
        });
        sent.await
    }

    async fn send_halves(&self, store: &Arc<Inner>, connection: &Object, place: &Place) -> Answered<Removed> {
        let slot = i64::from(self.slot.0);
        let remove = connection.prepare_cached(REMOVE).await?;
        let removed = connection.prepare_cached(REMOVED).await?;
        let first: [&(dyn ToSql + Sync); 7] =
            [&slot, &place.epoch, &WAIT, &self.floors, &self.rows, &self.versions, &self.deletes];
        if !connection.query_one(&remove, &first).await?.get::<_, bool>(0) {
            return Ok(Removed::default());
        }
        // Writers of this node would come between for as long as there are any: the server does not queue them.
        let Some(_turn) = queue::turn(store, self.slot, WAIT_MAX).await else {
            return Ok(Removed::default());
        };
        let second: [&(dyn ToSql + Sync); 11] = [
            &slot,
            &place.group,
            &place.epoch,
            &self.floors,
            &self.guards,
            &self.expected,
            &self.counter,
            &self.tally[0],
            &self.tally[1],
            &self.puts,
            &self.values,
        ];
        let row = connection.query_one(&removed, &second).await?;
        let counter: Option<&[u8]> = row.get(2);
        let counter = counter.map_or(Some(None), |bytes| Counter::decode(bytes).map(Some));
        Ok(Removed { counter: counter.filter(|_| row.get(0)), floor: row.get(1) })
    }
}
