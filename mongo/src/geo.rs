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
        let mut shapes = fields(object).skip_while(|(name, _)| name.starts_with("$unique"));
        let Some((name, value)) = shapes.next() else {
            bail!(BAD_VALUE, "geo query doesn't have any geometry")
        };
        if shapes.next().is_some() {
            bail!(BAD_VALUE, "$geoWithin doesn't accept multiple shapes");
        }
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
                [a, b, ..] => Ok(Region::Flat(Flat::rectangle(*a, *b))),
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
            Region::Flat(flat) => places(value, &|value| {
                // Of GeoJSON, points lie in the plane too; lines and areas are on the sphere alone.
                pair(value).or_else(|| geojson_point(value)).is_some_and(|point| flat.contains(point))
            }),
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

fn distance(name: &str, value: Ref<'_>, (not_a_number, negative): (i32, i32)) -> Result<f64> {
    match as_double(value) {
        Some(distance) if distance >= 0.0 => Ok(distance),
        Some(_) => bail!(negative, "{name} must be non-negative"),
        None => bail!(not_a_number, "{name} must be a number"),
    }
}

/// A point that distances are measured from, whether it is GeoJSON, and the distance that may come as its third number.
fn centre_of(operand: Ref<'_>) -> Option<([f64; 2], bool, Option<f64>)> {
    match numbers(operand).as_deref() {
        Some([x, y, rest @ ..]) => Some(([*x, *y], false, rest.first().copied())),
        _ => geojson_point(operand).map(|point| (point, true, None)),
    }
}

/// A GeoJSON point, and no other shape.
fn geojson_point(value: Ref<'_>) -> Option<[f64; 2]> {
    let Ref::Document(object) = value else { return None };
    match field(object, "type") {
        Some(Ref::String("Point")) => Shape::parse(object).ok()?.point(),
        _ => None,
    }
}

impl NearQuery {
    /// Reads `$near` or `$nearSphere` with what stands beside it. A point alone has its distances as siblings; one in
    /// `$geometry` has them inside, and no siblings.
    pub(crate) fn parse(name: &str, siblings: &RawDocument) -> Result<NearQuery> {
        let Some(operand) = field(siblings, name) else { bail!(BAD_VALUE, "{name} needs a point") };
        let (mut nearest, mut farthest) = (0.0, f64::INFINITY);
        let mut centre = None;
        for (sibling, value) in fields(siblings) {
            match sibling {
                "$near" | "$nearSphere" | "$geoNear" => {
                    centre = centre_of(operand);
                    if let Some((_, _, Some(limit))) = centre {
                        if limit < 0.0 {
                            bail!(18522, "max distance must be non-negative");
                        }
                        farthest = limit;
                    }
                }
                "$minDistance" => nearest = distance("$minDistance", value, (16893, 16894))?,
                "$maxDistance" => farthest = distance("$maxDistance", value, (16895, 16896))?,
                "$uniqueDocs" => {}
                other => bail!(34413, "invalid argument in geo near query: {other}"),
            }
        }
        let Some((origin, is_geojson, _)) = centre else { return Self::parse_geometry(operand, siblings) };
        let unit = match name {
            _ if is_geojson => Unit::Metres,
            "$nearSphere" => Unit::Radians,
            _ => Unit::Plane,
        };
        if unit == Unit::Radians && shape::vertex(origin).is_err() {
            bail!(17444, "Legacy point is out of bounds for spherical query");
        }
        Ok(NearQuery { origin, unit, nearest, farthest })
    }

    /// The form with `$geometry`.
    fn parse_geometry(operand: Ref<'_>, siblings: &RawDocument) -> Result<NearQuery> {
        if let Some((extra, _)) = fields(siblings).nth(1) {
            bail!(
                BAD_VALUE,
                "geo near accepts just one argument when querying for a GeoJSON point. Extra field found: {extra}"
            );
        }
        let Ref::Document(object) = operand else {
            bail!(BAD_VALUE, "invalid point in geo near query: an array or object with a point is required");
        };
        let (mut nearest, mut farthest, mut origin) = (0.0, f64::INFINITY, None);
        for (name, value) in fields(object) {
            match (name, value) {
                ("$geometry", Ref::Document(geometry)) => {
                    origin = Shape::parse(geometry)?.point();
                    if origin.is_none() {
                        bail!(BAD_VALUE, "invalid point in geo near query $geometry argument");
                    }
                }
                ("$geometry", Ref::Array(_)) => bail!(BAD_VALUE, "$near requires geojson point"),
                ("$geometry", _) => {}
                ("$minDistance", value) => nearest = distance(name, value, (BAD_VALUE, BAD_VALUE))?,
                ("$maxDistance", value) => farthest = distance(name, value, (BAD_VALUE, BAD_VALUE))?,
                _ => bail!(BAD_VALUE, "invalid argument in geo near query: {name}"),
            }
        }
        let Some(origin) = origin else { bail!(BAD_VALUE, "$geometry is required for geo near query") };
        Ok(NearQuery { origin, unit: Unit::Metres, nearest, farthest })
    }

    /// Whether an index of places on this surface can answer it.
    pub(crate) fn is_on(&self, surface: Surface) -> bool {
        match self.unit {
            Unit::Metres => surface == Surface::Sphere,
            Unit::Plane => surface == Surface::Plane,
            Unit::Radians => true,
        }
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
