//! A batch that writes to several slots: one transaction of several statements, if one server has them all.

use std::sync::Arc;

use deadpool_postgres::Object;

use super::{
    Inner, MOVES_MAX,
    group::{Decided, Group, slots_of},
    map::Place,
    pause_for_move,
    queue::count,
    transaction::Transaction,
};
use crate::{
    Error, Result,
    store::{Batch, Committed, Slot},
};

/// Commits a batch that writes to several slots of one server, as one transaction of several statements.
pub async fn commit_across(store: &Arc<Inner>, batch: Batch) -> Result<Committed> {
    let parts = split(&batch)?;
    for attempt in 0..MOVES_MAX {
        let places: Vec<Place> = parts.iter().map(|part| store.place(part.slot)).collect();
        let Some(first) = places.first() else { return Ok(Committed::default()) };
        if places.iter().any(|place| place.number != first.number) {
            return Err(Error::Apart);
        }
        let answer = first.server.write(async |connection: Object| {
            let transaction = Transaction::begin(connection, "BEGIN").await?;
            let answers = send_parts(&transaction, &parts, &places).await;
            let ended = match &answers {
                Ok(Ok(_)) => transaction.commit().await,
                Ok(Err(_)) | Err(_) => transaction.rollback().await,
            };
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
                pause_for_move(attempt).await;
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
        let batches = [(part.slot, &part.batch)];
        let group = match Group::new(&batches) {
            Ok(group) => group,
            Err(error) => return Ok(Err(error)),
        };
        let row = group.send(connection, std::slice::from_ref(place), false).await?;
        match group.decide(&row).map(|(mut decided, _)| decided.pop()) {
            Ok(Some(Decided::Answer(Ok(committed)))) => rows.push(committed),
            Ok(Some(Decided::Answer(Err(error)))) | Err(error) => return Ok(Err(error)),
            Ok(Some(Decided::Elsewhere | Decided::Alone)) => return Ok(Err(Error::Moved)),
            Ok(None) => return Ok(Err(Error::Poisoned)),
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
