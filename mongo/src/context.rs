//! What an evaluation may know besides the document: the time, chance, a collation and variables.
//!
//! Nothing in the semantics reads a clock or makes up randomness; both come in here, so a test or a replay
//! gets the same answers again.

use std::cmp::Ordering;

use bson::{DateTime, RawBson, RawDocument, RawDocumentBuf, Timestamp};

use crate::collation::Collation;
use crate::text::TextIndex;
use crate::values::{META, Ref, field};

/// The surroundings of one evaluation.
#[derive(Clone)]
pub struct Context<'a> {
    /// `$$NOW`: the same for the whole operation.
    pub now: DateTime,
    /// `$$CLUSTER_TIME`, where there is one.
    pub cluster_time: Option<Timestamp>,
    /// A number from 0 (included) to 1 (excluded), for `$rand`, `$sample` and `$sampleRate`.
    pub random: &'a (dyn Fn() -> f64 + Sync),
    /// How strings compare; none is by bytes.
    pub collation: Option<&'a Collation>,
    /// The values of the variables given with the operation (`let`), by name.
    pub variables: Vec<(String, RawBson)>,
    /// `$$USER_ROLES`.
    pub user_roles: Option<RawBson>,
    /// Scores of a text search or distances of a `$geoNear`, for `$meta`.
    pub metadata: Option<RawDocumentBuf>,
    /// What `$text` searches.
    pub(crate) text: Option<&'a TextIndex>,
    /// The most memory that one stage may hold, in bytes.
    pub memory_max: usize,
}

/// MongoDB's limit for a stage.
pub const STAGE_MEMORY_MAX: usize = 100 * 1024 * 1024;

impl<'a> Context<'a> {
    /// A context without variables.
    pub fn new(now: DateTime, random: &'a (dyn Fn() -> f64 + Sync)) -> Context<'a> {
        Context {
            now,
            cluster_time: None,
            random,
            collation: None,
            variables: Vec::new(),
            user_roles: None,
            metadata: None,
            text: None,
            memory_max: STAGE_MEMORY_MAX,
        }
    }

    /// A score or the like of a document: what came with it, or with the evaluation.
    pub(crate) fn meta(&self, document: &RawDocument, name: &str) -> Option<RawBson> {
        let own = field(document, META).and_then(|metadata| metadata.as_document());
        let metadata = own.or(self.metadata.as_deref())?;
        field(metadata, name).map(RawBson::from)
    }

    /// Compares two values in the total order, strings by the collation.
    pub fn compare(&self, a: Ref<'_>, b: Ref<'_>) -> Ordering {
        match self.collation {
            None => mayfly_value::order::compare(mayfly_value::Order::Mongo, a, b),
            Some(collation) => collation.compare(a, b),
        }
    }

    /// Whether two values are the same to a query.
    pub fn equal(&self, a: Ref<'_>, b: Ref<'_>) -> bool {
        self.compare(a, b) == Ordering::Equal
    }
}
