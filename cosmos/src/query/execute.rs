//! Running a query: pages of living documents in, a page of rows out.
//!
//! How a query is divided into pages depends on what it does with its rows; there is a file for each way.

mod nearest;
mod ranked;
mod rows;
mod stream;
mod whole;
mod window;

use std::sync::Arc;

use mayfly_engine::{Container, Engine, HashRange, Merged, Timestamp, charge};
use mayfly_sql::{Context, Paging, Run};

use super::{
    access::{self, AccessPlan},
    part::PartFilter,
    request::{Request, failed},
    source::{Source, prefilter, reads_system},
    texts::RowTexts,
    token::Token,
};
use crate::{call::Call, error::ApiError, resource::SystemProperties};
use rows::Rows;

/// Documents taken from the engine at a time, at most.
const SCAN_ROWS: usize = 512;

/// The most a page of rows weighs.
const PAGE_BYTES_MAX: usize = 4 << 20;

/// How often a query is planned anew because its index changed under it.
const ATTEMPTS_MAX: usize = 4;

/// A page of rows.
pub struct RowPage {
    /// Each as JSON text.
    pub rows: RowTexts,
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
            let access =
                access::choose(self.engine, &container, plan, &self.scope, token.choice, self.now).await?;
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
        let page = Rows::new(container, self.rows_max, access.choice);
        let run = PageRun {
            engine: self.engine,
            container,
            request: self.request,
            scope: &self.scope,
            access: &access,
            reads_system: reads_system(plan),
            now: self.now,
        };
        // On the heap: these are large, and would be copied with each future around them.
        let page = match plan.paging() {
            Paging::Streaming => Box::pin(run.stream(token, page)).await?,
            Paging::Sorted | Paging::Grouped | Paging::Distinct => Box::pin(run.window(token, page)).await?,
            Paging::Whole => Box::pin(run.whole(token, page)).await?,
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
        let (engine, container, now, plan) = (self.engine, self.container, self.now, &self.request.plan);
        let entry_filter = PartFilter::new(plan, &access.entry_paths, now);
        let filter = prefilter(plan, now);
        let merged = if plan.merges_alike() { Merged::Alike } else { Merged::No };
        let system = self.reads_system.then(|| SystemProperties::new(engine, container));
        Source { engine, container, plan: access, now, system, entry_filter, filter, merged }
    }

    fn run(&self, progress: mayfly_sql::Progress) -> Result<Run<'_>, ApiError> {
        self.request.plan.resume(self.context(), progress).map_err(failed)
    }
}
