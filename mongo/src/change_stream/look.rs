//! One look of a stream at everything in its scope: documents and collections, in the order of their time.
//!
//! Logs are read one after the other while others write. So that nothing overtakes, a look gives only what is not later
//! than its beginning, and not later than the end of a log of which it has read a part; the rest is left for the next look,
//! as the stream stands before it.
//!
//! Holds: the times of a container's commits never go down along its log.

use bson::{Document, RawDocument, RawDocumentBuf, Timestamp as ClusterStamp, doc};
use mayfly_engine::{DocumentId, Error as EngineError, Event, HashRange, Timestamp};

use super::{
    Happening, Told,
    event::event_document,
    number,
    source::{ChangeSource, Scope},
};
use crate::{
    failure::{Failure, Result},
    namespace::{self, Collection},
    service::{Mongo, to_raw},
};

/// Events taken from one collection at a time.
const EVENTS_MAX: usize = 200;

/// Something that a stream has not given yet.
struct Unseen<'a> {
    time: u64,
    what: What<'a>,
}

enum What<'a> {
    /// A change of a document; one that the stream does not show has none.
    Change { container: u32, commit: u64, document: Option<Document> },
    /// A happening, and whether the stream shows it.
    Happening { told: &'a Told, is_shown: bool },
}

/// The names that containers had before they were renamed.
struct Names<'a>(Vec<(&'a Collection, u64)>);

impl<'a> Names<'a> {
    fn of(told: &'a [Told]) -> Self {
        let rename = |told: &'a Told| match &told.happening {
            Happening::Rename { collection, .. } => Some((collection, number(told.time))),
            _ => None,
        };
        Self(told.iter().filter_map(rename).collect())
    }

    /// A collection as it was called at a time.
    fn at(&self, collection: &Collection, time: u64) -> Collection {
        let same =
            |other: &&(&Collection, u64)| other.0.container.id == collection.container.id && time < other.1;
        match self.0.iter().find(same) {
            Some((before, _)) => {
                Collection { db: before.db.clone(), name: before.name.clone(), ..collection.clone() }
            }
            None => collection.clone(),
        }
    }

    /// Whether a container had a name in the scope.
    fn was_within(&self, scope: &Scope, container: u32) -> bool {
        let mut renames = self.0.iter();
        renames
            .any(|(before, _)| before.container.id == container && scope.has(&before.db, Some(&before.name)))
    }
}

impl ChangeSource {
    /// Looks at everything once.
    pub(super) async fn look(&mut self, mongo: &Mongo, now: Timestamp) -> Result<()> {
        let mut through = number(mongo.cluster_time.last(now));
        let told = mongo.streams.since(self.standing.happening)?;
        let names = Names::of(&told);
        let (mut found, everywhere) = (Vec::new(), HashRange::all());
        for collection in self.sources(mongo, &told, &names) {
            let container = collection.container.id;
            let (lsn, seen) = self.standing.commits.get(&container).copied().unwrap_or_default();
            // A commit of which some events were seen is looked at again.
            let mut after = if seen > 0 { lsn.saturating_sub(1) } else { lsn };
            loop {
                let log = mongo.engine.log(&collection.container, 0, after, &everywhere, EVENTS_MAX, now);
                let page = match log.await {
                    Ok(page) => page,
                    // It was dropped a moment ago, and has said farewell.
                    Err(EngineError::NotFound(_)) => break,
                    Err(error) => return Err(error.into()),
                };
                let known = found.len();
                let last =
                    self.unseen(mongo, &collection, &names, &page.events, Some(now), &mut found).await?;
                if page.more && found.len() > known {
                    through = through.min(last);
                }
                // All of a large commit may have been seen.
                if !page.more || found.len() > known {
                    break;
                }
                after = page.position;
            }
        }
        for one in &told {
            let time = number(one.time);
            let is_early = self.not_before.is_some_and(|from| time < number(from));
            let in_scope = |farewell: &Collection| {
                self.scope.has(&farewell.db, Some(&farewell.name))
                    || names.was_within(&self.scope, farewell.container.id)
            };
            if let Some(farewell) = one.happening.farewell().filter(|_| !is_early)
                && in_scope(&farewell.collection)
            {
                let container = farewell.collection.container.id;
                let (lsn, _) = self.standing.commits.get(&container).copied().unwrap_or_default();
                if lsn < farewell.after {
                    let message = "Resume of change stream was not possible, as the resume point may no longer be in \
                                   the log of a collection that was dropped.";
                    return Err(Failure::new(286, message).label("NonResumableChangeStreamError"));
                }
                let events = &farewell.events;
                self.unseen(mongo, &farewell.collection, &names, events, None, &mut found).await?;
            }
            let is_shown = !is_early && self.shows(&one.happening);
            found.push(Unseen { time, what: What::Happening { told: one, is_shown } });
        }
        // Of the same time are only the events of one commit, which are in their order already.
        found.sort_by_key(|unseen| unseen.time);
        found.retain(|unseen| unseen.time <= through);
        self.line_up(found);
        Ok(())
    }

    /// The collections whose logs are read: those in the scope, and those that were until they were renamed.
    fn sources(&self, mongo: &Mongo, told: &[Told], names: &Names<'_>) -> Vec<Collection> {
        let mut sources = self.collections(mongo);
        for one in told {
            if let Happening::Rename { collection, to, .. } = &one.happening
                && names.was_within(&self.scope, collection.container.id)
                && let Some(now) = namespace::find(&mongo.engine, &to.0, &to.1)
                && now.container.id == collection.container.id
                && now.container.definition().log_minutes.is_some()
                && !sources.iter().any(|source| source.container.id == now.container.id)
            {
                sources.push(now);
            }
        }
        sources
    }

    /// Adds the events that come after where the stream stands, and gives the time of the last. With a time, documents are
    /// looked up as they are then.
    async fn unseen(
        &self,
        mongo: &Mongo,
        collection: &Collection,
        names: &Names<'_>,
        events: &[(u64, Event)],
        now: Option<Timestamp>,
        found: &mut Vec<Unseen<'_>>,
    ) -> Result<u64> {
        let container = collection.container.id;
        let (lsn, seen) = self.standing.commits.get(&container).copied().unwrap_or_default();
        let (mut skip, mut last) = (seen, 0);
        for (commit, event) in events {
            // Of an old commit only the second is known.
            let stamp = mongo.streams.time_of(container, *commit, event.ts);
            let time = number(stamp).max(last);
            last = time;
            if *commit < lsn || (*commit == lsn && seen == 0) {
                continue;
            }
            if *commit == lsn && skip > 0 {
                skip -= 1;
                continue;
            }
            let is_early = self.not_before.is_some_and(|from| time < number(from));
            let named = names.at(collection, time);
            let document = match !is_early && self.scope.has(&named.db, Some(&named.name)) {
                true => Some(self.change(mongo, &named, event, stamp, now).await?),
                false => None,
            };
            found.push(Unseen { time, what: What::Change { container, commit: *commit, document } });
        }
        Ok(last)
    }

    async fn change(
        &self,
        mongo: &Mongo,
        collection: &Collection,
        event: &Event,
        time: ClusterStamp,
        now: Option<Timestamp>,
    ) -> Result<Document> {
        let current = match now {
            Some(now) if self.wishes.full_document == "updateLookup" => {
                self.lookup(mongo, collection, event, now).await?
            }
            _ => None,
        };
        event_document(collection, event, time, current.as_deref(), &self.wishes)
    }

    async fn lookup(
        &self,
        mongo: &Mongo,
        collection: &Collection,
        event: &Event,
        now: Timestamp,
    ) -> Result<Option<RawDocumentBuf>> {
        let Some(id) = event.current().and_then(|body| body.get("_id").ok().flatten()) else {
            return Ok(None);
        };
        if !collection.container.is_collection() {
            return Ok(event.current().map(RawDocument::to_owned));
        }
        let record =
            mongo.engine.read_collection(&collection.container, &DocumentId::value(id), None, now).await?;
        Ok(record.map(|record| record.body().to_owned()))
    }

    /// Whether the stream tells a happening.
    fn shows(&self, happening: &Happening) -> bool {
        let is_whole = matches!(happening, Happening::DropDatabase { .. });
        (self.wishes.expanded || !happening.is_expanded())
            && !(is_whole && matches!(self.scope, Scope::Collection(..)))
            && happening.names().iter().any(|(db, name)| self.scope.has(db, *name))
    }

    /// Gives each event its token, and makes it ready to be taken.
    fn line_up(&mut self, found: Vec<Unseen<'_>>) {
        for unseen in found {
            match unseen.what {
                What::Change { container, commit, document } => {
                    let seen = match self.standing.commits.get(&container) {
                        Some((last, seen)) if *last == commit && *seen > 0 => seen + 1,
                        _ => 1,
                    };
                    self.standing.commits.insert(container, (commit, seen));
                    if let Some(document) = document {
                        let mut event = doc! { "_id": self.standing.to_token() };
                        event.extend(document);
                        self.ready.push_back((to_raw(&event), self.standing.clone()));
                    }
                }
                What::Happening { told, is_shown } => {
                    self.standing.happening = unseen.time;
                    if is_shown && self.happens(told) {
                        return;
                    }
                }
            }
        }
    }

    /// Makes a happening ready; whether it ends the stream.
    fn happens(&mut self, told: &Told) -> bool {
        let event = told.event(self.standing.to_token());
        self.ready.push_back((to_raw(&event), self.standing.clone()));
        self.ended = match &told.happening {
            Happening::Drop { .. } | Happening::Rename { .. } => matches!(self.scope, Scope::Collection(..)),
            Happening::DropDatabase { .. } => matches!(self.scope, Scope::Database(_)),
            Happening::Define(_) => false,
        };
        if self.ended {
            self.standing.ended = true;
            let last = told.invalidate(self.standing.to_token());
            self.ready.push_back((to_raw(&last), self.standing.clone()));
        }
        self.ended
    }
}
