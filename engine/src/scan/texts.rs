//! What full-text indexes say about the texts of a container at one moment: how many there are, which ones have the
//! words, and how often.
//!
//! Everything is read from one snapshot with one `now`, the documents too, so that what is counted, what is found and
//! what is read are the same documents: the living ones.

use std::{cmp::Ordering, collections::BTreeMap};

use bytes::Bytes;
use mayfly_storage::store::{Direction, PageLimit};
use mayfly_value::text::{Occurrences, Totals, stem_key};

use super::{Content, Found, Opened, Place, ScanPage, each_row, row::DAMAGED};
use crate::{
    access::{Access, Across, HashRange, IndexAccess, IndexName, Reliance, ValueRange},
    clock::Timestamp,
    container::Container,
    engine::Engine,
    error::{Error, Result},
    keys::{DocumentKey, PREFIX_LEN, Shard},
    position::{Leg, Position},
    purge::Reach,
    record::Record,
    text::Tail,
    ttl::Life,
};

/// Entries of words that are kept at a time: about 100 MB with long ids.
const ENTRIES_MAX: usize = 500_000;

/// What is asked of a full-text index: texts that have one of these terms. A term is the stems of words in a row.
#[derive(Clone, Debug)]
pub struct TextQuestion {
    /// The index, by its place in the policy.
    pub index: u16,
    /// The terms.
    pub terms: Vec<Vec<String>>,
}

/// What a full-text index answers.
#[derive(Clone, Debug)]
pub struct TextAnswer {
    /// About all documents in scope.
    pub totals: Totals,
    /// The documents that have one of the terms, in the order of a scan of documents.
    pub matches: Vec<(DocumentPlace, Occurrences)>,
}

/// A document's place in a container; they are ordered as a scan of documents gives them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DocumentPlace {
    /// The slot.
    pub slot: u16,
    /// Its hash and id, as keys have them.
    pub document: Bytes,
}

/// A container at one moment, to be searched.
pub struct Search<'e> {
    pub(super) engine: &'e Engine,
    pub(super) opened: Opened,
    pub(super) within: HashRange,
}

impl Engine {
    /// Looks at the documents in `within`. The index must be of `epoch`, and whole.
    pub async fn search(
        &self,
        container: &Container,
        within: &HashRange,
        epoch: u32,
        now: Timestamp,
    ) -> Result<Search<'_>> {
        let opened = self.open(container, &Access::Records(within.clone()), now).await?;
        if opened.container.whole_index() != Some(epoch) {
            return Err(Error::IndexChanged);
        }
        Ok(Search { engine: self, opened, within: within.clone() })
    }
}

impl Search<'_> {
    /// Asks a full-text index. None if the answer would take too much memory.
    pub async fn texts(&self, question: &TextQuestion) -> Result<Option<TextAnswer>> {
        let hits = vec![0.0; question.terms.len()];
        let totals = Totals { documents: 0.0, words: 0.0, hits };
        let mut answer = TextAnswer { totals, matches: Vec::new() };
        let mut room = ENTRIES_MAX;
        for slot in self.within.slots(&self.opened.container) {
            let shard = self.opened.container.shard(u32::from(slot));
            self.count(shard, question.index, &mut answer.totals).await?;
            let mut lists = BTreeMap::new();
            for stem in question.terms.iter().flatten() {
                if lists.contains_key(stem.as_str()) {
                    continue;
                }
                let in_phrase = question.terms.iter().any(|term| term.len() > 1 && term.contains(stem));
                let Some(list) = self.list(shard, question.index, stem, in_phrase, &mut room).await? else {
                    return Ok(None);
                };
                lists.insert(stem.as_str(), list);
            }
            merge(slot, &question.terms, &lists, &mut answer);
        }
        self.engine.check_current(&self.opened.container).await?;
        Ok(Some(answer))
    }

    /// Counts documents and words.
    async fn count(&self, shard: Shard, index: u16, totals: &mut Totals) -> Result<()> {
        let (mut documents, mut words) = (0_u64, 0_u64);
        for range in self.of_stem(index, "").key_ranges(shard, self.epoch()) {
            each_row(&*self.opened.snapshot, range, &mut |_, value| {
                let (life, used) = Life::decode(value).ok_or(DAMAGED)?;
                if self.opened.cuts.is_live(&life) {
                    documents += 1;
                    words += value.get(used..).and_then(Tail::read).map_or(0, |tail| u64::from(tail.words));
                }
                Ok(())
            })
            .await?;
        }
        totals.documents += documents as f64;
        totals.words += words as f64;
        Ok(())
    }

    /// The living documents that have a word, by document. None if they are too many.
    async fn list(
        &self,
        shard: Shard,
        index: u16,
        stem: &str,
        with_places: bool,
        room: &mut usize,
    ) -> Result<Option<Vec<Posting>>> {
        let access = self.of_stem(index, stem);
        let start = PREFIX_LEN + access.index.prefix_len() + stem_key(stem).len();
        let mut list = Vec::new();
        for range in access.key_ranges(shard, self.epoch()) {
            each_row(&*self.opened.snapshot, range, &mut |key, value| {
                let (life, used) = Life::decode(value).ok_or(DAMAGED)?;
                if *room == 0 || !self.opened.cuts.is_live(&life) {
                    return Ok(());
                }
                *room -= 1;
                let tail = value.get(used..).and_then(Tail::read).ok_or(DAMAGED)?;
                let places = if with_places { tail.places().collect() } else { Vec::new() };
                let document = Bytes::copy_from_slice(key.get(start..).ok_or(DAMAGED)?);
                list.push(Posting { document, words: tail.words, times: tail.times(), places });
                Ok(())
            })
            .await?;
        }
        Ok((*room > 0).then_some(list))
    }

    fn of_stem(&self, index: u16, stem: &str) -> IndexAccess {
        IndexAccess {
            index: IndexName::Text(index),
            ranges: vec![ValueRange::one(stem_key(stem))],
            also: Vec::new(),
            within: self.within.clone(),
            relies: Reliance::Nothing,
            across: Across::SlotBySlot,
        }
    }

    pub(super) fn epoch(&self) -> u32 {
        self.opened.container.row.index.epoch
    }

    /// Reads documents that were found.
    pub async fn read(&self, documents: &[DocumentPlace]) -> Result<Vec<Found>> {
        let key = |place: &DocumentPlace| {
            let shard = self.opened.container.shard(u32::from(place.slot));
            Ok((shard, shard.record(&DocumentKey::from_tail(&place.document)?)))
        };
        let keys = documents.iter().map(key).collect::<Result<Vec<_>>>()?;
        let (shards, keys): (Vec<_>, Vec<_>) = keys.into_iter().unzip();
        let records = self.opened.snapshot.get_many(&keys).await?;
        let mut found = Vec::with_capacity(documents.len());
        for (((place, shard), key), record) in documents.iter().zip(shards).zip(keys).zip(records) {
            let Some(record) = record.map(Record::decode).transpose()? else {
                // Purge is ahead of this moment, and leaves rows for the store to drop.
                if Reach::read(&*self.opened.snapshot, shard).await?.leaves_rows() {
                    continue;
                }
                return Err(Error::Corrupt("an entry of a text or a vector has no record"));
            };
            let at = Place { leg: Leg::Main, index: None, key: key.bytes.into(), birth: None };
            found.push(Found { slot: place.slot, record, document: place.document.clone(), place: at });
        }
        self.engine.check_current(&self.opened.container).await?;
        Ok(found)
    }

    /// One page of all living documents in scope, as [`Engine::scan`] gives them.
    pub async fn scan(&self, position: Option<Position>, limit: PageLimit) -> Result<ScanPage> {
        let access = Access::Records(self.within.clone());
        let (page, next) = self.opened.walk(&access, Direction::Forward).page(position, limit, true).await?;
        self.engine.check_current(&self.opened.container).await?;
        let found = page.found.into_iter().filter_map(|row| {
            let Content::Record(record) = row.content else { return None };
            Some(Found { slot: row.slot, record, document: row.document, place: row.place })
        });
        Ok(ScanPage { found: found.collect(), next, scanned: page.scanned, refused: 0, refused_bytes: 0 })
    }
}

/// What one entry says.
struct Posting {
    document: Bytes,
    words: u32,
    times: u32,
    /// If they are needed.
    places: Vec<u32>,
}

/// Goes through the lists of a slot document by document, and counts how often each has each term.
fn merge(slot: u16, terms: &[Vec<String>], lists: &BTreeMap<&str, Vec<Posting>>, answer: &mut TextAnswer) {
    let mut heads: BTreeMap<&str, &[Posting]> =
        lists.iter().map(|(stem, list)| (*stem, list.as_slice())).collect();
    loop {
        let first = heads.values().filter_map(|list| list.first()).min_by(|a, b| a.document.cmp(&b.document));
        let Some(first) = first else { return };
        let (document, words) = (first.document.clone(), first.words);
        let mut here: BTreeMap<&str, &Posting> = BTreeMap::new();
        for (stem, list) in &mut heads {
            if let Some((posting, rest)) = list.split_first()
                && posting.document == document
            {
                here.insert(stem, posting);
                *list = rest;
            }
        }
        let times: Vec<u32> = terms.iter().map(|term| times_of(term, &here)).collect();
        if times.iter().any(|times| *times > 0) {
            for (hits, times) in answer.totals.hits.iter_mut().zip(&times) {
                *hits += f64::from(u8::from(*times > 0));
            }
            let place = DocumentPlace { slot, document };
            answer.matches.push((place, Occurrences { words, terms: times }));
        }
    }
}

/// How often a document has the words of a term in a row.
fn times_of(term: &[String], here: &BTreeMap<&str, &Posting>) -> u32 {
    let Some(words) = term.iter().map(|stem| here.get(stem.as_str())).collect::<Option<Vec<_>>>() else {
        return 0;
    };
    match words.split_first() {
        None => 0,
        Some((word, [])) => word.times,
        Some((first, rest)) => {
            let follows = |start: u32| {
                rest.iter().zip(1..).all(|(word, after)| {
                    let place = start.saturating_add(after);
                    word.places.binary_search_by(|known| known.cmp(&place)).is_ok()
                })
            };
            first.places.iter().filter(|start| follows(**start)).count() as u32
        }
    }
}

impl TextAnswer {
    /// What it says of a document, if it has one of the terms.
    pub fn of(&self, place: &DocumentPlace) -> Option<&Occurrences> {
        let found = self.matches.binary_search_by(|(known, _)| -> Ordering { known.cmp(place) }).ok()?;
        self.matches.get(found).map(|(_, occurrences)| occurrences)
    }
}

impl Found {
    /// Its place in the container.
    pub fn document_place(&self) -> DocumentPlace {
        DocumentPlace { slot: self.slot, document: self.document.clone() }
    }
}
