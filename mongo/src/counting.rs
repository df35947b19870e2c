//! Pipelines that only count, as drivers send them for `countDocuments`: no document has to be read for the answer.
//!
//! ```text
//!   [{$match: filter}, {$skip: n}, {$limit: n}, {$group: {_id: 1, n: {$sum: 1}}}]
//!   [{$match: filter}, {$count: "n"}]
//! ```

use std::collections::VecDeque;

use bson::{RawArray, RawBson, RawBsonRef, RawDocument, RawDocumentBuf};

use crate::{
    call::{Call, integer},
    failure::Result,
    pipeline::Row,
    query::Query,
    values::put,
};

/// What such a pipeline asks for.
pub struct Counting {
    skip: u64,
    limit: Option<u64>,
    /// The key of the one group; none for `$count`.
    key: Option<RawBson>,
    name: String,
    has_filter: bool,
}

impl Counting {
    /// Reads a pipeline that has been parsed; none if it does more.
    pub fn of(stages: &RawArray) -> Result<Option<Self>> {
        let mut counting = Self { skip: 0, limit: None, key: None, name: String::new(), has_filter: false };
        // A skip after a limit, and a second filter, mean something else.
        let mut before = 0;
        for (place, stage) in stages.into_iter().enumerate() {
            let RawBsonRef::Document(stage) = stage? else { return Ok(None) };
            let Some((name, operand)) = stage.iter().next().transpose()? else { return Ok(None) };
            if !counting.name.is_empty() {
                return Ok(None);
            }
            let number = integer(operand).and_then(|number| u64::try_from(number).ok());
            let step = match (name.as_str(), number) {
                ("$match", _) if place == 0 => {
                    counting.has_filter = operand.as_document().is_some_and(|filter| !filter.is_empty());
                    1
                }
                ("$skip", Some(skip)) => {
                    counting.skip = skip;
                    2
                }
                ("$limit", Some(limit)) if limit > 0 => {
                    counting.limit = Some(limit);
                    3
                }
                ("$count", _) => {
                    counting.name = operand.as_str().unwrap_or_default().to_owned();
                    4
                }
                ("$group", _) => match operand.as_document().and_then(one_group) {
                    Some((key, name)) => {
                        (counting.key, counting.name) = (Some(key), name);
                        4
                    }
                    None => return Ok(None),
                },
                _ => return Ok(None),
            };
            if step <= before {
                return Ok(None);
            }
            before = step;
        }
        Ok((!counting.name.is_empty()).then_some(counting))
    }

    /// The answer.
    pub async fn run(self, mut query: Query, call: &Call<'_>) -> Result<VecDeque<Row>> {
        query.limit = self.limit.map(|limit| limit.saturating_add(self.skip));
        let is_whole = !self.has_filter && query.txn.is_none() && query.hint.is_none();
        let found = match (&query.collection, is_whole) {
            (Some(collection), true) => {
                call.mongo.engine.usage(&collection.container, call.now).await?.live.documents
            }
            _ => query.count(call.mongo, call.now).await?,
        };
        let count = found.saturating_sub(self.skip).min(self.limit.unwrap_or(u64::MAX));
        if count == 0 {
            return Ok(VecDeque::new());
        }
        let mut answer = RawDocumentBuf::new();
        if let Some(key) = self.key {
            put(&mut answer, "_id", key);
        }
        match i32::try_from(count) {
            Ok(count) => put(&mut answer, &self.name, count),
            Err(_) => put(&mut answer, &self.name, count as i64),
        }
        Ok(VecDeque::from([Row::made(answer)]))
    }
}

/// The key and the name of the count, if a `$group` has one group and counts only.
fn one_group(group: &RawDocument) -> Option<(RawBson, String)> {
    let (mut key, mut name) = (None, None);
    for (field, value) in group.iter().map_while(std::result::Result::ok) {
        match (field.as_str(), value) {
            (
                "_id",
                RawBsonRef::Null | RawBsonRef::Int32(_) | RawBsonRef::Int64(_) | RawBsonRef::Double(_),
            ) => {
                key = Some(RawBson::from(value));
            }
            (field, RawBsonRef::Document(sum)) if name.is_none() => {
                let mut sums = sum.iter().map_while(std::result::Result::ok);
                match (sums.next()?, sums.next()) {
                    ((operator, RawBsonRef::Int32(1)), None) if operator.as_str() == "$sum" => {
                        name = Some(field.to_owned());
                    }
                    _ => return None,
                }
            }
            _ => return None,
        }
    }
    Some((key?, name?))
}
