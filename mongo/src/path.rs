//! Dotted paths into documents, the way the match language follows them through arrays.
//!
//! `a.b` looks into every object of an array `a`, one array per step; `a.0` is the first item or the field
//! named `0`, both are tried. A predicate sees each value in turn; where an object lacks the rest of the
//! path it sees nothing (`None`), where an array has no objects it is not asked at all.

use bson::{RawArray, RawDocument};

use crate::values::{Ref, field, items};

/// A path taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Path {
    pub(crate) dotted: String,
    parts: Vec<String>,
}

/// Whether an array at the end of a path stands for its items as well as for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leaf {
    Items,
    Whole,
}

/// Sees a value and the position in the outermost array that was entered on the way; true ends the walk.
pub(crate) type Visit<'v> = dyn FnMut(Option<Ref<'_>>, Option<usize>) -> bool + 'v;

impl Path {
    pub(crate) fn new(dotted: &str) -> Path {
        Path { dotted: dotted.to_string(), parts: dotted.split('.').map(str::to_string).collect() }
    }

    pub(crate) fn parts(&self) -> &[String] {
        &self.parts
    }

    /// Shows `visit` what the path leads to until it says true; tells whether it did.
    pub(crate) fn any(&self, document: &RawDocument, leaf: Leaf, visit: &mut Visit<'_>) -> bool {
        in_object(document, &self.parts, leaf, None, visit)
    }
}

fn in_object(
    object: &RawDocument,
    parts: &[String],
    leaf: Leaf,
    position: Option<usize>,
    visit: &mut Visit<'_>,
) -> bool {
    let Some((first, rest)) = parts.split_first() else { return visit(None, position) };
    match field(object, first) {
        Some(Ref::Array(array)) => in_array(array, rest, leaf, position, visit),
        Some(Ref::Document(inner)) if !rest.is_empty() => in_object(inner, rest, leaf, position, visit),
        Some(value) if rest.is_empty() => visit(Some(value), position),
        _ => visit(None, position),
    }
}

fn in_array(
    array: &RawArray,
    parts: &[String],
    leaf: Leaf,
    position: Option<usize>,
    visit: &mut Visit<'_>,
) -> bool {
    // A dot at the end of a path counts for nothing after an array.
    let parts = if parts.len() == 1 && parts.first().is_some_and(String::is_empty) { &[] } else { parts };
    let Some((first, rest)) = parts.split_first() else {
        let items_too = leaf == Leaf::Items;
        return (items_too
            && items(array).enumerate().any(|(at, item)| visit(Some(item), position.or(Some(at)))))
            || visit(Some(Ref::Array(array)), position);
    };
    let index: Option<usize> = parse_index(first);
    items(array).enumerate().any(|(at, item)| {
        let here = index == Some(at);
        match item {
            Ref::Document(object) => {
                in_object(object, parts, leaf, position.or(Some(at)), visit)
                    || (here && rest.is_empty() && visit(Some(item), position))
                    || (here && !rest.is_empty() && in_object(object, rest, leaf, position, visit))
            }
            Ref::Array(inner) if here && !rest.is_empty() => in_array(inner, rest, leaf, position, visit),
            _ => here && rest.is_empty() && visit(Some(item), position),
        }
    })
}

/// The parts of a reference to a document (DBRef).
pub(crate) fn is_reference_part(name: &str) -> bool {
    matches!(name, "$ref" | "$id" | "$db")
}

/// Names with a dollar sign that a path may have: the parts of a reference, and what shards tell a router.
pub(crate) fn is_allowed_dollar_name(name: &str) -> bool {
    is_reference_part(name) || matches!(name, "$sortKey" | "$recordId" | "$searchScore" | "$searchSortValues")
}

/// A path part that is a position in an array: digits without a zero in front.
pub(crate) fn parse_index(part: &str) -> Option<usize> {
    let plain = part.bytes().all(|byte| byte.is_ascii_digit()) && (part == "0" || !part.starts_with('0'));
    plain.then(|| part.parse().ok()).flatten()
}
