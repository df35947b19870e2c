//! MongoDB's commands without its protocol: Extended JSON in, Extended JSON out.
//!
//! The front-end answers; this decides which commands are offered, what a key may do, and which status an answer has.

use hyper::{Response, StatusCode};
use mayfly_cosmos::{ApiError, auth::Access};
use mayfly_mongo::{auth::Role, extended_json};

use crate::{
    node::Node,
    respond::{self, Body},
};

/// The longest command. Documents can be longer; those are for a driver.
pub const BODY_BYTES_MAX: usize = 4 << 20;

/// What the portal needs. Everything else has the protocol, or a route of its own.
const OFFERED: &[&str] = &[
    "aggregate",
    "collMod",
    "count",
    "createIndexes",
    "delete",
    "distinct",
    "dropIndexes",
    "explain",
    "find",
    "findAndModify",
    "getMore",
    "insert",
    "killCursors",
    "listIndexes",
    "update",
];

/// `POST /_mayfly/mongo/{database}`
pub async fn run(
    node: &Node,
    access: Access,
    database: &str,
    body: &[u8],
) -> Result<Response<Body>, ApiError> {
    let command = extended_json::read(body)
        .map_err(|error| ApiError::bad_request(format!("The body is a command in Extended JSON: {error}")))?;
    let name = command.keys().next().map_or("", String::as_str);
    if !OFFERED.contains(&name) {
        let message =
            format!("The command `{name}` is not one of those offered here: {}.", OFFERED.join(", "));
        return Err(ApiError::bad_request(message));
    }
    let role = match access {
        Access::ReadWrite => Role::Admin,
        Access::ReadOnly => Role::Read,
    };
    let answer = node.mongo.run_as_account(database, &command, role).await;
    let status = status_of(answer.get_i32("code").ok());
    Ok(respond::text(status, "application/json", extended_json::write(&answer)))
}

/// The status that says about the same as a code of MongoDB.
fn status_of(code: Option<i32>) -> StatusCode {
    match code {
        None => StatusCode::OK,
        // InternalError
        Some(1) => StatusCode::INTERNAL_SERVER_ERROR,
        // Unauthorized
        Some(13) => StatusCode::FORBIDDEN,
        // NamespaceNotFound, IndexNotFound, CursorNotFound
        Some(26 | 27 | 43) => StatusCode::NOT_FOUND,
        // NamespaceExists, IndexOptionsConflict, IndexKeySpecsConflict, WriteConflict, DuplicateKey
        Some(48 | 85 | 86 | 112 | 11000) => StatusCode::CONFLICT,
        // MaxTimeMSExpired
        Some(50) => StatusCode::REQUEST_TIMEOUT,
        // BSONObjectTooLarge
        Some(10334) => StatusCode::PAYLOAD_TOO_LARGE,
        // NotPrimaryOrSecondary: the disk is nearly full
        Some(13436) => StatusCode::SERVICE_UNAVAILABLE,
        Some(_) => StatusCode::BAD_REQUEST,
    }
}
