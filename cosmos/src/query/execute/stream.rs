//! Queries that give every document's rows at once.
//!
//! As in the service, a page has rows of one partition key range, and every range has a page: also one
//! without rows. Not so where OFFSET leaves rows out: the service leaves such a query to the client, whose
//! pages are those of the rows that it gives. The rows of a range come in the order in which their documents
//! were made, where those are few (`Engine::scan_by_birth`).

use mayfly_engine::{PageLimit, Position};

use super::{
    PageRun, SCAN_ROWS,
    rows::{Batch, Pushed, Rows},
};
use crate::{
    error::ApiError,
    query::{
        request::failed,
        source::{Items, access_slots},
        token::{From, Token},
    },
};

/// Documents one page may look at before it answers with what it has.
const DOCUMENTS_MAX: usize = 200_000;

/// Documents that are taken at a time in the order of birth, where those that were taken first did not fill
/// the page.
const BIRTHS_MAX: usize = 10_000;

/// Their bytes.
const BIRTHS_BYTES_MAX: usize = 16 << 20;

impl PageRun<'_> {
    /// Every document gives its rows at once; the page ends between two rows.
    pub(super) async fn stream(&self, token: Token, mut page: Rows) -> Result<Rows, ApiError> {
        let (mut at, mut begun) = match token.from {
            From::Start => (None, None),
            From::Scan { position: Some(position), rows_of_document } if rows_of_document > 0 => {
                (Some(position.clone().again()), Some((position.to_bytes(), rows_of_document)))
            }
            From::Scan { position, .. } => (position, None),
            From::Row(_) | From::Rows(_) => return Err(ApiError::invalid_continuation()),
        };
        let source = self.source(self.access);
        let slots = access_slots(self.container, &self.access.access);
        page.slot = at.as_ref().map(Position::slot).or(slots.first().copied()).unwrap_or_default();
        let by_range = self.reads_documents() && self.request.plan.limit().offset == 0;
        let next_range = slots.iter().find(|slot| **slot > page.slot).filter(|_| by_range);
        let next_range = next_range.map(|slot| Position::start_of(*slot));
        let mut before = token.progress;
        let mut batch = Batch::new(page.rows_max, source.filter.is_some());
        let mut births = PageLimit { rows: page.rows_max.max(SCAN_ROWS), bytes: BIRTHS_BYTES_MAX };
        let gives_rows = source.gives_rows(&self.request.plan);
        loop {
            let pulled = match self.reads_documents() {
                true => source.pull_unordered(at, batch.next(), births).await?,
                false => source.pull(at, batch.next()).await?,
            };
            births.rows = BIRTHS_MAX;
            page.passes_over(&pulled);
            if gives_rows {
                page.make_room(pulled.items.iter().take(page.rows_max));
            }
            let Items { items, next, .. } = pulled;
            // A run lives for one batch of documents: rows borrow from it and are written before it ends.
            let mut run = self.run(before)?;
            for item in &items {
                if by_range && item.slot() != page.slot {
                    return Ok(page.ended(before, next_range.map(scan_from)));
                }
                page.looks_at(item);
                // The document that the page before ended in, if it is still there.
                let given = begun.take().filter(|(position, _)| item.position().to_bytes() == *position);
                let skip = given.map_or(0, |(_, rows)| rows);
                let pushed = if gives_rows && skip == 0 {
                    if run.gives() {
                        page.add_by(|out| source.write_row(item, out));
                    }
                    Pushed::All
                } else {
                    source.with_document(item, |document| {
                        let rows = run.push(document).map_err(failed)?;
                        Ok::<_, ApiError>(page.take_from(&rows, skip))
                    })?
                };
                if let Pushed::Some(rows_of_document) = pushed {
                    let from = From::Scan { position: Some(item.position()), rows_of_document };
                    return Ok(page.ended(before, Some(from)));
                }
                before = run.progress();
                if run.is_done() {
                    return Ok(page.ended(before, None));
                }
                if page.is_full() {
                    return Ok(page.ended(before, Some(scan_from(item.position()))));
                }
            }
            match next {
                None => {
                    // A query that reads no documents has all its rows at the end.
                    for row in run.finish().map_err(failed)? {
                        page.add(&row);
                    }
                    return Ok(page.ended(before, next_range.map(scan_from)));
                }
                Some(position)
                    if page.walked >= DOCUMENTS_MAX || by_range && position.slot() != page.slot =>
                {
                    return Ok(page.ended(before, Some(scan_from(position))));
                }
                position => at = position,
            }
        }
    }

    fn reads_documents(&self) -> bool {
        self.request.plan.reads_documents()
    }
}

/// Goes on after a position.
fn scan_from(position: Position) -> From {
    From::Scan { position: Some(position), rows_of_document: 0 }
}
