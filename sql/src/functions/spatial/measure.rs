//! Distances and areas: on the globe in metres on the WGS84 ellipsoid, in the plane without a unit.

use std::sync::LazyLock;

use geographiclib_rs::{Geodesic, InverseGeodesic as _, PolygonArea, Winding};

use super::ring::{Polygon, Ring};
use super::shape::Shape;
use super::vertex::{Nearest, Segment, Vertex};
use crate::context::Space;

static EARTH: LazyLock<Geodesic> = LazyLock::new(Geodesic::wgs84);

impl Shape {
    /// The shortest distance between two shapes; None if one of them is empty. Which vertices are nearest is
    /// decided on a sphere.
    pub fn distance(&self, other: &Shape, space: Space) -> Option<f64> {
        if self.intersects(other) {
            return Some(0.0);
        }
        // Of lines that do not meet, an end of one is nearest.
        let there = nearest_pair(self, other, f64::INFINITY);
        let limit = there.map_or(f64::INFINITY, |(from, to)| to.chord(from));
        let (from, to) = nearest_pair(other, self, limit).or(there)?;
        Some(match space {
            Space::Geometry => to.chord(from),
            Space::Geography => {
                let to = to.vertex();
                EARTH.inverse(from.y, from.x, to.y, to.x)
            }
        })
    }

    pub fn area(&self, space: Space) -> f64 {
        self.polygons.iter().map(|polygon| area(polygon, space)).sum()
    }

    fn vertices(&self) -> impl Iterator<Item = Vertex> + '_ {
        let line =
            self.line.first().map(|first| first.from).into_iter().chain(self.line.iter().map(|part| part.to));
        let rings = self.polygons.iter().flat_map(Polygon::rings);
        self.points.iter().copied().chain(line).chain(rings.flat_map(Ring::vertices).copied())
    }
}

/// A vertex of the first shape and what of the second is nearest to it, over all vertices of the first; None if
/// nothing is nearer than `limit`.
fn nearest_pair(a: &Shape, b: &Shape, mut limit: f64) -> Option<(Vertex, Nearest)> {
    // A point is a segment that ends where it begins.
    let points = b.points.iter().map(|point| Segment::new(*point, *point));
    let segments: Vec<Segment> = points.chain(b.segments().copied()).collect();
    let mut best = None;
    for vertex in a.vertices() {
        for segment in &segments {
            if segment.is_beyond(&vertex, limit) {
                continue;
            }
            let nearest = segment.nearest(vertex);
            if nearest.chord(vertex) < limit {
                limit = nearest.chord(vertex);
                best = Some((vertex, nearest));
            }
        }
    }
    best
}

fn area(polygon: &Polygon, space: Space) -> f64 {
    let holes: f64 = polygon.holes.iter().map(|hole| signed_area(hole, space).abs()).sum();
    let outer = match space {
        Space::Geometry => signed_area(&polygon.outer, space).abs(),
        Space::Geography => geodesic_area(&polygon.outer, false),
    };
    (outer - holes).max(0.0)
}

/// Positive for a ring that goes around to the left, of the smaller side on the globe.
fn signed_area(ring: &Ring, space: Space) -> f64 {
    match space {
        Space::Geography => geodesic_area(ring, true),
        Space::Geometry => {
            // Relative to one of the corners, so that little is lost far from the origin.
            let Some(origin) = ring.vertices().first() else { return 0.0 };
            let part = |segment: &Segment| {
                let (from, to) = (segment.from, segment.to);
                (from.x - origin.x) * (to.y - origin.y) - (to.x - origin.x) * (from.y - origin.y)
            };
            ring.segments().iter().map(part).sum::<f64>() / 2.0
        }
    }
}

/// The area to the left of a ring, or with `signed` the smaller side, negative if it lies to the right.
fn geodesic_area(ring: &Ring, signed: bool) -> f64 {
    let mut polygon = PolygonArea::new(&EARTH, Winding::CounterClockwise);
    ring.vertices().iter().for_each(|vertex| polygon.add_point(vertex.y, vertex.x));
    let (_, area, _) = polygon.compute(signed);
    area
}
