//! ORDER BY VectorDistance by a vector index: its codes tell every distance within bounds, and only documents that can be
//! among the nearest are read.
//!
//! Documents are read in the order of how near they can be at most. Once there are as many rows as the page needs, each of
//! them at least as near as any document that is left can be, the others need not be looked at. So the rows are those of
//! a comparison with all vectors; the codes decide what that costs.

use std::{cmp::Reverse, collections::BinaryHeap};

use mayfly_engine::{DocumentPlace, Neighbours};
use mayfly_sql::{After, Nearest};
use mayfly_value::vector::code::Nearness;

use super::{PageRun, rows::Rows};
use crate::{
    error::ApiError,
    query::{
        access::ByVector,
        request::failed,
        source::Item,
        token::{From, Token},
    },
};

/// Documents read at a time: about as many as ten rows take.
const READ_ROWS: usize = 16;

/// Reading a document by its place takes several times as long as meeting it in a walk over all of them. So many are
/// read in any case, and one in so many of all.
const READ_MAX: usize = 512;
const READ_PART: usize = 8;

impl PageRun<'_> {
    /// A page of the nearest rows. None if too many documents would have to be read, because the filter refuses most of
    /// them or because there are fewer vectors than rows: then all of them are walked through.
    pub(super) async fn nearest(
        &self,
        by: &ByVector,
        token: &Token,
        rows_max: usize,
    ) -> Result<Option<Rows>, ApiError> {
        let plan = &self.request.plan;
        let Some(Nearest { target, .. }) = plan.nearest(&self.request.settings) else {
            return Ok(None);
        };
        let window = self.window_of(token, self.access, rows_max)?;
        if matches!(window.after, Some(After::Digest(_))) {
            // The row that the page before ended with has to be found among all.
            return Ok(None);
        }
        let search = self.engine.search(self.container, self.scope, by.epoch, self.now).await?;
        let neighbours = search.vectors(by.index, &target).await?;
        let mut page = Rows::new(self.container, rows_max, self.access.choice);
        page.walked = neighbours.compared();
        let source = self.source(self.access);
        let mut run = plan.run_window(self.context(), window).map_err(failed)?;
        let mut approach = Approach::new(neighbours, self.wanted(&page));
        loop {
            let some = match approach.next() {
                Next::Read(some) => some,
                Next::Unknown => return Ok(None),
                Next::Enough => break,
            };
            let places: Vec<DocumentPlace> = some.iter().map(|(_, place)| place.clone()).collect();
            let mut some = some.iter();
            for document in search.read(&places).await? {
                let place = document.document_place();
                let item = Item::of(document);
                page.looks_at(&item);
                let before = run.taken();
                source.with_document(&item, |document| run.push(document, &item.tie, 1)).map_err(failed)?;
                // Documents come as they were asked for; some may be gone.
                let known = some.find(|(_, known)| *known == place);
                if let (true, Some((nearness, _))) = (run.taken() > before, known) {
                    approach.took(nearness);
                }
            }
        }
        let found = run.finish().map_err(failed)?;
        page.add_all(&found.rows);
        page.next_from(found.progress, found.next.map(|place| From::Row(After::Place(place))));
        Ok(Some(page))
    }
}

/// Which documents to read to have the nearest rows.
pub(super) struct Approach {
    neighbours: Neighbours,
    enough: Enough,
    /// How many more documents may be read.
    left: usize,
}

/// What to do next.
pub(super) enum Next {
    /// Read these.
    Read(Vec<(Nearness, DocumentPlace)>),
    /// Nothing: the nearest rows are among those that were read.
    Enough,
    /// Look at all documents: the nearest rows cost too much, or there are too few. Those without a distance come after
    /// them, and no index lists them.
    Unknown,
}

impl Approach {
    /// Until there are `wanted` rows.
    pub(super) fn new(neighbours: Neighbours, wanted: usize) -> Self {
        let left = READ_MAX.max(neighbours.compared() / READ_PART);
        Self { neighbours, enough: Enough::new(wanted), left }
    }

    pub(super) fn next(&mut self) -> Next {
        if self.neighbours.nearest().is_some_and(|nearest| self.enough.excludes(nearest)) {
            return Next::Enough;
        }
        let some: Vec<_> = self.neighbours.by_ref().take(READ_ROWS.min(self.left)).collect();
        self.left -= some.len();
        if some.is_empty() { Next::Unknown } else { Next::Read(some) }
    }

    /// A document that was read gave a row.
    pub(super) fn took(&mut self, nearness: &Nearness) {
        self.enough.take(nearness);
    }
}

/// How near the rows are, at least, that a page will have.
struct Enough {
    wanted: usize,
    /// The least near on top.
    low: BinaryHeap<Reverse<Low>>,
}

#[derive(PartialEq)]
struct Low(f64);

impl Eq for Low {}

impl PartialOrd for Low {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Low {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl Enough {
    fn new(wanted: usize) -> Self {
        Self { wanted, low: BinaryHeap::new() }
    }

    fn take(&mut self, nearness: &Nearness) {
        self.low.push(Reverse(Low(nearness.low)));
        if self.low.len() > self.wanted {
            self.low.pop();
        }
    }

    /// Whether a row that is no nearer than this cannot be among those wanted.
    fn excludes(&self, nearness: f64) -> bool {
        let least = self.low.peek().filter(|_| self.low.len() >= self.wanted);
        least.is_some_and(|Reverse(Low(least))| nearness < *least)
    }
}
