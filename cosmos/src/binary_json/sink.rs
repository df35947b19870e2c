//! Where the BSON of a binary JSON body comes together.
//!
//! BSON wants each element's type before its name and each container's length before its content; their places are
//! left open and filled in afterwards. On the way the sink counts the shortest JSON text of what it was given.
//!
//! Holds: the text counted never passes the limit, objects have no duplicate names (the last value wins, at the place
//! of the first), and nesting stays within the limit.

use mayfly_value::foreign::DEPTH_MAX;
use mayfly_value::json::{JsonError, JsonLimits};

pub(super) const TAG_DOUBLE: u8 = 0x01;
pub(super) const TAG_STRING: u8 = 0x02;
pub(super) const TAG_OBJECT: u8 = 0x03;
pub(super) const TAG_ARRAY: u8 = 0x04;
pub(super) const TAG_BOOL: u8 = 0x08;
pub(super) const TAG_NULL: u8 = 0x0A;
pub(super) const TAG_INT32: u8 = 0x10;
pub(super) const TAG_INT64: u8 = 0x12;

/// The BSON written so far, and what is still open in it.
pub(super) struct Sink {
    bytes: Vec<u8>,
    /// The fields of all open objects; an object's own begin where it was entered.
    fields: Vec<Field>,
    depth: usize,
    depth_max: usize,
    text_len: usize,
    text_len_max: usize,
}

/// A container that was entered.
pub(super) struct Open {
    length_at: usize,
    fields_from: usize,
}

#[derive(Clone, Copy)]
struct Field {
    tag_at: usize,
    name_len: usize,
}

impl Field {
    fn name<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        bytes.get(self.tag_at + 1..self.tag_at + 1 + self.name_len).unwrap_or_default()
    }
}

impl Sink {
    pub(super) fn new(body_len: usize, limits: JsonLimits) -> Sink {
        Sink {
            bytes: Vec::with_capacity(body_len.min(limits.bytes_max) + 64),
            fields: Vec::new(),
            depth: 0,
            depth_max: limits.depth_max.min(DEPTH_MAX),
            text_len: 0,
            text_len_max: limits.bytes_max,
        }
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Counts characters of JSON text.
    fn count(&mut self, text_len: usize) -> Result<(), JsonError> {
        self.text_len = self.text_len.saturating_add(text_len);
        if self.text_len > self.text_len_max {
            return Err(JsonError::TooLarge { bytes: self.text_len, bytes_max: self.text_len_max });
        }
        Ok(())
    }

    pub(super) fn enter(&mut self) -> Result<Open, JsonError> {
        if self.depth >= self.depth_max {
            return Err(JsonError::TooDeep { depth_max: self.depth_max });
        }
        self.depth += 1;
        // One bracket; each element counts a comma, and the last one's stands for the other bracket.
        self.count(1)?;
        let length_at = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 4]);
        Ok(Open { length_at, fields_from: self.fields.len() })
    }

    pub(super) fn leave(&mut self, open: &Open) -> Result<(), JsonError> {
        self.depth -= 1;
        self.merge_duplicates(open);
        self.bytes.push(0);
        let length = bson_length(self.bytes.len() - open.length_at)?;
        if let Some(place) = self.bytes.get_mut(open.length_at..open.length_at + 4) {
            place.copy_from_slice(&length.to_le_bytes());
        }
        Ok(())
    }

    /// Begins an array's element; `set_tag` has to follow its value.
    pub(super) fn item(&mut self, index: usize) -> Result<usize, JsonError> {
        self.count(1)?;
        let tag_at = self.bytes.len();
        self.bytes.push(0);
        self.bytes.extend_from_slice(index.to_string().as_bytes());
        self.bytes.push(0);
        Ok(tag_at)
    }

    /// Begins an object's element; `set_tag` has to follow its value.
    pub(super) fn field(&mut self, name: &str) -> Result<usize, JsonError> {
        if name.as_bytes().contains(&0) {
            return Err(JsonError::NulInKey { name: name.into() });
        }
        // A comma, two quotes and a colon.
        self.count(name.len() + 4)?;
        let tag_at = self.bytes.len();
        self.bytes.push(0);
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.fields.push(Field { tag_at, name_len: name.len() });
        Ok(tag_at)
    }

    pub(super) fn set_tag(&mut self, tag_at: usize, tag: u8) {
        if let Some(place) = self.bytes.get_mut(tag_at) {
            *place = tag;
        }
    }

    /// A null, `true` or `false`, or a number: its bytes in BSON, and at least so much text.
    pub(super) fn scalar(&mut self, bytes: &[u8], text_len: usize) -> Result<(), JsonError> {
        self.count(text_len)?;
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    pub(super) fn string(&mut self, text: &str) -> Result<(), JsonError> {
        self.count(text.len() + 2)?;
        let length = bson_length(text.len() + 1)?;
        self.bytes.extend_from_slice(&length.to_le_bytes());
        self.bytes.extend_from_slice(text.as_bytes());
        self.bytes.push(0);
        Ok(())
    }

    /// Gives each name that occurs more than once in an object its last value, at the place of the first.
    fn merge_duplicates(&mut self, open: &Open) {
        let bytes = &self.bytes;
        let by_place = self.fields.split_off(open.fields_from);
        let mut by_name = by_place.clone();
        by_name.sort_by(|a, b| a.name(bytes).cmp(b.name(bytes)));
        let same = |a: &Field, b: &Field| a.name(bytes) == b.name(bytes);
        if !by_name.windows(2).any(|pair| matches!(pair, [a, b] if same(a, b))) {
            return;
        }
        // The sort is stable: within a name the fields still stand in their order.
        let mut kept: Vec<(usize, usize)> = by_name
            .chunk_by(same)
            .filter_map(|fields| Some((fields.first()?.tag_at, fields.last()?.tag_at)))
            .collect();
        kept.sort_unstable();
        let body_at = open.length_at + 4;
        let mut body = Vec::with_capacity(bytes.len() - body_at);
        for (_, last_at) in kept {
            let next = by_place.partition_point(|field| field.tag_at <= last_at);
            let end = by_place.get(next).map_or(bytes.len(), |field| field.tag_at);
            body.extend_from_slice(bytes.get(last_at..end).unwrap_or_default());
        }
        self.bytes.truncate(body_at);
        self.bytes.extend_from_slice(&body);
    }
}

fn bson_length(length: usize) -> Result<i32, JsonError> {
    i32::try_from(length).map_err(|_| JsonError::TooLarge { bytes: length, bytes_max: i32::MAX as usize })
}
