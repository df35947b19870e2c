//! Purging very many documents at once.
//!
//! Most of what a document has are index entries, and each of them says by itself when it is gone. So when a large part of
//! all that is stored has expired by a default, documents are felled: record, feed entry and unique keys go as ever, and
//! index entries stay where they are, dead to every reader. When the last one is felled the store is asked to sweep: to
//! go through its rows once and leave those out.
//!
//! ```text
//!   one by one    record, feed, unique keys, index entries: a delete each
//!   in mass       record, feed, unique keys: a delete each ──▶ ... ──▶ one sweep for all index entries
//! ```
//!
//! Holds: the row `Sweep` of a slot says up to which second entries may be left, from before the first is until after
//! the last is gone; nothing but such entries ever stands without its record.

use mayfly_storage::{
    Error as StoreError,
    store::{Batch, Counter, Expect, Guard, Snapshot, Urgency},
    upkeep::Withered,
};

use super::search::Search;
use crate::{
    container::Container,
    engine::Engine,
    error::{Error, Result},
    keys::{Family, Shard, be_u64},
    ttl::{Cuts, Life, OwnTtl},
};

/// Documents that are worth a sweep: below this, deleting their entries takes a second.
pub const MASS: u64 = 20_000;

/// They must also be one part in this many of all documents: a sweep goes through all of it.
const MASS_PARTS: u64 = 8;

/// The first byte of a life that inherits and has no dates: it ends by the default alone.
const LEAD: u8 = 0;

/// A felling.
#[derive(Clone, Copy)]
pub(super) struct Mass {
    /// The second of the last documents to go.
    pub through: u64,
    /// Whether the row that says so has still to be written.
    pub is_new: bool,
}

/// The entries that a felling leaves.
pub(super) fn left_by(shard: Shard, through: u64) -> [Withered; 4] {
    [Family::Index, Family::Composite, Family::Text, Family::Vector].map(|family| Withered {
        range: shard.range(family, &[]),
        lead: LEAD,
        through,
    })
}

/// Up to which second entries of a slot may be left.
pub async fn swept_through(snapshot: &dyn Snapshot, shard: Shard) -> Result<Option<u64>> {
    let row = snapshot.get(&shard.single(Family::Sweep)).await?;
    match row {
        Some(row) if row.len() == 8 => Ok(Some(be_u64(&row))),
        Some(_) => Err(Error::Corrupt("a sweep row cannot be read")),
        None => Ok(None),
    }
}

/// Whether an entry with this life may be there without its record, or not there with it.
pub fn may_be_left(life: &[u8], swept: Option<u64>) -> bool {
    let undated = |life: &Life| life.own == OwnTtl::Inherit && life.dates.is_empty();
    match (Life::decode(life), swept) {
        (Some((life, _)), Some(through)) => undated(&life) && life.ts <= through,
        _ => false,
    }
}

impl Engine {
    /// How to fell, if what `search` has found is the head of a mass. `begun` is what the slot's row says, and the search
    /// was for `victims_max`.
    pub(super) async fn mass_of(
        &self,
        search: &Search<'_>,
        begun: Option<u64>,
        victims_max: usize,
    ) -> Result<Option<Mass>> {
        let (shard, cuts, found) = (search.shard(), search.cuts(), search.fellable.len() as u64);
        // Others may stand between them in the feed.
        if found < self.mass().min(victims_max as u64 / 2) {
            return Ok(None);
        }
        let Ok(through) = u64::try_from(cuts.inherited.through) else { return Ok(None) };
        if begun.is_some() {
            return Ok(Some(Mass { through, is_new: false }));
        }
        let first = search.fellable.values().map(|felled| felled.lsn).min().unwrap_or(0);
        let last = self.commit_before(shard, through.saturating_add(1)).await?;
        let end = self.counter(shard).await?.seq;
        // The feed is in order, so the gone part of its numbers is about the gone part of its documents.
        let share = (last.saturating_sub(first) + 1) as f64 / (end.saturating_sub(first) + 1) as f64;
        let gone = (self.stored_documents(shard).await? as f64 * share) as u64;
        if gone < self.mass() {
            return Ok(None);
        }
        let mut all = 0;
        for container in self.catalog().all_containers() {
            for shard in container.shards() {
                all += self.stored_documents(shard).await?;
            }
        }
        let is_mass = gone.saturating_mul(MASS_PARTS) >= all;
        Ok(is_mass.then_some(Mass { through, is_new: true }))
    }

    async fn stored_documents(&self, shard: Shard) -> Result<u64> {
        let tally = |counter: Counter| counter.tally[0];
        let written = tally(self.counter_of(shard, Family::Counter).await?);
        let purged = tally(self.counter_of(shard, Family::Purged).await?);
        Ok(written.saturating_add(purged).max(0) as u64)
    }

    /// Sweeps what purge in mass has left, once it is done; whether there was anything. Takes seconds for each million
    /// documents, while everything else goes on. Call when purge has caught up.
    pub async fn sweep(&self) -> Result<bool> {
        let mut due = Vec::new();
        for container in self.catalog().all_containers() {
            for shard in container.shards() {
                if let Some(through) = self.sweep_due(&container, shard).await? {
                    due.push((shard, through));
                }
            }
        }
        if due.is_empty() {
            return Ok(false);
        }
        let withered = due.iter().flat_map(|(shard, through)| left_by(*shard, *through));
        self.store().sweep(withered.collect()).await?;
        for (shard, through) in due {
            let row = shard.single(Family::Sweep);
            let guards = vec![Guard { key: row.clone(), expect: Expect::Version(through) }];
            let batch =
                Batch { guards, deletes: vec![row], urgency: Urgency::Background, ..Batch::default() };
            match self.store().commit(batch).await {
                // More was felled meanwhile: the next sweep is for that.
                Ok(_) | Err(StoreError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(true)
    }

    /// The second to sweep a slot through, if something is left and nothing more will be.
    async fn sweep_due(&self, container: &Container, shard: Shard) -> Result<Option<u64>> {
        let snapshot = self.store().snapshot().await?;
        let Some(through) = swept_through(&*snapshot, shard).await? else { return Ok(None) };
        let cuts: Cuts = container.ttl().cuts(self.now().await?);
        let mut search = Search::new(&*snapshot, container, shard, &cuts, self.purge_marks(), 1);
        search.feed().await?;
        Ok((search.victims.is_empty() && !search.more).then_some(through))
    }
}
