//! Queries that sort, group or remove duplicates: a page is the lowest rows after the place where the last one ended.

use mayfly_engine::{Access, Position};
use mayfly_sql::{After, Document, Value, Window, WindowRun};

use super::{
    PAGE_BYTES_MAX, PageRun,
    rows::{Batch, Rows},
};
use crate::{
    error::ApiError,
    query::{
        access::AccessPlan,
        request::failed,
        source::{Item, Items, Source, is_system},
        token::{From, Token},
    },
};

/// Documents that are kept for their rows at most: they may keep what lies around them in memory, too.
const KEPT_MAX: usize = 1024;

impl PageRun<'_> {
    /// The rows after the place where the page before ended, in the order of the query, its groups or its values.
    pub(super) async fn window(&self, token: Token, page: Rows) -> Result<Rows, ApiError> {
        if let Some(by) = &self.access.by_vector
            && let Some(page) = self.nearest(by, &token, page.rows_max).await?
        {
            return Ok(page);
        }
        if self.access.serves_order {
            let start = match &token.from {
                From::Start => Some(None),
                From::Row(After::Place(place)) => self.source(self.access).position_of(place).map(Some),
                _ => None,
            };
            if let Some(start) = start {
                let mut ordered = Rows::new(self.container, page.rows_max, page.choice);
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
        start: Option<Position>,
        page: &mut Rows,
    ) -> Result<bool, ApiError> {
        let in_order = access.serves_order;
        let window = self.window_of(token, access, page.rows_max)?;
        let mut run = self.request.plan.run_window(self.context(), window).map_err(failed)?;
        let source = self.source(access);
        let mut kept = (in_order && self.may_keep(page)).then(Vec::new);
        self.feed(&source, start, page, &mut run, &mut kept).await?;
        let found = run.finish().map_err(failed)?;
        let by_index = matches!(access.access, Access::Index(_));
        if in_order && by_index && found.inexact {
            return Ok(false);
        }
        if found.lost {
            return Err(ApiError::rows_changed());
        }
        match kept {
            Some(kept) => {
                let number =
                    |row: &Value<'_>| if let Value::Int(n) = row { usize::try_from(*n).ok() } else { None };
                let rows = found.rows.iter().filter_map(|row| kept.get(number(row)?));
                page.add_documents(&source, rows);
            }
            None => page.add_all(&found.rows),
        }
        page.next_from(found.progress, found.next.map(|place| From::Row(After::Place(place))));
        Ok(true)
    }

    /// Which rows a page has.
    pub(super) fn window_of(
        &self,
        token: &Token,
        access: &AccessPlan,
        rows: usize,
    ) -> Result<Window, ApiError> {
        let after = match &token.from {
            From::Start => None,
            From::Row(after) => Some(after.clone()),
            _ => return Err(ApiError::invalid_continuation()),
        };
        let ties = self.access.ties(self.request.plan.hints());
        let (progress, in_order) = (token.progress, access.serves_order);
        Ok(Window { after, rows, bytes: PAGE_BYTES_MAX, progress, in_order, ties })
    }

    /// Whether the rows are documents that can be kept until they are written: few, and what the server adds to them is not
    /// asked about before.
    fn may_keep(&self, page: &Rows) -> bool {
        let (plan, hints) = (&self.request.plan, self.request.plan.hints());
        let Some(filter) = &hints.filter_reads else { return false };
        let mut read = hints.order.iter().map(|(path, _)| path).chain(filter);
        plan.sorts_documents()
            && self.wanted(page) <= KEPT_MAX
            && !hints.order.is_empty()
            && !read.any(|path| is_system(path))
    }

    /// Pushes documents until there are none left, or the page has all its rows. Those whose rows are taken are put into
    /// `kept`, if it is there.
    async fn feed(
        &self,
        source: &Source<'_>,
        start: Option<Position>,
        page: &mut Rows,
        run: &mut WindowRun<'_>,
        kept: &mut Option<Vec<Item>>,
    ) -> Result<(), ApiError> {
        let in_order = source.plan.serves_order;
        let mut batch =
            Batch::new(if in_order { self.wanted(page) } else { usize::MAX }, source.filter.is_some());
        let mut at = start;
        loop {
            let pulled = source.pull(at, batch.next()).await?;
            page.passes_over(&pulled);
            let Items { items, next, .. } = pulled;
            for item in items {
                page.looks_at(&item);
                match kept {
                    Some(kept) => {
                        let document = Document { body: item.body(), system: &[] };
                        let taken = run.taken();
                        run.push_known(&document, &item.tie, kept.len() as u32, item.size())
                            .map_err(failed)?;
                        if run.taken() > taken {
                            kept.push(item);
                        }
                    }
                    None => source
                        .with_document(&item, |document| run.push(document, &item.tie, item.times))
                        .map_err(failed)?,
                }
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
    pub(super) fn wanted(&self, page: &Rows) -> usize {
        let limit = self.request.plan.limit();
        let rows = limit.limit.map_or(page.rows_max, |limit| page.rows_max.min(limit as usize));
        rows.saturating_add(limit.offset as usize).saturating_add(1)
    }
}
