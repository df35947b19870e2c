//! Making and dropping the indexes of a collection.
//!
//! An index is added to the definition first, as one that is being built: writes from then on give it its
//! entries. Then the documents that were there get theirs, page by page, and then it is whole. If two of them
//! want the same place in a unique index, the index goes again and the caller is told which document it was.
//!
//! All of that runs to its end ([`Engine::to_completion`]): a client that leaves does not leave an index behind that
//! nobody builds.

use std::sync::Arc;

use bson::RawDocumentBuf;
use mayfly_storage::{
    Error as StoreError,
    store::{Batch, Direction, Expect, Guard, PageLimit, Put},
};
use mayfly_value::path::Path;

use crate::{
    clock::Timestamp,
    collection,
    collection::IndexRule,
    container::Container,
    engine::Engine,
    error::{Error, Result},
    index::secondary_value,
    keys::{DocumentKey, Family, PREFIX_LEN},
    purge::{Pace, Reach},
    record::Record,
    ttl::DefaultTtl,
    write::unique_row_owner,
};

/// Documents given their entries in one batch.
const DOCUMENTS_MAX: usize = 128;

/// Why an index could not be made.
#[derive(Debug)]
pub enum IndexRefused {
    /// Two documents have the same values; this is one of them.
    Duplicate(RawDocumentBuf),
    /// Anything else.
    Other(Error),
}

impl From<Error> for IndexRefused {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

impl Engine {
    /// Adds an index to a container and gives every document its entries, and its date if `ttl_seconds` says
    /// so.
    ///
    /// Nobody else may write to the collection meanwhile: the front-end sees to that.
    pub async fn create_index(
        &self,
        container: &Container,
        rule: IndexRule,
        ttl_seconds: Option<u32>,
        now: Timestamp,
    ) -> std::result::Result<Arc<Container>, IndexRefused> {
        let (engine, container) = (self.clone(), self.reload(container)?);
        self.to_completion(async move { engine.add_index(&container, rule, ttl_seconds, now).await }).await
    }

    async fn add_index(
        &self,
        container: &Container,
        rule: IndexRule,
        ttl_seconds: Option<u32>,
        now: Timestamp,
    ) -> std::result::Result<Arc<Container>, IndexRefused> {
        let path = first_path(&rule);
        let added = self.catalog().change_container_with(container, None, move |row| {
            let mut date_rule = None;
            let indexes = &mut row.definition.index_rules;
            let number = indexes.iter().map(|index| index.number + 1).max().unwrap_or(1).max(row.next_index);
            row.next_index = number + 1;
            if let (Some(seconds), Some(path)) = (ttl_seconds, path.clone()) {
                let (policy, rule) = row.ttl.with_date_rule(&path, seconds)?;
                (row.ttl, date_rule) = (policy, Some(rule));
            }
            indexes.push(IndexRule { number, date_rule, building: true, ..rule.clone() });
            row.modified = now.seconds();
            row.revision += 1;
            Ok((number, date_rule))
        });
        let (mut container, (number, date_rule)) = added.await?;
        let built = self.build_index(&mut container, number).await;
        if let Err(refused) = built {
            self.drop_index(&container, number, now).await?;
            return Err(refused);
        }
        if date_rule.is_some() {
            for shard in container.shards() {
                self.date_documents(&mut container, shard).await?;
            }
        }
        let timeline = self.timeline().clone();
        let whole = self.catalog().change_container(&container, None, move |row| {
            if let Some(rule) = date_rule {
                row.ttl = row.ttl.with_date_rule_built(rule, now.max(timeline.told()))?;
            }
            for index in row.definition.index_rules.iter_mut().filter(|index| index.number == number) {
                index.building = false;
            }
            Ok(())
        });
        Ok(whole.await?)
    }

    /// Drops an index, and the rule about time to live that came with it. What has expired by it stays gone.
    pub async fn drop_index(
        &self,
        container: &Container,
        number: u32,
        now: Timestamp,
    ) -> Result<Arc<Container>> {
        let timeline = self.timeline().clone();
        let changed = self.catalog().change_container(container, None, move |row| {
            let told = now.max(timeline.told());
            let indexes = &mut row.definition.index_rules;
            let Some(place) = indexes.iter().position(|index| index.number == number) else {
                return Ok(());
            };
            let index = indexes.remove(place);
            if let Some(rule) = index.date_rule {
                row.ttl = row.ttl.with_date_rule_dropped(rule, told)?;
            }
            if index.is_default_ttl {
                row.change_default(None, told);
                row.definition.default_ttl = None;
            }
            row.retired_indexes.push(number);
            row.modified = now.seconds();
            row.revision += 1;
            Ok(())
        });
        changed.await
    }

    /// Adds the index that stands for a container's default time to live.
    pub async fn create_default_ttl_index(
        &self,
        container: &Container,
        rule: IndexRule,
        default: DefaultTtl,
        now: Timestamp,
    ) -> Result<Arc<Container>> {
        let timeline = self.timeline().clone();
        let changed = self.catalog().change_container(container, None, move |row| {
            let told = now.max(timeline.told());
            let indexes = &mut row.definition.index_rules;
            let number = indexes.iter().map(|index| index.number + 1).max().unwrap_or(1).max(row.next_index);
            row.next_index = number + 1;
            indexes.push(IndexRule { number, is_default_ttl: true, building: false, ..rule.clone() });
            row.change_default(Some(default), told);
            row.definition.default_ttl = Some(default);
            row.modified = now.seconds();
            row.revision += 1;
            Ok(())
        });
        changed.await
    }

    /// Changes what clients see of an index, and the length of its rule about time to live.
    pub async fn change_index(
        &self,
        container: &Container,
        rule: IndexRule,
        ttl: Option<i64>,
        now: Timestamp,
    ) -> Result<Arc<Container>> {
        let (engine, container) = (self.clone(), self.reload(container)?);
        self.to_completion(async move { engine.alter_index(&container, rule, ttl, now).await }).await
    }

    async fn alter_index(
        &self,
        container: &Container,
        rule: IndexRule,
        ttl: Option<i64>,
        now: Timestamp,
    ) -> Result<Arc<Container>> {
        let (path, timeline) = (first_path(&rule), self.timeline().clone());
        let changed = self.catalog().change_container_with(container, None, move |row| {
            let told = now.max(timeline.told());
            let (mut rule, mut added) = (rule.clone(), None);
            match ttl {
                Some(ttl) if rule.is_default_ttl => {
                    let default = DefaultTtl::try_from(ttl).map_err(Error::bad_request)?;
                    row.change_default(Some(default), told);
                    row.definition.default_ttl = Some(default);
                }
                Some(ttl) => {
                    let seconds =
                        u32::try_from(ttl).map_err(|_| Error::bad_request("not a number of seconds"))?;
                    match (rule.date_rule, path.clone()) {
                        (Some(number), _) => {
                            row.ttl = row.ttl.with_date_rule_seconds(number, Some(seconds), told)?;
                        }
                        (None, Some(path)) => {
                            let (policy, number) = row.ttl.with_date_rule(&path, seconds)?;
                            row.ttl = policy;
                            rule.date_rule = Some(number);
                            added = Some(number);
                        }
                        (None, None) => {}
                    }
                }
                None => {}
            }
            for index in row.definition.index_rules.iter_mut().filter(|index| index.number == rule.number) {
                *index = rule.clone();
            }
            row.modified = now.seconds();
            row.revision += 1;
            Ok(added)
        });
        let (mut container, added) = changed.await?;
        let Some(number) = added else { return Ok(container) };
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

    async fn build_index(
        &self,
        container: &mut Arc<Container>,
        number: u32,
    ) -> std::result::Result<(), IndexRefused> {
        let partition = container.locate(&collection::whole())?;
        let shard = partition.shard;
        let mut range = shard.range(Family::Record, &[]);
        loop {
            // What has expired must not hold a place in a unique index, nor give up one that it never had.
            let now = self.now().await?;
            while self.purge_container(&self.reload(container)?, now, Pace::Full).await?.more {}
            let snapshot = self.store().snapshot().await.map_err(Error::from)?;
            let limit = PageLimit { rows: DOCUMENTS_MAX, bytes: 8 << 20 };
            let page = snapshot.scan(&range, Direction::Forward, limit).await.map_err(Error::from)?;
            let Some(index) = container.secondaries.iter().find(|index| index.rule.number == number) else {
                return Ok(());
            };
            let reach = Reach::read(&*snapshot, shard).await?;
            let mut batch = Batch { guards: vec![container.guard()], ..Batch::default() };
            let mut taken = std::collections::HashSet::new();
            for (key, value) in &page.rows {
                let document = DocumentKey::from_tail(key.get(PREFIX_LEN..).unwrap_or_default())?;
                let record = Record::decode(value.clone())?;
                if reach.has_purged(&record.life, (record.lsn, record.ordinal), document.as_bytes()) {
                    continue;
                }
                let mut life = Vec::new();
                record.life.encode(&mut life);
                for key in index.entries(shard, &document, record.body())? {
                    let value = secondary_value(&document, &life);
                    batch.puts.push(Put { key, value, marks: Vec::new() });
                }
                for key in index.unique_rows(shard, record.body())? {
                    if !taken.insert(key.clone()) {
                        return Err(IndexRefused::Duplicate(record.body().to_owned()));
                    }
                    batch.guards.push(Guard { key: key.clone(), expect: Expect::Absent });
                    let value = [&record.lsn.to_be_bytes(), document.as_bytes()].concat();
                    batch.puts.push(Put { key, value, marks: Vec::new() });
                }
                batch
                    .guards
                    .push(Guard { key: shard.record(&document), expect: Expect::Version(record.lsn) });
            }
            if !batch.puts.is_empty() {
                match self.store().commit(batch).await {
                    Ok(_) => {}
                    Err(StoreError::Conflict { key })
                        if Family::of(&key.bytes) == Some(Family::SecondaryUnique) =>
                    {
                        return Err(self.duplicate_of(container, &key).await?);
                    }
                    Err(StoreError::Conflict { .. }) => {
                        *container = self.renewed(container).await?;
                        continue;
                    }
                    Err(error) => return Err(Error::from(error).into()),
                }
            }
            match page.rows.last() {
                Some((last, _)) if page.more => range.start = [&last[..], &[0]].concat(),
                _ => return Ok(()),
            }
        }
    }

    async fn duplicate_of(
        &self,
        container: &Container,
        row: &mayfly_storage::store::Key,
    ) -> Result<IndexRefused> {
        let shard = container.locate(&collection::whole())?.shard;
        let Some(row) = self.store().get(row).await? else { return Ok(Error::Contention.into()) };
        let owner = self.stored(shard, &unique_row_owner(&row)?).await?;
        Ok(owner.map_or(Error::Contention.into(), |record| IndexRefused::Duplicate(record.body().to_owned())))
    }
}

/// Where the first field of an index is.
fn first_path(rule: &IndexRule) -> Option<Path> {
    Path::from_segments(rule.fields.first()?.path.split('.').map(str::to_owned).collect::<Vec<_>>())
}
