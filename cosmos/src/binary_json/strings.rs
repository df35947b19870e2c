//! The spellings of a string in binary JSON, and the cursor that reads them.
//!
//! Besides plain UTF-8 a string can be one of 32 well-known names, hexadecimal, a GUID, a date or base64 with its
//! redundancy left out, characters of a small range packed into 4 to 7 bits, or a reference to an earlier string.
//!
//! Holds: a reference leads to a string that lies before it and is no reference, so every string takes one step at
//! most, and no read leaves the bounds of the value that it belongs to.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::GeneralPurpose;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use mayfly_value::json::JsonError;

use super::BinaryJsonError;

/// The well-known names, in the order of their markers.
#[rustfmt::skip]
pub(super) const SYSTEM_STRINGS: [&str; 32] = [
    "$s", "$t", "$v", "_attachments", "_etag", "_rid", "_self", "_ts",
    "attachments/", "coordinates", "geometry", "GeometryCollection", "id", "url", "Value", "label",
    "LineString", "link", "MultiLineString", "MultiPoint", "MultiPolygon", "name", "Name", "Type",
    "Point", "Polygon", "properties", "type", "value", "Feature", "FeatureCollection", "_id",
];

const LOWER_HEX: &[u8; 16] = b"0123456789abcdef";
const UPPER_HEX: &[u8; 16] = b"0123456789ABCDEF";
const DATE_TIME: &[u8; 16] = b" 0123456789:-.TZ";

/// A place in the body, and how far reading may go.
pub(super) struct Cursor<'a> {
    pub(super) body: &'a [u8],
    pub(super) at: usize,
    pub(super) end: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn take(&mut self, len: usize) -> Result<&'a [u8], BinaryJsonError> {
        let stop = self.at.checked_add(len).filter(|stop| *stop <= self.end);
        let taken = stop.and_then(|stop| self.body.get(self.at..stop));
        let taken = taken.ok_or_else(|| self.malformed("it ends too early"))?;
        self.at += len;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], BinaryJsonError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    pub(super) fn byte(&mut self) -> Result<u8, BinaryJsonError> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// A length, count or offset of up to four bytes.
    pub(super) fn length(&mut self, width: usize) -> Result<usize, BinaryJsonError> {
        let bytes = self.take(width)?;
        Ok(bytes.iter().rev().fold(0, |length, byte| length << 8 | usize::from(*byte)))
    }

    pub(super) fn malformed(&self, reason: &'static str) -> BinaryJsonError {
        BinaryJsonError::Malformed { position: self.at, reason }
    }

    /// The string whose marker was just read.
    pub(super) fn string(&mut self, marker: u8) -> Result<Cow<'a, str>, BinaryJsonError> {
        let position = self.at.saturating_sub(1);
        Ok(match marker {
            0x20..=0x3F => SYSTEM_STRINGS.get(usize::from(marker - 0x20)).copied().unwrap_or_default().into(),
            0x40..=0x67 => return Err(BinaryJsonError::Dictionary { position }),
            0x71 | 0x72 => self.base64(usize::from(marker - 0x70), &STANDARD)?.into(),
            0x73 | 0x74 => self.base64(usize::from(marker - 0x72), &URL_SAFE)?.into(),
            0x75 => self.guid(LOWER_HEX)?.into(),
            0x76 => self.guid(UPPER_HEX)?.into(),
            0x77 => format!("\"{}\"", self.guid(LOWER_HEX)?).into(),
            0x78 => self.spelled(LOWER_HEX)?.into(),
            0x79 => self.spelled(UPPER_HEX)?.into(),
            0x7A => self.spelled(DATE_TIME)?.into(),
            0x7B..=0x7D => {
                let (count, base) = (self.length(1)?, self.byte()?);
                self.packed(count, u32::from(marker - 0x77), base)?.into()
            }
            0x7E | 0x7F => {
                let count = self.length(usize::from(marker - 0x7D))?;
                self.packed(count, 7, 0)?.into()
            }
            0x80..=0xBF => self.utf8(usize::from(marker & 0x3F))?.into(),
            0xC0..=0xC2 => {
                let length = self.length(1 << (marker - 0xC0))?;
                self.utf8(length)?.into()
            }
            0xC3..=0xC6 => {
                let offset = self.length(usize::from(marker - 0xC2))?;
                self.referred(offset, position)?
            }
            _ => return Err(BinaryJsonError::UnexpectedMarker { position, marker }),
        })
    }

    fn utf8(&mut self, len: usize) -> Result<&'a str, BinaryJsonError> {
        let from = self.at;
        let bytes = self.take(len)?;
        std::str::from_utf8(bytes)
            .map_err(|error| JsonError::NotUtf8 { position: from + error.valid_up_to() }.into())
    }

    /// The string at an offset from the beginning of the body, which has to lie before the reference.
    fn referred(&self, offset: usize, before: usize) -> Result<Cow<'a, str>, BinaryJsonError> {
        if offset == 0 || offset >= before {
            return Err(self.malformed("a reference must lead to an earlier string"));
        }
        let mut target = Cursor { body: self.body, at: offset, end: before };
        match target.byte()? {
            0xC3..=0xC6 => Err(self.malformed("a reference must not lead to another one")),
            marker => target.string(marker),
        }
    }

    /// `count` numbers of `bits` bits each, lowest bits first.
    fn unpack(&mut self, count: usize, bits: u32) -> Result<Vec<u8>, BinaryJsonError> {
        let bytes = self.take((count * bits as usize).div_ceil(8))?;
        let mut numbers = Vec::with_capacity(count);
        let (mut pending, mut pending_bits) = (0_u32, 0);
        for byte in bytes {
            pending |= u32::from(*byte) << pending_bits;
            pending_bits += 8;
            while pending_bits >= bits && numbers.len() < count {
                numbers.push((pending & ((1 << bits) - 1)) as u8);
                pending >>= bits;
                pending_bits -= bits;
            }
        }
        Ok(numbers)
    }

    fn packed(&mut self, count: usize, bits: u32, base: u8) -> Result<String, BinaryJsonError> {
        let numbers = self.unpack(count, bits)?;
        let character = |number: u8| number.checked_add(base).filter(u8::is_ascii).map(char::from);
        let text: Option<String> = numbers.into_iter().map(character).collect();
        text.ok_or_else(|| self.malformed("a packed string is not ASCII"))
    }

    fn spelled(&mut self, alphabet: &[u8; 16]) -> Result<String, BinaryJsonError> {
        let count = self.length(1)?;
        Ok(self.unpack(count, 4)?.into_iter().map(|digit| letter(alphabet, digit)).collect())
    }

    fn guid(&mut self, alphabet: &[u8; 16]) -> Result<String, BinaryJsonError> {
        let digits = self.unpack(32, 4)?;
        Ok(dashed(digits.into_iter().map(|digit| letter(alphabet, digit))))
    }

    /// Groups of four characters, of which the last may lack one or two; `padding` says how many, and whether the
    /// text showed them as `=` (0 to 2) or left them out (the complement).
    fn base64(&mut self, width: usize, engine: &GeneralPurpose) -> Result<String, BinaryJsonError> {
        let characters = self.length(width)? * 4;
        let padding = self.byte()?;
        let (padding, left_out) = if padding > 2 { (!padding, !padding) } else { (padding, 0) };
        let significant = characters.checked_sub(usize::from(padding)).filter(|_| padding <= 2);
        let significant = significant.ok_or_else(|| self.malformed("base64 padding is 0, 1 or 2"))?;
        let mut text = engine.encode(self.take(significant * 3 / 4)?);
        text.truncate(characters - usize::from(left_out));
        Ok(text)
    }

    /// A GUID that is a value of its own rather than a string: three little-endian numbers, then bytes.
    pub(super) fn guid_value(&mut self) -> Result<String, BinaryJsonError> {
        let [a, b, c, d, e, f, g, h, rest @ ..] = self.array::<16>()?;
        let bytes = [d, c, b, a, f, e, h, g].into_iter().chain(rest);
        let digits = bytes.flat_map(|byte| [byte >> 4, byte & 0x0F]);
        Ok(dashed(digits.map(|digit| letter(LOWER_HEX, digit))))
    }

    /// Bytes that are a value of their own; JSON can hold them as base64 only.
    pub(super) fn binary_value(&mut self, width: usize) -> Result<String, BinaryJsonError> {
        let length = self.length(width)?;
        Ok(STANDARD.encode(self.take(length)?))
    }
}

fn letter(alphabet: &[u8; 16], digit: u8) -> char {
    alphabet.get(usize::from(digit)).copied().map_or('\u{FFFD}', char::from)
}

/// Groups of 8, 4, 4, 4 and 12 digits.
fn dashed(digits: impl Iterator<Item = char>) -> String {
    let mut text = String::with_capacity(36);
    for (index, digit) in digits.enumerate() {
        if matches!(index, 8 | 12 | 16 | 20) {
            text.push('-');
        }
        text.push(digit);
    }
    text
}
