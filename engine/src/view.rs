//! A view of everything at one moment, for reads that belong together.
//!
//! It holds back the reclamation of space, so keep it no longer than somebody waits: a page, or a transaction.

use std::sync::Arc;

use mayfly_storage::store::Snapshot;

use crate::{
    clock::Timestamp, container::Container, engine::Engine, error::Result, keys::DocumentId, record::Record,
};

/// What everything was like at one moment.
#[derive(Clone)]
pub struct View {
    pub(crate) snapshot: Arc<dyn Snapshot>,
    /// The moment: what has expired by then is not in it.
    pub now: Timestamp,
}

impl Engine {
    /// Looks at everything as it is.
    pub async fn view(&self, now: Timestamp) -> Result<View> {
        Ok(View { snapshot: self.store().snapshot().await?, now })
    }

    /// A document of a collection, as it is or as it was in a view.
    pub async fn read_collection(
        &self,
        container: &Container,
        id: &DocumentId,
        view: Option<&View>,
        now: Timestamp,
    ) -> Result<Option<Record>> {
        let partition = container.locate(&crate::collection::whole())?;
        let key = partition.shard.record_of(&partition.hash, id);
        let (bytes, now) = match view {
            Some(view) => (view.snapshot.get(&key).await?, view.now),
            None => (self.store().get(&key).await?, now),
        };
        let record = bytes.map(Record::decode).transpose()?;
        Ok(record.filter(|record| container.ttl().cuts(now).is_live(&record.life)))
    }

    /// What a session's last numbered write in a collection left behind.
    pub async fn receipt(&self, container: &Container, session: &[u8]) -> Result<Option<Vec<u8>>> {
        let partition = container.locate(&crate::collection::whole())?;
        let row = self.store().get(&partition.shard.receipt(session)).await?;
        Ok(row.and_then(|row| row.get(8..).map(<[u8]>::to_vec)))
    }

    /// Forgets receipts of a collection that are older than `before`. Says how many.
    pub async fn forget_receipts(&self, container: &Container, before: Timestamp) -> Result<usize> {
        let mut old = Vec::new();
        let snapshot = self.store().snapshot().await?;
        for shard in container.shards() {
            let range = shard.range(crate::keys::Family::Receipt, &[]);
            crate::scan::each_row(&*snapshot, range, &mut |key, value| {
                if crate::keys::be_u64(value) < before.seconds() {
                    old.push(shard.receipt(&key[crate::keys::PREFIX_LEN..]));
                }
                Ok(())
            })
            .await?;
        }
        let count = old.len();
        if count > 0 {
            let batch = mayfly_storage::store::Batch {
                deletes: old,
                urgency: mayfly_storage::store::Urgency::Background,
                ..Default::default()
            };
            self.store().commit(batch).await?;
        }
        Ok(count)
    }
}
