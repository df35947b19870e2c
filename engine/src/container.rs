//! A container as the engine works with it: its definition, compiled.
//!
//! Immutable. A change of the definition makes a new one; whoever holds the old one finishes its page with it, and
//! a write that was decided with it is refused by the guard on its row.

use bson::RawDocument;
use mayfly_storage::store::{Expect, Guard, Key};
use mayfly_value::{
    keycode::PathStep,
    partition::{Epk, PartitionKey},
    path::{Path, PathRules},
    text::Language,
};
use serde::{Deserialize, Serialize};

use crate::{
    clock::Timestamp,
    collection::{Predicates, compile_derived, compile_filter, compile_fold},
    coverage::{Coverage, Covered},
    definition::{ContainerDefinition, IndexingMode, parse_path, parse_pattern},
    error::{Error, Result},
    etag::Etag,
    keys::{self, PREFIX_LEN, Shard, be_u64},
    ranges::{RangeRow, Ranges},
    record::{Lifetime, Record},
    secondary::Secondary,
    ttl::{DefaultTtl, Life, TtlChange, TtlPolicy},
};

/// The part of a container that is stored in its catalog row.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ContainerRow {
    pub definition: ContainerDefinition,
    pub slots: u32,
    /// The partition key ranges, once one has split; before, each slot is one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranges: Vec<RangeRow>,
    pub ttl: TtlPolicy,
    pub index: IndexState,
    pub modified: u64,
    /// The number the next index of a collection gets.
    #[serde(default)]
    pub next_index: u32,
    /// Dropped indexes of a collection whose entries are still to be removed.
    #[serde(default)]
    pub retired_indexes: Vec<u32>,
    /// Raised by every change that its owner makes; background work does not touch it.
    pub revision: u64,
    /// Whether the log was switched off and its entries are still to be removed.
    #[serde(default)]
    pub log_left: bool,
    /// The latest changes of the default, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ttl_history: Vec<TtlChange>,
}

/// Changes of the default that are remembered. The row is read with every start, so it must stay small.
const TTL_HISTORY_MAX: usize = 50;

impl ContainerRow {
    /// Sets the default at `now` and remembers that it was done.
    pub fn change_default(&mut self, to: Option<DefaultTtl>, now: Timestamp) {
        self.ttl_history.push(TtlChange { at: now.seconds(), from: self.ttl.default, to });
        let surplus = self.ttl_history.len().saturating_sub(TTL_HISTORY_MAX);
        self.ttl_history.drain(..surplus);
        self.ttl = self.ttl.with_default(to, now);
    }
}

/// Which generation of index entries is being kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexState {
    /// Stands in every index key. Raised by a change of policy, so that old entries cannot be mistaken.
    pub epoch: u32,
    /// Whether every document has its entries. If not, the feed says which do.
    pub ready: bool,
    /// Earlier epochs whose entries are still to be removed.
    pub retired: Vec<u32>,
    /// What the entries are known to hold of every document.
    #[serde(default)]
    pub coverage: Coverage,
}

impl IndexState {
    /// The state of an empty container.
    pub(crate) fn first(mode: IndexingMode) -> Self {
        Self {
            epoch: 1,
            ready: mode != IndexingMode::Lazy,
            retired: Vec::new(),
            coverage: Coverage::Unwritten,
        }
    }

    /// The state after the policy changed what is indexed.
    pub(crate) fn next(&self, mode: IndexingMode) -> Self {
        let mut retired = self.retired.clone();
        retired.push(self.epoch);
        Self {
            epoch: self.epoch + 1,
            ready: mode == IndexingMode::None,
            retired,
            coverage: Coverage::Unwritten,
        }
    }
}

/// A container, ready for work.
#[derive(Debug)]
pub struct Container {
    /// The container's number: never reused.
    pub id: u32,
    /// The number of its database.
    pub database: u32,
    /// The version of its catalog row.
    pub version: u64,
    pub(crate) row: ContainerRow,
    pub(crate) rules: PathRules,
    pub(crate) unique_keys: Vec<Vec<Path>>,
    pub(crate) composites: Vec<Composite>,
    /// The paths of full-text indexes, and the languages of the texts.
    pub(crate) texts: Vec<(Path, Language)>,
    /// The paths of vector indexes.
    pub(crate) vectors: Vec<Path>,
    /// Indexes in the sense of MongoDB.
    pub(crate) secondaries: Vec<Secondary>,
    pub(crate) covered: Covered,
    pub(crate) ranges: Ranges,
    /// The index epoch that a write gives a document at once: 0 when it has to wait for the indexer.
    pub(crate) write_epoch: u32,
}

/// A composite index, compiled.
#[derive(Debug)]
pub(crate) struct Composite {
    pub parts: Vec<(Path, bool)>,
}

/// A logical partition: where documents with one partition key value live.
#[derive(Clone, Debug)]
pub struct Partition {
    pub(crate) shard: Shard,
    pub(crate) hash: Epk,
}

impl Container {
    pub(crate) fn new(
        id: u32,
        database: u32,
        version: u64,
        row: ContainerRow,
        predicates: &dyn Predicates,
    ) -> Result<Self> {
        let definition = &row.definition;
        let indexing = &definition.indexing;
        let patterns = |list: &[String]| list.iter().map(|p| parse_pattern(p)).collect::<Result<Vec<_>>>();
        let rules = match indexing.mode {
            IndexingMode::None => PathRules::new(Vec::new(), Vec::new()),
            _ => PathRules::new(patterns(&indexing.included)?, patterns(&indexing.excluded)?),
        };
        let unique_keys = definition
            .unique_keys
            .iter()
            .map(|key| key.iter().map(|path| parse_path(path)).collect())
            .collect::<Result<_>>()?;
        let composites = match indexing.mode {
            IndexingMode::None => Vec::new(),
            _ => indexing
                .composites
                .iter()
                .map(|parts| {
                    let parts = parts.iter().map(|part| Ok((parse_path(&part.path)?, part.descending)));
                    Ok(Composite { parts: parts.collect::<Result<_>>()? })
                })
                .collect::<Result<_>>()?,
        };
        let paths = |paths: &[String]| match indexing.mode {
            IndexingMode::None => Ok(Vec::new()),
            _ => paths.iter().map(|path| parse_path(path)).collect::<Result<Vec<_>>>(),
        };
        let (texts, vectors) = (paths(&indexing.texts)?, paths(&indexing.vectors)?);
        let languages = indexing.texts.iter().map(|path| indexing.languages.of(path));
        let texts = texts.into_iter().zip(languages).collect();
        let write_epoch = if indexing.mode == IndexingMode::Lazy { 0 } else { row.index.epoch };
        let secondaries = definition.index_rules.iter().map(|rule| {
            let filter = compile_filter(&rule.filter, predicates)?;
            let (derive, fold) = (compile_derived(rule, predicates)?, compile_fold(rule, predicates)?);
            Ok(Secondary::new(rule.clone(), filter, derive, fold))
        });
        let secondaries = secondaries.collect::<Result<_>>()?;
        let covered = Covered::new(&row.index.coverage);
        let ranges = Ranges::new(&definition.partition_key, row.slots, &row.ranges)?;
        Ok(Self {
            id,
            database,
            version,
            row,
            rules,
            unique_keys,
            composites,
            texts,
            vectors,
            secondaries,
            covered,
            ranges,
            write_epoch,
        })
    }

    /// Whether it follows MongoDB's rules.
    pub fn is_collection(&self) -> bool {
        self.row.definition.collection.is_some()
    }

    /// The dates of a document that is written now, under each date rule that admits it.
    pub(crate) fn dates_of(&self, document: &RawDocument) -> Result<Vec<(u16, i64)>> {
        self.row.ttl.dates_of(document, &self.admission(document))
    }

    /// The dates of a document that was written before.
    pub(crate) fn redated(&self, life: &Life, document: &RawDocument) -> Result<Vec<(u16, i64)>> {
        self.row.ttl.redated(life, document, &self.admission(document))
    }

    /// Which date rules a document comes under: all but those whose index has a filter that leaves it out.
    pub(crate) fn admission<'a>(&'a self, document: &'a RawDocument) -> impl Fn(u16) -> bool + 'a {
        move |rule| {
            let index = self.secondaries.iter().find(|index| index.rule.date_rule == Some(rule));
            index.and_then(|index| index.filter.as_ref()).is_none_or(|admits| admits(document))
        }
    }

    /// Whether documents have unique rows.
    pub(crate) fn has_unique_rows(&self) -> bool {
        !self.unique_keys.is_empty() || self.secondaries.iter().any(|index| index.rule.unique)
    }

    /// Whether documents have rows that only their bodies name: entries in indexes, and unique rows.
    pub(crate) fn has_rows_by_body(&self) -> bool {
        self.has_unique_rows()
            || self.rules.include_some()
            || !(self.composites.is_empty() && self.texts.is_empty() && self.vectors.is_empty())
            || self.secondaries.iter().any(|index| index.rule.has_entries())
    }

    /// The name of the index that a unique row belongs to.
    pub(crate) fn index_of_row(&self, row: &Key) -> String {
        let number = row.bytes.get(PREFIX_LEN..PREFIX_LEN + 4).map(|bytes| be_u64(bytes) as u32);
        let index = self.secondaries.iter().find(|index| Some(index.rule.number) == number);
        index.map_or_else(String::new, |index| index.rule.name.clone())
    }

    /// What its owner said.
    pub fn definition(&self) -> &ContainerDefinition {
        &self.row.definition
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.row.definition.name
    }

    /// How many slots it has.
    pub fn slots(&self) -> u32 {
        self.row.slots
    }

    /// The second of its last change.
    pub fn modified(&self) -> u64 {
        self.row.modified
    }

    /// Changes with every change of the definition.
    pub fn etag(&self) -> Etag {
        Etag::new(self.id, u16::MAX, self.row.revision)
    }

    /// Which generation of index entries is kept, and whether it is whole.
    pub fn index_state(&self) -> &IndexState {
        &self.row.index
    }

    /// The latest changes of the default, oldest first.
    pub fn ttl_history(&self) -> &[TtlChange] {
        &self.row.ttl_history
    }

    /// Whether a document that was read is still there: whoever holds it for a while asks again.
    pub fn shows(&self, record: &Record, now: Timestamp) -> bool {
        self.ttl().cuts(now).is_live(&record.life)
    }

    /// The same, for whoever holds something that was made of a document.
    pub fn lasts(&self, lifetime: &Lifetime, now: Timestamp) -> bool {
        self.ttl().cuts(now).is_live(&lifetime.0)
    }

    /// The rules about time to live, with what they leave behind. Not for front-ends: they see definitions.
    pub(crate) fn ttl(&self) -> &TtlPolicy {
        &self.row.ttl
    }

    /// One of its slots.
    pub(crate) fn shard(&self, slot: u32) -> Shard {
        Shard { container: self.id, slot: slot as u16 }
    }

    /// All of its slots, in the order of their hashes.
    pub(crate) fn shards(&self) -> impl Iterator<Item = Shard> + use<> {
        let container = self.id;
        (0..self.row.slots as u16).map(move |slot| Shard { container, slot })
    }

    /// Whether values at a path of property names are in the index.
    pub fn is_indexed(&self, path: &[PathStep<'_>]) -> bool {
        self.row.definition.indexing.mode != IndexingMode::None && self.rules.decide(path)
    }

    /// Where documents with this partition key live.
    pub fn locate(&self, key: &PartitionKey) -> Result<Partition> {
        let definition = &self.row.definition.partition_key;
        if key.0.len() < definition.paths.len() {
            return Err(Error::bad_request(
                "The partition key supplied in x-ms-partitionkey header has fewer components than defined in the \
                 the collection.",
            ));
        }
        if key.0.len() > definition.paths.len() {
            return Err(Error::bad_request(
                "Partition key provided either doesn't correspond to definition in the collection or doesn't match \
                 partition key field values specified in the document.",
            ));
        }
        Ok(self.partition_of(definition.place(key)))
    }

    pub(crate) fn partition_of(&self, hash: Epk) -> Partition {
        let slot = self.row.definition.partition_key.slot_of(&hash, self.row.slots);
        Partition { shard: self.shard(slot), hash }
    }

    /// The guard that refuses a write decided under another definition.
    pub(crate) fn guard(&self) -> Guard {
        Guard { key: keys::container(self.database, self.name()), expect: Expect::Version(self.version) }
    }
}

impl Partition {
    /// The number of its slot.
    pub fn slot(&self) -> u16 {
        self.shard.slot
    }
}
