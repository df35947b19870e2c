//! `$geoNear`: documents by their distance from a point. Whoever reads the collection does what it says; here is what it
//! says.

use bson::{RawArrayBuf, RawDocument, RawDocumentBuf};

use super::{Parsed, Place, StageDefinition};
use crate::context::Context;
use crate::error::{BAD_VALUE, Result, TYPE_MISMATCH, bail};
use crate::expression::{Expression, Names, split_path, with_field};
use crate::filter::Filter;
use crate::path::{Leaf, Path};
use crate::values::{Ref, Value, as_double, field, fields, is_truthy, put};

pub(super) const STAGES: &[StageDefinition] = &[StageDefinition {
    name: "$geoNear",
    help: "documents by their distance from a point",
    parse: misplaced,
}];

fn misplaced(_: &str, _: Ref<'_>, _: Place<'_>) -> Result<Parsed> {
    bail!(40603, "$geoNear was not the first stage in the pipeline")
}

/// A parsed stage.
pub struct GeoNear {
    distance_field: Option<String>,
    location_field: Option<String>,
    multiplier: f64,
    /// The path of the places, if it is named.
    pub key: Option<String>,
    near: RawDocumentBuf,
    query: RawDocumentBuf,
}

impl GeoNear {
    /// Reads the stage.
    pub fn parse(operand: Ref<'_>, names: &Names, context: &Context<'_>) -> Result<GeoNear> {
        let Ref::Document(options) = operand else { bail!(10065, "$geoNear must be an object") };
        let text = |name: &str, code: i32| match field(options, name) {
            None => Ok(None),
            Some(Ref::String(text)) => Ok(Some(text.to_string())),
            Some(_) => bail!(code, "$geoNear parameter '{name}' must be of type string"),
        };
        let path = |name: &str, code: i32| match text(name, code)? {
            Some(path) => split_path(&path).map(|_| Some(path)),
            None => Ok(None),
        };
        let number = |name: &str| match field(options, name).map(as_double) {
            None => Ok(None),
            Some(Some(number)) => Ok(Some(number)),
            Some(None) => bail!(TYPE_MISMATCH, "$geoNear parameter '{name}' must be a number"),
        };
        let Some(point) = field(options, "near") else {
            bail!(5860400, "$geoNear requires a 'near' argument")
        };
        if matches!(point, Ref::String(path) if path.starts_with('$') && !path.starts_with("$$")) {
            bail!(5860402, "$geoNear requires a constant near argument");
        }
        let point = computed(point, names, context)?;
        let point = point.as_raw_bson_ref();
        if !matches!(point, Ref::Document(_) | Ref::Array(_)) {
            bail!(5860401, "$geoNear requires near argument to be a GeoJSON object or a legacy point");
        }
        let is_geojson = point.as_document().is_some_and(|point| field(point, "type").is_some());
        let is_spherical = is_geojson || is_truthy(field(options, "spherical"));
        let mut near = RawDocumentBuf::new();
        let mut operand = RawDocumentBuf::new();
        let bound = |name: &str, code: i32| match field(options, name) {
            Some(given @ (Ref::String(_) | Ref::Document(_))) => {
                let expression = Expression::parse(given, names)?;
                let code = if expression.constant().is_some() { TYPE_MISMATCH } else { code };
                match computed(given, names, context).map(|value| as_double(value.as_raw_bson_ref()))? {
                    Some(bound) => Ok(Some(bound)),
                    None => bail!(code, "$geoNear requires '{name}' to evaluate to a number"),
                }
            }
            _ => number(name),
        };
        let bounds = [("minDistance", 7555701), ("maxDistance", 7555702)].map(|(name, code)| {
            let bound = bound(name, code)?;
            if bound.is_some_and(|bound| bound.is_nan() || bound < 0.0) {
                bail!(BAD_VALUE, "{name} must be nonnegative");
            }
            Ok((if name == "minDistance" { "$minDistance" } else { "$maxDistance" }, bound))
        });
        let [least, most] = bounds;
        let bounds = [least?, most?];
        if is_geojson {
            put(&mut operand, "$geometry", point);
            for (name, bound) in bounds {
                if let Some(bound) = bound {
                    put(&mut operand, name, bound);
                }
            }
            put(&mut near, "$near", operand);
        } else {
            put(&mut near, if is_spherical { "$nearSphere" } else { "$near" }, point);
            for (name, bound) in bounds {
                if let Some(bound) = bound {
                    put(&mut near, name, bound);
                }
            }
        }
        let query = match field(options, "query") {
            None => RawDocumentBuf::new(),
            Some(Ref::Document(query)) => query.to_owned(),
            Some(_) => bail!(TYPE_MISMATCH, "$geoNear parameter 'query' must be an object"),
        };
        for (name, _) in fields(options) {
            let known = [
                "near",
                "distanceField",
                "spherical",
                "maxDistance",
                "minDistance",
                "query",
                "distanceMultiplier",
                "includeLocs",
                "key",
                "uniqueDocs",
            ];
            let gone = [("limit", 50858), ("num", 50857), ("start", 50856)];
            if let Some((_, code)) = gone.iter().find(|(gone, _)| *gone == name) {
                bail!(*code, "$geoNear no longer supports the '{name}' parameter");
            }
            if !known.contains(&name) {
                bail!(BAD_VALUE, "Unknown argument to $geoNear: {name}");
            }
        }
        let multiplier = number("distanceMultiplier")?.unwrap_or(1.0);
        if multiplier.is_nan() || multiplier < 0.0 {
            bail!(BAD_VALUE, "distanceMultiplier must be nonnegative");
        }
        if field(options, "key").is_some_and(|key| matches!(key, Ref::String(""))) {
            bail!(BAD_VALUE, "$geoNear parameter 'key' cannot be the empty string");
        }
        Ok(GeoNear {
            distance_field: path("distanceField", 16606)?,
            location_field: path("includeLocs", 16607)?,
            multiplier,
            key: text("key", TYPE_MISMATCH)?,
            near,
            query,
        })
    }

    /// The filter that finds the documents, in their order.
    pub fn filter(&self, path: &str, names: &crate::expression::Names) -> Result<Filter> {
        let mut by_distance = RawDocumentBuf::new();
        put(&mut by_distance, path, self.near.clone());
        let mut all = RawDocumentBuf::new();
        put(&mut all, "$and", RawArrayBuf::from_iter([self.query.clone(), by_distance]));
        Filter::parse(&all, names)
    }

    /// A document with its distance.
    pub fn told(&self, document: &RawDocument, distance: f64, path: &str) -> RawDocumentBuf {
        let mut told = document.to_owned();
        if let Some(field) = &self.distance_field {
            told = set(&told, field, Value::Double(distance * self.multiplier));
        }
        if let Some(field) = &self.location_field {
            let mut place = None;
            Path::new(path).any(document, Leaf::Whole, &mut |value, _| {
                place = value.map(Value::from);
                place.is_some()
            });
            if let Some(place) = place {
                told = set(&told, field, place);
            }
        }
        told
    }
}

/// The value of an expression that reads no document.
fn computed(given: Ref<'_>, names: &Names, context: &Context<'_>) -> Result<Value> {
    let value = Expression::parse(given, names)?.evaluate(&RawDocumentBuf::new(), context)?;
    Ok(value.unwrap_or(Value::Null))
}

/// The document with a value at a path, made of objects where there are none.
fn set(document: &RawDocument, path: &str, value: Value) -> RawDocumentBuf {
    match path.split_once('.') {
        None => with_field(document, path, Some(value)),
        Some((first, rest)) => {
            let inner = match field(document, first) {
                Some(Ref::Document(inner)) => inner.to_owned(),
                _ => RawDocumentBuf::new(),
            };
            with_field(document, first, Some(Value::Document(set(&inner, rest, value))))
        }
    }
}
