//! Closed lines and the areas they enclose.
//!
//! On the globe a closed line has two sides and neither is the outside: the area is what lies to the left of it,
//! so that a clockwise polygon is everything but what it seems to enclose. For holes it is the smaller of the
//! two. In the plane the direction does not matter.
//!
//! Whether a vertex is inside is found by going north from it and counting the segments on the way: on the globe
//! to the pole, of which we know on which side it lies, in the plane to where nothing is.

use super::vertex::{Segment, Side, Vertex};
use crate::context::Space;

/// A closed line.
#[derive(Debug, Clone)]
pub(super) struct Ring {
    /// Each once; the last is joined to the first. Neighbours differ.
    vertices: Vec<Vertex>,
    segments: Vec<Segment>,
    north_is_inside: bool,
}

/// An area with holes.
#[derive(Debug, Clone)]
pub(super) struct Polygon {
    pub outer: Ring,
    pub holes: Vec<Ring>,
}

/// Where a vertex lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Inside,
    Border,
    Outside,
}

/// What a ring is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Outer,
    Hole,
}

impl Ring {
    /// A ring of positions of which the last repeats the first.
    pub fn new(mut vertices: Vec<Vertex>, role: Role, space: Space) -> Ring {
        vertices.dedup_by(|a, b| a.is_at(*b));
        vertices.pop();
        let next = vertices.iter().cycle().skip(1);
        let segments = vertices.iter().zip(next).map(|(from, to)| Segment::new(*from, *to)).collect();
        let mut ring = Ring { vertices, segments, north_is_inside: false };
        ring.north_is_inside = space == Space::Geography && ring.has_north(role);
        ring
    }

    pub fn vertices(&self) -> &[Vertex] {
        &self.vertices
    }

    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Whether the north pole lies inside.
    fn has_north(&self, role: Role) -> bool {
        let once_around = self.segments.iter().map(|segment| segment.to.east_of(segment.from)).sum::<f64>();
        let above_equator = self.segments.iter().map(above_equator).sum::<f64>();
        // The sum is a multiple of 360; half of that tells which.
        match role {
            Role::Outer if once_around > 180.0 => true,
            Role::Outer if once_around < -180.0 => false,
            // Both poles lie on the same side. Going around a small area to the left means more way west in the
            // north than in the south.
            Role::Outer => above_equator > 0.0,
            Role::Hole if once_around.abs() > 180.0 => above_equator * once_around > 0.0,
            Role::Hole => false,
        }
    }

    fn place(&self, vertex: Vertex) -> Place {
        let mut inside = self.north_is_inside;
        for segment in &self.segments {
            if segment.has(vertex) {
                return Place::Border;
            }
            inside ^= is_north_of(segment, vertex);
        }
        if inside { Place::Inside } else { Place::Outside }
    }
}

/// Whether the way north from a vertex crosses the segment. Each segment has its western end and not its eastern
/// one, so that a way through a common end counts once.
fn is_north_of(segment: &Segment, vertex: Vertex) -> bool {
    let (from, to) = (vertex.east_of(segment.from), vertex.east_of(segment.to));
    let goes_east = from >= 0.0;
    // On the globe a segment with ends on both sides may also pass on the far side.
    if goes_east == (to >= 0.0) || is_far(segment, from, to) {
        return false;
    }
    segment.side(vertex) == if goes_east { Side::Right } else { Side::Left }
}

fn is_far(segment: &Segment, from: f64, to: f64) -> bool {
    segment.to.east_of(segment.from).abs() + 1e-9 < from.abs() + to.abs()
}

/// The area between a segment and the equator on the unit sphere: positive on the way east in the north.
fn above_equator(segment: &Segment) -> f64 {
    let half_east = (segment.to.east_of(segment.from).to_radians() / 2.0).tan();
    let half = |vertex: Vertex| (vertex.y.to_radians() / 2.0).tan();
    let (from, to) = (half(segment.from), half(segment.to));
    2.0 * (half_east * (from + to)).atan2(1.0 + from * to)
}

impl Polygon {
    pub fn rings(&self) -> impl Iterator<Item = &Ring> {
        std::iter::once(&self.outer).chain(&self.holes)
    }

    pub fn segments(&self) -> impl Iterator<Item = &Segment> {
        self.rings().flat_map(Ring::segments)
    }

    pub fn place(&self, vertex: Vertex) -> Place {
        let outer = self.outer.place(vertex);
        if outer != Place::Inside {
            return outer;
        }
        let in_holes =
            self.holes.iter().map(|hole| hole.place(vertex)).find(|place| *place != Place::Outside);
        match in_holes {
            Some(Place::Inside) => Place::Outside,
            Some(place) => place,
            None => Place::Inside,
        }
    }
}
