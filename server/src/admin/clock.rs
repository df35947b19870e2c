//! The engine's time: what it is, and moving it where that is allowed.

use std::time::Duration;

use mayfly_cosmos::ApiError;
use mayfly_engine::{Clock as _, Timestamp};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::node::Node;

/// How the clock is to be moved. Exactly one of these.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
enum ClockChange {
    AdvanceSeconds(f64),
    SetUnixSeconds(f64),
    Freeze(bool),
}

/// `GET /_mayfly/clock`
pub async fn read(node: &Node) -> Result<Value, ApiError> {
    let now = node.engine.now().await?;
    Ok(json!({
        "unixSeconds": now.0 as f64 / 1000.0,
        "adjustable": node.dev_clock.is_some(),
        "frozen": node.dev_clock.as_ref().is_some_and(|clock| clock.is_frozen()),
    }))
}

/// `POST /_mayfly/clock`
pub async fn change(node: &Node, body: &[u8]) -> Result<Value, ApiError> {
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
    read(node).await
}
