//! The cells of a grid that places and regions lie in: what an index of places is made of and asked with.
//!
//! On the sphere a shape is covered by way of the cap around it, which holds its edges too wherever they bulge. It is wider
//! than the shape, which does no harm: what is found is looked at again.

use super::shape::Shape;
use super::sphere::Vector;
use super::{EARTH_RADIUS, Flat, NearQuery, Region, Unit, pair};
use crate::derived::cells::{Grid, Rectangle};
use crate::values::Ref;

/// Where coordinates are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Surface {
    /// Degrees on the sphere.
    Sphere,
    /// Numbers in the plane.
    Plane,
}

/// A part of a surface that holds all that is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Area {
    /// Which surface.
    pub surface: Surface,
    pub(crate) rectangles: Vec<Rectangle>,
}

impl Area {
    /// The cells of a grid that hold it.
    pub(crate) fn cells(&self, grid: Grid) -> Vec<String> {
        grid.cover(&self.rectangles)
    }
}

/// Angles are rounded; a few metres more cut off nothing.
const MARGIN: f64 = 1e-6;

/// From here on a cap is taken for the whole sphere.
const WIDE: f64 = 1.4;

/// The whole plane, or sphere.
const EVERYWHERE: Rectangle = Rectangle { low: [f64::NEG_INFINITY; 2], high: [f64::INFINITY; 2] };

/// The cells of a document's place; none if the value is none.
pub(crate) fn cover_value(value: Ref<'_>) -> Option<Vec<String>> {
    let shape = Shape::of_value(value)?;
    match shape.point() {
        Some(point) => Grid::DEGREES.cell(point).map(|cell| vec![cell]),
        None => Some(Grid::DEGREES.cover(&around(&shape))),
    }
}

/// A point of the plane.
pub(crate) fn pair_of(value: Ref<'_>) -> Option<[f64; 2]> {
    pair(value)
}

fn around(shape: &Shape) -> Vec<Rectangle> {
    let Some(centre) = Vector::middle(shape.points()) else { return vec![EVERYWHERE] };
    let radians = shape.points().map(|point| centre.angle(point)).fold(0.0, f64::max);
    cap(centre, radians)
}

/// Rectangles of degrees that hold a cap: two where it crosses the date line.
fn cap(centre: Vector, radians: f64) -> Vec<Rectangle> {
    let radians = radians + MARGIN;
    let [longitude, latitude] = centre.degrees();
    let (south, north) = (latitude - radians.to_degrees(), latitude + radians.to_degrees());
    let ratio = radians.sin() / latitude.to_radians().cos();
    if radians >= WIDE || radians.is_nan() {
        return vec![EVERYWHERE];
    }
    if south <= -90.0 || north >= 90.0 || ratio >= 1.0 {
        return vec![Rectangle { low: [-180.0, south], high: [180.0, north] }];
    }
    let half = ratio.asin().to_degrees();
    let part = |west: f64, east: f64| Rectangle { low: [west, south], high: [east, north] };
    match (longitude - half, longitude + half) {
        (west, east) if west < -180.0 => vec![part(west + 360.0, 180.0), part(-180.0, east)],
        (west, east) if east > 180.0 => vec![part(west, 180.0), part(-180.0, east - 360.0)],
        (west, east) => vec![part(west, east)],
    }
}

impl Region {
    /// An area that holds it.
    pub(crate) fn area(&self) -> Area {
        match self {
            Region::Flat(flat) => Area { surface: Surface::Plane, rectangles: vec![flat_around(flat)] },
            Region::Cap { centre, radians } => {
                Area { surface: Surface::Sphere, rectangles: cap(*centre, *radians) }
            }
            Region::Shape(shape) => Area { surface: Surface::Sphere, rectangles: around(shape) },
        }
    }
}

fn flat_around(flat: &Flat) -> Rectangle {
    match flat {
        Flat::Box { low, high } => Rectangle { low: *low, high: *high },
        Flat::Circle { centre, radius } => {
            Rectangle { low: centre.map(|x| x - radius), high: centre.map(|x| x + radius) }
        }
        Flat::Polygon(corners) => {
            let least = |axis: usize| corners.iter().map(|corner| corner[axis]).fold(f64::INFINITY, f64::min);
            let most =
                |axis: usize| corners.iter().map(|corner| corner[axis]).fold(f64::NEG_INFINITY, f64::max);
            Rectangle { low: [least(0), least(1)], high: [most(0), most(1)] }
        }
    }
}

impl NearQuery {
    /// An area that holds all that is near enough.
    pub(crate) fn area(&self) -> Area {
        let radians = match self.unit {
            Unit::Metres => self.farthest / EARTH_RADIUS,
            Unit::Radians | Unit::Plane => self.farthest,
        };
        if self.unit == Unit::Plane {
            let low = self.origin.map(|x| x - self.farthest);
            let high = self.origin.map(|x| x + self.farthest);
            return Area { surface: Surface::Plane, rectangles: vec![Rectangle { low, high }] };
        }
        let centre = Vector::of_degrees(self.origin[0], self.origin[1]);
        Area { surface: Surface::Sphere, rectangles: cap(centre, radians) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(area: &[Rectangle], point: [f64; 2]) -> bool {
        area.iter().any(|part| (0..2).all(|axis| (part.low[axis]..=part.high[axis]).contains(&point[axis])))
    }

    #[test]
    fn a_cap_is_held_also_at_the_date_line_and_the_poles() {
        let around = |longitude, latitude, degrees: f64| {
            cap(Vector::of_degrees(longitude, latitude), degrees.to_radians())
        };
        assert!(holds(&around(179.0, 0.0, 2.0), [-179.5, 0.5]));
        assert!(holds(&around(-179.0, 0.0, 2.0), [179.5, 0.5]));
        assert!(holds(&around(10.0, 89.0, 2.0), [-170.0, 89.5]));
        assert!(holds(&around(10.0, 60.0, 10.0), [29.0, 61.0]));
        assert!(!holds(&around(10.0, 60.0, 1.0), [29.0, 61.0]));
        assert!(holds(&around(0.0, 0.0, 179.0), [90.0, 45.0]));
    }
}
