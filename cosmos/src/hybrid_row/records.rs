//! RecordIO: rows one after the other, each with its length and checksum before it.
//!
//! A body is one or more segments; a segment's header may carry more than its own length, which is skipped.

use bytes::Bytes;

use super::HybridRowError;
use super::primitives::{RECORD, Reader, SEGMENT};

/// A segment header without a comment: row header, presence mask, total length.
const SEGMENT_LEN: usize = 10;
const PREFIX_LEN: usize = 13;

/// The rows of all records.
pub(super) fn read(body: &Bytes) -> Result<Vec<Bytes>, HybridRowError> {
    let mut reader = Reader(body.clone());
    if reader.array()? != SEGMENT {
        return Err(HybridRowError::UnexpectedRow);
    }
    skip_segment_header(&mut reader)?;
    let mut rows = Vec::new();
    while !reader.is_empty() {
        match reader.array()? {
            SEGMENT => skip_segment_header(&mut reader)?,
            RECORD => rows.push(read_record(&mut reader)?),
            _ => return Err(HybridRowError::UnexpectedRow),
        }
    }
    Ok(rows)
}

/// Behind the row header.
fn skip_segment_header(reader: &mut Reader) -> Result<(), HybridRowError> {
    const LENGTH_PRESENT: u8 = 1;
    let invalid = HybridRowError::InvalidValue { field: "a segment's length" };
    let mask = reader.byte()?;
    let length = usize::try_from(reader.i32()?).ok().filter(|_| mask & LENGTH_PRESENT != 0);
    let rest = length.and_then(|length| length.checked_sub(SEGMENT_LEN)).ok_or(invalid)?;
    reader.take(rest).map(|_| ())
}

/// Behind the row header.
fn read_record(reader: &mut Reader) -> Result<Bytes, HybridRowError> {
    let invalid = |_| HybridRowError::InvalidValue { field: "a record's length" };
    let length = usize::try_from(reader.i32()?).map_err(invalid)?;
    let checksum = reader.u32()?;
    let row = reader.take(length)?;
    if crc32(&row) == checksum { Ok(row) } else { Err(HybridRowError::WrongChecksum) }
}

/// A segment of these rows.
pub(super) fn write(rows: impl Iterator<Item = Vec<u8>>) -> Bytes {
    let mut out = Vec::with_capacity(SEGMENT_LEN);
    out.extend_from_slice(&SEGMENT);
    out.push(1);
    out.extend_from_slice(&(SEGMENT_LEN as i32).to_le_bytes());
    for row in rows {
        out.reserve(PREFIX_LEN + row.len());
        out.extend_from_slice(&RECORD);
        // A row holds one item, so its length is far below the range of an i32.
        out.extend_from_slice(&(row.len() as i32).to_le_bytes());
        out.extend_from_slice(&crc32(&row).to_le_bytes());
        out.extend_from_slice(&row);
    }
    out.into()
}

/// The checksum of ISO 3309, as in zip files.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        let index = (crc ^ u32::from(*byte)) & 0xFF;
        crc >> 8 ^ CRC_TABLE.get(index as usize).copied().unwrap_or_default()
    })
}

const CRC_TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_value_of_the_standard() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
        assert_eq!(crc32(b""), 0);
    }
}
