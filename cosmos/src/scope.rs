//! Which documents of a container a feed or query may see.
//!
//! The most specific wins: a partition key (whole or, for hierarchical keys, a prefix), then a range of effective keys,
//! then a partition key range, then the whole container. The scope is honoured exactly: nothing outside it is shown.

use mayfly_engine::{Container, HashRange, PartitionKeyRange};
use mayfly_value::partition::Epk;

use crate::{call::Call, error::ApiError, headers};

impl Call<'_> {
    /// The scope of a feed or query.
    pub fn scope(&self, container: &Container) -> Result<HashRange, ApiError> {
        let range = self.partition_key_range(container)?;
        if let Some(key) = self.partition_key_if_any()? {
            let definition = &container.definition().partition_key;
            definition.check_key(&key)?;
            let (start, end) = definition.prefix_range(&key);
            return Ok(HashRange { start, end });
        }
        let bound = |name| {
            let text = self.text(name)?.filter(|text| !text.is_empty());
            text.map(|hex| Epk::from_hex(hex).map_err(ApiError::from)).transpose()
        };
        let (start, end) = (bound(&headers::START_EPK)?, bound(&headers::END_EPK)?);
        if start.is_none() && end.is_none() {
            return Ok(range.unwrap_or_else(HashRange::all));
        }
        let asked = HashRange { start: start.unwrap_or(Epk(Vec::new())), end };
        Ok(match range {
            Some(range) => intersection(asked, range),
            None => asked,
        })
    }

    /// The partition key range the request names, `id` or `collRid,id`.
    fn partition_key_range(&self, container: &Container) -> Result<Option<HashRange>, ApiError> {
        let Some(text) = self.text(&headers::PARTITION_KEY_RANGE_ID)? else { return Ok(None) };
        let id = text.rsplit(',').next().unwrap_or_default().trim();
        let range = id.parse().ok().and_then(|id| container.range(id));
        range.map(|range| Some(range.keys.clone())).ok_or_else(ApiError::partition_key_range_gone)
    }

    /// The range that an answer about documents of a slot comes from: the first in scope.
    pub fn range_in_slot(&self, container: &Container, slot: u16) -> Result<u32, ApiError> {
        let (scope, is_there) = (self.scope(container)?, |range: &&PartitionKeyRange| range.slot == slot);
        let range = scope.ranges(container).find(is_there).or(container.ranges().iter().find(is_there));
        range.map(|range| range.id).ok_or_else(ApiError::internal)
    }

    /// The slot a scope lies in, whose change feed is read. Ranges that came of one are in one slot, so a
    /// position in the feed of that one holds for all of them.
    pub fn slot_of_scope(&self, container: &Container, scope: &HashRange) -> Result<u16, ApiError> {
        let slots = scope.slots(container);
        match slots[..] {
            [slot] => Ok(slot),
            [] => Ok(0),
            _ => Err(ApiError::bad_request(
                "A change feed over several partition key ranges is read range by range: name one in \
                 x-ms-documentdb-partitionkeyrangeid.",
            )),
        }
    }
}

fn intersection(a: HashRange, b: HashRange) -> HashRange {
    let end = match (a.end, b.end) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
    HashRange { start: a.start.max(b.start), end }
}
