//! Containers: their definitions, time to live among them.

use hyper::StatusCode;
use mayfly_engine::{Container, IndexingMode};

use super::{
    Answer, list,
    offers::{self, Throughput},
    resource as answer,
};
use crate::{
    address::{Address, ContainerRef, Ref},
    call::Call,
    error::ApiError,
    headers, policy,
    query::resources,
    reply::Reply,
    resource, search_policy,
};

/// `GET /dbs/{db}/colls`
pub async fn list_all(call: &Call<'_>) -> Answer {
    let database = call.database(database_name(call)?)?;
    let containers = call.engine.containers(&database);
    let rid = resource::database_rid(&database);
    list(call, &rid, "DocumentCollections", &containers, |container| resource::container(container))
}

/// `POST /dbs/{db}/colls` with a query
pub async fn query(call: &Call<'_>) -> Answer {
    let database = call.database(database_name(call)?)?;
    let containers = call.engine.containers(&database);
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
    let asked = Throughput::from_headers(call.headers)?;
    let throughput = match asked {
        None if offers::is_shared(call, database.id) => None,
        asked => Some(asked.unwrap_or_else(Throughput::default_for_containers)),
    };
    let slots = throughput.as_ref().map_or(1, Throughput::ranges);
    let container = call.engine.create_container(&database, definition, slots, call.now).await?;
    if let Some(throughput) = throughput {
        throughput.keep(call, container.id).await?;
    }
    shaped(call, StatusCode::CREATED, &container).await
}

/// `GET /dbs/{db}/colls/{coll}`
pub async fn read(call: &Call<'_>) -> Answer {
    let (_, container) = call.container(name(call)?)?;
    let etag = container.etag();
    if call.if_none_match()?.is_some_and(|condition| condition.allows(etag)) {
        return Ok(Reply::empty(StatusCode::NOT_MODIFIED).with(&hyper::header::ETAG, etag));
    }
    let mut reply = shaped(call, StatusCode::OK, &container).await?;
    if call.flag(&headers::POPULATE_QUOTA_INFO)? {
        let live = call.engine.usage(&container, call.now).await?.live;
        let kilobytes = live.bytes.div_ceil(1024);
        reply.set(
            &headers::RESOURCE_QUOTA,
            "documentSize=10240;documentsSize=10485760;documentsCount=-1;collectionSize=10485760;",
        );
        reply.set(
            &headers::RESOURCE_USAGE,
            format!(
                "documentSize=0;documentsSize={kilobytes};documentsCount={};collectionSize={kilobytes};",
                live.documents
            ),
        );
    }
    Ok(reply)
}

/// `PUT /dbs/{db}/colls/{coll}`
pub async fn replace(call: &Call<'_>) -> Answer {
    let (_, container) = call.container(name(call)?)?;
    let definition = policy::from_json(&call.json()?)?;
    search_policy::check_replacement(container.definition(), &definition)?;
    let container = call.engine.replace_container(&container, definition, call.if_match()?, call.now).await?;
    shaped(call, StatusCode::OK, &container).await
}

/// `DELETE /dbs/{db}/colls/{coll}`
pub async fn delete(call: &Call<'_>) -> Answer {
    let (_, container) = call.container(name(call)?)?;
    call.engine.delete_container(&container, call.if_match()?).await?;
    Ok(Reply::empty(StatusCode::NO_CONTENT))
}

async fn shaped(call: &Call<'_>, status: StatusCode, container: &Container) -> Answer {
    let progress = i16::from(call.engine.index_progress(container).await?);
    let lazy = container.definition().indexing.mode == IndexingMode::Lazy;
    let reply = answer(status, &resource::container(container), &container.etag().to_string());
    Ok(match lazy {
        true => reply
            .with(&headers::INDEX_TRANSFORMATION_PROGRESS, 100)
            .with(&headers::LAZY_INDEXING_PROGRESS, progress),
        false => reply.with(&headers::INDEX_TRANSFORMATION_PROGRESS, progress),
    })
}

fn database_name<'a>(call: &'a Call<'_>) -> Result<&'a Ref, ApiError> {
    match call.address {
        Address::Containers { db } => Ok(db),
        _ => Err(ApiError::internal()),
    }
}

fn name<'a>(call: &'a Call<'_>) -> Result<&'a ContainerRef, ApiError> {
    match call.address {
        Address::Container(name) => Ok(name),
        _ => Err(ApiError::internal()),
    }
}
