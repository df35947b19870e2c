//! Points and segments, on the globe and in the plane.
//!
//! A vertex carries a vector: on the globe the unit vector from the centre, in the plane (x, y, 1). Then one
//! determinant tells on both which side of a segment a vertex lies on, segments being the shortest ways
//! (arcs of great circles, straight lines), and most of the geometry need not know which of the two it is in.
//! For questions of position the globe is a sphere; the difference to the ellipsoid is left to measuring.

use crate::context::Space;

pub(super) type Vector = [f64; 3];

/// A position.
#[derive(Debug, Clone, Copy)]
pub(super) struct Vertex {
    /// Longitude in degrees, or the horizontal position.
    pub x: f64,
    /// Latitude in degrees, or the vertical position.
    pub y: f64,
    at: Vector,
    space: Space,
}

/// A shortest way from one vertex to another.
#[derive(Debug, Clone, Copy)]
pub(super) struct Segment {
    pub from: Vertex,
    pub to: Vertex,
    /// All of the segment lies in the ball around this vector: an arc bulges less than its chord is long.
    centre: Vector,
    radius: f64,
}

/// The part of a segment that is nearest to a vertex.
#[derive(Debug, Clone, Copy)]
pub(super) enum Nearest {
    End(Vertex),
    Foot(Vector, Space),
}

/// Which side of a segment a vertex lies on, looking along it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Left,
    On,
    Right,
}

/// The relative error of a sum of a few products.
const ERROR: f64 = 8.0 * f64::EPSILON;

impl Vertex {
    pub fn new(x: f64, y: f64, space: Space) -> Vertex {
        let at = match space {
            Space::Geometry => [x, y, 1.0],
            Space::Geography => {
                let (longitude, latitude) = (x.to_radians(), y.to_radians());
                [latitude.cos() * longitude.cos(), latitude.cos() * longitude.sin(), latitude.sin()]
            }
        };
        Vertex { x, y, at, space }
    }

    /// The vertex in the direction of a vector.
    fn towards(vector: Vector, space: Space) -> Vertex {
        let [x, y, z] = vector;
        match space {
            Space::Geometry => Vertex::new(x / z, y / z, space),
            Space::Geography => Vertex::new(y.atan2(x).to_degrees(), z.atan2(x.hypot(y)).to_degrees(), space),
        }
    }

    pub fn is_at(self, other: Vertex) -> bool {
        let between = minus(self.at, other.at);
        dot(between, between) <= ERROR * ERROR * dot(self.at, self.at)
    }

    /// The straight distance: through the globe, or in the plane. Enough to find out what is nearest.
    pub fn chord(self, other: Vertex) -> f64 {
        length(minus(self.at, other.at))
    }

    /// How far east of `other` this vertex lies, in degrees between -180 and 180; in the plane without limit.
    pub fn east_of(self, other: Vertex) -> f64 {
        let east = self.x - other.x;
        match self.space {
            Space::Geography if east > 180.0 => east - 360.0,
            Space::Geography if east < -180.0 => east + 360.0,
            _ => east,
        }
    }
}

impl Segment {
    pub fn new(from: Vertex, to: Vertex) -> Segment {
        let centre = plus(from.at, to.at).map(|part| part / 2.0);
        // A little more, for rounding.
        let radius = from.chord(to) / 2.0 * (1.0 + ERROR) + ERROR * length(centre);
        Segment { from, to, centre, radius }
    }

    /// Which side `vertex` lies on, as far as rounding lets us tell.
    pub fn side(&self, vertex: Vertex) -> Side {
        let (along, to) = (minus(self.to.at, self.from.at), minus(vertex.at, self.from.at));
        // The determinant of the three vectors, written so that little is lost when they are close together.
        let turn = dot(cross(along, to), self.from.at);
        // On the globe the vectors themselves are rounded.
        let error = match vertex.space {
            Space::Geometry => ERROR * length(along) * length(to),
            Space::Geography => ERROR * (length(along) + length(to)),
        };
        if turn.abs() <= error {
            Side::On
        } else if turn > 0.0 {
            Side::Left
        } else {
            Side::Right
        }
    }

    /// Whether the vertex lies on the segment, ends included.
    pub fn has(&self, vertex: Vertex) -> bool {
        let from_centre = minus(vertex.at, self.centre);
        dot(from_centre, from_centre) <= self.radius * self.radius
            && (vertex.is_at(self.from) || vertex.is_at(self.to) || self.side(vertex) == Side::On)
    }

    /// Whether the segments are close enough to meet. Tells most pairs apart at little cost.
    fn is_near(&self, other: &Segment) -> bool {
        let between = minus(self.centre, other.centre);
        let reach = self.radius + other.radius;
        dot(between, between) <= reach * reach
    }

    /// Whether the segments cross in a vertex that is an end of neither.
    pub fn crosses(&self, other: &Segment) -> bool {
        if !self.is_near(other) {
            return false;
        }
        let (from, to) = (self.side(other.from), self.side(other.to));
        let opposite =
            |a: Side, b: Side| matches!((a, b), (Side::Left, Side::Right) | (Side::Right, Side::Left));
        // The comparison of `from` with the other two tells the arcs from their antipodes.
        opposite(from, to) && opposite(from, other.side(self.from)) && from == other.side(self.to)
    }

    /// Whether the segments have a vertex in common.
    pub fn touches(&self, other: &Segment) -> bool {
        let has_end = |a: &Segment, b: &Segment| a.has(b.from) || a.has(b.to);
        self.is_near(other) && (has_end(self, other) || has_end(other, self) || self.crosses(other))
    }

    /// The middle.
    pub fn middle(&self) -> Vertex {
        let [a, b] = [self.from.at, self.to.at];
        Vertex::towards(plus(a, b), self.from.space)
    }

    /// A vertex a little to the left of the middle, by a fraction of the length.
    pub fn beside_middle(&self, fraction: f64) -> Vertex {
        let middle = self.middle();
        let [x, y, z] = minus(self.to.at, self.from.at);
        let left = match middle.space {
            Space::Geometry => [-y, x, 0.0],
            Space::Geography => cross(middle.at, [x, y, z]),
        };
        Vertex::towards(plus(middle.at, left.map(|part| part * fraction)), middle.space)
    }

    /// Whether no part of the segment is nearer to a vertex than `limit`. May say no where it is so.
    pub fn is_beyond(&self, vertex: &Vertex, limit: f64) -> bool {
        let (from_centre, reach) = (minus(vertex.at, self.centre), self.radius + limit);
        dot(from_centre, from_centre) > reach * reach
    }

    /// What of the segment is nearest to a vertex.
    pub fn nearest(&self, vertex: Vertex) -> Nearest {
        let along = minus(self.to.at, self.from.at);
        let foot = match vertex.space {
            Space::Geometry => {
                let place = dot(minus(vertex.at, self.from.at), along) / dot(along, along);
                plus(self.from.at, along.map(|part| part * place))
            }
            Space::Geography => {
                let normal = cross(self.from.at, self.to.at);
                let height = dot(vertex.at, normal) / dot(normal, normal);
                let shadow = minus(vertex.at, normal.map(|part| part * height));
                shadow.map(|part| part / length(shadow))
            }
        };
        // From a foot between the ends, they are seen in opposite directions. NaN, from ends that are one, is not
        // less than anything.
        if dot(minus(self.from.at, foot), minus(self.to.at, foot)) < 0.0 {
            Nearest::Foot(foot, vertex.space)
        } else if self.from.chord(vertex) <= self.to.chord(vertex) {
            Nearest::End(self.from)
        } else {
            Nearest::End(self.to)
        }
    }
}

impl Nearest {
    /// As [`Vertex::chord`].
    pub fn chord(self, vertex: Vertex) -> f64 {
        match self {
            Nearest::End(end) => end.chord(vertex),
            Nearest::Foot(foot, _) => length(minus(foot, vertex.at)),
        }
    }

    pub fn vertex(self) -> Vertex {
        match self {
            Nearest::End(end) => end,
            Nearest::Foot(foot, space) => Vertex::towards(foot, space),
        }
    }
}

fn plus([a, b, c]: Vector, [x, y, z]: Vector) -> Vector {
    [a + x, b + y, c + z]
}

fn minus([a, b, c]: Vector, [x, y, z]: Vector) -> Vector {
    [a - x, b - y, c - z]
}

fn dot([a, b, c]: Vector, [x, y, z]: Vector) -> f64 {
    a * x + b * y + c * z
}

fn cross([a, b, c]: Vector, [x, y, z]: Vector) -> Vector {
    [b * z - c * y, c * x - a * z, a * y - b * x]
}

fn length(vector: Vector) -> f64 {
    dot(vector, vector).sqrt()
}
