//! Removing what nobody can see any more: the data of dropped containers, the entries of retired indexes, and
//! logs that were switched off.

use std::sync::atomic::Ordering::Relaxed;

use mayfly_storage::store::{Batch, KeyRange, Space, Urgency};

use crate::{
    catalog::DroppedRow,
    container::{Container, ContainerRow},
    engine::Engine,
    error::{Error, Result},
    keys::{self, Family, Shard},
};

/// Keys removed from one range in one tick.
const KEYS_MAX: usize = 2000;

/// What a row takes on disk, more or less.
const SMALL_BYTES: u64 = 64;
const LARGE_BYTES: u64 = 1024;

impl Engine {
    /// One tick. Says whether there is more to do.
    pub async fn reap(&self) -> Result<bool> {
        let mut more = false;
        for (container, row) in self.catalog().dropped().await? {
            more |= self.reap_container(container, row).await?;
        }
        for container in self.catalog().all_containers() {
            if container.row.log_left {
                more |= self.reap_log(&container).await?;
            }
            if container.row.index.retired.is_empty() && container.row.retired_indexes.is_empty() {
                continue;
            }
            let numbers = container.row.retired_indexes.clone();
            let retired = container.row.index.retired.clone();
            let mut left = false;
            for shard in container.shards() {
                for epoch in &retired {
                    for family in [Family::Index, Family::Composite, Family::Text, Family::Vector] {
                        let range = shard.range(family, &epoch.to_be_bytes());
                        left |= self.clear(&range).await?;
                    }
                }
            }
            for shard in container.shards() {
                for number in &numbers {
                    for family in [Family::Secondary, Family::SecondaryUnique] {
                        let range = shard.range(family, &number.to_be_bytes());
                        left |= self.store().clear(&range, KEYS_MAX).await?.more;
                    }
                }
            }
            more |= left;
            if !left {
                self.note(&container, move |row| {
                    row.index.retired.retain(|epoch| !retired.contains(epoch));
                    row.retired_indexes.retain(|number| !numbers.contains(number));
                })
                .await?;
            }
        }
        Ok(more)
    }

    /// Removes what a log that was switched off has left.
    async fn reap_log(&self, container: &Container) -> Result<bool> {
        for shard in container.shards() {
            let last = self.counter(shard).await?.seq;
            // Still off: so whatever has a number up to there is of the old log.
            if !self.reload(container).is_ok_and(|container| container.row.log_left) {
                return Ok(false);
            }
            let mut range = shard.range(Family::Log, &[]);
            range.end = Some([&range.start[..], &last.saturating_add(1).to_be_bytes()].concat());
            if self.clear(&range).await? {
                return Ok(true);
            }
        }
        // Unless its owner switched it on and off meanwhile.
        let revision = container.row.revision;
        self.note(container, move |row| row.log_left &= row.revision != revision).await?;
        Ok(false)
    }

    /// Changes a container's row in the background, if the container is still there.
    async fn note(
        &self,
        container: &Container,
        change: impl Fn(&mut ContainerRow) + Send + Sync + 'static,
    ) -> Result<()> {
        let noted = self.catalog().change_container(container, None, move |row| {
            change(row);
            Ok(())
        });
        match noted.await {
            Ok(_) | Err(Error::NotFound(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Removes some keys of a range and counts the space that they leave, by guess. Whether there are more.
    async fn clear(&self, range: &KeyRange) -> Result<bool> {
        let cleared = self.store().clear(range, KEYS_MAX).await?;
        let each = match range.space {
            Space::Small => SMALL_BYTES,
            Space::Large => LARGE_BYTES,
        };
        self.unreclaimed().fetch_add(cleared.keys as u64 * each, Relaxed);
        Ok(cleared.more)
    }

    async fn reap_container(&self, container: u32, row: DroppedRow) -> Result<bool> {
        let has_log = row.log_until.is_some_and(|until| until > self.timeline().told().seconds());
        if has_log && row.only_log {
            return Ok(false);
        }
        for slot in 0..row.slots {
            let shard = Shard { container, slot: slot as u16 };
            let large =
                if has_log { shard.range(Family::Record, &[]) } else { shard.everything(Space::Large) };
            for range in [shard.everything(Space::Small), large] {
                if self.clear(&range).await? {
                    return Ok(true);
                }
            }
        }
        if has_log {
            let puts = vec![DroppedRow { only_log: true, ..row }.put(container)?];
            let batch = Batch { puts, urgency: Urgency::Background, ..Batch::default() };
            self.store().commit(batch).await?;
            return Ok(false);
        }
        let deletes = vec![keys::dropped(container)];
        self.store().commit(Batch { deletes, urgency: Urgency::Background, ..Batch::default() }).await?;
        self.metrics().forget(container);
        Ok(false)
    }
}
