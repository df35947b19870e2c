//! One look of a stream at everything in its scope: documents and collections, in their order.
//!
//! Logs are read one after the other while others write. So that nothing overtakes, a look gives only what is not later
//! than its beginning; the rest is left for the next look, as the stream stands before it. It goes by the catalog as it is stored
//! when it begins: a collection that another node has made is there, and one that is gone has left its log and a note.

use std::collections::HashSet;

use bson::{Document, RawDocument, RawDocumentBuf, doc};
use mayfly_engine::{DocumentId, Error as EngineError, Event, HashRange, LogForgotten, LogPage, Timestamp};

use super::{
    Happening, Subject, Told,
    event::{End, event_document},
    merge::{Merge, Next, Queue},
    source::{ChangeSource, Scope},
    too_old,
};
use crate::{
    cluster_time::{moment, stamp},
    failure::Result,
    namespace::{self, Collection},
    service::{Mongo, to_raw},
};

/// Events taken from one collection at a time.
const EVENTS_MAX: usize = 200;

/// A log to be read: of a collection that is there, or of one that is gone.
struct Log {
    subject: Subject,
    collection: Option<Collection>,
}

/// The names that containers had before they were renamed, each with the last commit under it.
struct Names<'a>(Vec<(&'a Subject, u64)>);

impl<'a> Names<'a> {
    fn of(told: &'a [Told]) -> Self {
        let rename = |told: &'a Told| match &told.happening {
            Happening::Rename { collection, .. } => Some((collection, told.after)),
            _ => None,
        };
        Self(told.iter().filter_map(rename).collect())
    }

    /// A collection as it was called at a commit.
    fn at(&self, subject: &Subject, commit: u64) -> Subject {
        let mut renames = self.0.iter();
        match renames.find(|(before, after)| before.container == subject.container && commit <= *after) {
            Some((before, _)) => {
                Subject { db: before.db.clone(), name: before.name.clone(), ..subject.clone() }
            }
            None => subject.clone(),
        }
    }

    /// Whether a container had a name in the scope.
    fn was_within(&self, scope: &Scope, container: u32) -> bool {
        let mut renames = self.0.iter();
        renames.any(|(before, _)| before.container == container && scope.has(&before.db, Some(&before.name)))
    }
}

impl ChangeSource {
    /// Looks at everything once.
    pub(super) async fn look(&mut self, mongo: &Mongo, now: Timestamp) -> Result<()> {
        let mut through = mongo.engine.present_moment(now);
        mongo.engine.refresh().await?;
        let (db, name) = self.scope.watched();
        mongo.streams.renew(mongo, db, name, now).await?;
        let (told, is_all) = self.told(mongo).await?;
        if let (false, Some(last)) = (is_all, told.last()) {
            through = through.min(last.moment);
        }
        let names = Names::of(&told);
        let mut queues = Vec::new();
        for log in self.logs(mongo, &told, &names) {
            queues.push(self.read(mongo, &log, &names, now).await?);
        }
        // What another node's clock says is ahead of ours is given with the next look.
        let moments = queues.iter().flat_map(|queue| queue.events.iter().map(|(_, moment, _)| *moment));
        let latest = moments.chain(told.iter().map(|told| told.moment)).max();
        mongo.engine.observe_moment(latest.unwrap_or_default());
        let mut merge = Merge::new(queues, &told);
        while !self.ended
            && let Some(next) = merge.next(through)
        {
            self.line_up(next);
        }
        Ok(())
    }

    /// What happened after where the stream stands, and whether that is all.
    async fn told(&mut self, mongo: &Mongo) -> Result<(Vec<Told>, bool)> {
        let (number, seen) = self.standing.happening;
        // What comes with a change that is not known here is left for the next look.
        let known = mongo.engine.catalog_version();
        if known <= self.noted {
            return Ok((Vec::new(), true));
        }
        let after = if seen > 0 { number.saturating_sub(1) } else { number };
        let notes = mongo.engine.notes(after).await?;
        if number < notes.forgotten {
            return Err(too_old());
        }
        let mut told = Vec::new();
        for note in &notes.notes {
            let is_seen = note.number.0 == number && u32::from(note.number.1) < seen;
            if !is_seen {
                told.push(Told::from_note(note.number, &Document::from_reader(&note.bytes[..])?)?);
            }
        }
        if told.is_empty() && !notes.more {
            self.noted = known;
        }
        Ok((told, !notes.more))
    }

    /// The logs to be read: of collections in the scope, of those that were until they were renamed, and of those that are gone.
    fn logs(&self, mongo: &Mongo, told: &[Told], names: &Names<'_>) -> Vec<Log> {
        let there = |collection: Collection| {
            let subject = Subject::of(&collection);
            Log { subject, collection: Some(collection) }
        };
        let mut logs: Vec<Log> = self.collections(mongo).into_iter().map(there).collect();
        let mut known: HashSet<u32> = logs.iter().map(|log| log.subject.container).collect();
        let in_scope = |subject: &Subject| {
            self.scope.has(&subject.db, Some(&subject.name))
                || names.was_within(&self.scope, subject.container)
        };
        for happening in told.iter().map(|told| &told.happening) {
            if let Some(gone) = happening.gone().filter(|gone| gone.has_log && in_scope(gone))
                && known.insert(gone.container)
            {
                logs.push(Log { subject: gone.clone(), collection: None });
            }
            if let Happening::Rename { collection, .. } = happening
                && names.was_within(&self.scope, collection.container)
                && let Some(now) = namespace::by_number(&mongo.engine, collection.container)
                && now.container.definition().log_minutes.is_some()
                && known.insert(collection.container)
            {
                logs.push(there(now));
            }
        }
        logs
    }

    /// Some events of a log after where the stream stands.
    async fn read(
        &self,
        mongo: &Mongo,
        log: &Log,
        names: &Names<'_>,
        now: Timestamp,
    ) -> Result<Queue<Option<Document>>> {
        let container = log.subject.container;
        let (lsn, seen) = self.standing.commits.get(&container).copied().unwrap_or_default();
        let mut queue = Queue { container, events: Default::default(), more: false };
        // A commit of which some events were seen is looked at again.
        let (mut after, mut skip) = (if seen > 0 { lsn.saturating_sub(1) } else { lsn }, seen);
        let mut last = 0;
        loop {
            let page = match page(mongo, log, after, now).await {
                Ok(page) => page,
                // It was dropped a moment ago; the next look finds what it has left.
                Err(EngineError::NotFound(_)) => return Ok(queue),
                Err(error) => return Err(error.into()),
            };
            if page.forgotten.is_some_and(|forgotten| self.has_missed(lsn, forgotten)) {
                return Err(too_old());
            }
            for (commit, event) in &page.events {
                // Later in a log is later, also if two nodes did not agree on the time.
                last = event.moment.max(last);
                if *commit == lsn && skip > 0 {
                    skip -= 1;
                    continue;
                }
                let is_early = self.not_before.is_some_and(|from| last < moment(from));
                let named = names.at(&log.subject, *commit);
                let document = match !is_early && self.scope.has(&named.db, Some(&named.name)) {
                    true => Some(self.change(mongo, log, &named, event, now).await?),
                    false => None,
                };
                queue.events.push_back((*commit, last, document));
            }
            // All of a large commit may have been seen.
            if !page.more || !queue.events.is_empty() {
                queue.more = page.more;
                return Ok(queue);
            }
            after = page.position;
        }
    }

    /// Whether what is gone of a log has not been told, to a stream that stands behind a commit of it.
    fn has_missed(&self, lsn: u64, forgotten: LogForgotten) -> bool {
        match self.not_before {
            Some(from) if lsn == 0 => u64::from(from.time) <= forgotten.second,
            _ => lsn < forgotten.lsn,
        }
    }

    async fn change(
        &self,
        mongo: &Mongo,
        log: &Log,
        named: &Subject,
        event: &Event,
        now: Timestamp,
    ) -> Result<Document> {
        let current = match &log.collection {
            Some(collection) if self.wishes.full_document == "updateLookup" => {
                self.lookup(mongo, collection, event, now).await?
            }
            _ => None,
        };
        event_document(named, event, current.as_deref(), &self.wishes)
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

    /// Gives an event its token, and makes it ready to be taken.
    fn line_up(&mut self, next: Next<'_, Option<Document>>) {
        match next {
            Next::Change(container, commit, moment, document) => {
                let seen = match self.standing.commits.get(&container) {
                    Some((last, seen)) if *last == commit && *seen > 0 => seen + 1,
                    _ => 1,
                };
                self.standing.commits.insert(container, (commit, seen));
                if let Some(document) = document {
                    self.latest = self.latest.max(moment);
                    let mut event = doc! { "_id": self.standing.to_token() };
                    event.extend(document);
                    event.insert("clusterTime", stamp(self.latest));
                    self.ready.push_back((to_raw(&event), self.standing.clone()));
                }
            }
            Next::Happening(told) => {
                let (number, ordinal) = told.number;
                let is_told = std::mem::take(&mut self.only_end);
                self.standing.happening = (number, u32::from(ordinal) + 1);
                let is_early = self.not_before.is_some_and(|from| told.moment < moment(from));
                if !is_early && self.shows(&told.happening) {
                    self.happens(told, is_told);
                }
            }
        }
    }

    /// Makes a happening ready, and the end of the stream if it ends it.
    fn happens(&mut self, told: &Told, is_told: bool) {
        self.latest = self.latest.max(told.moment);
        let told = &Told { moment: self.latest, ..told.clone() };
        self.ended = match &told.happening {
            Happening::Drop { .. } | Happening::Rename { .. } => matches!(self.scope, Scope::Collection(..)),
            Happening::DropDatabase { .. } => matches!(self.scope, Scope::Database(_)),
            Happening::Define(_) => false,
        };
        self.standing.end = if self.ended { End::Next } else { End::Open };
        if !is_told {
            let event = told.event(self.standing.to_token());
            self.ready.push_back((to_raw(&event), self.standing.clone()));
        }
        if self.ended {
            self.standing.end = End::Told;
            let last = told.invalidate(self.standing.to_token());
            self.ready.push_back((to_raw(&last), self.standing.clone()));
        }
    }
}

/// A page of a log.
async fn page(
    mongo: &Mongo,
    log: &Log,
    after: u64,
    now: Timestamp,
) -> std::result::Result<LogPage, EngineError> {
    match &log.collection {
        Some(collection) => {
            mongo.engine.log(&collection.container, 0, after, &HashRange::all(), EVENTS_MAX, now).await
        }
        None => mongo.engine.log_left(log.subject.container, 0, after, EVENTS_MAX).await,
    }
}
