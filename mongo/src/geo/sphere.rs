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
        Vector {
            x: latitude.cos() * longitude.cos(),
            y: latitude.cos() * longitude.sin(),
            z: latitude.sin(),
        }
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
    winding(ring, point) != is_inverted(ring)
}

/// The sum of the angles at which the point sees the edges: a full turn, or none.
fn winding(ring: &[Vector], point: Vector) -> bool {
    let mut turn = 0.0;
    for (a, b) in ring.iter().zip(ring.iter().cycle().skip(1)) {
        let (to_a, to_b) = (point.cross(*a), point.cross(*b));
        turn += to_a.cross(to_b).dot(point).atan2(to_a.dot(to_b));
    }
    turn.abs() > std::f64::consts::PI
}

/// Whether `winding` is true outside: seen from the far side of the smaller area.
fn is_inverted(ring: &[Vector]) -> bool {
    let mut sum = Vector { x: 0.0, y: 0.0, z: 0.0 };
    for point in ring {
        sum = Vector { x: sum.x + point.x, y: sum.y + point.y, z: sum.z + point.z };
    }
    // The point opposite to the middle of a ring smaller than a hemisphere is outside.
    sum.unit().is_some_and(|middle| winding(ring, middle.opposite()))
        && sum.unit().is_some_and(|middle| !winding(ring, middle))
}
