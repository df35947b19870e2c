//! Running a query: pages of living documents in, a page of rows out.

use std::sync::Arc;

use mayfly_engine::{Access, Container, Engine, HashRange, PageLimit, Timestamp, charge};
use mayfly_sql::{After, Context, Paging, Run, Value, Window, WindowRun};

use super::{
    access::{self, AccessPlan, Reading},
    request::{Request, failed, fingerprint},
    source::{Item, Items, Source, prefilter, reads_system, text_of},
    token::{ANCHORS_MAX, From, Token},
};
use crate::{call::Call, error::ApiError};

/// Documents taken from the engine at a time, at most.
const SCAN_ROWS: usize = 512;

/// Documents taken at first where a few may be enough.
const FIRST_ROWS: usize = 16;

/// The most a page of rows weighs.
const PAGE_BYTES_MAX: usize = 4 << 20;

/// Documents one page may look at before it answers with what it has.
const DOCUMENTS_MAX: usize = 200_000;

/// How often a query is planned anew because its index changed under it.
const ATTEMPTS_MAX: usize = 4;

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
    /// How the documents were found.
    pub access: AccessPlan,
}

/// What a run needs to know.
pub struct Execution<'a> {
    engine: &'a Engine,
    container: &'a Arc<Container>,
    request: &'a Request,
    scope: HashRange,
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
        let (scope, pinned) = access::narrowed(container, request.plan.hints(), call.scope(container)?);
        if !pinned && !may_cross {
            return Err(ApiError::cross_partition_disabled());
        }
        Ok(Self::over(call.engine, container, request, scope, call.page_items()?, call.now))
    }

    /// Prepares a query of the documents in `scope`, with pages of at most `rows_max` rows.
    pub fn over(
        engine: &'a Engine,
        container: &'a Arc<Container>,
        request: &'a Request,
        scope: HashRange,
        rows_max: usize,
        now: Timestamp,
    ) -> Self {
        Self { engine, container, request, scope, rows_max, now }
    }

    /// Runs the query from `token` on.
    pub async fn page(&self, token: Token) -> Result<RowPage, ApiError> {
        let mut attempts = 1;
        loop {
            let container = self.engine.container_by_id(self.container.id)?;
            let plan = &self.request.plan;
            let access = access::choose(self.engine, &container, plan, &self.scope, token.choice).await?;
            match self.page_by(&container, access, token.clone()).await {
                // A document was written, or a policy changed, that the choice did not reckon with.
                Err(error) if error.is_retry() && attempts < ATTEMPTS_MAX => attempts += 1,
                page => return page,
            }
        }
    }

    async fn page_by(
        &self,
        container: &Arc<Container>,
        access: AccessPlan,
        token: Token,
    ) -> Result<RowPage, ApiError> {
        let plan = &self.request.plan;
        let page = Rows::new(self.rows_max, access.choice);
        let run = PageRun {
            engine: self.engine,
            container,
            request: self.request,
            scope: &self.scope,
            access: &access,
            reads_system: reads_system(plan),
            now: self.now,
        };
        let page = match plan.paging() {
            Paging::Streaming => run.stream(token, page).await?,
            Paging::Sorted | Paging::Grouped | Paging::Distinct => run.window(token, page).await?,
            Paging::Whole => run.whole(token, page).await?,
        };
        let charge = charge::query(page.scanned, page.bytes as u64);
        Ok(RowPage {
            rows: page.rows,
            next: page.next,
            scanned: page.scanned,
            scanned_bytes: page.scanned_bytes,
            charge,
            slot: page.slot,
            access,
        })
    }
}

/// One page of a query with its access path.
struct PageRun<'a> {
    engine: &'a Engine,
    container: &'a Arc<Container>,
    request: &'a Request,
    scope: &'a HashRange,
    access: &'a AccessPlan,
    reads_system: bool,
    now: Timestamp,
}

impl PageRun<'_> {
    fn context(&self) -> Context<'_> {
        self.request.context(self.now)
    }

    fn source<'s>(&'s self, access: &'s AccessPlan) -> Source<'s> {
        let (engine, container, now) = (self.engine, self.container, self.now);
        Source { engine, container, plan: access, now, reads_system: self.reads_system }
    }

    fn run(&self, progress: mayfly_sql::Progress) -> Result<Run<'_>, ApiError> {
        self.request.plan.resume(self.context(), progress).map_err(failed)
    }

    /// Every document gives its rows at once; the page ends between two rows.
    async fn stream(&self, token: Token, mut page: Rows) -> Result<Rows, ApiError> {
        let (mut at, mut begun) = match token.from {
            From::Start => (None, None),
            From::Scan { position: Some(position), rows_of_document } if rows_of_document > 0 => {
                (Some(position.clone().again()), Some((position.to_bytes(), rows_of_document)))
            }
            From::Scan { position, .. } => (position, None),
            From::Row(_) | From::Rows(_) => return Err(ApiError::invalid_continuation()),
        };
        let filter = prefilter(&self.request.plan, self.now);
        let source = self.source(self.access);
        let mut before = token.progress;
        let mut batch = Batch::new(page.rows_max, filter.is_some());
        loop {
            let Items { items, next } = source.pull(at.clone(), batch.next()).await?;
            // A run lives for one batch of documents: rows borrow from it and are written before it ends.
            let mut run = self.run(before)?;
            for item in &items {
                page.looks_at(item);
                if !source.may_pass(item, filter.as_ref()) {
                    continue;
                }
                // The document that the page before ended in, if it is still there.
                let given = begun.take().filter(|(position, _)| item.position().to_bytes() == *position);
                let skip = given.map_or(0, |(_, rows)| rows);
                let pushed = source.with_document(item, |document| {
                    let rows = run.push(document).map_err(failed)?;
                    Ok::<_, ApiError>(page.take_from(&rows, skip))
                })?;
                if let Pushed::Some(rows_of_document) = pushed {
                    let from = From::Scan { position: Some(item.position()), rows_of_document };
                    return Ok(page.ended(before, Some(from)));
                }
                at = Some(item.position());
                before = run.progress();
                if run.is_done() {
                    return Ok(page.ended(before, None));
                }
                if page.is_full() {
                    return Ok(page.ended(before, Some(From::Scan { position: at, rows_of_document: 0 })));
                }
            }
            match next {
                None => {
                    // A query that reads no documents has all its rows at the end.
                    for row in run.finish().map_err(failed)? {
                        page.add(&row);
                    }
                    return Ok(page.ended(before, None));
                }
                position if page.scanned >= DOCUMENTS_MAX => {
                    return Ok(page.ended(before, Some(From::Scan { position, rows_of_document: 0 })));
                }
                position => at = position,
            }
        }
    }

    /// The rows after the place where the page before ended, in the order of the query, its groups or its values.
    async fn window(&self, token: Token, page: Rows) -> Result<Rows, ApiError> {
        if self.access.serves_order {
            let start = match &token.from {
                From::Start => Some(None),
                From::Row(After::Place(place)) => self.source(self.access).position_of(place).map(Some),
                _ => None,
            };
            if let Some(start) = start {
                let mut ordered = Rows::new(page.rows_max, page.choice);
                if self.collect(&token, self.access, start, &mut ordered).await? {
                    return Ok(ordered);
                }
            }
            let plain = self.access.without_index(self.scope);
            let mut page = page;
            self.collect(&token, &plain, None, &mut page).await?;
            return Ok(page);
        }
        let mut page = page;
        self.collect(&token, self.access, None, &mut page).await?;
        Ok(page)
    }

    /// Collects a window's rows; false if the walk's order turns out not to be that of the query.
    async fn collect(
        &self,
        token: &Token,
        access: &AccessPlan,
        start: Option<mayfly_engine::Position>,
        page: &mut Rows,
    ) -> Result<bool, ApiError> {
        let after = match &token.from {
            From::Start => None,
            From::Row(after) => Some(after.clone()),
            _ => return Err(ApiError::invalid_continuation()),
        };
        let in_order = access.serves_order;
        let window = Window {
            after,
            rows: page.rows_max,
            bytes: PAGE_BYTES_MAX,
            progress: token.progress,
            in_order,
            ties: self.access.ties(self.request.plan.hints()),
        };
        let mut run = self.request.plan.run_window(self.context(), window).map_err(failed)?;
        self.feed(access, start, page, &mut run, in_order).await?;
        let found = run.finish().map_err(failed)?;
        let by_index = matches!(access.access, Access::Index(_));
        if in_order && by_index && found.inexact {
            return Ok(false);
        }
        if found.lost {
            return Err(ApiError::rows_changed());
        }
        found.rows.iter().for_each(|row| page.add(row));
        page.next_from(found.progress, found.next.map(|place| From::Row(After::Place(place))));
        Ok(true)
    }

    /// Pushes documents until there are none left, or the page has all its rows.
    async fn feed(
        &self,
        access: &AccessPlan,
        start: Option<mayfly_engine::Position>,
        page: &mut Rows,
        run: &mut WindowRun<'_>,
        in_order: bool,
    ) -> Result<(), ApiError> {
        let filter = prefilter(&self.request.plan, self.now);
        let source = self.source(access);
        let mut batch = Batch::new(if in_order { self.wanted(page) } else { usize::MAX }, filter.is_some());
        let mut at = start;
        loop {
            let Items { items, next } = source.pull(at, batch.next()).await?;
            for item in &items {
                page.looks_at(item);
                if !source.may_pass(item, filter.as_ref()) {
                    continue;
                }
                source.with_document(item, |document| run.push(document, &item.tie)).map_err(failed)?;
                if run.is_done() {
                    return Ok(());
                }
            }
            match next {
                Some(next) => at = Some(next),
                None => return Ok(()),
            }
        }
    }

    /// Rows that a walk in order has to come by: those of the page, and one more to know that there is one.
    fn wanted(&self, page: &Rows) -> usize {
        let limit = self.request.plan.limit();
        let rows = limit.limit.map_or(page.rows_max, |limit| page.rows_max.min(limit as usize));
        rows.saturating_add(limit.offset as usize).saturating_add(1)
    }

    /// No row is known before the last document; later pages run the query again and go on where the last one ended.
    async fn whole(&self, token: Token, mut page: Rows) -> Result<Rows, ApiError> {
        let rows = self.all_rows(&mut page).await?;
        let start = match &token.from {
            From::Start => 0,
            From::Rows(anchors) => resume_after(&rows, anchors, token.progress.given as usize)
                .ok_or_else(ApiError::rows_changed)?,
            _ => return Err(ApiError::invalid_continuation()),
        };
        let end = rows.len().min(start + page.rows_max);
        let bytes = rows[start..end].iter().scan(0, |sum, row| {
            let before = *sum;
            *sum += row.len();
            Some(before)
        });
        let end = start + bytes.take_while(|before| *before < PAGE_BYTES_MAX).count();
        let anchors = rows[..end].iter().rev().take(ANCHORS_MAX).map(|row| fingerprint(row));
        let from = (end < rows.len()).then(|| From::Rows(anchors.collect()));
        rows.into_iter().skip(start).take(end - start).for_each(|row| page.add_text(row));
        Ok(page.ended(mayfly_sql::Progress { skipped: 0, given: end as u64 }, from))
    }

    async fn all_rows(&self, page: &mut Rows) -> Result<Vec<Vec<u8>>, ApiError> {
        let plan = &self.request.plan;
        let counted = match (&self.access.reading, &self.access.access) {
            (Reading::DocumentCount, _) => {
                Some(self.engine.count_documents(self.container, self.scope, self.now).await?)
            }
            (Reading::EntryCount, Access::Index(index)) => {
                Some(self.engine.count_entries(self.container, index, self.now).await?)
            }
            _ => None,
        };
        if let Some(count) = counted {
            let context = self.context();
            let rows = plan.counted(&context, count).map_err(failed)?;
            return Ok(rows.iter().map(text_of).collect());
        }
        let source = self.source(self.access);
        let mut run = self.run(mayfly_sql::Progress::default())?;
        let mut push = |items: Vec<Item>, page: &mut Rows| {
            for item in &items {
                page.looks_at(item);
                source.with_document(item, |document| run.push(document).map(|_| ())).map_err(failed)?;
            }
            Ok::<_, ApiError>(run.is_done())
        };
        if let Reading::Ends(_) = self.access.reading {
            push(source.ends().await?, page)?;
        } else if plan.reads_documents() {
            let filter = prefilter(plan, self.now);
            let limit = PageLimit { rows: SCAN_ROWS, bytes: PAGE_BYTES_MAX };
            let mut at = None;
            loop {
                let Items { mut items, next } = source.pull(at, limit).await?;
                let before = items.len();
                items.retain(|item| source.may_pass(item, filter.as_ref()));
                page.scanned += before - items.len();
                match (push(items, page)?, next) {
                    (false, Some(next)) => at = Some(next),
                    _ => break,
                }
            }
        }
        Ok(run.finish().map_err(failed)?.iter().map(text_of).collect())
    }
}

/// How many documents to ask for next: as many as the page may need, then more and more while the filter lets few pass.
struct Batch {
    rows: usize,
}

impl Batch {
    fn new(wanted: usize, filters: bool) -> Self {
        let rows = if filters && wanted < SCAN_ROWS { wanted.max(FIRST_ROWS) } else { wanted };
        Self { rows: rows.clamp(1, SCAN_ROWS) }
    }

    fn next(&mut self) -> PageLimit {
        let rows = self.rows;
        self.rows = (rows * 2).min(SCAN_ROWS);
        PageLimit { rows, bytes: PAGE_BYTES_MAX }
    }
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
    choice: u8,
    bytes: usize,
    scanned: usize,
    scanned_bytes: u64,
    slot: u16,
    next: Option<Token>,
}

impl Rows {
    fn new(rows_max: usize, choice: u8) -> Self {
        let (bytes, scanned, scanned_bytes, slot) = (0, 0, 0, 0);
        Self { rows: Vec::new(), rows_max, choice, bytes, scanned, scanned_bytes, slot, next: None }
    }

    /// Takes note of a document that is looked at.
    fn looks_at(&mut self, item: &Item) {
        self.scanned += 1;
        self.scanned_bytes += item.size() as u64;
        self.slot = item.slot();
    }

    fn is_full(&self) -> bool {
        self.rows.len() >= self.rows_max || self.bytes >= PAGE_BYTES_MAX
    }

    /// Takes a document's rows, from the `skip`th on, as long as there is room.
    fn take_from(&mut self, rows: &[Value<'_>], skip: u32) -> Pushed {
        for (n, row) in rows.iter().enumerate().skip(skip as usize) {
            if self.is_full() {
                return Pushed::Some(n as u32);
            }
            self.add(row);
        }
        Pushed::All
    }

    fn add(&mut self, row: &Value<'_>) {
        self.add_text(text_of(row));
    }

    fn add_text(&mut self, text: Vec<u8>) {
        self.bytes += text.len();
        self.rows.push(text);
    }

    fn next_from(&mut self, progress: mayfly_sql::Progress, from: Option<From>) {
        self.next = from.map(|from| Token { choice: Some(self.choice), progress, from });
    }

    fn ended(mut self, progress: mayfly_sql::Progress, from: Option<From>) -> Self {
        self.next_from(progress, from);
        self
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
