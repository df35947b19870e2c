//! Containers: their definitions, time to live among them.

use hyper::StatusCode;
use mayfly_engine::{Container, ContainerDefinition, Error, IndexingMode, KeptKind, Place};

use super::{
    Answer, list,
    offers::{self, Throughput},
    resource as answer, statistics,
};
use crate::{
    address::{Address, ContainerRef, Ref},
    call::Call,
    collection,
    error::ApiError,
    headers, policy,
    query::resources,
    reply::Reply,
    resource,
};

/// `GET /dbs/{db}/colls`
pub async fn list_all(call: &Call<'_>) -> Answer {
    let database = call.database(database_name(call)?)?;
    let containers = call.containers(&database);
    let rid = resource::database_rid(&database);
    list(call, &rid, "DocumentCollections", &containers, |container| resource::container(container))
}

/// `POST /dbs/{db}/colls` with a query
pub async fn query(call: &Call<'_>) -> Answer {
    let database = call.database(database_name(call)?)?;
    let containers = call.containers(&database);
    let all: Vec<_> = containers.iter().map(|container| resource::container(container)).collect();
    resources::query(call, &resource::database_rid(&database), "DocumentCollections", &all)
}

/// `POST /dbs/{db}/colls`
pub async fn create(call: &Call<'_>) -> Answer {
    let database = call.database(database_name(call)?).map_err(|error| match error.status {
        404 => ApiError::owner_not_found(),
        _ => error,
    })?;
    let definition = policy::from_json(&call.json()?)?;
    check_encryption(call, &definition, database.id)?;
    let asked = Throughput::from_headers(&call.headers)?;
    let throughput = match asked {
        None if offers::is_shared(call, database.id) => None,
        asked => Some(asked.unwrap_or_else(Throughput::default_for_containers)),
    };
    let slots = throughput.as_ref().map_or(1, Throughput::first_ranges);
    let (engine, now) = (call.engine.clone(), call.now);
    // Both, also if the client leaves between the two.
    let container = call.engine.to_completion(async move {
        let container = engine.create_container(&database, definition, slots, now).await?;
        if let Some(throughput) = throughput {
            throughput.keep(&engine, container.id, now).await?;
        }
        Ok::<_, Error>(container)
    });
    let container = container.await?;
    shaped(call, StatusCode::CREATED, &container).await
}

/// `GET /dbs/{db}/colls/{coll}`
pub async fn read(call: &Call<'_>) -> Answer {
    let place = call.container(name(call)?)?;
    let container = &place.container;
    let etag = container.etag();
    if call.if_none_match()?.is_some_and(|condition| condition.allows(etag)) {
        return Ok(Reply::empty(StatusCode::NOT_MODIFIED).with(&headers::ETAG, etag));
    }
    let mut value = resource::container(container);
    if call.flag(&headers::POPULATE_PARTITION_STATISTICS)? {
        value["statistics"] = statistics::of_ranges(call, container).await?;
    }
    let mut reply = with_progress(call, answer(StatusCode::OK, &value, &etag.to_string()), container).await?;
    if call.flag(&headers::POPULATE_QUOTA_INFO)? {
        statistics::add_usage(call, container, &mut reply).await?;
    }
    Ok(reply)
}

/// `PUT /dbs/{db}/colls/{coll}`
pub async fn replace(call: &Call<'_>) -> Answer {
    let place = call.container(name(call)?)?;
    let Place { database, container } = &*place;
    let body = call.json()?;
    let definition = if container.is_collection() {
        collection::redefined(container, &body)?
    } else {
        let mut definition = policy::from_json(&body)?;
        policy::fixed::keep(container.definition(), &mut definition, &body);
        policy::fixed::check(container.definition(), &definition)?;
        definition
    };
    check_encryption(call, &definition, database.id)?;
    let container = call.engine.replace_container(container, definition, call.if_match()?, call.now).await?;
    shaped(call, StatusCode::OK, &container).await
}

/// `DELETE /dbs/{db}/colls/{coll}`
pub async fn delete(call: &Call<'_>) -> Answer {
    let place = call.container(name(call)?)?;
    let container = &place.container;
    call.engine.delete_container(container, call.if_match()?).await?;
    Ok(Reply::empty(StatusCode::NO_CONTENT))
}

fn check_encryption(
    call: &Call<'_>,
    definition: &ContainerDefinition,
    database: u32,
) -> Result<(), ApiError> {
    policy::encryption::check(definition, |key| {
        call.engine.kept_named(KeptKind::ClientEncryptionKey, database, key).is_ok()
    })
}

async fn shaped(call: &Call<'_>, status: StatusCode, container: &Container) -> Answer {
    let reply = answer(status, &resource::container(container), &container.etag().to_string());
    with_progress(call, reply, container).await
}

/// Adds how far the index is, and whose the container is: the Java SDK makes its links from the owner's path.
async fn with_progress(call: &Call<'_>, reply: Reply, container: &Container) -> Answer {
    let progress = i16::from(call.engine.index_progress(container).await?);
    let lazy = container.definition().indexing.mode == IndexingMode::Lazy;
    let database = call.engine.database_by_id(container.database)?;
    let path = format!("dbs/{}", database.name);
    let reply = match lazy {
        true => reply
            .with(&headers::INDEX_TRANSFORMATION_PROGRESS, 100)
            .with(&headers::LAZY_INDEXING_PROGRESS, progress),
        false => reply.with(&headers::INDEX_TRANSFORMATION_PROGRESS, progress),
    };
    Ok(reply
        .with(&headers::CONTENT_PATH, resource::database_rid(&database))
        .with(&headers::ALT_CONTENT_PATH, resource::header_path(&path)))
}

fn database_name<'a>(call: &'a Call<'_>) -> Result<&'a Ref<'a>, ApiError> {
    match call.address {
        Address::Containers { db } => Ok(db),
        _ => Err(ApiError::internal()),
    }
}

fn name<'a>(call: &'a Call<'_>) -> Result<&'a ContainerRef<'a>, ApiError> {
    match call.address {
        Address::Container(name) => Ok(name),
        _ => Err(ApiError::internal()),
    }
}
