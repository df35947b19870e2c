//! Change streams: what happens in a collection, a database or everywhere, as it happens.
//!
//! Documents come from the log that the engine keeps for a collection once somebody watches it. Drops and renames come
//! from the front-end itself, which does them.

mod event;
mod farewell;
mod source;

use std::{
    collections::{BTreeMap, HashSet, VecDeque},
    sync::Arc,
};

use bson::Timestamp as ClusterStamp;
use mayfly_engine::Timestamp;
use parking_lot::Mutex;
use tokio::sync::Notify;

pub use farewell::Farewell;
pub use source::open;

use crate::{failure::Result, namespace, service::Mongo};

/// How long the log of a watched collection is kept: as long as a stream may be resumed.
pub const LOG_MINUTES: u32 = 24 * 60;

/// Happenings remembered for streams that are behind.
const HAPPENINGS_MAX: usize = 1000;

/// Memory for what dropped collections leave behind.
const FAREWELLS_BYTES_MAX: usize = 64 << 20;

/// Commits whose time is remembered exactly; of older ones the second is known.
const TIMES_MAX: usize = 100_000;

/// What happened to a name.
#[derive(Clone)]
pub enum Happening {
    /// A collection is gone.
    Drop {
        /// Its database.
        db: String,
        /// Its name.
        name: String,
        /// What its log said last.
        farewell: Option<Arc<Farewell>>,
    },
    /// A collection has another name.
    Rename {
        /// Database and name before.
        from: (String, String),
        /// Database and name now.
        to: (String, String),
    },
    /// A database is gone.
    DropDatabase {
        /// Its name.
        db: String,
    },
}

/// All streams of the server.
#[derive(Default)]
pub struct Streams {
    happenings: Mutex<VecDeque<(u64, ClusterStamp, Happening)>>,
    next: Mutex<u64>,
    /// Databases that are watched as a whole; the empty name is all of them.
    watched: Mutex<HashSet<String>>,
    /// The cluster's time of recent commits, by container and sequence number.
    times: Mutex<BTreeMap<(u32, u64), ClusterStamp>>,
    /// Told whenever something happens.
    pub changed: Notify,
}

impl Streams {
    /// Notes a happening.
    pub fn tell(&self, happening: Happening, time: ClusterStamp) {
        let number = {
            let mut next = self.next.lock();
            *next += 1;
            *next
        };
        let mut happenings = self.happenings.lock();
        happenings.push_back((number, time, happening));
        while happenings.len() > HAPPENINGS_MAX {
            happenings.pop_front();
        }
        let mut bytes = 0;
        for (_, _, happening) in happenings.iter_mut().rev() {
            if let Happening::Drop { farewell, .. } = happening {
                bytes += farewell.as_ref().map_or(0, |farewell| farewell.bytes);
                if bytes > FAREWELLS_BYTES_MAX {
                    *farewell = None;
                }
            }
        }
        drop(happenings);
        self.stir();
    }

    /// The number of the last happening.
    pub fn last(&self) -> u64 {
        *self.next.lock()
    }

    /// What happened after the happening `number`.
    pub fn since(&self, number: u64) -> Vec<(u64, ClusterStamp, Happening)> {
        self.happenings.lock().iter().filter(|(other, _, _)| *other > number).cloned().collect()
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
