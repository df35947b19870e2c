//! Building index entries in the background: for lazy containers, and after a change of policy.
//!
//! The feed says which version of a document has entries of which epoch. The indexer walks it and gives
//! entries to those that have none of the current epoch; a document that is written meanwhile moves to the
//! end of the feed, with entries if its container is consistent. When the walk of a consistent container
//! reaches the end, every document has its entries and the container is marked ready.

use std::sync::Arc;

use mayfly_storage::{
    Error as StoreError,
    store::{Advance, Batch, Counter, Direction, Expect, Guard, PageLimit, Put, Urgency},
};

use crate::{
    clock::Timestamp,
    container::Container,
    definition::IndexingMode,
    engine::Engine,
    error::{Error, Result},
    feed::commits_after,
    index,
    keys::{Family, Shard, sequence_of},
    purge::Reach,
    record::{DueEntry, FeedEntry, Record},
    scan::{indexed_through, last_commit},
};

/// Documents indexed in one batch.
const DOCUMENTS_MAX: usize = 64;

impl Engine {
    /// One tick: indexes some documents of every container that needs it, and finishes date rules whose
    /// making was cut short. Says whether there is more to do.
    pub async fn build_indexes(&self) -> Result<bool> {
        let mut more = false;
        for container in self.catalog().all_containers() {
            if let Some(rule) = container.ttl().unbuilt() {
                let now = self.now().await?;
                match self.build_date_rule(container, rule, now).await {
                    Ok(_) | Err(Error::NotFound(_)) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        for container in self.catalog().all_containers().into_iter().filter(|c| !c.row.index.ready) {
            more |= self.index_container(&container).await?;
        }
        Ok(more)
    }

    /// How much of a container is indexed, from 0 to 100.
    pub async fn index_progress(&self, container: &Container) -> Result<u8> {
        if container.row.index.ready {
            return Ok(100);
        }
        let (mut done, mut all) = (0, 0);
        let snapshot = self.store().snapshot().await?;
        for shard in container.shards() {
            all += last_commit(&*snapshot, shard).await?;
            done += indexed_through(&*snapshot, shard, container.row.index.epoch).await?;
        }
        Ok((done.min(all) * 100).checked_div(all).unwrap_or(100) as u8)
    }

    async fn index_container(&self, container: &Arc<Container>) -> Result<bool> {
        let mut more = false;
        for shard in container.shards() {
            more |= self.index_shard(container, shard).await?;
        }
        let consistent = container.definition().indexing.mode == IndexingMode::Consistent;
        if !more && consistent {
            // Every write since the policy changed was guarded by the container's row and made its own
            // entries, so nothing can have been missed.
            let epoch = container.row.index.epoch;
            let ready = self.catalog().change_container(container, None, move |row| {
                if row.index.epoch == epoch {
                    row.index.ready = true;
                }
                Ok(())
            });
            match ready.await {
                Ok(_) | Err(Error::NotFound(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(more)
    }

    async fn index_shard(&self, container: &Arc<Container>, shard: Shard) -> Result<bool> {
        let snapshot = self.store().snapshot().await?;
        let position = indexed_through(&*snapshot, shard, container.row.index.epoch).await?;
        let page = commits_after(&*snapshot, shard, Family::Feed, position, DOCUMENTS_MAX).await?;
        let reach = Reach::read(&*snapshot, shard).await?;
        let epoch = container.row.index.epoch;
        let mut batch =
            Batch { guards: vec![container.guard()], urgency: Urgency::Background, ..Batch::default() };
        let mut reached = position;
        for (key, value) in &page.rows {
            let mut entry = FeedEntry::decode(value)?;
            let (lsn, ordinal) = sequence_of(key)?;
            reached = lsn;
            if entry.epoch == epoch {
                continue;
            }
            if reach.has_purged(&entry.life, (lsn, ordinal), entry.document.as_bytes()) {
                continue;
            }
            let record_key = shard.record(&entry.document);
            let record = snapshot.get(&record_key).await?.map(Record::decode).transpose()?;
            let record = record.ok_or(Error::Corrupt("a feed entry has no record"))?;
            let mut life = Vec::new();
            record.life.encode(&mut life);
            let entries = index::index_entries(container, shard, &entry.document, record.body())?;
            if !entries.fits {
                self.narrow_coverage(container, &[record.body()]).await?;
                return Ok(true);
            }
            for entry in entries.entries {
                let value = entry.value(&life);
                batch.puts.push(Put { key: entry.key, value, marks: Vec::new() });
            }
            entry.epoch = epoch;
            let key = shard.sequenced(Family::Feed, lsn, ordinal);
            batch.puts.push(Put { key, value: entry.encode(), marks: Vec::new() });
            batch.guards.push(Guard { key: record_key, expect: Expect::Version(lsn) });
        }
        if !page.more {
            reached = last_commit(&*snapshot, shard).await?;
        }
        if reached != position || !batch.puts.is_empty() {
            let mut value = u64::from(epoch).to_be_bytes().to_vec();
            value.extend_from_slice(&reached.to_be_bytes());
            let key = shard.single(Family::IndexPosition);
            batch.puts.push(Put { key, value, marks: Vec::new() });
            match self.store().commit(batch).await {
                Ok(_) => {}
                // Somebody wrote one of the documents, or changed the container: look again.
                Err(StoreError::Conflict { .. }) => return Ok(true),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(page.more)
    }

    /// Adds a date rule to a container and gives every document its date under it.
    ///
    /// Answers when all documents have it, as an index build does: at that moment the rule comes into force,
    /// for all of them. If that fails half-way, [`Engine::build_indexes`] goes on with it.
    pub async fn create_date_rule(
        &self,
        container: &Container,
        path: &mayfly_value::path::Path,
        seconds: u32,
        now: Timestamp,
    ) -> Result<(Arc<Container>, u16)> {
        let (engine, container, path) = (self.clone(), self.reload(container)?, path.clone());
        self.to_completion(async move {
            let added = engine.catalog().change_container_with(&container, None, move |row| {
                let (policy, number) = row.ttl.with_date_rule(&path, seconds)?;
                row.ttl = policy;
                row.modified = now.seconds();
                row.revision += 1;
                Ok(number)
            });
            let (added, number) = added.await?;
            Ok((engine.build_date_rule(added, number, now).await?, number))
        })
        .await
    }

    /// Gives every document its date under a rule, and puts the rule in force.
    async fn build_date_rule(
        &self,
        mut container: Arc<Container>,
        number: u16,
        now: Timestamp,
    ) -> Result<Arc<Container>> {
        for shard in container.shards() {
            self.date_documents(&mut container, shard).await?;
        }
        let timeline = self.timeline().clone();
        let built = self.catalog().change_container(&container, None, move |row| {
            row.ttl = row.ttl.with_date_rule_built(number, now.max(timeline.told()))?;
            Ok(())
        });
        built.await
    }

    /// Changes a date rule's length, or drops the rule: one small write. What has expired stays gone.
    pub async fn change_date_rule(
        &self,
        container: &Container,
        rule: u16,
        seconds: Option<u32>,
        now: Timestamp,
    ) -> Result<Arc<Container>> {
        let purged = self.purged_past(container, now).await?;
        let timeline = self.timeline().clone();
        let change = self.catalog().change_container(container, None, move |row| {
            purged.iter().for_each(|cuts| row.ttl.forget_past(cuts));
            let told = now.max(timeline.told());
            row.ttl = row.ttl.with_date_rule_seconds(rule, seconds, told)?;
            row.modified = now.seconds();
            row.revision += 1;
            Ok(())
        });
        change.await
    }

    /// Rewrites the lives of documents that were there before a date rule. Their versions stay the same.
    pub(crate) async fn date_documents(&self, container: &mut Arc<Container>, shard: Shard) -> Result<()> {
        let mut range = shard.range(Family::Feed, &[]);
        loop {
            let snapshot = self.store().snapshot().await?;
            let limit = PageLimit { rows: DOCUMENTS_MAX, bytes: usize::MAX };
            let page = snapshot.scan(&range, Direction::Forward, limit).await?;
            let reach = Reach::read(&*snapshot, shard).await?;
            let mut batch = Batch { guards: vec![container.guard()], ..Batch::default() };
            for (key, value) in &page.rows {
                let (lsn, ordinal) = sequence_of(key)?;
                let mut entry = FeedEntry::decode(value)?;
                if reach.has_purged(&entry.life, (lsn, ordinal), entry.document.as_bytes()) {
                    continue;
                }
                let record_key = shard.record(&entry.document);
                let record = snapshot.get(&record_key).await?.map(Record::decode).transpose()?;
                let mut record = record.ok_or(Error::Corrupt("a feed entry has no record"))?;
                let dates = container.redated(&record.life, record.body())?;
                if dates == record.life.dates {
                    continue;
                }
                let before = index::expiry_keys(shard, &entry.document, &record.life);
                record.life.dates = dates;
                let expiry = index::expiry_keys(shard, &entry.document, &record.life);
                batch.deletes.extend(before.into_iter().filter(|key| !expiry.contains(key)));
                entry.life = record.life.clone();
                let mut life = Vec::new();
                record.life.encode(&mut life);
                let mut put = |key, value| batch.puts.push(Put { key, value, marks: Vec::new() });
                if entry.epoch == container.row.index.epoch {
                    let entries = index::index_entries(container, shard, &entry.document, record.body())?;
                    for entry in entries.entries {
                        let value = entry.value(&life);
                        put(entry.key, value);
                    }
                }
                // Entries tell how long their document lives, also those of a collection's indexes.
                for key in index::secondary_keys(container, shard, &entry.document, record.body())? {
                    put(key, index::secondary_value(&entry.document, &life));
                }
                let due = DueEntry::encoded(&record);
                for key in expiry {
                    put(key, due.clone());
                }
                put(shard.sequenced(Family::Feed, lsn, ordinal), entry.encode());
                put(record_key.clone(), record.encode().0);
                batch.guards.push(Guard { key: record_key, expect: Expect::Version(lsn) });
            }
            if !batch.puts.is_empty() {
                // The versions stay, so a purge that saw the lives of before is told in this way, and it must not
                // have counted out any of them since.
                let counter = shard.single(Family::Purged);
                let purges = snapshot.get(&counter).await?.as_deref().and_then(Counter::decode);
                let expect = purges.map_or(Expect::Absent, |row| Expect::Version(row.seq));
                batch.guards.push(Guard { key: counter.clone(), expect });
                batch.advances.push(Advance { counter, stamp: 0, tally: [0, 0] });
                match self.store().commit(batch).await {
                    Ok(_) => {}
                    // Look again at this page; what was written meanwhile has its date already.
                    Err(StoreError::Conflict { .. }) => {
                        *container = self.renewed(container).await?;
                        continue;
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            match page.rows.last() {
                Some((last, _)) if page.more => range.start = [&last[..], &[0]].concat(),
                _ => return Ok(()),
            }
        }
    }
}
