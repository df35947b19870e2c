//! The unit sphere: points as vectors, edges as great circles.

/// A point on the sphere.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Vector {
    x: f64,
    y: f64,
    z: f64,
}

/// Closer than this (in radians: about a centimetre) counts as the same place.
const TOUCH: f64 = 1e-9;

impl Vector {
    pub(crate) fn of_degrees(longitude: f64, latitude: f64) -> Vector {
        let (longitude, latitude) = (longitude.to_radians(), latitude.to_radians());
        Vector { x: latitude.cos() * longitude.cos(), y: latitude.cos() * longitude.sin(), z: latitude.sin() }
    }

    /// Longitude and latitude.
    pub(crate) fn degrees(self) -> [f64; 2] {
        [self.y.atan2(self.x).to_degrees(), self.z.atan2(self.x.hypot(self.y)).to_degrees()]
    }

    /// The middle of some points; none if they have none.
    pub(crate) fn middle(points: impl Iterator<Item = Vector>) -> Option<Vector> {
        let sum = points.fold(Vector { x: 0.0, y: 0.0, z: 0.0 }, |sum, point| Vector {
            x: sum.x + point.x,
            y: sum.y + point.y,
            z: sum.z + point.z,
        });
        sum.unit()
    }

    fn dot(self, other: Vector) -> f64 {
        self.x * other.x + self.y * other.y + self.z * other.z
    }

    fn cross(self, other: Vector) -> Vector {
        Vector {
            x: self.y * other.z - self.z * other.y,
            y: self.z * other.x - self.x * other.z,
            z: self.x * other.y - self.y * other.x,
        }
    }

    fn length(self) -> f64 {
        self.dot(self).sqrt()
    }

    fn unit(self) -> Option<Vector> {
        let length = self.length();
        (length > 1e-300).then(|| Vector { x: self.x / length, y: self.y / length, z: self.z / length })
    }

    /// The angle to another point, accurate for small ones too.
    pub(crate) fn angle(self, other: Vector) -> f64 {
        self.cross(other).length().atan2(self.dot(other))
    }

    fn opposite(self) -> Vector {
        Vector { x: -self.x, y: -self.y, z: -self.z }
    }
}

/// The angle from a point to an edge.
pub(crate) fn distance_to_edge(point: Vector, a: Vector, b: Vector) -> f64 {
    let ends = point.angle(a).min(point.angle(b));
    let Some(normal) = a.cross(b).unit() else { return ends };
    // The foot of the perpendicular counts if it lies between the ends.
    let foot = normal.cross(point.cross(normal));
    match foot.unit() {
        Some(foot) if on_arc(foot, a, b, normal) => ends.min(point.angle(foot)),
        _ => ends,
    }
}

fn on_arc(point: Vector, a: Vector, b: Vector, normal: Vector) -> bool {
    a.cross(point).dot(normal) >= -1e-15 && point.cross(b).dot(normal) >= -1e-15
}

/// Whether two edges have a point in common.
pub(crate) fn edges_touch(a: Vector, b: Vector, c: Vector, d: Vector) -> bool {
    let near = [(a, c, d), (b, c, d), (c, a, b), (d, a, b)];
    if near.iter().any(|(point, from, to)| distance_to_edge(*point, *from, *to) < TOUCH) {
        return true;
    }
    let (Some(first), Some(second)) = (a.cross(b).unit(), c.cross(d).unit()) else { return false };
    let Some(meeting) = first.cross(second).unit() else { return false };
    [meeting, meeting.opposite()]
        .iter()
        .any(|point| on_arc(*point, a, b, first) && on_arc(*point, c, d, second))
}

/// Whether a point lies in the ring, which encloses the smaller of the two areas.
pub(crate) fn in_ring(ring: &[Vector], point: Vector) -> bool {
    let edges = || ring.iter().zip(ring.iter().cycle().skip(1)).take(ring.len());
    if edges().any(|(a, b)| distance_to_edge(point, *a, *b) < TOUCH) {
        return true;
    }
    let outside = outside(ring);
    edges().filter(|(a, b)| arcs_cross(point, outside, **a, **b)).count() % 2 == 1
}

/// A point that is surely outside of a ring smaller than a hemisphere: opposite to its middle, and a little
/// aside, so that no edge ends on the way there.
fn outside(ring: &[Vector]) -> Vector {
    let sum = ring.iter().fold(Vector { x: 1e-4, y: 1.7e-4, z: 2.3e-4 }, |sum, point| Vector {
        x: sum.x + point.x,
        y: sum.y + point.y,
        z: sum.z + point.z,
    });
    sum.unit().unwrap_or(Vector { x: 0.0, y: 0.0, z: 1.0 }).opposite()
}

/// Whether two arcs cross at a point inside of both.
fn arcs_cross(a: Vector, b: Vector, c: Vector, d: Vector) -> bool {
    let (ab, cd) = (a.cross(b), c.cross(d));
    let (acb, bda, cbd, dac) = (-ab.dot(c), ab.dot(d), -cd.dot(b), cd.dot(a));
    acb * bda > 0.0 && acb * cbd > 0.0 && acb * dac > 0.0
}
