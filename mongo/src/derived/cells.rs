//! A grid over the plane, or over the degrees of the sphere: squares that are quartered again and again.
//!
//! A cell is named by digits, one for each step down from the whole grid, so that what lies inside of a cell begins with
//! its name:
//!
//! ```text
//!   ┌────┬────┐
//!   │ 2  │ 3  │      "3" is a quarter of the grid, "31" a quarter of that
//!   ├────┼─┬──┤
//!   │ 0  │1│  │
//!   └────┴─┴──┘
//! ```

/// Steps down to the cell of a point: 0.0003 degrees, or some thirty metres.
const DEPTH: usize = 20;

/// Cells that a region is covered by, at most. More would follow its outline better, and cost a look each.
const CELLS_MAX: usize = 24;

/// The whole of a grid.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grid {
    low: [f64; 2],
    high: [f64; 2],
}

/// A part of the plane with sides along the axes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rectangle {
    pub(crate) low: [f64; 2],
    pub(crate) high: [f64; 2],
}

impl Rectangle {
    fn overlaps(&self, other: &Rectangle) -> bool {
        (0..2).all(|axis| self.low[axis] <= other.high[axis] && other.low[axis] <= self.high[axis])
    }

    fn holds(&self, other: &Rectangle) -> bool {
        (0..2).all(|axis| self.low[axis] <= other.low[axis] && other.high[axis] <= self.high[axis])
    }
}

impl Grid {
    /// Longitude and latitude.
    pub(crate) const DEGREES: Grid = Grid { low: [-180.0, -90.0], high: [180.0, 90.0] };

    /// The same interval both ways.
    pub(crate) fn square(low: f64, high: f64) -> Grid {
        Grid { low: [low; 2], high: [high; 2] }
    }

    /// The cell of a point; none if it lies outside.
    pub(crate) fn cell(&self, point: [f64; 2]) -> Option<String> {
        let inside = (0..2).all(|axis| (self.low[axis]..=self.high[axis]).contains(&point[axis]));
        if !inside {
            return None;
        }
        let mut square = Rectangle { low: self.low, high: self.high };
        let mut name = String::with_capacity(DEPTH);
        for _ in 0..DEPTH {
            let middle = [0, 1].map(|axis| (square.low[axis] + square.high[axis]) / 2.0);
            let upper = [0, 1].map(|axis| point[axis] >= middle[axis]);
            let low = [0, 1].map(|axis| if upper[axis] { middle[axis] } else { square.low[axis] });
            let high = [0, 1].map(|axis| if upper[axis] { square.high[axis] } else { middle[axis] });
            square = Rectangle { low, high };
            name.push(char::from(b'0' + u8::from(upper[0]) + 2 * u8::from(upper[1])));
        }
        Some(name)
    }

    /// Cells that hold all of the rectangles, as small as so few can be.
    pub(crate) fn cover(&self, regions: &[Rectangle]) -> Vec<String> {
        let whole = Rectangle { low: self.low, high: self.high };
        let mut cells = vec![(String::new(), whole)];
        for _ in 0..DEPTH {
            let mut next = Vec::new();
            let mut is_finer = false;
            for (name, square) in &cells {
                if regions.iter().any(|region| region.holds(square)) {
                    next.push((name.clone(), *square));
                    continue;
                }
                is_finer = true;
                let quarters = quarters(name, square).into_iter();
                next.extend(
                    quarters.filter(|(_, quarter)| regions.iter().any(|region| region.overlaps(quarter))),
                );
            }
            if next.len() > CELLS_MAX || !is_finer {
                break;
            }
            cells = next;
        }
        cells.into_iter().map(|(name, _)| name).collect()
    }
}

fn quarters(name: &str, square: &Rectangle) -> [(String, Rectangle); 4] {
    let middle = [0, 1].map(|axis| (square.low[axis] + square.high[axis]) / 2.0);
    [0_u8, 1, 2, 3].map(|digit| {
        let is_upper = |axis: usize| (digit >> axis) & 1 == 1;
        let low = [0, 1].map(|axis| if is_upper(axis) { middle[axis] } else { square.low[axis] });
        let high = [0, 1].map(|axis| if is_upper(axis) { square.high[axis] } else { middle[axis] });
        (format!("{name}{digit}"), Rectangle { low, high })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_lies_in_the_cells_that_cover_it() {
        for point in [[0.0, 0.0], [13.4, 52.5], [-180.0, -90.0], [180.0, 90.0], [-0.1, 51.5]] {
            let cell = Grid::DEGREES.cell(point).unwrap();
            let around = Rectangle { low: point.map(|x| x - 0.01), high: point.map(|x| x + 0.01) };
            let cover = Grid::DEGREES.cover(&[around]);
            assert!(cover.len() <= CELLS_MAX);
            assert!(cover.iter().any(|covering| cell.starts_with(covering.as_str())), "{point:?} {cover:?}");
            assert!(cover.iter().all(|covering| covering.len() > 8), "{cover:?}");
        }
        assert_eq!(Grid::DEGREES.cell([181.0, 0.0]), None);
    }

    #[test]
    fn all_is_covered_by_one_cell() {
        let all = Rectangle { low: [-200.0, -100.0], high: [200.0, 100.0] };
        assert_eq!(Grid::DEGREES.cover(&[all]), [""]);
    }
}
