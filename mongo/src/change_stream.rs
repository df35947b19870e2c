//! Change streams: what happens in a collection, a database or everywhere, as it happens, on whichever node it happens.
//!
//! Nothing of it is in the memory of a node. Documents come from the log that the engine keeps of a collection once somebody
//! watches it; a watch is kept by the engine too, so that any node gives a log to the collections it makes later. What happens to
//! collections themselves is noted by the node that does it, in one step with doing it where something is taken away
//! (`Engine::notes`), and only if somebody watches.
//!
//! There are as many orders as logs, and that of the notes. Each is exact, and a token says how far a stream has come in each of
//! them, so that nothing is lost or told twice, on any node. Between them, a note says up to which commit of its collection it comes
//! after; everything else goes by the time of the cluster ([`crate::cluster_time`]), which is in the logs ([`merge`]).

mod event;
mod happening;
mod look;
mod merge;
mod source;
mod subject;

use mayfly_engine::{HashRange, Timestamp, Watched};
use tokio::sync::Notify;

pub use happening::{Definition, Happening, Told};
pub use source::open;
pub use subject::Subject;

use crate::{
    failure::{Failure, Result},
    namespace::{self, Collection},
    service::{Mongo, to_raw},
};

/// How long the log of a watched collection is kept: as long as a stream may be resumed.
pub const LOG_MINUTES: u32 = 24 * 60;

/// All streams of the server.
#[derive(Default)]
pub struct Streams {
    /// Told whenever something happens on this node.
    pub changed: Notify,
}

impl Streams {
    /// What to note of happenings, of those that somebody watches. To be written with what happens.
    pub async fn notes(
        &self,
        mongo: &Mongo,
        happenings: &[Happening],
        now: Timestamp,
    ) -> Result<Vec<Vec<u8>>> {
        let is_watched = |happening: &Happening| {
            let has_log = |subject: Option<&Subject>| subject.is_some_and(|subject| subject.has_log);
            has_log(happening.subject())
                || has_log(happening.gone())
                || happening.names().iter().any(|(db, name)| mongo.engine.watched(db, *name, now).is_some())
        };
        let mut notes = Vec::new();
        for happening in happenings {
            // A database goes with its collections.
            let is_whole = matches!(happening, Happening::DropDatabase { .. }) && !notes.is_empty();
            if !is_whole && !is_watched(happening) {
                continue;
            }
            let after = self.comes_after(mongo, happening).await?;
            let moment = mongo.engine.next_moment(now);
            let told = Told { number: (0, 0), moment, wall: now, after, happening: happening.clone() };
            notes.push(to_raw(&told.to_note()).into_bytes());
        }
        Ok(notes)
    }

    /// The last commit of its collection that a happening comes after.
    async fn comes_after(&self, mongo: &Mongo, happening: &Happening) -> Result<u64> {
        let subject = match happening {
            Happening::Drop { .. } => return Ok(u64::MAX),
            Happening::DropDatabase { .. } => return Ok(0),
            Happening::Rename { collection, .. } => collection,
            Happening::Define(definition) => &definition.collection,
        };
        match mongo.engine.container_by_id(subject.container) {
            Ok(container) if !happening.is_beginning() => Ok(mongo.engine.lsn(&container, 0).await?),
            _ => Ok(0),
        }
    }

    /// Notes something that has happened.
    pub async fn tell(&self, mongo: &Mongo, happening: Happening, now: Timestamp) -> Result<()> {
        let notes = self.notes(mongo, &[happening], now).await?;
        self.write(mongo, &notes).await
    }

    /// Writes notes of what has happened.
    pub async fn write(&self, mongo: &Mongo, notes: &[Vec<u8>]) -> Result<()> {
        if !notes.is_empty() {
            mongo.engine.write_notes(notes).await?;
            self.stir();
        }
        Ok(())
    }

    /// Wakes the streams that wait.
    pub fn stir(&self) {
        self.changed.notify_waiters();
    }

    /// Sees to it that a collection, a database, or (with an empty name) everything keeps a log, now and later.
    pub async fn begin_log(&self, mongo: &Mongo, db: &str, name: Option<&str>, now: Timestamp) -> Result<()> {
        mongo.engine.refresh().await?;
        self.renew(mongo, db, name, now).await?;
        let collections = match name {
            Some(name) => namespace::find(&mongo.engine, db, name).into_iter().collect(),
            None => {
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

    /// Sees to it that collections which are made later keep a log.
    pub async fn renew(&self, mongo: &Mongo, db: &str, name: Option<&str>, now: Timestamp) -> Result<()> {
        let watched = match name {
            Some(name) => Watched::Collection(db, name),
            None if db.is_empty() => Watched::Everything,
            None => Watched::Database(db),
        };
        Ok(mongo.engine.watch(watched, LOG_MINUTES, now).await?)
    }
}

/// Lets the log of a collection that is about to go say everything: what has expired is in it when somebody has looked.
pub async fn finish_log(mongo: &Mongo, collection: &Collection, now: Timestamp) -> Result<()> {
    if collection.container.definition().log_minutes.is_some() {
        let (container, everywhere) = (&collection.container, HashRange::all());
        let last = mongo.engine.lsn(container, 0).await?;
        mongo.engine.log(container, 0, last, &everywhere, 1, now).await?;
    }
    Ok(())
}

/// 286: a stream cannot go on from there.
fn too_old() -> Failure {
    let message = "Resume of change stream was not possible, as the resume point may no longer be in what is kept of what \
                   happened to collections.";
    Failure::new(286, message).label("NonResumableChangeStreamError")
}
