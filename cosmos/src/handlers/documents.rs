//! Items: create, upsert, read, replace, patch, delete.

use std::{cmp::Ordering, sync::Arc};

use hyper::StatusCode;
use mayfly_engine::{
    Access, Container, Direction, DocumentId, Effect, InvalidTtl, Operation, Outcome, PageLimit, Partition,
    Place, charge,
};
use mayfly_value::partition::PartitionKey;

use super::{Answer, item_body, patch_body};
use crate::{
    address::Address,
    call::{Call, item_id},
    collection,
    error::ApiError,
    headers,
    reply::Reply,
    resource, session,
};

/// When an item will be gone, in seconds since the Unix epoch; on answers that show an item with a deadline.
pub static EXPIRES_AT: hyper::header::HeaderName =
    hyper::header::HeaderName::from_static("x-mayfly-expires-at");

/// The container of an item operation, and the logical partition in it.
struct Scope {
    place: Arc<Place>,
    key: PartitionKey,
    partition: Partition,
}

impl Scope {
    /// Of an operation that writes.
    fn to_write(call: &Call<'_>) -> Result<Self, ApiError> {
        let place = owner(call)?;
        collection::refuse_writes(&place.container)?;
        Self::within(call, place)
    }

    fn of(call: &Call<'_>) -> Result<Self, ApiError> {
        Self::within(call, owner(call)?)
    }

    fn within(call: &Call<'_>, place: Arc<Place>) -> Result<Self, ApiError> {
        let key = call.partition_key()?;
        match key.0.len().cmp(&place.container.definition().partition_key.paths.len()) {
            Ordering::Less => return Err(ApiError::partition_key_short()),
            Ordering::Greater => return Err(ApiError::partition_key_shape()),
            Ordering::Equal => {}
        }
        let partition = place.container.locate(&key)?;
        Ok(Self { place, key, partition })
    }

    fn container(&self) -> &Arc<Container> {
        &self.place.container
    }

    fn slot(&self) -> u16 {
        self.partition.slot()
    }

    fn range(&self) -> u32 {
        self.container().range_of(&self.partition).id
    }
}

/// The container that items are in, and its database.
fn owner(call: &Call<'_>) -> Result<Arc<Place>, ApiError> {
    call.owner(call.address.container().ok_or_else(ApiError::internal)?)
}

/// `POST …/docs`
pub async fn create(call: &Call<'_>) -> Answer {
    let scope = Scope::to_write(call)?;
    let (id, body) = item_body::parse(call.body)?;
    write(call, &scope, Operation::Create { id, body }).await
}

/// `POST …/docs` with the upsert header
pub async fn upsert(call: &Call<'_>) -> Answer {
    let scope = Scope::to_write(call)?;
    let (id, body) = item_body::parse(call.body)?;
    write(call, &scope, Operation::Upsert { id, body, if_match: call.if_match()? }).await
}

/// `PUT …/docs/{id}`
pub async fn replace(call: &Call<'_>) -> Answer {
    let scope = Scope::to_write(call)?;
    let (new_id, body) = item_body::parse(call.body)?;
    let id = path_id(call, &scope).await?;
    let new_id = (new_id != id).then_some(new_id);
    write(call, &scope, Operation::Replace { id, new_id, body, if_match: call.if_match()? }).await
}

/// `PATCH …/docs/{id}`
pub async fn patch(call: &Call<'_>) -> Answer {
    let scope = Scope::to_write(call)?;
    let modify = patch_body::parse(call, scope.container(), scope.slot(), call.body)?;
    let id = path_id(call, &scope).await?;
    write(call, &scope, Operation::Modify { id, modify, if_match: call.if_match()? }).await
}

/// `DELETE …/docs/{id}`
pub async fn delete(call: &Call<'_>) -> Answer {
    let scope = Scope::to_write(call)?;
    let id = path_id(call, &scope).await?;
    write(call, &scope, Operation::Delete { id, if_match: call.if_match()? }).await
}

/// `GET …/docs/{id}`
pub async fn read(call: &Call<'_>) -> Answer {
    let scope = Scope::of(call)?;
    let id = path_id(call, &scope).await?;
    let (record, lsn) = call.engine.read_with_lsn(scope.container(), &scope.partition, &id, call.now).await?;
    let Some(record) = record else {
        return Ok(refused(call, &scope, &ApiError::item_not_found(), lsn));
    };
    let etag = call.engine.etag(scope.container(), scope.slot(), &record);
    let known = call.if_none_match()?.is_some_and(|condition| condition.allows(etag));
    let outcome = Outcome { effect: Effect::Read, charge: charge::read(record.size()), record: Some(record) };
    let status = if known { StatusCode::NOT_MODIFIED } else { StatusCode::OK };
    shaped(call, &scope, status, &outcome, lsn)
}

/// The id in the path, or of the document whose RID is in the path.
async fn path_id(call: &Call<'_>, scope: &Scope) -> Result<DocumentId, ApiError> {
    let Address::Document { id, .. } = call.address else { return Err(ApiError::internal()) };
    match id.rid() {
        // Boxed: few ask by RID, and the others would make and move room for its state.
        Some(rid) => Box::pin(id_by_rid(call, scope, &rid.encode())).await,
        None => item_id(id.name()),
    }
}

/// RIDs are not indexed: old clients that use them name the partition too, and that is walked.
async fn id_by_rid(call: &Call<'_>, scope: &Scope, rid: &str) -> Result<DocumentId, ApiError> {
    let access = Access::Records(call.scope(scope.container())?);
    let mut position = None;
    loop {
        let limit = PageLimit { rows: 1000, bytes: 4 << 20 };
        let page = call
            .engine
            .scan(scope.container(), &access, Direction::Forward, position, limit, call.now)
            .await?;
        for found in &page.found {
            if resource::document_rid(scope.container(), found.slot, &found.record).0 == rid {
                let id = found.record.body().get_str("id").map_err(|_| ApiError::internal())?;
                return item_id(id);
            }
        }
        match page.next {
            Some(next) => position = Some(next),
            None => return Err(ApiError::item_not_found()),
        }
    }
}

/// `POST …/operations/partitionkeydelete`
pub async fn delete_partition(call: &Call<'_>) -> Answer {
    let place = owner(call)?;
    let container = &place.container;
    collection::refuse_writes(container)?;
    if call.partition_key_if_any()?.is_none() {
        return Err(ApiError::partition_key_required());
    }
    let access = Access::Records(call.scope(container)?);
    let mut slot = 0;
    loop {
        let limit = PageLimit { rows: 100, bytes: 4 << 20 };
        let page = call.engine.scan(container, &access, Direction::Forward, None, limit, call.now).await?;
        for found in &page.found {
            slot = found.slot;
            let key = container.definition().partition_key.extract(found.record.body())?;
            let id = found.record.body().get_str("id").map_err(|_| ApiError::internal())?;
            let operation = Operation::Delete { id: item_id(id)?, if_match: None };
            match call.engine.write(container, &key, operation, InvalidTtl::Refuse, call.now).await {
                // Somebody else, or its time, was faster.
                Ok(_) | Err(mayfly_engine::Error::NotFound(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        if page.next.is_none() {
            break;
        }
    }
    let lsn = call.engine.lsn(container, slot).await?;
    let range = call.range_in_slot(container, slot)?;
    Ok(with_session(Reply::empty(StatusCode::OK), &place, range, lsn))
}

async fn write(call: &Call<'_>, scope: &Scope, operation: Operation) -> Answer {
    let written =
        call.engine.write(scope.container(), &scope.key, operation, InvalidTtl::Refuse, call.now).await;
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
    let wants_body =
        status != StatusCode::NOT_MODIFIED && (outcome.effect == Effect::Read || !call.wants_minimal());
    let mut body = Vec::new();
    if let (Some(record), true) = (&outcome.record, wants_body) {
        body.reserve(record.size() as usize + resource::ADDED_BYTES);
        resource::push_document(call.engine, scope.container(), scope.slot(), record, &mut body)?;
    }
    let mut reply = Reply::json(status, body);
    if let Some(record) = &outcome.record {
        reply.set_text(&headers::ETAG, &call.engine.etag(scope.container(), scope.slot(), record).to_text());
        reply.set_number(&[&headers::ITEM_LSN, &headers::ITEM_LOCAL_LSN], record.lsn);
        if let Some(at) = call.engine.expires_at(scope.container(), record) {
            reply.set_number(&[&EXPIRES_AT], at.seconds());
        }
    }
    reply.set_charge(outcome.charge);
    Ok(with_session(reply, &scope.place, scope.range(), lsn))
}

/// An error of an item operation: SDKs want the session token on these too.
async fn failed(call: &Call<'_>, scope: &Scope, error: ApiError) -> Answer {
    if error.status >= 500 {
        return Err(error);
    }
    let lsn = call.engine.lsn(scope.container(), scope.slot()).await?;
    Ok(refused(call, scope, &error, lsn))
}

fn refused(call: &Call<'_>, scope: &Scope, error: &ApiError, lsn: u64) -> Reply {
    let charge = if error.status == 404 { charge::MISS } else { charge::REFUSED };
    let reply = Reply::error(error, call.activity_id).charged(charge);
    with_session(reply, &scope.place, scope.range(), lsn)
}

/// Adds which partition key range the answer came from, and how far that has got.
pub fn with_session(mut reply: Reply, place: &Place, range: u32, lsn: u64) -> Reply {
    let Place { database, container } = place;
    reply.set_written(&headers::SESSION_TOKEN, |token| session::push_part(container, range, lsn, token));
    let commit =
        [&headers::LSN, &headers::LOCAL_LSN, &headers::GLOBAL_COMMITTED_LSN, &headers::QUORUM_ACKED_LSN];
    reply.set_number(&commit, lsn);
    reply.set_number(&[&headers::PARTITION_KEY_RANGE_ID], range.into());
    resource::with_container_paths(database, container, |by_rid, by_name| {
        reply.set_text(&headers::CONTENT_PATH, by_rid);
        reply.set_text(&headers::ALT_CONTENT_PATH, by_name);
    });
    reply
}
