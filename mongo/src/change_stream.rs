//! Change streams: what happens in a collection, a database or everywhere, as it happens.
//!
//! Documents come from the log that the engine keeps for a collection once somebody watches it. What happens to collections
//! themselves comes from the front-end, which does it, and is remembered for as long as the server runs.

mod event;
mod farewell;
mod happening;
mod look;
mod source;

use std::collections::{BTreeMap, HashSet, VecDeque};

use bson::Timestamp as ClusterStamp;
use mayfly_engine::Timestamp;
use parking_lot::Mutex;
use tokio::sync::Notify;

pub use farewell::Farewell;
pub use happening::{Definition, Happening, Told};
pub use source::open;

use crate::{
    failure::{Failure, Result},
    namespace,
    service::Mongo,
};

/// How long the log of a watched collection is kept: as long as a stream may be resumed.
pub const LOG_MINUTES: u32 = 24 * 60;

/// Happenings remembered for streams that are behind, and the memory they may take.
const HAPPENINGS_MAX: usize = 10_000;
const HAPPENINGS_BYTES_MAX: usize = 16 << 20;

/// Memory for what dropped collections leave behind.
const FAREWELLS_BYTES_MAX: usize = 64 << 20;

/// Commits whose time is remembered exactly; of older ones the second is known.
const TIMES_MAX: usize = 100_000;

/// All streams of the server.
#[derive(Default)]
pub struct Streams {
    happenings: Mutex<Happenings>,
    /// Databases that are watched as a whole; the empty name is all of them.
    watched: Mutex<HashSet<String>>,
    /// The cluster's time of recent commits, by container and sequence number.
    times: Mutex<BTreeMap<(u32, u64), ClusterStamp>>,
    /// Told whenever something happens.
    pub changed: Notify,
}

/// What happened, in the order of its time.
#[derive(Default)]
struct Happenings {
    told: VecDeque<Told>,
    bytes: usize,
    /// The time of the last one that was told, and of the last one that is forgotten.
    last: u64,
    forgotten: u64,
}

/// A time as one number.
pub fn number(time: ClusterStamp) -> u64 {
    u64::from(time.time) << 32 | u64::from(time.increment)
}

impl Streams {
    /// Notes a happening, which gets the next time of the cluster.
    pub fn tell(&self, mongo: &Mongo, happening: Happening, now: Timestamp) {
        let mut happenings = self.happenings.lock();
        let list = &mut *happenings;
        list.bytes += happening.bytes();
        // With the list locked, so that it is in the order of its times.
        let time = mongo.cluster_time.tick(now);
        list.last = number(time);
        list.told.push_back(Told { time, wall: now, happening });
        while list.told.len() > HAPPENINGS_MAX || list.bytes > HAPPENINGS_BYTES_MAX {
            let Some(told) = list.told.pop_front() else { break };
            list.bytes -= told.happening.bytes();
            list.forgotten = number(told.time);
        }
        let mut bytes = 0;
        for told in list.told.iter_mut().rev() {
            bytes += told.happening.farewell().map_or(0, |farewell| farewell.bytes);
            if bytes > FAREWELLS_BYTES_MAX {
                told.happening.forget_farewell();
            }
        }
        drop(happenings);
        self.stir();
    }

    /// The time of the last happening.
    pub fn last(&self) -> u64 {
        self.happenings.lock().last
    }

    /// What happened after a time.
    pub fn since(&self, time: u64) -> Result<Vec<Told>> {
        let happenings = self.happenings.lock();
        if time < happenings.forgotten {
            let message = "Resume of change stream was not possible, as the resume point may no longer be in the list of \
                           what happened to collections.";
            return Err(Failure::new(286, message).label("NonResumableChangeStreamError"));
        }
        let after = happenings.told.partition_point(|told| number(told.time) <= time);
        Ok(happenings.told.range(after..).cloned().collect())
    }

    /// Remembers the time of a commit.
    pub fn note(&self, container: u32, lsn: u64, time: ClusterStamp) {
        let mut times = self.times.lock();
        times.insert((container, lsn), time);
        if times.len() > TIMES_MAX {
            times.pop_first();
        }
    }

    /// The time of a commit in the second `ts`.
    pub fn time_of(&self, container: u32, lsn: u64, ts: u64) -> ClusterStamp {
        let known = self.times.lock().get(&(container, lsn)).copied();
        known.unwrap_or(ClusterStamp { time: ts as u32, increment: 1 })
    }

    /// Wakes the streams that wait.
    pub fn stir(&self) {
        self.changed.notify_waiters();
    }

    /// Whether new collections of a database are watched from their beginning.
    pub fn watches(&self, db: &str) -> bool {
        let watched = self.watched.lock();
        watched.contains(db) || watched.contains("")
    }

    /// Sees to it that a collection, a database, or (with an empty name) everything keeps a log.
    pub async fn begin_log(&self, mongo: &Mongo, db: &str, name: Option<&str>, now: Timestamp) -> Result<()> {
        let collections = match name {
            Some(name) => {
                // It may be made later.
                if namespace::find(&mongo.engine, db, name).is_none() {
                    self.watched.lock().insert(db.to_owned());
                }
                namespace::find(&mongo.engine, db, name).into_iter().collect()
            }
            None => {
                self.watched.lock().insert(db.to_owned());
                let databases = mongo.engine.databases();
                let names = databases.iter().map(|database| database.name.as_str());
                names
                    .filter(|other| db.is_empty() || *other == db)
                    .flat_map(|other| namespace::list(&mongo.engine, other))
                    .collect::<Vec<_>>()
            }
        };
        for collection in collections {
            if collection.container.definition().log_minutes.is_none() && collection.view().is_none() {
                let mut definition = collection.container.definition().clone();
                definition.log_minutes = Some(LOG_MINUTES);
                mongo.engine.replace_container(&collection.container, definition, None, now).await?;
            }
        }
        Ok(())
    }
}
