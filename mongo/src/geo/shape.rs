//! GeoJSON shapes and legacy points, on the sphere.

use bson::RawDocument;

use super::sphere::{Vector, distance_to_edge, edges_touch, in_ring};
use super::{numbers, pair};
use crate::error::{BAD_VALUE, Result, bail};
use crate::values::{Ref, field, items};

/// A shape: points, lines and areas together.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shape {
    places: Vec<[f64; 2]>,
    lines: Vec<Vec<Vector>>,
    /// Each with an outer ring and holes.
    polygons: Vec<Vec<Vec<Vector>>>,
}

/// A point by longitude and latitude.
pub(crate) fn vertex(point: [f64; 2]) -> Result<Vector> {
    let [longitude, latitude] = point;
    if !(-180.0..=180.0).contains(&longitude) || !(-90.0..=90.0).contains(&latitude) {
        bail!(BAD_VALUE, "longitude/latitude is out of bounds, lng: {longitude} lat: {latitude}");
    }
    Ok(Vector::of_degrees(longitude, latitude))
}

fn position(value: Ref<'_>) -> Result<[f64; 2]> {
    match (value, numbers(value).as_deref()) {
        (Ref::Array(_), Some([x, y, ..])) => vertex([*x, *y]).map(|_| [*x, *y]),
        _ => bail!(BAD_VALUE, "GeoJSON coordinates must be an array of two numbers"),
    }
}

fn list(value: Ref<'_>) -> Result<Vec<Ref<'_>>> {
    match value {
        Ref::Array(array) => Ok(items(array).collect()),
        _ => bail!(BAD_VALUE, "GeoJSON coordinates must be an array"),
    }
}

fn line(value: Ref<'_>) -> Result<Vec<Vector>> {
    let line: Vec<_> = list(value)?.into_iter().map(|item| vertex(position(item)?)).collect::<Result<_>>()?;
    if line.len() < 2 {
        bail!(BAD_VALUE, "GeoJSON LineString must have at least 2 vertices");
    }
    Ok(line)
}

fn polygon(value: Ref<'_>) -> Result<Vec<Vec<Vector>>> {
    let mut rings = Vec::new();
    for item in list(value)? {
        let mut ring = line(item)?;
        if ring.len() < 4 {
            bail!(BAD_VALUE, "Loop must have at least 3 different vertices");
        }
        if ring.first() != ring.last() {
            bail!(BAD_VALUE, "Loop is not closed");
        }
        ring.pop();
        ring.dedup();
        if ring.iter().enumerate().filter(|(at, corner)| !ring[..*at].contains(corner)).count() < 3 {
            bail!(BAD_VALUE, "Loop must have at least 3 different vertices");
        }
        rings.push(ring);
    }
    if rings.is_empty() {
        bail!(BAD_VALUE, "Polygon has no loops.");
    }
    Ok(rings)
}

/// All coordinates are of one reference system, under each of its names.
fn check_crs(geometry: &RawDocument) -> Result<()> {
    let Some(crs) = field(geometry, "crs") else { return Ok(()) };
    let Ref::Document(crs) = crs else { bail!(BAD_VALUE, "GeoJSON CRS must be an object") };
    match field(crs, "properties").and_then(|properties| field(properties.as_document()?, "name")) {
        Some(Ref::String(
            "EPSG:4326" | "urn:ogc:def:crs:OGC:1.3:CRS84" | "urn:x-mongodb:crs:strictwinding:EPSG:4326",
        )) => Ok(()),
        Some(Ref::String(other)) => bail!(BAD_VALUE, "Unknown CRS name: {other}"),
        _ => bail!(BAD_VALUE, "In CRS, \"properties.name\" must be a string"),
    }
}

impl Shape {
    pub(crate) fn parse(geometry: &RawDocument) -> Result<Shape> {
        check_crs(geometry)?;
        let mut shape = Shape::default();
        shape.add(geometry, 0)?;
        Ok(shape)
    }

    /// What a document's value says: GeoJSON, or a legacy pair.
    pub(crate) fn of_value(value: Ref<'_>) -> Option<Shape> {
        match value {
            Ref::Document(object) if field(object, "type").is_some() => Shape::parse(object).ok(),
            _ => {
                let point = pair(value)?;
                vertex(point).ok()?;
                Some(Shape { places: vec![point], ..Shape::default() })
            }
        }
    }

    fn add(&mut self, geometry: &RawDocument, depth: usize) -> Result<()> {
        let Some(Ref::String(kind)) = field(geometry, "type") else {
            bail!(BAD_VALUE, "unknown GeoJSON type");
        };
        if kind == "GeometryCollection" {
            let members = match field(geometry, "geometries") {
                Some(value) if depth < 8 => list(value)?,
                _ => bail!(BAD_VALUE, "GeometryCollection geometries must be an array"),
            };
            for member in members {
                match member {
                    Ref::Document(member) => self.add(member, depth + 1)?,
                    _ => bail!(BAD_VALUE, "GeometryCollection members must be objects"),
                }
            }
            return Ok(());
        }
        let Some(coordinates) = field(geometry, "coordinates") else {
            bail!(BAD_VALUE, "GeoJSON coordinates are missing");
        };
        match kind {
            "Point" => self.places.push(position(coordinates)?),
            "MultiPoint" => {
                for item in list(coordinates)? {
                    self.places.push(position(item)?);
                }
            }
            "LineString" => self.lines.push(line(coordinates)?),
            "MultiLineString" => {
                for item in list(coordinates)? {
                    self.lines.push(line(item)?);
                }
            }
            "Polygon" => self.polygons.push(polygon(coordinates)?),
            "MultiPolygon" => {
                for item in list(coordinates)? {
                    self.polygons.push(polygon(item)?);
                }
            }
            _ => bail!(BAD_VALUE, "unknown GeoJSON type: {kind}"),
        }
        Ok(())
    }

    pub(crate) fn is_area(&self) -> bool {
        self.places.is_empty() && self.lines.is_empty() && !self.polygons.is_empty()
    }

    /// The point this is, if it is one point.
    pub(crate) fn point(&self) -> Option<[f64; 2]> {
        match self.places.as_slice() {
            [point] if self.lines.is_empty() && self.polygons.is_empty() => Some(*point),
            _ => None,
        }
    }

    fn dots(&self) -> impl Iterator<Item = Vector> {
        self.places.iter().map(|place| Vector::of_degrees(place[0], place[1]))
    }

    /// All corners.
    pub(crate) fn points(&self) -> impl Iterator<Item = Vector> {
        self.dots()
            .chain(self.lines.iter().flatten().copied())
            .chain(self.polygons.iter().flatten().flatten().copied())
    }

    fn edges(&self) -> impl Iterator<Item = (Vector, Vector)> {
        let lines = self.lines.iter().flat_map(|line| line.iter().copied().zip(line.iter().copied().skip(1)));
        let rings =
            self.polygons.iter().flatten().flat_map(|ring| {
                ring.iter().copied().zip(ring.iter().copied().cycle().skip(1)).take(ring.len())
            });
        lines.chain(rings)
    }

    fn covers(&self, point: Vector) -> bool {
        self.polygons.iter().any(|rings| {
            let mut rings = rings.iter();
            rings.next().is_some_and(|outer| in_ring(outer, point)) && !rings.any(|hole| in_ring(hole, point))
        })
    }

    /// Whether all of the other shape lies inside the areas of this one.
    pub(crate) fn contains(&self, other: &Shape) -> bool {
        let crosses = || {
            other.edges().any(|(a, b)| {
                self.edges().any(|(c, d)| edges_touch(a, b, c, d) && !(self.covers(a) && self.covers(b)))
            })
        };
        other.points().next().is_some() && other.points().all(|point| self.covers(point)) && !crosses()
    }

    /// Whether the shapes have a point in common.
    pub(crate) fn intersects(&self, other: &Shape) -> bool {
        let touches = |point: Vector, shape: &Shape| {
            shape.covers(point)
                || shape.dots().any(|dot| dot.angle(point) < 1e-9)
                || shape.edges().any(|(a, b)| distance_to_edge(point, a, b) < 1e-9)
        };
        self.points().any(|point| touches(point, other))
            || other.points().any(|point| touches(point, self))
            || self.edges().any(|(a, b)| other.edges().any(|(c, d)| edges_touch(a, b, c, d)))
    }

    /// The angle from a point to the nearest part.
    pub(crate) fn distance(&self, point: Vector) -> f64 {
        if self.covers(point) {
            return 0.0;
        }
        let dots = self.dots().map(|dot| dot.angle(point));
        let edges = self.edges().map(|(a, b)| distance_to_edge(point, a, b));
        dots.chain(edges).fold(f64::INFINITY, f64::min)
    }
}
