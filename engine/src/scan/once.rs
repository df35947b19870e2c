//! Walks over several words: a text may have more than one of them, and its document is given once.

use bytes::Bytes;
use mayfly_storage::store::Key;

use super::{row::Row, walk::Walk};
use crate::{
    access::{Access, IndexName},
    error::Result,
    keys::{DocumentKey, PREFIX_LEN, Shard},
    ttl::Life,
};

impl Walk<'_> {
    /// Leaves out rows whose document has an entry in a lower range of the same walk, where it is given. So it does not
    /// matter which pages the two are on.
    pub(super) async fn once(&self, shard: Shard, rows: &mut Vec<Row>) -> Result<()> {
        let Access::Index(access) = self.access else { return Ok(()) };
        let IndexName::Text(number) = access.index else { return Ok(()) };
        if access.ranges.len() < 2 {
            return Ok(());
        }
        let epoch = self.container.row.index.epoch;
        let start = PREFIX_LEN + access.index.prefix_len();
        let mut keys: Vec<Key> = Vec::new();
        let mut of_row = Vec::with_capacity(rows.len());
        for row in rows.iter() {
            let word = row.key.get(start..row.key.len() - row.document.len()).unwrap_or_default();
            let document = DocumentKey::from_tail(&row.document)?;
            let lower = access.ranges.iter().filter_map(|range| range.single()).filter(|other| *other < word);
            let before = keys.len();
            keys.extend(lower.map(|other| shard.text(epoch, number, other, &document)));
            of_row.push(keys.len() - before);
        }
        if keys.is_empty() {
            return Ok(());
        }
        let mut found = self.snapshot.get_many(&keys).await?.into_iter();
        // An entry may have outlived an earlier document with the same id.
        let is_live = |entry: Bytes| Life::decode(&entry).is_some_and(|(life, _)| self.cuts.is_live(&life));
        let mut of_row = of_row.into_iter();
        rows.retain(|_| {
            let lower = found.by_ref().take(of_row.next().unwrap_or(0));
            // All of them are taken, so that the next row finds its own.
            lower.filter(|entry| entry.clone().is_some_and(is_live)).count() == 0
        });
        Ok(())
    }
}
