//! Administration: what the protocol has no word for, under `/_mayfly/`. `docs/administration.md` shows the answers.
//!
//! | | |
//! |---|---|
//! | `GET /_mayfly/server` | version, store, memory and disk, and what the caller's key may do |
//! | `GET /_mayfly/overview` | databases and containers with what they hold |
//! | `GET /_mayfly/metrics?since=…` | samples of what the server does, for charts |
//! | `GET /_mayfly/clock` | the engine's time |
//! | `POST /_mayfly/clock` | moves it; only with `--dev-clock` |
//! | `GET /_mayfly/ttl/{database}/{container}?default=…` | what a default would do; without one, what the present one does |
//! | `GET /_mayfly/ttl/{database}/{collection}?field=…&seconds=…` | what a new TTL index would do; `index=…` for another length of one |
//! | `GET /_mayfly/ttl/{database}/{container}/history` | how the default was changed |
//! | `POST /_mayfly/ttl/{database}/{collection}/documents` | when some documents go, and by which rule |
//! | `POST /_mayfly/explain/{database}/{container}` | how a query would be answered |
//! | `POST /_mayfly/mongo/{database}` | a command of MongoDB, in Extended JSON |
//!
//! The key goes in `authorization: Bearer <account key>`, or the read-only key for what changes nothing.

pub mod clock;
mod insight;
mod mongo;
mod ttl;

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Limited};
use hyper::{Method, Request, Response, StatusCode, header::AUTHORIZATION};
use mayfly_cosmos::{ApiError, auth::Access, explain};
use mayfly_engine::{Amount, Container};
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use crate::{
    node::Node,
    request::{self, RequestBody},
    respond::{self, Body},
};

/// Where administration lives. No path of the protocol begins so.
pub const PREFIX: &str = "/_mayfly/";

/// A query with its parameters is the longest body.
const BODY_BYTES_MAX: usize = 1 << 20;

/// Answers a request.
pub async fn serve(node: &Node, request: request::Request) -> Response<Body> {
    let activity_id = respond::activity_id(&request.heading.headers()).to_owned();
    answer(node, request).await.unwrap_or_else(|error| respond::error(&error, &activity_id))
}

async fn answer(node: &Node, request: request::Request) -> Result<Response<Body>, ApiError> {
    let request = request.into_http()?;
    let access = access(node, &request)?;
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let path = uri.path().strip_prefix(PREFIX).unwrap_or_default();
    let query = uri.query().unwrap_or_default();
    let segments: Vec<_> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let value = match (&method, &segments[..]) {
        // The only one whose answer is not JSON alone: the order of its fields counts, and its failures are MongoDB's.
        (&Method::POST, ["mongo", database]) => {
            let database = decoded(database)?;
            let command = body(request, mongo::BODY_BYTES_MAX).await?;
            return mongo::run(node, access, &database, &command).await;
        }
        (&Method::GET, ["server"]) => insight::server(node, access),
        (&Method::GET, ["overview"]) => insight::overview(node).await,
        (&Method::GET, ["metrics"]) => insight::metrics(node, query),
        (&Method::GET, ["clock"]) => clock::read(node).await,
        (&Method::POST, ["clock"]) => {
            if access != Access::ReadWrite {
                return Err(ApiError::new(403, 0, "The read-only key may not move the clock."));
            }
            clock::change(node, &body(request, BODY_BYTES_MAX).await?).await
        }
        (&Method::GET, ["ttl", database, name]) => {
            ttl::forecast(node, &*container(node, database, name)?, query).await
        }
        (&Method::GET, ["ttl", database, name, "history"]) => {
            Ok(ttl::history(&*container(node, database, name)?))
        }
        (&Method::POST, ["ttl", database, name, "documents"]) => {
            let (database, name) = (decoded(database)?, decoded(name)?);
            ttl::documents(node, &database, &name, &body(request, BODY_BYTES_MAX).await?).await
        }
        (&Method::POST, ["explain", database, name]) => {
            let container = container(node, database, name)?;
            let now = node.engine.now().await?;
            explain(&node.engine, &container, &body(request, BODY_BYTES_MAX).await?, now).await
        }
        (_, ["server" | "overview" | "metrics" | "clock" | "ttl" | "explain" | "mongo", ..]) => {
            Err(ApiError::method_not_allowed(method.as_str()))
        }
        _ => Err(ApiError::resource_not_found()),
    }?;
    Ok(respond::text(StatusCode::OK, "application/json", value.to_string()))
}

async fn body(request: Request<RequestBody>, bytes_max: usize) -> Result<Bytes, ApiError> {
    let body = Limited::new(request.into_body(), bytes_max).collect().await;
    Ok(body.map_err(|_| ApiError::too_large())?.to_bytes())
}

/// Lets in whoever shows an account key.
fn access(node: &Node, request: &Request<RequestBody>) -> Result<Access, ApiError> {
    let header = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let key = header.and_then(|header| header.strip_prefix("Bearer "));
    key.and_then(|key| node.keys.access_of(key.trim())).ok_or_else(|| {
        ApiError::new(401, 0, "Administration needs the header `authorization: Bearer <account key>`.")
    })
}

fn container(node: &Node, database: &str, name: &str) -> Result<Arc<Container>, ApiError> {
    let database = node.engine.database(&decoded(database)?)?;
    Ok(node.engine.container(&database, &decoded(name)?)?)
}

fn decoded(segment: &str) -> Result<String, ApiError> {
    let text = percent_decode_str(segment).decode_utf8();
    text.map(|text| text.into_owned()).map_err(|_| ApiError::unknown_route())
}

fn amount(amount: Amount) -> Value {
    json!({ "documents": amount.documents, "bytes": amount.bytes })
}
