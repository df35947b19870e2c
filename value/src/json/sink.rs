//! Where the reader's BSON bytes come together.
//!
//! BSON wants each element's type before its name and each container's length before its content; both are
//! unknown when they are due, so their places are left open and filled in afterwards.
//!
//! Holds: objects have no duplicate names (the last value wins and stands where the first one stood).

use serde::de::Error;

use super::{JsonError, JsonLimits};
use crate::foreign::DEPTH_MAX;

/// The BSON bytes written so far, and what is still open in them.
pub(super) struct Sink {
    pub(super) bytes: Vec<u8>,
    /// The fields of all open objects; an object's own begin where it was entered.
    pub(super) fields: Vec<Field>,
    depth: usize,
    depth_max: usize,
    /// Why the visitor stopped: serde's errors can only carry text.
    pub(super) refusal: Option<JsonError>,
}

/// Where a field of an open object stands.
#[derive(Clone, Copy)]
pub(super) struct Field {
    /// The first eight bytes of the name: almost always enough to tell two names apart.
    prefix: u64,
    tag_at: usize,
    name_len: usize,
}

impl Field {
    pub(super) fn new(tag_at: usize, name: &str) -> Field {
        let mut prefix = [0; 8];
        for (place, byte) in prefix.iter_mut().zip(name.bytes()) {
            *place = byte;
        }
        Field { prefix: u64::from_be_bytes(prefix), tag_at, name_len: name.len() }
    }

    fn name<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        bytes.get(self.tag_at + 1..self.tag_at + 1 + self.name_len).unwrap_or_default()
    }

    fn same_name(&self, other: &Field, bytes: &[u8]) -> bool {
        self.prefix == other.prefix && self.name(bytes) == other.name(bytes)
    }
}

impl Sink {
    pub(super) fn new(text_len: usize, limits: JsonLimits) -> Self {
        Sink {
            // BSON is about as long as its JSON; the limit keeps a refused giant from reserving memory.
            bytes: Vec::with_capacity(text_len.min(limits.bytes_max) + 64),
            fields: Vec::new(),
            depth: 0,
            depth_max: limits.depth_max.min(DEPTH_MAX),
            refusal: None,
        }
    }

    pub(super) fn open(&mut self) -> usize {
        let open_at = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 4]);
        open_at
    }

    pub(super) fn close(&mut self, open_at: usize) -> Result<(), JsonError> {
        self.bytes.push(0);
        let length = bson_length(self.bytes.len() - open_at)?;
        if let Some(place) = self.bytes.get_mut(open_at..open_at + 4) {
            place.copy_from_slice(&length.to_le_bytes());
        }
        Ok(())
    }

    /// Leaves room for the type tag; the name follows.
    pub(super) fn begin_element(&mut self) -> usize {
        self.bytes.push(0);
        self.bytes.len() - 1
    }

    pub(super) fn set_tag(&mut self, tag_at: usize, tag: u8) {
        if let Some(place) = self.bytes.get_mut(tag_at) {
            *place = tag;
        }
    }

    pub(super) fn refuse<E: Error>(&mut self, refusal: JsonError) -> E {
        let error = E::custom(&refusal);
        self.refusal = Some(refusal);
        error
    }

    pub(super) fn enter<E: Error>(&mut self) -> Result<(), E> {
        if self.depth >= self.depth_max {
            return Err(self.refuse(JsonError::TooDeep { depth_max: self.depth_max }));
        }
        self.depth += 1;
        Ok(())
    }

    /// Finishes the container opened at `open_at`.
    pub(super) fn leave<E: Error>(&mut self, open_at: usize) -> Result<(), E> {
        self.depth -= 1;
        self.close(open_at).map_err(|refusal| self.refuse(refusal))
    }

    /// Gives each name that occurs more than once its last value, at the place of the first.
    ///
    /// Sorting finds duplicates in O(n log n) without a hash table per object; the rewrite is rare.
    pub(super) fn merge_duplicates(&mut self, body_at: usize, fields_from: usize) {
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

pub(super) fn bson_length(length: usize) -> Result<i32, JsonError> {
    i32::try_from(length).map_err(|_| JsonError::TooLarge { bytes: length, bytes_max: i32::MAX as usize })
}
