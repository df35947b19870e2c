//! Running a query: pages of living records in, a page of rows out.

use std::sync::Arc;

use mayfly_engine::{Container, Direction, Engine, Found, PageLimit, Position, Timestamp, charge};
use mayfly_sql::{Document, Run, Value};

use super::{
    access,
    request::{Request, failed, fingerprint},
    token::{ANCHORS_MAX, Token},
};
use crate::{call::Call, error::ApiError, resource};

/// Documents taken from the engine at a time.
const SCAN_ROWS: usize = 256;

/// The most a page of rows weighs.
const PAGE_BYTES_MAX: usize = 4 << 20;

/// Documents one page may look at before it answers with what it has.
const DOCUMENTS_MAX: usize = 200_000;

/// A page of rows.
pub struct RowPage {
    /// Each as JSON text.
    pub rows: Vec<Vec<u8>>,
    /// Where to go on; none at the end.
    pub next: Option<Token>,
    /// Documents looked at.
    pub scanned: usize,
    /// Their bytes.
    pub scanned_bytes: u64,
    /// Request units.
    pub charge: f64,
    /// A slot that was looked at, for the session token.
    pub slot: u16,
}

/// What a run needs to know.
pub struct Execution<'a> {
    engine: &'a Engine,
    container: &'a Arc<Container>,
    request: &'a Request,
    access: mayfly_engine::Access,
    rows_max: usize,
    now: Timestamp,
}

impl<'a> Execution<'a> {
    /// Prepares a query of `call` on `container`. A query of the whole container has to be asked for.
    pub fn new(
        call: &Call<'a>,
        container: &'a Arc<Container>,
        request: &'a Request,
        may_cross: bool,
    ) -> Result<Self, ApiError> {
        let hints = request.plan.hints();
        let (scope, pinned) = access::narrowed(container, hints, call.scope(container)?);
        if !pinned && !may_cross {
            return Err(ApiError::cross_partition_disabled());
        }
        Ok(Self {
            engine: call.engine,
            container,
            request,
            access: access::choose(container, hints, scope),
            rows_max: call.page_items()?,
            now: call.now,
        })
    }

    /// Runs the query from `token` on.
    pub async fn page(&self, token: Token) -> Result<RowPage, ApiError> {
        if self.request.plan.is_streaming() { self.stream(token).await } else { self.whole(token).await }
    }

    async fn scan(&self, position: Option<Position>) -> Result<(Vec<Found>, Option<Position>), ApiError> {
        let limit = PageLimit { rows: SCAN_ROWS, bytes: PAGE_BYTES_MAX };
        let page =
            self.engine.scan(self.container, &self.access, Direction::Forward, position, limit, self.now);
        let page = page.await?;
        Ok((page.found, page.next))
    }

    fn run(&self, token: &Token) -> Result<Run<'_>, ApiError> {
        self.request.plan.resume(self.request.context(self.now), token.progress).map_err(failed)
    }

    /// Every document gives its rows at once; the page ends between two rows.
    async fn stream(&self, token: Token) -> Result<RowPage, ApiError> {
        let mut page = Rows::new(self.rows_max);
        let mut at = token.position.clone();
        let mut skip = token.rows_of_document;
        let mut before = token.progress;
        loop {
            let (found, next) = self.scan(at.clone()).await?;
            // A run lives for one page of documents: rows borrow from it and are written before it ends.
            let mut run = self.run(&Token { progress: before, ..Token::default() })?;
            for found in &found {
                page.looks_at(found);
                let outcome = self.push(&mut run, found, &mut page, &mut skip)?;
                match outcome {
                    Pushed::All => {
                        at = Some(found.position());
                        before = run.progress();
                    }
                    Pushed::Some(rows) => {
                        let next = Token {
                            progress: before,
                            rows_of_document: rows,
                            position: at,
                            ..Token::default()
                        };
                        return Ok(page.ended(Some(next)));
                    }
                }
                if run.is_done() {
                    return Ok(page.ended(None));
                }
                if page.is_full() {
                    let next = Token { progress: before, position: at, ..Token::default() };
                    return Ok(page.ended(Some(next)));
                }
            }
            match next {
                None => {
                    drop(run);
                    return self.finish_stream(page, before);
                }
                next if page.scanned >= DOCUMENTS_MAX => {
                    let next = Token { progress: before, position: next, ..Token::default() };
                    return Ok(page.ended(Some(next)));
                }
                next => at = next,
            }
        }
    }

    /// A query that reads no documents has all its rows at the end.
    fn finish_stream(&self, mut page: Rows, progress: mayfly_sql::Progress) -> Result<RowPage, ApiError> {
        let run = self.run(&Token { progress, ..Token::default() })?;
        for row in run.finish().map_err(failed)? {
            page.add(&row);
        }
        Ok(page.ended(None))
    }

    /// Pushes one document and takes its rows, from the `skip`th on, as long as there is room.
    fn push(
        &self,
        run: &mut Run<'_>,
        found: &Found,
        page: &mut Rows,
        skip: &mut u32,
    ) -> Result<Pushed, ApiError> {
        let system = resource::system_properties(self.engine, self.container, found.slot, &found.record);
        let system: Vec<_> = system.iter().map(|(name, value)| (*name, value.borrow())).collect();
        let document = Document { body: found.record.body(), system: &system };
        let rows = run.push(&document).map_err(failed)?;
        let skipped = std::mem::take(skip) as usize;
        for (n, row) in rows.iter().enumerate().skip(skipped) {
            if page.is_full() {
                return Ok(Pushed::Some(n as u32));
            }
            page.add(row);
        }
        Ok(Pushed::All)
    }

    /// No row is known before the last document; later pages run the query again and go on where the last one ended.
    async fn whole(&self, token: Token) -> Result<RowPage, ApiError> {
        let mut page = Rows::new(self.rows_max);
        let mut run = self.run(&Token::default())?;
        let mut at = None;
        if self.request.plan.reads_documents() {
            loop {
                let (found, next) = self.scan(at).await?;
                for found in &found {
                    page.looks_at(found);
                    let system =
                        resource::system_properties(self.engine, self.container, found.slot, &found.record);
                    let system: Vec<_> = system.iter().map(|(name, value)| (*name, value.borrow())).collect();
                    let document = Document { body: found.record.body(), system: &system };
                    run.push(&document).map_err(failed)?;
                }
                match next {
                    Some(next) if !run.is_done() => at = Some(next),
                    _ => break,
                }
            }
        }
        let rows: Vec<_> = run.finish().map_err(failed)?.iter().map(text_of).collect();
        let start = match &token.anchors[..] {
            [] => 0,
            anchors => resume_after(&rows, anchors, token.progress.given as usize)
                .ok_or_else(ApiError::rows_changed)?,
        };
        let end = rows.len().min(start + self.rows_max);
        let bytes = rows[start..end].iter().scan(0, |sum, row| {
            let before = *sum;
            *sum += row.len();
            Some(before)
        });
        let end = start + bytes.take_while(|before| *before < PAGE_BYTES_MAX).count();
        let next = (end < rows.len()).then(|| Token {
            progress: mayfly_sql::Progress { skipped: 0, given: end as u64 },
            anchors: rows[..end].iter().rev().take(ANCHORS_MAX).map(|row| fingerprint(row)).collect(),
            ..Token::default()
        });
        rows.into_iter().skip(start).take(end - start).for_each(|row| page.add_text(row));
        Ok(page.ended(next))
    }
}

fn text_of(row: &Value<'_>) -> Vec<u8> {
    let mut text = Vec::new();
    row.write_json(&mut text);
    text
}

/// The place after the latest anchor that is still among the rows: of equal rows, the one nearest to where it was.
fn resume_after(rows: &[Vec<u8>], anchors: &[u64], given: usize) -> Option<usize> {
    anchors.iter().enumerate().find_map(|(back, anchor)| {
        let expected = given.checked_sub(back + 1)?;
        let same = rows.iter().enumerate().filter(|(_, row)| fingerprint(row) == *anchor);
        same.map(|(n, _)| n).min_by_key(|n| n.abs_diff(expected)).map(|n| n + 1)
    })
}

/// How much of a document's rows went into the page.
enum Pushed {
    All,
    /// So many; the page is full.
    Some(u32),
}

/// A page in the making.
struct Rows {
    rows: Vec<Vec<u8>>,
    rows_max: usize,
    bytes: usize,
    scanned: usize,
    scanned_bytes: u64,
    slot: u16,
}

impl Rows {
    fn new(rows_max: usize) -> Self {
        Self { rows: Vec::new(), rows_max, bytes: 0, scanned: 0, scanned_bytes: 0, slot: 0 }
    }

    /// Takes note of a document that is looked at.
    fn looks_at(&mut self, found: &Found) {
        self.scanned += 1;
        self.scanned_bytes += u64::from(found.record.size());
        self.slot = found.slot;
    }

    fn is_full(&self) -> bool {
        self.rows.len() >= self.rows_max || self.bytes >= PAGE_BYTES_MAX
    }

    fn add(&mut self, row: &Value<'_>) {
        self.add_text(text_of(row));
    }

    fn add_text(&mut self, text: Vec<u8>) {
        self.bytes += text.len();
        self.rows.push(text);
    }

    fn ended(self, next: Option<Token>) -> RowPage {
        let charge = charge::query(self.scanned, self.bytes as u64);
        RowPage {
            rows: self.rows,
            next,
            scanned: self.scanned,
            scanned_bytes: self.scanned_bytes,
            charge,
            slot: self.slot,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_resume(given: &[&str], now: &[&str], expected: Option<usize>) {
        let anchors: Vec<_> = given.iter().rev().map(|row| fingerprint(row.as_bytes())).collect();
        let rows: Vec<_> = now.iter().map(|row| row.as_bytes().to_vec()).collect();
        assert_eq!(resume_after(&rows, &anchors, given.len()), expected);
    }

    #[test]
    fn a_page_goes_on_after_the_last_row_that_is_left() {
        check_resume(&["0", "1", "2"], &["0", "1", "2", "3"], Some(3));
        check_resume(&["0", "1", "2"], &["2", "3"], Some(1));
        check_resume(&["0", "1", "2"], &["1", "3"], Some(1));
        check_resume(&["0", "1", "2"], &["a", "0", "1", "2", "3"], Some(4));
        check_resume(&["5", "5"], &["5", "5", "5"], Some(2));
        check_resume(&["0", "1", "2"], &["3", "4"], None);
    }
}
