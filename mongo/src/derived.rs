//! Indexes whose values are computed from a document: words of texts, cells of a grid for places, paths with their values.
//!
//! The engine keeps what is computed here as the values of one field, and walks ranges of them. A range may be wider than
//! what is asked for and is never narrower; the filter decides.
//!
//! | kind | a value | a search |
//! |---|---|---|
//! | `text` | a term | the terms, one by one |
//! | `2dsphere`, `2d` | a cell, as digits from the whole grid down | the cells of a region: what lies in them and around them |
//! | `$**` | an array of path and value | as in an index on the path |

pub(crate) mod cells;
pub(crate) mod wildcard;

use std::sync::Arc;

use bson::{RawBson, RawDocument};
use mayfly_engine::collection::Derive;

use crate::{
    geo::{self, Surface},
    namespace::Collection,
    path::{Leaf, Path},
    text::{NO_LANGUAGE, TextIndex, UNKNOWN_LANGUAGE},
    values::{Ref, as_double, field, fields},
};
use cells::Grid;
use wildcard::Wildcard;

/// How the refusal of a point begins that lies outside of a `2d` index.
const OUT_OF_GRID: &str = "point not in interval";

/// How the refusal of a value begins that is no pair of numbers, as a `2d` index wants them.
const NO_PAIR: &str = "location object expected, location array not in correct format";

/// MongoDB's code of a refusal that `derive` gave.
pub(crate) fn refusal_code(reason: &str) -> i32 {
    let codes = [(OUT_OF_GRID, 13027), (NO_PAIR, 16804), (UNKNOWN_LANGUAGE, 17262), (NO_LANGUAGE, 17261)];
    codes.iter().find(|(beginning, _)| reason.starts_with(beginning)).map_or(16755, |(_, code)| *code)
}

/// What kind of index a definition describes, if it has a derived field.
pub(crate) enum Kind {
    /// Words.
    Text(TextIndex),
    /// Places on the sphere, at a path.
    Sphere(String),
    /// Points of the plane, at a path.
    Plane(String, Grid),
    /// All paths.
    Wildcard(Wildcard),
}

impl Kind {
    /// Reads a definition as it is shown.
    pub(crate) fn of(spec: &RawDocument) -> Option<Kind> {
        let key = field(spec, "key")?.as_document()?;
        fields(key).find_map(|(path, value)| match value {
            Ref::String("text") => Some(Kind::Text(TextIndex::of(spec))),
            Ref::String("2dsphere") => Some(Kind::Sphere(path.to_string())),
            Ref::String("2d") => {
                let number = |name, default| field(spec, name).and_then(as_double).unwrap_or(default);
                let grid = Grid::square(number("min", -180.0), number("max", 180.0));
                Some(Kind::Plane(path.to_string(), grid))
            }
            _ if path == "$**" || path.ends_with(".$**") => Some(Kind::Wildcard(Wildcard::of(path, spec))),
            _ => None,
        })
    }
}

/// The paths that a collection has indexes of places on, each with its surface.
pub(crate) fn place_paths(collection: &Collection) -> Vec<(String, Surface)> {
    let rules = collection.container.definition().index_rules.iter().filter(|rule| !rule.building);
    let kinds = rules.filter_map(|rule| Kind::of(RawDocument::from_bytes(&rule.spec).ok()?));
    kinds
        .filter_map(|kind| match kind {
            Kind::Sphere(path) => Some((path, Surface::Sphere)),
            Kind::Plane(path, _) => Some((path, Surface::Plane)),
            _ => None,
        })
        .collect()
}

/// The values of documents in an index with this definition.
pub(crate) fn derive(spec: &RawDocument) -> Result<Derive, String> {
    let kind = Kind::of(spec).ok_or("the index has no derived field")?;
    Ok(match kind {
        Kind::Text(index) => Arc::new(move |document| match index.refusal(document) {
            Some(reason) => Err(reason),
            None => Ok(index.terms(document).into_iter().map(RawBson::String).collect()),
        }),
        Kind::Sphere(path) => {
            let path = Path::new(&path);
            Arc::new(move |document| {
                let (mut found, mut wrong) = (Vec::new(), None);
                places(&path, document, &mut |value| match geo::cover_value(value) {
                    Some(cells) => found.extend(cells.into_iter().map(RawBson::String)),
                    None => wrong = Some(format!("Can't extract geo keys: unknown geometry: {value:?}")),
                });
                wrong.map_or(Ok(found), Err)
            })
        }
        Kind::Plane(path, grid) => {
            let path = Path::new(&path);
            Arc::new(move |document| {
                let (mut found, mut wrong) = (Vec::new(), None);
                places(
                    &path,
                    document,
                    &mut |value| match geo::pair_of(value).map(|point| grid.cell(point)) {
                        Some(Some(cell)) => found.push(RawBson::String(cell)),
                        Some(None) => wrong = Some(format!("{OUT_OF_GRID} of the index: {value:?}")),
                        None => wrong = Some(format!("{NO_PAIR}: {value:?}")),
                    },
                );
                wrong.map_or(Ok(found), Err)
            })
        }
        Kind::Wildcard(wildcard) => Arc::new(move |document| wildcard.values(document)),
    })
}

/// Shows each place at a path: the value itself, or the items of an array of places. Null is no place.
fn places(path: &Path, document: &RawDocument, visit: &mut dyn FnMut(Ref<'_>)) {
    path.any(document, Leaf::Whole, &mut |value, _| {
        match value {
            None | Some(Ref::Null | Ref::Undefined) => {}
            Some(Ref::Document(object)) if object.is_empty() => {}
            Some(Ref::Array(list))
                if !crate::values::items(list).next().is_some_and(crate::values::is_number) =>
            {
                crate::values::items(list).for_each(&mut *visit);
            }
            Some(value) => visit(value),
        }
        false
    });
}
