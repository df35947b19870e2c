//! Queries that sort, group or remove duplicates: a page is the lowest rows after the place where the last one ended.

use mayfly_engine::{Access, Position};
use mayfly_sql::{After, Window, WindowRun};

use super::{
    PAGE_BYTES_MAX, PageRun,
    rows::{Batch, Rows},
};
use crate::{
    error::ApiError,
    query::{
        access::AccessPlan,
        request::failed,
        source::Items,
        token::{From, Token},
    },
};

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
        self.feed(access, start, page, &mut run, in_order).await?;
        let found = run.finish().map_err(failed)?;
        let by_index = matches!(access.access, Access::Index(_));
        if in_order && by_index && found.inexact {
            return Ok(false);
        }
        if found.lost {
            return Err(ApiError::rows_changed());
        }
        page.add_all(&found.rows);
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

    /// Pushes documents until there are none left, or the page has all its rows.
    async fn feed(
        &self,
        access: &AccessPlan,
        start: Option<Position>,
        page: &mut Rows,
        run: &mut WindowRun<'_>,
        in_order: bool,
    ) -> Result<(), ApiError> {
        let source = self.source(access);
        let mut batch =
            Batch::new(if in_order { self.wanted(page) } else { usize::MAX }, source.filter.is_some());
        let mut at = start;
        loop {
            let pulled = source.pull(at, batch.next()).await?;
            page.passes_over(&pulled);
            let Items { items, next, .. } = pulled;
            for item in &items {
                page.looks_at(item);
                source
                    .with_document(item, |document| run.push(document, &item.tie, item.times))
                    .map_err(failed)?;
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
