//! The time that clients hand on to each other: a second and a number inside it, and it never goes back.
//!
//! It is the engine's moment, which the log of a collection has of every change: so an event has the same time on every node.

use bson::Timestamp as ClusterStamp;
use mayfly_engine::{Engine, Timestamp};

/// The bits of the time of a view that say which node has it.
const NODE_MASK: u64 = 0xFFFF;

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

    /// The same, and one that says which node told it, where there may be several.
    pub fn tick_of_node(&self, now: Timestamp) -> ClusterStamp {
        let moment = self.0.next_moment(now);
        let moment = match u64::from(self.0.node_number()) {
            0 => moment,
            node => (moment | NODE_MASK) + 1 + node,
        };
        self.0.observe_moment(moment);
        stamp(moment)
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

/// The number of the node that told the time of a view; anything for other times.
pub fn node_of(stamp: ClusterStamp) -> u16 {
    (moment(stamp) & NODE_MASK) as u16
}

/// The moment that a client has been told.
pub fn moment(stamp: ClusterStamp) -> u64 {
    u64::from(stamp.time) << 32 | u64::from(stamp.increment)
}
