//! Reading JSON: one pass over the text that writes BSON bytes as it goes.
//!
//! BSON wants each element's type before its name and each container's length before its content; both are
//! unknown when they are due, so their places are left open and filled in afterwards.
//!
//! Numbers: an integer literal that fits an i64 stays an integer (int32 where it fits), everything else
//! becomes a double (so does `-0`, which no integer can hold). A number beyond the doubles is refused.
//!
//! Holds: objects have no duplicate names (the last value wins and stands where the first one stood), and
//! the work is O(n log n) in the text's length for any input.

use bson::{RawBson, RawDocumentBuf};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::{JsonError, JsonLimits};
use crate::foreign::DEPTH_MAX;

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

/// The BSON bytes written so far, and what is still open in them.
struct Sink {
    bytes: Vec<u8>,
    /// The fields of all open objects; an object's own begin where it was entered.
    fields: Vec<Field>,
    depth: usize,
    depth_max: usize,
    /// Why the visitor stopped: serde's errors can only carry text.
    refusal: Option<JsonError>,
}

/// Where a field of an open object stands.
#[derive(Clone, Copy)]
struct Field {
    /// The first eight bytes of the name: almost always enough to tell two names apart.
    prefix: u64,
    tag_at: usize,
    name_len: usize,
}

impl Field {
    fn name<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        bytes.get(self.tag_at + 1..self.tag_at + 1 + self.name_len).unwrap_or_default()
    }

    fn same_name(&self, other: &Field, bytes: &[u8]) -> bool {
        self.prefix == other.prefix && self.name(bytes) == other.name(bytes)
    }
}

impl Sink {
    fn new(text_len: usize, limits: JsonLimits) -> Self {
        Sink {
            // BSON is about as long as its JSON; the limit keeps a refused giant from reserving memory.
            bytes: Vec::with_capacity(text_len.min(limits.bytes_max) + 64),
            fields: Vec::new(),
            depth: 0,
            depth_max: limits.depth_max.min(DEPTH_MAX),
            refusal: None,
        }
    }

    fn open(&mut self) -> usize {
        let open_at = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 4]);
        open_at
    }

    fn close(&mut self, open_at: usize) -> Result<(), JsonError> {
        self.bytes.push(0);
        let length = bson_length(self.bytes.len() - open_at)?;
        if let Some(place) = self.bytes.get_mut(open_at..open_at + 4) {
            place.copy_from_slice(&length.to_le_bytes());
        }
        Ok(())
    }

    /// Leaves room for the type tag; the name follows.
    fn begin_element(&mut self) -> usize {
        self.bytes.push(0);
        self.bytes.len() - 1
    }

    fn set_tag(&mut self, tag_at: usize, tag: u8) {
        if let Some(place) = self.bytes.get_mut(tag_at) {
            *place = tag;
        }
    }

    fn refuse<E: Error>(&mut self, refusal: JsonError) -> E {
        let error = E::custom(&refusal);
        self.refusal = Some(refusal);
        error
    }

    fn enter<E: Error>(&mut self) -> Result<(), E> {
        if self.depth >= self.depth_max {
            return Err(self.refuse(JsonError::TooDeep { depth_max: self.depth_max }));
        }
        self.depth += 1;
        Ok(())
    }

    /// Finishes the container opened at `open_at`.
    fn leave<E: Error>(&mut self, open_at: usize) -> Result<(), E> {
        self.depth -= 1;
        self.close(open_at).map_err(|refusal| self.refuse(refusal))
    }

    /// Gives each name that occurs more than once its last value, at the place of the first.
    ///
    /// Sorting finds duplicates in O(n log n) without a hash table per object; the rewrite is rare.
    fn merge_duplicates(&mut self, body_at: usize, fields_from: usize) {
        let bytes = &self.bytes;
        let Some(fields) = self.fields.get_mut(fields_from..) else { return };
        let by_place = |field: &Field| field.tag_at;
        fields.sort_unstable_by(|a, b| {
            let by_name = a.prefix.cmp(&b.prefix).then_with(|| a.name(bytes).cmp(b.name(bytes)));
            by_name.then(a.tag_at.cmp(&b.tag_at))
        });
        if !fields.windows(2).any(|pair| matches!(pair, [a, b] if a.same_name(b, bytes))) {
            return;
        }
        let mut kept: Vec<(usize, usize)> = fields
            .chunk_by(|a, b| a.same_name(b, bytes))
            .filter_map(|same| Some((same.first()?.tag_at, same.last()?.tag_at)))
            .collect();
        kept.sort_unstable();
        fields.sort_unstable_by_key(by_place);
        let mut body = Vec::with_capacity(bytes.len() - body_at);
        for (_, last_at) in kept {
            let next = fields.partition_point(|field| field.tag_at <= last_at);
            let end = fields.get(next).map_or(bytes.len(), by_place);
            body.extend_from_slice(bytes.get(last_at..end).unwrap_or_default());
        }
        self.bytes.truncate(body_at);
        self.bytes.extend_from_slice(&body);
    }
}

fn bson_length(length: usize) -> Result<i32, JsonError> {
    i32::try_from(length).map_err(|_| JsonError::TooLarge { bytes: length, bytes_max: i32::MAX as usize })
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
        let mut prefix = [0; 8];
        for (place, byte) in prefix.iter_mut().zip(name.bytes()) {
            *place = byte;
        }
        Ok(Field { prefix: u64::from_be_bytes(prefix), tag_at: self.tag_at, name_len: name.len() })
    }
}
