//! A stream as the source of a cursor: it looks at the logs in its scope and waits for more.

use std::collections::VecDeque;

use bson::{
    Document, RawArray, RawArrayBuf, RawBsonRef, RawDocument, RawDocumentBuf, Timestamp as ClusterStamp, doc,
};
use mayfly_engine::Timestamp;

use super::{
    event::{End, Standing, Wishes},
    too_old,
};
use crate::{
    auth::Role,
    call::{Call, type_name, wrong_type},
    cursor::{Pull, Pulled, Source},
    failure::{Failure, Result},
    filtering::Surroundings,
    namespace::{self, Collection},
    pipeline::{NoCollections, Pipeline, Row, STAGES},
    service::Mongo,
    stages::check_options,
};

/// What a stream watches.
#[derive(Clone, Debug)]
pub(super) enum Scope {
    Collection(String, String),
    Database(String),
    Everything,
}

impl Scope {
    /// The database and the name that are watched; no database is all of them.
    pub(super) fn watched(&self) -> (&str, Option<&str>) {
        match self {
            Self::Collection(db, name) => (db, Some(name)),
            Self::Database(db) => (db, None),
            Self::Everything => ("", None),
        }
    }

    /// Whether it has a collection, or with no name a database, in it. What the server keeps for itself is in none.
    pub(super) fn has(&self, db: &str, name: Option<&str>) -> bool {
        let is_inside = match self {
            Self::Collection(own, collection) => own == db && name == Some(collection.as_str()),
            Self::Database(own) => own == db,
            Self::Everything => !["admin", "config", "local"].contains(&db),
        };
        is_inside && !name.is_some_and(|name| name.starts_with("system."))
    }
}

/// Stages that may follow `$changeStream`.
const ALLOWED: &[&str] =
    &["$match", "$project", "$addFields", "$set", "$unset", "$replaceRoot", "$replaceWith", "$redact"];

/// What a stream can be asked for. What a cluster's own machinery asks for changes nothing here: there are no shards whose chunks
/// could move, and a collection keeps its identity.
const OPTIONS: &[&str] = &[
    "fullDocument",
    "fullDocumentBeforeChange",
    "resumeAfter",
    "startAfter",
    "startAtOperationTime",
    "allChangesForCluster",
    "showExpandedEvents",
    "showSystemEvents",
    "showMigrationEvents",
    "allowToRunOnConfigDB",
    "allowToRunOnSystemNS",
    "matchCollectionUUIDForUpdateLookup",
];

/// An open stream.
pub struct ChangeSource {
    pub(super) scope: Scope,
    pub(super) wishes: Wishes,
    pub(super) standing: Standing,
    /// Events that happened before are left out.
    pub(super) not_before: Option<ClusterStamp>,
    /// The change of the catalog up to which nothing else happened.
    pub(super) noted: u64,
    /// The latest time of an event so far: none is told with an earlier one.
    pub(super) latest: u64,
    pipeline: Option<Pipeline>,
    surroundings: Surroundings,
    /// Events that were not given yet, each with where the stream stands after it.
    pub(super) ready: VecDeque<(RawDocumentBuf, Standing)>,
    /// Where it stands after the last event that was given.
    given: Standing,
    /// Nothing comes after this.
    pub(super) ended: bool,
    /// What happened next has been told already, and not that it ended the stream.
    pub(super) only_end: bool,
}

/// Opens a stream.
pub async fn open(
    call: &Call<'_>,
    name: Option<&str>,
    options: RawBsonRef<'_>,
    stages: &RawArray,
) -> Result<ChangeSource> {
    let RawBsonRef::Document(options) = options else {
        let message = "$changeStream must take a nested object";
        return Err(Failure::new(6188500, message));
    };
    check_options("$changeStream", options, OPTIONS)?;
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
        }
        rest.push(stage);
    }
    let cluster = options.get("allChangesForCluster")?.is_some_and(|flag| flag.as_bool().unwrap_or(false));
    let scope = match name {
        Some(name) => Scope::Collection(call.db.clone(), name.to_owned()),
        None if cluster && call.db == "admin" => {
            // By a role that holds in all databases: none is called so.
            call.check_role("", Role::Read)?;
            Scope::Everything
        }
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
    let expanded = match options.get("showExpandedEvents")? {
        Some(RawBsonRef::Boolean(expanded)) => expanded,
        Some(other) => {
            let found = type_name(other);
            let message = format!("Field 'showExpandedEvents' should be a boolean value, but found: {found}");
            return Err(Failure::new(14, message));
        }
        None => false,
    };
    let wishes = Wishes {
        full_document: text("fullDocument", "default"),
        before_change: text("fullDocumentBeforeChange", "off"),
        expanded,
    };
    if !["default", "updateLookup", "whenAvailable", "required"].contains(&wishes.full_document.as_str()) {
        let message = format!(
            "Enumeration value '{}' for field '$changeStream.fullDocument' is not a valid value.",
            wishes.full_document
        );
        return Err(Failure::bad_value(message));
    }
    if !["off", "whenAvailable", "required"].contains(&wishes.before_change.as_str()) {
        let message = format!(
            "Enumeration value '{}' for field '$changeStream.fullDocumentBeforeChange' is not a valid value.",
            wishes.before_change
        );
        return Err(Failure::bad_value(message));
    }
    if matches!(options.get("showSystemEvents")?, Some(RawBsonRef::Boolean(true))) {
        return Err(Failure::new(238, "$changeStream with showSystemEvents is not supported"));
    }
    let (db, watched) = scope.watched();
    call.mongo.streams.begin_log(call.mongo, db, watched, call.now).await?;
    let pipeline = if rest.is_empty() { None } else { Some(Pipeline::parse(&rest, &surroundings.names())?) };
    let mut source = ChangeSource {
        scope,
        wishes,
        standing: Standing::default(),
        not_before: None,
        noted: 0,
        latest: 0,
        pipeline,
        surroundings,
        ready: VecDeque::new(),
        given: Standing::default(),
        ended: false,
        only_end: false,
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
                    self.standing = Standing::from_token(token, call.mongo.engine.catalog_version())?;
                    if name == "resumeAfter" && self.standing.end == End::Told {
                        let message = "Attempting to resume a change stream using 'resumeAfter' is not allowed from an \
                                       invalidate notification.";
                        return Err(Failure::new(260, message));
                    }
                    if self.standing.end == End::Next {
                        // Once more before what ends it, of which only the end is left to tell.
                        let (number, seen) = self.standing.happening;
                        let before =
                            if seen > 1 { (number, seen - 1) } else { (number.saturating_sub(1), 0) };
                        self.standing.happening = before;
                        self.only_end = true;
                    }
                    self.standing.end = End::Open;
                    return Ok(());
                }
                None | Some(RawBsonRef::Null) => {}
                Some(_) => {
                    return Err(Failure::new(
                        14,
                        format!(
                            "BSON field '$changeStream.{name}' is the wrong type, expected type 'object'"
                        ),
                    ));
                }
            }
        }
        let start = match options.get("startAtOperationTime")? {
            None | Some(RawBsonRef::Null) => None,
            Some(RawBsonRef::Timestamp(time)) => Some(time),
            Some(other) => return Err(wrong_type("$changeStream.startAtOperationTime", other, "timestamp")),
        };
        if let Some(time) = start {
            let notes = call.mongo.engine.notes(u64::MAX).await?;
            if u64::from(time.time) < notes.forgotten_at {
                return Err(too_old());
            }
            self.not_before = Some(time);
            self.standing.happening = (notes.forgotten, 0);
            return Ok(());
        }
        self.standing.happening = (call.mongo.engine.catalog_version(), 0);
        for collection in self.collections(call.mongo) {
            let lsn = call.mongo.engine.lsn(&collection.container, 0).await?;
            self.standing.commits.insert(collection.container.id, (lsn, 0));
        }
        Ok(())
    }

    pub(super) fn collections(&self, mongo: &Mongo) -> Vec<Collection> {
        let all = match &self.scope {
            Scope::Collection(db, name) => namespace::find(&mongo.engine, db, name).into_iter().collect(),
            Scope::Database(db) => namespace::list(&mongo.engine, db),
            Scope::Everything => {
                let databases = mongo.engine.databases();
                databases.iter().flat_map(|db| namespace::list(&mongo.engine, &db.name)).collect::<Vec<_>>()
            }
        };
        let logged = |collection: &Collection| {
            collection.container.definition().log_minutes.is_some()
                && self.scope.has(&collection.db, Some(&collection.name))
        };
        all.into_iter().filter(logged).collect()
    }

    /// What the stages after `$changeStream` make of an event.
    fn shaped(&self, event: RawDocumentBuf) -> Result<Option<RawDocumentBuf>> {
        let Some(pipeline) = &self.pipeline else { return Ok(Some(event)) };
        let shaped = self.surroundings.with(|context| {
            let mut execution = pipeline.start(context, &NoCollections);
            execution.push(Row::made(event))?;
            execution.finish()?;
            Ok::<_, crate::error::MongoError>(execution.take())
        })?;
        let Some(Row { document: shaped, .. }) = shaped.into_iter().next() else { return Ok(None) };
        if shaped.get("_id")?.is_none() {
            let message = "Encountered an event whose _id field, which contains the resume token, was modified by the \
                           pipeline. Modifying the _id field of an event makes it impossible to resume the stream from \
                           that point.";
            return Err(Failure::new(280, message).label("NonResumableChangeStreamError"));
        }
        Ok(Some(shaped))
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

    fn outlives_collection(&self) -> bool {
        true
    }

    fn fields(&self) -> Document {
        // With events left to give, a client that goes on from here must get them.
        let standing = if self.ready.is_empty() { &self.standing } else { &self.given };
        doc! { "postBatchResumeToken": standing.to_token() }
    }
}
