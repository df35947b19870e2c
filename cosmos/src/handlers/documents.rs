//! Items: create, upsert, read, replace, patch, delete.

use std::sync::Arc;

use hyper::{StatusCode, header::ETAG};
use mayfly_engine::{Container, Database, DocumentId, Effect, InvalidTtl, Operation, Outcome, charge, patch};
use mayfly_value::partition::PartitionKey;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use super::{Answer, item_body, patch_body};
use crate::{
    address::Address,
    call::{Call, item_id},
    error::ApiError,
    headers,
    reply::Reply,
    resource,
};

/// When an item will be gone, in seconds since the Unix epoch; on answers that show an item with a deadline.
pub static EXPIRES_AT: hyper::header::HeaderName =
    hyper::header::HeaderName::from_static("x-mayfly-expires-at");

/// The container of an item operation, and the logical partition in it.
struct Scope {
    database: Arc<Database>,
    container: Arc<Container>,
    key: PartitionKey,
    slot: u16,
}

impl Scope {
    fn of(call: &Call<'_>) -> Result<Self, ApiError> {
        let name = call.address.container().ok_or_else(ApiError::internal)?;
        let (database, container) = call.owner(name)?;
        let key = call.partition_key()?;
        let slot = container.locate(&key)?.slot();
        Ok(Self { database, container, key, slot })
    }
}

/// `POST …/docs`
pub async fn create(call: &Call<'_>) -> Answer {
    let scope = Scope::of(call)?;
    let (id, body) = item_body::parse(call.body)?;
    write(call, &scope, Operation::Create { id, body }).await
}

/// `POST …/docs` with the upsert header
pub async fn upsert(call: &Call<'_>) -> Answer {
    let scope = Scope::of(call)?;
    let (id, body) = item_body::parse(call.body)?;
    write(call, &scope, Operation::Upsert { id, body, if_match: call.if_match()? }).await
}

/// `PUT …/docs/{id}`
pub async fn replace(call: &Call<'_>) -> Answer {
    let scope = Scope::of(call)?;
    let (id, body) = item_body::parse(call.body)?;
    if id != path_id(call)? {
        return Err(ApiError::bad_request(
            "The id of the item cannot be changed: the one in the body is not the one in the path.",
        ));
    }
    write(call, &scope, Operation::Replace { id, body, if_match: call.if_match()? }).await
}

/// `PATCH …/docs/{id}`
pub async fn patch(call: &Call<'_>) -> Answer {
    let scope = Scope::of(call)?;
    let operations = patch_body::parse(call.body, &scope.container.definition().partition_key)?;
    let modify = Arc::new(move |record: &mayfly_engine::Record| patch::apply(record.body(), &operations));
    write(call, &scope, Operation::Modify { id: path_id(call)?, modify, if_match: call.if_match()? }).await
}

/// `DELETE …/docs/{id}`
pub async fn delete(call: &Call<'_>) -> Answer {
    let scope = Scope::of(call)?;
    write(call, &scope, Operation::Delete { id: path_id(call)?, if_match: call.if_match()? }).await
}

/// `GET …/docs/{id}`
pub async fn read(call: &Call<'_>) -> Answer {
    let scope = Scope::of(call)?;
    let id = path_id(call)?;
    let Some(record) = call.engine.read(&scope.container, &scope.key, &id, call.now).await? else {
        return failed(call, &scope, ApiError::item_not_found()).await;
    };
    let lsn = call.engine.lsn(&scope.container, scope.slot).await?;
    let etag = call.engine.etag(&scope.container, scope.slot, &record);
    let known = call.if_none_match()?.is_some_and(|condition| condition.allows(etag));
    let outcome = Outcome { effect: Effect::Read, charge: charge::read(record.size()), record: Some(record) };
    let status = if known { StatusCode::NOT_MODIFIED } else { StatusCode::OK };
    shaped(call, &scope, status, &outcome, lsn)
}

fn path_id(call: &Call<'_>) -> Result<DocumentId, ApiError> {
    match call.address {
        Address::Document { id, .. } => item_id(id.name()),
        _ => Err(ApiError::internal()),
    }
}

async fn write(call: &Call<'_>, scope: &Scope, operation: Operation) -> Answer {
    let written =
        call.engine.write(&scope.container, &scope.key, operation, InvalidTtl::Refuse, call.now).await;
    match written {
        Ok((outcome, lsn)) => {
            let status = match outcome.effect {
                Effect::Created => StatusCode::CREATED,
                Effect::Replaced | Effect::Read => StatusCode::OK,
                Effect::Deleted => StatusCode::NO_CONTENT,
            };
            shaped(call, scope, status, &outcome, lsn)
        }
        Err(error) => failed(call, scope, error.into()).await,
    }
}

fn shaped(call: &Call<'_>, scope: &Scope, status: StatusCode, outcome: &Outcome, lsn: u64) -> Answer {
    let mut reply = Reply::empty(status);
    if let Some(record) = &outcome.record {
        let wants_body =
            status != StatusCode::NOT_MODIFIED && (outcome.effect == Effect::Read || !call.wants_minimal());
        if wants_body {
            let mut body = Vec::with_capacity(record.size() as usize + 512);
            resource::push_document(call.engine, &scope.container, scope.slot, record, &mut body)?;
            reply = Reply::json(status, body);
        }
        reply.set(&ETAG, call.engine.etag(&scope.container, scope.slot, record));
        reply.set(&headers::ITEM_LSN, record.lsn);
        if let Some(at) = call.engine.expires_at(&scope.container, record) {
            reply.set(&EXPIRES_AT, at.seconds());
        }
    }
    reply.set(&headers::REQUEST_CHARGE, outcome.charge);
    Ok(with_session(reply, &scope.database, &scope.container, scope.slot, lsn))
}

/// An error of an item operation: SDKs want the session token on these too.
async fn failed(call: &Call<'_>, scope: &Scope, error: ApiError) -> Answer {
    if error.status >= 500 {
        return Err(error);
    }
    let lsn = call.engine.lsn(&scope.container, scope.slot).await?;
    let charge = if error.status == 404 { charge::MISS } else { charge::REFUSED };
    let reply = Reply::error(&error, call.activity_id).with(&headers::REQUEST_CHARGE, charge);
    Ok(with_session(reply, &scope.database, &scope.container, scope.slot, lsn))
}

/// What must stay plain in a header; names may be anything.
const NOT_PLAIN: &AsciiSet = &CONTROLS.add(b'%');

/// Adds where the answer came from and how far that partition has got.
pub fn with_session(reply: Reply, database: &Database, container: &Container, slot: u16, lsn: u64) -> Reply {
    let path = format!("dbs/{}/colls/{}", database.name, container.name());
    reply
        .with(&headers::SESSION_TOKEN, format!("{slot}:-1#{lsn}"))
        .with(&headers::LSN, lsn)
        .with(&headers::GLOBAL_COMMITTED_LSN, lsn)
        .with(&headers::PARTITION_KEY_RANGE_ID, slot)
        .with(&headers::CONTENT_PATH, resource::container_rid(container))
        .with(&headers::ALT_CONTENT_PATH, utf8_percent_encode(&path, NOT_PLAIN))
}
