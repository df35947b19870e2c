//! The entries a document has beside its record.
//!
//! All of them follow from the document, its life and the container's policies, so a write can compute both the ones
//! to remove and the ones to add, and `check` can prove that a store holds exactly these.

use bson::{RawBsonRef, RawDocument};
use mayfly_storage::store::Key;
use mayfly_value::{digest, keycode, order::Order, partition::Epk, walk};

use crate::{
    container::Container,
    coverage::Fitting,
    definition::IndexingMode,
    error::{Error, Result},
    keys::{DocumentKey, Shard},
    text,
    ttl::Life,
    vector,
};

/// A property deeper or longer than this cannot be told apart in an index key of bounded length.
const PATH_BYTES_MAX: usize = 4 * 1024;

/// The keys of all index entries of one document. Sorted, without repeats.
pub(crate) fn index_keys(
    container: &Container,
    shard: Shard,
    document: &DocumentKey,
    body: &RawDocument,
) -> Result<Vec<Key>> {
    let entries = index_entries(container, shard, document, body)?.entries;
    Ok(entries.into_iter().map(|entry| entry.key).collect())
}

/// The index entries of one document.
pub(crate) struct IndexEntries {
    /// Sorted, without repeats.
    pub entries: Vec<IndexEntry>,
    /// Whether the container's coverage holds for this document. If not, it is to be narrowed before the write.
    pub fits: bool,
}

/// One index entry.
pub(crate) struct IndexEntry {
    pub key: Key,
    /// What it holds after the document's life.
    pub tail: Vec<u8>,
}

impl IndexEntry {
    fn bare(key: Key) -> Self {
        Self { key, tail: Vec::new() }
    }

    /// What it holds, of a document with this life.
    pub fn value(&self, life: &[u8]) -> Vec<u8> {
        [life, &self.tail].concat()
    }
}

/// Like [`index_keys`], for whoever is about to write them.
pub(crate) fn index_entries(
    container: &Container,
    shard: Shard,
    document: &DocumentKey,
    body: &RawDocument,
) -> Result<IndexEntries> {
    let mut fitting = Fitting::new(&container.covered);
    let epoch = container.row.index.epoch;
    let mut entries = Vec::with_capacity(16);
    let mut encoded = Vec::with_capacity(64);
    let mut path_bytes_max = 0;
    walk::walk_leaves(body, &container.rules, &mut |path, value| {
        path_bytes_max = path_bytes_max.max(path.len());
        if path.len() > PATH_BYTES_MAX {
            return;
        }
        fitting.leaf(path, value);
        encoded.clear();
        keycode::push_value(&mut encoded, value, Order::Cosmos);
        entries.push(IndexEntry::bare(shard.index(epoch, path, &encoded, document)));
    })?;
    if path_bytes_max > PATH_BYTES_MAX {
        return Err(Error::bad_request(format!(
            "A property path of {path_bytes_max} bytes cannot be indexed; the longest is {PATH_BYTES_MAX}. Exclude \
             it from the indexing policy."
        )));
    }
    for (number, composite) in container.composites.iter().enumerate() {
        encoded.clear();
        for (path, descending) in &composite.parts {
            let part = path.get(body);
            fitting.part(part);
            push_component(&mut encoded, part, *descending);
        }
        entries.push(IndexEntry::bare(shard.composite(epoch, number as u16, &encoded, document)));
    }
    for (number, (path, language)) in container.texts.iter().enumerate() {
        let text = path.get(body);
        text::push_entries(&mut entries, shard, (epoch, number as u16), document, text, *language);
    }
    for (number, path) in container.vectors.iter().enumerate() {
        entries.extend(vector::entry(shard, (epoch, number as u16), path, document, body));
    }
    entries.sort_unstable_by(|a, b| a.key.bytes.cmp(&b.key.bytes));
    entries.dedup_by(|a, b| a.key.bytes == b.key.bytes);
    let unindexed = container.definition().indexing.mode == IndexingMode::None;
    Ok(IndexEntries { entries, fits: unindexed || fitting.fits() })
}

fn push_component(out: &mut Vec<u8>, value: Option<RawBsonRef<'_>>, descending: bool) {
    match (value, descending) {
        (Some(value), false) => keycode::push_value(out, value, Order::Cosmos),
        (Some(value), true) => keycode::push_value_desc(out, value, Order::Cosmos),
        (None, _) => {
            let start = out.len();
            keycode::push_undefined(out, Order::Cosmos);
            if descending {
                out[start..].iter_mut().for_each(|byte| *byte = !*byte);
            }
        }
    }
}

/// A long value stands in a unique row by its digest: whole, and without making the key too long.
const UNIQUE_VALUE_BYTES_MAX: usize = 128;

fn push_unique(out: &mut Vec<u8>, value: RawBsonRef<'_>) {
    let start = out.len();
    keycode::push_value(out, value, Order::Cosmos);
    if out.len() - start > UNIQUE_VALUE_BYTES_MAX {
        out.truncate(start + UNIQUE_VALUE_BYTES_MAX);
        out.extend_from_slice(&digest::digest(value));
    }
}

/// The rows of a document's unique keys and unique indexes. A missing value takes part like any other.
pub(crate) fn unique_keys(
    container: &Container,
    shard: Shard,
    hash: &Epk,
    body: &RawDocument,
) -> Result<Vec<Key>> {
    let rows = container.unique_keys.iter().enumerate().map(|(number, paths)| {
        let mut values = Vec::new();
        for path in paths {
            match path.get(body) {
                Some(value) => push_unique(&mut values, value),
                None => keycode::push_undefined(&mut values, Order::Cosmos),
            }
        }
        shard.unique(number as u8, hash, &values)
    });
    let mut rows: Vec<Key> = rows.collect();
    for index in &container.secondaries {
        rows.extend(index.unique_rows(shard, body)?);
    }
    Ok(rows)
}

/// The keys of a document's entries in the indexes of a collection; each holds the document and its life.
pub(crate) fn secondary_keys(
    container: &Container,
    shard: Shard,
    document: &DocumentKey,
    body: &RawDocument,
) -> Result<Vec<Key>> {
    let mut keys = Vec::with_capacity(container.secondaries.len());
    for index in &container.secondaries {
        index.push_entries(shard, document, body, &mut keys)?;
    }
    keys.sort_unstable();
    Ok(keys)
}

/// What an entry in an index of a collection holds.
pub(crate) fn secondary_value(document: &DocumentKey, life: &[u8]) -> Vec<u8> {
    [&(document.as_bytes().len() as u16).to_be_bytes(), document.as_bytes(), life].concat()
}

/// The document and the life in an entry of an index of a collection.
pub(crate) fn read_secondary_value(value: &[u8]) -> Result<(DocumentKey, Life)> {
    let (document, life) = read_secondary_life(value)?;
    Ok((DocumentKey::from_tail(document)?, life))
}

/// The same with the document as it stands there: enough to tell it from others.
pub(crate) fn read_secondary_life(value: &[u8]) -> Result<(&[u8], Life)> {
    const DAMAGED: Error = Error::Corrupt("an index entry cannot be read");
    let (length, rest) = value.split_first_chunk::<2>().ok_or(DAMAGED)?;
    let (document, life) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length))).ok_or(DAMAGED)?;
    let (life, _) = Life::decode(life).ok_or(DAMAGED)?;
    Ok((document, life))
}

/// The keys under which a document waits to expire: by its own deadline, and by each date.
pub(crate) fn expiry_keys(shard: Shard, document: &DocumentKey, life: &Life) -> Vec<Key> {
    let own = life.own_deadline().map(|deadline| shard.expiry(deadline, document));
    let dates = life.dates.iter().map(|(rule, date)| shard.date(*rule, *date, document));
    own.into_iter().chain(dates).collect()
}
