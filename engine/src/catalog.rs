//! Databases and containers: names, definitions, policies.
//!
//! The catalog is small and kept in memory whole; the store has one row per database and container. Every
//! change is one batch that raises the catalog's counter, and a new database or container takes its number
//! from it, so numbers are never used twice. A row's value is `version:u64 number:u64 JSON`.
//!
//! Where several nodes share a store, each has a catalog of its own in memory. A change is decided by what is
//! stored: it is guarded by the counter that this node has seen, and made again if another node was quicker.
//! A container's rules reach the other nodes by the floor of its slots, which is raised before the rules
//! change ([`Peers::raise_floor`](mayfly_storage::peers::Peers::raise_floor)).
//!
//! A change is a [`Change`]: a batch, and what memory takes over from it. [`Catalog::change`] is the only way
//! to make one, and does both in a task of its own, so that memory is never behind what this node has stored,
//! whoever stops waiting for it.
//!
//! Dropping a container removes its row and leaves a row that it was there; its data goes later, in the
//! background ([`crate::reap`]). Nobody can see it meanwhile, because every key begins with the container's
//! number. A log stays for as long as its events would have, if somebody noted its end ([`crate::notes`]).

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use mayfly_storage::{
    Error as StoreError,
    store::{
        Advance, Batch, Counter, Direction, Expect, Guard, Key, MarkAt, PageLimit, Put, SeqMark, Snapshot,
        Store,
    },
};
use parking_lot::{RwLock, RwLockReadGuard};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tokio::sync::Mutex;

use crate::{
    clock::Timestamp,
    collection::Predicates,
    completion::Completions,
    container::{Container, ContainerRow, IndexState},
    definition::ContainerDefinition,
    error::{Error, Resource, Result},
    etag::{Etag, IfMatch},
    kept::Shelf,
    keys::{self, CATALOG, Family, SLOTS_MAX, Shard, be_u64},
    names::{Named, Names, Place},
    timeline::Timeline,
    ttl::TtlPolicy,
};

/// A database.
#[derive(Clone, Debug)]
pub struct Database {
    /// Its number: never reused.
    pub id: u32,
    /// The version of its row.
    pub version: u64,
    /// Its name.
    pub name: String,
    /// The second it was made.
    pub modified: u64,
}

impl Database {
    /// Changes with every change.
    pub fn etag(&self) -> Etag {
        Etag::new(self.id, u16::MAX, self.version)
    }
}

#[derive(Serialize, Deserialize)]
struct DatabaseRow {
    modified: u64,
}

/// What is left of a container until its data is gone.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct DroppedRow {
    pub slots: u32,
    /// The second up to which its log is kept, if it had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_until: Option<u64>,
    /// Whether there is nothing left but the log.
    #[serde(default, skip_serializing_if = "is_false")]
    pub only_log: bool,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// Which container a change is about.
#[derive(Clone)]
struct Which {
    database: u32,
    name: Arc<str>,
    id: u32,
}

impl Which {
    fn of(container: &Container) -> Self {
        Self { database: container.database, name: container.name().into(), id: container.id }
    }
}

/// A change that is decided: what is stored, and what memory takes over once it is.
pub(crate) struct Change<T> {
    pub guards: Vec<Guard>,
    pub puts: Vec<Put>,
    pub deletes: Vec<Key>,
    /// What a guard that does not hold means.
    pub conflict: Error,
    /// Takes the change over, by its number. It cannot wait, and must not fail by what could be known before.
    pub publish: Publish<T>,
}

type Publish<T> = Box<dyn FnOnce(&mut Memory<'_>, u64) -> Result<T> + Send>;

impl<T: 'static> Change<T> {
    /// The same with another answer.
    fn map<U>(self, map: impl FnOnce(T) -> U + Send + 'static) -> Change<U> {
        let Self { guards, puts, deletes, conflict, publish } = self;
        let publish: Publish<U> = Box::new(move |memory, number| publish(memory, number).map(map));
        Change { guards, puts, deletes, conflict, publish }
    }
}

/// The catalog in memory, to be changed.
pub(crate) struct Memory<'a> {
    pub named: &'a mut Named,
    pub shelf: &'a mut Shelf,
}

pub(crate) struct Catalog {
    store: Arc<dyn Store>,
    timeline: Arc<Timeline>,
    names: Names,
    shelf: RwLock<Shelf>,
    /// The last change that is in memory.
    seen: AtomicU64,
    /// One change at a time: the guards would sort it out, but nobody needs the retries.
    changes: Mutex<()>,
    predicates: Arc<dyn Predicates>,
    completions: Arc<Completions>,
}

/// All rows, read at one moment.
struct Loaded {
    named: Named,
    shelf: Shelf,
    seen: u64,
}

/// Changes that lose to another node's before it is called contention.
const ATTEMPTS_MAX: usize = 20;

const ROW_HEADER: usize = 16;
const NAME_BYTES_MAX: usize = 255;

impl Catalog {
    pub async fn open(
        store: Arc<dyn Store>,
        timeline: Arc<Timeline>,
        predicates: Arc<dyn Predicates>,
        completions: Arc<Completions>,
    ) -> Result<Self> {
        let Loaded { named, shelf, seen } = load(&*store, &*predicates).await?;
        let (names, shelf, seen) = (Names::new(named), RwLock::new(shelf), AtomicU64::new(seen));
        Ok(Self { store, timeline, names, shelf, seen, changes: Mutex::new(()), predicates, completions })
    }

    /// Waits for a change of this node that may be stored already and not yet in memory.
    pub async fn settle(&self) {
        drop(self.changes.lock().await);
    }

    /// The number of the last change that is in memory.
    pub fn seen(&self) -> u64 {
        self.seen.load(Ordering::Acquire)
    }

    /// Takes over what other nodes have changed.
    pub async fn refresh(&self) -> Result<()> {
        if !self.store.is_shared() || last_change(&*self.store).await? == self.seen() {
            return Ok(());
        }
        let _one = self.changes.lock().await;
        self.catch_up().await.map(drop)
    }

    /// The same, for who is changing something; whether there was anything.
    async fn catch_up(&self) -> Result<bool> {
        if !self.store.is_shared() || last_change(&*self.store).await? == self.seen() {
            return Ok(false);
        }
        let loaded = load(&*self.store, &*self.predicates).await?;
        self.names.change(|named| (*named, *self.shelf.write()) = (loaded.named, loaded.shelf));
        // Last: who sees the number sees the names.
        self.seen.store(loaded.seen, Ordering::Release);
        Ok(true)
    }

    /// What is in memory and not stored, or the other way round. There is nothing, once all changes have come
    /// to their end.
    pub async fn differences(&self) -> Result<Vec<String>> {
        let _one = self.changes.lock().await;
        self.catch_up().await?;
        let stored = load(&*self.store, &*self.predicates).await?;
        let memory = (described(&self.names.read()), self.shelf().described(), self.seen());
        let mut differences = Vec::new();
        let mut compare = |memory: BTreeSet<String>, stored: BTreeSet<String>| {
            let only = |here: &BTreeSet<String>, there: &BTreeSet<String>, place: &str| {
                here.difference(there).map(|it| format!("only {place}: {it}")).collect::<Vec<_>>()
            };
            differences.extend(only(&memory, &stored, "in memory"));
            differences.extend(only(&stored, &memory, "in the store"));
        };
        compare(memory.0, described(&stored.named));
        compare(memory.1, stored.shelf.described());
        if memory.2 != stored.seen {
            differences
                .push(format!("the catalog in memory is of change {}, stored is {}", memory.2, stored.seen));
        }
        Ok(differences)
    }

    /// Before the rules of containers change: no node writes by the old ones any more, and whoever reads by
    /// them finds out.
    async fn announce(&self, containers: &[Arc<Container>]) -> Result<()> {
        if self.store.is_shared() {
            for container in containers {
                let slots: Vec<_> = container.shards().map(Shard::place).collect();
                self.store.raise_floor(&slots, container.version + 1).await?;
            }
        }
        Ok(())
    }

    pub fn databases(&self) -> Vec<Arc<Database>> {
        self.names.read().databases.values().cloned().collect()
    }

    pub fn database(&self, name: &str) -> Option<Arc<Database>> {
        self.names.read().databases.get(name).cloned()
    }

    pub fn database_by_id(&self, id: u32) -> Option<Arc<Database>> {
        self.names.read().databases.values().find(|database| database.id == id).cloned()
    }

    pub fn containers(&self, database: u32) -> Vec<Arc<Container>> {
        let names = self.names.read();
        names.containers.get(&database).into_iter().flat_map(BTreeMap::values).cloned().collect()
    }

    pub fn all_containers(&self) -> Vec<Arc<Container>> {
        self.names.read().all_containers().cloned().collect()
    }

    pub fn container(&self, database: u32, name: &str) -> Option<Arc<Container>> {
        self.names.read().containers.get(&database)?.get(name).cloned()
    }

    pub fn place(&self, database: &str, container: &str) -> Option<Arc<Place>> {
        self.names.place(database, container)
    }

    pub fn container_by_id(&self, id: u32) -> Option<Arc<Container>> {
        self.names.read().all_containers().find(|container| container.id == id).cloned()
    }

    pub async fn create_database(self: &Arc<Self>, name: &str, now: Timestamp) -> Result<Arc<Database>> {
        check_name(name)?;
        let name = name.to_owned();
        self.change(move |catalog| {
            let change = catalog.add_database(name.clone(), now);
            async { change }
        })
        .await
    }

    fn add_database(&self, name: String, now: Timestamp) -> Result<Change<Arc<Database>>> {
        if self.database(&name).is_some() {
            return Err(Error::Exists(Resource::Database));
        }
        let modified = now.seconds();
        let key = keys::database(&name);
        Ok(Change {
            guards: vec![Guard { key: key.clone(), expect: Expect::Absent }],
            puts: vec![new_row(key, &DatabaseRow { modified })?],
            deletes: Vec::new(),
            conflict: Error::Exists(Resource::Database),
            publish: Box::new(move |memory, version| {
                let database = Arc::new(Database { id: number(version)?, version, name, modified });
                memory.named.databases.insert(database.name.clone(), database.clone());
                Ok(database)
            }),
        })
    }

    pub async fn delete_database(
        self: &Arc<Self>,
        name: &str,
        if_match: Option<IfMatch>,
        notes: &[Vec<u8>],
    ) -> Result<()> {
        let (name, notes): (Arc<str>, Arc<[Vec<u8>]>) = (name.into(), notes.into());
        self.change(move |catalog| {
            let (name, notes) = (name.clone(), notes.clone());
            async move { catalog.remove_database(&name, if_match, &notes).await }
        })
        .await
    }

    async fn remove_database(
        &self,
        name: &str,
        if_match: Option<IfMatch>,
        notes: &[Vec<u8>],
    ) -> Result<Change<()>> {
        let database = self.database(name).ok_or(Error::NotFound(Resource::Database))?;
        check_etag(if_match, database.etag())?;
        let containers = self.containers(database.id);
        let key = keys::database(name);
        let guards = vec![Guard { key: key.clone(), expect: Expect::Version(database.version) }];
        let (mut puts, mut deletes) = self.noting(notes).await?;
        deletes.push(key);
        deletes.extend(self.shelf().keys_below(database.id));
        for container in &containers {
            deletes.extend(self.shelf().keys_below(container.id));
            deletes.push(keys::container(database.id, container.name()));
            puts.push(self.dropped_row(container, notes)?);
        }
        self.announce(&containers).await?;
        let publish: Publish<()> = Box::new(move |memory, _| {
            memory.named.databases.remove(&database.name);
            memory.named.containers.remove(&database.id);
            memory.shelf.drop_below(database.id);
            for container in containers {
                memory.shelf.drop_below(container.id);
            }
            Ok(())
        });
        Ok(Change { guards, puts, deletes, conflict: Error::Contention, publish })
    }

    pub async fn create_container(
        self: &Arc<Self>,
        database: &Database,
        definition: ContainerDefinition,
        slots: u32,
        now: Timestamp,
    ) -> Result<Arc<Container>> {
        check_name(&definition.name)?;
        definition.validate()?;
        definition.partition_key.validate_new()?;
        if !(1..=SLOTS_MAX).contains(&slots) {
            return Err(Error::bad_request(format!(
                "A container has from 1 to {SLOTS_MAX} slots; not {slots}."
            )));
        }
        let database = database.clone();
        self.change(move |catalog| {
            let change = catalog.add_container(&database, definition.clone(), slots, now);
            async { change }
        })
        .await
    }

    fn add_container(
        &self,
        database: &Database,
        mut definition: ContainerDefinition,
        slots: u32,
        now: Timestamp,
    ) -> Result<Change<Arc<Container>>> {
        if self.container(database.id, &definition.name).is_some() {
            return Err(Error::Exists(Resource::Container));
        }
        if definition.collection.is_some() && definition.log_minutes.is_none() {
            definition.log_minutes = self.watched(&database.name, Some(&definition.name), now);
        }
        let key = keys::container(database.id, &definition.name);
        let row = ContainerRow {
            ttl: TtlPolicy::new(definition.default_ttl),
            index: IndexState::first(definition.indexing.mode),
            slots,
            ranges: Vec::new(),
            modified: now.seconds(),
            next_index: 1,
            retired_indexes: Vec::new(),
            revision: 1,
            ttl_history: Vec::new(),
            log_left: false,
            definition,
        };
        let guards = vec![
            Guard { key: key.clone(), expect: Expect::Absent },
            // The database may be going at this very moment.
            Guard { key: keys::database(&database.name), expect: Expect::Version(database.version) },
        ];
        Ok(Change {
            guards,
            puts: vec![new_row(key, &row)?],
            deletes: Vec::new(),
            conflict: Error::Exists(Resource::Container),
            publish: self.publishing(None, database.id, row)?,
        })
    }

    /// Takes over a container's row. What cannot be compiled must not be stored, so that is tried first.
    fn publishing(
        &self,
        id: Option<u32>,
        database: u32,
        row: ContainerRow,
    ) -> Result<Publish<Arc<Container>>> {
        Container::new(id.unwrap_or(0), database, 0, row.clone(), &*self.predicates)?;
        let predicates = self.predicates.clone();
        Ok(Box::new(move |memory, version| {
            let id = id.map_or_else(|| number(version), Ok)?;
            let container = Arc::new(Container::new(id, database, version, row, &*predicates)?);
            memory.named.add(container.clone());
            Ok(container)
        }))
    }

    pub async fn delete_container(
        self: &Arc<Self>,
        container: &Container,
        if_match: Option<IfMatch>,
        notes: &[Vec<u8>],
    ) -> Result<()> {
        let (which, notes): (_, Arc<[Vec<u8>]>) = (Which::of(container), notes.into());
        self.change(move |catalog| {
            let (which, notes) = (which.clone(), notes.clone());
            async move { catalog.remove_container(&which, if_match, &notes).await }
        })
        .await
    }

    async fn remove_container(
        &self,
        which: &Which,
        if_match: Option<IfMatch>,
        notes: &[Vec<u8>],
    ) -> Result<Change<()>> {
        let current = self.which(which)?;
        check_etag(if_match, current.etag())?;
        let (mut puts, mut deletes) = self.noting(notes).await?;
        deletes.push(keys::container(current.database, current.name()));
        deletes.extend(self.shelf().keys_below(current.id));
        puts.push(self.dropped_row(&current, notes)?);
        self.announce(std::slice::from_ref(&current)).await?;
        let guards = vec![current.guard()];
        let publish: Publish<()> = Box::new(move |memory, _| {
            memory.named.remove(&current);
            memory.shelf.drop_below(current.id);
            Ok(())
        });
        Ok(Change { guards, puts, deletes, conflict: Error::Contention, publish })
    }

    /// Deletes a container that nobody has ever written to; whether it was one.
    pub async fn delete_unwritten(self: &Arc<Self>, container: &Container) -> Result<bool> {
        let which = Which::of(container);
        self.change(move |catalog| {
            let which = which.clone();
            async move { catalog.remove_unwritten(&which).await }
        })
        .await
    }

    async fn remove_unwritten(&self, which: &Which) -> Result<Change<bool>> {
        let current = self.which(which)?;
        // From here on no node writes before it has seen what became of the container.
        self.announce(std::slice::from_ref(&current)).await?;
        for shard in current.shards() {
            if self.store.get(&shard.single(Family::Counter)).await?.is_some() {
                return Ok(self.alter_container(which, None, |_| Ok(())).await?.map(|_| false));
            }
        }
        Ok(self.remove_container(which, None, &[]).await?.map(|()| true))
    }

    /// Changes a container's row: one small write, whatever the container holds. `alter` may run more than
    /// once.
    pub async fn change_container(
        self: &Arc<Self>,
        container: &Container,
        if_match: Option<IfMatch>,
        alter: impl Fn(&mut ContainerRow) -> Result<()> + Send + Sync + 'static,
    ) -> Result<Arc<Container>> {
        let changed = self.change_container_with(container, if_match, alter);
        changed.await.map(|(container, ())| container)
    }

    /// The same, and gives what `alter` has given last.
    pub async fn change_container_with<T: Send + 'static>(
        self: &Arc<Self>,
        container: &Container,
        if_match: Option<IfMatch>,
        alter: impl Fn(&mut ContainerRow) -> Result<T> + Send + Sync + 'static,
    ) -> Result<(Arc<Container>, T)> {
        let (which, alter) = (Which::of(container), Arc::new(alter));
        self.change(move |catalog| {
            let (which, alter) = (which.clone(), alter.clone());
            async move { catalog.alter_container(&which, if_match, &*alter).await }
        })
        .await
    }

    async fn alter_container<T: Send + 'static>(
        &self,
        which: &Which,
        if_match: Option<IfMatch>,
        alter: impl Fn(&mut ContainerRow) -> Result<T>,
    ) -> Result<Change<(Arc<Container>, T)>> {
        let current = self.which(which)?;
        check_etag(if_match, current.etag())?;
        let mut row = current.row.clone();
        let mut answer = alter(&mut row)?;
        // Before anybody is told of it.
        let mut publish = self.publishing(Some(current.id), current.database, row.clone())?;
        if self.store.is_shared() {
            self.announce(std::slice::from_ref(&current)).await?;
            // Another node may have answered by the old rules until now, in a second that had not begun when
            // this request took its time. Nobody does from here on, so the time that is asked now is not
            // behind any that was told, and what was shown as gone goes into the watermarks of the new rules.
            self.timeline.ask().await?;
            row = current.row.clone();
            answer = alter(&mut row)?;
            publish = self.publishing(Some(current.id), current.database, row.clone())?;
        }
        let change = Change {
            guards: vec![current.guard()],
            puts: vec![changed_row(keys::container(current.database, current.name()), current.id, &row)?],
            deletes: Vec::new(),
            conflict: Error::Contention,
            publish,
        };
        Ok(change.map(|container| (container, answer)))
    }

    /// Gives a container another name, perhaps in another database. One that has the name goes, if `replace`
    /// says so.
    pub async fn rename_container(
        self: &Arc<Self>,
        container: &Container,
        database: &Database,
        name: &str,
        replace: bool,
        notes: &[Vec<u8>],
    ) -> Result<Arc<Container>> {
        check_name(name)?;
        let (which, database) = (Which::of(container), database.clone());
        let (name, notes): (Arc<str>, Arc<[Vec<u8>]>) = (name.into(), notes.into());
        self.change(move |catalog| {
            let (which, database, name, notes) =
                (which.clone(), database.clone(), name.clone(), notes.clone());
            async move { catalog.move_container(&which, &database, &name, replace, &notes).await }
        })
        .await
    }

    async fn move_container(
        &self,
        which: &Which,
        database: &Database,
        name: &str,
        replace: bool,
        notes: &[Vec<u8>],
    ) -> Result<Change<Arc<Container>>> {
        let current = self.which(which)?;
        let target = self.container(database.id, name);
        if target.is_some() && !replace {
            return Err(Error::Exists(Resource::Container));
        }
        let mut row = current.row.clone();
        row.definition.name = name.to_owned();
        if row.definition.collection.is_some() && row.definition.log_minutes.is_none() {
            row.definition.log_minutes = self.watched(&database.name, Some(name), self.told());
            row.log_left &= row.definition.log_minutes.is_none();
        }
        let key = keys::container(database.id, name);
        let database_guard =
            Guard { key: keys::database(&database.name), expect: Expect::Version(database.version) };
        let mut guards = vec![current.guard(), database_guard];
        let (mut puts, mut deletes) = self.noting(notes).await?;
        puts.push(changed_row(key.clone(), current.id, &row)?);
        deletes.push(keys::container(current.database, current.name()));
        match &target {
            Some(target) => {
                guards.push(target.guard());
                puts.push(self.dropped_row(target, notes)?);
                deletes.extend(self.shelf().keys_below(target.id));
            }
            None => guards.push(Guard { key, expect: Expect::Absent }),
        }
        let changed: Vec<_> = [Some(&current), target.as_ref()].into_iter().flatten().cloned().collect();
        self.announce(&changed).await?;
        let publish_renamed = self.publishing(Some(current.id), database.id, row)?;
        let publish: Publish<Arc<Container>> = Box::new(move |memory, version| {
            if let Some(target) = target {
                memory.shelf.drop_below(target.id);
            }
            memory.named.remove(&current);
            publish_renamed(memory, version)
        });
        Ok(Change { guards, puts, deletes, conflict: Error::Contention, publish })
    }

    /// What is left of a container. Its log stays if somebody has noted its end, for those who follow it.
    fn dropped_row(&self, container: &Container, notes: &[Vec<u8>]) -> Result<Put> {
        let minutes = container.definition().log_minutes.filter(|_| !notes.is_empty());
        let log_until = minutes.map(|minutes| self.told().seconds() + u64::from(minutes) * 60);
        DroppedRow { slots: container.slots(), log_until, only_log: false }.put(container.id)
    }

    /// The latest time anybody has been told.
    pub fn told(&self) -> Timestamp {
        self.timeline.told()
    }

    /// What is stored, at one moment.
    pub async fn snapshot(&self) -> Result<Arc<dyn Snapshot>> {
        Ok(self.store.snapshot().await?)
    }

    /// Containers that were dropped and still have data.
    pub async fn dropped(&self) -> Result<Vec<(u32, DroppedRow)>> {
        let mut dropped = Vec::new();
        for (key, value) in rows(&*self.store.snapshot().await?, Family::Dropped).await? {
            let id = key[..].try_into().map(u32::from_be_bytes);
            let row = serde_json::from_slice(&value).map_err(|_| Error::Corrupt("a dropped container"))?;
            dropped.push((id.map_err(|_| Error::Corrupt("a dropped container"))?, row));
        }
        Ok(dropped)
    }

    /// The container as it is now, if it is still the same one.
    pub fn current(&self, container: &Container) -> Result<Arc<Container>> {
        self.named(container.database, container.name(), container.id)
    }

    fn which(&self, which: &Which) -> Result<Arc<Container>> {
        self.named(which.database, &which.name, which.id)
    }

    fn named(&self, database: u32, name: &str, id: u32) -> Result<Arc<Container>> {
        let current = self.container(database, name).filter(|current| current.id == id);
        current.ok_or(Error::NotFound(Resource::Container))
    }

    /// Kept resources, to look at.
    pub fn shelf(&self) -> RwLockReadGuard<'_, Shelf> {
        self.shelf.read()
    }

    /// Makes a change: decides it by what is stored, stores it and takes it over into memory; again from the
    /// start as long as other nodes are quicker. One at a time, and to its end, whether or not anybody waits
    /// for it.
    pub async fn change<T, F>(
        self: &Arc<Self>,
        mut decide: impl FnMut(Arc<Self>) -> F + Send + 'static,
    ) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<Change<T>>> + Send + 'static,
    {
        let catalog = self.clone();
        self.completions
            .run(async move {
                let _one = catalog.changes.lock().await;
                catalog.catch_up().await?;
                let mut lost = 0;
                loop {
                    let done = match decide(catalog.clone()).await {
                        Ok(change) => catalog.commit(change).await,
                        Err(error) => Err(error),
                    };
                    match done {
                        Err(Error::Contention) if lost < ATTEMPTS_MAX && catalog.catch_up().await? => {
                            lost += 1
                        }
                        done => return done,
                    }
                }
            })
            .await
    }

    /// Stores a change and takes it over. For [`Catalog::change`] alone, which nobody can leave between the
    /// two.
    async fn commit<T>(&self, change: Change<T>) -> Result<T> {
        let Change { mut guards, puts, deletes, conflict, publish } = change;
        let counter = CATALOG.single(Family::Counter);
        if self.store.is_shared() {
            // First, so that it is the one to be named: whatever else does not hold, the catalog is not what
            // it was.
            let seen = self.seen();
            let expect = if seen == 0 { Expect::Absent } else { Expect::Version(seen) };
            guards.insert(0, Guard { key: counter.clone(), expect });
        }
        let advances = vec![Advance { counter, stamp: 0, tally: [0, 0] }];
        let batch = Batch { guards, puts, deletes, advances, ..Batch::default() };
        match self.store.commit(batch).await {
            Ok(committed) => {
                let seq = committed.counters.first().map_or(0, |counter: &Counter| counter.seq);
                let mut published = Err(Error::internal("a change was not taken over"));
                self.names.change(|named| {
                    published = publish(&mut Memory { named, shelf: &mut self.shelf.write() }, seq);
                });
                // Last: who sees the number sees the names.
                self.seen.store(seq, Ordering::Release);
                published
            }
            Err(StoreError::Conflict { key }) if Family::of(&key.bytes) == Some(Family::Counter) => {
                Err(Error::Contention)
            }
            Err(StoreError::Conflict { key }) if Family::of(&key.bytes) == Some(Family::Database) => {
                Err(Error::NotFound(Resource::Database))
            }
            Err(StoreError::Conflict { .. }) => Err(conflict),
            Err(error) => Err(error.into()),
        }
    }
}

/// Each database and container in words, with all that is stored of it.
fn described(named: &Named) -> BTreeSet<String> {
    let databases = named.databases.values().map(|database| format!("{database:?}"));
    let containers = named.all_containers().map(|container| {
        let Container { id, database, version, row, .. } = &**container;
        format!("container {id} of {database}, version {version}: {row:?}")
    });
    databases.chain(containers).collect()
}

/// The number of the last change that is stored.
async fn last_change(store: &dyn Store) -> Result<u64> {
    let row = store.get(&CATALOG.single(Family::Counter)).await?;
    Ok(row.as_deref().and_then(Counter::decode).map_or(0, |counter| counter.seq))
}

async fn load(store: &dyn Store, predicates: &dyn Predicates) -> Result<Loaded> {
    let snapshot = &*store.snapshot().await?;
    let mut named = Named::default();
    let mut database_names = BTreeMap::new();
    for (key, value) in rows(snapshot, Family::Database).await? {
        let (version, id, row) = decode_row::<DatabaseRow>(&value)?;
        let name = String::from_utf8(key.to_vec()).map_err(|_| Error::Corrupt("a database's name"))?;
        database_names.insert(id, name.clone());
        let database = Database { id, version, name: name.clone(), modified: row.modified };
        named.databases.insert(name, Arc::new(database));
    }
    for (key, value) in rows(snapshot, Family::Container).await? {
        let (version, id, row) = decode_row::<ContainerRow>(&value)?;
        let database = key.get(..4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_be_bytes);
        let database = database.filter(|database| database_names.contains_key(database));
        let database = database.ok_or(Error::Corrupt("a container belongs to no database"))?;
        named.add(Arc::new(Container::new(id, database, version, row, predicates)?));
    }
    let mut shelf = Shelf::default();
    for (key, value) in rows(snapshot, Family::Kept).await? {
        shelf.load(&key, &value)?;
    }
    let row = snapshot.get(&CATALOG.single(Family::Counter)).await?;
    let seen = row.as_deref().and_then(Counter::decode).map_or(0, |counter| counter.seq);
    Ok(Loaded { named, shelf, seen })
}

/// All rows of a catalog family: the key's own fields, and the value.
async fn rows(snapshot: &dyn Snapshot, family: Family) -> Result<Vec<(Bytes, Bytes)>> {
    let mut range = CATALOG.range(family, &[]);
    let mut rows = Vec::new();
    loop {
        let limit = PageLimit { rows: 1000, bytes: 1 << 20 };
        let page = snapshot.scan(&range, Direction::Forward, limit).await?;
        for (key, value) in page.rows {
            range.start = [&key[..], &[0]].concat();
            rows.push((key.slice(keys::PREFIX_LEN..), value));
        }
        if !page.more {
            return Ok(rows);
        }
    }
}

fn encode_row(id: u64, row: &impl Serialize) -> Result<Vec<u8>> {
    let mut value = vec![0; 8];
    value.extend_from_slice(&id.to_be_bytes());
    serde_json::to_writer(&mut value, row).map_err(|error| Error::internal(error.to_string()))?;
    Ok(value)
}

pub(crate) fn decode_row<T: DeserializeOwned>(value: &[u8]) -> Result<(u64, u32, T)> {
    const DAMAGED: Error = Error::Corrupt("a catalog row cannot be read");
    let json = value.get(ROW_HEADER..).ok_or(DAMAGED)?;
    let row = serde_json::from_slice(json).map_err(|_| DAMAGED)?;
    Ok((be_u64(value), number(be_u64(&value[8..]))?, row))
}

/// A row whose number is the commit's.
pub(crate) fn new_row(key: Key, row: &impl Serialize) -> Result<Put> {
    let mark = |at| SeqMark { advance: 0, at: MarkAt::Value(at) };
    Ok(Put { key, value: encode_row(0, row)?, marks: vec![mark(0), mark(8)] })
}

/// A row that keeps its number.
pub(crate) fn changed_row(key: Key, id: u32, row: &impl Serialize) -> Result<Put> {
    let mark = SeqMark { advance: 0, at: MarkAt::Value(0) };
    Ok(Put { key, value: encode_row(u64::from(id), row)?, marks: vec![mark] })
}

impl DroppedRow {
    /// The row, as it is put.
    pub fn put(&self, container: u32) -> Result<Put> {
        let value = serde_json::to_vec(self).map_err(|error| Error::internal(error.to_string()))?;
        Ok(Put { key: keys::dropped(container), value, marks: Vec::new() })
    }
}

pub(crate) fn number(seq: u64) -> Result<u32> {
    u32::try_from(seq).map_err(|_| Error::Corrupt("the catalog's counter"))
}

pub(crate) fn check_etag(if_match: Option<IfMatch>, current: Etag) -> Result<()> {
    match if_match {
        Some(condition) if !condition.allows(current) => Err(Error::PreconditionFailed),
        _ => Ok(()),
    }
}

pub(crate) fn check_name(name: &str) -> Result<()> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return Err(Error::bad_request(format!(
            "The input name '{name}' is invalid. Ensure to provide a unique non-empty string less than \
             '{NAME_BYTES_MAX}' characters."
        )));
    }
    if name.contains(['/', '\\', '?', '#', '\0']) || name.ends_with(' ') {
        return Err(Error::bad_request(format!(
            "The input name '{name}' is invalid: it contains one of the characters / \\ ? # or ends with a space. \
             One of the specified inputs is invalid"
        )));
    }
    Ok(())
}
