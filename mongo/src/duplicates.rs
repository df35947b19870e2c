//! Error 11000: which index, which values. Applications read the text, so it is MongoDB's to the letter.

use bson::{Bson, Document, RawDocument, RawDocumentBuf, doc};

use crate::{failure::Failure, namespace::Collection};

/// The failure of a write whose values are taken in an index.
pub fn failure(collection: &Collection, index: &str, spec: &Document, document: &RawDocument) -> Failure {
    let pattern = spec.get_document("key").cloned().unwrap_or_else(|_| doc! { "_id": 1 });
    let mut values = Document::new();
    for path in pattern.keys() {
        values.insert(path, value_at(document, path));
    }
    let shown: Vec<String> = values.iter().map(|(name, value)| format!("{name}: {}", text(value))).collect();
    let collation = spec.get_document("collation").ok();
    let by = collation.map(|collation| format!("collation: {} ", text(&Bson::from(collation.clone()))));
    let message = format!(
        "E11000 duplicate key error collection: {} index: {index} {}dup key: {{ {} }}",
        collection.namespace(),
        by.unwrap_or_default(),
        shown.join(", ")
    );
    let failure = Failure::new(11000, message).field("keyPattern", pattern).field("keyValue", values);
    match collation {
        Some(collation) => failure.field("collation", collation.clone()),
        None => failure,
    }
}

/// The failure of an insert whose `_id` is taken.
pub fn id_taken(collection: &Collection, document: &RawDocumentBuf) -> Failure {
    failure(collection, "_id_", &doc! { "key": { "_id": 1 } }, document)
}

/// The first value at a path, looking into arrays.
fn value_at(document: &RawDocument, path: &str) -> Bson {
    let whole = Document::try_from(document).unwrap_or_default();
    let mut value = Bson::from(whole);
    for part in path.split('.') {
        value = match value {
            Bson::Document(mut inner) => inner.remove(part).unwrap_or(Bson::Null),
            Bson::Array(items) => match part.parse::<usize>() {
                Ok(place) => items.into_iter().nth(place).unwrap_or(Bson::Null),
                Err(_) => {
                    let found = items.into_iter().find_map(|item| item.as_document()?.get(part).cloned());
                    found.unwrap_or(Bson::Null)
                }
            },
            _ => Bson::Null,
        };
    }
    match value {
        Bson::Array(items) => items.into_iter().next().unwrap_or(Bson::Undefined),
        value => value,
    }
}

/// A value as MongoDB's messages show it.
pub fn text(value: &Bson) -> String {
    match value {
        Bson::String(text) => format!("\"{text}\""),
        Bson::ObjectId(id) => format!("ObjectId('{id}')"),
        Bson::Document(document) => {
            let fields: Vec<String> =
                document.iter().map(|(name, value)| format!("{name}: {}", text(value))).collect();
            if fields.is_empty() { "{}".into() } else { format!("{{ {} }}", fields.join(", ")) }
        }
        Bson::Array(items) => {
            let items: Vec<String> = items.iter().map(text).collect();
            format!("[ {} ]", items.join(", "))
        }
        Bson::Double(number) if number.fract() == 0.0 && number.abs() < 1e15 => format!("{number:.1}"),
        Bson::DateTime(date) => format!("new Date({})", date.timestamp_millis()),
        Bson::Null => "null".into(),
        Bson::Undefined => "undefined".into(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::rawdoc;

    #[test]
    fn values_are_found_and_shown() {
        assert_eq!(text(&value_at(&rawdoc! { "a": { "b": "x" } }, "a.b")), "\"x\"");
        assert_eq!(text(&value_at(&rawdoc! { "a": [{ "b": 5 }] }, "a.b")), "5");
        assert_eq!(text(&value_at(&rawdoc! {}, "a")), "null");
        assert_eq!(text(&value_at(&rawdoc! { "a": [7, 8] }, "a")), "7");
    }
}
