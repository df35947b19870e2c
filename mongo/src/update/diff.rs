//! What changed between two versions of a document, as change streams tell it.

use bson::{RawArray, RawArrayBuf, RawDocument, RawDocumentBuf};

use crate::values::{Ref, field, fields, items, put};

/// The description of an update.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Description {
    /// Dotted paths and their new values.
    pub updated: RawDocumentBuf,
    /// Dotted paths that are gone.
    pub removed: Vec<String>,
    /// Arrays that are shorter now, with their new lengths.
    pub truncated: Vec<(String, i32)>,
}

impl Description {
    /// As `updateDescription` of an event.
    pub fn to_document(&self) -> RawDocumentBuf {
        let mut document = RawDocumentBuf::new();
        put(&mut document, "updatedFields", self.updated.clone());
        put(&mut document, "removedFields", RawArrayBuf::from_iter(self.removed.iter().map(String::as_str)));
        let truncated = self.truncated.iter().map(|(path, size)| {
            let mut entry = RawDocumentBuf::new();
            put(&mut entry, "field", path.as_str());
            put(&mut entry, "newSize", *size);
            entry
        });
        put(&mut document, "truncatedArrays", RawArrayBuf::from_iter(truncated));
        document
    }
}

/// The difference of two versions.
pub fn describe(before: &RawDocument, after: &RawDocument) -> Description {
    let mut description = Description::default();
    objects(before, after, "", &mut description);
    description
}

fn join(path: &str, part: &str) -> String {
    if path.is_empty() { part.to_string() } else { format!("{path}.{part}") }
}

fn objects(before: &RawDocument, after: &RawDocument, path: &str, description: &mut Description) {
    for (name, _) in fields(before) {
        if field(after, name).is_none() {
            description.removed.push(join(path, name));
        }
    }
    for (name, new) in fields(after) {
        values(field(before, name), new, &join(path, name), description);
    }
}

fn values(old: Option<Ref<'_>>, new: Ref<'_>, path: &str, description: &mut Description) {
    match (old, new) {
        (Some(old), new) if old == new => {}
        (Some(Ref::Document(old)), Ref::Document(new)) => objects(old, new, path, description),
        (Some(Ref::Array(old)), Ref::Array(new)) => arrays(old, new, path, description),
        (_, new) => put(&mut description.updated, path, new),
    }
}

fn arrays(old: &RawArray, new: &RawArray, path: &str, description: &mut Description) {
    let (old, new): (Vec<_>, Vec<_>) = (items(old).collect(), items(new).collect());
    if new.len() < old.len() {
        description.truncated.push((path.to_string(), new.len() as i32));
    }
    for (at, value) in new.into_iter().enumerate() {
        values(old.get(at).copied(), value, &format!("{path}.{at}"), description);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::rawdoc;

    #[test]
    fn differences_name_the_smallest_parts() {
        let before = rawdoc! { "a": 1, "b": { "c": 1, "d": 2 }, "e": [1, 2, 3], "g": 1 };
        let after = rawdoc! { "a": 1, "b": { "c": 5, "d": 2 }, "e": [1, 9], "f": 1 };
        let description = describe(&before, &after);
        assert_eq!(description.updated, rawdoc! { "b.c": 5, "e.1": 9, "f": 1 });
        assert_eq!(description.removed, ["g"]);
        assert_eq!(description.truncated, [("e".to_string(), 2)]);
    }
}
