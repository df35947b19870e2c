//! Commands by the catalog as it is.
//!
//! Where several nodes share a store, each has a catalog of its own in memory, which may be a moment old. What is asked about
//! the catalog itself, or about a collection that is not known here, is looked up first; what finds out
//! that another node has dropped the collection meanwhile, and has done nothing yet, is done again.

use bson::{RawBsonRef, RawDocumentBuf};

use crate::{
    call::{Call, integer},
    commands::Access,
    failure::Result,
    namespace,
};

/// How often a command is done again.
const ATTEMPTS_MAX: usize = 4;

/// Commands about documents: they have to know their collection, and nothing else of the catalog.
const ABOUT_DOCUMENTS: [&str; 8] =
    ["find", "insert", "update", "delete", "findAndModify", "aggregate", "count", "distinct"];

const NOT_FOUND: i32 = 26;

/// Runs a command that is no step of a transaction.
pub async fn run(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let engine = &call.mongo.engine;
    let is_served =
        matches!(call.info.access, Access::Read | Access::Write) || call.info.name == "listDatabases";
    if !engine.is_shared() || !is_served {
        return call.within_time((call.info.run)(call)).await;
    }
    let is_known = ABOUT_DOCUMENTS.contains(&call.info.name)
        && call.collection().is_ok_and(|name| namespace::find(engine, &call.db, name).is_some());
    if !is_known {
        engine.refresh().await?;
    }
    let mut attempt = 1;
    loop {
        let answer = call.within_time((call.info.run)(call)).await;
        let is_old = match &answer {
            Err(failure) => failure.code == NOT_FOUND && call.info.access == Access::Read,
            Ok(reply) => has_found_nothing(reply),
        };
        if !is_old || attempt >= ATTEMPTS_MAX {
            return answer;
        }
        engine.refresh().await?;
        attempt += 1;
    }
}

/// Whether the first write of a batch was refused because there is no such collection any more. Nothing was written then.
fn has_found_nothing(reply: &RawDocumentBuf) -> bool {
    let number = |name: &str| reply.get(name).ok().flatten().and_then(integer);
    let Ok(Some(RawBsonRef::Array(errors))) = reply.get("writeErrors") else { return false };
    let Some(Ok(RawBsonRef::Document(first))) = errors.into_iter().next() else { return false };
    let field = |name: &str| first.get(name).ok().flatten().and_then(integer);
    number("n") == Some(0) && field("index") == Some(0) && field("code") == Some(i64::from(NOT_FOUND))
}
