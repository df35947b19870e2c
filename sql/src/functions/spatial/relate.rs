//! How two shapes lie to each other.
//!
//! A shape is within another if no part of it is outside and some part of it is inside: a point on the border of
//! a polygon is not within it, a polygon is within itself.

use super::ring::{Place, Polygon, Ring};
use super::shape::Shape;
use super::vertex::{Segment, Vertex};

/// How far to step off a border to see what is beside it, in lengths of the segment.
const STEPS: [f64; 3] = [1e-3, 1e-5, 1e-7];

impl Shape {
    /// Where a vertex lies. Lines and points have no border here: what is on them is inside.
    fn place(&self, vertex: Vertex) -> Place {
        let on = self.points.iter().any(|point| point.is_at(vertex))
            || self.line.iter().any(|line| line.has(vertex));
        if on {
            return Place::Inside;
        }
        let places = self.polygons.iter().map(|polygon| polygon.place(vertex));
        places.fold(Place::Outside, |best, place| match (best, place) {
            (Place::Inside, _) | (_, Place::Inside) => Place::Inside,
            (Place::Border, _) | (_, Place::Border) => Place::Border,
            _ => Place::Outside,
        })
    }

    /// One vertex of each connected part of the shape and of its border.
    fn samples(&self) -> impl Iterator<Item = Vertex> + '_ {
        let rings = self.polygons.iter().flat_map(Polygon::rings);
        let of_rings = rings.filter_map(|ring| ring.vertices().first().copied());
        self.points.iter().copied().chain(self.line.first().map(|line| line.from)).chain(of_rings)
    }

    pub fn intersects(&self, other: &Shape) -> bool {
        // Either the borders meet, or one has a whole part of the other inside.
        let meets = |segment: &Segment| other.segments().any(|other| segment.touches(other));
        self.segments().any(meets)
            || self.samples().any(|vertex| other.place(vertex) != Place::Outside)
            || other.samples().any(|vertex| self.place(vertex) != Place::Outside)
    }

    pub fn is_within(&self, other: &Shape) -> bool {
        let mut places = Vec::new();
        places.extend(self.points.iter().map(|point| other.place(*point)));
        for segment in self.segments() {
            if other.polygons.iter().flat_map(Polygon::segments).any(|border| segment.crosses(border)) {
                return false;
            }
            places.extend(pieces(segment, other).into_iter().map(|vertex| other.place(vertex)));
        }
        if places.contains(&Place::Outside) {
            return false;
        }
        if self.polygons.is_empty() {
            return places.contains(&Place::Inside);
        }
        !other.has_border_inside(self) && self.polygons.iter().all(|polygon| other.holds_inner(polygon))
    }

    /// Whether part of this shape's border (of a hole, say) lies inside of another.
    fn has_border_inside(&self, other: &Shape) -> bool {
        let mut vertices = self.polygons.iter().flat_map(Polygon::rings).flat_map(Ring::vertices);
        vertices.any(|vertex| other.place(*vertex) == Place::Inside)
    }

    /// Whether the inner of a polygon, which no border divides, lies inside. Its border alone does not tell:
    /// it may be the border of a hole.
    fn holds_inner(&self, polygon: &Polygon) -> bool {
        let steps = || STEPS.into_iter().flat_map(|step| [step, -step]);
        let mut inner =
            polygon.segments().flat_map(|segment| steps().map(|step| segment.beside_middle(step)));
        let inner = inner.find(|vertex| polygon.place(*vertex) == Place::Inside);
        inner.is_some_and(|vertex| self.place(vertex) == Place::Inside)
    }
}

/// The ends of a segment and the middles of the pieces into which the vertices of a shape divide it.
fn pieces(segment: &Segment, shape: &Shape) -> Vec<Vertex> {
    let corners = shape.segments().map(|border| border.from).filter(|corner| segment.has(*corner));
    let mut stops: Vec<Vertex> = [segment.from, segment.to].into_iter().chain(corners).collect();
    stops.sort_by(|a, b| a.chord(segment.from).total_cmp(&b.chord(segment.from)));
    stops.dedup_by(|a, b| a.is_at(*b));
    let pairs = stops.iter().zip(stops.iter().skip(1));
    let middles: Vec<Vertex> = pairs.map(|(from, to)| Segment::new(*from, *to).middle()).collect();
    stops.extend(middles);
    stops
}
