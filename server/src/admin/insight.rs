//! What the server is, what it holds, and what it is doing.

use mayfly_cosmos::{ApiError, auth::Access};
use serde_json::{Value, json};

use super::amount;
use crate::{memory, node::Node, samples};

/// `GET /_mayfly/server`
pub fn server(node: &Node, access: Access) -> Result<Value, ApiError> {
    Ok(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "store": node.store,
        "uptimeSeconds": node.uptime.elapsed().as_secs(),
        "access": match access {
            Access::ReadWrite => "readWrite",
            Access::ReadOnly => "readOnly",
        },
        "writesRefused": node.engine.is_read_only(),
        "mongo": (node.mongo_port != 0).then(|| json!({ "port": node.mongo_port, "user": node.mongo_user })),
        "memoryBytes": memory::resident_bytes(),
        "diskBytes": node.engine.store_stats().disk_bytes,
        "diskFreeBytes": node.disk_free_bytes(),
    }))
}

/// `GET /_mayfly/overview`
pub async fn overview(node: &Node) -> Result<Value, ApiError> {
    let now = node.engine.now().await?;
    let mut databases = Vec::new();
    for database in node.engine.databases() {
        let mut containers = Vec::new();
        for container in node.engine.containers(&database) {
            let usage = node.engine.usage(&container, now).await?;
            let definition = container.definition();
            let paths: Vec<_> = definition.partition_key.paths.iter().map(|path| path.written()).collect();
            containers.push(json!({
                "name": container.name(),
                "isCollection": container.is_collection(),
                "partitionKey": paths,
                "defaultTtl": definition.default_ttl.map(i64::from),
                "ttlIndexes": definition.index_rules.iter().filter(|index| index.date_rule.is_some()).count(),
                "live": amount(usage.live),
                "purgeBacklog": amount(usage.backlog),
                "purgeLagSeconds": usage.lag_seconds,
            }));
        }
        databases.push(json!({ "name": database.name, "containers": containers }));
    }
    Ok(json!({ "unixSeconds": now.0 as f64 / 1000.0, "databases": databases }))
}

/// `GET /_mayfly/metrics?since=…`
pub fn metrics(node: &Node, query: &str) -> Result<Value, ApiError> {
    let since = match query.split('&').find_map(|pair| pair.strip_prefix("since=")) {
        None => 0,
        Some(text) => text.parse().map_err(|_| {
            ApiError::bad_request("since is the time of the last sample you have, in seconds.")
        })?,
    };
    Ok(json!({
        "secondsPerSample": samples::EVERY.as_secs(),
        "durationBounds": crate::metrics::BUCKETS_SECONDS,
        "samples": node.samples.after(since),
    }))
}
