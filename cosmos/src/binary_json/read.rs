//! Reading binary JSON: one pass over the body that writes BSON as it goes.
//!
//! Numbers follow the rules for JSON text: what fits an i64 stays an integer (int32 where it fits), everything else is
//! a double, and what is not finite is refused. GUIDs and bytes, for which JSON has no type, become strings.
//!
//! Holds: a value never reads beyond its container, lengths and counts say the truth, and the depth of the recursion
//! is the sink's depth, which is limited.

use bson::RawDocumentBuf;
use mayfly_value::json::{JsonError, JsonLimits};

use super::sink::*;
use super::strings::Cursor;
use super::{BinaryJsonError, is_binary};

type Result<T> = std::result::Result<T, BinaryJsonError>;

pub(super) fn document(body: &[u8], limits: JsonLimits) -> Result<RawDocumentBuf> {
    if body.len() > limits.bytes_max {
        return Err(JsonError::TooLarge { bytes: body.len(), bytes_max: limits.bytes_max }.into());
    }
    if !is_binary(body) {
        return Err(BinaryJsonError::Malformed { position: 0, reason: "it must begin with 0x80" });
    }
    let cursor = Cursor { body, at: 1, end: body.len() };
    let mut reader = Reader { cursor, sink: Sink::new(body.len(), limits) };
    if reader.value()? != TAG_OBJECT {
        return Err(JsonError::NotAnObject.into());
    }
    if reader.cursor.at != body.len() {
        return Err(reader.cursor.malformed("something follows the object"));
    }
    RawDocumentBuf::from_bytes(reader.sink.into_bytes())
        .map_err(|_| BinaryJsonError::Malformed { position: 0, reason: "it makes no document" })
}

struct Reader<'a> {
    cursor: Cursor<'a>,
    sink: Sink,
}

/// What stands before the members of a container.
struct Frame {
    bytes: Option<usize>,
    count: Option<usize>,
}

impl Reader<'_> {
    /// Reads one value into the sink; yields its type tag.
    fn value(&mut self) -> Result<u8> {
        let marker = self.cursor.byte()?;
        match marker {
            0x00..=0x1F => self.integer(i64::from(marker)),
            0xC7..=0xCF | 0xD7..=0xDC => self.number(marker),
            0xD0 => self.scalar(TAG_NULL, &[], "null"),
            0xD1 => self.scalar(TAG_BOOL, &[0], "false"),
            0xD2 => self.scalar(TAG_BOOL, &[1], "true"),
            0xD3 => {
                let text = self.cursor.guid_value()?;
                self.text(&text)
            }
            0xDD..=0xDF => {
                let text = self.cursor.binary_value(1 << (marker - 0xDD))?;
                self.text(&text)
            }
            0xE0..=0xE7 => self.array(marker - 0xE0),
            0xE8..=0xEF => self.object(marker - 0xE8),
            0xF0 | 0xF1 => self.uniform_numbers(usize::from(marker - 0xEF)),
            0xF2 | 0xF3 => self.uniform_arrays(marker),
            _ => {
                let text = self.cursor.string(marker)?;
                self.text(&text)
            }
        }
    }

    fn scalar(&mut self, tag: u8, bytes: &[u8], text: &str) -> Result<u8> {
        self.sink.scalar(bytes, text.len())?;
        Ok(tag)
    }

    fn text(&mut self, text: &str) -> Result<u8> {
        self.sink.string(text)?;
        Ok(TAG_STRING)
    }

    fn array(&mut self, form: u8) -> Result<u8> {
        let open = self.sink.enter()?;
        self.members(form, |reader, index| {
            let tag_at = reader.sink.item(index)?;
            let tag = reader.value()?;
            reader.sink.set_tag(tag_at, tag);
            Ok(())
        })?;
        self.sink.leave(&open)?;
        Ok(TAG_ARRAY)
    }

    fn object(&mut self, form: u8) -> Result<u8> {
        let open = self.sink.enter()?;
        self.members(form, |reader, _| {
            let marker = reader.cursor.byte()?;
            let name = reader.cursor.string(marker)?;
            let tag_at = reader.sink.field(&name)?;
            let tag = reader.value()?;
            reader.sink.set_tag(tag_at, tag);
            Ok(())
        })?;
        self.sink.leave(&open)?;
        Ok(TAG_OBJECT)
    }

    /// The three ways to say where a container ends: by its marker, by its length, by length and count.
    fn frame(&mut self, form: u8) -> Result<Frame> {
        Ok(match form {
            0 | 1 => Frame { bytes: None, count: Some(usize::from(form)) },
            2..=4 => Frame { bytes: Some(self.cursor.length(1 << (form - 2))?), count: None },
            _ => {
                let width = 1 << (form.min(7) - 5);
                Frame { bytes: Some(self.cursor.length(width)?), count: Some(self.cursor.length(width)?) }
            }
        })
    }

    fn members(&mut self, form: u8, mut read: impl FnMut(&mut Self, usize) -> Result<()>) -> Result<()> {
        let frame = self.frame(form)?;
        let outer_end = self.cursor.end;
        if let Some(bytes) = frame.bytes {
            let end = self.cursor.at.checked_add(bytes).filter(|end| *end <= outer_end);
            self.cursor.end = end.ok_or_else(|| self.cursor.malformed("it ends too early"))?;
        }
        let mut count = 0;
        while match frame.bytes {
            Some(_) => self.cursor.at < self.cursor.end,
            None => Some(count) < frame.count,
        } {
            read(self, count)?;
            count += 1;
        }
        self.cursor.end = outer_end;
        match frame.count {
            Some(said) if said != count => Err(self.cursor.malformed("the count of members is wrong")),
            _ => Ok(()),
        }
    }

    /// An array that gives the marker of all its numbers once.
    fn uniform_numbers(&mut self, width: usize) -> Result<u8> {
        let marker = self.cursor.byte()?;
        let count = self.cursor.length(width)?;
        self.numbers(marker, count)
    }

    /// An array of such arrays, all of the same length.
    fn uniform_arrays(&mut self, marker: u8) -> Result<u8> {
        let width = usize::from(marker - 0xF1);
        if self.cursor.byte()? != marker - 2 {
            return Err(self.cursor.malformed("an array of arrays must hold arrays of numbers"));
        }
        let number_marker = self.cursor.byte()?;
        let (count, rows) = (self.cursor.length(width)?, self.cursor.length(width)?);
        let open = self.sink.enter()?;
        for index in 0..rows {
            let tag_at = self.sink.item(index)?;
            let tag = self.numbers(number_marker, count)?;
            self.sink.set_tag(tag_at, tag);
        }
        self.sink.leave(&open)?;
        Ok(TAG_ARRAY)
    }

    fn numbers(&mut self, marker: u8, count: usize) -> Result<u8> {
        let open = self.sink.enter()?;
        for index in 0..count {
            let tag_at = self.sink.item(index)?;
            let tag = self.number(marker)?;
            self.sink.set_tag(tag_at, tag);
        }
        self.sink.leave(&open)?;
        Ok(TAG_ARRAY)
    }

    /// The number whose marker was just read.
    fn number(&mut self, marker: u8) -> Result<u8> {
        let cursor = &mut self.cursor;
        match marker {
            0xC7 => {
                let value = u64::from_le_bytes(cursor.array()?);
                match i64::try_from(value) {
                    Ok(value) => self.integer(value),
                    Err(_) => self.double(value as f64),
                }
            }
            0xC8 | 0xD7 => cursor.byte().and_then(|value| self.integer(value.into())),
            0xD8 => cursor.array().and_then(|bytes| self.integer(i8::from_le_bytes(bytes).into())),
            0xC9 | 0xD9 => cursor.array().and_then(|bytes| self.integer(i16::from_le_bytes(bytes).into())),
            0xCA | 0xDA => cursor.array().and_then(|bytes| self.integer(i32::from_le_bytes(bytes).into())),
            0xCB | 0xDB => cursor.array().and_then(|bytes| self.integer(i64::from_le_bytes(bytes))),
            0xDC => cursor.array().and_then(|bytes| self.integer(u32::from_le_bytes(bytes).into())),
            0xCC | 0xCE => cursor.array().and_then(|bytes| self.double(f64::from_le_bytes(bytes))),
            0xCD => cursor.array().and_then(|bytes| self.double(f32::from_le_bytes(bytes).into())),
            0xCF => cursor.array().and_then(|bytes| self.double(half(u16::from_le_bytes(bytes)))),
            _ => Err(BinaryJsonError::UnexpectedMarker { position: cursor.at, marker }),
        }
    }

    fn integer(&mut self, value: i64) -> Result<u8> {
        match i32::try_from(value) {
            Ok(value) => self.scalar(TAG_INT32, &value.to_le_bytes(), "0"),
            Err(_) => self.scalar(TAG_INT64, &value.to_le_bytes(), "0"),
        }
    }

    fn double(&mut self, value: f64) -> Result<u8> {
        if !value.is_finite() {
            return Err(self.cursor.malformed("JSON has no numbers that are not finite"));
        }
        self.scalar(TAG_DOUBLE, &value.to_le_bytes(), "0")
    }
}

/// A half-precision number: a sign, five bits of exponent, ten of fraction.
fn half(bits: u16) -> f64 {
    let fraction = f64::from(bits & 0x3FF);
    let magnitude = match i32::from(bits >> 10 & 0x1F) {
        0 => fraction * 2_f64.powi(-24),
        0x1F if fraction == 0.0 => f64::INFINITY,
        0x1F => f64::NAN,
        exponent => (1024.0 + fraction) * 2_f64.powi(exponent - 25),
    };
    if bits & 0x8000 == 0 { magnitude } else { -magnitude }
}
