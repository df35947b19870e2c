//! Capped collections: documents in the order in which they were written, of which the oldest make room for new ones, and
//! cursors that stay at the end and wait.
//!
//! The order is that of the engine's feed, so an update moves a document to the end. Room is made after a write, not with
//! it: a server that is killed in between makes it after the next.

use std::{collections::VecDeque, sync::Arc};

use mayfly_engine::{
    Access, Container, Direction, DocumentId, Found, HashRange, InvalidTtl, Operation, PageLimit, Position,
    Timestamp, collection::whole,
};

use crate::{
    call::integer,
    cursor::{Pull, Pulled, Source},
    failure::{Failure, Result},
    namespace::Collection,
    query::Query,
    service::{Mongo, to_raw},
};

/// How much a capped collection may hold.
struct Caps {
    bytes: u64,
    documents: u64,
}

fn caps(collection: &Collection) -> Option<Caps> {
    let options = to_raw(&collection.options());
    if !matches!(options.get_bool("capped"), Ok(true)) {
        return None;
    }
    let number = |name: &str| options.get(name).ok().flatten().and_then(integer).filter(|number| *number > 0);
    let most = |number: Option<i64>| number.map_or(u64::MAX, |number| number as u64);
    Some(Caps { bytes: most(number("size")), documents: most(number("max")) })
}

/// Whether the collection is capped.
pub fn is_capped(collection: &Collection) -> bool {
    collection.options().get_bool("capped").unwrap_or(false)
}

/// Documents removed in one go.
const PAGE: PageLimit = PageLimit { rows: 100, bytes: 4 << 20 };

/// Removes the oldest documents until the collection holds no more than it may.
pub async fn make_room(mongo: &Mongo, collection: &Collection, now: Timestamp) -> Result<()> {
    let Some(caps) = caps(collection) else { return Ok(()) };
    let (engine, container) = (&mongo.engine, &collection.container);
    loop {
        let live = engine.usage(container, now).await?.live;
        let (mut documents, mut bytes) = (live.documents, live.bytes);
        if documents <= caps.documents && bytes <= caps.bytes {
            return Ok(());
        }
        let access = Access::Writes(HashRange::all());
        let oldest = engine.scan(container, &access, Direction::Forward, None, PAGE, now).await?;
        for found in &oldest.found {
            // The newest stays, however large it is.
            if (documents <= caps.documents && bytes <= caps.bytes) || documents <= 1 {
                return Ok(());
            }
            let Some(id) = found.record.body().get("_id")?.map(DocumentId::value) else { continue };
            let delete = Operation::Delete { id, if_match: None };
            match engine.write(container, &whole(), delete, InvalidTtl::Ignore, now).await {
                // Somebody else, or its time, was faster.
                Ok(_) | Err(mayfly_engine::Error::NotFound(_)) => {}
                Err(error) => return Err(error.into()),
            }
            documents = documents.saturating_sub(1);
            bytes = bytes.saturating_sub(u64::from(found.record.size()));
        }
        if oldest.found.is_empty() {
            return Ok(());
        }
    }
}

/// A walk over documents in the order in which they were written.
pub struct Walk {
    container: Arc<Container>,
    direction: Direction,
    after: Option<Position>,
}

impl Walk {
    /// A walk over everything.
    pub fn new(container: Arc<Container>, direction: Direction) -> Self {
        Self { container, direction, after: None }
    }

    /// The next documents; none if there are none now.
    pub async fn page(&mut self, mongo: &Mongo, limit: PageLimit, now: Timestamp) -> Result<Vec<Found>> {
        let access = Access::Writes(HashRange::all());
        loop {
            let scan =
                mongo.engine.scan(&self.container, &access, self.direction, self.after.clone(), limit, now);
            let page = scan.await?;
            if let Some(last) = page.found.last() {
                self.after = Some(last.position());
                return Ok(page.found);
            }
            match page.next {
                Some(next) => self.after = Some(next),
                None => return Ok(Vec::new()),
            }
        }
    }
}

/// What a tailable cursor gives: what is there, and then what comes.
pub struct Tail {
    walk: Walk,
    query: Query,
    /// Whether a request for more waits for it.
    awaits: bool,
    /// Documents that were found and not given yet.
    ready: VecDeque<Found>,
    /// The last document that was found; once it is gone, what came after it may be gone too.
    last: Option<DocumentId>,
}

impl Tail {
    /// Follows what a query asks for.
    pub fn new(query: Query, container: Arc<Container>, awaits: bool) -> Self {
        let direction = if query.reverse { Direction::Reverse } else { Direction::Forward };
        Self { walk: Walk::new(container, direction), query, awaits, ready: VecDeque::new(), last: None }
    }
}

impl Source for Tail {
    fn pull<'a>(&'a mut self, mongo: &'a Mongo, now: Timestamp) -> Pull<'a> {
        Box::pin(async move {
            loop {
                // The cursor stays open, as in MongoDB, and there is nothing more for it.
                if self.query.limit == Some(0) {
                    return Ok(Pulled::Nothing);
                }
                let Some(found) = self.ready.pop_front() else {
                    if let Some(last) = &self.last {
                        let container = &self.walk.container;
                        if mongo.engine.read_collection(container, last, None, now).await?.is_none() {
                            return Err(Failure::new(
                                136,
                                "the cursor's place in the capped collection was deleted",
                            ));
                        }
                    }
                    self.ready = self.walk.page(mongo, PAGE, now).await?.into();
                    let Some(newest) = self.ready.back() else { return Ok(Pulled::Nothing) };
                    self.last = newest.record.body().get("_id")?.map(DocumentId::value);
                    continue;
                };
                let document = found.record.body();
                let Query { filter, projection, surroundings, skip, limit, .. } = &mut self.query;
                if !surroundings.matches(filter, document)? {
                    continue;
                }
                if *skip > 0 {
                    *skip -= 1;
                    continue;
                }
                if let Some(left) = limit {
                    *left -= 1;
                }
                return Ok(Pulled::Document(match projection {
                    Some(projection) => surroundings.with(|context| projection.apply(document, context))?,
                    None => document.to_owned(),
                }));
            }
        })
    }

    fn waits(&self) -> bool {
        true
    }

    fn is_waited_for(&self) -> bool {
        self.awaits
    }
}
