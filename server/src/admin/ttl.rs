//! What a default does or would do to the documents that are there, and how it was changed before.

use std::collections::HashMap;

use mayfly_cosmos::ApiError;
use mayfly_engine::{Container, DefaultTtl};
use serde_json::{Value, json};

use super::amount;
use crate::node::Node;

/// `GET /_mayfly/ttl/{database}/{container}?default=…`
pub async fn forecast(node: &Node, container: &Container, query: &str) -> Result<Value, ApiError> {
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
    let forecast = node.engine.forecast(container, proposed, now).await?;
    let usage = node.engine.usage(container, now).await?;
    Ok(json!({
        "unixSeconds": now.seconds(),
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
        "hourly": &forecast.hourly.map(amount)[..],
        "daily": &forecast.daily.map(amount)[..],
        "purged": amount(usage.purged),
        "purgeBacklog": amount(usage.backlog),
        "purgeLagSeconds": usage.lag_seconds,
    }))
}

/// `GET /_mayfly/ttl/{database}/{container}/history`
pub fn history(container: &Container) -> Value {
    let changes = container.ttl_history().iter().rev();
    let changes = changes.map(
        |change| json!({ "at": change.at, "from": change.from.map(i64::from), "to": change.to.map(i64::from) }),
    );
    json!({ "changes": changes.collect::<Vec<_>>() })
}
