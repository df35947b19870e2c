//! Several operations in one request: transactional batches, and bulk.
//!
//! A batch is one logical partition, all or nothing: the operation that failed answers with its own status and every
//! other one with 424. Bulk is a list of independent operations, each with its own partition key.

use std::sync::Arc;

use bytes::Bytes;
use hyper::StatusCode;
use mayfly_engine::{Container, Effect, IfMatch, InvalidTtl, Operation, Outcome, Partition, charge};
use mayfly_value::partition::PartitionKey;
use serde::Deserialize;
use serde_json::{json, value::RawValue};

use super::{Answer, documents::with_session, item_body, patch_body};
use crate::{
    call::{Call, item_id},
    collection,
    error::ApiError,
    headers,
    hybrid_row::{self, BatchOperation, BatchResult},
    reply::Reply,
    resource,
};

const OPERATIONS_MAX: usize = 100;
const FAILED_DEPENDENCY: u16 = 424;

/// One operation of a batch, whichever form it came in.
struct Step {
    operation_type: String,
    id: Option<String>,
    resource_body: Option<Bytes>,
    partition_key: Option<String>,
    if_match: Option<String>,
    if_none_match: Option<String>,
    minimal_return: bool,
}

/// One operation as most SDKs write it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct JsonStep<'a> {
    operation_type: String,
    id: Option<String>,
    #[serde(borrow)]
    resource_body: Option<&'a RawValue>,
    partition_key: Option<String>,
    if_match: Option<String>,
    if_none_match: Option<String>,
    #[serde(default)]
    minimal_return_preference: bool,
}

impl From<JsonStep<'_>> for Step {
    fn from(step: JsonStep<'_>) -> Self {
        Self {
            operation_type: step.operation_type,
            id: step.id,
            resource_body: step.resource_body.map(|body| Bytes::copy_from_slice(body.get().as_bytes())),
            partition_key: step.partition_key,
            if_match: step.if_match,
            if_none_match: step.if_none_match,
            minimal_return: step.minimal_return_preference,
        }
    }
}

impl From<BatchOperation> for Step {
    fn from(operation: BatchOperation) -> Self {
        Self {
            operation_type: operation.operation_type.name().to_owned(),
            id: operation.id,
            resource_body: operation.resource_body,
            partition_key: operation.partition_key,
            if_match: operation.if_match,
            if_none_match: operation.if_none_match,
            minimal_return: operation.minimal_return,
        }
    }
}

/// `POST …/docs` with the batch header
pub async fn run(call: &Call<'_>) -> Answer {
    let name = call.address.container().ok_or_else(ApiError::internal)?;
    let place = call.owner(name)?;
    let container = &place.container;
    collection::refuse_writes(container)?;
    let rows = hybrid_row::is_hybrid_row(call.body);
    let steps = parse(call.body, rows)?;
    if steps.is_empty() {
        return Err(ApiError::batch_empty());
    }
    if steps.len() > OPERATIONS_MAX {
        return Err(ApiError::batch_too_many());
    }
    let atomic = match call.text(&headers::BATCH_ATOMIC)? {
        None => call.partition_key_if_any()?.is_some(),
        Some(_) => call.flag(&headers::BATCH_ATOMIC)?,
    };
    let done = match atomic {
        true => atomic_batch(call, container, &steps).await?,
        false => bulk(call, container, &steps).await?,
    };
    let slot = done.partition.as_ref().map_or(0, Partition::slot);
    let lsn = call.engine.lsn(container, slot).await?;
    let range = match &done.partition {
        Some(partition) => container.range_of(partition).id,
        None => call.range_in_slot(container, slot)?,
    };
    let status = if done.failed { StatusCode::MULTI_STATUS } else { StatusCode::OK };
    let total: f64 = done.results.iter().map(|result| result.request_charge).sum();
    let count = done.results.len();
    let reply = match rows {
        true => Reply::bytes(status, "application/octet-stream", hybrid_row::encode_results(&done.results)),
        false => Reply::json(status, to_json(&done.results)),
    };
    let reply = reply.charged((total * 100.0).round() / 100.0).with(&headers::ITEM_COUNT, count);
    Ok(with_session(reply, &place, range, lsn))
}

/// The operations of a body: JSON, or the rows that .NET sends.
fn parse(body: &Bytes, rows: bool) -> Result<Vec<Step>, ApiError> {
    if rows {
        return Ok(hybrid_row::parse_operations(body)?.into_iter().map(Step::from).collect());
    }
    let steps: Vec<JsonStep<'_>> = serde_json::from_slice(body)
        .map_err(|error| ApiError::bad_request(format!("The batch is invalid: {error}.")))?;
    Ok(steps.into_iter().map(Step::from).collect())
}

struct Done {
    results: Vec<BatchResult>,
    /// The logical partition of the last operation, if one has been found.
    partition: Option<Partition>,
    failed: bool,
}

/// The results as the JSON array that most SDKs read.
fn to_json(results: &[BatchResult]) -> Vec<u8> {
    let mut out = vec![b'['];
    for (n, result) in results.iter().enumerate() {
        if n > 0 {
            out.push(b',');
        }
        let head = format!(
            "{{\"statusCode\":{},\"subStatusCode\":{},\"requestCharge\":{}",
            result.status, result.substatus, result.request_charge
        );
        out.extend_from_slice(head.as_bytes());
        if let Some(etag) = &result.etag {
            out.extend_from_slice(format!(",\"eTag\":{}", json!(etag)).as_bytes());
        }
        if let Some(body) = &result.resource_body {
            out.extend_from_slice(b",\"resourceBody\":");
            out.extend_from_slice(body);
        }
        out.push(b'}');
    }
    out.push(b']');
    out
}

async fn atomic_batch(call: &Call<'_>, container: &Arc<Container>, steps: &[Step]) -> Result<Done, ApiError> {
    let key = call.partition_key()?;
    if !container.definition().partition_key.is_full_key(&key) {
        return Err(ApiError::partition_key_shape());
    }
    let partition = container.locate(&key)?;
    let slot = partition.slot();
    let mut operations = Vec::with_capacity(steps.len());
    for (number, step) in steps.iter().enumerate() {
        if step
            .partition_key
            .as_deref()
            .is_some_and(|own| PartitionKey::parse_header(own).ok().as_ref() != Some(&key))
        {
            return Err(ApiError::batch_partition_keys());
        }
        match operation(call, container, slot, step) {
            Ok(operation) => operations.push(operation),
            Err(error) => return Ok(refused(steps.len(), number, &error, partition)),
        }
    }
    match call.engine.transact(container, &key, &operations, InvalidTtl::Refuse, call.now).await {
        Ok(done) => {
            let results = steps.iter().zip(&done.outcomes);
            let results = results.map(|(step, outcome)| succeeded(call, container, slot, step, outcome));
            let results = results.collect::<Result<_, _>>()?;
            Ok(Done { results, partition: Some(partition), failed: false })
        }
        Err(refusal) => {
            let error = ApiError::from(refusal.error);
            if error.status >= 500 {
                return Err(error);
            }
            Ok(refused(steps.len(), refusal.operation, &error, partition))
        }
    }
}

fn refused(count: usize, number: usize, error: &ApiError, partition: Partition) -> Done {
    let results = (0..count).map(|n| match n == number {
        true => failed(error),
        false => BatchResult { status: FAILED_DEPENDENCY, ..BatchResult::default() },
    });
    Done { results: results.collect(), partition: Some(partition), failed: true }
}

async fn bulk(call: &Call<'_>, container: &Arc<Container>, steps: &[Step]) -> Result<Done, ApiError> {
    call.scope(container)?;
    let shared = call.partition_key_if_any()?;
    let mut done = Done { results: Vec::with_capacity(steps.len()), partition: None, failed: false };
    for step in steps {
        let result = bulk_step(call, container, shared.as_ref(), step, &mut done.partition).await;
        done.results.push(match result {
            Ok(result) => result,
            Err(error) if error.status >= 500 => return Err(error),
            Err(error) => {
                done.failed = true;
                failed(&error)
            }
        });
    }
    Ok(done)
}

async fn bulk_step(
    call: &Call<'_>,
    container: &Arc<Container>,
    shared: Option<&PartitionKey>,
    step: &Step,
    at: &mut Option<Partition>,
) -> Result<BatchResult, ApiError> {
    let own = step.partition_key.as_deref().map(PartitionKey::parse_header).transpose();
    let own = own.map_err(|_| ApiError::partition_key_shape())?;
    let key = own.as_ref().or(shared).ok_or_else(ApiError::partition_key_required)?;
    call.check_grant_key(key)?;
    let slot = at.insert(container.locate(key)?).slot();
    let operation = operation(call, container, slot, step)?;
    let (outcome, _) = call.engine.write(container, key, operation, InvalidTtl::Refuse, call.now).await?;
    succeeded(call, container, slot, step, &outcome)
}

fn operation(
    call: &Call<'_>,
    container: &Arc<Container>,
    slot: u16,
    step: &Step,
) -> Result<Operation, ApiError> {
    let if_match = step.if_match.as_deref().map(IfMatch::parse);
    let id = || step.id.as_deref().map_or(Err(ApiError::missing_properties(&["id"])), item_id);
    let body = || {
        let text =
            step.resource_body.as_ref().ok_or_else(|| ApiError::missing_properties(&["resourceBody"]))?;
        Ok::<_, ApiError>(&text[..])
    };
    Ok(match step.operation_type.to_ascii_lowercase().as_str() {
        "create" => {
            let (id, body) = item_body::parse(body()?)?;
            Operation::Create { id, body }
        }
        "upsert" => {
            let (id, body) = item_body::parse(body()?)?;
            Operation::Upsert { id, body, if_match }
        }
        "replace" => {
            let (new_id, body) = item_body::parse(body()?)?;
            let id = id()?;
            let new_id = (new_id != id).then_some(new_id);
            Operation::Replace { id, new_id, body, if_match }
        }
        "patch" => {
            let modify = patch_body::parse(call, container, slot, body()?)?;
            Operation::Modify { id: id()?, modify, if_match }
        }
        "delete" => Operation::Delete { id: id()?, if_match },
        "read" => Operation::Read { id: id()? },
        other => return Err(ApiError::bad_request(format!("There is no batch operation '{other}'."))),
    })
}

fn succeeded(
    call: &Call<'_>,
    container: &Container,
    slot: u16,
    step: &Step,
    outcome: &Outcome,
) -> Result<BatchResult, ApiError> {
    let etag = outcome.record.as_ref().map(|record| call.engine.etag(container, slot, record));
    let known = step.if_none_match.as_deref().map(IfMatch::parse);
    let unchanged = outcome.effect == Effect::Read
        && known.zip(etag).is_some_and(|(condition, etag)| condition.allows(etag));
    let status = match outcome.effect {
        Effect::Read if unchanged => StatusCode::NOT_MODIFIED,
        Effect::Created => StatusCode::CREATED,
        Effect::Replaced | Effect::Read => StatusCode::OK,
        Effect::Deleted => StatusCode::NO_CONTENT,
    };
    let mut resource_body = None;
    if let Some(record) = &outcome.record
        && !unchanged
        && (outcome.effect == Effect::Read || !(step.minimal_return || call.wants_minimal()))
    {
        let mut body = Vec::with_capacity(record.size() as usize + 512);
        resource::push_document(call.engine, container, slot, record, &mut body)?;
        resource_body = Some(Bytes::from(body));
    }
    Ok(BatchResult {
        status: status.as_u16(),
        etag: etag.map(|etag| etag.to_string()),
        resource_body,
        request_charge: outcome.charge,
        ..BatchResult::default()
    })
}

fn failed(error: &ApiError) -> BatchResult {
    BatchResult {
        status: error.status,
        substatus: error.substatus,
        request_charge: if error.status == 404 { charge::MISS } else { charge::REFUSED },
        ..BatchResult::default()
    }
}
