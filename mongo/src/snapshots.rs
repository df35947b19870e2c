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

/// The same where nodes share a store: there a view holds one of a few connections, which all other reads need too.
const SHARED_VIEWS_MAX: usize = 8;

/// Commands that may read so.
const COMMANDS: [&str; 3] = ["find", "aggregate", "distinct"];

/// The views that somebody may come back to, by the time that was told.
#[derive(Default)]
pub struct Snapshots(Mutex<BTreeMap<(u32, u32), Kept>>);

/// When a view was taken, and the view.
type Kept = (Timestamp, Arc<Txn>);

/// What a command reads.
pub enum Asked {
    /// No view in particular.
    Nothing,
    /// This one, of this time.
    View(ClusterStamp, Arc<Txn>),
    /// One that is not here.
    Unknown(ClusterStamp),
}

impl Snapshots {
    /// The view that a command asks for, if it asks for one.
    pub async fn asked(&self, call: &Call<'_>) -> Result<Asked> {
        let in_transaction = call.in_transaction();
        let Some(concern) = call.document("readConcern")?.filter(|_| !in_transaction) else {
            return Ok(Asked::Nothing);
        };
        if !matches!(concern.get("level")?, Some(RawBsonRef::String("snapshot"))) {
            return Ok(Asked::Nothing);
        }
        // A cursor goes on as it began.
        if call.info.name == "getMore" {
            return Ok(Asked::Nothing);
        }
        if !COMMANDS.contains(&call.info.name) {
            let message = format!("Command {} does not support readConcern level snapshot", call.info.name);
            return Err(Failure::new(72, message));
        }
        if let Some(RawBsonRef::Timestamp(time)) = concern.get("atClusterTime")? {
            let kept = self.0.lock().get(&(time.time, time.increment)).map(|(_, view)| view.clone());
            return Ok(kept.map_or(Asked::Unknown(time), |view| Asked::View(time, view)));
        }
        // The time is told after the view was taken: what was written before is in it.
        let view = Arc::new(Txn::reading(call.mongo.engine.view(call.now).await?, call.now));
        let time = call.mongo.cluster_time.tick_of_node(call.now);
        let mut kept = self.0.lock();
        kept.insert((time.time, time.increment), (call.now, view.clone()));
        let views_max = if call.mongo.engine.is_shared() { SHARED_VIEWS_MAX } else { VIEWS_MAX };
        if kept.len() > views_max {
            kept.pop_first();
        }
        Ok(Asked::View(time, view))
    }

    /// Whether nobody may come back to any.
    pub fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }

    /// Lets go of old views.
    pub fn sweep(&self, now: Timestamp) {
        self.0.lock().retain(|_, (taken, _)| now.seconds().saturating_sub(taken.seconds()) < SECONDS_MAX);
    }
}
