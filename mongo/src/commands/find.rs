//! `find`.

use std::sync::Arc;

use bson::{RawBsonRef, RawDocument, RawDocumentBuf};
use mayfly_engine::Container;

use crate::{
    bounds::IndexBounds,
    call::{Call, integer, wrong_type},
    capped::{Tail, is_capped},
    cursor::Cursor,
    disclosed::{Disclosed, Metadata},
    failure::{Failure, Result},
    filter::Filter,
    filtering::Surroundings,
    namespace,
    projection::Projection,
    query::{Query, check_scores, hint_name, is_backward},
    sort::SortPattern,
};

/// Arguments.
pub const FIELDS: &[&str] = &[
    "filter",
    "projection",
    "sort",
    "hint",
    "collation",
    "skip",
    "limit",
    "batchSize",
    "singleBatch",
    "allowDiskUse",
    "min",
    "max",
    "returnKey",
    "showRecordId",
    "tailable",
    "oplogReplay",
    "noCursorTimeout",
    "awaitData",
    "allowPartialResults",
    "let",
    "readOnce",
    "querySettings",
    "collectionUUID",
    "term",
    "includeQueryStatsMetrics",
    "$_requestResumeToken",
    "$_resumeAfter",
    "$_startAt",
];

/// Finds documents.
pub async fn run(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let name = call.collection()?;
    let collection = namespace::seen(call, &call.db, name);
    if let Some(collection) = &collection
        && collection.view().is_some()
    {
        return super::aggregate::find_on_view(call, collection).await;
    }
    let batch = call.count("batchSize")?.map(|size| size as usize);
    let single = call.flag("singleBatch")?;
    let query = query_of(call, name).await?;
    let keeps_open = call.flag("noCursorTimeout")?;
    let namespace = format!("{}.{name}", call.db);
    let mut cursor = match tailed(call, &query).await? {
        Some(container) => Cursor::new(call, namespace, Tail::new(query, container, call.flag("awaitData")?)),
        None => Cursor::new(call, namespace, query.open(call.mongo).await?),
    };
    cursor.keeps_open = keeps_open;
    cursor.is_limited = call.count("maxTimeMS")?.is_some();
    call.mongo.cursors.first(call.mongo, cursor, batch, single, call.now).await
}

/// The container whose end a tailable cursor stays at; a collection without documents has none.
async fn tailed(call: &Call<'_>, query: &Query) -> Result<Option<Arc<Container>>> {
    let Some(collection) = query.collection.as_ref().filter(|_| call.flag("tailable").unwrap_or(false))
    else {
        return Ok(None);
    };
    let live = call.mongo.engine.usage(&collection.container, call.now).await?.live;
    Ok((live.documents > 0).then(|| collection.container.clone()))
}

/// The query that a `find` describes.
pub async fn query_of(call: &Call<'_>, name: &str) -> Result<Query> {
    let collection = namespace::seen(call, &call.db, name);
    let surroundings = Surroundings::on(call, collection.as_ref())?;
    let names = surroundings.names();
    let filter = match call.document("filter")? {
        Some(filter) => Filter::parse(filter, &names)?,
        None => Filter::all(),
    };
    if call.flag("tailable")? && collection.as_ref().is_some_and(|collection| !is_capped(collection)) {
        let message = "error processing query: tailable cursor requested on non capped collection";
        return Err(Failure::bad_value(message));
    }
    if call.flag("tailable")? && call.flag("singleBatch")? {
        return Err(Failure::bad_value("cannot use tailable option with the 'singleBatch' option"));
    }
    if call.flag("awaitData")? && !call.flag("tailable")? {
        return Err(Failure::new(9, "Cannot set 'awaitData' without also setting 'tailable'"));
    }
    let projection = match call.document("projection")?.filter(|projection| !projection.is_empty()) {
        Some(projection) => Some(Projection::parse_find(projection, &filter, &names)?),
        None => None,
    };
    check_scores(&filter, [call.get("projection")?, call.get("sort")?].into_iter().flatten())?;
    let hint = hint_name(collection.as_ref(), call.get("hint")?)?;
    let bounds = IndexBounds::parse(call, collection.as_ref(), hint.as_deref())?;
    let txn = call.view()?;
    let mut query = Query::new(collection, filter, surroundings, txn);
    query.reverse = is_backward(call.get("hint")?);
    if let Some(sort) = call.document("sort")?.filter(|sort| !sort.is_empty()) {
        match sort.get("$natural")?.and_then(integer) {
            Some(direction) => query.reverse = direction < 0,
            None => query.sort = Some(SortPattern::parse(sort)?),
        }
    }
    query.skip = call.count("skip")?.unwrap_or(0);
    query.limit = call.count("limit")?.filter(|limit| *limit > 0);
    query.projection = projection;
    query.bounds = bounds;
    query.hint = hint;
    query.disclosed = disclosed(call, &query)?;
    if let Some(projection) = call.document("projection")? {
        query.asked = Metadata::asked_in(RawBsonRef::Document(projection));
        if query.asked.sort_key && query.sort.is_none() {
            return Err(Failure::bad_value("query requires sort key metadata, but it is not available"));
        }
    }
    Ok(query)
}

/// What is asked for of how documents are kept.
fn disclosed(call: &Call<'_>, query: &Query) -> Result<Option<Disclosed>> {
    let asked = |name: &str| match call.get(name)? {
        None => Ok(false),
        Some(RawBsonRef::Boolean(asked)) => Ok(asked),
        Some(other) => Err(wrong_type(&format!("find.{name}"), other, "bool")),
    };
    let (id, key) = (asked("showRecordId")?, asked("returnKey")?);
    // A container has many places where documents are made, each with numbers of its own; and no indexes that MongoDB knows.
    let is_foreign = query.collection.as_ref().is_some_and(|found| !found.container.is_collection());
    if (id || key) && is_foreign {
        let message = "find with returnKey or showRecordId is not supported on a container of the NoSQL API";
        return Err(Failure::new(238, message));
    }
    if key && query.surroundings.collation.is_some() {
        return Err(Failure::new(238, "find with returnKey and a collation is not supported"));
    }
    let tells = |shown: &RawDocument| shown.as_bytes().windows(5).any(|bytes| bytes == b"$meta");
    if key && call.document("projection")?.is_some_and(tells) {
        return Err(Failure::new(238, "find with returnKey and $meta is not supported"));
    }
    Ok(if key { Some(Disclosed::Key) } else { id.then_some(Disclosed::RecordId) })
}
