//! What the log of a collection said when the collection was dropped.
//!
//! The log goes with the collection, and a stream may not have read all of it by then. The last of it is kept in memory for
//! streams that are open; one that is further behind is told that it missed something.

use std::sync::Arc;

use mayfly_engine::{Event, HashRange, Timestamp};

use crate::{failure::Result, namespace::Collection, service::Mongo};

/// Commits kept of a collection at most.
const COMMITS_MAX: u64 = 1000;

/// Bytes of documents kept of a collection at most.
const BYTES_MAX: usize = 16 << 20;

/// The end of a log.
pub struct Farewell {
    /// The collection.
    pub collection: Collection,
    /// Every event after this commit is here.
    pub after: u64,
    /// The events, each with its commit.
    pub events: Vec<(u64, Event)>,
    /// About how much memory they take.
    pub bytes: usize,
}

impl Farewell {
    /// Reads the end of a collection's log, if it has one. To be called before it is dropped.
    pub async fn of(mongo: &Mongo, collection: &Collection, now: Timestamp) -> Result<Option<Arc<Self>>> {
        if collection.container.definition().log_minutes.is_none() {
            return Ok(None);
        }
        let last = mongo.engine.lsn(&collection.container, 0).await?;
        let mut after = last.saturating_sub(COMMITS_MAX);
        let mut events = Vec::new();
        let (mut position, mut bytes) = (after, 0);
        loop {
            let page = mongo
                .engine
                .log(&collection.container, 0, position, &HashRange::all(), COMMITS_MAX as usize, now)
                .await?;
            bytes += page.events.iter().map(|(_, event)| size(event)).sum::<usize>();
            events.extend(page.events);
            position = page.position;
            if !page.more {
                break;
            }
        }
        let mut skip = 0;
        while bytes > BYTES_MAX && skip < events.len() {
            let (commit, event): &(u64, Event) = &events[skip];
            bytes -= size(event);
            after = *commit;
            skip += 1;
        }
        // Events of a commit stay together.
        events.retain(|(commit, _)| *commit > after);
        Ok(Some(Arc::new(Self { collection: collection.clone(), after, events, bytes })))
    }
}

fn size(event: &Event) -> usize {
    let body = |body: Option<&bson::RawDocument>| body.map_or(0, |body| body.as_bytes().len());
    256 + body(event.current()) + body(event.previous())
}
