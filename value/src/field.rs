//! The properties of a document, by stepping over its bytes.
//!
//! A scan asks for one of every document it meets, so nothing is read but types, names and lengths until the name is the
//! one. Kinds that queries seldom ask for are left to the `bson` crate once it is known that they are there.

use std::ops::Range;

use bson::{RawBsonRef, RawDocument};

/// The value of the first property with this name; `None` if there is none, or if the bytes before it are damaged.
pub fn find<'a>(document: &'a RawDocument, name: &str) -> Option<RawBsonRef<'a>> {
    let mut fields = Fields::of(document.as_bytes())?;
    loop {
        let field = fields.next()?;
        // Names of one length are common; few of them end alike.
        if field.name.last() == name.as_bytes().last() && field.name == name.as_bytes() {
            return field.simple().or_else(|| slowly(document, name));
        }
    }
}

/// A property, or an item of an array, as its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field<'a> {
    /// The type, as BSON numbers them.
    pub kind: u8,
    /// Not checked to be UTF-8.
    pub name: &'a [u8],
    /// Not checked to be what its type says.
    pub value: &'a [u8],
}

impl<'a> Field<'a> {
    /// The property whose name, and the byte that ends it, these bytes have at `at`. None if they cannot be a property:
    /// bytes that happen to be alike.
    pub fn around(bytes: &'a [u8], at: Range<usize>) -> Option<Self> {
        let kind = *bytes.get(at.start.checked_sub(1)?)?;
        let (name, value) = bytes.get(at.start..)?.split_at_checked(at.len())?;
        Some(Self { kind, name: name.strip_suffix(&[0])?, value: value.get(..value_len(kind, value)?)? })
    }

    /// Its value, if that is of one of JSON's scalar types, or an object, and not damaged.
    pub fn simple(&self) -> Option<RawBsonRef<'a>> {
        simple(self.kind, self.value)
    }
}

/// The properties of a document in their order, until the bytes end or cannot be read.
#[derive(Debug, Clone)]
pub struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    /// Those of a document or an array; `None` if there is not even a length.
    pub fn of(document: &'a [u8]) -> Option<Self> {
        Some(Self { rest: document.get(size_of::<i32>()..)? })
    }

    /// Whether all of them were read: nothing is left but the byte that ends a document.
    pub fn is_whole(&self) -> bool {
        self.rest == [0]
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Field<'a>;

    fn next(&mut self) -> Option<Field<'a>> {
        let (kind, named) = self.rest.split_first()?;
        if *kind == 0 {
            return None;
        }
        let name_len = name_len(named)?;
        let (name, value) = named.split_at_checked(name_len)?;
        let value = value.get(1..)?;
        let (value, rest) = value.split_at_checked(value_len(*kind, value)?)?;
        self.rest = rest;
        Some(Field { kind: *kind, name, value })
    }
}

/// Where a name ends. Most are shorter than a word, and are looked at as one.
fn name_len(named: &[u8]) -> Option<usize> {
    if let Some(word) = named.first_chunk() {
        let word = u64::from_le_bytes(*word);
        // The lowest byte that is zero gets its top bit set, and none below it: only a borrow could, and there is none.
        let zeros = word.wrapping_sub(u64::from_le_bytes([1; 8])) & !word & u64::from_le_bytes([0x80; 8]);
        if zeros != 0 {
            return Some(zeros.trailing_zeros() as usize / 8);
        }
    }
    named.iter().position(|byte| *byte == 0)
}

/// How many bytes a value takes.
fn value_len(kind: u8, value: &[u8]) -> Option<usize> {
    let stated = || usize::try_from(i32::from_le_bytes(*value.first_chunk()?)).ok();
    let text = |from: usize| value.get(from..)?.iter().position(|byte| *byte == 0).map(|end| from + end + 1);
    Some(match kind {
        // Null, undefined, the ends of all keys.
        0x06 | 0x0A | 0x7F | 0xFF => 0,
        // Bool, int32, object id, decimal.
        0x08 => 1,
        0x10 => 4,
        0x07 => 12,
        0x13 => 16,
        // Double, date, timestamp, int64.
        0x01 | 0x09 | 0x11 | 0x12 => 8,
        // Document, array, code with scope: their length has itself in it.
        0x03 | 0x04 | 0x0F => stated()?,
        // String, code, symbol; binary with its subtype; pointer with its id.
        0x02 | 0x0D | 0x0E => stated()?.checked_add(4)?,
        0x05 => stated()?.checked_add(5)?,
        0x0C => stated()?.checked_add(16)?,
        // Regular expression and its options.
        0x0B => text(text(0)?)?,
        _ => return None,
    })
}

/// A value of one of JSON's scalar types, or an object.
fn simple(kind: u8, value: &[u8]) -> Option<RawBsonRef<'_>> {
    Some(match kind {
        0x01 => RawBsonRef::Double(f64::from_le_bytes(value.try_into().ok()?)),
        0x02 => {
            let text = value.get(4..)?.strip_suffix(&[0])?;
            RawBsonRef::String(std::str::from_utf8(text).ok()?)
        }
        0x03 => RawBsonRef::Document(RawDocument::from_bytes(value).ok()?),
        0x08 => RawBsonRef::Boolean(match value {
            [0] => false,
            [1] => true,
            _ => return None,
        }),
        0x0A => RawBsonRef::Null,
        0x10 => RawBsonRef::Int32(i32::from_le_bytes(value.try_into().ok()?)),
        0x12 => RawBsonRef::Int64(i64::from_le_bytes(value.try_into().ok()?)),
        _ => return None,
    })
}

fn slowly<'a>(document: &'a RawDocument, name: &str) -> Option<RawBsonRef<'a>> {
    let mut elements = document.iter_elements().map_while(Result::ok);
    elements.find(|element| element.key().as_str() == name)?.value().ok()
}

#[cfg(test)]
mod tests {
    use bson::{
        Binary, Decimal128, RawDocumentBuf, Regex, Timestamp, oid::ObjectId, rawdoc, spec::BinarySubtype,
    };

    use super::*;

    fn all_kinds() -> RawDocumentBuf {
        let binary = Binary { subtype: BinarySubtype::Generic, bytes: vec![1, 2, 3] };
        let regex = Regex { pattern: "a+".try_into().unwrap(), options: "i".try_into().unwrap() };
        rawdoc! {
            "double": 1.5, "string": "text", "object": { "x": 1, "deep": { "y": "z" } }, "array": [1, "two", [3]],
            "binary": binary, "id": ObjectId::from_bytes([7; 12]), "true": true, "false": false,
            "date": bson::DateTime::from_millis(5), "null": bson::RawBson::Null, "regex": regex,
            "int": 7_i32, "time": Timestamp { time: 1, increment: 2 }, "long": 1_i64 << 60,
            "decimal": Decimal128::from_bytes([0; 16]), "min": bson::RawBson::MinKey, "max": bson::RawBson::MaxKey,
            "": "no name", "long name": 1, "twice": 1, "twice": 2,
        }
    }

    #[test]
    fn every_property_is_found_as_the_bson_crate_finds_it() {
        let document = all_kinds();
        for element in document.iter() {
            let (name, _) = element.unwrap();
            let name = name.as_str();
            assert_eq!(find(&document, name), slowly(&document, name), "{name}");
            assert!(find(&document, name).is_some(), "{name}");
        }
        assert_eq!(find(&document, "missing"), None);
        assert_eq!(find(&document, "lon"), None);
    }

    #[test]
    fn a_property_is_read_where_its_name_is() {
        let document = all_kinds();
        let bytes = document.as_bytes();
        let mut fields = Fields::of(bytes).unwrap();
        for field in fields.by_ref() {
            // The name is where it was read, and not another like it.
            let start = field.name.as_ptr().addr() - bytes.as_ptr().addr();
            assert_eq!(Field::around(bytes, start..start + field.name.len() + 1), Some(field));
        }
        assert!(fields.is_whole());
        assert_eq!(Field::around(b"\x10a\0\x07\0\0", 1..3), None, "the value is cut off");
        assert_eq!(Field::around(b"xa\0\x07\0\0\0", 1..3), None, "the end of a longer name");
        assert_eq!(Field::around(b"a\0\x07\0\0\0", 0..2), None, "nothing before it");
    }

    #[test]
    fn names_of_every_length_are_found() {
        for len in 0..20 {
            // Bytes around those that a word's arithmetic could take for an end.
            for byte in [0x01, b'a', 0x7F, 0x80, 0x81, 0xFF] {
                let named = [&vec![byte; len][..], &[0, 1, 0, 0, 0, 0, 0, 0, 0]].concat();
                assert_eq!(name_len(&named), Some(len), "{byte}");
                assert_eq!(name_len(&named[..=len]), Some(len), "{byte}");
                assert_eq!(name_len(&named[..len]), None, "{byte}");
            }
        }
    }

    #[test]
    fn damaged_bytes_are_not_found_and_do_not_panic() {
        let whole = all_kinds();
        for at in 4..whole.as_bytes().len() - 1 {
            for byte in [0, 1, 0x02, 0x03, 0x7F, 0xFF] {
                let mut bytes = whole.as_bytes().to_vec();
                bytes[at] = byte;
                let Ok(document) = RawDocument::from_bytes(&bytes) else { continue };
                for name in ["double", "object", "max", "missing"] {
                    _ = find(document, name);
                }
            }
        }
    }
}
