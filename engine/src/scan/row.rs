//! What one row says about a document, and what the bytes of an entry hold.

use bytes::Bytes;
use mayfly_storage::store::Key;
use mayfly_value::{
    keycode::{self, DecodedValue},
    order::Order,
};

use super::Content;
use crate::{
    access::IndexAccess,
    container::Container,
    error::{Error, Result},
    keys::{PREFIX_LEN, Shard},
};

pub(super) const DAMAGED: Error = Error::Corrupt("an index entry cannot be read");

/// What one row of a walk says about a document.
pub(super) struct Row {
    pub document: Bytes,
    pub key: Bytes,
    /// The record itself, when the row is one, or the values of the entry, if they are wanted and whole.
    pub content: Option<Content>,
    /// How many rows it stands for.
    pub times: u64,
}

impl Row {
    /// Whether the entry of another document has the same values: all before the document is the same then.
    pub(super) fn is_alike(&self, key: &[u8]) -> bool {
        let values = self.key.len().saturating_sub(self.document.len());
        let same = key.get(..values).is_some_and(|start| Some(start) == self.key.get(..values));
        same && matches!(self.content, Some(Content::Values(_)))
    }

    /// The key of its record.
    pub(super) fn record_key(&self, shard: Shard) -> Key {
        shard.record_of_tail(&self.document)
    }
}

/// Whether an entry is kept.
pub(super) fn is_kept(
    container: &Container,
    access: &IndexAccess,
    key: &[u8],
    keep: &(dyn Fn(&[DecodedValue]) -> bool + Sync),
) -> Result<bool> {
    let start = PREFIX_LEN + access.index.prefix_len();
    let count = access.index.values(container)?;
    let bytes = key.get(start..).ok_or(DAMAGED)?;
    let mut at = 0;
    for _ in 0..count {
        let (len, is_exact) = keycode::skip_exact(bytes.get(at..).ok_or(DAMAGED)?)?;
        if !is_exact {
            return Ok(true);
        }
        at += len;
    }
    Ok(keep(&values(bytes, count)?))
}

/// The values at the start of an entry's bytes, whichever way each is sorted.
pub(super) fn values(mut bytes: &[u8], count: usize) -> Result<Vec<DecodedValue>> {
    let mut values = Vec::with_capacity(count);
    for _ in 0..count {
        let descending = bytes.first().is_some_and(|tag| *tag >= 0x80);
        let (value, used) = match descending {
            true => keycode::decode_value_desc(bytes, Order::Cosmos)?,
            false => keycode::decode_value(bytes, Order::Cosmos)?,
        };
        bytes = bytes.get(used..).ok_or(DAMAGED)?;
        values.push(value);
    }
    Ok(values)
}
