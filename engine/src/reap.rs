//! Removing what nobody can see any more: the data of dropped containers, the entries of retired indexes, and
//! logs that were switched off.

use mayfly_storage::store::{Batch, KeyRange, Space, Urgency};

use crate::{
    catalog::DroppedRow,
    container::{Container, ContainerRow},
    engine::Engine,
    error::{Error, Result},
    keys::{self, Family, Shard},
};

/// Ranges that the store is asked to discard at once. It goes through a tree once for all of them, not once for each.
#[derive(Default)]
struct Discards {
    ranges: Vec<KeyRange>,
    done: Vec<Done>,
}

/// What is noted once the ranges are empty.
enum Done {
    Dropped(u32),
    /// All but its log.
    DroppedButLog(u32, DroppedRow),
    Log(u64),
    Indexes {
        epochs: Vec<u32>,
        numbers: Vec<u32>,
    },
}

impl Engine {
    /// One tick. Says whether there is more to do.
    pub async fn reap(&self) -> Result<bool> {
        let mut discards = Discards::default();
        let mut changed = Vec::new();
        for (container, row) in self.catalog().dropped().await? {
            self.add_dropped(&mut discards, container, row);
        }
        for container in self.catalog().all_containers() {
            let before = discards.done.len();
            if container.row.log_left {
                self.add_log(&mut discards, &container).await?;
            }
            add_indexes(&mut discards, &container);
            changed.extend((before..discards.done.len()).map(|place| (place, container.clone())));
        }
        if discards.done.is_empty() {
            return Ok(false);
        }
        if self.store().discard(&discards.ranges).await? {
            return Ok(true);
        }
        let mut changed = changed.into_iter().peekable();
        for (place, done) in discards.done.into_iter().enumerate() {
            match changed.next_if(|(of, _)| *of == place) {
                Some((_, container)) => self.note_done(&container, done).await?,
                None => self.forget_dropped(done).await?,
            }
        }
        Ok(false)
    }

    fn add_dropped(&self, discards: &mut Discards, container: u32, row: DroppedRow) {
        let has_log = row.log_until.is_some_and(|until| until > self.timeline().told().seconds());
        if has_log && row.only_log {
            return;
        }
        for slot in 0..row.slots {
            let shard = Shard { container, slot: slot as u16 };
            let large =
                if has_log { shard.range(Family::Record, &[]) } else { shard.everything(Space::Large) };
            discards.ranges.extend([shard.everything(Space::Small), large]);
        }
        discards.done.push(match has_log {
            true => Done::DroppedButLog(container, row),
            false => Done::Dropped(container),
        });
    }

    /// What a log that was switched off has left.
    async fn add_log(&self, discards: &mut Discards, container: &Container) -> Result<()> {
        let mut ranges = Vec::new();
        for shard in container.shards() {
            let last = self.counter(shard).await?.seq;
            // Still off: so whatever has a number up to there is of the old log.
            if !self.reload(container).is_ok_and(|container| container.row.log_left) {
                return Ok(());
            }
            let mut range = shard.range(Family::Log, &[]);
            range.end = Some([&range.start[..], &last.saturating_add(1).to_be_bytes()].concat());
            ranges.push(range);
        }
        discards.ranges.extend(ranges);
        discards.done.push(Done::Log(container.row.revision));
        Ok(())
    }

    async fn note_done(&self, container: &Container, done: Done) -> Result<()> {
        match done {
            // Unless its owner switched it on and off meanwhile.
            Done::Log(revision) => {
                self.note(container, move |row| row.log_left &= row.revision != revision).await
            }
            Done::Indexes { epochs, numbers } => {
                self.note(container, move |row| {
                    row.index.retired.retain(|epoch| !epochs.contains(epoch));
                    row.retired_indexes.retain(|number| !numbers.contains(number));
                })
                .await
            }
            Done::Dropped(..) | Done::DroppedButLog(..) => Ok(()),
        }
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

    async fn forget_dropped(&self, done: Done) -> Result<()> {
        let mut batch = Batch { urgency: Urgency::Background, ..Batch::default() };
        match done {
            Done::DroppedButLog(container, row) => {
                batch.puts.push(DroppedRow { only_log: true, ..row }.put(container)?);
            }
            Done::Dropped(container) => {
                batch.deletes.push(keys::dropped(container));
                self.left().dropped(container);
                self.metrics().forget(container);
            }
            Done::Log(_) | Done::Indexes { .. } => {}
        }
        self.store().commit(batch).await?;
        Ok(())
    }
}

/// The entries of retired indexes.
fn add_indexes(discards: &mut Discards, container: &Container) {
    let (epochs, numbers) = (container.row.index.retired.clone(), container.row.retired_indexes.clone());
    if epochs.is_empty() && numbers.is_empty() {
        return;
    }
    for shard in container.shards() {
        for epoch in &epochs {
            let families = [Family::Index, Family::Composite, Family::Text, Family::Vector];
            discards.ranges.extend(families.map(|family| shard.range(family, &epoch.to_be_bytes())));
        }
        for number in &numbers {
            let families = [Family::Secondary, Family::SecondaryUnique];
            discards.ranges.extend(families.map(|family| shard.range(family, &number.to_be_bytes())));
        }
    }
    discards.done.push(Done::Indexes { epochs, numbers });
}
