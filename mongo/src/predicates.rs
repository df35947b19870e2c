//! The filter language, as the engine asks for it: for partial indexes.

use bson::RawDocument;
use mayfly_engine::collection::{Predicate, Predicates};

/// Reads the filters of partial indexes.
pub struct Filters;

impl Predicates for Filters {
    fn compile(&self, _: &RawDocument) -> Result<Predicate, String> {
        Err("partial indexes are not there yet".into())
    }
}
