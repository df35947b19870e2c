//! `find`.

use std::sync::Arc;

use bson::{RawBsonRef, RawDocumentBuf};
use mayfly_engine::Container;

use crate::{
    bounds::IndexBounds,
    call::{Call, integer},
    capped::{Tail, is_capped},
    cursor::Cursor,
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
    for refused in ["returnKey", "showRecordId"] {
        let used = match call.get(refused)? {
            Some(RawBsonRef::Document(bounds)) => !bounds.is_empty(),
            Some(RawBsonRef::Boolean(flag)) => flag,
            _ => false,
        };
        if used {
            return Err(Failure::new(238, format!("find with {refused} is not supported")));
        }
    }
    if call.flag("tailable")? && collection.as_ref().is_some_and(|collection| !is_capped(collection)) {
        let message = "error processing query: tailable cursor requested on non capped collection";
        return Err(Failure::bad_value(message));
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
    Ok(query)
}
