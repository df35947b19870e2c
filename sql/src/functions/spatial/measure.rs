//! Distances and areas: on the globe in metres on the WGS84 ellipsoid, in the plane without a unit.

use std::sync::LazyLock;

use geographiclib_rs::{Geodesic, InverseGeodesic as _, PolygonArea, Winding};

use super::ring::{Polygon, Ring};
use super::shape::Shape;
use super::vertex::{Segment, Vertex};
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
        let there = nearest_pair(self, other);
        let back = nearest_pair(other, self);
        let (from, to) =
            there.into_iter().chain(back).min_by(|a, b| a.0.chord(a.1).total_cmp(&b.0.chord(b.1)))?;
        Some(match space {
            Space::Geometry => from.chord(to),
            Space::Geography => EARTH.inverse(from.y, from.x, to.y, to.x),
        })
    }

    pub fn area(&self, space: Space) -> f64 {
        self.polygons.iter().map(|polygon| area(polygon, space)).sum()
    }

    fn vertices(&self) -> impl Iterator<Item = Vertex> + '_ {
        let line = self.line.iter().flat_map(|segment| [segment.from, segment.to]);
        let rings = self.polygons.iter().flat_map(Polygon::rings);
        self.points.iter().copied().chain(line).chain(rings.flat_map(Ring::vertices).copied())
    }
}

/// A vertex of the first shape and the nearest of the second, over all vertices of the first.
fn nearest_pair(a: &Shape, b: &Shape) -> Option<(Vertex, Vertex)> {
    let points = || b.points.iter().copied();
    let on_segments = |vertex| b.segments().map(move |segment: Segment| segment.nearest(vertex));
    let pairs =
        a.vertices().flat_map(|vertex| points().chain(on_segments(vertex)).map(move |other| (vertex, other)));
    pairs.min_by(|a, b| a.0.chord(a.1).total_cmp(&b.0.chord(b.1)))
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
            let part = |segment: Segment| {
                let (from, to) = (segment.from, segment.to);
                (from.x - origin.x) * (to.y - origin.y) - (to.x - origin.x) * (from.y - origin.y)
            };
            ring.segments().map(part).sum::<f64>() / 2.0
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
