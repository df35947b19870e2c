//! A stream as the source of a cursor: it looks at the logs in its scope and waits for more.

use std::collections::VecDeque;

use bson::{
    Document, RawArray, RawArrayBuf, RawBsonRef, RawDocument, RawDocumentBuf, Timestamp as ClusterStamp, doc,
};
use mayfly_engine::{DocumentId, Event, HashRange, Timestamp};

use super::{
    Happening,
    event::{Standing, Wishes, event_document},
};
use crate::{
    call::Call,
    cursor::{Pull, Pulled, Source},
    failure::{Failure, Result},
    filtering::Surroundings,
    namespace::{self, Collection},
    pipeline::{NoCollections, Pipeline, STAGES},
    service::{Mongo, to_raw},
};

/// What a stream watches.
#[derive(Clone, Debug)]
enum Scope {
    Collection(String, String),
    Database(String),
    Everything,
}

/// Stages that may follow `$changeStream`.
const ALLOWED: &[&str] = &[
    "$match",
    "$project",
    "$addFields",
    "$set",
    "$unset",
    "$replaceRoot",
    "$replaceWith",
    "$redact",
    "$changeStreamSplitLargeEvent",
];

/// Events taken from one collection at a time.
const EVENTS_MAX: usize = 200;

/// An event that a stream has not given yet; one from before its beginning has no document.
struct Unseen {
    time: ClusterStamp,
    container: u32,
    commit: u64,
    document: Option<Document>,
}

/// An open stream.
pub struct ChangeSource {
    scope: Scope,
    wishes: Wishes,
    standing: Standing,
    /// Events that happened before are left out.
    not_before: Option<ClusterStamp>,
    pipeline: Option<Pipeline>,
    surroundings: Surroundings,
    /// Events that were not given yet, each with where the stream stands after it.
    ready: VecDeque<(RawDocumentBuf, Standing)>,
    /// Where it stands after the last event that was given.
    given: Standing,
    /// Nothing comes after this.
    ended: bool,
}

/// Opens a stream.
pub async fn open(
    call: &Call<'_>,
    name: Option<&str>,
    options: RawBsonRef<'_>,
    stages: &RawArray,
) -> Result<ChangeSource> {
    let RawBsonRef::Document(options) = options else {
        return Err(Failure::new(50808, "$changeStream stage expects a document as argument"));
    };
    if call.in_transaction() {
        return Err(Failure::new(263, "$changeStream cannot be used in a transaction"));
    }
    let mut rest = RawArrayBuf::new();
    for stage in stages.into_iter().skip(1) {
        let stage = stage?;
        if let RawBsonRef::Document(document) = stage
            && let Some((name, _)) = document.iter().next().transpose()?
        {
            // A stage that nobody knows is refused as in any pipeline.
            let is_known = STAGES.iter().copied().flatten().any(|stage| stage.name == name.as_str());
            if is_known && !ALLOWED.contains(&name.as_str()) {
                let message = format!("{} is not permitted in a $changeStream pipeline", name.as_str());
                return Err(Failure::new(20, message));
            }
            if name.as_str() == "$changeStreamSplitLargeEvent" {
                continue;
            }
        }
        rest.push(stage);
    }
    let cluster = options.get("allChangesForCluster")?.is_some_and(|flag| flag.as_bool().unwrap_or(false));
    let scope = match name {
        Some(name) => Scope::Collection(call.db.clone(), name.to_owned()),
        None if cluster && call.db == "admin" => Scope::Everything,
        None if cluster => {
            return Err(Failure::new(
                72,
                "A $changeStream with 'allChangesForCluster:true' may only be opened on the 'admin' database",
            ));
        }
        None => Scope::Database(call.db.clone()),
    };
    if let Some(concern) = call.document("readConcern")?
        && concern.get("level")?.is_some_and(|level| level.as_str() != Some("majority"))
    {
        return Err(Failure::new(72, "$changeStream cannot run with a readConcern other than 'majority'"));
    }
    let surroundings = Surroundings::of(call)?;
    let text =
        |name: &str, default: &str| options.get_str(name).map_or_else(|_| default.to_owned(), str::to_owned);
    let wishes = Wishes {
        full_document: text("fullDocument", "default"),
        before_change: text("fullDocumentBeforeChange", "off"),
        expanded: options.get_bool("showExpandedEvents").unwrap_or(false),
    };
    if !["default", "updateLookup", "whenAvailable", "required"].contains(&wishes.full_document.as_str()) {
        let message = format!(
            "Enumeration value '{}' for field '$changeStream.fullDocument' is not a valid value.",
            wishes.full_document
        );
        return Err(Failure::bad_value(message));
    }
    let (db, watched) = match &scope {
        Scope::Collection(db, name) => (db.as_str(), Some(name.as_str())),
        Scope::Database(db) => (db.as_str(), None),
        Scope::Everything => ("", None),
    };
    call.mongo.streams.begin_log(call.mongo, db, watched, call.now).await?;
    let pipeline = if rest.is_empty() { None } else { Some(Pipeline::parse(&rest, &surroundings.names())?) };
    let mut source = ChangeSource {
        scope,
        wishes,
        standing: Standing::default(),
        not_before: None,
        pipeline,
        surroundings,
        ready: VecDeque::new(),
        given: Standing::default(),
        ended: false,
    };
    source.begin(call, options).await?;
    source.given = source.standing.clone();
    Ok(source)
}

impl ChangeSource {
    async fn begin(&mut self, call: &Call<'_>, options: &RawDocument) -> Result<()> {
        for name in ["resumeAfter", "startAfter"] {
            match options.get(name)? {
                Some(RawBsonRef::Document(token)) => {
                    self.standing = Standing::from_token(token)?;
                    if name == "resumeAfter" && self.standing.ended {
                        let message = "Attempting to resume a change stream using 'resumeAfter' is not allowed from an \
                                       invalidate notification.";
                        return Err(Failure::new(260, message));
                    }
                    self.standing.ended = false;
                    // Happenings are counted anew when the server starts.
                    if self.standing.happening > call.mongo.streams.last() {
                        self.standing.happening = 0;
                    }
                    return Ok(());
                }
                Some(_) => {
                    return Err(Failure::new(
                        14,
                        format!(
                            "BSON field '$changeStream.{name}' is the wrong type, expected type 'object'"
                        ),
                    ));
                }
                None => {}
            }
        }
        self.standing.happening = call.mongo.streams.last();
        if let Some(RawBsonRef::Timestamp(time)) = options.get("startAtOperationTime")? {
            self.not_before = Some(time);
            return Ok(());
        }
        for collection in self.collections(call.mongo) {
            let lsn = call.mongo.engine.lsn(&collection.container, 0).await?;
            self.standing.commits.insert(collection.container.id, (lsn, 0));
        }
        Ok(())
    }

    fn collections(&self, mongo: &Mongo) -> Vec<Collection> {
        let all = match &self.scope {
            Scope::Collection(db, name) => namespace::find(&mongo.engine, db, name).into_iter().collect(),
            Scope::Database(db) => namespace::list(&mongo.engine, db),
            Scope::Everything => {
                let databases = mongo.engine.databases();
                let inside =
                    databases.iter().filter(|db| !["admin", "config", "local"].contains(&db.name.as_str()));
                inside.flat_map(|db| namespace::list(&mongo.engine, &db.name)).collect::<Vec<_>>()
            }
        };
        let logged = |collection: &Collection| {
            collection.container.definition().log_minutes.is_some() && !collection.name.starts_with("system.")
        };
        all.into_iter().filter(logged).collect()
    }

    /// Looks at everything once.
    async fn look(&mut self, mongo: &Mongo, now: Timestamp) -> Result<()> {
        let mut standing = self.standing.clone();
        let mut found = Vec::new();
        for collection in self.collections(mongo) {
            let (lsn, seen) = standing.commits.get(&collection.container.id).copied().unwrap_or_default();
            // A commit of which some events were seen is looked at again.
            let after = if seen > 0 { lsn.saturating_sub(1) } else { lsn };
            let page =
                mongo.engine.log(&collection.container, 0, after, &HashRange::all(), EVENTS_MAX, now).await?;
            self.unseen(mongo, &standing, &collection, &page.events, Some(now), &mut found).await?;
        }
        self.line_up(found, &mut standing);
        self.happenings(mongo, &mut standing).await?;
        self.standing = standing;
        Ok(())
    }

    /// Adds the events that come after where the stream stands. With a time, documents are looked up as they are then.
    async fn unseen(
        &self,
        mongo: &Mongo,
        standing: &Standing,
        collection: &Collection,
        events: &[(u64, Event)],
        now: Option<Timestamp>,
        found: &mut Vec<Unseen>,
    ) -> Result<()> {
        let container = collection.container.id;
        let (lsn, seen) = standing.commits.get(&container).copied().unwrap_or_default();
        let mut skip = seen;
        for (commit, event) in events {
            if *commit < lsn || (*commit == lsn && seen == 0) {
                continue;
            }
            if *commit == lsn && skip > 0 {
                skip -= 1;
                continue;
            }
            let time = mongo.streams.time_of(container, *commit, event.ts);
            let early =
                self.not_before.is_some_and(|from| (time.time, time.increment) < (from.time, from.increment));
            let current = match now {
                Some(now) if self.wishes.full_document == "updateLookup" && !early => {
                    self.lookup(mongo, collection, event, now).await?
                }
                _ => None,
            };
            let document = match early {
                true => None,
                false => Some(event_document(collection, event, time, current.as_deref(), &self.wishes)?),
            };
            found.push(Unseen { time, container, commit: *commit, document });
        }
        Ok(())
    }

    /// Puts events into the order of their time and gives each its token.
    fn line_up(&mut self, mut found: Vec<Unseen>, standing: &mut Standing) {
        found.sort_by_key(|event| (event.time.time, event.time.increment, event.container, event.commit));
        for Unseen { container, commit, document, .. } in found {
            let seen = match standing.commits.get(&container) {
                Some((last, seen)) if *last == commit && *seen > 0 => seen + 1,
                _ => 1,
            };
            standing.commits.insert(container, (commit, seen));
            if let Some(document) = document {
                let mut event = doc! { "_id": standing.to_token() };
                event.extend(document);
                self.ready.push_back((to_raw(&event), standing.clone()));
            }
        }
    }

    async fn lookup(
        &self,
        mongo: &Mongo,
        collection: &Collection,
        event: &mayfly_engine::Event,
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

    /// Drops and renames in the stream's scope.
    async fn happenings(&mut self, mongo: &Mongo, standing: &mut Standing) -> Result<()> {
        for (number, time, happening) in mongo.streams.since(standing.happening) {
            standing.happening = number;
            if let Happening::Drop { db, name, farewell: Some(farewell) } = &happening
                && within(&self.scope, db, Some(name))
            {
                let container = farewell.collection.container.id;
                let (lsn, _) = standing.commits.get(&container).copied().unwrap_or_default();
                if lsn < farewell.after {
                    let message = "Resume of change stream was not possible, as the resume point may no longer be in \
                                   the log of a collection that was dropped.";
                    return Err(Failure::new(286, message).label("NonResumableChangeStreamError"));
                }
                let mut found = Vec::new();
                self.unseen(mongo, standing, &farewell.collection, &farewell.events, None, &mut found)
                    .await?;
                self.line_up(found, standing);
            }
            let (mut event, mut ends) = match (&happening, &self.scope) {
                (Happening::Drop { db, name, .. }, scope) if within(scope, db, Some(name)) => {
                    let event = doc! { "operationType": "drop", "ns": { "db": db, "coll": name } };
                    (event, matches!(scope, Scope::Collection(..)))
                }
                (Happening::Rename { from, to, .. }, scope)
                    if within(scope, &from.0, Some(&from.1)) || within(scope, &to.0, Some(&to.1)) =>
                {
                    let event = doc! {
                        "operationType": "rename", "ns": { "db": &from.0, "coll": &from.1 },
                        "to": { "db": &to.0, "coll": &to.1 },
                    };
                    (event, matches!(scope, Scope::Collection(..)))
                }
                (Happening::DropDatabase { db }, scope @ (Scope::Database(_) | Scope::Everything))
                    if within(scope, db, None) =>
                {
                    let event = doc! { "operationType": "dropDatabase", "ns": { "db": db } };
                    (event, matches!(scope, Scope::Database(_)))
                }
                _ => continue,
            };
            let mut whole = doc! { "_id": standing.to_token(), "clusterTime": time };
            whole.extend(std::mem::take(&mut event));
            self.ready.push_back((to_raw(&whole), standing.clone()));
            if std::mem::take(&mut ends) {
                standing.ended = true;
                let last =
                    doc! { "_id": standing.to_token(), "operationType": "invalidate", "clusterTime": time };
                self.ready.push_back((to_raw(&last), standing.clone()));
                self.ended = true;
                break;
            }
        }
        Ok(())
    }

    /// What the stages after `$changeStream` make of an event.
    fn shaped(&self, event: RawDocumentBuf) -> Result<Option<RawDocumentBuf>> {
        let Some(pipeline) = &self.pipeline else { return Ok(Some(event)) };
        let shaped = self.surroundings.with(|context| {
            let mut execution = pipeline.start(context, &NoCollections);
            execution.push(event)?;
            execution.finish()?;
            Ok::<_, crate::error::MongoError>(execution.take())
        })?;
        let Some(shaped) = shaped.into_iter().next() else { return Ok(None) };
        if shaped.get("_id")?.is_none() {
            let message = "Encountered an event whose _id field, which contains the resume token, was modified by the \
                           pipeline. Modifying the _id field of an event makes it impossible to resume the stream from \
                           that point.";
            return Err(Failure::new(280, message).label("NonResumableChangeStreamError"));
        }
        Ok(Some(shaped))
    }
}

fn within(scope: &Scope, db: &str, name: Option<&str>) -> bool {
    match scope {
        Scope::Collection(own, collection) => own == db && name == Some(collection.as_str()),
        Scope::Database(own) => own == db,
        Scope::Everything => true,
    }
}

impl Source for ChangeSource {
    fn pull<'a>(&'a mut self, mongo: &'a Mongo, now: Timestamp) -> Pull<'a> {
        Box::pin(async move {
            if self.ready.is_empty() && !self.ended {
                self.look(mongo, now).await?;
            }
            while let Some((event, standing)) = self.ready.pop_front() {
                self.given = standing;
                if let Some(event) = self.shaped(event)? {
                    return Ok(Pulled::Document(event));
                }
            }
            Ok(if self.ended { Pulled::End } else { Pulled::Nothing })
        })
    }

    fn waits(&self) -> bool {
        !self.ended || !self.ready.is_empty()
    }

    fn fields(&self) -> Document {
        // With events left to give, a client that goes on from here must get them.
        let standing = if self.ready.is_empty() { &self.standing } else { &self.given };
        doc! { "postBatchResumeToken": standing.to_token() }
    }
}
