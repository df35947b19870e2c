//! The flat plane of legacy coordinate pairs.

/// A region of the plane, with its edge.
#[derive(Debug, Clone)]
pub(crate) enum Flat {
    Box { low: [f64; 2], high: [f64; 2] },
    Circle { centre: [f64; 2], radius: f64 },
    Polygon(Vec<[f64; 2]>),
}

pub(crate) fn distance(a: [f64; 2], b: [f64; 2]) -> f64 {
    (a[0] - b[0]).hypot(a[1] - b[1])
}

impl Flat {
    /// A box by any two opposite corners.
    pub(crate) fn rectangle(a: [f64; 2], b: [f64; 2]) -> Flat {
        Flat::Box { low: [a[0].min(b[0]), a[1].min(b[1])], high: [a[0].max(b[0]), a[1].max(b[1])] }
    }

    pub(crate) fn contains(&self, point: [f64; 2]) -> bool {
        match self {
            Flat::Box { low, high } => {
                (low[0]..=high[0]).contains(&point[0]) && (low[1]..=high[1]).contains(&point[1])
            }
            Flat::Circle { centre, radius } => distance(*centre, point) <= *radius,
            Flat::Polygon(corners) => in_polygon(corners, point),
        }
    }
}

/// Counts the edges that a ray from the point crosses. Corners and edges along the axes are inside, as is a slanting edge on
/// the left; one on the right is not. MongoDB draws the line there.
fn in_polygon(corners: &[[f64; 2]], point: [f64; 2]) -> bool {
    let [x, y] = point;
    let mut inside = false;
    for (a, b) in corners.iter().zip(corners.iter().cycle().skip(1)) {
        let along = |axis: usize| (a[axis].min(b[axis])..=a[axis].max(b[axis])).contains(&point[axis]);
        let on_axis = (a[1] == b[1] && y == a[1] && along(0)) || (a[0] == b[0] && x == a[0] && along(1));
        if *a == point || *b == point || on_axis {
            return true;
        }
        if y > a[1].min(b[1]) && y <= a[1].max(b[1]) {
            let crossing = a[0] + (y - a[1]) / (b[1] - a[1]) * (b[0] - a[0]);
            if x <= crossing {
                inside = !inside;
            }
        }
    }
    inside
}
