//! Vectors: arrays as the numbers in them, and how far they are apart.
//!
//! Numbers are read off the bytes: a search among vectors does this for every document it meets.

pub mod code;

use bson::RawArray;

/// How the distance of two vectors is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Distance {
    /// By the cosine of the angle: more is nearer.
    Cosine,
    /// By the product: more is nearer.
    DotProduct,
    /// As the crow flies: less is nearer.
    Euclidean,
}

impl Distance {
    /// The one with this name, in any case.
    pub fn named(name: &str) -> Option<Distance> {
        let known = [
            ("cosine", Distance::Cosine),
            ("dotproduct", Distance::DotProduct),
            ("euclidean", Distance::Euclidean),
        ];
        known.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, distance)| distance)
    }

    /// The distance of two vectors of one length.
    pub fn between(self, a: &[f64], b: &[f64]) -> f64 {
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        match self {
            // Of a vector without a direction the angle is not known; NaN in the mathematics.
            Distance::Cosine => dot(a, b) / (dot(a, a) * dot(b, b)).sqrt(),
            Distance::DotProduct => dot(a, b),
            Distance::Euclidean => a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt(),
        }
    }
}

/// The numbers of an array; `None` if something else is in it, or if its bytes are damaged.
pub fn numbers(array: &RawArray) -> Option<Vec<f64>> {
    /// A type, a name of at least one digit with its end, and at least four bytes of value.
    const ITEM_BYTES_MIN: usize = 7;
    let bytes = array.as_bytes();
    let mut numbers = Vec::with_capacity(bytes.len() / ITEM_BYTES_MIN);
    let mut rest = bytes.get(size_of::<i32>()..)?;
    loop {
        let (kind, named) = rest.split_first()?;
        if *kind == 0 {
            return Some(numbers);
        }
        let name_len = named.iter().position(|byte| *byte == 0)?;
        let value = named.get(name_len + 1..)?;
        let len = match kind {
            0x01 => {
                numbers.push(f64::from_le_bytes(*value.first_chunk()?));
                8
            }
            0x10 => {
                numbers.push(f64::from(i32::from_le_bytes(*value.first_chunk()?)));
                4
            }
            0x12 => {
                numbers.push(i64::from_le_bytes(*value.first_chunk()?) as f64);
                8
            }
            _ => return None,
        };
        rest = value.get(len..)?;
    }
}

#[cfg(test)]
mod tests {
    use bson::{RawArrayBuf, rawdoc};

    use super::*;

    #[test]
    fn all_kinds_of_numbers_are_read() {
        let document = rawdoc! { "v": [1.5, 2_i32, -3_i64, 0.0] };
        let array = document.get_array("v").unwrap();
        assert_eq!(numbers(array), Some(vec![1.5, 2.0, -3.0, 0.0]));
        assert_eq!(numbers(&RawArrayBuf::new()), Some(Vec::new()));
        let many: RawArrayBuf = (0..2000).map(f64::from).collect();
        assert_eq!(numbers(&many).map(|numbers| numbers.len()), Some(2000));
    }

    #[test]
    fn anything_else_is_no_vector() {
        for other in
            [rawdoc! { "v": [1, "2"] }, rawdoc! { "v": [[1]] }, rawdoc! { "v": [bson::RawBson::Null] }]
        {
            assert_eq!(numbers(other.get_array("v").unwrap()), None);
        }
    }
}
