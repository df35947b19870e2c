//! Reads of one moment outside of transactions: `readConcern: {level: "snapshot"}`.
//!
//! The first read takes a view and tells its time; whoever sends that time again reads the same view. Views hold back the
//! reclamation of space, so they are few, and gone after some minutes.

use std::{collections::BTreeMap, sync::Arc};

use bson::{RawBsonRef, Timestamp as ClusterStamp};
use mayfly_engine::Timestamp;
use parking_lot::Mutex;

use crate::{
    call::Call,
    failure::{Failure, Result},
    session::Txn,
};

/// How long a view is kept after it was taken.
const SECONDS_MAX: u64 = 300;

/// Views kept at a time; the oldest go first.
const VIEWS_MAX: usize = 100;

/// Commands that may read so.
const COMMANDS: [&str; 3] = ["find", "aggregate", "distinct"];

/// The views that somebody may come back to, by the time that was told.
#[derive(Default)]
pub struct Snapshots(Mutex<BTreeMap<(u32, u32), Kept>>);

/// When a view was taken, and the view.
type Kept = (Timestamp, Arc<Txn>);

impl Snapshots {
    /// The view that a command asks for, if it asks for one, and its time.
    pub async fn asked(&self, call: &Call<'_>) -> Result<Option<(ClusterStamp, Arc<Txn>)>> {
        let in_transaction = call.session.as_ref().is_some_and(|session| session.in_transaction);
        let Some(concern) = call.document("readConcern")?.filter(|_| !in_transaction) else {
            return Ok(None);
        };
        if !matches!(concern.get("level")?, Some(RawBsonRef::String("snapshot"))) {
            return Ok(None);
        }
        // A cursor goes on as it began.
        if call.info.name == "getMore" {
            return Ok(None);
        }
        if !COMMANDS.contains(&call.info.name) {
            let message = format!("Command {} does not support readConcern level snapshot", call.info.name);
            return Err(Failure::new(72, message));
        }
        if let Some(RawBsonRef::Timestamp(time)) = concern.get("atClusterTime")? {
            let kept = self.0.lock().get(&(time.time, time.increment)).map(|(_, view)| view.clone());
            let view = kept.ok_or_else(|| {
                Failure::new(239, "Read timestamp is older than the oldest available timestamp.")
            })?;
            return Ok(Some((time, view)));
        }
        // The time is told after the view was taken: what was written before is in it.
        let view = Arc::new(Txn::reading(call.mongo.engine.view(call.now).await?, call.now));
        let time = call.mongo.cluster_time.tick(call.now);
        let mut kept = self.0.lock();
        kept.insert((time.time, time.increment), (call.now, view.clone()));
        if kept.len() > VIEWS_MAX {
            kept.pop_first();
        }
        Ok(Some((time, view)))
    }

    /// Lets go of old views.
    pub fn sweep(&self, now: Timestamp) {
        self.0.lock().retain(|_, (taken, _)| now.seconds().saturating_sub(taken.seconds()) < SECONDS_MAX);
    }
}
