//! Where a result comes from: how long the document lives that it was made of.
//!
//! Results are kept for a client that fetches them in batches. A result that stands for one document leaves with it, at its
//! second, so it carries what decides that. One that was made of many (a group, a count) is of the time it was read.

use std::sync::Arc;

use mayfly_engine::{Container, Lifetime, Record, Timestamp};

use crate::service::Mongo;

/// The document that a result stands for.
#[derive(Clone, Debug)]
pub struct Origin {
    container: Arc<Container>,
    lifetime: Lifetime,
}

impl Origin {
    /// The origin of what is made of a document of this container.
    pub fn of(container: &Arc<Container>, record: &Record) -> Self {
        Self { container: container.clone(), lifetime: record.lifetime() }
    }
}

/// Says what has expired since it was read, by the rules of now.
#[derive(Default)]
pub struct Judge {
    /// When reading began: what is read and given at once need not be looked at again.
    began: Option<Timestamp>,
    /// The containers as they are at a time.
    seen: Vec<Arc<Container>>,
    at: Option<Timestamp>,
}

impl Judge {
    /// Of what was read at a time; without one, of what is read when the first is asked for.
    pub fn since(began: Timestamp) -> Self {
        Self { began: Some(began), ..Self::default() }
    }

    /// Whether the document is still there.
    pub fn shows(&mut self, origin: &Origin, mongo: &Mongo, now: Timestamp) -> bool {
        !self.is_later(now) || self.fresh(&origin.container, mongo, now).lasts(&origin.lifetime, now)
    }

    /// The same for a record of this container.
    pub fn shows_record(
        &mut self,
        container: &Arc<Container>,
        record: &Record,
        mongo: &Mongo,
        now: Timestamp,
    ) -> bool {
        !self.is_later(now) || self.fresh(container, mongo, now).shows(record, now)
    }

    fn is_later(&mut self, now: Timestamp) -> bool {
        *self.began.get_or_insert(now) != now
    }

    /// A container as it is now; as it was, if it is gone.
    fn fresh<'a>(
        &'a mut self,
        container: &'a Arc<Container>,
        mongo: &Mongo,
        now: Timestamp,
    ) -> &'a Container {
        if self.at != Some(now) {
            self.seen.clear();
            self.at = Some(now);
        }
        let place = match self.seen.iter().position(|seen| seen.id == container.id) {
            Some(place) => place,
            None => {
                let fresh = mongo.engine.container_by_id(container.id);
                self.seen.push(fresh.unwrap_or_else(|_| container.clone()));
                self.seen.len() - 1
            }
        };
        self.seen.get(place).unwrap_or(container)
    }
}
