//! Administration: what the protocol has no word for, under `/_mayfly/`.
//!
//! | | |
//! |---|---|
//! | `GET /_mayfly/clock` | the engine's time |
//! | `POST /_mayfly/clock` | moves it; only with `--dev-clock` |
//! | `GET /_mayfly/ttl/{database}/{container}?default=…` | what a default would do; without one, what the present one does |
//!
//! The key goes in `authorization: Bearer <account key>`, or the read-only key for what changes nothing.

use std::{collections::HashMap, time::Duration};

use http_body_util::{BodyExt as _, Limited};
use hyper::{Method, Request, Response, StatusCode, body::Incoming, header::AUTHORIZATION};
use mayfly_cosmos::{ApiError, auth::Access};
use mayfly_engine::{Amount, Clock as _, DefaultTtl, Timestamp};
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    node::Node,
    respond::{self, Body},
};

/// Where administration lives. No path of the protocol begins so.
pub const PREFIX: &str = "/_mayfly/";

const BODY_BYTES_MAX: usize = 4096;

/// How the clock is to be moved. Exactly one of these.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
enum ClockChange {
    AdvanceSeconds(f64),
    SetUnixSeconds(f64),
    Freeze(bool),
}

/// Answers a request.
pub async fn serve(node: &Node, request: Request<Incoming>) -> Response<Body> {
    let activity_id = respond::activity_id(request.headers());
    match answer(node, request).await {
        Ok(value) => respond::text(StatusCode::OK, "application/json", value.to_string()),
        Err(error) => respond::error(&error, &activity_id),
    }
}

async fn answer(node: &Node, request: Request<Incoming>) -> Result<Value, ApiError> {
    let access = access(node, &request)?;
    let path = request.uri().path().strip_prefix(PREFIX).unwrap_or_default().to_owned();
    let segments: Vec<_> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    match (request.method(), &segments[..]) {
        (&Method::GET, ["clock"]) => clock(node).await,
        (&Method::POST, ["clock"]) => {
            if access != Access::ReadWrite {
                return Err(ApiError::new(403, 0, "The read-only key may not move the clock."));
            }
            let body = Limited::new(request.into_body(), BODY_BYTES_MAX).collect().await;
            let body = body.map_err(|_| ApiError::too_large())?.to_bytes();
            move_clock(node, &body).await
        }
        (&Method::GET, ["ttl", database, container]) => {
            let query = request.uri().query().unwrap_or_default().to_owned();
            forecast(node, &decoded(database)?, &decoded(container)?, &query).await
        }
        (_, ["clock" | "ttl", ..]) => Err(ApiError::method_not_allowed(request.method().as_str())),
        _ => Err(ApiError::resource_not_found()),
    }
}

/// Lets in whoever shows an account key.
fn access(node: &Node, request: &Request<Incoming>) -> Result<Access, ApiError> {
    let header = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let key = header.and_then(|header| header.strip_prefix("Bearer "));
    key.and_then(|key| node.keys.access_of(key.trim())).ok_or_else(|| {
        ApiError::new(401, 0, "Administration needs the header `authorization: Bearer <account key>`.")
    })
}

fn decoded(segment: &str) -> Result<String, ApiError> {
    let text = percent_decode_str(segment).decode_utf8();
    text.map(|text| text.into_owned()).map_err(|_| ApiError::unknown_route())
}

async fn clock(node: &Node) -> Result<Value, ApiError> {
    let now = node.engine.now().await?;
    Ok(json!({
        "unixSeconds": now.0 as f64 / 1000.0,
        "adjustable": node.dev_clock.is_some(),
        "frozen": node.dev_clock.as_ref().is_some_and(|clock| clock.is_frozen()),
    }))
}

async fn move_clock(node: &Node, body: &[u8]) -> Result<Value, ApiError> {
    let Some(adjustable) = &node.dev_clock else {
        return Err(ApiError::new(
            403,
            0,
            "The clock can be moved only on a server started with --dev-clock.",
        ));
    };
    let change: ClockChange = serde_json::from_slice(body).map_err(|error| {
        ApiError::bad_request(format!(
            "The body is one of {{\"advanceSeconds\": n}}, {{\"setUnixSeconds\": n}}, {{\"freeze\": true}}: {error}"
        ))
    })?;
    let seconds = |n: f64| {
        Duration::try_from_secs_f64(n).map_err(|_| {
            ApiError::bad_request(
                "Time on this server only goes forward: give a number that is not below zero.",
            )
        })
    };
    match change {
        ClockChange::AdvanceSeconds(n) => adjustable.advance(seconds(n)?),
        ClockChange::SetUnixSeconds(n) => {
            let to = Timestamp(seconds(n)?.as_millis() as u64);
            if to < adjustable.now() {
                return Err(ApiError::bad_request(
                    "Time on this server only goes forward: that moment has passed.",
                ));
            }
            adjustable.set(to);
        }
        ClockChange::Freeze(true) => adjustable.freeze(),
        ClockChange::Freeze(false) => adjustable.resume(),
    }
    clock(node).await
}

async fn forecast(node: &Node, database: &str, container: &str, query: &str) -> Result<Value, ApiError> {
    let database = node.engine.database(database)?;
    let container = node.engine.container(&database, container)?;
    let parameters: HashMap<_, _> = query.split('&').filter_map(|pair| pair.split_once('=')).collect();
    let present = container.definition().default_ttl;
    let proposed = match parameters.get("default").copied() {
        None => present,
        Some("off") => None,
        Some(text) => {
            let ttl = text.parse::<i64>().map_err(|error| error.to_string()).and_then(DefaultTtl::try_from);
            Some(ttl.map_err(|error| {
                ApiError::bad_request(format!("default is `off`, -1 or seconds: {error}"))
            })?)
        }
    };
    let now = node.engine.now().await?;
    let forecast = node.engine.forecast(&container, proposed, now).await?;
    let usage = node.engine.usage(&container, now).await?;
    let amount = |amount: Amount| json!({ "documents": amount.documents, "bytes": amount.bytes });
    Ok(json!({
        "presentDefault": present.map(i64::from),
        "proposedDefault": proposed.map(i64::from),
        "live": amount(forecast.live),
        "expiresAtOnce": amount(forecast.at_once),
        "expiresWithinHour": amount(forecast.within_hour),
        "expiresWithinDay": amount(forecast.within_day),
        "expiresWithin30Days": amount(forecast.within_month),
        "expiresLater": amount(forecast.later),
        "neverExpires": amount(forecast.never),
        "pinned": amount(forecast.pinned),
        "ownTtl": amount(forecast.own),
        "purgeBacklog": amount(usage.backlog),
        "purgeLagSeconds": usage.lag_seconds,
    }))
}
