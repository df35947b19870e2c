//! The change feed: what changed in a scope since a position.
//!
//! The position is the `etag` of the answer; a client sends it back as `If-None-Match`. Nothing new is 304, with the
//! etag all the same, or SDKs lose their place.

use hyper::{
    StatusCode,
    header::{IF_MODIFIED_SINCE, IF_NONE_MATCH},
};
use mayfly_engine::{Container, Event, EventKind, FeedStart, Record, Timestamp, charge};
use mayfly_value::json;
use serde_json::json;

use super::{Answer, documents::with_session};
use crate::{call::Call, error::ApiError, headers, http_date, reply::Reply, resource};

/// The wire format in which every item of a feed comes in an envelope with its metadata. The log of all
/// versions has it always, the latest-version feed for clients that ask for it: their change feed processors
/// read nothing else.
const ENVELOPES: &str = "2021-09-15";

/// `GET …/docs` with `A-IM`
pub async fn read(call: &Call<'_>) -> Answer {
    let name = call.address.container().ok_or_else(ApiError::internal)?;
    let place = call.owner(name)?;
    let container = &place.container;
    let scope = call.scope(container)?;
    let slot = call.slot_of_scope(container, &scope)?;
    let kind = call.text(&headers::A_IM)?.unwrap_or_default().to_ascii_lowercase();
    let items = call.page_items()?;
    let (documents, position) = match kind.as_str() {
        "incremental feed" => {
            let start = start(call)?;
            let enveloped = call.text(&headers::CHANGE_FEED_WIRE_FORMAT)? == Some(ENVELOPES);
            let page = call.engine.changes(container, slot, start, &scope, items, call.now).await?;
            let mut documents = Vec::with_capacity(page.records.len());
            for record in &page.records {
                let mut document = Vec::new();
                resource::push_changed_document(call.engine, container, slot, record, &mut document)?;
                documents.push(if enveloped { latest_envelope(record, &document) } else { document });
            }
            (documents, page.position)
        }
        "full-fidelity feed" => {
            let after = match start(call)? {
                FeedStart::After(lsn) => lsn,
                FeedStart::Now => call.engine.lsn(container, slot).await?,
                FeedStart::Beginning | FeedStart::Time(_) => {
                    // A container without a log is told that first.
                    call.engine.log(container, slot, 0, &scope, 1, call.now).await?;
                    return Err(ApiError::outside_retention());
                }
            };
            let page = call.engine.log(container, slot, after, &scope, items, call.now).await?;
            if page.forgotten.is_some_and(|forgotten| after < forgotten.lsn) {
                return Err(ApiError::outside_retention());
            }
            let documents = page.events.iter().map(|(lsn, event)| envelope(container, *lsn, event));
            (documents.collect::<Result<_, _>>()?, page.position)
        }
        _ => return Err(ApiError::bad_request(format!("The value '{kind}' of the header A-IM is invalid."))),
    };
    let etag = format!("\"{position}\"");
    let count = documents.len();
    let mut reply = if documents.is_empty() {
        Reply::empty(StatusCode::NOT_MODIFIED).charged(charge::MISS)
    } else {
        let rid = resource::container_rid(container);
        let body = resource::document_feed(&rid, &documents);
        let cost = charge::page(count, body.len() as u64);
        Reply::json(StatusCode::OK, body).charged(cost)
    };
    reply.set(&headers::ETAG, &etag);
    reply.set(&headers::ITEM_COUNT, count);
    let lsn = call.engine.lsn(container, slot).await?;
    Ok(with_session(reply, &place, call.range_in_slot(container, slot)?, lsn))
}

/// Where the client wants to start: an etag wins over a time.
fn start(call: &Call<'_>) -> Result<FeedStart, ApiError> {
    match call.text(&IF_NONE_MATCH)? {
        Some("*") => return Ok(FeedStart::Now),
        Some(etag) => {
            let lsn = etag.trim().trim_matches('"').parse().map_err(|_| ApiError::invalid_continuation())?;
            return Ok(FeedStart::After(lsn));
        }
        None => {}
    }
    let Some(date) = call.text(&IF_MODIFIED_SINCE)? else { return Ok(FeedStart::Beginning) };
    let seconds = http_date::parse(date);
    let seconds = seconds.ok_or_else(|| ApiError::bad_request(format!("The date '{date}' is invalid.")))?;
    Ok(FeedStart::Time(Timestamp::from_seconds(seconds)))
}

/// A document of the latest-version feed as it is wrapped for clients that ask for envelopes.
fn latest_envelope(record: &Record, document: &[u8]) -> Vec<u8> {
    let is_new = (record.lsn, record.ordinal) == (record.birth.lsn, record.birth.ordinal);
    let operation = if is_new { "create" } else { "replace" };
    let metadata = json!({ "lsn": record.lsn, "crts": record.ts(), "operationType": operation });
    [b"{\"current\":", document, format!(",\"metadata\":{metadata}}}").as_bytes()].concat()
}

/// An event of the log as the service wraps it.
fn envelope(container: &Container, lsn: u64, event: &Event) -> Result<Vec<u8>, ApiError> {
    let operation = match event.kind {
        EventKind::Create => "create",
        EventKind::Replace | EventKind::Update => "replace",
        EventKind::Delete | EventKind::Expire => "delete",
    };
    let mut metadata = json!({ "lsn": lsn, "crts": event.ts, "operationType": operation });
    if event.previous_lsn > 0 {
        metadata["previousImageLSN"] = json!(event.previous_lsn);
    }
    if event.kind == EventKind::Expire {
        metadata["timeToLiveExpired"] = json!(true);
    }
    if let Some(at) = event.expired_at {
        metadata["expiredAt"] = json!(at.seconds());
    }
    if let Some(id) = event.id()?.as_text() {
        metadata["id"] = json!(id);
    }
    if let Some(document) = event.current().or(event.previous()) {
        let mut key = serde_json::Map::new();
        for path in &container.definition().partition_key.paths {
            let mut text = Vec::new();
            if let (Some(value), Some(name)) = (path.get(document), path.segments().last()) {
                json::write_value(value, &mut text).map_err(|_| ApiError::internal())?;
                key.insert(name.clone(), serde_json::from_slice(&text).map_err(|_| ApiError::internal())?);
            }
        }
        metadata["partitionKey"] = serde_json::Value::Object(key);
    }
    let mut out = b"{\"current\":".to_vec();
    match event.current() {
        Some(document) => json::write_document(document, &mut out).map_err(|_| ApiError::internal())?,
        None => out.extend_from_slice(b"{}"),
    }
    if let (Some(document), true) = (event.previous(), event.kind == EventKind::Delete) {
        out.extend_from_slice(b",\"previous\":");
        json::write_document(document, &mut out).map_err(|_| ApiError::internal())?;
    }
    out.extend_from_slice(format!(",\"metadata\":{metadata}}}").as_bytes());
    Ok(out)
}
