//! Who owns a unique value: of the store as it is, and for a transaction that is still open.
//!
//! An owner that has expired is none, whether or not purge has come.

use mayfly_storage::store::Key;

use super::unique_row_owner;
use crate::{
    clock::Timestamp,
    collection,
    container::Container,
    engine::Engine,
    error::{Error, Result},
    index,
    keys::{DocumentId, DocumentKey},
    record::Record,
    view::View,
};

/// Who owns a unique row.
pub(super) enum Owner {
    Nobody,
    Live(DocumentKey),
    /// It is still stored.
    Expired(DocumentKey),
}

/// The values of a document in one unique index of a collection: no two living documents have the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UniqueRow(Key);

impl Container {
    /// The rows of a document in the unique indexes of a collection.
    pub fn unique_rows(&self, body: &bson::RawDocument) -> Result<Vec<UniqueRow>> {
        if !self.has_unique_rows() {
            return Ok(Vec::new());
        }
        let partition = self.locate(&collection::whole())?;
        let rows = index::unique_keys(self, partition.shard, &partition.hash, body)?;
        Ok(rows.into_iter().map(UniqueRow).collect())
    }

    /// The refusal of a document that wants a row which another has.
    pub fn duplicate(&self, row: &UniqueRow) -> Error {
        Error::Duplicate { index: self.index_of_row(&row.0) }
    }
}

impl Engine {
    /// Who owns the row that a write wants.
    pub(super) async fn unique_owner(
        &self,
        container: &Container,
        row: &Key,
        now: Timestamp,
    ) -> Result<Owner> {
        let Some(row) = self.store().get(row).await? else { return Ok(Owner::Nobody) };
        let document = unique_row_owner(&row)?;
        let (hash, _) = document.parts()?;
        let shard = container.partition_of(hash).shard;
        Ok(match self.stored(shard, &document).await? {
            None => Owner::Nobody,
            Some(record) if container.ttl().cuts(now).is_live(&record.life) => Owner::Live(document),
            Some(_) => Owner::Expired(document),
        })
    }

    /// Whether a document of an open transaction may have a unique row, as far as others are concerned.
    ///
    /// [`Error::Duplicate`] if another document has it in the transaction's view; [`Error::Contention`] if one has taken
    /// it since. `is_own` says which documents the transaction has written: what it makes of those, it knows itself.
    pub async fn check_unique(
        &self,
        container: &Container,
        row: &UniqueRow,
        view: &View,
        is_own: impl Fn(&DocumentId) -> bool + Send,
        now: Timestamp,
    ) -> Result<()> {
        let now = now.max(view.now);
        let shard = container.locate(&collection::whole())?.shard;
        let cuts = container.ttl().cuts(now);
        let seen = view.snapshot.get(&row.0).await?;
        let current = self.store().get(&row.0).await?;
        if let Some(seen) = &seen {
            let document = unique_row_owner(seen)?;
            let record = view.snapshot.get(&shard.record(&document)).await?;
            let record = record.map(Record::decode).transpose()?;
            let live = record.is_some_and(|record| cuts.is_live(&record.life));
            if live && !is_own(&document.parts()?.1) {
                return Err(container.duplicate(row));
            }
        }
        if let Some(current) = current.filter(|current| seen.as_ref() != Some(current)) {
            let document = unique_row_owner(&current)?;
            let record = self.stored(shard, &document).await?;
            let live = record.is_some_and(|record| cuts.is_live(&record.life));
            if live && !is_own(&document.parts()?.1) {
                return Err(Error::Contention);
            }
        }
        Ok(())
    }
}
