//! What a query tells of how a document is kept: its record id (`showRecordId`), or the index entry it was found by (`returnKey`).
//! Projections and stages ask for the same with `$meta`.
//!
//! A record id is the place in the order of writes where the document was made, so it grows from one to the next and stays what it is.
//! An entry is made of the document again. Where an array gives an index several entries of a document, it is the first in the
//! order of the index whose value alone would pass the filter.

use bson::{RawBsonRef, RawDocument, RawDocumentBuf, raw::cstr};

use crate::{
    failure::{Failure, Result},
    filter::Filter,
    filtering::Surroundings,
    planner::Plan,
    reader::Body,
    values::{Ref, as_double, field, fields, items, put},
};

/// What is told beside a document, or instead of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disclosed {
    /// Beside the document, its record id.
    RecordId,
    /// Instead of the document, its entry in the index that was used.
    Key,
}

/// What `$meta` asks for that is not in the document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// The index entry the document was found by.
    pub index_key: bool,
    /// Its record id.
    pub record_id: bool,
    /// The values it is sorted by.
    pub sort_key: bool,
}

impl Metadata {
    /// What a projection or the stages of a pipeline ask for.
    pub fn asked_in(value: Ref<'_>) -> Self {
        let mut asked = Self::default();
        asked.collect(value);
        asked
    }

    fn collect(&mut self, value: Ref<'_>) {
        match value {
            Ref::Document(object) => {
                for (name, value) in fields(object) {
                    match (name, value) {
                        ("$meta", Ref::String("indexKey")) => self.index_key = true,
                        ("$meta", Ref::String("recordId")) => self.record_id = true,
                        ("$meta", Ref::String("sortKey")) => self.sort_key = true,
                        (_, value) => self.collect(value),
                    }
                }
            }
            Ref::Array(list) => items(list).for_each(|item| self.collect(item)),
            _ => {}
        }
    }
}

/// A field of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyField {
    path: String,
    descends: bool,
}

impl KeyField {
    /// A field that goes up.
    pub fn ascending(path: &str) -> Self {
        Self { path: path.to_owned(), descends: false }
    }
}

/// The fields of the index that a plan walks; none where it walks no index.
pub fn key_fields(plan: &Plan) -> Result<Vec<KeyField>> {
    match plan {
        Plan::Scan => Ok(Vec::new()),
        Plan::Ids(_) | Plan::IdRange(_) => Ok(vec![KeyField::ascending("_id")]),
        Plan::Index { spec, .. } => {
            let spec = RawDocument::from_bytes(spec)?;
            let Some(RawBsonRef::Document(key)) = spec.get("key")? else { return Ok(Vec::new()) };
            let is_plain =
                fields(key).all(|(name, way)| !matches!(way, Ref::String(_)) && !name.contains("$**"));
            if !is_plain || spec.get("collation")?.is_some() {
                return Err(Failure::new(
                    238,
                    "find with returnKey is not supported with an index of this kind",
                ));
            }
            let descends = |way: Ref<'_>| as_double(way).is_some_and(|way| way < 0.0);
            Ok(fields(key)
                .map(|(name, way)| KeyField { path: name.to_owned(), descends: descends(way) })
                .collect())
        }
    }
}

/// The entry by which a filter found a document, in an index of these fields.
pub fn key(
    document: &RawDocument,
    key: &[KeyField],
    filter: &Filter,
    surroundings: &Surroundings,
) -> Result<RawDocumentBuf> {
    let mut entry = RawDocumentBuf::new();
    for KeyField { path, descends } in key {
        let parts: Vec<&str> = path.split('.').collect();
        let mut value = Some(Ref::Document(document));
        let mut array = None;
        for (place, part) in parts.iter().enumerate() {
            value = match value {
                Some(Ref::Document(object)) => field(object, part),
                _ => None,
            };
            if let Some(Ref::Array(list)) = value {
                array = Some((list, place + 1));
                break;
            }
        }
        let Some((list, depth)) = array else {
            put(&mut entry, path, value.unwrap_or(Ref::Null));
            continue;
        };
        let (before, rest) = parts.split_at(depth);
        let mut values: Vec<(Ref<'_>, Ref<'_>)> =
            items(list).map(|item| (value_within(item, rest), item)).collect();
        values.sort_by(|(a, _), (b, _)| {
            let order = mayfly_value::order::compare(mayfly_value::Order::Mongo, *a, *b);
            if *descends { order.reverse() } else { order }
        });
        let mut found = None;
        for (value, item) in &values {
            if surroundings.matches(filter, &replaced(document, before, *item))? {
                found = Some(*value);
                break;
            }
        }
        put(&mut entry, path, found.or_else(|| values.first().map(|(value, _)| *value)).unwrap_or(Ref::Null));
    }
    Ok(entry)
}

/// The value at a path of an item of an array.
fn value_within<'a>(item: Ref<'a>, rest: &[&str]) -> Ref<'a> {
    rest.iter().fold(item, |value, part| match value {
        Ref::Document(object) => field(object, part).unwrap_or(Ref::Null),
        _ => Ref::Null,
    })
}

/// A document with another value at a path.
fn replaced(document: &RawDocument, path: &[&str], value: Ref<'_>) -> RawDocumentBuf {
    let mut out = RawDocumentBuf::new();
    for (name, old) in fields(document) {
        match (path, old) {
            ([last], _) if *last == name => put(&mut out, name, value),
            ([first, rest @ ..], Ref::Document(object)) if *first == name => {
                put(&mut out, name, replaced(object, rest, value));
            }
            _ => put(&mut out, name, old),
        }
    }
    out
}

/// The record id of a document.
pub fn record_id(document: &Body) -> Result<i64> {
    let Some(record) = document.record() else {
        let message = "a document that the transaction itself has written has no record id yet";
        return Err(Failure::new(238, message));
    };
    // There are at most 65,536 documents in a commit.
    Ok(((record.birth.lsn << 16) | u64::from(record.birth.ordinal)) as i64)
}

/// A document with its record id.
pub fn with_record_id(mut document: RawDocumentBuf, id: i64) -> RawDocumentBuf {
    document.append(cstr!("$recordId"), id);
    document
}
