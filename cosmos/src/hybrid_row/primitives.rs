//! Row headers, integers and strings of HybridRow, all little-endian.

use bytes::{Buf, Bytes};

use super::HybridRowError;

/// The version of the format, the first byte of every row.
pub(super) const VERSION: u8 = 0x81;

/// Each kind of row begins with the version and the number of its schema.
pub(super) type RowHeader = [u8; 5];

const fn row_header(schema: i32) -> RowHeader {
    let [a, b, c, d] = schema.to_le_bytes();
    [VERSION, a, b, c, d]
}

pub(super) const SEGMENT: RowHeader = row_header(2_147_473_648);
pub(super) const RECORD: RowHeader = row_header(2_147_473_649);
pub(super) const OPERATION: RowHeader = row_header(2_145_473_648);
pub(super) const RESULT: RowHeader = row_header(2_145_473_649);

/// What is left of a row or a body.
#[derive(Clone)]
pub(super) struct Reader(pub(super) Bytes);

impl Reader {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn take(&mut self, len: usize) -> Result<Bytes, HybridRowError> {
        if len > self.0.len() {
            return Err(HybridRowError::Truncated);
        }
        Ok(self.0.split_to(len))
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], HybridRowError> {
        let mut array = [0; N];
        self.0.try_copy_to_slice(&mut array).map_err(|_| HybridRowError::Truncated)?;
        Ok(array)
    }

    pub(super) fn byte(&mut self) -> Result<u8, HybridRowError> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(super) fn i32(&mut self) -> Result<i32, HybridRowError> {
        self.array().map(i32::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, HybridRowError> {
        self.array().map(u32::from_le_bytes)
    }

    /// Seven bits a byte, lowest first; the top bit says that more follow.
    pub(super) fn varuint(&mut self) -> Result<usize, HybridRowError> {
        let mut value = 0_u64;
        for shift in (0..63).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                return usize::try_from(value).map_err(|_| HybridRowError::Truncated);
            }
        }
        Err(HybridRowError::InvalidValue { field: "a length" })
    }

    /// Bytes with their length before them.
    pub(super) fn binary(&mut self) -> Result<Bytes, HybridRowError> {
        let length = self.varuint()?;
        self.take(length)
    }

    /// Text with its length before it.
    pub(super) fn text(&mut self, field: &'static str) -> Result<String, HybridRowError> {
        String::from_utf8(self.binary()?.into()).map_err(|_| HybridRowError::InvalidValue { field })
    }
}

/// Appends bytes with their length before them.
pub(super) fn put_binary(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varuint(out, bytes.len());
    out.extend_from_slice(bytes);
}

fn put_varuint(out: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
