//! Sessions by name, and the end of transactions.

use bson::{Document, RawBsonRef, RawDocumentBuf, doc};

use super::reply;
use crate::{
    call::Call,
    failure::{Failure, Result},
    session::lsid_document,
};

/// `startSession`.
pub async fn start(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let mut id = call.mongo.engine.ids().unique();
    // A random UUID of version 4.
    id[6] = id[6] & 0x0F | 0x40;
    id[8] = id[8] & 0x3F | 0x80;
    call.mongo.sessions.touch(&id, call.now);
    reply(doc! { "id": lsid_document(&id), "timeoutMinutes": 30 })
}

/// `endSessions` and its relatives.
pub async fn end(call: &Call<'_>) -> Result<RawDocumentBuf> {
    for id in named(call)? {
        call.mongo.sessions.end(call.mongo, &id);
    }
    call.mongo.sessions.drafts.clear(call.mongo).await?;
    reply(Document::new())
}

/// `refreshSessions`.
pub async fn refresh(call: &Call<'_>) -> Result<RawDocumentBuf> {
    for id in named(call)? {
        call.mongo.sessions.touch(&id, call.now);
    }
    reply(Document::new())
}

fn named(call: &Call<'_>) -> Result<Vec<Vec<u8>>> {
    let mut ids = Vec::new();
    for session in call.documents(call.request.name())?.unwrap_or_default() {
        if let Some(RawBsonRef::Binary(id)) = session.get("id")? {
            ids.push(id.bytes.to_vec());
        }
    }
    Ok(ids)
}

/// `commitTransaction`.
pub async fn commit(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let session = call.session.as_ref().filter(|session| session.in_transaction);
    let session =
        session.ok_or_else(|| Failure::new(125, "commitTransaction must be run within a transaction"))?;
    call.mongo.sessions.commit(call, session).await?;
    reply(Document::new())
}

/// `abortTransaction`.
pub async fn abort(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let session = call.session.as_ref().filter(|session| session.in_transaction);
    let session =
        session.ok_or_else(|| Failure::new(125, "abortTransaction must be run within a transaction"))?;
    call.mongo.sessions.abort_asked(call.mongo, session).await?;
    reply(Document::new())
}
