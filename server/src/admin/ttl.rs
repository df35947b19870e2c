//! What a default or a TTL index does or would do to the documents that are there, how the default was changed before, and
//! when single documents go.

use std::collections::HashMap;

use mayfly_cosmos::ApiError;
use mayfly_engine::{Container, DateProposal, DefaultTtl, OwnTtl, ttl::SECONDS_MAX};
use mayfly_mongo::extended_json;
use serde_json::{Value, json};

use super::amount;
use crate::node::Node;

/// `GET /_mayfly/ttl/{database}/{container}?default=…`, or `?field=…&seconds=…`, or `?index=…&seconds=…`
pub async fn forecast(node: &Node, container: &Container, query: &str) -> Result<Value, ApiError> {
    let parameters: HashMap<_, _> = query.split('&').filter_map(|pair| pair.split_once('=')).collect();
    let now = node.engine.now().await?;
    let present = container.definition().default_ttl;
    let (proposed, forecast) = match date_proposal(container, &parameters)? {
        Some((name, is_new, seconds)) => {
            let proposal = if is_new { DateProposal::New(&name) } else { DateProposal::Change(&name) };
            (present, node.engine.forecast_dates(container, proposal, seconds, now).await?)
        }
        None => {
            let proposed = proposed_default(present, parameters.get("default").copied())?;
            (proposed, node.engine.forecast(container, proposed, now).await?)
        }
    };
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

fn proposed_default(present: Option<DefaultTtl>, text: Option<&str>) -> Result<Option<DefaultTtl>, ApiError> {
    match text {
        None => Ok(present),
        Some("off") => Ok(None),
        Some(text) => {
            let ttl = text.parse::<i64>().map_err(|error| error.to_string()).and_then(DefaultTtl::try_from);
            let ttl = ttl.map_err(|error| format!("default is `off`, -1 or seconds: {error}"));
            ttl.map(Some).map_err(ApiError::bad_request)
        }
    }
}

/// The TTL index that is asked about: a field or the name of an index, whether it is new, and its length.
fn date_proposal(
    container: &Container,
    parameters: &HashMap<&str, &str>,
) -> Result<Option<(String, bool, u32)>, ApiError> {
    let (name, is_new) = match (parameters.get("field"), parameters.get("index")) {
        (None, None) => return Ok(None),
        (Some(field), None) => (super::decoded(field)?, true),
        (None, Some(index)) => (super::decoded(index)?, false),
        (Some(_), Some(_)) => {
            return Err(ApiError::bad_request("Give a field for a new TTL index, or the name of an index."));
        }
    };
    if !container.is_collection() {
        return Err(ApiError::bad_request("TTL indexes are for collections; a container has a default."));
    }
    let seconds = parameters.get("seconds").and_then(|text| text.parse::<u32>().ok());
    let seconds = seconds.filter(|seconds| *seconds <= SECONDS_MAX && !name.is_empty()).ok_or_else(|| {
        ApiError::bad_request(format!("A TTL index has a field and seconds from 0 to {SECONDS_MAX}."))
    })?;
    Ok(Some((name, is_new, seconds)))
}

/// `POST /_mayfly/ttl/{database}/{collection}/documents`: when each of some documents goes, and by which rule.
pub async fn documents(
    node: &Node,
    database: &str,
    collection: &str,
    body: &[u8],
) -> Result<Value, ApiError> {
    let wanted = extended_json::read(body)
        .map_err(|error| ApiError::bad_request(format!("The body is {{\"ids\": […]}}: {error}")))?;
    let fates = node.mongo.fates(database, collection, &wanted).await?;
    let fates = fates.into_iter().map(|fate| {
        fate.map(|fate| {
            json!({
                "lastWrite": fate.last_write,
                "ownTtl": match fate.own {
                    OwnTtl::Inherit => Value::Null,
                    OwnTtl::Never => json!(-1),
                    OwnTtl::Seconds(seconds) => json!(seconds),
                },
                "expiresAt": fate.expires_at.map(|at| at.0 as f64 / 1000.0),
                "index": fate.index,
            })
        })
    });
    Ok(json!({ "documents": fates.collect::<Vec<_>>() }))
}

/// `GET /_mayfly/ttl/{database}/{container}/history`
pub fn history(container: &Container) -> Value {
    let changes = container.ttl_history().iter().rev();
    let changes = changes.map(
        |change| json!({ "at": change.at, "from": change.from.map(i64::from), "to": change.to.map(i64::from) }),
    );
    json!({ "changes": changes.collect::<Vec<_>>() })
}
