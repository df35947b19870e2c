//! What changed between two versions of a document, as change streams tell it.

use bson::{RawArray, RawArrayBuf, RawBson, RawDocument, RawDocumentBuf};

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
    /// Paths whose text could be read in another way, with their parts: texts are fields, numbers places in arrays.
    pub ambiguous: RawDocumentBuf,
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
        put(&mut document, "disambiguatedPaths", self.ambiguous.clone());
        document
    }
}

/// A path on the way down.
#[derive(Clone, Default)]
struct Place {
    text: String,
    parts: Vec<RawBson>,
    is_ambiguous: bool,
}

impl Place {
    fn field(&self, name: &str) -> Self {
        let mut place = self.then(name, name.into());
        // A number could be a place in an array, and a dot a step further down.
        place.is_ambiguous |= name.contains('.') || name.bytes().all(|byte| byte.is_ascii_digit());
        place
    }

    fn item(&self, at: usize) -> Self {
        self.then(&at.to_string(), RawBson::Int32(at as i32))
    }

    fn then(&self, text: &str, part: RawBson) -> Self {
        let mut place = self.clone();
        if !place.parts.is_empty() {
            place.text.push('.');
        }
        place.text += text;
        place.parts.push(part);
        place
    }

    /// The path, once it is to be told.
    fn told(&self, description: &mut Description) -> &str {
        if self.is_ambiguous {
            put(&mut description.ambiguous, &self.text, RawArrayBuf::from_iter(self.parts.iter().cloned()));
        }
        &self.text
    }
}

/// The difference of two versions.
pub fn describe(before: &RawDocument, after: &RawDocument) -> Description {
    let mut description = Description::default();
    objects(before, after, &Place::default(), &mut description);
    description
}

fn objects(before: &RawDocument, after: &RawDocument, place: &Place, description: &mut Description) {
    for (name, _) in fields(before) {
        if field(after, name).is_none() {
            let path = place.field(name).told(description).to_owned();
            description.removed.push(path);
        }
    }
    for (name, new) in fields(after) {
        values(field(before, name), new, &place.field(name), description);
    }
}

fn values(old: Option<Ref<'_>>, new: Ref<'_>, place: &Place, description: &mut Description) {
    match (old, new) {
        (Some(old), new) if old == new => {}
        (Some(Ref::Document(old)), Ref::Document(new)) => objects(old, new, place, description),
        (Some(Ref::Array(old)), Ref::Array(new)) => arrays(old, new, place, description),
        (_, new) => {
            let path = place.told(description);
            put(&mut description.updated, path, new);
        }
    }
}

fn arrays(old: &RawArray, new: &RawArray, place: &Place, description: &mut Description) {
    let (old, new): (Vec<_>, Vec<_>) = (items(old).collect(), items(new).collect());
    if new.len() < old.len() {
        let path = place.told(description).to_owned();
        description.truncated.push((path, new.len() as i32));
    }
    for (at, value) in new.into_iter().enumerate() {
        values(old.get(at).copied(), value, &place.item(at), description);
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
        assert!(description.ambiguous.is_empty());
    }

    #[test]
    fn paths_that_can_be_read_in_two_ways_are_told_in_parts() {
        let before = rawdoc! { "a": [{ "1": 1 }], "b": { "1": 1 }, "c.d": 1, "e": [1] };
        let after = rawdoc! { "a": [{ "1": 2 }], "b": {}, "c.d": 2, "e": [2] };
        let told = rawdoc! { "a.0.1": ["a", 0, "1"], "b.1": ["b", "1"], "c.d": ["c.d"] };
        assert_eq!(describe(&before, &after).ambiguous, told);
    }
}
