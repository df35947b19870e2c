//! Changing documents: one operation, or several of one logical partition, in one guarded batch.
//!
//! A transaction works on a desk of its own: it reads the stored records its operations name, applies the operations
//! to them in order, and commits the difference. The guards are the container's row and the version of each record
//! it relied on; if one of them has moved, everything is read and decided again.
//!
//! ```text
//!   operations ──▶ Desk { id → stored, wanted } ──▶ Changes ──▶ Batch ──▶ commit ──▶ outcomes
//!                     ▲                                                     │ conflict
//!                     └──────────────────── read again ◀────────────────────┘
//! ```
//!
//! An expired record that is still stored counts as absent; whatever is written in its place removes all that is
//! left of it in the same batch. The same goes for an expired owner of a unique key.

use std::{
    collections::HashMap,
    sync::{Arc, atomic::Ordering::Relaxed},
};

use bson::{RawDocument, RawDocumentBuf};
use bytes::Bytes;
use mayfly_storage::{
    Error as StoreError,
    store::{Batch, Key},
};
use mayfly_value::partition::PartitionKey;

use crate::{
    changes::{Change, Changes, unique_row_owner},
    charge,
    clock::Timestamp,
    container::{Container, Partition},
    engine::Engine,
    error::{Error, Resource, Result},
    etag::{Etag, IfMatch},
    index,
    keys::{DocumentId, DocumentKey, Family},
    log::{Event, EventKind},
    record::{Birth, Record},
    ttl::{Cuts, Life, OwnTtl},
};

/// How a document is changed by a function of what it was. May run more than once.
pub type Modify = Arc<dyn Fn(&Record) -> Result<RawDocumentBuf> + Send + Sync>;

/// What becomes of a document.
#[derive(Clone, Debug)]
pub enum Decision {
    /// It stays as it is; nothing is written.
    Keep,
    /// This is its next version, or its first.
    Put(RawDocumentBuf),
    /// This is its next version, with parts of it changed: the log tells the difference.
    Update(RawDocumentBuf),
    /// It goes.
    Remove,
}

/// Decides about a document that may be there. May run more than once.
pub type Decide = Arc<dyn Fn(Option<&Record>) -> Result<Decision> + Send + Sync>;

/// What a receipt says, as a function of what the operations did; nothing if they may well be tried again.
pub type Note = Arc<dyn Fn(&[Outcome]) -> Option<Vec<u8>> + Send + Sync>;

/// Says with a write that it happened, in the same batch: whoever sends it again can be answered without it.
#[derive(Clone)]
pub struct Receipt {
    /// Whose write it is.
    pub session: Vec<u8>,
    /// What to keep, once it is known what the operations do.
    pub note: Note,
}

/// One step of a transaction.
#[derive(Clone)]
pub enum Operation {
    /// Make a document; there may be none.
    Create {
        /// Its id.
        id: DocumentId,
        /// The document.
        body: RawDocumentBuf,
    },
    /// Make a document or put it in the place of the one that is there.
    Upsert {
        /// Its id.
        id: DocumentId,
        /// The document.
        body: RawDocumentBuf,
        /// Only looked at if there is one.
        if_match: Option<IfMatch>,
    },
    /// Put a document in the place of the one that is there.
    Replace {
        /// The id it has.
        id: DocumentId,
        /// The id it gets, if another; there may be no document with that one.
        new_id: Option<DocumentId>,
        /// The document.
        body: RawDocumentBuf,
        /// On the one that is there.
        if_match: Option<IfMatch>,
    },
    /// Change the document that is there.
    Modify {
        /// Its id.
        id: DocumentId,
        /// From old to new.
        modify: Modify,
        /// On the one that is there.
        if_match: Option<IfMatch>,
    },
    /// Remove the document that is there.
    Delete {
        /// Its id.
        id: DocumentId,
        /// On the one that is there.
        if_match: Option<IfMatch>,
    },
    /// Do with a document, or where there is none, what a function of it says.
    Decide {
        /// Its id.
        id: DocumentId,
        /// What to do.
        decide: Decide,
    },
    /// Look at a document as it is at this point of the transaction.
    Read {
        /// Its id.
        id: DocumentId,
    },
}

impl Operation {
    fn id(&self) -> &DocumentId {
        match self {
            Self::Create { id, .. }
            | Self::Upsert { id, .. }
            | Self::Replace { id, .. }
            | Self::Modify { id, .. }
            | Self::Delete { id, .. }
            | Self::Decide { id, .. }
            | Self::Read { id } => id,
        }
    }

    /// All documents it names.
    fn ids(&self) -> impl Iterator<Item = &DocumentId> {
        let other = match self {
            Self::Replace { new_id, .. } => new_id.as_ref(),
            _ => None,
        };
        std::iter::once(self.id()).chain(other)
    }
}

/// What to do with a `ttl` that is not valid, whether or not time to live is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidTtl {
    /// Refuse the document (the NoSQL API).
    Refuse,
    /// Keep it as plain data; the container's default applies (the Mongo API).
    Ignore,
}

/// What an operation did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// There is a new document.
    Created,
    /// There is a new version.
    Replaced,
    /// There is no document any more.
    Deleted,
    /// Nothing.
    Read,
}

/// The answer to one operation.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What happened.
    pub effect: Effect,
    /// The document as it is after the operation; none after a delete.
    pub record: Option<Record>,
    /// Request units.
    pub charge: f64,
}

/// The answer to a transaction.
#[derive(Clone, Debug)]
pub struct Transaction {
    /// In the order of the operations.
    pub outcomes: Vec<Outcome>,
    /// The slot's sequence number: of this commit, or the last one if nothing was written.
    pub lsn: u64,
}

/// A transaction that was refused: which operation, and why. Nothing was written.
#[derive(Debug)]
pub struct Refused {
    /// Index of the operation.
    pub operation: usize,
    /// The reason.
    pub error: Error,
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Self { operation: 0, error }
    }
}

/// After so many lost races the caller is better served by an answer.
const ATTEMPTS_MAX: usize = 50;

impl Engine {
    /// Runs operations on documents of one logical partition: all of them or none.
    ///
    /// `key` is the partition key the caller names; every document must have it.
    pub async fn transact(
        &self,
        container: &Arc<Container>,
        key: &PartitionKey,
        operations: &[Operation],
        invalid_ttl: InvalidTtl,
        now: Timestamp,
    ) -> std::result::Result<Transaction, Refused> {
        self.transact_once(container, key, operations, invalid_ttl, None, now).await
    }

    /// Like [`Engine::transact`], and leaves a receipt that stands or falls with it.
    pub async fn transact_once(
        &self,
        container: &Arc<Container>,
        key: &PartitionKey,
        operations: &[Operation],
        invalid_ttl: InvalidTtl,
        receipt: Option<&Receipt>,
        now: Timestamp,
    ) -> std::result::Result<Transaction, Refused> {
        let mut container = container.clone();
        let mut now = now;
        // Creates need no look at the store first: their guards will tell.
        let mut look_first =
            !operations.iter().all(|operation| matches!(operation, Operation::Create { .. }));
        // Documents that had expired when they were found to own a unique key somebody wants.
        let mut displaced: Vec<DocumentKey> = Vec::new();
        for _ in 0..ATTEMPTS_MAX {
            let partition = container.locate(key)?;
            let mut desk = Desk::new(self, &container, &partition, key, invalid_ttl, now);
            desk.fetch(operations, look_first).await?;
            match desk.apply(operations) {
                // Something earlier in the transaction may be refused, once it is looked up.
                Err(_) if !look_first && operations.len() > 1 => {
                    look_first = true;
                    continue;
                }
                applied => applied?,
            }
            desk.displace(&displaced).await?;
            let note = receipt.and_then(|receipt| Some((receipt, (receipt.note)(&desk.outcomes)?)));
            if !desk.has_changes() && note.is_none() {
                let lsn = self.counter(partition.shard).await?.seq;
                return Ok(Transaction { outcomes: desk.outcomes, lsn });
            }
            if self.is_read_only() {
                return Err(Error::ReadOnly.into());
            }
            let batch = match desk.batch(note) {
                Err(_) if !look_first => {
                    look_first = true;
                    continue;
                }
                batch => batch?,
            };
            let Some(batch) = batch else {
                self.narrow_coverage(&container, &desk.bodies()).await?;
                container = self.renewed(&container).await?;
                continue;
            };
            match self.store().commit(batch).await {
                Ok(committed) => {
                    let lsn = committed.counters.first().map_or(0, |counter| counter.seq);
                    return Ok(desk.committed(lsn));
                }
                Err(StoreError::Stale { stamp }) => {
                    self.timeline().observe(stamp);
                    now = now.max(Timestamp::from_seconds(stamp));
                }
                Err(StoreError::Conflict { key }) => match Family::of(&key.bytes) {
                    Some(Family::Container) => container = self.renewed(&container).await?,
                    Some(Family::Unique | Family::SecondaryUnique) => {
                        match self.unique_owner(&container, &key, now).await? {
                            UniqueOwner::Live if look_first => return Err(desk.blame(&key)),
                            UniqueOwner::Live => look_first = true,
                            UniqueOwner::Expired(document) => displaced.push(document),
                            UniqueOwner::Gone => {}
                        }
                    }
                    _ => look_first = true,
                },
                Err(error) => return Err(Error::from(error).into()),
            }
        }
        Err(Error::Contention.into())
    }

    /// Runs one operation; answers with the slot's sequence number too.
    pub async fn write(
        &self,
        container: &Arc<Container>,
        key: &PartitionKey,
        operation: Operation,
        invalid_ttl: InvalidTtl,
        now: Timestamp,
    ) -> Result<(Outcome, u64)> {
        let done = self.transact(container, key, std::slice::from_ref(&operation), invalid_ttl, now).await;
        let done = done.map_err(|refused| refused.error)?;
        let outcome = done.outcomes.into_iter().next().ok_or_else(|| Error::internal("no outcome"))?;
        Ok((outcome, done.lsn))
    }

    /// Who has the unique row that a batch wanted.
    async fn unique_owner(&self, container: &Container, row: &Key, now: Timestamp) -> Result<UniqueOwner> {
        let Some(row) = self.store().get(row).await? else { return Ok(UniqueOwner::Gone) };
        let document = unique_row_owner(&row)?;
        let (hash, _) = document.parts()?;
        let shard = container.partition_of(hash).shard;
        Ok(match self.stored(shard, &document).await? {
            None => UniqueOwner::Gone,
            Some(record) if container.ttl().cuts(now).is_live(&record.life) => UniqueOwner::Live,
            Some(_) => UniqueOwner::Expired(document),
        })
    }
}

/// Who stands in the way of a unique key.
enum UniqueOwner {
    Live,
    Expired(DocumentKey),
    Gone,
}

/// A document on the desk.
struct Doc {
    key: DocumentKey,
    /// What the store has, expired or not.
    stored: Option<Record>,
    /// What the transaction makes of it; `None` is absent.
    wanted: Option<Record>,
    /// Whether `wanted` is to be written.
    changed: bool,
    /// The last operation that named it.
    operation: usize,
}

/// A transaction at work.
struct Desk<'a> {
    engine: &'a Engine,
    container: &'a Container,
    partition: &'a Partition,
    key: &'a PartitionKey,
    invalid_ttl: InvalidTtl,
    now: Timestamp,
    cuts: Cuts,
    docs: Vec<Doc>,
    places: HashMap<DocumentId, usize>,
    events: Vec<Event>,
    outcomes: Vec<Outcome>,
}

impl<'a> Desk<'a> {
    fn new(
        engine: &'a Engine,
        container: &'a Container,
        partition: &'a Partition,
        key: &'a PartitionKey,
        invalid_ttl: InvalidTtl,
        now: Timestamp,
    ) -> Self {
        Self {
            engine,
            container,
            partition,
            key,
            invalid_ttl,
            now,
            cuts: container.ttl().cuts(now),
            docs: Vec::new(),
            places: HashMap::new(),
            events: Vec::new(),
            outcomes: Vec::new(),
        }
    }

    /// Brings the documents that the operations name. Without `look` they are taken to be absent.
    async fn fetch(&mut self, operations: &[Operation], look: bool) -> Result<()> {
        for id in operations.iter().flat_map(Operation::ids) {
            if self.places.contains_key(id) {
                continue;
            }
            let key = DocumentKey::new(&self.partition.hash, id);
            let stored = match look {
                true => self.engine.stored(self.partition.shard, &key).await?,
                false => None,
            };
            self.places.insert(id.clone(), self.docs.len());
            self.bring(key, stored);
        }
        Ok(())
    }

    /// Brings expired documents whose unique keys are wanted, to remove them.
    async fn displace(&mut self, documents: &[DocumentKey]) -> Result<()> {
        for key in documents {
            if self.docs.iter().any(|doc| doc.key == *key) {
                continue;
            }
            if let Some(stored) = self.engine.stored(self.partition.shard, key).await? {
                self.bring(key.clone(), Some(stored));
            }
        }
        Ok(())
    }

    fn bring(&mut self, key: DocumentKey, stored: Option<Record>) {
        let live = stored.as_ref().is_some_and(|record| self.cuts.is_live(&record.life));
        if let (Some(record), false) = (&stored, live) {
            let at = self.container.ttl().expired_at(&record.life, &self.cuts);
            self.events.push(Event::expired(self.now.seconds(), &key, record, at));
        }
        let wanted = if live { stored.clone() } else { None };
        // What is left of an expired document goes with the batch, but is no reason for one.
        self.docs.push(Doc { key, stored, wanted, changed: false, operation: 0 });
    }

    fn apply(&mut self, operations: &[Operation]) -> std::result::Result<(), Refused> {
        for (number, operation) in operations.iter().enumerate() {
            let outcome = self.step(number, operation);
            self.outcomes.push(outcome.map_err(|error| Refused { operation: number, error })?);
        }
        Ok(())
    }

    fn step(&mut self, number: usize, operation: &Operation) -> Result<Outcome> {
        let place = self.places[operation.id()];
        self.docs[place].operation = number;
        let current = self.docs[place].wanted.clone();
        let mut partial = false;
        let (body, if_match) = match operation {
            Operation::Read { .. } => {
                let record = current.ok_or(Error::NotFound(Resource::Document))?;
                let charge = charge::read(record.size());
                return Ok(Outcome { effect: Effect::Read, record: Some(record), charge });
            }
            Operation::Delete { if_match, .. } => {
                let record = current.ok_or(Error::NotFound(Resource::Document))?;
                self.check_etag(*if_match, &record)?;
                let charge = charge::write(record.size(), 0);
                self.event(EventKind::Delete, place, None);
                self.docs[place].wanted = None;
                self.docs[place].changed = true;
                return Ok(Outcome { effect: Effect::Deleted, record: None, charge });
            }
            Operation::Decide { decide, .. } => match decide(current.as_ref())? {
                Decision::Keep => {
                    let charge = current.as_ref().map_or(0.0, |record| charge::read(record.size()));
                    return Ok(Outcome { effect: Effect::Read, record: current, charge });
                }
                Decision::Put(body) => (body, None),
                Decision::Update(body) => {
                    partial = true;
                    (body, None)
                }
                Decision::Remove => {
                    if current.is_some() {
                        self.event(EventKind::Delete, place, None);
                        self.docs[place].wanted = None;
                        self.docs[place].changed = true;
                    }
                    return Ok(Outcome { effect: Effect::Deleted, record: current, charge: 0.0 });
                }
            },
            Operation::Create { body, .. } => match current {
                // What is wrong with the document itself is told first, whether or not anybody looked.
                Some(_) => {
                    self.record(None, place as u16, body.clone())?;
                    return Err(Error::Exists(Resource::Document));
                }
                None => (body.clone(), None),
            },
            Operation::Upsert { body, if_match, .. } => (body.clone(), *if_match),
            Operation::Replace { body, if_match, .. } => match current {
                Some(_) => (body.clone(), *if_match),
                None => return Err(Error::NotFound(Resource::Document)),
            },
            Operation::Modify { modify, if_match, .. } => match &current {
                Some(record) => {
                    self.check_etag(*if_match, record)?;
                    (modify(record)?, *if_match)
                }
                None => return Err(Error::NotFound(Resource::Document)),
            },
        };
        if let Some(record) = &current {
            self.check_etag(if_match, record)?;
        }
        let birth = current.as_ref().map(|record| record.birth);
        if let Operation::Replace { new_id: Some(new_id), .. } = operation {
            return self.rename(number, place, self.places[new_id], birth, body);
        }
        let record = self.record(birth, place as u16, body)?;
        let (effect, kind) = match current {
            Some(_) if partial => (Effect::Replaced, EventKind::Update),
            Some(_) => (Effect::Replaced, EventKind::Replace),
            None => (Effect::Created, EventKind::Create),
        };
        self.event(kind, place, Some(&record));
        self.docs[place].wanted = Some(record.clone());
        self.docs[place].changed = true;
        Ok(Outcome { effect, record: Some(record), charge: 0.0 })
    }

    /// Gives a document another id with its new version: it leaves one place and takes another.
    fn rename(
        &mut self,
        number: usize,
        from: usize,
        to: usize,
        birth: Option<Birth>,
        body: RawDocumentBuf,
    ) -> Result<Outcome> {
        if self.docs[to].wanted.is_some() {
            return Err(Error::Exists(Resource::Document));
        }
        let record = self.record(birth, to as u16, body)?;
        self.event(EventKind::Delete, from, None);
        self.event(EventKind::Create, to, Some(&record));
        self.docs[from].wanted = None;
        self.docs[from].changed = true;
        self.docs[to].operation = number;
        self.docs[to].wanted = Some(record.clone());
        self.docs[to].changed = true;
        Ok(Outcome { effect: Effect::Replaced, record: Some(record), charge: 0.0 })
    }

    /// The new version of a document.
    fn record(&self, birth: Option<Birth>, ordinal: u16, body: RawDocumentBuf) -> Result<Record> {
        // A collection is one logical partition, whatever its documents are like.
        let placed = || self.container.definition().partition_key.extract(&body);
        if !self.container.is_collection() && placed()? != *self.key {
            return Err(Error::PartitionKeyMismatch);
        }
        let own = match OwnTtl::of(&body)? {
            Ok(own) => own,
            Err(value) if self.invalid_ttl == InvalidTtl::Refuse => return Err(Error::InvalidTtl { value }),
            Err(_) => OwnTtl::Inherit,
        };
        let dates = self.container.dates_of(&body)?;
        let life = Life { ts: self.now.seconds(), own, dates };
        Ok(Record::new(birth, ordinal, life, Bytes::from(body.into_bytes())))
    }

    fn check_etag(&self, if_match: Option<IfMatch>, record: &Record) -> Result<()> {
        let etag = Etag::new(self.container.id, self.partition.shard.slot, record.lsn);
        match if_match {
            Some(condition) if !condition.allows(etag) => Err(Error::PreconditionFailed),
            _ => Ok(()),
        }
    }

    fn event(&mut self, kind: EventKind, place: usize, current: Option<&Record>) {
        if self.container.definition().log_minutes.is_some() {
            let doc = &self.docs[place];
            let event = Event::new(kind, self.now.seconds(), &doc.key, doc.wanted.as_ref(), current);
            self.events.push(event);
        }
    }

    fn has_changes(&self) -> bool {
        self.docs.iter().any(|doc| doc.changed)
    }

    /// What is to be written.
    fn bodies(&self) -> Vec<&RawDocument> {
        let changed = self.docs.iter().filter(|doc| doc.changed);
        changed.filter_map(|doc| doc.wanted.as_ref()).map(Record::body).collect()
    }

    /// The batch that does it; none if the container's coverage does not hold for what is to be written.
    fn batch(&mut self, note: Option<(&Receipt, Vec<u8>)>) -> std::result::Result<Option<Batch>, Refused> {
        let mut changes = Changes::new(self.container, self.partition.shard);
        for doc in &self.docs {
            let expired = doc.stored.is_some() && doc.wanted.is_none();
            if !doc.changed && !expired {
                // It was decided to leave it alone, and what was decided beside it may rest on that.
                changes.rely(&doc.key, doc.stored.as_ref());
                continue;
            }
            // Made and deleted again in one transaction.
            if doc.stored.is_none() && doc.wanted.is_none() {
                continue;
            }
            let change =
                Change { document: &doc.key, before: doc.stored.as_ref(), after: doc.wanted.as_ref() };
            let refuse = |error| Refused { operation: doc.operation, error };
            let terms = changes.add(&change).map_err(refuse)?;
            if let (Some(outcome), Some(record)) = (self.outcomes.get_mut(doc.operation), &doc.wanted) {
                outcome.charge = charge::write(record.size(), terms)
                    * if outcome.effect == Effect::Replaced { charge::REPLACE_FACTOR } else { 1.0 };
            }
        }
        if let Some((receipt, note)) = note {
            let mut value = self.now.seconds().to_be_bytes().to_vec();
            value.extend_from_slice(&note);
            changes.put(self.partition.shard.receipt(&receipt.session), value);
        }
        if self.container.definition().log_minutes.is_some() {
            let moment = self.engine.next_moment(self.now);
            self.events.iter().for_each(|event| changes.log(event, moment));
        }
        if !changes.fits() {
            return Ok(None);
        }
        changes.into_write(self.now.seconds()).map(Some).map_err(|row| self.blame(&row))
    }

    /// The refusal of the operation that wants a taken unique row.
    fn blame(&self, row: &Key) -> Refused {
        let wants = |doc: &&Doc| {
            let Some(record) = doc.wanted.as_ref().filter(|_| doc.changed) else { return false };
            let (shard, hash) = (self.partition.shard, &self.partition.hash);
            index::unique_keys(self.container, shard, hash, record.body())
                .is_ok_and(|rows| rows.contains(row))
        };
        let operation = self.docs.iter().filter(wants).map(|doc| doc.operation).max().unwrap_or(0);
        let error = match Family::of(&row.bytes) {
            Some(Family::SecondaryUnique) => Error::Duplicate { index: self.container.index_of_row(row) },
            _ => Error::UniqueViolation,
        };
        Refused { operation, error }
    }

    /// The answer, once the commit has its number.
    fn committed(self, lsn: u64) -> Transaction {
        self.engine.metrics().of(self.container.id).writes.add(self.outcomes.len() as u64);
        let deleted = self.docs.iter().filter(|doc| doc.wanted.is_none());
        let bytes =
            deleted.filter_map(|doc| doc.stored.as_ref()).map(|record| u64::from(record.size())).sum();
        self.engine.unreclaimed().fetch_add(bytes, Relaxed);
        let outcomes = self.outcomes.into_iter().map(|outcome| Outcome {
            // What this transaction wrote has no number yet; what it only read has one.
            record: outcome.record.map(|record| if record.lsn == 0 { record.committed(lsn) } else { record }),
            ..outcome
        });
        Transaction { outcomes: outcomes.collect(), lsn }
    }
}
