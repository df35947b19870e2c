//! The leaves of a document: what an index over its paths has to hold.
//!
//! One pass over the BSON bytes visits every scalar the rules include, each with its encoded path
//! (`keycode::encode_path` of the same steps). Items of an array share one path, with the step `[]`. Empty
//! arrays and objects have no leaves and are visited themselves, so that they can be found too.
//!
//! Holds: subtrees the rules exclude are skipped unread, and a leaf costs no allocation.

use bson::{RawBsonRef, RawDocument};

use crate::foreign::BsonError;
use crate::keycode::{push_path_end, push_path_item, push_path_property};
use crate::path::{PathRules, RuleCursor};

/// Calls `visit` with the encoded path and the value of every included leaf, in document order.
pub fn walk_leaves<'a>(
    document: &'a RawDocument,
    rules: &PathRules,
    visit: &mut dyn FnMut(&[u8], RawBsonRef<'a>),
) -> Result<(), BsonError> {
    Walk { path: Vec::with_capacity(64), visit }.object(document, rules.root(), 1)
}

struct Walk<'a, 'v> {
    /// The encoded path to where the walk stands, without its end.
    path: Vec<u8>,
    visit: &'v mut dyn FnMut(&[u8], RawBsonRef<'a>),
}

impl<'a> Walk<'a, '_> {
    fn object(
        &mut self,
        object: &'a RawDocument,
        rules: RuleCursor<'_>,
        depth: usize,
    ) -> Result<(), BsonError> {
        BsonError::check_depth(depth)?;
        let here = self.path.len();
        for element in object.iter_elements() {
            let element = element?;
            let name = element.key().as_str();
            let rules = rules.property(name);
            if rules.may_include() {
                push_path_property(&mut self.path, name);
                self.value(element.value()?, rules, depth + 1)?;
                self.path.truncate(here);
            }
        }
        Ok(())
    }

    fn array(
        &mut self,
        array: &'a bson::RawArray,
        rules: RuleCursor<'_>,
        depth: usize,
    ) -> Result<(), BsonError> {
        BsonError::check_depth(depth)?;
        let rules = rules.item();
        if !rules.may_include() {
            return Ok(());
        }
        let here = self.path.len();
        push_path_item(&mut self.path);
        for item in array {
            self.value(item?, rules, depth + 1)?;
        }
        self.path.truncate(here);
        Ok(())
    }

    fn value(&mut self, value: RawBsonRef<'a>, rules: RuleCursor<'_>, depth: usize) -> Result<(), BsonError> {
        match value {
            RawBsonRef::Document(object) if !object.is_empty() => self.object(object, rules, depth),
            RawBsonRef::Array(array) if !array.is_empty() => self.array(array, rules, depth),
            leaf => {
                if rules.includes_leaf() {
                    self.leaf(leaf);
                }
                Ok(())
            }
        }
    }

    fn leaf(&mut self, leaf: RawBsonRef<'a>) {
        let here = self.path.len();
        push_path_end(&mut self.path);
        (self.visit)(&self.path, leaf);
        self.path.truncate(here);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::DEPTH_MAX;
    use crate::keycode::{PathStep, encode_path, path_to_string};
    use crate::path::PathPattern;
    use bson::{RawDocumentBuf, rawdoc};

    fn leaves(document: &RawDocument, rules: &PathRules) -> Vec<String> {
        let mut found = Vec::new();
        let mut visit = |path: &[u8], value: RawBsonRef<'_>| {
            found.push(format!("{} {value:?}", path_to_string(path).unwrap()));
        };
        walk_leaves(document, rules, &mut visit).unwrap();
        found
    }

    #[test]
    fn every_scalar_is_visited_with_its_path() {
        let document = rawdoc! {
            "a": 1, "o": { "b": true, "e": {} }, "l": [1, [2], { "x": null }, []], "_etag": "e",
        };
        let rules = PathRules::new(
            vec![PathPattern::parse("/*").unwrap()],
            vec![PathPattern::parse("/\"_etag\"/?").unwrap()],
        );
        let found = leaves(&document, &rules);
        let paths: Vec<_> = found.iter().map(|line| line.split(' ').next().unwrap()).collect();
        assert_eq!(paths, ["/a", "/o/b", "/o/e", "/l/[]", "/l/[]/[]", "/l/[]/x", "/l/[]"]);
    }

    #[test]
    fn excluded_subtrees_are_not_entered() {
        let document = rawdoc! { "a": { "b": 1, "c": 2 }, "d": [1, 2] };
        let rules = PathRules::new(vec![PathPattern::parse("/a/c/?").unwrap()], vec![]);
        assert_eq!(leaves(&document, &rules), ["/a/c Int32(2)"]);
    }

    #[test]
    fn the_path_is_the_encoding_of_its_steps() {
        let mut paths = Vec::new();
        let document = rawdoc! { "l": [ { "x": 1 } ] };
        walk_leaves(&document, &PathRules::all(), &mut |path, _| paths.push(path.to_vec())).unwrap();
        let steps = [PathStep::Property("l"), PathStep::Item, PathStep::Property("x")];
        assert_eq!(paths, [encode_path(&steps)]);
    }

    #[test]
    fn bottomless_documents_are_refused() {
        let mut document = rawdoc! { "x": 1 };
        for _ in 0..DEPTH_MAX {
            let mut outer = RawDocumentBuf::new();
            outer.append(bson::raw::cstr!("x"), &document);
            document = outer;
        }
        let walked = walk_leaves(&document, &PathRules::all(), &mut |_, _| {});
        assert_eq!(walked, Err(BsonError::TooDeep { depth_max: DEPTH_MAX }));
    }
}
