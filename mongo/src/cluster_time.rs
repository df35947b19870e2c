//! The time that clients hand on to each other: a second and a number inside it, and it never goes back.
//!
//! It is the engine's moment, which the log of a collection has of every change: so an event has the same time on every node.

use bson::Timestamp as ClusterStamp;
use mayfly_engine::{Engine, Timestamp};

/// The engine's moments, as clients know them.
pub struct ClusterTime(Engine);

impl ClusterTime {
    /// Those of an engine.
    pub fn new(engine: Engine) -> Self {
        Self(engine)
    }

    /// The time of something that happens now: later than any before.
    pub fn tick(&self, now: Timestamp) -> ClusterStamp {
        stamp(self.0.next_moment(now))
    }

    /// The time of the last write; not before the present second, so that it moves on without writes too.
    pub fn last(&self, now: Timestamp) -> ClusterStamp {
        stamp(self.0.last_moment(now))
    }
}

/// A moment as clients know it.
pub fn stamp(moment: u64) -> ClusterStamp {
    ClusterStamp { time: (moment >> 32) as u32, increment: moment as u32 }
}

/// The moment that a client has been told.
pub fn moment(stamp: ClusterStamp) -> u64 {
    u64::from(stamp.time) << 32 | u64::from(stamp.increment)
}
