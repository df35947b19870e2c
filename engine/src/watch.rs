//! Watches: names under which new collections keep a log from their beginning.
//!
//! Somebody who follows a database wants to see what comes into it later too, whichever node makes it. A
//! watch is a row of the catalog, of the kind that is only kept ([`crate::kept`]) and belongs to nobody.
//! Whoever makes a collection does so by the catalog as it is stored, so none is made without its log beside
//! a watch. A watch ends by itself if it is not renewed.

use mayfly_storage::store::Key;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    catalog::{Catalog, Change, changed_row, new_row, number},
    clock::Timestamp,
    engine::Engine,
    error::{Error, Result},
    kept::{Kept, Row},
    keys,
};

/// Watches belong to the catalog itself.
const NOBODY: u32 = 0;

/// Their kind among what is kept: no front-end's own.
const WATCH: u8 = 8;

/// A watch lasts so many times the minutes of the logs under it, and is renewed when half of them is used up:
/// so it lasts for as long as anybody may go on from what they have seen.
const LIVES: u64 = 2;

/// Ended watches removed with a new one.
const REMOVED_MAX: usize = 100;

/// Names of databases and collections are shorter.
const NAME_BYTES_MAX: usize = 1000;

/// What is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watched<'a> {
    /// Every database.
    Everything,
    /// A database.
    Database(&'a str),
    /// A name in a database.
    Collection(&'a str, &'a str),
}

impl Watched<'_> {
    fn name(self) -> String {
        match self {
            Self::Everything => String::new(),
            Self::Database(database) => database.to_owned(),
            // No name has a zero in it.
            Self::Collection(database, name) => format!("{database}\0{name}"),
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Watch {
    /// The second it ends.
    until: u64,
    /// How long logs are kept.
    minutes: u32,
}

impl Watch {
    fn of(kept: &Kept) -> Option<Self> {
        serde_json::from_value(kept.value.clone()).ok()
    }
}

impl Engine {
    /// From now on new collections under a name keep a log of so many minutes, for at least as long again.
    pub async fn watch(&self, watched: Watched<'_>, minutes: u32, now: Timestamp) -> Result<()> {
        let name = watched.name();
        if name.len() > NAME_BYTES_MAX {
            return Err(Error::bad_request("The name is too long to be watched."));
        }
        let life = u64::from(minutes) * 60;
        let current = self.catalog().shelf().get(NOBODY, WATCH, &name).cloned();
        let left =
            current.as_ref().and_then(Watch::of).map(|watch| watch.until.saturating_sub(now.seconds()));
        if left.is_some_and(|left| left > life * LIVES - life / 2) {
            return Ok(());
        }
        self.catalog()
            .change(move |catalog| {
                let change = catalog.keep_watch(name.clone(), minutes, now);
                async { change }
            })
            .await
    }

    /// How many minutes of log a collection of that name is to keep, if it is watched; without a name, the
    /// database.
    pub fn watched(&self, database: &str, name: Option<&str>, now: Timestamp) -> Option<u32> {
        self.catalog().watched(database, name, now)
    }
}

impl Catalog {
    fn keep_watch(&self, name: String, minutes: u32, now: Timestamp) -> Result<Change<()>> {
        let key = keys::kept(NOBODY, WATCH, &name);
        let until = now.seconds() + u64::from(minutes) * 60 * LIVES;
        let value = serde_json::to_value(Watch { until, minutes });
        let value: Value = value.map_err(|error| Error::internal(error.to_string()))?;
        let row = Row { modified: now.seconds(), value };
        let current = self.shelf().get(NOBODY, WATCH, &name).cloned();
        let put = match &current {
            Some(kept) => changed_row(key, kept.id, &row)?,
            None => new_row(key, &row)?,
        };
        let has_ended = |kept: &Kept| Watch::of(kept).is_none_or(|watch| watch.until <= now.seconds());
        let ended: Vec<String> = {
            let shelf = self.shelf();
            let ended = shelf.of_kind(NOBODY, WATCH).filter(|kept| kept.name != name && has_ended(kept));
            ended.take(REMOVED_MAX).map(|kept| kept.name.clone()).collect()
        };
        let deletes: Vec<Key> = ended.iter().map(|name| keys::kept(NOBODY, WATCH, name)).collect();
        Ok(Change {
            guards: Vec::new(),
            puts: vec![put],
            deletes,
            conflict: Error::Contention,
            publish: Box::new(move |memory, version| {
                let id = current.map_or_else(|| number(version), |kept| Ok(kept.id))?;
                ended.iter().for_each(|name| memory.shelf.remove(NOBODY, WATCH, name));
                memory.shelf.insert(WATCH, Kept::new(id, NOBODY, &name, row, version));
                Ok(())
            }),
        })
    }

    /// See [`Engine::watched`].
    pub fn watched(&self, database: &str, name: Option<&str>, now: Timestamp) -> Option<u32> {
        let shelf = self.shelf();
        let find = |watched: Watched<'_>| {
            let watch = Watch::of(shelf.get(NOBODY, WATCH, &watched.name())?)?;
            (watch.until > now.seconds()).then_some(watch.minutes)
        };
        let named = name.and_then(|name| find(Watched::Collection(database, name)));
        named.or_else(|| find(Watched::Database(database))).or_else(|| find(Watched::Everything))
    }
}
