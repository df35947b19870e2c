//! `getMore` and `killCursors`.

use std::{collections::BTreeMap, time::Duration};

use bson::{Bson, RawBsonRef, RawDocumentBuf, doc};
use mayfly_engine::clock::{Stopwatch, pause};

use super::reply;
use crate::{
    call::{Call, integer, wrong_type},
    cursor::{Owner, Taken},
    errands, fail_point,
    failure::{Failure, Result},
};

/// How long a cursor that waits is waited for, if nobody says.
const AWAIT_MS: u64 = 1000;

/// The longest sleep between two looks: expiries come without anybody stirring.
const LOOK_MS: u64 = 100;

/// What a client is told whose cursor was closed while it waited.
const INTERRUPTED: &str = "Executor error during getMore :: caused by :: operation was interrupted";

/// The next batch of a cursor.
pub async fn more(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let id = match call.get("getMore")? {
        Some(RawBsonRef::Int64(id)) => id,
        Some(other) => return Err(wrong_type("getMore.getMore", other, "long")),
        None => {
            return Err(Failure::new(40414, "BSON field 'getMore.getMore' is missing but a required field"));
        }
    };
    let name = call.text("collection")?.ok_or_else(|| {
        Failure::new(40414, "BSON field 'getMore.collection' is missing but a required field")
    })?;
    let size = match call.integer("batchSize")? {
        Some(..0) => return Err(Failure::bad_value("Batch size for getMore must be non-negative")),
        Some(0) | None => None,
        Some(size) => Some(size as usize),
    };
    if let Some(node) = errands::node_of_cursor(call, id)
        && let Some(reply) = errands::next_batch(call, node, name, id).await?
    {
        return Ok(reply);
    }
    let mut taken = call.mongo.cursors.take(id, &format!("{}.{name}", call.db), &Owner::of(call))?;
    if taken.cursor().is_some_and(|cursor| cursor.is_limited) && call.mongo.fail_points.is_time_up() {
        return Err(fail_point::time_is_up());
    }
    let waits = taken.cursor().is_some_and(|cursor| cursor.is_waited_for());
    let load = call.mongo.engine.load();
    let _busy = (!waits).then(|| load.enter());
    let patience = Duration::from_millis(call.count("maxTimeMS")?.unwrap_or(AWAIT_MS));
    let patience = if call.connection.is_errand { patience.min(errands::AWAIT_MAX) } else { patience };
    let wait = Wait { size, patience: waits.then_some(patience) };
    let batch = match &call.running {
        Some(running) => tokio::select! {
            biased;
            batch = wait.next(call, &mut taken) => Some(batch),
            () = running.stopped() => None,
        },
        None => Some(wait.next(call, &mut taken).await),
    };
    batch.unwrap_or_else(|| {
        // Part of a batch may be lost: nobody goes on behind that gap.
        taken.close();
        Err(Failure::new(11601, INTERRUPTED))
    })
}

/// How a batch is waited for.
struct Wait {
    size: Option<usize>,
    /// How long something may be waited for, if what is there is not enough.
    patience: Option<Duration>,
}

impl Wait {
    async fn next(&self, call: &Call<'_>, taken: &mut Taken<'_>) -> Result<RawDocumentBuf> {
        let watch = Stopwatch::start();
        loop {
            let stirred = call.mongo.streams.changed.notified();
            let now = call.mongo.engine.now().await?;
            let (answer, count) = taken.more(call.mongo, self.size, now).await?;
            let ended = taken.cursor().is_none();
            if self.patience.is_some() && count > 0 {
                // Waiting was nothing to give way to; this is.
                drop(call.mongo.engine.load().enter());
            }
            let left = self.patience.unwrap_or_default().saturating_sub(watch.elapsed());
            if count > 0 || ended || left.is_zero() {
                return Ok(answer);
            }
            tokio::select! {
                () = stirred => {}
                () = pause(left.min(Duration::from_millis(LOOK_MS))) => {}
            }
            if taken.is_killed() {
                return Err(Failure::new(237, INTERRUPTED));
            }
        }
    }
}

/// Closes cursors.
pub async fn kill(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let name = call.collection()?;
    let (namespace, asks) = (format!("{}.{name}", call.db), Owner::of(call));
    let (mut killed, mut missing) = (Vec::new(), Vec::new());
    let mut elsewhere: BTreeMap<u16, Vec<i64>> = BTreeMap::new();
    for id in call.array("cursors")?.ok_or_else(|| {
        Failure::new(40414, "BSON field 'killCursors.cursors' is missing but a required field")
    })? {
        let id = id?;
        let number = integer(id).ok_or_else(|| wrong_type("killCursors.cursors", id, "long"))?;
        match errands::node_of_cursor(call, number) {
            Some(node) => elsewhere.entry(node).or_default().push(number),
            None if call.mongo.cursors.kill(number, &namespace, &asks) => killed.push(number),
            None => missing.push(number),
        }
    }
    for (node, ids) in elsewhere {
        let closed = errands::close(call, node, name, &ids).await?;
        missing.extend(ids.iter().filter(|id| !closed.contains(id)));
        killed.extend(closed);
    }
    let list = |ids: Vec<i64>| ids.into_iter().map(Bson::Int64).collect::<Vec<_>>();
    reply(doc! {
        "cursorsKilled": list(killed), "cursorsNotFound": list(missing), "cursorsAlive": [], "cursorsUnknown": [],
    })
}
