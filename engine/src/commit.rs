//! Changes of documents in several collections that stand or fall together.
//!
//! The caller has read what it relied on in a [`View`](crate::View) and says which version of each document that was.
//! If one of them has moved, nothing is written and the caller is told: it is for the client to begin again.

use std::sync::Arc;

use bson::RawDocumentBuf;
use bytes::Bytes;
use mayfly_storage::{Error as StoreError, store::Batch};

use crate::{
    changes::{Change, Changes},
    clock::Timestamp,
    collection,
    container::Container,
    engine::Engine,
    error::{Error, Result},
    keys::{DocumentId, DocumentKey, Family},
    log::{Event, EventKind},
    record::Record,
    ttl::{Life, OwnTtl},
};

/// What a transaction wants to do to a document.
#[derive(Clone)]
pub struct Pending {
    /// The collection.
    pub container: Arc<Container>,
    /// Which document.
    pub id: DocumentId,
    /// What the transaction saw; `None` if there was none.
    pub before: Option<Record>,
    /// What it shall be; `None` is gone.
    pub after: Option<RawDocumentBuf>,
    /// Whether parts of it were changed, and not the whole replaced.
    pub partial: bool,
}

/// How often a commit tries again after the clock, or an expired document, stood in its way.
const ATTEMPTS_MAX: usize = 10;

impl Engine {
    /// Commits all of `changes`, or none: [`Error::Contention`] if a document was changed since it was read. Gives the commit's
    /// number in each container, by the container's.
    pub async fn commit_pending(&self, changes: &[Pending], now: Timestamp) -> Result<Vec<(u32, u64)>> {
        if changes.is_empty() {
            return Ok(Vec::new());
        }
        let ids = containers_of(changes);
        let mut now = now;
        for _ in 0..ATTEMPTS_MAX {
            let batch = self.pending_batch(changes, now).await?;
            match self.store().commit(batch).await {
                Ok(committed) => {
                    let numbers = committed.counters.iter().map(|counter| counter.seq);
                    return Ok(ids.into_iter().zip(numbers).collect());
                }
                Err(StoreError::Stale { stamp }) => {
                    self.timeline().observe(stamp);
                    now = now.max(Timestamp::from_seconds(stamp));
                }
                Err(StoreError::Conflict { key }) => match Family::of(&key.bytes) {
                    // Its definition changed; what was decided about documents still holds.
                    Some(Family::Container) => {}
                    Some(Family::SecondaryUnique) => {
                        let mut index = changes.iter().map(|change| change.container.index_of_row(&key));
                        let index = index.find(|name| !name.is_empty()).unwrap_or_default();
                        return Err(Error::Duplicate { index });
                    }
                    _ => return Err(Error::Contention),
                },
                Err(error) => return Err(error.into()),
            }
        }
        Err(Error::Contention)
    }

    async fn pending_batch(&self, changes: &[Pending], now: Timestamp) -> Result<Batch> {
        let mut whole = Batch::default();
        // All of a transaction happens at one moment.
        let moment = self.next_moment(now);
        for id in containers_of(changes) {
            let of_container: Vec<&Pending> = changes.iter().filter(|c| c.container.id == id).collect();
            let Some(first) = of_container.first() else { continue };
            let container = self.renewed(&first.container).await?;
            let batch = self.collection_batch(&container, &of_container, moment, now).await?;
            join(&mut whole, batch)?;
        }
        Ok(whole)
    }

    async fn collection_batch(
        &self,
        container: &Container,
        pending: &[&Pending],
        moment: u64,
        now: Timestamp,
    ) -> Result<Batch> {
        let partition = container.locate(&collection::whole())?;
        let cuts = container.ttl().cuts(now);
        let logs = container.definition().log_minutes.is_some();
        let mut changes = Changes::new(container, partition.shard);
        for (ordinal, change) in pending.iter().enumerate() {
            let document = DocumentKey::new(&partition.hash, &change.id);
            let stored = self.stored(partition.shard, &document).await?;
            let live = stored.as_ref().filter(|record| cuts.is_live(&record.life));
            if live.map(|record| record.lsn) != change.before.as_ref().map(|record| record.lsn) {
                return Err(Error::Contention);
            }
            let after = change.after.as_ref().map(|body| {
                let own = OwnTtl::of(body)?.unwrap_or_default();
                let life = Life { ts: now.seconds(), own, dates: container.dates_of(body)? };
                let birth = live.map(|record| record.birth);
                Ok::<_, Error>(Record::new(
                    birth,
                    ordinal as u16,
                    life,
                    Bytes::copy_from_slice(body.as_bytes()),
                ))
            });
            let after = after.transpose()?;
            if let (Some(expired), None) = (&stored, live)
                && logs
            {
                let at = container.ttl().expired_at(&expired.life, &cuts);
                changes.log(&Event::expired(now.seconds(), &document, expired, at), moment);
            }
            if stored.is_some() || after.is_some() {
                changes.add(&Change {
                    document: &document,
                    before: stored.as_ref(),
                    after: after.as_ref(),
                })?;
            } else {
                changes.rely(&document, None);
            }
            let kind = match (live, &after) {
                (None, Some(_)) => EventKind::Create,
                (Some(_), Some(_)) if change.partial => EventKind::Update,
                (Some(_), Some(_)) => EventKind::Replace,
                (Some(_), None) => EventKind::Delete,
                (None, None) => continue,
            };
            if logs {
                let event = Event::new(kind, now.seconds(), &document, live, after.as_ref());
                changes.log(&event, moment);
            }
        }
        changes
            .into_write(now.seconds())
            .map_err(|row| Error::Duplicate { index: container.index_of_row(&row) })
    }
}

/// The containers that are changed, each once, in the order of their parts of the batch.
fn containers_of(changes: &[Pending]) -> Vec<u32> {
    let mut ids: Vec<u32> = changes.iter().map(|change| change.container.id).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// Adds a batch to another; its marks point at its own counters.
fn join(whole: &mut Batch, part: Batch) -> Result<()> {
    let shift = u8::try_from(whole.advances.len());
    let shift = shift.map_err(|_| Error::bad_request("a transaction touches too many collections"))?;
    whole.guards.extend(part.guards);
    whole.deletes.extend(part.deletes);
    whole.advances.extend(part.advances);
    whole.puts.extend(part.puts.into_iter().map(|mut put| {
        put.marks.iter_mut().for_each(|mark| mark.advance += shift);
        put
    }));
    Ok(())
}
