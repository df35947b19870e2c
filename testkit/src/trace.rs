//! Traces: steps taken by an engine and by the [`Model`], which must agree after each.
//!
//! After every step the [`Tracer`] asks the engine everything it can be asked about the container and compares: point
//! reads, lists, index walks, counts, the feed, deadlines, forecasts, versions, and the integrity of the store. It
//! also writes the answers down, so that two runs of a trace, one with purge and one without, can be compared word
//! for word.
//!
//! Holds: the first disagreement ends a trace, with the steps so far as a script.

use std::collections::{BTreeMap, HashSet};

use mayfly_engine::{
    Access, Container, Direction, DocumentId, Effect, Error, FeedStart, HashRange, IndexingMode, InvalidTtl,
    Operation, Pace, Part, Position, Record, Timestamp,
    patch::{self, PatchOperation, Pointer},
};
use mayfly_value::{
    bson::{Bson, Document, RawDocument},
    partition::PartitionKey,
    path::Path,
    vector::Distance,
};

use crate::{
    model::{Body, DateRule, How, Indexing, Json, Living, Model, Name, Step, Verdict},
    words::words_access,
    world::{DATABASE, World, definition, document, index_access, json, partition_key},
};

/// The container every trace works on.
const CONTAINER: &str = "c";

/// The container whose only document counts the transactions over both.
const OTHER: &str = "other";

/// Partitions and ids that steps may name.
pub const PARTITIONS: u8 = 2;
/// Ids in each partition.
pub const IDS: u8 = 4;

/// Why a trace ended early.
#[derive(Debug)]
pub enum Failure {
    /// The engine and the model disagree: the trace as a script, and how.
    Disagreement(String),
    /// The store failed, and the engine said so.
    Store(Error),
}

type Checked<T = ()> = Result<T, Failure>;

/// An engine and the model beside it.
pub struct Tracer {
    world: World,
    model: Model,
    told: Timestamp,
    seen: BTreeMap<Name, Seen>,
    page: Option<Position>,
    paged: HashSet<(Name, u64)>,
    /// The engine's numbers of the model's date rules.
    rules: Vec<u16>,
    script: Vec<String>,
    answers: Vec<String>,
}

/// A version as the engine named it: it may not change while the model's stays, and must when it does not.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    version: u64,
    birth: u64,
    etag: String,
    rid: (u64, u16),
}

/// What a trace is about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Unique,
    Plain,
    Logged,
}

impl Tracer {
    /// An empty container in `world`, partitioned by `/pk`, with `/u` unique, the words of `/t` and the vectors at `/v`
    /// indexed, in two slots.
    pub async fn new(world: World, default: Option<i64>) -> Checked<Self> {
        Self::made(world, default, Kind::Unique).await
    }

    /// The same without unique values: there documents are purged by count.
    pub async fn plain(world: World, default: Option<i64>) -> Checked<Self> {
        Self::made(world, default, Kind::Plain).await
    }

    /// The same with a log. There purge takes its place in the sequence, so that answers of two runs may differ.
    pub async fn logged(world: World, default: Option<i64>) -> Checked<Self> {
        Self::made(world, default, Kind::Logged).await
    }

    async fn made(world: World, default: Option<i64>, kind: Kind) -> Checked<Self> {
        let now = world.engine().now().await.map_err(Failure::Store)?;
        if world.engine().database(DATABASE).is_err() {
            world.engine().create_database(DATABASE, now).await.map_err(Failure::Store)?;
        }
        let mut definition = definition(CONTAINER, "/pk");
        definition.default_ttl = default.map(|ttl| ttl.try_into().expect("steps hold valid defaults"));
        if kind != Kind::Plain {
            definition.unique_keys = vec![vec!["/u".to_owned()]];
        }
        definition.indexing.texts = vec!["/t".to_owned()];
        definition.indexing.vectors = vec!["/v".to_owned()];
        definition.log_minutes = (kind == Kind::Logged).then_some(u32::MAX);
        world.create_container_in_slots(definition, 2).await.map_err(Failure::Store)?;
        let other = crate::world::definition(OTHER, "/pk");
        world.create_container(other).await.map_err(Failure::Store)?;
        let model = if kind == Kind::Plain { Model::plain(default) } else { Model::new(default) };
        let mut tracer = Self::resume(world, model, now);
        let ttl = default.map_or("off".to_owned(), |ttl| ttl.to_string());
        let unique = if kind == Kind::Plain { "" } else { " unique=/u" };
        tracer.script = vec![format!("container c pk=/pk{unique} text=/t vector=/v slots=2 ttl={ttl}")];
        Ok(tracer)
    }

    /// Goes on with a container that is there and must be as `model` says, not before `told`.
    pub fn resume(world: World, model: Model, told: Timestamp) -> Self {
        Self {
            world,
            model,
            told,
            seen: BTreeMap::new(),
            page: None,
            paged: HashSet::new(),
            rules: Vec::new(),
            script: Vec::new(),
            answers: Vec::new(),
        }
    }

    /// What the container must hold.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The engine and its surroundings.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// The engine and its surroundings, to reopen it.
    pub fn world_mut(&mut self) -> &mut World {
        &mut self.world
    }

    /// The last time the engine told.
    pub fn told(&self) -> Timestamp {
        self.told
    }

    /// Compares the expiries that the log tells with those the model knows, each with its second.
    pub async fn compare_expiries(&mut self) -> Checked {
        self.now().await?;
        let (container, everywhere, mut found) = (self.container(), HashRange::all(), Vec::new());
        for slot in 0..2 {
            let page = self.world.engine().log(&container, slot, 0, &everywhere, usize::MAX, self.told);
            for (_, event) in page.await.map_err(Failure::Store)?.events {
                if let (Some(at), Some(document)) = (event.expired_at, event.previous()) {
                    found.push((name_of(document), at.seconds() as i64));
                }
            }
        }
        let mut wanted = self.model.expired.clone();
        found.sort_unstable();
        wanted.sort_unstable();
        self.same("what expired when", found, wanted)
    }

    /// Everything the engine answered.
    pub fn answers(&self) -> &[String] {
        &self.answers
    }

    /// Takes a step on both sides, and compares them.
    pub async fn step(&mut self, step: &Step) -> Checked {
        self.script.push(step.to_string());
        self.act(step).await?;
        if !step.is_background() {
            self.answers.push(step.to_string());
        }
        self.compare(!step.is_background()).await?;
        if *step == Step::Purge {
            self.compare_purged().await?;
        }
        Ok(())
    }

    async fn act(&mut self, step: &Step) -> Checked {
        // Time may have moved while nobody looked, and a step acts on what is there at its own time.
        let now = self.now().await?;
        match step {
            Step::Write(how, name, body) => {
                let found = self.write(*how, *name, body).await?;
                let wanted = self.model.write(*how, *name, body.clone(), now);
                self.same("the write", found, wanted)?;
            }
            Step::Batch(partition, steps) => {
                let found = self.batch(*partition, steps).await?;
                let wanted = self.model.batch(*partition, steps, now);
                self.same("the batch", found, wanted)?;
            }
            Step::Across(partition, steps) => {
                let found = self.across(*partition, steps).await?;
                let wanted = self.model.batch(*partition, steps, now);
                self.model.across += u64::from(wanted.is_ok());
                self.same("the transaction", found, wanted)?;
            }
            Step::Delete(name) => {
                let operation = Operation::Delete { id: id(*name), if_match: None };
                let found = self.verdict(self.world.write(CONTAINER, &key(*name), operation).await)?;
                let wanted = self.model.delete(*name);
                self.same("the delete", found, wanted)?;
            }
            Step::SetDefault(default) => {
                self.world.set_ttl(CONTAINER, *default).await.map_err(Failure::Store)?;
                self.model.default = *default;
            }
            Step::CreateRule(seconds) => {
                let path = Path::parse("/d").expect("a path");
                let (container, now) = (self.container(), Timestamp(now as u64));
                let engine = self.world.engine();
                let created = engine.create_date_rule(&container, &path, *seconds, now).await;
                self.rules.push(created.map_err(Failure::Store)?.1);
                self.model.rules.push(DateRule { seconds: Some(i64::from(*seconds)) });
            }
            Step::ChangeRule(which, seconds) => self.change_rule(*which, *seconds, now).await?,
            Step::SetIndexing(indexing) => self.set_indexing(*indexing).await?,
            Step::Advance(seconds) => self.world.advance(*seconds),
            Step::AdvanceTo(which, offset) => {
                let deadlines = self.model.deadlines();
                if let Some(deadline) = deadlines.get(which % deadlines.len().max(1)) {
                    let by = (deadline + offset) - self.world.clock_seconds() as i64;
                    self.world.advance(by.clamp(0, 1_000_000) as u64);
                    self.script.push(format!("advance {by}"));
                }
            }
            Step::StepBack(seconds) => {
                let to = self.world.clock_seconds().saturating_sub(*seconds);
                self.world.set_clock(to);
                self.script.push(format!("clock {to}"));
            }
            Step::Page => self.take_page().await?,
            Step::PurgeTick => {
                let now = Timestamp(now as u64);
                self.world.engine().purge(now, Pace::Gentle).await.map_err(Failure::Store)?;
            }
            Step::Purge => drop(self.world.purge().await.map_err(Failure::Store)?),
            Step::Compact => self.world.compact().await,
            Step::BuildTick => drop(self.world.engine().build_indexes().await.map_err(Failure::Store)?),
            Step::ReapTick => drop(self.world.engine().reap().await.map_err(Failure::Store)?),
            Step::Reopen => self.world.reopen().await.map_err(Failure::Store)?,
            Step::Crash => self.world.crash().await.map_err(Failure::Store)?,
        }
        Ok(())
    }

    async fn write(&self, how: How, name: Name, body: &Body) -> Checked<Verdict> {
        self.verdict(self.world.write(CONTAINER, &key(name), operation(how, name, body)).await)
    }

    async fn batch(
        &self,
        partition: u8,
        steps: &[(How, u8, Body)],
    ) -> Checked<Result<Vec<Verdict>, (usize, Verdict)>> {
        let operations: Vec<_> =
            steps.iter().map(|(how, id, body)| operation(*how, (partition, *id), body)).collect();
        let (container, key) = (self.container(), partition_key(&partition.to_string()));
        let engine = self.world.engine();
        match engine.transact(&container, &key, &operations, InvalidTtl::Refuse, self.told).await {
            Ok(done) => Ok(Ok(done.outcomes.iter().map(|outcome| verdict_of(outcome.effect)).collect())),
            Err(refused) => Ok(Err((refused.operation, self.refusal(refused.error)?))),
        }
    }

    async fn across(
        &self,
        partition: u8,
        steps: &[(How, u8, Body)],
    ) -> Checked<Result<Vec<Verdict>, (usize, Verdict)>> {
        let operations =
            steps.iter().map(|(how, id, body)| operation(*how, (partition, *id), body)).collect();
        let here =
            Part { container: self.container(), key: partition_key(&partition.to_string()), operations };
        let body = document(&format!(r#"{{"id":"count","pk":0,"n":{}}}"#, self.model.across + 1));
        let count = Operation::Upsert { id: DocumentId::text("count"), body, if_match: None };
        let container = self.world.must_container(OTHER);
        let there = Part { container, key: partition_key("0"), operations: vec![count] };
        match self.world.engine().transact_parts(&[here, there], InvalidTtl::Refuse, self.told).await {
            Ok(done) => Ok(Ok(done[0].outcomes.iter().map(|outcome| verdict_of(outcome.effect)).collect())),
            Err(refused) => {
                self.same("the part that is refused", refused.part, 0)?;
                Ok(Err((refused.operation, self.refusal(refused.error)?)))
            }
        }
    }

    fn verdict(&self, answer: mayfly_engine::Result<mayfly_engine::Outcome>) -> Checked<Verdict> {
        match answer {
            Ok(outcome) => Ok(verdict_of(outcome.effect)),
            Err(error) => self.refusal(error),
        }
    }

    fn refusal(&self, error: Error) -> Checked<Verdict> {
        match error {
            Error::Exists(_) => Ok(Verdict::Exists),
            Error::NotFound(_) => Ok(Verdict::NotFound),
            Error::UniqueViolation => Ok(Verdict::UniqueViolation),
            Error::InvalidTtl { .. } => Ok(Verdict::InvalidTtl),
            error @ Error::Unavailable(_) => Err(Failure::Store(error)),
            error => Err(self.failure(&format!("an unexpected refusal: {error}"))),
        }
    }

    async fn change_rule(&mut self, which: usize, seconds: Option<u32>, now: i64) -> Checked {
        let rules = self.model.rules.len();
        if rules == 0 {
            return Ok(());
        }
        let which = which % rules;
        let (engine, container) = (self.world.engine(), self.container());
        let change = engine.change_date_rule(&container, self.rules[which], seconds, Timestamp(now as u64));
        let changed = match change.await {
            Ok(_) => true,
            Err(Error::BadRequest { .. }) => false,
            Err(error) => return Err(Failure::Store(error)),
        };
        let rule = &mut self.model.rules[which];
        let wanted = rule.seconds.is_some();
        if wanted {
            rule.seconds = seconds.map(i64::from);
        }
        self.same("whether a rule that was dropped can be changed", changed, wanted)
    }

    async fn set_indexing(&mut self, indexing: Indexing) -> Checked {
        let change = self.world.change(CONTAINER, |definition| {
            definition.indexing.mode = match indexing {
                Indexing::Lazy => IndexingMode::Lazy,
                Indexing::Whole | Indexing::WithoutPayload => IndexingMode::Consistent,
            };
            definition.indexing.excluded = match indexing {
                Indexing::WithoutPayload => vec!["/n/?".to_owned()],
                Indexing::Whole | Indexing::Lazy => Vec::new(),
            };
        });
        change.await.map(drop).map_err(Failure::Store)
    }

    /// A page of a list resumed after time passed: nothing in it is gone, and no version comes twice.
    async fn take_page(&mut self) -> Checked {
        if self.page.is_none() {
            self.paged.clear();
        }
        let access = Access::Records(HashRange::all());
        let page = self.world.page(CONTAINER, &access, Direction::Forward, self.page.take(), 2);
        let (found, next) = page.await.map_err(Failure::Store)?;
        self.page = next;
        for found in &found {
            let name = name_of(found.record.body());
            let Some(living) = self.model.living.get(&name) else {
                return Err(self.failure(&format!("a page shows {name:?}, which is gone")));
            };
            if !self.paged.insert((name, living.version)) {
                return Err(self.failure(&format!("pages show {name:?} twice")));
            }
        }
        Ok(())
    }

    async fn now(&mut self) -> Checked<i64> {
        let now = self.world.engine().now().await.map_err(Failure::Store)?;
        if now < self.told {
            return Err(self.failure(&format!("time went back from {:?} to {now:?}", self.told)));
        }
        self.told = now;
        self.model.settle(now.0 as i64);
        Ok(now.0 as i64)
    }

    /// Asks the engine everything and compares with the model.
    pub async fn compare(&mut self, note: bool) -> Checked {
        self.now().await?;
        self.compare_reads(note).await?;
        let count = self.world.read(OTHER, &partition_key("0"), "count").await.map_err(Failure::Store)?;
        let count = count.map(|record| sorted(record.body()).remove("n"));
        let wanted = (self.model.across > 0).then(|| Some(Bson::Int64(self.model.across as i64)));
        self.same("how many transactions were over both containers", count, wanted)?;
        self.compare_walks().await?;
        self.compare_sums().await?;
        let report = self.world.engine().check().await.map_err(Failure::Store)?;
        if !report.is_clean() {
            return Err(
                self.failure(&format!("the store does not agree with itself: {:#?}", report.problems))
            );
        }
        Ok(())
    }

    async fn compare_reads(&mut self, note: bool) -> Checked {
        let container = self.container();
        for name in (0..PARTITIONS).flat_map(|partition| (0..IDS).map(move |id| (partition, id))) {
            let id = format!("d{}", name.1);
            let found = self.world.read(CONTAINER, &key(name), &id).await.map_err(Failure::Store)?;
            let wanted = self.model.living.get(&name).cloned();
            let fields = found.as_ref().map(|record| sorted(record.body()));
            let wanted_fields = wanted.as_ref().map(|living| sorted(&document(&text(name, living))));
            self.same(&format!("what is read of {name:?}"), fields, wanted_fields)?;
            let (Some(record), Some(living)) = (found, wanted) else {
                self.seen.remove(&name);
                continue;
            };
            self.same(&format!("_ts of {name:?}"), record.ts() as i64, living.written)?;
            let expires = self.world.engine().expires_at(&container, &record).map(|at| at.0 as i64);
            self.same(&format!("the deadline of {name:?}"), expires, self.model.deadline(&living))?;
            self.compare_version(name, &container, &record, &living)?;
            if note {
                let etag = self.seen[&name].etag.clone();
                self.answers.push(format!("{} {etag} {:?}", json(record.body()), record.birth));
            }
        }
        Ok(())
    }

    fn compare_version(
        &mut self,
        name: Name,
        container: &Container,
        record: &Record,
        living: &Living,
    ) -> Checked {
        let slot = container.locate(&key(name)).map_err(Failure::Store)?.slot();
        let seen = Seen {
            version: living.version,
            birth: living.birth,
            etag: self.world.engine().etag(container, slot, record).to_string(),
            rid: (record.birth.lsn, record.birth.ordinal),
        };
        if let Some(before) = self.seen.insert(name, seen.clone()) {
            let same = (before.version == seen.version, before.birth == seen.birth);
            let found = (before.etag == seen.etag, before.rid == seen.rid);
            self.same(&format!("whether etag and rid of {name:?} stayed"), found, same)?;
        }
        Ok(())
    }

    async fn compare_walks(&mut self) -> Checked {
        let wanted: BTreeMap<Name, i64> = self.model.living.iter().map(|(n, l)| (*n, l.written)).collect();
        let payload_indexed = !self.container().definition().indexing.excluded.contains(&"/n/?".to_owned());
        let mut walks =
            vec![("a list", Access::Records(HashRange::all())), ("the index of /u", index_access("/u"))];
        walks.push(("the words of /t", words_access("winged 0 3 kinds 5", HashRange::all())));
        if payload_indexed {
            walks.push(("the index of /n", index_access("/n")));
        }
        for (what, access) in walks {
            for direction in [Direction::Forward, Direction::Reverse] {
                let found =
                    self.world.scan(CONTAINER, &access, direction, 3).await.map_err(Failure::Store)?;
                let records: Vec<_> = found.into_iter().map(|found| found.record).collect();
                self.same(what, named(&records), wanted.clone())?;
                self.same(&format!("how many are in {what}"), records.len(), wanted.len())?;
            }
        }
        self.compare_texts(wanted.len()).await?;
        let mut records = Vec::new();
        for slot in 0..2 {
            let (engine, container) = (self.world.engine(), self.container());
            let all = HashRange::all();
            let page = engine.changes(&container, slot, FeedStart::Beginning, &all, 100, self.told);
            let page = page.await.map_err(Failure::Store)?;
            let versions: Vec<_> = page
                .records
                .iter()
                .filter_map(|r| self.model.living.get(&name_of(r.body())))
                .map(|l| l.version)
                .collect();
            self.same("whether the feed is in order", versions.is_sorted(), true)?;
            records.extend(page.records);
        }
        self.same("the feed", named(&records), wanted.clone())?;
        self.same("how many are in the feed", records.len(), wanted.len())
    }

    async fn compare_sums(&mut self) -> Checked {
        let (container, engine) = (self.container(), self.world.engine());
        let usage = engine.usage(&container, self.told).await.map_err(Failure::Store)?;
        self.same("the count", usage.live.documents as usize, self.model.living.len())?;
        let found = self.world.list(CONTAINER, 100).await.map_err(Failure::Store)?;
        let bytes = found.iter().map(|found| u64::from(found.record.size())).sum::<u64>();
        self.same("the size", usage.live.bytes, bytes)?;
        for default in [Some(3), None] {
            let proposed = default.map(|n: i64| n.try_into().expect("a valid default"));
            let forecast = engine.forecast(&container, proposed, self.told).await.map_err(Failure::Store)?;
            let mut after = self.model.clone();
            after.default = default;
            after.settle(self.told.0 as i64);
            let at_once = self.model.living.len() - after.living.len();
            self.same("the forecast", forecast.at_once.documents as usize, at_once)?;
            self.same("the forecast's count", forecast.live.documents as usize, self.model.living.len())?;
        }
        Ok(())
    }

    /// After an unlimited purge the store holds the living and nothing more.
    async fn compare_purged(&mut self) -> Checked {
        let report = self.world.engine().check().await.map_err(Failure::Store)?;
        let counts = usize::from(self.model.across > 0);
        self.same("the records left by purge", report.records as usize, self.model.living.len() + counts)?;
        let usage = self.world.engine().usage(&self.container(), self.told).await.map_err(Failure::Store)?;
        self.same("the backlog after purge", usage.backlog.documents, 0)
    }

    fn container(&self) -> std::sync::Arc<Container> {
        self.world.must_container(CONTAINER)
    }

    fn same<T: PartialEq + std::fmt::Debug>(&self, what: &str, found: T, wanted: T) -> Checked {
        match found == wanted {
            true => Ok(()),
            false => Err(self.failure(&format!("{what}\n  is        {found:?}\n  should be {wanted:?}"))),
        }
    }

    /// What the index of words says about all texts is about the living ones. Each has four words.
    async fn compare_texts(&mut self, living: usize) -> Checked {
        let terms = ["winged insects", "insect winged", "kind"].map(str::to_owned);
        let answer = self.world.ask_texts(&self.container(), &terms, &HashRange::all()).await;
        let Some(answer) = answer.map_err(Failure::Store)? else { return Ok(()) };
        let count = living as f64;
        let totals = (answer.totals.documents, answer.totals.words, answer.totals.hits, answer.matches.len());
        self.same("texts and words", totals, (count, 4.0 * count, vec![count, 0.0, count], living))?;
        let (container, all) = (self.container(), HashRange::all());
        let vectors = self.world.ask_vectors(&container, &[1.0, 2.0], Distance::Cosine, &all).await;
        let vectors = vectors.map_err(Failure::Store)?.map(|vectors| vectors.len());
        self.same("how many vectors there are", vectors, Some(living))
    }

    fn failure(&self, what: &str) -> Failure {
        Failure::Disagreement(format!("{}\n\n{what} (at {} ms)", self.script.join("\n"), self.told.0))
    }
}

fn verdict_of(effect: Effect) -> Verdict {
    match effect {
        Effect::Created => Verdict::Created,
        Effect::Replaced | Effect::Read => Verdict::Replaced,
        Effect::Deleted => Verdict::Deleted,
    }
}

fn operation(how: How, name: Name, body: &Body) -> Operation {
    let (id, if_match) = (id(name), None);
    let whole = document(&Json(name, body).to_string());
    match how {
        How::Create => Operation::Create { id, body: whole },
        How::Upsert => Operation::Upsert { id, body: whole, if_match },
        How::Replace => Operation::Replace { id, new_id: None, body: whole, if_match },
        How::Patch => {
            let at = |path| Pointer::parse(path).expect("a pointer");
            let mut steps = vec![PatchOperation::Set(at("/n"), Bson::Int32(i32::from(body.payload)))];
            steps.push(PatchOperation::Set(at("/ttl"), Bson::Int64(body.ttl.unwrap_or(1))));
            if body.ttl.is_none() {
                steps.push(PatchOperation::Remove(at("/ttl")));
            }
            let modify = std::sync::Arc::new(move |record: &Record| patch::apply(record.body(), &steps));
            Operation::Modify { id, modify, if_match }
        }
    }
}

fn text(name: Name, living: &Living) -> String {
    Json(name, &living.body).to_string()
}

fn id(name: Name) -> DocumentId {
    DocumentId::text(&format!("d{}", name.1))
}

fn key(name: Name) -> PartitionKey {
    partition_key(&name.0.to_string())
}

fn name_of(body: &RawDocument) -> Name {
    let number = |text: &str| text.parse().ok();
    let id = body.get_str("id").ok().and_then(|id| number(id.trim_start_matches('d')));
    let partition = match body.get("pk") {
        Ok(Some(value)) => value.as_i32().or(value.as_i64().map(|n| n as i32)).unwrap_or(-1),
        _ => -1,
    };
    (partition as u8, id.unwrap_or(u8::MAX))
}

/// Names with the second each was written at.
fn named(records: &[Record]) -> BTreeMap<Name, i64> {
    records.iter().map(|record| (name_of(record.body()), record.ts() as i64)).collect()
}

/// The members of a document in the order of their names, numbers all of one type.
fn sorted(body: &RawDocument) -> BTreeMap<String, Bson> {
    let document = Document::try_from(body).expect("a stored document is whole");
    let number = |value| match value {
        Bson::Int32(n) => Bson::Int64(i64::from(n)),
        value => value,
    };
    document.into_iter().map(|(name, value)| (name, number(value))).collect()
}
