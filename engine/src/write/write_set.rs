//! The documents of one logical partition while a write works on them.
//!
//! Each has what the store holds and what the write makes of it. Operations change the latter in order; one that is
//! refused leaves it as it was. The difference of the two becomes a batch.
//!
//! Holds: a unique value has one owner. In a transaction that is asked of its end, so that documents may swap values; in
//! a list of statements it is asked of each.

use std::{
    collections::{HashMap, HashSet, hash_map::Entry},
    sync::atomic::Ordering::Relaxed,
};

use bson::{RawDocument, RawDocumentBuf};
use bytes::Bytes;
use mayfly_storage::store::{Batch, Counter, Key};

use super::{
    BatchBuilder, Before, Change, Look, Target, Terms,
    operation::{Decision, Effect, InvalidTtl, Operation, Outcome, Receipt, Statements, Transaction},
    unique::Owner,
};
use crate::{
    charge,
    clock::Timestamp,
    container::{Container, Partition},
    engine::Engine,
    error::{Error, Resource, Result},
    etag::{Etag, IfMatch},
    index,
    keys::{DocumentId, DocumentKey, Family, Shard},
    log::{Event, EventKind},
    purge::Reach,
    record::{Birth, Record},
    ttl::{Cuts, Life, OwnTtl},
};

/// What an operation that is refused does to the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusals {
    /// None is done: a transaction.
    Abort,
    /// Those after it are not done.
    Stop,
    /// Nothing.
    Skip,
}

/// A document of the set.
struct Doc {
    key: DocumentKey,
    /// What the store has, expired or not.
    stored: Option<Record>,
    /// Whether that has expired, and how far purge has come with it.
    ended: Option<Ended>,
    /// What the write makes of it; `None` is absent.
    after: Option<Record>,
    /// A version that the write made and that had ended by then: it is not stored, and `after` is absent.
    stillborn: Option<Record>,
    /// The unique rows of `after`, if they have been computed.
    unique: Option<Vec<Key>>,
    /// Whether `after` is to be written.
    changed: bool,
    /// The last operation that changed it.
    operation: usize,
}

/// What has become of a stored version that has expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    /// It is in the sums, and its rows go one by one.
    Unpurged,
    /// It is in the sums, as long as there were so many purges.
    Uncounted { purges: Option<u64> },
    /// It was taken out of the sums.
    Counted,
}

/// What became of a set's batch.
pub(super) enum Built {
    Batch(Batch),
    /// It cannot be made; which operation is to blame is found by looking at everything.
    LookAgain,
    /// The container's coverage does not hold for what is to be written.
    Narrow,
}

/// Documents of one logical partition, and what a write makes of them.
pub(super) struct WriteSet<'a> {
    engine: &'a Engine,
    container: &'a Container,
    partition: Partition,
    key: &'a mayfly_value::partition::PartitionKey,
    refusals: Refusals,
    invalid_ttl: InvalidTtl,
    look: Look,
    now: Timestamp,
    cuts: Cuts,
    docs: Vec<Doc>,
    places: HashMap<DocumentId, usize>,
    /// Which document of the set has a unique row at this point; `None` if no living document has it. Kept only where
    /// operations are judged one by one.
    owners: HashMap<Key, Option<usize>>,
    keeps_owners: bool,
    events: Vec<Event>,
    /// What each operation did.
    pub results: Vec<Result<Outcome>>,
}

impl<'a> WriteSet<'a> {
    pub fn new(
        engine: &'a Engine,
        target: &'a Target<'_>,
        partition: Partition,
        terms: &Terms<'_>,
        look: Look,
        now: Timestamp,
    ) -> Self {
        let container = &*target.container;
        let judges_each =
            terms.refusals != Refusals::Abort && (target.operations.len() > 1 || look == Look::Everything);
        Self {
            engine,
            container,
            partition,
            key: target.key,
            refusals: terms.refusals,
            invalid_ttl: terms.invalid_ttl,
            look,
            now,
            cuts: container.ttl().cuts(now),
            docs: Vec::with_capacity(target.operations.len()),
            places: HashMap::with_capacity(target.operations.len()),
            owners: HashMap::new(),
            keeps_owners: judges_each && container.has_unique_rows(),
            events: Vec::new(),
            results: Vec::with_capacity(target.operations.len()),
        }
    }

    /// The slot of all its documents.
    pub fn shard(&self) -> Shard {
        self.partition.shard
    }

    /// Whether its operations are all done, or none.
    pub fn is_transaction(&self) -> bool {
        self.refusals == Refusals::Abort
    }

    /// Loads the documents that the operations name. If nothing is looked at they are taken to be absent.
    pub async fn load(&mut self, operations: &[Operation]) -> Result<()> {
        for id in operations.iter().flat_map(Operation::ids) {
            if self.places.contains_key(id) {
                continue;
            }
            let key = DocumentKey::new(&self.partition.hash, id);
            let stored = match self.look {
                Look::Nowhere => None,
                Look::Records | Look::Everything => self.engine.stored(self.partition.shard, &key).await?,
            };
            self.places.insert(id.clone(), self.docs.len());
            self.add(key, stored).await?;
        }
        Ok(())
    }

    async fn add(&mut self, key: DocumentKey, stored: Option<Record>) -> Result<()> {
        let live = stored.as_ref().is_some_and(|record| self.cuts.is_live(&record.life));
        let mut ended = None;
        if let (Some(record), false) = (&stored, live) {
            ended = Some(self.end_of(&key, record).await?);
            if ended != Some(Ended::Counted) {
                let at = self.container.ttl().expired_at(&record.life, &self.cuts);
                self.events.push(Event::expired(self.now.seconds(), &key, record, at));
            }
        }
        let mut unique = None;
        if let (Some(record), true) = (&stored, self.keeps_owners && ended != Some(Ended::Counted)) {
            let rows = self.unique_rows(record)?;
            let owner = live.then_some(self.docs.len());
            self.owners.extend(rows.iter().map(|row| (row.clone(), owner)));
            unique = live.then_some(rows);
        }
        let after = if live { stored.clone() } else { None };
        // What is left of an expired document goes with the batch, but is no reason for one.
        self.docs.push(Doc {
            key,
            stored,
            ended,
            after,
            stillborn: None,
            unique,
            changed: false,
            operation: 0,
        });
        Ok(())
    }

    /// What has become of a version that has expired.
    async fn end_of(&self, key: &DocumentKey, record: &Record) -> Result<Ended> {
        let (store, shard) = (self.engine.store(), self.partition.shard);
        if store.forgets_up_to() == 0 {
            return Ok(Ended::Unpurged);
        }
        let rows = [Family::Purged, Family::PurgePosition].map(|family| shard.single(family));
        let [purged, reach] = store.get_both(&rows).await?;
        let reach = Reach::of_row(reach.as_deref())?;
        Ok(match self.engine.counts_out(self.container) {
            _ if reach.has_purged(&record.life, (record.lsn, record.ordinal), key.as_bytes()) => {
                Ended::Counted
            }
            true => {
                Ended::Uncounted { purges: purged.as_deref().and_then(Counter::decode).map(|row| row.seq) }
            }
            false => Ended::Unpurged,
        })
    }

    fn unique_rows(&self, record: &Record) -> Result<Vec<Key>> {
        index::unique_keys(self.container, self.partition.shard, &self.partition.hash, record.body())
    }

    /// Applies the operations in order. Gives the refusal that ends a transaction, or that has to be looked into.
    pub async fn apply(&mut self, operations: &[Operation]) -> Result<Option<(usize, Error)>> {
        for (number, operation) in operations.iter().enumerate() {
            match (self.step(number, operation).await, self.refusals) {
                // The store failed, and not the operation.
                (Err(error @ (Error::Unavailable(_) | Error::Corrupt(_))), _) => return Err(error),
                (Err(error), Refusals::Abort) => return Ok(Some((number, error))),
                // Another document, in an index before this one, may have its values too: then that one is named.
                (Err(error @ (Error::Duplicate { .. } | Error::UniqueViolation)), _)
                    if self.look != Look::Everything =>
                {
                    return Ok(Some((number, error)));
                }
                (Err(error), Refusals::Stop) => {
                    self.results.push(Err(error));
                    break;
                }
                (result, _) => self.results.push(result),
            }
        }
        Ok(None)
    }

    async fn step(&mut self, number: usize, operation: &Operation) -> Result<Outcome> {
        let place = self.places[operation.id()];
        let current = self.docs[place].after.clone();
        let missing = || Error::NotFound(Resource::Document);
        match operation {
            Operation::Read { .. } => {
                let record = current.ok_or_else(missing)?;
                let charge = charge::read(record.size());
                Ok(Outcome { effect: Effect::Read, record: Some(record), charge })
            }
            Operation::Delete { if_match, .. } => {
                let record = current.ok_or_else(missing)?;
                self.check_etag(*if_match, &record)?;
                self.remove(number, place);
                let charge = charge::write(record.size(), 0);
                Ok(Outcome { effect: Effect::Deleted, record: None, charge })
            }
            Operation::Decide { decide, .. } => match decide(current.as_ref())? {
                Decision::Keep => {
                    let charge = current.as_ref().map_or(0.0, |record| charge::read(record.size()));
                    Ok(Outcome { effect: Effect::Read, record: current, charge })
                }
                Decision::Put(body) => self.put(number, place, body, EventKind::Replace).await,
                Decision::Update(body) => self.put(number, place, body, EventKind::Update).await,
                Decision::Remove => {
                    if current.is_some() {
                        self.remove(number, place);
                    }
                    Ok(Outcome { effect: Effect::Deleted, record: current, charge: 0.0 })
                }
            },
            Operation::Create { body, .. } => {
                if current.is_some() {
                    // What is wrong with the document itself is said first, whether or not the record was read.
                    self.record(None, place, body.clone())?;
                    return Err(Error::Exists(Resource::Document));
                }
                self.put(number, place, body.clone(), EventKind::Create).await
            }
            Operation::Upsert { body, if_match, .. } => {
                if let Some(record) = &current {
                    self.check_etag(*if_match, record)?;
                }
                self.put(number, place, body.clone(), EventKind::Replace).await
            }
            Operation::Replace { body, new_id, if_match, .. } => {
                let record = current.ok_or_else(missing)?;
                self.check_etag(*if_match, &record)?;
                match new_id {
                    Some(new_id) => {
                        let to = self.places[new_id];
                        self.rename(number, place, to, record.birth, body.clone()).await
                    }
                    None => self.put(number, place, body.clone(), EventKind::Replace).await,
                }
            }
            Operation::Modify { modify, if_match, .. } => {
                let record = current.ok_or_else(missing)?;
                self.check_etag(*if_match, &record)?;
                self.put(number, place, modify(&record)?, EventKind::Replace).await
            }
        }
    }

    /// Makes this the next version of a document, or its first.
    async fn put(
        &mut self,
        number: usize,
        place: usize,
        body: RawDocumentBuf,
        kind: EventKind,
    ) -> Result<Outcome> {
        let birth = self.docs[place].after.as_ref().map(|record| record.birth);
        let record = self.record(birth, place, body)?;
        let unique = self.admit(place, &record, None).await?;
        let (effect, kind) = match birth {
            Some(_) => (Effect::Replaced, kind),
            None => (Effect::Created, EventKind::Create),
        };
        self.event(kind, place, Some(&record));
        self.set(number, place, Some(record.clone()), unique);
        Ok(Outcome { effect, record: Some(record), charge: 0.0 })
    }

    fn remove(&mut self, number: usize, place: usize) {
        self.event(EventKind::Delete, place, None);
        self.set(number, place, None, None);
    }

    /// Gives a document another id with its new version: it leaves one place and takes another.
    async fn rename(
        &mut self,
        number: usize,
        from: usize,
        to: usize,
        birth: Birth,
        body: RawDocumentBuf,
    ) -> Result<Outcome> {
        if self.docs[to].after.is_some() {
            return Err(Error::Exists(Resource::Document));
        }
        let record = self.record(Some(birth), to, body)?;
        let unique = self.admit(to, &record, Some(from)).await?;
        self.event(EventKind::Delete, from, None);
        self.event(EventKind::Create, to, Some(&record));
        self.set(number, from, None, None);
        self.set(number, to, Some(record.clone()), unique);
        Ok(Outcome { effect: Effect::Replaced, record: Some(record), charge: 0.0 })
    }

    fn set(&mut self, number: usize, place: usize, after: Option<Record>, unique: Option<Vec<Key>>) {
        // Purge by count has left its time behind: nobody would come to look for what is over already.
        let (after, stillborn) = match after {
            Some(record) if !self.cuts.is_live(&record.life) => (None, Some(record)),
            after => (after, None),
        };
        let unique = unique.filter(|_| stillborn.is_none());
        let log = stillborn.as_ref().filter(|_| self.container.definition().log_minutes.is_some());
        if let Some(record) = log {
            let at = self.container.ttl().expired_at(&record.life, &self.cuts);
            self.events.push(Event::expired(self.now.seconds(), &self.docs[place].key, record, at));
        }
        let doc = &mut self.docs[place];
        for row in doc.unique.take().into_iter().flatten() {
            if let Entry::Occupied(mut owner) = self.owners.entry(row)
                && *owner.get() == Some(place)
            {
                owner.insert(None);
            }
        }
        for row in unique.iter().flatten() {
            self.owners.insert(row.clone(), Some(place));
        }
        (doc.after, doc.stillborn) = (after, stillborn);
        doc.unique = unique;
        doc.changed = true;
        doc.operation = number;
    }

    /// Whether a document may become this, where operations are judged one by one: its unique rows, if no other document
    /// has one of them. `leaving` is a document that goes with the same operation.
    async fn admit(
        &mut self,
        place: usize,
        record: &Record,
        leaving: Option<usize>,
    ) -> Result<Option<Vec<Key>>> {
        if self.is_transaction() {
            return Ok(None);
        }
        if self.look == Look::Everything {
            self.check_entries(&self.docs[place].key, record)?;
        }
        if !self.keeps_owners {
            return Ok(None);
        }
        let rows = self.unique_rows(record)?;
        for row in &rows {
            let owner = match self.owners.get(row) {
                Some(owner) => *owner,
                None if self.look == Look::Everything => {
                    if self.owner_outside(row).await? {
                        return Err(self.taken(row));
                    }
                    self.owners.insert(row.clone(), None);
                    None
                }
                None => None,
            };
            if owner.is_some_and(|owner| owner != place && Some(owner) != leaving) {
                return Err(self.taken(row));
            }
        }
        Ok(Some(rows))
    }

    /// Whether a living document that is not in the set has a unique row. One that has expired is added to the set: it
    /// leaves with the batch.
    async fn owner_outside(&mut self, row: &Key) -> Result<bool> {
        match self.engine.unique_owner(self.container, row, self.now).await? {
            Owner::Nobody => Ok(false),
            // What the set knows of it is older, or newer, than the row: a guard will tell.
            Owner::Live(document) | Owner::Expired(document)
                if self.docs.iter().any(|doc| doc.key == document) =>
            {
                Ok(false)
            }
            Owner::Live(_) => Ok(true),
            Owner::Expired(document) => {
                if let Some(stored) = self.engine.stored(self.partition.shard, &document).await? {
                    self.add(document, Some(stored)).await?;
                }
                Ok(false)
            }
        }
    }

    /// The first operation of a transaction that breaks a rule about the documents as they are now; nothing where
    /// operations were judged one by one.
    pub async fn first_violation(&mut self) -> Result<Option<(usize, Error)>> {
        if !self.is_transaction() {
            return Ok(None);
        }
        let mut changed: Vec<usize> =
            (0..self.docs.len()).filter(|place| self.docs[*place].changed).collect();
        changed.sort_by_key(|place| self.docs[*place].operation);
        let has_unique = self.container.has_unique_rows();
        let mut wanted = HashSet::new();
        let kept = match has_unique {
            true => self.rows_kept()?,
            false => HashSet::new(),
        };
        for place in changed {
            let doc = &self.docs[place];
            let Some(record) = doc.after.clone().or_else(|| doc.stillborn.clone()) else { continue };
            let (operation, is_stillborn) = (doc.operation, doc.stillborn.is_some());
            if let Err(error) = self.check_entries(&self.docs[place].key, &record) {
                return Ok(Some((operation, error)));
            }
            if !has_unique {
                continue;
            }
            for row in self.unique_rows(&record)? {
                if kept.contains(&row) || self.owner_outside(&row).await? {
                    return Ok(Some((operation, self.taken(&row))));
                }
                let is_free = if is_stillborn { !wanted.contains(&row) } else { wanted.insert(row.clone()) };
                if !is_free {
                    return Ok(Some((operation, self.taken(&row))));
                }
            }
        }
        Ok(None)
    }

    /// The unique rows of living documents of the set that stay as they are.
    fn rows_kept(&self) -> Result<HashSet<Key>> {
        let mut rows = HashSet::new();
        for doc in self.docs.iter().filter(|doc| !doc.changed) {
            if let Some(record) = &doc.after {
                rows.extend(self.unique_rows(record)?);
            }
        }
        Ok(rows)
    }

    /// Refuses a document that cannot have its index entries.
    fn check_entries(&self, document: &DocumentKey, record: &Record) -> Result<()> {
        let shard = self.partition.shard;
        if self.container.write_epoch != 0 {
            index::index_entries(self.container, shard, document, record.body())?;
        }
        index::secondary_keys(self.container, shard, document, record.body())?;
        if self.container.has_unique_rows() {
            self.unique_rows(record)?;
        }
        Ok(())
    }

    /// The refusal of an operation that wants a taken unique row.
    fn taken(&self, row: &Key) -> Error {
        match Family::of(&row.bytes) {
            Some(Family::SecondaryUnique) => Error::Duplicate { index: self.container.index_of_row(row) },
            _ => Error::UniqueViolation,
        }
    }

    /// The new version of a document.
    fn record(&self, birth: Option<Birth>, place: usize, body: RawDocumentBuf) -> Result<Record> {
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
        Ok(Record::new(birth, place as u16, life, Bytes::from(body.into_bytes())))
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
            let event = Event::new(kind, self.now.seconds(), &doc.key, doc.after.as_ref(), current);
            self.events.push(event);
        }
    }

    /// Whether anything is to be written.
    pub fn has_changes(&self) -> bool {
        self.docs.iter().any(|doc| doc.changed)
    }

    /// The documents that are to be written.
    pub fn bodies(&self) -> Vec<&RawDocument> {
        let changed = self.docs.iter().filter(|doc| doc.changed);
        changed.filter_map(|doc| doc.after.as_ref()).map(Record::body).collect()
    }

    /// The batch that does it.
    pub fn build(
        &mut self,
        note: Option<(&Receipt, Vec<u8>)>,
        moment: impl FnOnce() -> u64,
    ) -> Result<Built> {
        let mut builder = BatchBuilder::new(self.container, self.partition.shard);
        builder.expect(self.docs.len());
        let writes = self.has_changes() || note.is_some();
        let mut reborn = None;
        for doc in &self.docs {
            let leaves = writes && doc.stored.is_some() && doc.after.is_none();
            if !doc.changed && !leaves {
                // It was decided to leave it alone, and what was decided beside it may rest on that.
                builder.rely(&doc.key, doc.stored.as_ref());
                continue;
            }
            // Nobody sees it, but it is refused like any other, so everything has to be looked at.
            if doc.stillborn.is_some() && self.look != Look::Everything {
                return Ok(Built::LookAgain);
            }
            if let Some(Ended::Uncounted { purges }) = doc.ended {
                // The first look was the earliest.
                reborn.get_or_insert(purges);
            }
            let change = Change {
                document: &doc.key,
                before: match (&doc.stored, doc.ended) {
                    (None, _) => Before::Nothing,
                    (Some(record), Some(Ended::Counted)) => Before::Purged(record),
                    (Some(record), _) => Before::Stored(record),
                },
                after: doc.after.as_ref(),
                after_unique: doc.unique.as_deref(),
            };
            let terms = match (&doc.stored, &doc.after) {
                // Made and deleted again in one transaction, or over when it was made.
                (None, None) => {
                    builder.rely(&doc.key, None);
                    0
                }
                _ => match builder.add(&change) {
                    Err(_) if self.look != Look::Everything => return Ok(Built::LookAgain),
                    terms => terms?,
                },
            };
            let written = doc.after.as_ref().or(doc.stillborn.as_ref());
            if let (Some(Ok(outcome)), Some(record)) = (self.results.get_mut(doc.operation), written) {
                outcome.charge = charge::write(record.size(), terms)
                    * if outcome.effect == Effect::Replaced { charge::REPLACE_FACTOR } else { 1.0 };
            }
        }
        if let Some(purges) = reborn {
            builder.note_reborn(purges);
        }
        if builder.is_doubled() {
            return Ok(Built::LookAgain);
        }
        if !builder.fits() {
            return Ok(Built::Narrow);
        }
        if !writes {
            return Ok(Built::Batch(builder.into_reliance()));
        }
        if let Some((receipt, note)) = note {
            let mut value = self.now.seconds().to_be_bytes().to_vec();
            value.extend_from_slice(&note);
            builder.put(self.partition.shard.receipt(&receipt.session), value);
        }
        if self.container.definition().log_minutes.is_some() && !self.events.is_empty() {
            let moment = moment();
            self.events.iter().for_each(|event| builder.log(event, moment));
        }
        Ok(Built::Batch(builder.into_write(self.now.seconds())))
    }

    /// The answer, once the commit has its number.
    pub fn committed(self, lsn: u64) -> Statements {
        self.engine.metrics().of(self.container.id).writes.add(self.results.len() as u64);
        let deleted = self.docs.iter().filter(|doc| doc.after.is_none());
        let bytes =
            deleted.filter_map(|doc| doc.stored.as_ref()).map(|record| u64::from(record.size())).sum();
        self.engine.unreclaimed().fetch_add(bytes, Relaxed);
        let numbered = |outcome: Outcome| Outcome {
            // What this write wrote has no number yet; what it only read has one.
            record: outcome.record.map(|record| if record.lsn == 0 { record.committed(lsn) } else { record }),
            ..outcome
        };
        Statements { results: self.results.into_iter().map(|result| result.map(numbered)).collect(), lsn }
    }
}

impl Statements {
    /// The answer of a transaction, of which every operation was done.
    pub(super) fn into_transaction(self) -> Result<Transaction> {
        Ok(Transaction { outcomes: self.results.into_iter().collect::<Result<_>>()?, lsn: self.lsn })
    }
}
