//! Short codes of vectors, and what they say about distances.
//!
//! A code has a byte for each number of the vector, and says how far it is from the vector at most. So what it says of a
//! distance are two bounds, between which the distance is for certain: who wants the nearest vectors need not look at one
//! whose bounds are beyond those of enough others.
//!
//! ```text
//!   norm f64   error f32   scale f32   parts i8 × dimensions        vector ≈ scale × parts
//! ```
//!
//! A vector whose numbers are too large or too small for this has an empty code, which says nothing: its distance may be
//! any.

use super::Distance;

const HEAD: usize = 16;

/// The code of a vector.
pub fn encode(vector: &[f64]) -> Vec<u8> {
    /// The largest part.
    const PART_MAX: f64 = 127.0;
    let norm = norm(vector);
    let largest = vector.iter().fold(0.0_f64, |largest, number| largest.max(number.abs()));
    let scale = (largest / PART_MAX) as f32;
    let is_plain = norm.is_normal() && scale.is_normal();
    if !is_plain && largest != 0.0 {
        return Vec::new();
    }
    let wide = f64::from(scale);
    let part = |number: &f64| (number / wide).round().clamp(-PART_MAX, PART_MAX) as i8;
    let parts: Vec<i8> = vector.iter().map(part).collect();
    let rest = vector.iter().zip(&parts).map(|(number, part)| number - wide * f64::from(*part));
    let error = rest.map(|rest| rest * rest).sum::<f64>().sqrt();
    // Rounded up, and more than the sum has lost.
    let error = ((error + norm * 1e-12) as f32).next_up();
    let mut code = Vec::with_capacity(HEAD + parts.len());
    code.extend_from_slice(&norm.to_be_bytes());
    code.extend_from_slice(&error.to_be_bytes());
    code.extend_from_slice(&scale.to_be_bytes());
    code.extend(parts.into_iter().map(|part| part as u8));
    code
}

fn norm(vector: &[f64]) -> f64 {
    vector.iter().map(|number| number * number).sum::<f64>().sqrt()
}

/// A vector that others are compared with.
#[derive(Debug, Clone)]
pub struct Target {
    /// The vector, made one long.
    direction: Vec<f32>,
    norm: f64,
    distance: Distance,
}

/// How near a vector is at least and at most: more is nearer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Nearness {
    /// At least.
    pub low: f64,
    /// At most.
    pub high: f64,
}

impl Nearness {
    /// What is known of a vector without a code.
    pub const UNKNOWN: Self = Self { low: f64::NEG_INFINITY, high: f64::INFINITY };
}

impl Target {
    /// None if codes say nothing about distances from this vector.
    pub fn new(vector: &[f64], distance: Distance) -> Option<Self> {
        /// Neither these nor their squares, nor products of those with what has a code, are too large or too small.
        const NORMS: std::ops::Range<f64> = 1e-60..1e60;
        let norm = norm(vector);
        let direction = vector.iter().map(|number| (number / norm) as f32).collect();
        NORMS.contains(&norm).then_some(Self { direction, norm, distance })
    }

    /// How distances from it are measured.
    pub fn distance(&self) -> Distance {
        self.distance
    }

    /// What a code says about its vector. None for a vector that has no distance.
    pub fn nearness(&self, code: &[u8]) -> Option<Nearness> {
        let Some((head, parts)) = code.split_at_checked(HEAD) else { return Some(Nearness::UNKNOWN) };
        if parts.len() != self.direction.len() {
            return None;
        }
        let norm = f64::from_be_bytes(head.get(..8)?.try_into().ok()?);
        let error = f64::from(f32::from_be_bytes(head.get(8..12)?.try_into().ok()?));
        let scale = f64::from(f32::from_be_bytes(head.get(12..16)?.try_into().ok()?));
        let product = scale * self.norm * f64::from(dot(parts, &self.direction));
        // How far the code is from the vector, and what sums of floats lose: less than a rounding for each number.
        let roundings = (parts.len() + 8) as f64;
        let lost = roundings * f64::from(f32::EPSILON) * (norm + error) * self.norm;
        let margin = error * self.norm + lost;
        let (least, most) = (product - margin, product + margin);
        match self.distance {
            Distance::DotProduct => Some(Nearness { low: least, high: most }),
            // Zeros have no direction.
            Distance::Cosine if norm == 0.0 => None,
            Distance::Cosine => {
                let norms = norm * self.norm;
                Some(Nearness { low: least / norms, high: most / norms })
            }
            Distance::Euclidean => {
                let squares = norm * norm + self.norm * self.norm;
                let slack = 8.0 * roundings * f64::EPSILON * squares;
                let from = |product: f64, slack: f64| -(squares - 2.0 * product + slack).max(0.0).sqrt();
                Some(Nearness { low: from(least, slack), high: from(most, -slack) })
            }
        }
    }
}

/// The product of parts and numbers, in lanes that the compiler can work on at once.
fn dot(parts: &[u8], numbers: &[f32]) -> f32 {
    const LANES: usize = 16;
    let mut sums = [0.0_f32; LANES];
    let (part_chunks, number_chunks) = (parts.chunks_exact(LANES), numbers.chunks_exact(LANES));
    let rest = part_chunks.remainder().iter().zip(number_chunks.remainder());
    let rest: f32 = rest.map(|(part, number)| f32::from(*part as i8) * number).sum();
    for (parts, numbers) in part_chunks.zip(number_chunks) {
        for ((sum, part), number) in sums.iter_mut().zip(parts).zip(numbers) {
            *sum += f32::from(*part as i8) * number;
        }
    }
    sums.iter().sum::<f32>() + rest
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever the vectors, the true nearness is between the bounds.
        #[test]
        fn bounds_hold(
            a in prop::collection::vec(-1e3_f64..1e3, 1..40),
            seed in any::<u64>(),
            power in -6..6,
        ) {
            let size = 10_f64.powi(power);
            let b: Vec<f64> = a.iter().enumerate().map(|(n, number)| {
                let bits = seed.rotate_left(n as u32 * 7) as f64 / u64::MAX as f64;
                number * bits * size - (1.0 - bits)
            }).collect();
            let code = encode(&a);
            for distance in [Distance::Cosine, Distance::DotProduct, Distance::Euclidean] {
                let Some(target) = Target::new(&b, distance) else { continue };
                let found = target.nearness(&code).unwrap();
                let exact = distance.between(&a, &b);
                let exact = if distance == Distance::Euclidean { -exact } else { exact };
                prop_assert!(found.low <= exact && exact <= found.high, "{distance:?} {exact} {found:?}");
            }
        }
    }

    #[test]
    fn codes_are_near() {
        let vector: Vec<f64> = (0..256).map(|n| f64::from((n * 37) % 101) / 50.0 - 1.0).collect();
        let found = Target::new(&vector, Distance::Cosine).unwrap().nearness(&encode(&vector)).unwrap();
        assert!(found.high - found.low < 0.02 && found.high >= 1.0, "{found:?}");
    }

    #[test]
    fn what_has_no_code_may_be_anywhere() {
        let target = Target::new(&[1.0, 2.0], Distance::Cosine).unwrap();
        for vector in [&[1e300, 1e300][..], &[1e-300, 0.0], &[f64::INFINITY, 1.0], &[f64::NAN, 1.0]] {
            assert_eq!(target.nearness(&encode(vector)), Some(Nearness::UNKNOWN), "{vector:?}");
        }
        assert!(Target::new(&[1e-100, 0.0], Distance::DotProduct).is_none());
        assert!(Target::new(&[f64::NAN], Distance::DotProduct).is_none());
    }

    #[test]
    fn what_has_no_distance_is_left_out() {
        let nearness = |vector: &[f64], distance| {
            Target::new(&[3.0, 4.0], distance).and_then(|target| target.nearness(&encode(vector)))
        };
        assert_eq!(nearness(&[1.0, 2.0, 3.0], Distance::Cosine), None);
        assert_eq!(nearness(&[], Distance::DotProduct), None);
        assert_eq!(nearness(&[0.0, 0.0], Distance::Cosine), None);
        let from_zero = nearness(&[0.0, 0.0], Distance::Euclidean).unwrap();
        assert!(from_zero.low <= -5.0 && -5.0 <= from_zero.high, "{from_zero:?}");
    }
}
