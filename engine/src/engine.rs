//! The engine: one handle over a store, a clock and a source of identifiers.
//!
//! Everything a front-end may do is a method of [`Engine`], defined in the file of its subject: point
//! operations in
//! `write.rs` and here, walks in `scan.rs` and `feed.rs`, background work as ticks in `purge.rs`,
//! `indexer.rs` and
//! `reap.rs`. A tick takes `now` and does a bounded piece of work, so tests call it with any time they like
//! and the loop around it needs no tests.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use mayfly_storage::store::{Batch, Counter, Put, Stats, Store};
use mayfly_value::partition::PartitionKey;

use crate::{
    catalog::{Catalog, Database},
    clock::{Clock, SystemClock, Timestamp, pause},
    collection::{NoPredicates, Predicates},
    completion::Completions,
    container::{Container, Partition},
    definition::ContainerDefinition,
    errands::Errands,
    error::{Error, Resource, Result},
    etag::{Etag, IfMatch},
    ids::{Ids, RandomIds},
    keys::{CATALOG, DocumentId, DocumentKey, Family, Shard},
    load::Load,
    metrics::Metrics,
    moment::Moments,
    names::Place,
    purge::{Left, Marks},
    record::Record,
    timeline::Timeline,
};

/// The layout of keys and values in the store. `docs/format.md` has a paragraph for each.
const LAYOUT: u64 = 4;

/// Layouts before, all of whose stores mean the same in this one.
const LAYOUTS_BEFORE: [u64; 3] = [1, 2, 3];

/// How often, and how far apart, a change that another node has announced is looked for before it is given
/// up: half a second, where one takes milliseconds.
const ANNOUNCED_LOOKS: u32 = 25;
const ANNOUNCED_PAUSE: Duration = Duration::from_millis(20);

/// A document database over an ordered store. Cheap to clone.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

struct Inner {
    store: Arc<dyn Store>,
    catalog: Arc<Catalog>,
    completions: Arc<Completions>,
    timeline: Arc<Timeline>,
    ids: Arc<dyn Ids>,
    moments: Moments,
    errands: Errands,
    metrics: Metrics,
    load: Load,
    read_only: AtomicBool,
    unreclaimed: AtomicU64,
    purge_marks: Marks,
    left: Left,
    counted_bytes: AtomicU64,
}

/// Collects what an engine is made of.
pub struct Builder {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
    predicates: Arc<dyn Predicates>,
}

impl Builder {
    /// Takes the time from `clock`.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Takes identifiers from `ids`.
    pub fn ids(mut self, ids: Arc<dyn Ids>) -> Self {
        self.ids = ids;
        self
    }

    /// Reads the filters of partial indexes with `predicates`.
    pub fn predicates(mut self, predicates: Arc<dyn Predicates>) -> Self {
        self.predicates = predicates;
        self
    }

    /// Opens the store's contents.
    pub async fn open(self) -> Result<Engine> {
        let is_older = check_layout(&*self.store).await?;
        let timeline = Arc::new(Timeline::open(self.clock, self.store.clone()).await?);
        let completions = Arc::<Completions>::default();
        let (store, timeline_of) = (self.store.clone(), timeline.clone());
        let catalog = Catalog::open(store, timeline_of, self.predicates, completions.clone()).await?;
        let inner = Inner {
            store: self.store,
            catalog: Arc::new(catalog),
            completions,
            timeline,
            ids: self.ids,
            moments: Moments::default(),
            errands: Errands::default(),
            metrics: Metrics::default(),
            load: Load::default(),
            read_only: AtomicBool::new(false),
            unreclaimed: AtomicU64::new(0),
            purge_marks: Marks::default(),
            left: Left::default(),
            counted_bytes: AtomicU64::new(0),
        };
        let engine = Engine { inner: Arc::new(inner) };
        if is_older {
            engine.end_sweeps().await?;
        }
        engine.tell_what_is_left().await?;
        Ok(engine)
    }
}

/// Refuses a store that a version laid out which is not known here; marks an empty or older one as ours. Whether it was
/// older.
async fn check_layout(store: &dyn Store) -> Result<bool> {
    let key = CATALOG.single(Family::Format);
    match store.get(&key).await? {
        Some(value) if value[..] == LAYOUT.to_be_bytes() => Ok(false),
        Some(value) if !LAYOUTS_BEFORE.iter().any(|before| value[..] == before.to_be_bytes()) => {
            Err(Error::Corrupt("the data was written by another version of Mayfly"))
        }
        found => {
            let put = Put { key, value: LAYOUT.to_be_bytes().to_vec(), marks: Vec::new() };
            store.commit(Batch { puts: vec![put], ..Batch::default() }).await?;
            Ok(found.is_some())
        }
    }
}

impl Engine {
    /// Starts from a store; the machine's clock and random identifiers unless told otherwise.
    pub fn builder(store: Arc<dyn Store>) -> Builder {
        let predicates = Arc::new(NoPredicates);
        Builder { store, clock: Arc::new(SystemClock), ids: Arc::new(RandomIds), predicates }
    }

    /// The time for a request or a page of one. Take it once and pass it on.
    pub async fn now(&self) -> Result<Timestamp> {
        self.inner.timeline.now().await
    }

    /// Identifiers for whoever needs one.
    pub fn ids(&self) -> &dyn Ids {
        &*self.inner.ids
    }

    /// The clock, for sleeping.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        self.inner.timeline.clock()
    }

    /// How far the engine's time is ahead of the clock, after a crash or a step back.
    pub fn ahead_of_clock(&self) -> Duration {
        self.inner.timeline.ahead()
    }

    /// Moves the stored time horizon on, so that requests need not. Call about twice a second.
    pub async fn renew_horizon(&self) -> Result<()> {
        self.inner.timeline.renew_ahead().await
    }

    /// Refuses writes, or takes them again. Reads and purge go on: purge is what frees the disk.
    pub fn set_read_only(&self, read_only: bool) {
        self.inner.read_only.store(read_only, Ordering::Release);
    }

    /// Whether writes are refused.
    pub fn is_read_only(&self) -> bool {
        self.inner.read_only.load(Ordering::Acquire)
    }

    /// Waits for what is under way, stores the time told last and makes everything durable. Call last.
    pub async fn close(&self) -> Result<()> {
        self.inner.completions.ended().await;
        self.inner.timeline.close().await?;
        Ok(self.inner.store.sync().await?)
    }

    /// What the engine counts.
    pub fn metrics(&self) -> &Metrics {
        &self.inner.metrics
    }

    /// Bytes purged since the store was last asked to give space back.
    pub(crate) fn unreclaimed(&self) -> &AtomicU64 {
        &self.inner.unreclaimed
    }

    /// Where purge goes on with long queues.
    pub(crate) fn purge_marks(&self) -> &Marks {
        &self.inner.purge_marks
    }

    /// The order of what happens.
    pub(crate) fn moments(&self) -> &Moments {
        &self.inner.moments
    }

    /// What it has to do with other nodes.
    pub(crate) fn own_errands(&self) -> &Errands {
        &self.inner.errands
    }

    /// What purged documents have left in the store.
    pub(crate) fn left(&self) -> &Left {
        &self.inner.left
    }

    /// Bytes of documents that were purged by count, less those that are known to be gone.
    pub(crate) fn counted_bytes(&self) -> &AtomicU64 {
        &self.inner.counted_bytes
    }

    /// What the store says about itself.
    pub fn store_stats(&self) -> Stats {
        self.inner.store.stats()
    }

    /// Who is being served, for background work to give way to.
    pub fn load(&self) -> &Load {
        &self.inner.load
    }

    pub(crate) fn store(&self) -> &dyn Store {
        &*self.inner.store
    }

    pub(crate) fn catalog(&self) -> &Arc<Catalog> {
        &self.inner.catalog
    }

    /// Work that its callers may have left.
    pub(crate) fn completions(&self) -> &Arc<Completions> {
        &self.inner.completions
    }

    pub(crate) fn timeline(&self) -> &Arc<Timeline> {
        &self.inner.timeline
    }

    /// All databases, by name.
    pub fn databases(&self) -> Vec<Arc<Database>> {
        self.catalog().databases()
    }

    /// A database by name.
    pub fn database(&self, name: &str) -> Result<Arc<Database>> {
        self.catalog().database(name).ok_or(Error::NotFound(Resource::Database))
    }

    /// A database by number.
    pub fn database_by_id(&self, id: u32) -> Result<Arc<Database>> {
        self.catalog().database_by_id(id).ok_or(Error::NotFound(Resource::Database))
    }

    /// Makes a database.
    pub async fn create_database(&self, name: &str, now: Timestamp) -> Result<Arc<Database>> {
        self.check_writable()?;
        self.catalog().create_database(name, now).await
    }

    /// Drops a database and all its containers.
    pub async fn delete_database(&self, name: &str, if_match: Option<IfMatch>) -> Result<()> {
        self.catalog().delete_database(name, if_match, &[]).await
    }

    /// Drops a database and notes it.
    pub async fn delete_database_noting(&self, name: &str, notes: &[Vec<u8>]) -> Result<()> {
        self.catalog().delete_database(name, None, notes).await
    }

    /// The containers of a database, by name.
    pub fn containers(&self, database: &Database) -> Vec<Arc<Container>> {
        self.catalog().containers(database.id)
    }

    /// A container by name, as it is now.
    pub fn container(&self, database: &Database, name: &str) -> Result<Arc<Container>> {
        self.catalog().container(database.id, name).ok_or(Error::NotFound(Resource::Container))
    }

    /// A container by its name and its database's, as it is now: what most requests begin with.
    pub fn place(&self, database: &str, container: &str) -> Result<Arc<Place>> {
        self.catalog().place(database, container).ok_or(Error::NotFound(Resource::Container))
    }

    /// A container by number, as it is now.
    pub fn container_by_id(&self, id: u32) -> Result<Arc<Container>> {
        self.catalog().container_by_id(id).ok_or(Error::NotFound(Resource::Container))
    }

    /// Makes a container with a number of slots, each of them a partition key range.
    pub async fn create_container(
        &self,
        database: &Database,
        definition: ContainerDefinition,
        slots: u32,
        now: Timestamp,
    ) -> Result<Arc<Container>> {
        self.check_writable()?;
        self.catalog().create_container(database, definition, slots, now).await
    }

    /// Changes a container's definition: one small write, effective at once for documents old and new.
    pub async fn replace_container(
        &self,
        container: &Container,
        definition: ContainerDefinition,
        if_match: Option<IfMatch>,
        now: Timestamp,
    ) -> Result<Arc<Container>> {
        let purged = self.purged_past(container, now).await?;
        let timeline = self.inner.timeline.clone();
        self.catalog()
            .change_container(container, if_match, move |row| {
                let mut definition = definition.clone();
                // A front-end that knows nothing of collections leaves them as they are.
                definition.collection = definition.collection.or_else(|| row.definition.collection.clone());
                definition.index_rules = row.definition.index_rules.clone();
                row.definition.validate_replacement(&definition)?;
                purged.iter().for_each(|cuts| row.ttl.forget_past(cuts));
                if !row.definition.indexing.same_entries(&definition.indexing) {
                    row.index = row.index.next(definition.indexing.mode);
                }
                if row.ttl.default != definition.default_ttl {
                    // What anybody has been told is gone stays gone, also if their time is later than this
                    // request's.
                    let now = now.max(timeline.told());
                    row.change_default(definition.default_ttl, now);
                }
                // Switched on again before it was removed, the old log goes on.
                row.log_left = definition.log_minutes.is_none()
                    && (row.log_left || row.definition.log_minutes.is_some());
                row.modified = now.seconds();
                row.revision += 1;
                row.definition = definition;
                Ok(())
            })
            .await
    }

    /// Gives a container another name, perhaps in another database; with `replace`, in place of the one that
    /// has it. Notes it.
    pub async fn rename_container(
        &self,
        container: &Container,
        database: &Database,
        name: &str,
        replace: bool,
        notes: &[Vec<u8>],
    ) -> Result<Arc<Container>> {
        self.check_writable()?;
        self.catalog().rename_container(container, database, name, replace, notes).await
    }

    /// Drops a container. Its documents are gone at once; their space comes back in the background.
    pub async fn delete_container(&self, container: &Container, if_match: Option<IfMatch>) -> Result<()> {
        self.catalog().delete_container(container, if_match, &[]).await
    }

    /// Drops a container and notes it.
    pub async fn delete_container_noting(&self, container: &Container, notes: &[Vec<u8>]) -> Result<()> {
        self.catalog().delete_container(container, None, notes).await
    }

    /// Deletes a container, unless somebody has written to it; whether it is gone.
    pub async fn delete_unwritten_container(&self, container: &Container) -> Result<bool> {
        self.catalog().delete_unwritten(container).await
    }

    /// Reads a document. One that has expired is not there.
    pub async fn read(
        &self,
        container: &Container,
        key: &PartitionKey,
        id: &DocumentId,
        now: Timestamp,
    ) -> Result<Option<Record>> {
        let (record, _) = self.read_with_lsn(container, &container.locate(key)?, id, now).await?;
        Ok(record)
    }

    /// The same in a partition that was looked up, and with it how far the slot had got when it was read:
    /// what [`Engine::lsn`] would have said.
    pub async fn read_with_lsn(
        &self,
        container: &Container,
        partition: &Partition,
        id: &DocumentId,
        now: Timestamp,
    ) -> Result<(Option<Record>, u64)> {
        let shard = partition.shard;
        let keys = [shard.record_of(&partition.hash, id), shard.single(Family::Counter)];
        let [row, counter] = self.store().get_both(&keys).await?;
        match self.superseding(container, shard).await? {
            Some(current) => {
                let partition = current.partition_of(partition.hash.clone());
                Box::pin(self.read_with_lsn(&current, &partition, id, now)).await
            }
            None => Ok((live(container, row, now)?, decode_counter(counter)?.seq)),
        }
    }

    /// The container as it is now, if somebody has changed it since: whoever read a slot by the old rules has
    /// to do it again.
    async fn superseding(&self, container: &Container, shard: Shard) -> Result<Option<Arc<Container>>> {
        match self.store().floor(shard.place()) > container.version {
            // Boxed, as what is rare: every read would make room for its state.
            true => Box::pin(self.renewed(container)).await.map(Some),
            false => Ok(None),
        }
    }

    /// When a document will expire under the container's present rules, if ever.
    pub fn expires_at(&self, container: &Container, record: &Record) -> Option<Timestamp> {
        container.ttl().expires_at(&record.life)
    }

    /// The version of a document as clients see it.
    pub fn etag(&self, container: &Container, slot: u16, record: &Record) -> Etag {
        Etag::new(container.id, slot, record.lsn)
    }

    /// The last sequence number of a slot: what a session token says.
    pub async fn lsn(&self, container: &Container, slot: u16) -> Result<u64> {
        Ok(self.counter(container.shard(u32::from(slot))).await?.seq)
    }

    /// What the store has for a document, expired or not. Whoever shows it asks the cuts first.
    pub(crate) async fn stored(&self, shard: Shard, document: &DocumentKey) -> Result<Option<Record>> {
        self.store().get(&shard.record(document)).await?.map(Record::decode).transpose()
    }

    pub(crate) async fn counter(&self, shard: Shard) -> Result<Counter> {
        self.counter_of(shard, Family::Counter).await
    }

    pub(crate) async fn counter_of(&self, shard: Shard, family: Family) -> Result<Counter> {
        decode_counter(self.store().get(&shard.single(family)).await?)
    }

    /// The container as it is in memory.
    pub(crate) fn reload(&self, container: &Container) -> Result<Arc<Container>> {
        self.catalog().current(container)
    }

    /// The container as it is stored, after somebody changed it, perhaps on another node.
    ///
    /// A floor above the stored version is a change that was announced and has not come yet: it is waited
    /// for. If it does not come, its node is gone, and a change of nothing ends it: either that comes first,
    /// and the other is made again, or it finds the other done.
    pub(crate) async fn renewed(&self, container: &Container) -> Result<Arc<Container>> {
        // A row is seen in the store a little before its change is known here: while its group is synced.
        self.catalog().settle().await;
        for _ in 0..ANNOUNCED_LOOKS {
            self.catalog().refresh().await?;
            let current = self.reload(container)?;
            if !self.is_behind(&current) {
                return Ok(current);
            }
            pause(ANNOUNCED_PAUSE).await;
        }
        let (engine, id) = (self.clone(), container.id);
        let ended = self.catalog().change_container(container, None, move |_| {
            // Many wait for the same change, here and on other nodes. One version more for each of them would
            // send all the others back to the start.
            if engine.is_behind(&*engine.container_by_id(id)?) { Ok(()) } else { Err(Error::Contention) }
        });
        match ended.await {
            // Somebody has ended it. If it was for the next change, whoever asked finds that out.
            Err(Error::Contention) => self.reload(container),
            ended => ended,
        }
    }

    /// Whether another node has changed the container since this version of it.
    pub(crate) fn is_behind(&self, container: &Container) -> bool {
        let is_behind = |shard: Shard| self.store().floor(shard.place()) > container.version;
        self.store().is_shared() && container.shards().any(is_behind)
    }

    /// Refuses an answer that was found by rules which another node has changed meanwhile.
    pub(crate) async fn check_current(&self, container: &Container) -> Result<()> {
        if self.is_behind(container) {
            self.renewed(container).await?;
            return Err(Error::Contention);
        }
        Ok(())
    }

    /// Whether other nodes may work on the same data.
    pub fn is_shared(&self) -> bool {
        self.store().is_shared()
    }

    /// Whether the background work that is not of one slot is this node's.
    pub fn tends_catalog(&self) -> bool {
        self.store().tends(CATALOG.place())
    }

    /// Takes over what other nodes have changed in the catalog.
    pub async fn refresh(&self) -> Result<()> {
        self.catalog().refresh().await
    }

    /// The number of the last change of the catalog that is known here. A request that was refused is worth
    /// another try if it has changed since, whoever has taken the change over.
    pub fn catalog_version(&self) -> u64 {
        self.catalog().seen()
    }

    pub(crate) fn check_writable(&self) -> Result<()> {
        if self.is_read_only() { Err(Error::ReadOnly) } else { Ok(()) }
    }
}

/// The document in a row, if there is one that has not expired.
fn live(container: &Container, row: Option<Bytes>, now: Timestamp) -> Result<Option<Record>> {
    let record = row.map(Record::decode).transpose()?;
    Ok(record.filter(|record| container.ttl().cuts(now).is_live(&record.life)))
}

/// The counter in a row; one that is not there has counted nothing.
fn decode_counter(row: Option<Bytes>) -> Result<Counter> {
    row.map_or(Ok(Counter::default()), |row| {
        Counter::decode(&row).ok_or(Error::Corrupt("a counter cannot be read"))
    })
}
