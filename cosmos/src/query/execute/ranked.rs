//! Rankings by full-text and vector indexes: they say how often each text has the terms and how near each vector can be,
//! and only documents that can be among the rows are read.
//!
//! By each score the best rows are those whose texts have the terms, by score; then those that have none, then those that
//! have no text, each in the order of documents. So documents are read in that order until there are as many rows as are
//! wanted; for a score of vectors, until none that is left can be nearer. The language ranks what it is given, as if it
//! had been given all.

use std::collections::HashMap;

use mayfly_engine::{DocumentPlace, Found, PageLimit, Search, TextAnswer, TextQuestion};
use mayfly_sql::{Nearest, PathStep, RankedRun, Ranking, TextScore};
use mayfly_value::{bson::RawBsonRef, path::Path};

use super::{
    PAGE_BYTES_MAX, PageRun, SCAN_ROWS,
    nearest::{Approach, Next},
    rows::Rows,
};
use crate::{
    error::ApiError,
    query::{
        access::{Ranks, VectorRank},
        request::failed,
        source::{Item, Source, text_of},
    },
};

/// Documents read at a time, at least: some may not pass the filter.
const READ_MIN: usize = 16;

impl PageRun<'_> {
    /// The rows of a ranking, all of them. None if there are too many texts to keep in mind.
    pub(super) async fn ranked(
        &self,
        ranks: &Ranks,
        page: &mut Rows,
    ) -> Result<Option<Vec<Vec<u8>>>, ApiError> {
        let plan = &self.request.plan;
        let Some(ranking) = plan.ranking() else { return Ok(None) };
        let texts = self.engine.search(self.container, self.scope, ranks.epoch, self.now).await?;
        let mut answers = Vec::with_capacity(ranking.scores.len());
        for (score, index) in ranking.scores.iter().zip(&ranks.indexes) {
            let (Some(score), Some(index)) = (score, index) else {
                answers.push(None);
                continue;
            };
            match texts.texts(&TextQuestion { index: *index, terms: score.terms.clone() }).await? {
                Some(answer) => answers.push(Some(answer)),
                None => return Ok(None),
            }
        }
        let totals = answers.iter().map(|answer| answer.as_ref().map(|answer| answer.totals.clone()));
        let run = plan.run_ranked(self.context(), totals.collect()).map_err(failed)?;
        let source = self.source(self.access);
        let mut feed = Feed { texts, answers, run, source, pushed: HashMap::new(), page };
        // Without a word in any text there are no scores, and rows are in the order of documents alone.
        let has_words = feed.answers.iter().flatten().all(|answer| answer.totals.words > 0.0);
        let nearest = plan.ranked_nearest(&self.request.settings);
        let mut is_whole = false;
        if let Some(wanted) = ranking.wanted.filter(|_| has_words) {
            is_whole = feed.nearest(&nearest, &ranks.vectors, wanted).await?;
            if is_whole {
                feed.best(&ranking, wanted).await?;
            }
        }
        if !is_whole {
            feed.all().await?;
        }
        Ok(Some(feed.run.finish().map_err(failed)?.iter().map(text_of).collect()))
    }
}

/// Documents on their way into a ranking.
struct Feed<'a, 'p> {
    texts: Search<'a>,
    answers: Vec<Option<TextAnswer>>,
    run: RankedRun<'p>,
    source: Source<'a>,
    /// What was pushed, and whether it gave a row.
    pushed: HashMap<DocumentPlace, bool>,
    page: &'a mut Rows,
}

/// A score for which there are fewer texts with the terms than rows are wanted.
struct Short {
    column: usize,
    path: Option<Path>,
    missing: usize,
    /// Rows with a text, and without one.
    filled: [usize; 2],
}

impl Short {
    /// Whether more rows without the terms can change the answer.
    fn is_open(&self) -> bool {
        self.filled[0] < self.missing
    }
}

impl Feed<'_, '_> {
    /// Pushes the nearest documents by each score of vectors: as many as give `wanted` rows. False if an index does not
    /// tell which these are.
    async fn nearest(
        &mut self,
        nearest: &[Option<Nearest>],
        indexes: &[VectorRank],
        wanted: usize,
    ) -> Result<bool, ApiError> {
        for (nearest, index) in nearest.iter().zip(indexes) {
            let (index, nearest) = match (index, nearest) {
                (VectorRank::OfText, _) => continue,
                (VectorRank::Index(index), Some(nearest)) => (*index, nearest),
                _ => return Ok(false),
            };
            let neighbours = self.texts.vectors(index, &nearest.target).await?;
            self.page.walked += neighbours.compared();
            let mut approach = Approach::new(neighbours, wanted);
            loop {
                let some = match approach.next() {
                    Next::Read(some) => some,
                    Next::Unknown => return Ok(false),
                    Next::Enough => break,
                };
                let new =
                    some.iter().map(|(_, place)| place).filter(|place| !self.pushed.contains_key(place));
                for found in self.texts.read(&new.cloned().collect::<Vec<_>>()).await? {
                    self.push(found)?;
                }
                let kept = some.iter().filter(|(_, place)| self.pushed.get(place) == Some(&true));
                kept.for_each(|(nearness, _)| approach.took(nearness));
            }
        }
        Ok(true)
    }

    /// Pushes all documents that were not pushed yet.
    async fn all(&mut self) -> Result<(), ApiError> {
        let mut at = None;
        loop {
            let page = self.texts.scan(at, whole_page()).await?;
            self.page.walked += page.scanned;
            for found in page.found {
                if !self.pushed.contains_key(&found.document_place()) {
                    self.push(found)?;
                }
            }
            match page.next {
                Some(next) => at = Some(next),
                None => return Ok(()),
            }
        }
    }

    /// Pushes the best documents by each score of texts: as many as give `wanted` rows.
    async fn best(&mut self, ranking: &Ranking, wanted: usize) -> Result<(), ApiError> {
        let mut short = Vec::new();
        for (column, score) in ranking.scores.iter().enumerate() {
            if score.is_none() {
                continue;
            }
            let kept = self.best_by(column, wanted).await?;
            if kept < wanted {
                let path = score.as_ref().and_then(path_of);
                short.push(Short { column, path, missing: wanted - kept, filled: [0, 0] });
            }
        }
        let mut at = None;
        while short.iter().any(Short::is_open) {
            let page = self.texts.scan(at, whole_page()).await?;
            self.page.walked += page.scanned;
            for found in page.found {
                self.fill(found, &mut short)?;
            }
            match page.next {
                Some(next) => at = Some(next),
                None => break,
            }
        }
        Ok(())
    }

    /// Pushes documents that have a score's terms, the best first, until they give `wanted` rows. How many they give.
    async fn best_by(&mut self, column: usize, wanted: usize) -> Result<usize, ApiError> {
        let Some(Some(answer)) = self.answers.get(column) else { return Ok(0) };
        let score = |text| answer.totals.score(text).unwrap_or_default();
        let mut order: Vec<(f64, DocumentPlace)> =
            answer.matches.iter().map(|(place, text)| (score(text), place.clone())).collect();
        order.sort_by(|(a, a_place), (b, b_place)| b.total_cmp(a).then_with(|| a_place.cmp(b_place)));
        let mut kept = 0;
        let mut rest = &order[..];
        while kept < wanted && !rest.is_empty() {
            let (some, after) = rest.split_at(rest.len().min((wanted - kept).clamp(READ_MIN, SCAN_ROWS)));
            rest = after;
            let places: Vec<DocumentPlace> = some.iter().map(|(_, place)| place.clone()).collect();
            kept += places.iter().filter(|place| self.pushed.get(place) == Some(&true)).count();
            let new: Vec<_> = places.into_iter().filter(|place| !self.pushed.contains_key(place)).collect();
            for found in self.texts.read(&new).await? {
                kept += usize::from(self.push(found)?);
            }
        }
        Ok(kept)
    }

    /// Pushes a document that has not a score's terms, where such are still needed.
    fn fill(&mut self, found: Found, short: &mut [Short]) -> Result<(), ApiError> {
        let place = found.document_place();
        let body = found.record.body();
        let mut needed = Vec::new();
        for score in short.iter_mut().filter(|score| score.is_open()) {
            let answer = self.answers.get(score.column).and_then(Option::as_ref);
            if answer.is_some_and(|answer| answer.of(&place).is_some()) {
                continue;
            }
            let value = score.path.as_ref().and_then(|path| path.get(body));
            let kind = usize::from(!matches!(value, Some(RawBsonRef::String(_))));
            if score.filled[kind] < score.missing {
                needed.push((kind, score));
            }
        }
        if needed.is_empty() {
            return Ok(());
        }
        let kept = match self.pushed.get(&place) {
            Some(kept) => *kept,
            None => self.push(found)?,
        };
        needed.into_iter().for_each(|(kind, score)| score.filled[kind] += usize::from(kept));
        Ok(())
    }

    /// Whether it gives a row.
    fn push(&mut self, found: Found) -> Result<bool, ApiError> {
        let place = found.document_place();
        let order = [&place.slot.to_be_bytes()[..], &place.document].concat();
        let known = self.answers.iter().map(|answer| answer.as_ref().and_then(|answer| answer.of(&place)));
        let known: Vec<_> = known.collect();
        let item = Item::of(found);
        self.page.looks_at(&item);
        let run = &mut self.run;
        let kept =
            self.source.with_document(&item, |document| run.push(document, &order, known)).map_err(failed)?;
        self.pushed.insert(place, kept);
        Ok(kept)
    }
}

fn whole_page() -> PageLimit {
    PageLimit { rows: SCAN_ROWS, bytes: PAGE_BYTES_MAX }
}

fn path_of(score: &TextScore) -> Option<Path> {
    let names: Option<Vec<&str>> = score
        .path
        .iter()
        .map(|step| match step {
            PathStep::Name(name) => Some(name.as_str()),
            PathStep::Item(_) => None,
        })
        .collect();
    Path::from_segments(names?)
}
