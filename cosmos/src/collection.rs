//! A collection of the MongoDB protocol as the NoSQL API shows it.
//!
//! Its documents are items whose `id` is the text of their `_id`. They are read here and written there: an item has
//! no place for what MongoDB keeps of a document (types of numbers, an `_id` of any type, indexes with their rules), so
//! a write through this API would lose some of it. It is refused instead.

use std::borrow::Cow;

use bson::{RawBsonRef, RawDocument, RawDocumentBuf, raw::cstr};
use mayfly_engine::{Container, ContainerDefinition, Record};
use mayfly_value::json;
use serde_json::{Map, Value};

use crate::{error::ApiError, policy};

/// What the server writes into every item itself; fields of these names are not shown.
const OWN: [&str; 6] = ["id", "_rid", "_self", "_etag", "_attachments", "_ts"];

/// Refuses to write into a collection.
pub fn refuse_writes(container: &Container) -> Result<(), ApiError> {
    match container.is_collection() {
        true => Err(ApiError::bad_request(
            "This container is a collection that was made through the MongoDB protocol. Here it can be read and given another \
             default time to live; for everything else, use MongoDB.",
        )),
        false => Ok(()),
    }
}

/// A collection's definition with the default time to live of a body, which may differ from it in nothing else.
pub fn redefined(container: &Container, body: &Map<String, Value>) -> Result<ContainerDefinition, ApiError> {
    let shown = policy::to_json(container.definition());
    let differs = |(name, value): (&String, &Value)| {
        name != "defaultTtl" && !name.starts_with('_') && shown.get(name) != Some(value)
    };
    if body.iter().any(differs) {
        refuse_writes(container)?;
    }
    let default_ttl = policy::default_ttl(body.get("defaultTtl"))?;
    Ok(ContainerDefinition { default_ttl, ..container.definition().clone() })
}

/// What a record shows of itself as an item.
pub fn shown<'a>(container: &Container, record: &'a Record) -> Result<Cow<'a, RawDocument>, ApiError> {
    if !container.is_collection() {
        return Ok(Cow::Borrowed(record.body()));
    }
    item(record.body()).map(Cow::Owned).map_err(|_| ApiError::internal())
}

/// A document of a collection as an item.
fn item(document: &RawDocument) -> Result<RawDocumentBuf, bson::error::Error> {
    let mut item = RawDocumentBuf::new();
    if let Some(id) = document.get("_id")? {
        item.append(cstr!("id"), id_text(id));
    }
    for field in document.iter() {
        let (name, value) = field?;
        if !OWN.contains(&name.as_str()) {
            item.append(name, value);
        }
    }
    Ok(item)
}

/// An `_id` as a text: a text is itself, the identifiers that drivers make are their hexadecimal digits, all else is JSON.
fn id_text(id: RawBsonRef<'_>) -> String {
    match id {
        RawBsonRef::String(text) => text.to_owned(),
        RawBsonRef::ObjectId(id) => id.to_hex(),
        other => {
            let mut out = Vec::new();
            // What cannot be written is no `_id` that the engine would have taken.
            let _ = json::write_value(other, &mut out);
            String::from_utf8_lossy(&out).into_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::{doc, oid::ObjectId};

    fn shown_id(id: bson::Bson) -> String {
        let document = RawDocumentBuf::try_from(&doc! { "_id": id }).unwrap();
        item(&document).unwrap().get_str("id").unwrap().to_owned()
    }

    #[test]
    fn the_id_of_an_item_is_the_text_of_the_documents() {
        assert_eq!(shown_id("a/b".into()), "a/b");
        assert_eq!(shown_id(7.into()), "7");
        assert_eq!(shown_id(ObjectId::from_bytes([1; 12]).into()), "01".repeat(12));
        assert_eq!(shown_id(doc! { "a": 1 }.into()), "{\"a\":1}");
        assert_eq!(shown_id(bson::Bson::Null), "null");
    }

    #[test]
    fn fields_that_the_server_writes_are_left_out() {
        let document = doc! { "_id": 1, "id": "own", "_ts": 5, "a": 1 };
        let item = item(&RawDocumentBuf::try_from(&document).unwrap()).unwrap();
        assert_eq!(bson::Document::try_from(item).unwrap(), doc! { "id": "1", "_id": 1, "a": 1 });
    }
}
