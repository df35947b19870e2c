//! Builds the one batch that changes documents.
//!
//! Record, index entries, unique keys, feed entry and expiry entries of a document stand or fall together, so one
//! place writes them: this one. Writes, purge and the replacement of expired documents all come through here, and
//! `check` computes the same keys to prove a store.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use mayfly_storage::store::{Advance, Batch, Expect, Guard, Key, MarkAt, Put, SeqMark, Urgency};

use crate::{
    container::Container,
    error::{Error, Result},
    index,
    keys::{DocumentKey, Family, SEQ_IN_KEY, Shard},
    log::Event,
    record::{DueEntry, FeedEntry, Record},
};

/// What the store has of a document.
#[derive(Clone, Copy)]
pub(crate) enum Before<'a> {
    Nothing,
    Stored(&'a Record),
    /// A version that was purged by count: it is in no sum, and what else it had is left to the store.
    Purged(&'a Record),
}

impl<'a> Before<'a> {
    fn stored(self) -> Option<&'a Record> {
        match self {
            Self::Stored(record) => Some(record),
            Self::Nothing | Self::Purged(_) => None,
        }
    }

    fn expected(self) -> Expect {
        match self {
            Self::Nothing => Expect::Absent,
            Self::Stored(record) | Self::Purged(record) => Expect::Version(record.lsn),
        }
    }
}

/// A document before and after.
pub(crate) struct Change<'a> {
    pub document: &'a DocumentKey,
    /// What the store has; guarded.
    pub before: Before<'a>,
    /// What it shall have.
    pub after: Option<&'a Record>,
    /// The unique rows of `after`, if the caller has computed them.
    pub after_unique: Option<&'a [Key]>,
}

/// A batch in the making, for one slot.
pub(crate) struct BatchBuilder<'a> {
    container: &'a Container,
    shard: Shard,
    batch: Batch,
    /// Whether the version of each record is guarded.
    guards_records: bool,
    tally: [i64; 2],
    /// Unique rows that documents of this batch had, and those they shall have, with the document's place.
    released: HashSet<Key>,
    taken: HashMap<Key, DocumentKey>,
    /// Whether two documents of this batch want the same unique row.
    is_doubled: bool,
    events: u16,
    /// Whether every document fits the container's coverage.
    fits: bool,
}

const FROM_COMMIT: u64 = 0;

fn mark(at: MarkAt) -> SeqMark {
    SeqMark { advance: 0, at }
}

impl<'a> BatchBuilder<'a> {
    pub fn new(container: &'a Container, shard: Shard) -> Self {
        let batch = Batch { guards: vec![container.guard()], ..Batch::default() };
        Self {
            container,
            shard,
            batch,
            guards_records: true,
            tally: [0, 0],
            released: HashSet::new(),
            taken: HashMap::new(),
            is_doubled: false,
            events: 0,
            fits: true,
        }
    }

    /// Makes room for so many documents: a record, a feed entry, an entry in each of a collection's indexes.
    pub fn expect(&mut self, documents: usize) {
        self.batch.guards.reserve(documents);
        self.batch.puts.reserve(documents * (2 + self.container.secondaries.len()));
    }

    /// For changes that rely on a guard of the caller's instead of one for each record.
    pub fn relying_on(container: &'a Container, shard: Shard, guard: Guard) -> Self {
        let mut builder = Self::new(container, shard);
        builder.batch.guards.push(guard);
        builder.guards_records = false;
        builder
    }

    /// Adds one document's change and returns how many index terms it writes.
    pub fn add(&mut self, change: &Change<'_>) -> Result<usize> {
        let Change { document, before, after, after_unique } = change;
        let record_key = self.shard.record(document);
        if self.guards_records {
            self.batch.guards.push(Guard { key: record_key.clone(), expect: before.expected() });
        }
        let before = before.stored();
        let terms = self.change_entries(document, before, *after)?;
        self.change_unique(document, before, *after, *after_unique)?;
        if let Some(record) = before {
            self.batch.deletes.push(self.shard.sequenced(Family::Feed, record.lsn, record.ordinal));
            self.tally[0] -= 1;
            self.tally[1] -= i64::from(record.size());
        }
        match after {
            Some(record) => {
                self.put_record(record_key, document, record);
                self.tally[0] += 1;
                self.tally[1] += i64::from(record.size());
            }
            None => self.batch.deletes.push(record_key),
        }
        Ok(terms)
    }

    /// Removes a document that its entry in the feed tells all of: where its body names rows, that is not so.
    pub fn remove_listed(&mut self, (lsn, ordinal): (u64, u16), entry: &FeedEntry) {
        debug_assert!(!self.container.has_rows_by_body());
        let record = self.shard.record(&entry.document);
        self.batch.guards.push(Guard { key: record.clone(), expect: Expect::Version(lsn) });
        self.batch.deletes.push(record);
        self.batch.deletes.push(self.shard.sequenced(Family::Feed, lsn, ordinal));
        self.batch.deletes.extend(index::expiry_keys(self.shard, &entry.document, &entry.life));
        self.tally[0] -= 1;
        self.tally[1] -= i64::from(entry.size);
    }

    fn put_record(&mut self, key: Key, document: &DocumentKey, record: &Record) {
        let (value, marks) = record.encode();
        self.batch.puts.push(Put { key, value, marks });
        let epoch = self.container.write_epoch;
        self.batch.puts.push(Put {
            key: self.shard.sequenced(Family::Feed, FROM_COMMIT, record.ordinal),
            value: FeedEntry::encoded(epoch, record.size(), &record.life, document),
            marks: vec![mark(MarkAt::Key(SEQ_IN_KEY))],
        });
    }

    /// Index and expiry entries: out with what only the old version has, in with the new version's.
    fn change_entries(
        &mut self,
        document: &DocumentKey,
        before: Option<&Record>,
        after: Option<&Record>,
    ) -> Result<usize> {
        let (container, shard) = (self.container, self.shard);
        let old = match before {
            Some(record) => index::index_keys(container, shard, document, record.body())?,
            None => Vec::new(),
        };
        let new = match after {
            Some(record) if container.write_epoch != 0 => {
                let entries = index::index_entries(container, shard, document, record.body())?;
                self.fits &= entries.fits;
                entries.entries
            }
            // A document that waits for the indexer has no entries of its new version yet.
            _ => Vec::new(),
        };
        let secondary_of = |record: Option<&Record>| match record {
            Some(record) => index::secondary_keys(self.container, self.shard, document, record.body()),
            None => Ok(Vec::new()),
        };
        let (old_secondary, new_secondary) = (secondary_of(before)?, secondary_of(after)?);
        let old_expiry = before.map(|record| index::expiry_keys(self.shard, document, &record.life));
        let new_expiry = after.map(|record| index::expiry_keys(self.shard, document, &record.life));
        let (old_expiry, new_expiry) = (old_expiry.unwrap_or_default(), new_expiry.unwrap_or_default());

        let gone = old
            .into_iter()
            .filter(|key| new.binary_search_by(|entry| entry.key.bytes.cmp(&key.bytes)).is_err());
        let gone_expiry = old_expiry.into_iter().filter(|key| !new_expiry.contains(key));
        let gone_secondary =
            old_secondary.into_iter().filter(|key| new_secondary.binary_search(key).is_err());
        self.batch.deletes.extend(gone.chain(gone_expiry).chain(gone_secondary));

        let terms = new.len();
        if let Some(record) = after {
            let mut life = Vec::with_capacity(16);
            record.life.encode(&mut life);
            let puts = new.into_iter().map(|entry| {
                let value = entry.value(&life);
                (entry.key, value)
            });
            let entry = index::secondary_value(document, &life);
            let puts = puts.chain(new_secondary.into_iter().map(|key| (key, entry.clone())));
            self.batch.puts.extend(puts.map(|(key, value)| Put { key, value, marks: Vec::new() }));
            let due = DueEntry::encoded(record);
            self.batch.puts.extend(new_expiry.into_iter().map(|key| Put {
                key,
                value: due.clone(),
                marks: DueEntry::marks(&due),
            }));
        }
        Ok(terms)
    }

    fn change_unique(
        &mut self,
        document: &DocumentKey,
        before: Option<&Record>,
        after: Option<&Record>,
        after_unique: Option<&[Key]>,
    ) -> Result<()> {
        if !self.container.has_unique_rows() {
            return Ok(());
        }
        let (hash, _) = document.parts()?;
        let rows = |record: &Record| index::unique_keys(self.container, self.shard, &hash, record.body());
        self.released.extend(before.map(rows).transpose()?.unwrap_or_default());
        let taken = match after_unique {
            Some(rows) => rows.to_vec(),
            None => after.map(rows).transpose()?.unwrap_or_default(),
        };
        for row in taken {
            if let Some(other) = self.taken.insert(row, document.clone()) {
                self.is_doubled = true;
                debug_assert_ne!(other, *document, "a document is changed once per batch");
            }
        }
        Ok(())
    }

    /// Adds an event to the container's log.
    pub fn log(&mut self, event: &Event, moment: u64) {
        self.batch.puts.push(Put {
            key: self.shard.sequenced(Family::Log, FROM_COMMIT, self.events),
            value: event.encode(moment),
            marks: vec![mark(MarkAt::Key(SEQ_IN_KEY))],
        });
        self.events += 1;
    }

    /// Guards a document that is only relied on.
    pub fn rely(&mut self, document: &DocumentKey, record: Option<&Record>) {
        let expect = record.map_or(Expect::Absent, |record| Expect::Version(record.lsn));
        self.batch.guards.push(Guard { key: self.shard.record(document), expect });
    }

    /// Notes that a document takes the place of one that has ended and is not purged: whoever is purging has to look again,
    /// and nobody has purged it since `purges`.
    pub fn note_reborn(&mut self, purges: Option<u64>) {
        let expect = purges.map_or(Expect::Absent, Expect::Version);
        self.batch.guards.push(Guard { key: self.shard.single(Family::Purged), expect });
        let key = self.shard.single(Family::Reborn);
        let value = FROM_COMMIT.to_be_bytes().to_vec();
        self.batch.puts.push(Put { key, value, marks: vec![mark(MarkAt::Value(0))] });
    }

    /// Adds a row that belongs to none of the documents.
    pub fn put(&mut self, key: Key, value: Vec<u8>) {
        self.batch.puts.push(Put { key, value, marks: Vec::new() });
    }

    /// Whether the container's coverage holds for what is written. If not, it has to be narrowed first.
    pub fn fits(&self) -> bool {
        self.fits
    }

    /// Whether two documents want the same unique row. Such a batch must not be committed.
    pub fn is_doubled(&self) -> bool {
        self.is_doubled
    }

    /// A write's batch: it takes the next number of the slot's sequence.
    pub fn into_write(mut self, stamp: u64) -> Batch {
        self.settle_unique();
        let counter = self.shard.single(Family::Counter);
        self.batch.advances.push(Advance { counter, stamp, tally: self.tally });
        self.batch
    }

    /// The guards alone, of documents that are relied on and stay as they are.
    pub fn into_reliance(self) -> Batch {
        self.batch
    }

    /// A purge's batch: nobody waits for it. Only the container's log makes it a step in the sequence; the slot's
    /// counter stays as it is otherwise, so that purge shows nowhere.
    pub fn into_purge(mut self, stamp: u64) -> Batch {
        self.settle_unique();
        self.batch.urgency = Urgency::Background;
        if self.events > 0 {
            let counter = self.shard.single(Family::Counter);
            self.batch.advances.push(Advance { counter, stamp, tally: [0, 0] });
        }
        let counter = self.shard.single(Family::Purged);
        self.batch.advances.push(Advance { counter, stamp: 0, tally: self.tally });
        self.batch
    }

    fn settle_unique(&mut self) {
        for (key, document) in std::mem::take(&mut self.taken) {
            // A row that a document of this batch gives up is ours to take: its record is guarded.
            if !self.released.remove(&key) {
                self.batch.guards.push(Guard { key: key.clone(), expect: Expect::Absent });
            }
            let mut value = FROM_COMMIT.to_be_bytes().to_vec();
            value.extend_from_slice(document.as_bytes());
            self.batch.puts.push(Put { key, value, marks: vec![mark(MarkAt::Value(0))] });
        }
        self.batch.deletes.extend(std::mem::take(&mut self.released));
    }
}

/// The document a unique row belongs to.
pub(crate) fn unique_row_owner(row: &Bytes) -> Result<DocumentKey> {
    DocumentKey::from_tail(row.get(8..).ok_or(Error::Corrupt("a unique row cannot be read"))?)
}
