//! Stages that make documents out of what the server knows: statistics, indexes, sessions.

use std::collections::VecDeque;

use bson::{Bson, DateTime, Document, RawArray, RawBsonRef, RawDocument, doc};
use mayfly_engine::Timestamp;

use crate::{
    auth::Right,
    call::{Call, integer, type_name, wrong_type},
    commands::{collection_stats, is_of, user_in},
    connection::Who,
    cursor::Owner,
    failure::{Failure, Result},
    indexes,
    namespace::Collection,
    operations,
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

/// The options of a stage, refused if there is one that it does not have.
pub fn check_options(stage: &str, options: &RawDocument, known: &[&str]) -> Result<()> {
    for option in options {
        let (name, _) = option?;
        if !known.contains(&name.as_str()) {
            let message = format!("BSON field '{stage}.{}' is an unknown field.", name.as_str());
            return Err(Failure::new(40415, message));
        }
    }
    Ok(())
}

/// What `$currentOp` can be asked for.
const CURRENT_OP: &[&str] = &[
    "allUsers",
    "idleConnections",
    "idleCursors",
    "idleSessions",
    "localOps",
    "truncateOps",
    "targetAllNodes",
];

fn current_op(call: &Call<'_>, options: RawBsonRef<'_>) -> Result<Vec<Document>> {
    let RawBsonRef::Document(options) = options else {
        let message =
            format!("$currentOp options must be specified in an object, but found: {}", type_name(options));
        return Err(Failure::new(14, message));
    };
    check_options("$currentOp", options, CURRENT_OP)?;
    for option in options {
        let (name, value) = option?;
        match value {
            RawBsonRef::Boolean(true) if name.as_str() == "targetAllNodes" => {
                let message = "$currentOp supports targetAllNodes parameter only for sharded clusters";
                return Err(Failure::new(9, message));
            }
            RawBsonRef::Boolean(_) => {}
            other => {
                let message = format!(
                    "The '{}' parameter of the $currentOp stage must be a boolean value, but found: {}",
                    name.as_str(),
                    type_name(other)
                );
                return Err(Failure::new(14, message));
            }
        }
    }
    let is_set = |name| matches!(options.get(name), Ok(Some(RawBsonRef::Boolean(true))));
    running(call, is_set("allUsers"), is_set("idleCursors"))
}

/// What runs now, of everybody or of whoever asks, and the cursors that wait to be asked for more.
pub fn running(call: &Call<'_>, of_all: bool, idle_cursors: bool) -> Result<Vec<Document>> {
    if of_all {
        call.check_right(Right::Watch)?;
    }
    let is_own = !of_all && call.asks_who();
    let who = call.connection.who();
    let mut shown = call.mongo.operations.shown(is_own.then_some(&*who), call.now);
    if idle_cursors {
        let owner = is_own.then(|| Owner::of(call));
        for (namespace, session, cursor) in call.mongo.cursors.idle(owner.as_ref()) {
            shown.push(operations::idle_cursor(call, &namespace, session.as_deref(), cursor));
        }
    }
    Ok(shown)
}

fn sessions(call: &Call<'_>, name: &str, options: RawBsonRef<'_>) -> Result<Vec<Document>> {
    let RawBsonRef::Document(options) = options else {
        let message =
            format!("{name} options must be specified in an object, but found: {}", type_name(options));
        return Err(Failure::new(14, message));
    };
    check_options(name, options, &["allUsers", "users", "$_internalPredicate"])?;
    let of_all = match options.get("allUsers")? {
        None => false,
        Some(RawBsonRef::Boolean(of_all)) => of_all,
        Some(other) => return Err(wrong_type(&format!("{name}.allUsers"), other, "bool")),
    };
    let mut users = Vec::new();
    match options.get("users")? {
        None => {}
        Some(RawBsonRef::Array(list)) => {
            for user in list {
                let user = user?;
                let user =
                    user.as_document().ok_or_else(|| wrong_type(&format!("{name}.users"), user, "object"))?;
                users.push(user_in(user, &format!("{name}.users"))?);
            }
        }
        Some(other) => return Err(wrong_type(&format!("{name}.users"), other, "array")),
    }
    if of_all || !users.is_empty() {
        call.check_right(Right::Watch)?;
    }
    let own = call.connection.who();
    let is_asked = |who: &Who| match users.is_empty() {
        true => of_all || !call.asks_who() || own.is_one_of(who),
        false => is_of(who, &users),
    };
    let session = |(id, used): (Vec<u8>, Timestamp)| {
        let mut document = doc! { "_id": lsid_document(&id) };
        document.insert("lastUse", DateTime::from_millis(used.0 as i64));
        document
    };
    Ok(call.mongo.sessions.list(is_asked).into_iter().map(session).collect())
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
        "$indexStats" => {
            if !options.as_document().is_some_and(RawDocument::is_empty) {
                let message = "The $indexStats stage specification must be an empty object";
                return Err(Failure::new(28803, message));
            }
            index_stats(call, collection)
        }
        "$currentOp" => current_op(call, options)?,
        "$listLocalSessions" | "$listSessions" => sessions(call, name, options)?,
        "$planCacheStats" => {
            if let RawBsonRef::Document(options) = options
                && let Some((other, _)) = options.iter().next().transpose()?
                && other.as_str() != "allHosts"
            {
                let message = format!(
                    "$planCacheStats parameters object may contain only 'allHosts' field. Found: {}",
                    other.as_str()
                );
                return Err(Failure::new(9, message));
            }
            Vec::new()
        }
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
    check_options("$collStats", options, &["storageStats", "count", "latencyStats", "queryExecStats"])?;
    for option in options {
        let (name, value) = option?;
        let RawBsonRef::Document(value) = value else {
            return Err(wrong_type(&format!("$collStats.{}", name.as_str()), value, "object"));
        };
        match name.as_str() {
            "latencyStats" => check_options("$collStats.latencyStats", value, &["histograms"])?,
            "count" | "queryExecStats" if !value.is_empty() => {
                return Err(Failure::new(31170, "expected an empty object"));
            }
            _ => {}
        }
    }
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
        if scale < 1 {
            let message = format!("BSON field 'scale' value must be >= 1, actual value '{scale}'");
            return Err(Failure::bad_value(message));
        }
        answer.insert("storageStats", collection_stats(call, collection, scale).await?);
    }
    if options.get("count")?.is_some() {
        let live = call.mongo.engine.usage(&collection.container, call.now).await?.live;
        answer.insert("count", live.documents as i64);
    }
    if options.get("latencyStats")?.is_some() {
        answer.insert("latencyStats", call.mongo.operations.usage.latencies(&collection.namespace()));
    }
    if options.get("queryExecStats")?.is_some() {
        answer.insert("queryExecStats", doc! { "collectionScans": { "total": 0_i64, "nonTailable": 0_i64 } });
    }
    Ok(answer)
}

fn index_stats(call: &Call<'_>, collection: Option<&Collection>) -> Vec<Document> {
    let Some(collection) = collection else { return Vec::new() };
    let uptime = call.mongo.uptime.elapsed().as_millis() as i64;
    let since = DateTime::from_millis(call.now.0 as i64 - uptime);
    let (usage, container) = (&call.mongo.operations.usage, collection.container.id);
    let looks = |spec: &Document| usage.looks(container, spec.get_str("name").unwrap_or_default()) as i64;
    let stats = |spec: &Document| {
        doc! {
            "name": spec.get("name").cloned().unwrap_or(Bson::Null),
            "key": spec.get("key").cloned().unwrap_or(Bson::Null),
            "host": call.connection.local.to_string(),
            "accesses": { "ops": looks(spec), "since": since },
            "spec": spec.clone(),
        }
    };
    indexes::shown(collection).iter().map(stats).collect()
}
