//! `find`.

use bson::{RawBsonRef, RawDocumentBuf};

use crate::{
    call::{Call, integer},
    cursor::Cursor,
    failure::{Failure, Result},
    filter::Filter,
    filtering::Surroundings,
    namespace,
    projection::Projection,
    query::{Query, hint_name},
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
    let collection = namespace::find(&call.mongo.engine, &call.db, name);
    if let Some(collection) = &collection
        && collection.view().is_some()
    {
        return super::aggregate::find_on_view(call, collection).await;
    }
    let batch = call.count("batchSize")?.map(|size| size as usize);
    let single = call.flag("singleBatch")?;
    let query = query_of(call, name).await?;
    let keeps_open = call.flag("noCursorTimeout")?;
    let source = query.open(call.mongo).await?;
    let mut cursor = Cursor::new(format!("{}.{name}", call.db), source, call.now);
    cursor.session = call.session.as_ref().map(|session| session.id.clone());
    cursor.txn_number =
        call.session.as_ref().filter(|session| session.in_transaction).and_then(|s| s.txn_number);
    cursor.keeps_open = keeps_open;
    call.mongo.cursors.first(call.mongo, cursor, batch, single, call.now).await
}

/// The query that a `find` describes.
pub async fn query_of(call: &Call<'_>, name: &str) -> Result<Query> {
    let collection = namespace::find(&call.mongo.engine, &call.db, name);
    let surroundings = Surroundings::on(call, collection.as_ref())?;
    let names = surroundings.names();
    let filter = match call.document("filter")? {
        Some(filter) => Filter::parse(filter, &names)?,
        None => Filter::all(),
    };
    for refused in ["min", "max", "returnKey", "showRecordId"] {
        let used = match call.get(refused)? {
            Some(RawBsonRef::Document(bounds)) => !bounds.is_empty(),
            Some(RawBsonRef::Boolean(flag)) => flag,
            _ => false,
        };
        if used {
            return Err(Failure::new(238, format!("find with {refused} is not supported")));
        }
    }
    if call.flag("tailable")? {
        let capped = collection
            .as_ref()
            .is_some_and(|collection| collection.options().get_bool("capped").unwrap_or(false));
        let message = if capped {
            "tailable cursors are not supported"
        } else {
            "error processing query: tailable cursor requested on non capped collection"
        };
        return Err(Failure::new(if capped { 238 } else { 2 }, message));
    }
    if call.flag("awaitData")? {
        return Err(Failure::new(9, "Cannot set 'awaitData' without also setting 'tailable'"));
    }
    let projection = match call.document("projection")?.filter(|projection| !projection.is_empty()) {
        Some(projection) => Some(Projection::parse_find(projection, &filter, &names)?),
        None => None,
    };
    let hint = hint_name(collection.as_ref(), call.get("hint")?)?;
    let txn = call.mongo.sessions.transaction(call)?;
    let mut query = Query::new(collection, filter, surroundings, txn);
    if let Some(sort) = call.document("sort")?.filter(|sort| !sort.is_empty()) {
        match sort.get("$natural")?.and_then(integer) {
            Some(direction) => query.reverse = direction < 0,
            None => query.sort = Some(SortPattern::parse(sort)?),
        }
    }
    query.skip = call.count("skip")?.unwrap_or(0);
    query.limit = call.count("limit")?.filter(|limit| *limit > 0);
    query.projection = projection;
    query.hint = hint;
    Ok(query)
}
