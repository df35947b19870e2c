//! Stages that make documents out of what the server knows: statistics, indexes, sessions.

use std::collections::VecDeque;

use bson::{Bson, DateTime, Document, RawArray, RawBsonRef, doc};
use mayfly_engine::Timestamp;

use crate::{
    call::{Call, integer},
    commands::collection_stats,
    failure::{Failure, Result},
    indexes,
    namespace::Collection,
    pipeline::Row,
    service::to_raw,
    session::lsid_document,
};

/// The first stage of a pipeline: its name and what it says.
pub fn first(stages: &RawArray) -> Result<Option<(&str, RawBsonRef<'_>)>> {
    at(stages, 0)
}

/// The stage at a place of a pipeline.
pub fn at(stages: &RawArray, place: usize) -> Result<Option<(&str, RawBsonRef<'_>)>> {
    let Some(stage) = stages.into_iter().nth(place).transpose()? else { return Ok(None) };
    let RawBsonRef::Document(stage) = stage else { return Ok(None) };
    Ok(stage.iter().next().transpose()?.map(|(name, value)| (name.as_str(), value)))
}

/// The documents that a first stage makes, if it is one that makes any.
pub async fn make(
    call: &Call<'_>,
    collection: Option<&Collection>,
    stages: &RawArray,
) -> Result<Option<VecDeque<Row>>> {
    let Some((name, options)) = first(stages)? else { return Ok(None) };
    let documents = match name {
        "$collStats" => vec![coll_stats(call, collection, options).await?],
        "$indexStats" => index_stats(call, collection),
        "$currentOp" => vec![doc! {
            "type": "op", "host": call.connection.local.to_string(), "desc": format!("conn{}", call.connection.id),
            "connectionId": call.connection.id, "client": call.connection.peer.to_string(), "active": true,
            "currentOpTime": DateTime::from_millis(call.now.0 as i64).try_to_rfc3339_string().unwrap_or_default(),
            "opid": call.connection.id, "op": "command", "ns": "admin.$cmd.aggregate", "command": { "aggregate": 1 },
        }],
        "$listLocalSessions" | "$listSessions" => {
            let session = |(id, used): (Vec<u8>, Timestamp)| {
                let mut document = doc! { "_id": lsid_document(&id) };
                document.insert("lastUse", DateTime::from_millis(used.0 as i64));
                document
            };
            call.mongo.sessions.list().into_iter().map(session).collect()
        }
        "$planCacheStats" => Vec::new(),
        _ => return Ok(None),
    };
    Ok(Some(documents.iter().map(|document| Row::made(to_raw(document))).collect()))
}

async fn coll_stats(
    call: &Call<'_>,
    collection: Option<&Collection>,
    options: RawBsonRef<'_>,
) -> Result<Document> {
    let RawBsonRef::Document(options) = options else {
        return Err(Failure::new(5447000, "$collStats must take a nested object"));
    };
    let name = call.collection().unwrap_or_default();
    let Some(collection) = collection else {
        return Err(Failure::new(26, format!("Collection [{}.{name}] not found.", call.db)));
    };
    let mut answer = doc! {
        "ns": collection.namespace(),
        "host": call.connection.local.to_string(),
        "localTime": DateTime::from_millis(call.now.0 as i64),
    };
    if let Some(storage) = options.get("storageStats")? {
        let scale = match storage {
            RawBsonRef::Document(storage) => storage.get("scale")?.and_then(integer).unwrap_or(1),
            _ => 1,
        };
        answer.insert("storageStats", collection_stats(call, collection, scale.max(1)).await?);
    }
    if options.get("count")?.is_some() {
        let live = call.mongo.engine.usage(&collection.container, call.now).await?.live;
        answer.insert("count", live.documents as i64);
    }
    if options.get("latencyStats")?.is_some() {
        let none = doc! { "latency": 0_i64, "ops": 0_i64 };
        let all = doc! { "reads": none.clone(), "writes": none.clone(), "commands": none.clone(), "transactions": none };
        answer.insert("latencyStats", all);
    }
    if options.get("queryExecStats")?.is_some() {
        answer.insert("queryExecStats", doc! { "collectionScans": { "total": 0_i64, "nonTailable": 0_i64 } });
    }
    Ok(answer)
}

fn index_stats(call: &Call<'_>, collection: Option<&Collection>) -> Vec<Document> {
    let Some(collection) = collection else { return Vec::new() };
    let accesses = doc! { "ops": 0_i64, "since": DateTime::from_millis(call.now.0 as i64) };
    let stats = |spec: &Document| {
        doc! {
            "name": spec.get("name").cloned().unwrap_or(Bson::Null),
            "key": spec.get("key").cloned().unwrap_or(Bson::Null),
            "host": call.connection.local.to_string(),
            "accesses": accesses.clone(),
            "spec": spec.clone(),
        }
    };
    indexes::shown(collection).iter().map(stats).collect()
}
