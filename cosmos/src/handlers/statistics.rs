//! What a container holds, for clients that ask: sizes against quotas, and statistics of each partition key range.
//!
//! Counts are the engine's running sums without what has expired. Which keys are in a range is found out from a sample
//! of its documents, as the service does.

use mayfly_engine::{Access, Container, Direction, HashRange, PageLimit};
use serde_json::{Value, json};

use crate::{call::Call, error::ApiError, headers, reply::Reply};

/// Documents of a range that are looked at for its keys, and the keys that are named.
const SAMPLE: PageLimit = PageLimit { rows: 1000, bytes: 4 << 20 };
const KEYS_MAX: usize = 10;

fn kilobytes(bytes: u64) -> u64 {
    bytes.div_ceil(1024)
}

/// Adds quota and usage to the answer.
pub async fn add_usage(call: &Call<'_>, container: &Container, reply: &mut Reply) -> Result<(), ApiError> {
    let live = call.engine.usage(container, call.now).await?.live;
    let size = kilobytes(live.bytes);
    reply.set(
        &headers::RESOURCE_QUOTA,
        "documentSize=10240;documentsSize=10485760;documentsCount=-1;collectionSize=10485760;",
    );
    reply.set(
        &headers::RESOURCE_USAGE,
        format!(
            "documentSize=0;documentsSize={size};documentsCount={};collectionSize={size};",
            live.documents
        ),
    );
    Ok(())
}

/// What each range holds.
pub async fn of_ranges(call: &Call<'_>, container: &Container) -> Result<Value, ApiError> {
    let mut ranges = Vec::with_capacity(container.ranges().len());
    for range in container.ranges() {
        let live = call.engine.range_usage(container, range, call.now).await?;
        let keys = sampled_keys(call, container, range.keys.clone()).await?;
        let named: Vec<_> = keys
            .iter()
            .take(KEYS_MAX)
            .map(|(key, bytes)| json!({ "partitionKey": key, "sizeInKB": kilobytes(*bytes) }))
            .collect();
        ranges.push(json!({
            "id": range.id.to_string(),
            "sizeInKB": kilobytes(live.bytes),
            "documentCount": live.documents,
            "sampledDistinctPartitionKeyCount": keys.len(),
            "partitionKeys": named,
        }));
    }
    Ok(Value::Array(ranges))
}

/// The keys of a sample, the largest first.
async fn sampled_keys(
    call: &Call<'_>,
    container: &Container,
    range: HashRange,
) -> Result<Vec<(Value, u64)>, ApiError> {
    let access = Access::Records(range);
    let page = call.engine.scan(container, &access, Direction::Forward, None, SAMPLE, call.now).await?;
    // Documents of a logical partition stand together.
    let mut keys: Vec<(String, u64)> = Vec::new();
    for found in &page.found {
        let key = container.definition().partition_key.extract(found.record.body())?.to_json();
        let bytes = u64::from(found.record.size());
        match keys.last_mut() {
            Some((last, sum)) if *last == key => *sum += bytes,
            _ => keys.push((key, bytes)),
        }
    }
    keys.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    let value = |key: &str| serde_json::from_str(key).map_err(|_| ApiError::internal());
    keys.iter().map(|(key, bytes)| Ok((value(key)?, *bytes))).collect()
}
