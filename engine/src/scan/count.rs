//! How many there are: entries of an index, documents, and a guess for choosing between indexes.

use futures_util::future::join_all;
use mayfly_storage::store::{Direction, KeyRange, PageLimit};
use mayfly_value::keycode::DecodedValue;

use super::{
    row::{DAMAGED, Row, is_kept},
    state::{counter, each_row},
    walk::{Page, Walk},
};
use crate::{
    access::{Access, HashRange, IndexAccess, Reliance, record_range},
    clock::Timestamp,
    container::Container,
    engine::Engine,
    error::{Error, Result},
    keys::{Family, Shard},
    position::Leg,
    record::{FeedEntry, Record},
    ttl::Life,
};

impl Engine {
    /// How many living documents an index has in the ranges of `access`, on which the caller may rely.
    pub async fn count_entries(
        &self,
        container: &Container,
        access: &IndexAccess,
        now: Timestamp,
    ) -> Result<u64> {
        if access.relies == Reliance::Nothing {
            return Err(Error::internal("entries of an index that may lack some"));
        }
        let all = Access::Index(access.clone());
        let opened = self.open(container, &all, now).await?;
        let walk = opened.walk(&all, Direction::Forward);
        let mut count = 0;
        for some in access.within.slots(walk.container).chunks(walk.width) {
            let counts = some.iter().map(|slot| walk.count_slot(access, *slot));
            for counted in join_all(counts).await {
                count += counted?;
            }
        }
        self.check_current(&opened.container).await?;
        Ok(count)
    }

    /// How many living documents there are in a range of hashes. For all of a container where nothing expires that stands
    /// in its counters; else each document's life is asked, and nothing else of it.
    pub async fn count_documents(
        &self,
        container: &Container,
        within: &HashRange,
        now: Timestamp,
    ) -> Result<u64> {
        let access = Access::Records(within.clone());
        let opened = self.open(container, &access, now).await?;
        let (container, snapshot) = (&opened.container, &*opened.snapshot);
        let mut count = 0;
        for slot in within.slots(container) {
            let shard = container.shard(u32::from(slot));
            if within.is_all() && !container.ttl().can_expire() {
                // One snapshot of both, so what purge moves from one to the other is counted once.
                for family in [Family::Counter, Family::Purged] {
                    count += counter(snapshot, shard, family).await?.tally[0];
                }
                continue;
            }
            // A feed entry is shorter than a record, but lies by time.
            let (range, life_at) = match within.is_all() {
                true => (shard.range(Family::Feed, &[]), FeedEntry::LIFE_AT),
                false => (record_range(shard, within), Record::LIFE_AT),
            };
            each_row(snapshot, range, &mut |_, value| {
                let (life, _) = value.get(life_at..).and_then(Life::decode).ok_or(DAMAGED)?;
                count += i64::from(opened.cuts.is_live(&life));
                Ok(())
            })
            .await?;
        }
        self.check_current(container).await?;
        Ok(count.max(0) as u64)
    }

    /// How many of the first entries of a part of an index `keep` keeps: up to `most` are looked at. Says how many
    /// there were, expired ones included.
    pub async fn sample(
        &self,
        container: &Container,
        access: &IndexAccess,
        most: usize,
        keep: &(dyn Fn(&[DecodedValue]) -> bool + Sync),
    ) -> Result<(usize, usize)> {
        let snapshot = self.store().snapshot().await?;
        let container = self.reload(container)?;
        let (mut looked, mut kept) = (0, 0);
        for slot in access.within.slots(&container) {
            let shard = container.shard(u32::from(slot));
            for range in access.key_ranges(shard, container.row.index.epoch) {
                let limit = PageLimit { rows: most - looked, bytes: usize::MAX };
                let page = snapshot.scan(&range, Direction::Forward, limit).await?;
                looked += page.rows.len();
                for (key, _) in &page.rows {
                    kept += usize::from(is_kept(&container, access, key, keep)?);
                }
                if looked >= most {
                    return Ok((looked, kept));
                }
            }
        }
        Ok((looked, kept))
    }

    /// About how many entries there are in the ranges of each access path, expired ones included, counted up to `most`.
    pub async fn estimate(
        &self,
        container: &Container,
        paths: &[IndexAccess],
        most: usize,
    ) -> Result<Vec<usize>> {
        let snapshot = self.store().snapshot().await?;
        let container = self.reload(container)?;
        let mut estimates = Vec::with_capacity(paths.len());
        for access in paths {
            let mut count = 0;
            for slot in access.within.slots(&container) {
                let shard = container.shard(u32::from(slot));
                for range in access.key_ranges(shard, container.row.index.epoch) {
                    if count >= most {
                        break;
                    }
                    let limit = PageLimit { rows: most - count, bytes: usize::MAX };
                    count += snapshot.scan(&range, Direction::Forward, limit).await?.rows.len();
                }
            }
            estimates.push(count);
        }
        Ok(estimates)
    }
}

impl Walk<'_> {
    /// How many entries of living documents the ranges of an index have in a slot.
    async fn count_slot(&self, access: &IndexAccess, slot: u16) -> Result<u64> {
        let shard = self.container.shard(u32::from(slot));
        let mut count = 0;
        for range in access.key_ranges(shard, self.container.row.index.epoch) {
            count += self.count(shard, range).await?;
        }
        Ok(count)
    }

    /// How many entries of living documents a range has.
    async fn count(&self, shard: Shard, mut range: KeyRange) -> Result<u64> {
        /// Rows at a time: small enough to leave the thread to others now and then.
        const ROWS: usize = 1024;
        let Access::Index(access) = self.access else { return Ok(0) };
        let plain = access.within.is_all() && access.also.is_empty();
        let mut count = 0;
        while !range.is_empty() {
            let limit = PageLimit { rows: ROWS, bytes: usize::MAX };
            let page = self.snapshot.scan(&range, Direction::Forward, limit).await?;
            let Some((last, _)) = page.rows.last() else { break };
            range.start = [&last[..], &[0]].concat();
            let more = page.more;
            if plain {
                for (_, value) in &page.rows {
                    let (life, _) = Life::decode(value).ok_or(DAMAGED)?;
                    count += u64::from(self.cuts.is_live(&life));
                }
            } else {
                let mut seen = Page { records: true, ..Page::default() };
                let rows =
                    page.rows.into_iter().map(|(key, value)| self.row(Leg::Main, key, value, &mut seen));
                let mut rows: Vec<Row> = rows.filter_map(Result::transpose).collect::<Result<_>>()?;
                self.look_up(Leg::Main, shard, &mut rows).await?;
                count += rows.len() as u64;
            }
            if !more {
                break;
            }
        }
        Ok(count)
    }
}
