//! Databases.

use hyper::StatusCode;
use mayfly_engine::Error;
use serde_json::Value;

use super::{Answer, list, offers::Throughput, resource as answer};
use crate::{
    address::{Address, Ref},
    call::Call,
    error::ApiError,
    headers,
    query::resources,
    reply::Reply,
    resource,
};

/// `GET /dbs`
pub async fn list_all(call: &Call<'_>) -> Answer {
    list(call, "", "Databases", &call.engine.databases(), |database| resource::database(database))
}

/// `POST /dbs` with a query
pub async fn query(call: &Call<'_>) -> Answer {
    let all: Vec<_> = call.engine.databases().iter().map(|database| resource::database(database)).collect();
    resources::query(call, "", "Databases", &all)
}

/// `POST /dbs`
pub async fn create(call: &Call<'_>) -> Answer {
    let body = call.json()?;
    let name = match body.get("id") {
        Some(Value::String(name)) => name,
        Some(_) => return Err(ApiError::invalid_input()),
        None => return Err(ApiError::missing_properties(&["id"])),
    };
    let throughput = Throughput::from_headers(&call.headers)?;
    let (engine, name, now) = (call.engine.clone(), name.clone(), call.now);
    // Both, also if the client leaves between the two.
    let database = call.engine.to_completion(async move {
        let database = engine.create_database(&name, now).await?;
        if let Some(throughput) = throughput {
            throughput.keep(&engine, database.id, now).await?;
        }
        Ok::<_, Error>(database)
    });
    let database = database.await?;
    Ok(answer(StatusCode::CREATED, &resource::database(&database), &database.etag().to_string()))
}

/// `GET /dbs/{db}`
pub async fn read(call: &Call<'_>) -> Answer {
    let database = call.database(name(call)?)?;
    let etag = database.etag();
    if call.if_none_match()?.is_some_and(|condition| condition.allows(etag)) {
        return Ok(Reply::empty(StatusCode::NOT_MODIFIED).with(&headers::ETAG, etag));
    }
    Ok(answer(StatusCode::OK, &resource::database(&database), &etag.to_string()))
}

/// `DELETE /dbs/{db}`
pub async fn delete(call: &Call<'_>) -> Answer {
    let database = call.database(name(call)?)?;
    call.engine.delete_database(&database.name, call.if_match()?).await?;
    Ok(Reply::empty(StatusCode::NO_CONTENT))
}

fn name<'a>(call: &'a Call<'_>) -> Result<&'a Ref<'a>, ApiError> {
    match call.address {
        Address::Database { db } => Ok(db),
        _ => Err(ApiError::internal()),
    }
}
