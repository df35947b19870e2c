//! Places: points, lines and polygons in documents and queries.
//!
//! GeoJSON and `$centerSphere` are on the sphere, where an edge is the shorter great circle between its ends;
//! `$box`, `$center` and `$polygon` are in the plane of legacy coordinate pairs. Points are held as unit
//! vectors on the sphere, so that neither poles nor the date line are special.

mod cover;
mod plane;
mod shape;
mod sphere;

use bson::RawDocument;

use crate::error::{BAD_VALUE, Result, bail};
use crate::values::{Ref, as_double, field, fields, items};
pub use cover::{Area, Surface};
pub(crate) use cover::{cover_value, pair_of};
use plane::Flat;
use shape::Shape;

/// Metres; the radius MongoDB computes with.
pub(crate) const EARTH_RADIUS: f64 = 6_378_100.0;

/// What `$geoWithin` and `$geoIntersects` compare with.
#[derive(Debug, Clone)]
pub(crate) enum Region {
    Flat(Flat),
    Cap { centre: sphere::Vector, radians: f64 },
    Shape(Shape),
}

fn numbers(value: Ref<'_>) -> Option<Vec<f64>> {
    match value {
        Ref::Array(array) => items(array).map(as_double).collect(),
        Ref::Document(object) => fields(object).map(|(_, value)| as_double(value)).collect(),
        _ => None,
    }
}

/// A legacy pair: an array or an object of (at least) two numbers.
fn pair(value: Ref<'_>) -> Option<[f64; 2]> {
    match numbers(value)?.as_slice() {
        [x, y, ..] => Some([*x, *y]),
        _ => None,
    }
}

fn pair_or_refuse(value: Ref<'_>) -> Result<[f64; 2]> {
    match pair(value) {
        Some(pair) => Ok(pair),
        None => bail!(BAD_VALUE, "Point must be an array or object of two numbers"),
    }
}

fn centre_and_radius(value: Ref<'_>) -> Result<([f64; 2], f64)> {
    let Ref::Array(array) = value else { bail!(BAD_VALUE, "a circle needs an array of centre and radius") };
    let parts: Vec<_> = items(array).collect();
    match parts.as_slice() {
        [centre, radius] => match as_double(*radius) {
            Some(radius) if radius >= 0.0 => Ok((pair_or_refuse(*centre)?, radius)),
            _ => bail!(BAD_VALUE, "radius must be a non-negative number"),
        },
        _ => bail!(BAD_VALUE, "a circle needs an array of centre and radius"),
    }
}

fn pairs(value: Ref<'_>) -> Result<Vec<[f64; 2]>> {
    match value {
        Ref::Array(array) => items(array).map(pair_or_refuse).collect(),
        Ref::Document(object) => fields(object).map(|(_, value)| pair_or_refuse(value)).collect(),
        _ => bail!(BAD_VALUE, "Polygon must be an array of points"),
    }
}

impl Region {
    /// The operand of `$geoWithin`.
    pub(crate) fn parse_within(operand: Ref<'_>) -> Result<Region> {
        let Ref::Document(object) = operand else { bail!(BAD_VALUE, "geo query must be an object") };
        let Some((name, value)) = fields(object).find(|(name, _)| !name.starts_with("$unique")) else {
            bail!(BAD_VALUE, "geo query doesn't have any geometry")
        };
        match name {
            "$geometry" => match value {
                Ref::Document(geometry) => {
                    let shape = Shape::parse(geometry)?;
                    if !shape.is_area() {
                        bail!(BAD_VALUE, "$within not supported with provided geometry");
                    }
                    Ok(Region::Shape(shape))
                }
                _ => bail!(BAD_VALUE, "geometry must be an object"),
            },
            "$box" => match pairs(value)?.as_slice() {
                [a, b] => Ok(Region::Flat(Flat::rectangle(*a, *b))),
                _ => bail!(BAD_VALUE, "$box needs two corners"),
            },
            "$center" => {
                let (centre, radius) = centre_and_radius(value)?;
                Ok(Region::Flat(Flat::Circle { centre, radius }))
            }
            "$polygon" => {
                let corners = pairs(value)?;
                if corners.len() < 3 {
                    bail!(BAD_VALUE, "Polygon must have at least 3 points");
                }
                Ok(Region::Flat(Flat::Polygon(corners)))
            }
            "$centerSphere" => {
                let (centre, radians) = centre_and_radius(value)?;
                Ok(Region::Cap { centre: shape::vertex(centre)?, radians })
            }
            _ => bail!(BAD_VALUE, "unknown geo specifier: {name}"),
        }
    }

    /// The operand of `$geoIntersects`.
    pub(crate) fn parse_intersects(operand: Ref<'_>) -> Result<Region> {
        let Ref::Document(object) = operand else { bail!(BAD_VALUE, "geo query must be an object") };
        match field(object, "$geometry") {
            Some(Ref::Document(geometry)) => Ok(Region::Shape(Shape::parse(geometry)?)),
            _ => bail!(BAD_VALUE, "$geoIntersects needs a $geometry"),
        }
    }

    /// Whether the value is a place that lies inside.
    pub(crate) fn contains(&self, value: Ref<'_>) -> bool {
        match self {
            Region::Flat(flat) => {
                places(value, &|value| pair(value).is_some_and(|point| flat.contains(point)))
            }
            Region::Cap { centre, radians } => places(value, &|value| {
                Shape::of_value(value)
                    .is_some_and(|shape| shape.points().all(|p| centre.angle(p) <= *radians))
            }),
            Region::Shape(region) => {
                places(value, &|value| Shape::of_value(value).is_some_and(|shape| region.contains(&shape)))
            }
        }
    }

    /// Whether the value is a shape that has a point in common.
    pub(crate) fn intersects(&self, value: Ref<'_>) -> bool {
        match self {
            Region::Shape(region) => {
                places(value, &|value| Shape::of_value(value).is_some_and(|shape| region.intersects(&shape)))
            }
            _ => self.contains(value),
        }
    }
}

/// A value may be a place, or an array of places.
fn places(value: Ref<'_>, passes: &dyn Fn(Ref<'_>) -> bool) -> bool {
    passes(value)
        || match value {
            Ref::Array(array) => items(array).any(|item| !matches!(item, Ref::Double(_)) && passes(item)),
            _ => false,
        }
}

/// `$near`: how far a place is, and whether that is near enough.
#[derive(Debug, Clone)]
pub(crate) struct NearQuery {
    origin: [f64; 2],
    /// GeoJSON origins give metres, legacy pairs radians (`$nearSphere`) or units of the plane (`$near`).
    unit: Unit,
    nearest: f64,
    farthest: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Metres,
    Radians,
    Plane,
}

impl NearQuery {
    pub(crate) fn parse(name: &str, siblings: &RawDocument) -> Result<NearQuery> {
        let distance = |object: &RawDocument, name: &str| match field(object, name) {
            None => Ok(None),
            Some(value) => match as_double(value) {
                Some(distance) if distance >= 0.0 => Ok(Some(distance)),
                Some(_) => bail!(BAD_VALUE, "{name} must be non-negative"),
                None => bail!(BAD_VALUE, "{name} must be a number"),
            },
        };
        let Some(operand) = field(siblings, name) else { bail!(BAD_VALUE, "{name} needs a point") };
        let geometry = operand.as_document().and_then(|object| field(object, "$geometry"));
        let (origin, unit, object) = match (geometry, operand) {
            (Some(Ref::Document(geometry)), Ref::Document(object)) => {
                (Shape::parse(geometry)?.point(), Unit::Metres, object)
            }
            _ => {
                let unit = if name == "$nearSphere" { Unit::Radians } else { Unit::Plane };
                (pair(operand), unit, siblings)
            }
        };
        let Some(origin) = origin else { bail!(BAD_VALUE, "{name} requires a point") };
        Ok(NearQuery {
            origin,
            unit,
            nearest: distance(object, "$minDistance")?.unwrap_or(0.0),
            farthest: distance(object, "$maxDistance")?.unwrap_or(f64::INFINITY),
        })
    }

    /// The distance of the value's nearest place, if it has one.
    pub(crate) fn distance(&self, value: Ref<'_>) -> Option<f64> {
        let own = match self.unit {
            Unit::Plane => pair(value).map(|point| plane::distance(self.origin, point)),
            _ => Shape::of_value(value).and_then(|shape| {
                let angle = shape.distance(shape::vertex(self.origin).ok()?);
                Some(if self.unit == Unit::Metres { angle * EARTH_RADIUS } else { angle })
            }),
        };
        match (own, value) {
            (None, Ref::Array(array)) => {
                items(array).filter_map(|item| self.distance_of_item(item)).min_by(f64::total_cmp)
            }
            (own, _) => own,
        }
    }

    fn distance_of_item(&self, item: Ref<'_>) -> Option<f64> {
        matches!(item, Ref::Array(_) | Ref::Document(_)).then(|| self.distance(item)).flatten()
    }

    pub(crate) fn reaches(&self, value: Ref<'_>) -> bool {
        self.distance(value).is_some_and(|distance| (self.nearest..=self.farthest).contains(&distance))
    }
}
