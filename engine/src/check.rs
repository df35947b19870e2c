//! The offline walk that proves a store: every entry has its record, every record its entries, and the sums
//! agree.
//!
//! It asks the same functions that write entries which ones a record should have, and compares with what is
//! there, in both directions. Expired documents that purge has not reached are like any others here. And it
//! compares the catalog in memory with the one that is stored.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use mayfly_storage::store::{KeyRange, Snapshot, Space};

use crate::{
    container::Container,
    definition::IndexingMode,
    engine::Engine,
    error::Result,
    index,
    keys::{CATALOG, DocumentKey, ERRANDS, Family, PREFIX_LEN, Shard, from_ordered, sequence_of},
    purge::Reach,
    record::{DueEntry, FeedEntry, Record},
    scan::each_row,
    ttl::{Life, OwnTtl},
};

/// What a check found.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Containers looked at.
    pub containers: usize,
    /// Records looked at.
    pub records: u64,
    /// Index, unique, feed and expiry entries looked at.
    pub entries: u64,
    /// Records and entries of purged documents that the store has not dropped yet.
    pub left: u64,
    /// What is wrong, the first [`PROBLEMS_MAX`] of it.
    pub problems: Vec<String>,
}

/// More than this says nothing new.
pub const PROBLEMS_MAX: usize = 100;

impl Report {
    /// Whether everything agrees.
    pub fn is_clean(&self) -> bool {
        self.problems.is_empty()
    }

    fn problem(&mut self, problem: String) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(problem);
        }
    }
}

impl Engine {
    /// Walks the whole store. For a store at rest: a running one may change between two looks.
    pub async fn check(&self) -> Result<Report> {
        let mut report = Report::default();
        for difference in self.catalog().differences().await? {
            report.problem(difference);
        }
        let containers = self.catalog().all_containers();
        let dropped = self.catalog().dropped().await?;
        let snapshot = self.store().snapshot().await?;
        for container in &containers {
            report.containers += 1;
            for shard in container.shards() {
                Walk { container, shard, snapshot: &*snapshot, report: &mut report }.run().await?;
            }
        }
        let known = containers.iter().map(|container| (container.id, container.slots()));
        let mut shards: Vec<_> = known
            .chain(dropped.into_iter().map(|(id, row)| (id, row.slots)))
            .flat_map(|(id, slots)| (0..slots).map(move |slot| Shard { container: id, slot: slot as u16 }))
            .chain([CATALOG, ERRANDS])
            .collect();
        shards.sort_unstable();
        for space in [Space::Small, Space::Large] {
            strangers(&*snapshot, space, &shards, &mut report).await?;
        }
        Ok(report)
    }
}

/// Keys that belong to no container: whatever lies between the slots that somebody owns. A store that keeps
/// slots apart shows of each gap only the first slot.
async fn strangers(
    snapshot: &dyn Snapshot,
    space: Space,
    shards: &[Shard],
    report: &mut Report,
) -> Result<()> {
    for (place, shard) in shards.iter().enumerate() {
        let Some(start) = shard.everything(space).end else { continue };
        let end = shards.get(place + 1).map(|next| next.everything(space).start);
        let gap = KeyRange { space, slot: shard.next().place(), start, end };
        if gap.is_empty() {
            continue;
        }
        each_row(snapshot, gap, &mut |key, _| {
            report.problem(format!("the key {} belongs to no container", hex(key)));
            Ok(())
        })
        .await?;
    }
    Ok(())
}

struct Walk<'a> {
    container: &'a Container,
    shard: Shard,
    snapshot: &'a dyn Snapshot,
    report: &'a mut Report,
}

/// What one slot should hold beside its records, by key.
type Expected = HashMap<Vec<u8>, Vec<u8>>;

impl Walk<'_> {
    async fn run(mut self) -> Result<()> {
        let indexed = self.indexed_documents().await?;
        let (expected, tally) = self.expected(&indexed).await?;
        self.compare(expected).await?;
        self.compare_tally(tally).await
    }

    /// The documents whose present version has index entries, according to the feed.
    async fn indexed_documents(&mut self) -> Result<HashSet<DocumentKey>> {
        let epoch = self.container.row.index.epoch;
        let mut indexed = HashSet::new();
        each_row(self.snapshot, self.shard.range(Family::Feed, &[]), &mut |_, value| {
            let entry = FeedEntry::decode(value)?;
            if entry.epoch == epoch {
                indexed.insert(entry.document);
            }
            Ok(())
        })
        .await?;
        Ok(indexed)
    }

    /// All entries that follow from the records, and the sums.
    async fn expected(&mut self, indexed: &HashSet<DocumentKey>) -> Result<(Expected, [i64; 2])> {
        let (container, shard) = (self.container, self.shard);
        let mut expected = Expected::new();
        let mut tally = [0, 0];
        let report = &mut *self.report;
        let reach = Reach::read(self.snapshot, shard).await?;
        each_row(self.snapshot, shard.range(Family::Record, &[]), &mut |key, value| {
            let document = DocumentKey::from_tail(&key[PREFIX_LEN..])?;
            let record = match Record::decode(value.clone()) {
                Ok(record) => record,
                Err(error) => {
                    report.problem(format!("the record {} cannot be read: {error}", hex(key)));
                    return Ok(());
                }
            };
            if reach.has_purged(&record.life, (record.lsn, record.ordinal), document.as_bytes()) {
                // It waits for the store to drop it.
                report.left += 1;
                return Ok(());
            }
            report.records += 1;
            tally[0] += 1;
            tally[1] += i64::from(record.size());
            let (hash, _) = document.parts()?;
            if container.partition_of(hash.clone()).shard != shard {
                report.problem(format!("the record {} is in the wrong slot", hex(key)));
            }
            let mut life = Vec::new();
            record.life.encode(&mut life);
            let is_indexed = indexed.contains(&document);
            if is_indexed {
                let entries = index::index_entries(container, shard, &document, record.body())?;
                for entry in entries.entries {
                    let value = entry.value(&life);
                    expected.insert(entry.key.bytes, value);
                }
                if !entries.fits {
                    report.problem(format!("the index is said to cover more than {} has", hex(key)));
                }
            }
            for key in index::expiry_keys(shard, &document, &record.life) {
                expected.insert(key.bytes, DueEntry::encoded(&record));
            }
            for key in index::secondary_keys(container, shard, &document, record.body())? {
                expected.insert(key.bytes, index::secondary_value(&document, &life));
            }
            for key in index::unique_keys(container, shard, &hash, record.body())? {
                let value = [&record.lsn.to_be_bytes(), document.as_bytes()].concat();
                if expected.insert(key.bytes, value).is_some() {
                    report.problem(format!("two documents share a unique key: {}", hex(document.as_bytes())));
                }
            }
            let epoch = if is_indexed { container.row.index.epoch } else { 0 };
            let entry = FeedEntry { epoch, size: record.size(), life: record.life.clone(), document };
            let key = shard.sequenced(Family::Feed, record.lsn, record.ordinal);
            expected.insert(key.bytes, entry.encode());
            Ok(())
        })
        .await?;
        Ok((expected, tally))
    }

    /// Every entry is expected, and every expected entry is there.
    async fn compare(&mut self, mut expected: Expected) -> Result<()> {
        let epoch = self.container.row.index.epoch;
        // With no index at all, nobody asks which epoch a version has its entries of.
        let no_index = self.container.definition().indexing.mode == IndexingMode::None;
        let ready = self.container.row.index.ready && !no_index;
        let reach = Reach::read(self.snapshot, self.shard).await?;
        let report = &mut *self.report;
        for family in [
            Family::Feed,
            Family::Expiry,
            Family::Date,
            Family::Index,
            Family::Composite,
            Family::Text,
            Family::Vector,
            Family::Unique,
            Family::Secondary,
            Family::SecondaryUnique,
        ] {
            let range = self.shard.range(family, &[]);
            each_row(self.snapshot, range, &mut |key, value: &Bytes| {
                let life = life_of(family, key, value);
                // Layout 3 did not say in which other queues the document stands.
                let is_unclear = is_due(family) && value.len() == DueEntry::SIZE_LEN && reach.leaves_rows();
                let may_be_left = is_unclear || life.is_some_and(|life| reach.may_have_left(&life));
                if !expected.contains_key(key) && may_be_left {
                    report.left += 1;
                    return Ok(());
                }
                report.entries += 1;
                let retired =
                    is_index(family) && key.get(PREFIX_LEN..PREFIX_LEN + 4) != Some(&epoch.to_be_bytes());
                let number =
                    key.get(PREFIX_LEN..PREFIX_LEN + 4).map(|bytes| crate::keys::be_u64(bytes) as u32);
                let of_dropped = matches!(family, Family::Secondary | Family::SecondaryUnique)
                    && number.is_some_and(|number| self.container.row.retired_indexes.contains(&number));
                if retired || of_dropped {
                    return Ok(());
                }
                match expected.remove(key) {
                    None => report.problem(format!("{family:?} entry without a record: {}", hex(key))),
                    Some(wanted) if wanted[..] == value[..] => {}
                    Some(wanted) if is_due(family) && wanted[..DueEntry::SIZE_LEN] == value[..] => {}
                    // A version that waits for the indexer keeps the epoch it was written under.
                    Some(wanted) if family == Family::Feed && !ready && wanted[4..] == value[4..] => {}
                    Some(_) => {
                        report.problem(format!("{family:?} entry disagrees with its record: {}", hex(key)))
                    }
                }
                if family == Family::Feed && sequence_of(key).is_err() {
                    report.problem(format!("a feed key cannot be read: {}", hex(key)));
                }
                Ok(())
            })
            .await?;
        }
        for key in expected.keys() {
            let family = Family::of(key).map_or("unknown".into(), |family| format!("{family:?}"));
            report.problem(format!("a record lacks its {family} entry: {}", hex(key)));
        }
        Ok(())
    }

    async fn compare_tally(&mut self, tally: [i64; 2]) -> Result<()> {
        let mut stored = [0, 0];
        for family in [Family::Counter, Family::Purged] {
            let row = self.snapshot.get(&self.shard.single(family)).await?;
            let counter = row.map(|row| mayfly_storage::store::Counter::decode(&row));
            match counter {
                Some(Some(counter)) => (0..2).for_each(|n| stored[n] += counter.tally[n]),
                Some(None) => self.report.problem(format!("the {family:?} row cannot be read")),
                None => {}
            }
        }
        if stored != tally {
            self.report.problem(format!(
                "container {} slot {}: the sums say {stored:?} documents and bytes, the records {tally:?}",
                self.shard.container, self.shard.slot
            ));
        }
        Ok(())
    }
}

/// What an entry says about the life of its document. One in a queue says when it ends by that, if no more.
fn life_of(family: Family, key: &[u8], value: &[u8]) -> Option<Life> {
    let life = match family {
        Family::Index | Family::Composite | Family::Text | Family::Vector => value,
        Family::Feed => value.get(FeedEntry::LIFE_AT..)?,
        Family::Secondary => return index::read_secondary_life(value).ok().map(|(_, life)| life),
        Family::Expiry | Family::Date => {
            if let Some((_, life)) = DueEntry::decode(value)?.version {
                return Some(life);
            }
            let deadline = (family == Family::Expiry).then_some(from_ordered(key.get(PREFIX_LEN..)?)?)?;
            let own = OwnTtl::Seconds(1);
            return Some(Life { ts: u64::try_from(deadline).ok()?.checked_sub(1)?, own, dates: Vec::new() });
        }
        _ => return None,
    };
    Life::decode(life).map(|(life, _)| life)
}

fn is_due(family: Family) -> bool {
    matches!(family, Family::Expiry | Family::Date)
}

fn is_index(family: Family) -> bool {
    matches!(family, Family::Index | Family::Composite | Family::Text | Family::Vector)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
