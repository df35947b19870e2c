//! All items of a container, or of one logical partition, page by page.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hyper::StatusCode;
use mayfly_engine::{Container, PageLimit, Position, charge};

use super::{Answer, documents::with_session};
use crate::{call::Call, error::ApiError, headers, query::request::fingerprint, reply::Reply, resource};

/// The most a page of items weighs.
const PAGE_BYTES_MAX: usize = 4 << 20;

/// `GET …/docs`
pub async fn read(call: &Call<'_>) -> Answer {
    let name = call.address.container().ok_or_else(ApiError::internal)?;
    let place = call.owner(name)?;
    let container = &place.container;
    let position = match call.text(&headers::CONTINUATION)? {
        None | Some("") => None,
        Some(token) => Some(decode(container, token)?),
    };
    let limit = PageLimit { rows: call.page_items()?, bytes: PAGE_BYTES_MAX };
    let page = call.engine.list(container, &call.scope(container)?, position, limit, call.now).await?;

    let mut documents = Vec::with_capacity(page.found.len());
    for found in &page.found {
        let mut document = Vec::with_capacity(found.record.size() as usize + 512);
        resource::push_document(call.engine, container, found.slot, &found.record, &mut document)?;
        documents.push(document);
    }
    let body = resource::document_feed(&resource::container_rid(container), &documents);
    let cost = charge::page(page.found.len(), body.len() as u64);
    let mut reply =
        Reply::json(StatusCode::OK, body).with(&headers::ITEM_COUNT, page.found.len()).charged(cost);
    if let Some(next) = page.next {
        reply.set(&headers::CONTINUATION, encode(container, &next));
    }
    let slot = page.found.last().map_or(0, |found| found.slot);
    let lsn = call.engine.lsn(container, slot).await?;
    Ok(with_session(reply, &place, call.range_in_slot(container, slot)?, lsn))
}

/// A position with a mark of its container before it, so that nobody's token is taken for another's.
fn encode(container: &Container, position: &Position) -> String {
    STANDARD.encode([&mark(container)[..], &position.to_bytes()].concat())
}

fn decode(container: &Container, token: &str) -> Result<Position, ApiError> {
    let bytes = STANDARD.decode(token).map_err(|_| ApiError::invalid_continuation())?;
    let position = bytes.strip_prefix(&mark(container)).ok_or_else(ApiError::invalid_continuation)?;
    Ok(Position::from_bytes(position)?)
}

fn mark(container: &Container) -> [u8; 8] {
    fingerprint(resource::container_rid(container).as_bytes()).to_be_bytes()
}
