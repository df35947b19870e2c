//! Reading JSON: one pass over the text that writes BSON bytes as it goes.
//!
//! serde_json drives the visitors below, and they write into the `Sink` of `sink.rs`. Strings and names are
//! copied from the text straight to their place; only those with escapes go through serde_json's buffer.
//!
//! Numbers: an integer literal that fits an i64 stays an integer (int32 where it fits), everything else
//! becomes a double (so does `-0`, which no integer can hold). A number beyond the doubles is refused.
//!
//! Holds: the work is O(n log n) in the text's length for any input, and no text overflows the stack.

use bson::{RawBson, RawDocumentBuf};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::sink::{Field, Sink, bson_length};
use super::{JsonError, JsonLimits};

const TAG_DOUBLE: u8 = 0x01;
const TAG_STRING: u8 = 0x02;
const TAG_OBJECT: u8 = 0x03;
const TAG_ARRAY: u8 = 0x04;
const TAG_BOOL: u8 = 0x08;
const TAG_NULL: u8 = 0x0A;
const TAG_INT32: u8 = 0x10;
const TAG_INT64: u8 = 0x12;

/// Turns the text of a JSON object into a document.
pub fn parse_document(text: &[u8], limits: JsonLimits) -> Result<RawDocumentBuf, JsonError> {
    let mut sink = Sink::new(text.len(), limits);
    match parse_into(text, limits, &mut sink)? {
        TAG_OBJECT => into_document(sink.bytes),
        _ => Err(JsonError::NotAnObject),
    }
}

/// Turns the text of any JSON value into a BSON value (patch operands, partition key headers).
pub fn parse_value(text: &[u8], limits: JsonLimits) -> Result<RawBson, JsonError> {
    // The value is written as the only element of a document, where the bson crate can pick it up.
    let mut sink = Sink::new(text.len(), limits);
    let document_at = sink.open();
    let tag_at = sink.begin_element();
    sink.bytes.push(0);
    let tag = parse_into(text, limits, &mut sink)?;
    sink.set_tag(tag_at, tag);
    sink.close(document_at)?;
    let document = into_document(sink.bytes)?;
    match document.iter().next() {
        Some(Ok((_, value))) => Ok(value.into()),
        Some(Err(error)) => Err(JsonError::Syntax { message: error.to_string() }),
        None => Err(JsonError::Syntax { message: "no value".into() }),
    }
}

fn into_document(bytes: Vec<u8>) -> Result<RawDocumentBuf, JsonError> {
    RawDocumentBuf::from_bytes(bytes).map_err(|error| JsonError::Syntax { message: error.to_string() })
}

/// Appends the value in `text` to the sink and returns its BSON type tag.
fn parse_into(text: &[u8], limits: JsonLimits, sink: &mut Sink) -> Result<u8, JsonError> {
    if text.len() > limits.bytes_max {
        return Err(JsonError::TooLarge { bytes: text.len(), bytes_max: limits.bytes_max });
    }
    // Checking the whole text at once is faster than string by string.
    let text =
        std::str::from_utf8(text).map_err(|error| JsonError::NotUtf8 { position: error.valid_up_to() })?;
    let mut parser = serde_json::Deserializer::from_str(text);
    parser.disable_recursion_limit();
    let parsed = ValueSeed(sink).deserialize(&mut parser).and_then(|tag| parser.end().map(|()| tag));
    parsed.map_err(|error| match sink.refusal.take() {
        Some(refusal) => refusal,
        None => JsonError::Syntax { message: error.to_string() },
    })
}

/// Reads one value into the sink; yields its type tag.
struct ValueSeed<'s>(&'s mut Sink);

impl<'de> DeserializeSeed<'de> for ValueSeed<'_> {
    type Value = u8;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<u8, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueSeed<'_> {
    type Value = u8;

    fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<u8, E> {
        Ok(TAG_NULL)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<u8, E> {
        self.0.bytes.push(u8::from(value));
        Ok(TAG_BOOL)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<u8, E> {
        if let Ok(value) = i32::try_from(value) {
            self.0.bytes.extend_from_slice(&value.to_le_bytes());
            return Ok(TAG_INT32);
        }
        self.0.bytes.extend_from_slice(&value.to_le_bytes());
        Ok(TAG_INT64)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<u8, E> {
        match i64::try_from(value) {
            Ok(value) => self.visit_i64(value),
            Err(_) => self.visit_f64(value as f64),
        }
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<u8, E> {
        self.0.bytes.extend_from_slice(&value.to_le_bytes());
        Ok(TAG_DOUBLE)
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<u8, E> {
        let length = bson_length(value.len() + 1).map_err(|refusal| self.0.refuse(refusal))?;
        self.0.bytes.extend_from_slice(&length.to_le_bytes());
        self.0.bytes.extend_from_slice(value.as_bytes());
        self.0.bytes.push(0);
        Ok(TAG_STRING)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<u8, A::Error> {
        let sink = self.0;
        sink.enter()?;
        let open_at = sink.open();
        for index in 0_usize.. {
            let tag_at = sink.begin_element();
            push_index_name(&mut sink.bytes, index);
            match items.next_element_seed(ValueSeed(sink))? {
                Some(tag) => sink.set_tag(tag_at, tag),
                None => {
                    sink.bytes.truncate(tag_at);
                    break;
                }
            }
        }
        sink.leave(open_at)?;
        Ok(TAG_ARRAY)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<u8, A::Error> {
        let sink = self.0;
        sink.enter()?;
        let open_at = sink.open();
        let fields_from = sink.fields.len();
        loop {
            let tag_at = sink.begin_element();
            let Some(field) = entries.next_key_seed(NameSeed { sink, tag_at })? else {
                sink.bytes.truncate(tag_at);
                break;
            };
            sink.fields.push(field);
            let tag = entries.next_value_seed(ValueSeed(sink))?;
            sink.set_tag(tag_at, tag);
        }
        sink.merge_duplicates(open_at + 4, fields_from);
        sink.fields.truncate(fields_from);
        sink.leave(open_at)?;
        Ok(TAG_OBJECT)
    }
}

/// Array items are named by their position in BSON. Formatting by hand: this runs once per item.
fn push_index_name(bytes: &mut Vec<u8>, index: usize) {
    let start = bytes.len();
    let mut rest = index;
    loop {
        bytes.push(b'0' + (rest % 10) as u8);
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if let Some(digits) = bytes.get_mut(start..) {
        digits.reverse();
    }
    bytes.push(0);
}

/// Reads a property name into the sink, right behind the tag's place.
struct NameSeed<'s> {
    sink: &'s mut Sink,
    tag_at: usize,
}

impl<'de> DeserializeSeed<'de> for NameSeed<'_> {
    type Value = Field;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Field, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for NameSeed<'_> {
    type Value = Field;

    fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("a property name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Field, E> {
        if name.as_bytes().contains(&0) {
            return Err(self.sink.refuse(JsonError::NulInKey { name: name.into() }));
        }
        self.sink.bytes.extend_from_slice(name.as_bytes());
        self.sink.bytes.push(0);
        Ok(Field::new(self.tag_at, name))
    }
}
