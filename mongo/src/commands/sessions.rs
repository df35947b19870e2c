//! Sessions by name, and the end of transactions.

use bson::{Document, RawBsonRef, RawDocument, RawDocumentBuf, doc};
use sha2::{Digest as _, Sha256};

use super::reply;
use crate::{
    call::{Call, wrong_type},
    connection::Who,
    failure::{Failure, Result},
    session::lsid_document,
};

/// `startSession`.
pub async fn start(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let mut id = call.mongo.engine.ids().unique();
    // A random UUID of version 4.
    id[6] = id[6] & 0x0F | 0x40;
    id[8] = id[8] & 0x3F | 0x80;
    call.mongo.sessions.touch(&id, call.connection, call.now);
    reply(doc! { "id": lsid_document(&id), "timeoutMinutes": 30 })
}

/// `endSessions`.
pub async fn end(call: &Call<'_>) -> Result<RawDocumentBuf> {
    for id in named(call)? {
        call.mongo.sessions.end(call.mongo, &id);
    }
    call.mongo.sessions.drafts.clear(call.mongo).await?;
    reply(Document::new())
}

/// `killSessions`: ends these and stops what they do; without any, all of whoever asks.
pub async fn kill(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let ids = match named(call)? {
        ids if ids.is_empty() => {
            let who = call.connection.who();
            sessions_of(call, |other| !call.asks_who() || who.is_one_of(other))
        }
        ids => ids,
    };
    stop(call, ids).await
}

/// `killAllSessions`: those of some users, or of everybody.
pub async fn kill_of_users(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let mut users = Vec::new();
    for user in listed(call)? {
        users.push(user_in(&user, "KillAllSessionsCmd.killAllSessions")?);
    }
    let ids = sessions_of(call, |who| users.is_empty() || is_of(who, &users));
    stop(call, ids).await
}

/// `killAllSessionsByPattern`: those that one of some patterns fits, or all.
pub async fn kill_like(call: &Call<'_>) -> Result<RawDocumentBuf> {
    const FIELD: &str = "KillAllSessionsByPatternCmd.killAllSessionsByPattern";
    let patterns = listed(call)?;
    let mut ids = match patterns.is_empty() {
        true => sessions_of(call, |_| true),
        false => Vec::new(),
    };
    for pattern in &patterns {
        let (mut session, mut digest, mut users) = (None, None, Vec::new());
        for part in pattern {
            match part? {
                (name, RawBsonRef::Document(lsid)) if name == "lsid" => {
                    let missing = |part: &str| {
                        let message =
                            format!("BSON field '{FIELD}.lsid.{part}' is missing but a required field");
                        Failure::new(40414, message)
                    };
                    session = Some(lsid.get_binary("id").map_err(|_| missing("id"))?.bytes.to_vec());
                    digest = Some(lsid.get_binary("uid").map_err(|_| missing("uid"))?.bytes);
                }
                (name, RawBsonRef::Binary(uid)) if name == "uid" => digest = Some(uid.bytes),
                (name, RawBsonRef::Array(list)) if name == "users" => {
                    for user in list {
                        let user = user?;
                        let user = user.as_document().ok_or_else(|| wrong_type(FIELD, user, "object"))?;
                        users.push(user_in(user, &format!("{FIELD}.users"))?);
                    }
                }
                (name, _) if name == "roles" => {
                    return Err(Failure::new(238, "sessions are not looked for by roles"));
                }
                (name, value) if ["lsid", "uid", "users"].contains(&name.as_str()) => {
                    return Err(wrong_type(&format!("{FIELD}.{name}"), value, "another"));
                }
                (name, _) => {
                    let message = format!("BSON field '{FIELD}.{name}' is an unknown field.");
                    return Err(Failure::new(40415, message));
                }
            }
        }
        let fits = |who: &Who| {
            (users.is_empty() || is_of(who, &users)) && digest.is_none_or(|digest| digest == digest_of(who))
        };
        let fitting = sessions_of(call, fits).into_iter();
        ids.extend(fitting.filter(|id| session.as_ref().is_none_or(|session| session == id)));
    }
    stop(call, ids).await
}

async fn stop(call: &Call<'_>, ids: Vec<Vec<u8>>) -> Result<RawDocumentBuf> {
    for id in ids {
        call.mongo.operations.stop_session(&id);
        call.mongo.sessions.end(call.mongo, &id);
    }
    call.mongo.sessions.drafts.clear(call.mongo).await?;
    reply(Document::new())
}

fn sessions_of(call: &Call<'_>, is_asked: impl Fn(&Who) -> bool) -> Vec<Vec<u8>> {
    call.mongo.sessions.list(is_asked).into_iter().map(|(id, _)| id).collect()
}

/// Database and name of a user, as a command names one.
pub fn user_in(user: &RawDocument, field: &str) -> Result<(String, String)> {
    let part = |name: &str| match user.get_str(name) {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => {
            let message = format!("BSON field '{field}.{name}' is missing but a required field");
            Err(Failure::new(40414, message))
        }
    };
    Ok((part("db")?, part("user")?))
}

/// Whether one of these users is there.
pub fn is_of(who: &Who, users: &[(String, String)]) -> bool {
    users.iter().any(|(database, name)| who.has(database, name))
}

/// What sessions carry of their user: a digest of the name, or of nothing.
fn digest_of(who: &Who) -> [u8; 32] {
    let name = who.users.first().map(|user| format!("{}@{}", user.name, user.database));
    Sha256::digest(name.unwrap_or_default().as_bytes()).into()
}

/// The documents of the command's own list.
fn listed(call: &Call<'_>) -> Result<Vec<RawDocumentBuf>> {
    Ok(call.documents(call.request.name())?.unwrap_or_default())
}

/// `refreshSessions`.
pub async fn refresh(call: &Call<'_>) -> Result<RawDocumentBuf> {
    for id in named(call)? {
        call.mongo.sessions.touch(&id, call.connection, call.now);
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
