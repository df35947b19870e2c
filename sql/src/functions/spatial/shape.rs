//! Shapes out of GeoJSON, and what makes one invalid.
//!
//! Reading checks all that can be checked in one pass. That lines do not cross themselves takes comparing every
//! segment with every other, so only [`Shape::fault`] does it, for the functions that ask whether a shape is
//! valid; the others take crossing lines as they come.

use super::ring::{Polygon, Ring, Role};
use super::vertex::{Segment, Vertex};
use crate::context::Space;
use crate::value::{Array, Value};

/// A Point, LineString, Polygon or MultiPolygon; the lists that its type does not use are empty.
#[derive(Debug, Clone, Default)]
pub(super) struct Shape {
    pub points: Vec<Vertex>,
    /// Of a line, its segments.
    pub line: Vec<Segment>,
    pub polygons: Vec<Polygon>,
}

/// Why something is not a shape.
pub(super) type Reason = &'static str;

/// The most positions of a polygon, as documented.
const POLYGON_POSITIONS_MAX: usize = 4_096;

/// The most positions of a shape: comparing two of them takes the product.
const POSITIONS_MAX: usize = 8_192;

impl Shape {
    pub fn parse(value: &Value<'_>, space: Space) -> Result<Shape, Reason> {
        let kind = value.property("type");
        let kind = kind.as_str().ok_or("The value is not a GeoJSON object with a type.")?;
        let Value::Array(coordinates) = value.property("coordinates") else {
            return Err("A GeoJSON object must have an array of coordinates.");
        };
        let mut reader = Reader { space, left: POSITIONS_MAX };
        let mut shape = Shape::default();
        match kind {
            "Point" => shape.points.push(reader.position(&Value::Array(coordinates))?),
            "LineString" => shape.line = reader.line(&coordinates)?,
            "Polygon" => shape.polygons.push(reader.polygon(&coordinates)?),
            "MultiPolygon" => {
                for polygon in coordinates.iter() {
                    shape.polygons.push(reader.polygon(list(&polygon)?)?);
                }
            }
            _ => return Err("The type must be Point, LineString, Polygon or MultiPolygon."),
        }
        Ok(shape)
    }

    pub fn segments(&self) -> impl Iterator<Item = &Segment> {
        self.line.iter().chain(self.polygons.iter().flat_map(Polygon::segments))
    }

    /// What reading did not notice.
    pub fn fault(&self) -> Option<Reason> {
        let rings: Vec<&[Segment]> =
            self.polygons.iter().flat_map(Polygon::rings).map(Ring::segments).collect();
        if rings.iter().any(|ring| crosses_itself(ring)) {
            return Some("The boundary of a polygon must not cross or touch itself.");
        }
        let crossing = rings.iter().enumerate().any(|(index, ring)| {
            let mut others = rings.iter().skip(index + 1).copied().flatten();
            others.any(|other| ring.iter().any(|segment| segment.crosses(other)))
        });
        crossing.then_some("The boundaries of polygons and holes must not cross each other.")
    }
}

/// Whether segments of a ring that are not neighbours meet.
fn crosses_itself(ring: &[Segment]) -> bool {
    let last = ring.len().saturating_sub(1);
    ring.iter().enumerate().any(|(index, segment)| {
        let mut others = ring.iter().enumerate().skip(index + 2);
        others.any(|(other_index, other)| (index, other_index) != (0, last) && segment.touches(other))
    })
}

fn list<'v, 'a>(value: &'v Value<'a>) -> Result<&'v Array<'a>, Reason> {
    value.as_array().ok_or("The coordinates are not nested as the type wants it.")
}

struct Reader {
    space: Space,
    left: usize,
}

impl Reader {
    fn position(&mut self, value: &Value<'_>) -> Result<Vertex, Reason> {
        self.left = self.left.checked_sub(1).ok_or("The shape has too many positions.")?;
        // A third number, the altitude, is allowed and ignored.
        let (x, y) = (value.item(0).as_f64(), value.item(1).as_f64());
        let (Some(x), Some(y)) = (x, y) else { return Err("A position must have two numbers.") };
        if !x.is_finite() || !y.is_finite() || list(value)?.len() > 3 {
            return Err("A position must have two numbers.");
        }
        if self.space == Space::Geography {
            if !(-90.0..=90.0).contains(&y) {
                return Err("Latitude values must be between -90 and 90 degrees.");
            }
            if !(-180.0..=180.0).contains(&x) {
                return Err("Longitude values must be between -180 and 180 degrees.");
            }
        }
        Ok(Vertex::new(x, y, self.space))
    }

    fn positions(&mut self, list: &Array<'_>) -> Result<Vec<Vertex>, Reason> {
        list.iter().map(|position| self.position(&position)).collect()
    }

    fn line(&mut self, positions: &Array<'_>) -> Result<Vec<Segment>, Reason> {
        let vertices = self.positions(positions)?;
        if vertices.len() < 2 {
            return Err("A LineString must have two or more positions.");
        }
        let ends = vertices.iter().zip(vertices.iter().skip(1));
        Ok(ends.map(|(from, to)| Segment::new(*from, *to)).collect())
    }

    fn polygon(&mut self, rings: &Array<'_>) -> Result<Polygon, Reason> {
        if rings.iter().filter_map(|ring| ring.as_array().map(Array::len)).sum::<usize>()
            > POLYGON_POSITIONS_MAX
        {
            return Err("A polygon must not have more than 4096 positions.");
        }
        let mut rings = rings.iter();
        let outer = rings.next().ok_or("A polygon must have a ring.")?;
        Ok(Polygon {
            outer: self.ring(&outer, Role::Outer)?,
            holes: rings.map(|ring| self.ring(&ring, Role::Hole)).collect::<Result<_, _>>()?,
        })
    }

    fn ring(&mut self, value: &Value<'_>, role: Role) -> Result<Ring, Reason> {
        let vertices = self.positions(list(value)?)?;
        if vertices.len() < 4 {
            return Err("The ring of a polygon must have four or more positions.");
        }
        let closed = vertices.first().zip(vertices.last()).is_some_and(|(first, last)| first.is_at(*last));
        if !closed {
            return Err("The first and the last position of a ring must be the same.");
        }
        let ring = Ring::new(vertices, role, self.space);
        if ring.vertices().len() < 3 {
            return Err("The ring of a polygon must have three different positions.");
        }
        Ok(ring)
    }
}
