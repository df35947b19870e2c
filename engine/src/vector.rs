//! Codes of vectors: the entries of vector indexes.
//!
//! A document that has a vector at the path of an index has an entry with the vector's code, which tells its distance from
//! any other within two bounds (`mayfly_value::vector::code`). A document without one has no distance, and no entry.
//!
//! ```text
//!   key     epoch  number  document
//!   value   life   code
//! ```

use bson::{RawBsonRef, RawDocument};
use mayfly_value::{
    path::Path,
    vector::{self, code},
};

use crate::{
    index::IndexEntry,
    keys::{DocumentKey, Shard},
};

/// The entry of one document in one vector index, if it has a vector.
pub(crate) fn entry(
    shard: Shard,
    (epoch, number): (u32, u16),
    path: &Path,
    document: &DocumentKey,
    body: &RawDocument,
) -> Option<IndexEntry> {
    let Some(RawBsonRef::Array(array)) = path.get(body) else { return None };
    let tail = code::encode(&vector::numbers(array)?);
    Some(IndexEntry { key: shard.vector(epoch, number, document), tail })
}
