//! Removing what nobody can see any more: the data of dropped containers and the entries of retired indexes.

use mayfly_storage::store::{Batch, Space, Urgency};

use crate::{
    engine::Engine,
    error::{Error, Result},
    keys::{self, Family, Shard},
};

/// Keys removed from one range in one tick.
const KEYS_MAX: usize = 2000;

impl Engine {
    /// One tick. Says whether there is more to do.
    pub async fn reap(&self) -> Result<bool> {
        let mut more = false;
        for (container, row) in self.catalog().dropped().await? {
            more |= self.reap_container(container, row.slots).await?;
        }
        for container in self.catalog().all_containers() {
            if container.row.index.retired.is_empty() && container.row.retired_indexes.is_empty() {
                continue;
            }
            let numbers = container.row.retired_indexes.clone();
            let retired = container.row.index.retired.clone();
            let mut left = false;
            for shard in container.shards() {
                for epoch in &retired {
                    for family in [Family::Index, Family::Composite] {
                        let range = shard.range(family, &epoch.to_be_bytes());
                        left |= self.store().clear(&range, KEYS_MAX).await?.more;
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
                let forget = self.catalog().change_container(&container, None, |row| {
                    row.index.retired.retain(|epoch| !retired.contains(epoch));
                    row.retired_indexes.retain(|number| !numbers.contains(number));
                    Ok(())
                });
                match forget.await {
                    Ok(_) | Err(Error::NotFound(_)) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(more)
    }

    async fn reap_container(&self, container: u32, slots: u32) -> Result<bool> {
        for slot in 0..slots {
            let shard = Shard { container, slot: slot as u16 };
            for space in [Space::Small, Space::Large] {
                if self.store().clear(&shard.everything(space), KEYS_MAX).await?.more {
                    return Ok(true);
                }
            }
        }
        let deletes = vec![keys::dropped(container)];
        self.store().commit(Batch { deletes, urgency: Urgency::Background, ..Batch::default() }).await?;
        self.metrics().forget(container);
        Ok(false)
    }
}
