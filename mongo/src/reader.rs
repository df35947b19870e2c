//! Reading documents: of a collection, of a container that Cosmos made, and inside of a transaction.
//!
//! A reader pulls pages from the engine and gives documents one by one, as MongoDB clients see them. In a transaction it
//! looks at the transaction's view and lays the transaction's own writes over it; those come last, in no order.

use std::{
    collections::{HashSet, VecDeque},
    ops::Deref,
    sync::Arc,
};

use bson::{RawBsonRef, RawDocument, RawDocumentBuf, raw::cstr};
use mayfly_engine::{
    Access, CollectionPage, CollectionRange, Container, Direction, DocumentId, Engine, HashRange, PageLimit,
    Position, Record, Timestamp, View,
};
use mayfly_value::partition::PartitionKey;
use tokio::task::JoinSet;

use crate::{
    capped::{Walk, is_capped},
    failure::Result,
    namespace::Collection,
    planner::Plan,
    service::Mongo,
    session::Txn,
};

/// A document and what names it.
#[derive(Clone, Debug)]
pub struct Found {
    /// Its id in the engine.
    pub id: DocumentId,
    /// Its logical partition.
    pub partition: PartitionKey,
    /// What clients see.
    pub document: Body,
}

/// A document that was read.
#[derive(Clone, Debug)]
pub enum Body {
    /// As the store holds it, without a copy.
    Stored(Record),
    /// As clients see it, and as the store holds it.
    Shown(RawDocumentBuf, Record),
    /// Made for the reader.
    Made(RawDocumentBuf),
}

impl Body {
    /// A copy to be changed.
    pub fn into_owned(self) -> RawDocumentBuf {
        match self {
            Self::Stored(record) => record.body().to_owned(),
            Self::Shown(document, _) | Self::Made(document) => document,
        }
    }

    /// What the store holds, if it does.
    pub fn record(&self) -> Option<&Record> {
        match self {
            Self::Stored(record) | Self::Shown(_, record) => Some(record),
            Self::Made(_) => None,
        }
    }
}

impl Deref for Body {
    type Target = RawDocument;

    fn deref(&self) -> &RawDocument {
        match self {
            Self::Stored(record) => record.body(),
            Self::Shown(document, _) | Self::Made(document) => document,
        }
    }
}

/// Documents in a page. Large enough to be quick, small enough to stop early.
const PAGE: PageLimit = PageLimit { rows: 1000, bytes: 4 << 20 };

/// The first page is small: many clients want one document.
const FIRST_PAGE: PageLimit = PageLimit { rows: 20, bytes: 1 << 20 };

/// Pages read before the next is read ahead: whoever wants a few documents has them by then.
const PAGES_ALONE: usize = 2;

/// Reads the documents of a plan.
pub struct Reader {
    container: Arc<Container>,
    txn: Option<Arc<Txn>>,
    stage: Stage,
    direction: Direction,
    ready: VecDeque<Found>,
    pages: usize,
    /// Documents given so far, where a plan may come to one twice.
    seen: Option<HashSet<DocumentId>>,
    own_writes: bool,
    /// Whether the next page is read while this one is worked on. Only for who takes all of them at once: what was read for
    /// later may have expired by then.
    reads_ahead: bool,
    ahead: JoinSet<mayfly_engine::Result<CollectionPage>>,
    /// Entries looked at, for those who explain.
    pub scanned: usize,
}

enum Stage {
    Ids(VecDeque<DocumentId>),
    Ranges { left: VecDeque<CollectionRange>, after: Option<Vec<u8>> },
    Foreign(Option<Position>),
    Written(Walk),
    End,
}

impl Reader {
    /// A reader of what a plan leaves.
    pub fn new(collection: &Collection, plan: &Plan, direction: Direction, txn: Option<Arc<Txn>>) -> Self {
        let ranges = |ranges: &[CollectionRange]| {
            let mut left: VecDeque<_> = ranges.iter().cloned().collect();
            if direction == Direction::Reverse {
                left = left.into_iter().rev().collect();
            }
            Stage::Ranges { left, after: None }
        };
        let stage = match plan {
            _ if !collection.container.is_collection() => Stage::Foreign(None),
            Plan::Scan if txn.is_none() && is_capped(collection) => {
                Stage::Written(Walk::new(collection.container.clone(), direction))
            }
            Plan::Scan => ranges(&[CollectionRange::all()]),
            Plan::Ids(ids) => Stage::Ids(ids.iter().cloned().collect()),
            Plan::IdRange(list) | Plan::Index { ranges: list, .. } => ranges(list),
        };
        let repeats = matches!(plan, Plan::Index { .. });
        Self {
            container: collection.container.clone(),
            txn,
            stage,
            direction,
            ready: VecDeque::new(),
            pages: 0,
            seen: repeats.then(HashSet::new),
            own_writes: false,
            reads_ahead: false,
            ahead: JoinSet::new(),
            scanned: 0,
        }
    }

    /// Reads the next page while the last one is worked on, from now on.
    pub fn read_ahead(&mut self) {
        self.reads_ahead = true;
    }

    /// The next document.
    pub async fn next(&mut self, mongo: &Mongo, now: Timestamp) -> Result<Option<Found>> {
        loop {
            if let Some(found) = self.ready.pop_front() {
                if self.seen.as_mut().is_some_and(|seen| !seen.insert(found.id.clone())) {
                    continue;
                }
                return Ok(Some(found));
            }
            if matches!(self.stage, Stage::End) {
                if !self.lay_own_writes() {
                    return Ok(None);
                }
                continue;
            }
            self.page(mongo, now).await?;
        }
    }

    /// Whether a document is there without asking the engine.
    pub fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    async fn page(&mut self, mongo: &Mongo, now: Timestamp) -> Result<()> {
        if self.pages > 0 {
            // Others get their turn, also where the store never waits.
            tokio::task::yield_now().await;
        }
        let limit = if self.pages == 0 { FIRST_PAGE } else { PAGE };
        self.pages += 1;
        let view = self.txn.as_ref().map(|txn| txn.view.clone());
        match &mut self.stage {
            Stage::Ids(ids) => {
                let Some(id) = ids.pop_front() else {
                    self.stage = Stage::End;
                    return Ok(());
                };
                self.scanned += 1;
                let record = mongo.engine.read_collection(&self.container, &id, view.as_ref(), now).await?;
                if let Some(record) = record {
                    let document = body_seen(&self.container, record);
                    self.push(id, mayfly_engine::collection::whole(), document);
                }
            }
            Stage::Ranges { left, after } => {
                let Some(range) = left.front() else {
                    self.stage = Stage::End;
                    return Ok(());
                };
                let step = Step {
                    container: self.container.clone(),
                    range: range.clone(),
                    direction: self.direction,
                    limit,
                    view,
                    now,
                };
                let page = match self.ahead.join_next().await {
                    Some(Ok(page)) => page?,
                    Some(Err(lost)) => return Err(mayfly_engine::Error::internal(lost.to_string()).into()),
                    None => step.walk(&mongo.engine, after.clone()).await?,
                };
                self.scanned += page.scanned;
                match page.next {
                    Some(next) => {
                        if self.reads_ahead && self.pages >= PAGES_ALONE {
                            let (engine, next) = (mongo.engine.clone(), next.clone());
                            let step = Step { limit: PAGE, ..step };
                            self.ahead.spawn(async move { step.walk(&engine, Some(next)).await });
                        }
                        *after = Some(next);
                    }
                    None => {
                        left.pop_front();
                        *after = None;
                    }
                }
                for (id, record) in page.found {
                    let document = body_seen(&self.container, record);
                    self.push(id, mayfly_engine::collection::whole(), document);
                }
            }
            Stage::Foreign(position) => {
                let access = Access::Records(HashRange::all());
                let scan =
                    mongo.engine.scan(&self.container, &access, self.direction, position.take(), limit, now);
                let page = scan.await?;
                self.scanned += page.scanned;
                match page.next {
                    Some(next) => *position = Some(next),
                    None => self.stage = Stage::End,
                }
                for found in page.found {
                    let id = found.record.body().get_str("id").unwrap_or_default();
                    let (id, key) = (DocumentId::text(id), &self.container.definition().partition_key);
                    let partition = key.extract(found.record.body()).map_err(mayfly_engine::Error::from)?;
                    let document = body_seen(&self.container, found.record);
                    self.push(id, partition, document);
                }
            }
            Stage::Written(walk) => {
                let found = walk.page(mongo, limit, now).await?;
                self.scanned += found.len();
                if found.is_empty() {
                    self.stage = Stage::End;
                }
                for found in found {
                    let Some(id) = found.record.body().get("_id")?.map(DocumentId::value) else { continue };
                    let document = body_seen(&self.container, found.record);
                    self.push(id, mayfly_engine::collection::whole(), document);
                }
            }
            Stage::End => {}
        }
        Ok(())
    }

    fn push(&mut self, id: DocumentId, partition: PartitionKey, document: Body) {
        let written = self.txn.as_ref().is_some_and(|txn| txn.written(self.container.id, &id).is_some());
        if !written {
            self.ready.push_back(Found { id, partition, document });
        }
    }

    /// Adds what the transaction has written itself; false if that was done.
    fn lay_own_writes(&mut self) -> bool {
        let Some(txn) = self.txn.as_ref().filter(|_| !self.own_writes) else { return false };
        for (id, document) in txn.writes_in(self.container.id) {
            if let Some(document) = document {
                let (partition, document) = (mayfly_engine::collection::whole(), Body::Made(document));
                self.ready.push_back(Found { id, partition, document });
            }
        }
        self.own_writes = true;
        true
    }
}

/// Where and how a page is read.
struct Step {
    container: Arc<Container>,
    range: CollectionRange,
    direction: Direction,
    limit: PageLimit,
    view: Option<View>,
    now: Timestamp,
}

impl Step {
    async fn walk(&self, engine: &Engine, after: Option<Vec<u8>>) -> mayfly_engine::Result<CollectionPage> {
        let Self { container, range, direction, limit, view, now } = self;
        engine
            .walk_collection(container, range, *direction, after.as_deref(), *limit, view.as_ref(), *now)
            .await
    }
}

/// A document as MongoDB clients see it, without a copy where it is stored so.
fn body_seen(container: &Container, record: Record) -> Body {
    match container.is_collection() {
        true => Body::Stored(record),
        false => Body::Shown(document_of(container, &record), record),
    }
}

/// A document as MongoDB clients see it: one that Cosmos made has its `id` as `_id`, in front.
pub fn document_of(container: &Container, record: &Record) -> RawDocumentBuf {
    let body = record.body();
    if container.is_collection() {
        return body.to_owned();
    }
    let mut document = RawDocumentBuf::new();
    document.append(cstr!("_id"), body.get_str("id").unwrap_or_default());
    // Where the NoSQL API shows what the server adds to an item: no field of it.
    let is_place = |name: &str, value| name == "_etag" && value == RawBsonRef::Null;
    for (name, value) in body.iter().map_while(std::result::Result::ok) {
        if name.as_str() != "_id" && !is_place(name.as_str(), value) {
            document.append(name, value);
        }
    }
    document
}

/// A document as it is stored: for Cosmos, with `_id` as its `id`.
pub fn body_of(container: &Container, document: &RawDocument) -> Result<RawDocumentBuf> {
    if container.is_collection() {
        return Ok(document.to_owned());
    }
    let Some(RawBsonRef::String(id)) = document.get("_id")? else {
        return Err(crate::failure::Failure::bad_value(
            "documents of a container that was made through the NoSQL API have a text as their _id",
        ));
    };
    let mut body = RawDocumentBuf::new();
    body.append(cstr!("id"), id);
    for element in document.iter() {
        let (name, value) = element?;
        if !["_id", "id"].contains(&name.as_str()) {
            body.append(name, value);
        }
    }
    Ok(body)
}
