//! An engine with everything around it under the test's control: the store, the clock, the identifiers.
//!
//! ```text
//!   World ──▶ Engine ──▶ Recorder ──▶ Ground: memory and files, mirrored (or see ground.rs)
//!               └── AdjustableClock, frozen at START: it moves when the test says so
//! ```
//!
//! Documents go in and come out as JSON text; `{"$date": seconds}` stands for a date. Nothing here decides
//! anything about documents: it only saves tests from spelling out the engine's calls.
//!
//! Holds: no test on a world sleeps, reads the machine's clock or leaves files behind.

use std::{ops::Bound, sync::Arc, time::Duration};

use mayfly_engine::{
    Access, AdjustableClock, Container, ContainerDefinition, Database, Direction, DocumentId, Engine, Error,
    Found, HashRange, InvalidTtl, Operation, Outcome, Pace, PageLimit, Position, Purged, Record, Report,
    Result, ids::SeededIds,
};
use mayfly_engine::{Clock, Timestamp};
use mayfly_storage::{
    store::{Stats, Store},
    upkeep::Upkeep as _,
};
use mayfly_value::{
    bson::{Bson, DateTime, Document, RawDocument, RawDocumentBuf},
    json::{JsonLimits, parse_document, write_document},
    keycode::{PathStep, encode_path},
    partition::{KeyDefinition, KeyKind, PartitionKey},
};

pub use crate::ground::Backend;
use crate::{Recorder, ground::Ground};

/// The second at which every world begins.
pub const START: u64 = 1000;

/// The database every world has.
pub const DATABASE: &str = "db";

/// More ticks of background work than any test needs; beyond it, the work does not end.
const TICKS_MAX: usize = 10_000;

/// Pages of anything a test walks to the end.
const WHOLE: PageLimit = PageLimit { rows: 10_000, bytes: usize::MAX };

/// An engine and what it stands on.
pub struct World {
    ground: Ground,
    clock: Arc<AdjustableClock>,
    ids: Arc<SeededIds>,
    open: Option<(Engine, Arc<Recorder<dyn Store>>)>,
}

impl World {
    /// A new world with one empty database.
    pub async fn new(backend: Backend) -> Self {
        let ground = Ground::new(backend).await;
        let world = Self::at(ground, Timestamp::from_seconds(START)).await;
        let world = world.expect("an empty store opens");
        world.must_create_database().await;
        world
    }

    /// A world on a store of the test's own, with whatever is in it.
    pub async fn on(store: Arc<dyn Store>, clock: Timestamp) -> Result<Self> {
        Self::at(Ground::given(store), clock).await
    }

    /// Another engine on the same store, whose clock is ahead by so many seconds.
    pub async fn neighbour(&self, ahead: u64) -> Self {
        let (_, store) = self.open.as_ref().expect("a world is open while anybody can look at it");
        let clock = Timestamp::from_seconds(self.clock_seconds() + ahead);
        Self::on(store.clone(), clock).await.expect("a store that is open opens")
    }

    async fn at(ground: Ground, clock: Timestamp) -> Result<Self> {
        let clock = Arc::new(AdjustableClock::frozen(clock));
        let mut world = Self { ground, clock, ids: Arc::default(), open: None };
        world.open().await?;
        Ok(world)
    }

    async fn must_create_database(&self) {
        let now = self.now().await;
        self.engine().create_database(DATABASE, now).await.expect("an empty store takes a database");
    }

    async fn open(&mut self) -> Result<()> {
        let store = self.ground.open().await?;
        let recorder = Arc::new(Recorder::new(store));
        let builder = Engine::builder(recorder.clone()).clock(self.clock.clone()).ids(self.ids.clone());
        self.open = Some((builder.open().await?, recorder));
        Ok(())
    }

    /// Closes the engine in an orderly way and opens it again.
    pub async fn reopen(&mut self) -> Result<()> {
        self.engine().close().await?;
        self.crash().await
    }

    /// Drops the engine as it is and opens what is left. Nothing that was acknowledged is lost; see
    /// [`crate::CrashImages`] for crashes that lose what may be lost.
    pub async fn crash(&mut self) -> Result<()> {
        self.open = None;
        self.open().await
    }

    /// The engine.
    pub fn engine(&self) -> &Engine {
        &self.open.as_ref().expect("a world is open while anybody can look at it").0
    }

    /// What was written to the store since the last time somebody asked.
    pub fn writes(&self) -> Vec<crate::recorder::Write> {
        self.open.as_ref().map_or_else(Vec::new, |(_, recorder)| recorder.take())
    }

    /// What the store says about itself. The mirror answers for its first store, which is memory.
    pub fn stats(&self) -> Stats {
        self.engine().store_stats()
    }

    /// Whether the store drops dead rows by itself, so that documents are purged by count.
    pub fn drops_dead_rows(&self) -> bool {
        self.open.as_ref().is_some_and(|(_, store)| store.forgets_up_to() > 0)
    }

    /// The time as the engine tells it.
    pub async fn now(&self) -> Timestamp {
        self.engine().now().await.expect("the store takes the time horizon")
    }

    /// The second the clock shows, which may be behind the engine's.
    pub fn clock_seconds(&self) -> u64 {
        self.clock.now().seconds()
    }

    /// Moves the clock forward.
    pub fn advance(&self, seconds: u64) {
        self.advance_ms(seconds * 1000);
    }

    /// Moves the clock forward.
    pub fn advance_ms(&self, ms: u64) {
        self.clock.advance(Duration::from_millis(ms));
    }

    /// Sets the clock, also backwards.
    pub fn set_clock(&self, seconds: u64) {
        self.clock.set(Timestamp::from_seconds(seconds));
    }

    /// The database every world has.
    pub fn database(&self) -> Arc<Database> {
        self.engine().database(DATABASE).expect("every world has its database")
    }

    /// A container by name, as it is now.
    pub fn container(&self, name: &str) -> Result<Arc<Container>> {
        self.engine().container(&self.database(), name)
    }

    /// A container that is there.
    pub fn must_container(&self, name: &str) -> Arc<Container> {
        self.container(name).unwrap_or_else(|error| panic!("container {name}: {error}"))
    }

    /// Makes a container with one slot.
    pub async fn create_container(&self, definition: ContainerDefinition) -> Result<Arc<Container>> {
        self.create_container_in_slots(definition, 1).await
    }

    /// Makes a container.
    pub async fn create_container_in_slots(
        &self,
        definition: ContainerDefinition,
        slots: u32,
    ) -> Result<Arc<Container>> {
        let now = self.now().await;
        self.engine().create_container(&self.database(), definition, slots, now).await
    }

    /// Changes a container's definition.
    pub async fn change(
        &self,
        name: &str,
        change: impl FnOnce(&mut ContainerDefinition),
    ) -> Result<Arc<Container>> {
        let container = self.container(name)?;
        let mut definition = container.definition().clone();
        change(&mut definition);
        let now = self.now().await;
        self.engine().replace_container(&container, definition, None, now).await
    }

    /// Sets a container's default time to live; `None` switches it off.
    pub async fn set_ttl(&self, name: &str, ttl: Option<i64>) -> Result<Arc<Container>> {
        let ttl = ttl.map(|ttl| ttl.try_into().map_err(Error::bad_request)).transpose()?;
        self.change(name, |definition| definition.default_ttl = ttl).await
    }

    /// Runs one operation on a document, in the partition its body or `key` names.
    pub async fn write(&self, name: &str, key: &PartitionKey, operation: Operation) -> Result<Outcome> {
        let now = self.now().await;
        let container = self.container(name)?;
        let done = self.engine().write(&container, key, operation, InvalidTtl::Refuse, now).await;
        done.map(|(outcome, _)| outcome)
    }

    /// Creates a document.
    pub async fn create(&self, name: &str, json: &str) -> Result<Record> {
        self.put_body(name, json, |id, body| Operation::Create { id, body }).await
    }

    /// Creates a document or puts it in the place of the one there.
    pub async fn upsert(&self, name: &str, json: &str) -> Result<Record> {
        self.put_body(name, json, |id, body| Operation::Upsert { id, body, if_match: None }).await
    }

    /// Puts a document in the place of the one there.
    pub async fn replace(&self, name: &str, json: &str) -> Result<Record> {
        self.put_body(name, json, |id, body| Operation::Replace { id, new_id: None, body, if_match: None })
            .await
    }

    async fn put_body(
        &self,
        name: &str,
        json: &str,
        operation: impl FnOnce(DocumentId, RawDocumentBuf) -> Operation,
    ) -> Result<Record> {
        let body = document(json);
        let key = self.container(name)?.definition().partition_key.extract(&body)?;
        let outcome = self.write(name, &key, operation(id_of(&body), body)).await?;
        Ok(outcome.record.expect("a write answers with the document"))
    }

    /// Deletes a document of a container whose partition key is its id.
    pub async fn delete(&self, name: &str, id: &str) -> Result<()> {
        let operation = Operation::Delete { id: DocumentId::text(id), if_match: None };
        self.write(name, &key_of_id(id), operation).await.map(drop)
    }

    /// Reads a document.
    pub async fn read(&self, name: &str, key: &PartitionKey, id: &str) -> Result<Option<Record>> {
        let now = self.now().await;
        self.engine().read(&*self.container(name)?, key, &DocumentId::text(id), now).await
    }

    /// Reads a document of a container whose partition key is its id, as text.
    pub async fn get(&self, name: &str, id: &str) -> Option<String> {
        let record = self.read(name, &key_of_id(id), id).await.expect("a read answers");
        record.map(|record| json(record.body()))
    }

    /// All documents of a container, in pages of `rows`.
    pub async fn list(&self, name: &str, rows: usize) -> Result<Vec<Found>> {
        let access = Access::Records(HashRange::all());
        self.scan(name, &access, Direction::Forward, rows).await
    }

    /// The ids of all documents of a container, sorted.
    pub async fn ids(&self, name: &str) -> Vec<String> {
        let found = self.list(name, 3).await.expect("a list answers");
        let mut ids: Vec<_> = found.iter().map(|found| text_id(&found.record)).collect();
        ids.sort();
        ids
    }

    /// Walks an access path to its end, in pages of `rows`.
    pub async fn scan(
        &self,
        name: &str,
        access: &Access,
        direction: Direction,
        rows: usize,
    ) -> Result<Vec<Found>> {
        let mut found = Vec::new();
        let mut position = None;
        loop {
            let (page, next) = self.page(name, access, direction, position, rows).await?;
            found.extend(page);
            match next {
                // Through bytes and back, as a continuation token goes.
                Some(next) => position = Some(Position::from_bytes(&next.to_bytes())?),
                None => return Ok(found),
            }
        }
    }

    /// One page of an access path, at the engine's present time.
    pub async fn page(
        &self,
        name: &str,
        access: &Access,
        direction: Direction,
        position: Option<Position>,
        rows: usize,
    ) -> Result<(Vec<Found>, Option<Position>)> {
        let now = self.now().await;
        let limit = PageLimit { rows, ..WHOLE };
        let container = self.container(name)?;
        let page = self.engine().scan(&container, access, direction, position, limit, now).await?;
        Ok((page.found, page.next))
    }

    /// Purges until nothing is left to purge now; the sum of what was done.
    pub async fn purge(&self) -> Result<Purged> {
        let mut sum = Purged::default();
        for _ in 0..TICKS_MAX {
            let now = self.now().await;
            let tick = self.engine().purge(now, Pace::Full).await?;
            sum.documents += tick.documents;
            sum.bytes += tick.bytes;
            sum.next = tick.next;
            if !tick.more {
                return Ok(sum);
            }
        }
        panic!("purge does not end");
    }

    /// Has the store write what it holds in memory to its tables and compact them, so that what follows reads
    /// from there.
    pub async fn compact(&self) {
        let (_, store) = self.open.as_ref().expect("a world is open while anybody can look at it");
        store.reclaim().await.expect("a store compacts");
    }

    /// Builds indexes until all are built; how many ticks it took.
    pub async fn build_indexes(&self) -> Result<usize> {
        for tick in 1..=TICKS_MAX {
            if !self.engine().build_indexes().await? {
                return Ok(tick);
            }
        }
        panic!("building indexes does not end");
    }

    /// Reaps until nothing is left to reap; how many ticks it took.
    pub async fn reap(&self) -> Result<usize> {
        for tick in 1..=TICKS_MAX {
            if !self.engine().reap().await? {
                return Ok(tick);
            }
        }
        panic!("reaping does not end");
    }

    /// Walks the whole store and insists that everything agrees.
    pub async fn must_be_clean(&self) -> Report {
        let report = self.engine().check().await.expect("the check can read everything");
        assert!(report.is_clean(), "the store does not agree with itself: {:#?}", report.problems);
        report
    }
}

/// A container definition with everything at its default: `paths` is one path or several, comma-separated.
pub fn definition(name: &str, paths: &str) -> ContainerDefinition {
    let paths: Vec<_> = paths
        .split(',')
        .filter(|path| !path.is_empty())
        .map(|path| KeyDefinition::parse_path(path).unwrap_or_else(|error| panic!("{path}: {error}")))
        .collect();
    let kind = if paths.len() > 1 { KeyKind::MultiHash } else { KeyKind::Hash };
    ContainerDefinition::new(name, KeyDefinition { paths, kind, version: 2 })
}

/// A definition with the id as partition key and this default time to live.
pub fn definition_with_ttl(name: &str, ttl: Option<i64>) -> ContainerDefinition {
    let mut definition = definition(name, "/id");
    definition.default_ttl = ttl.map(|ttl| ttl.try_into().expect("a valid default"));
    definition
}

/// A document from JSON text, with dates.
pub fn document(json: &str) -> RawDocumentBuf {
    let body = parse_document(json.as_bytes(), JsonLimits::default())
        .unwrap_or_else(|error| panic!("not a document: {json}: {error}"));
    if !json.contains("$date") {
        return body;
    }
    let mut tree = Document::try_from(body.as_ref()).expect("parsed a moment ago");
    tree.iter_mut().for_each(|(_, value)| put_dates(value));
    RawDocumentBuf::try_from(&tree).expect("a document stays one")
}

fn put_dates(value: &mut Bson) {
    match value {
        Bson::Array(items) => items.iter_mut().for_each(put_dates),
        Bson::Document(members) => match (members.len(), members.get("$date").and_then(seconds)) {
            (1, Some(seconds)) => *value = Bson::DateTime(DateTime::from_millis((seconds * 1000.0) as i64)),
            _ => members.iter_mut().for_each(|(_, value)| put_dates(value)),
        },
        _ => {}
    }
}

fn seconds(value: &Bson) -> Option<f64> {
    match value {
        Bson::Int32(n) => Some(f64::from(*n)),
        Bson::Int64(n) => Some(*n as f64),
        Bson::Double(n) => Some(*n),
        _ => None,
    }
}

/// A document as JSON text.
pub fn json(body: &RawDocument) -> String {
    let mut out = Vec::new();
    write_document(body, &mut out).expect("a stored document prints");
    String::from_utf8(out).expect("JSON is text")
}

/// The id of a document.
pub fn id_of(body: &RawDocument) -> DocumentId {
    DocumentId::text(body.get_str("id").expect("a document has an id"))
}

/// The id of a record, as text.
pub fn text_id(record: &Record) -> String {
    record.body().get_str("id").expect("a document has an id").to_owned()
}

/// The partition key of a document whose container is partitioned by its id.
pub fn key_of_id(id: &str) -> PartitionKey {
    partition_key(&format!("{id:?}"))
}

/// A partition key from JSON: a value, or an array of them.
pub fn partition_key(json: &str) -> PartitionKey {
    let header = if json.starts_with('[') { json.to_owned() } else { format!("[{json}]") };
    PartitionKey::parse_header(&header).unwrap_or_else(|error| panic!("not a partition key: {json}: {error}"))
}

/// All documents with a value at a property path (`/a/b`; `[]` is any item of an array).
pub fn index_access(path: &str) -> Access {
    let steps: Vec<_> = path
        .split('/')
        .skip(1)
        .map(|name| if name == "[]" { PathStep::Item } else { PathStep::Property(name) })
        .collect();
    Access::index(encode_path(&steps), Bound::Unbounded, Bound::Unbounded, HashRange::all())
}
