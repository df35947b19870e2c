//! The filter language and the kinds of indexes, as the engine asks for them.

use std::sync::Arc;

use bson::{DateTime, RawDocument};
use mayfly_engine::collection::{Derive, Fold, Predicate, Predicates};

use crate::{
    context::Context,
    expression::Names,
    failure::{Failure, Result},
    filter::Filter,
    indexes,
};

/// Reads the filters of partial indexes, and the definitions of those with a derived field or a collation.
pub struct Filters;

impl Predicates for Filters {
    fn compile(&self, filter: &RawDocument) -> std::result::Result<Predicate, String> {
        let filter = Filter::parse(filter, &Names::default()).map_err(|error| error.to_string())?;
        Ok(Arc::new(move |document| {
            // Nothing that depends on time or chance may stand in such a filter.
            let random = || 0.0;
            filter.matches(document, &Context::new(DateTime::from_millis(0), &random)).unwrap_or(false)
        }))
    }

    fn derive(&self, spec: &RawDocument) -> std::result::Result<Derive, String> {
        crate::derived::derive(spec)
    }

    fn fold(&self, spec: &RawDocument) -> std::result::Result<Fold, String> {
        let collation = indexes::collation(spec).ok_or("the index has no collation")?;
        Ok(Arc::new(move |value| collation.fold(value)))
    }
}

/// What such a filter may be made of.
const ALLOWED: &[&str] = &["$eq", "$exists", "$gt", "$gte", "$lt", "$lte", "$type", "$and", "$or", "$in"];

/// Refuses a filter that no partial index can have.
pub fn check(filter: &[u8]) -> Result<()> {
    let filter = RawDocument::from_bytes(filter)?;
    Filter::parse(filter, &Names::default())?;
    check_operators(filter)
}

fn check_operators(document: &RawDocument) -> Result<()> {
    for element in document.iter() {
        let (name, value) = element?;
        let name = name.as_str();
        let absent = name == "$exists" && matches!(value.as_bool(), Some(false));
        if name.starts_with('$') && (!ALLOWED.contains(&name) || absent) {
            let message = format!("Expression not supported in partial index: {name}");
            return Err(Failure::new(67, message));
        }
        match value {
            bson::RawBsonRef::Document(inner) => check_operators(inner)?,
            bson::RawBsonRef::Array(items) if name.starts_with('$') => {
                for item in items {
                    if let bson::RawBsonRef::Document(inner) = item? {
                        check_operators(inner)?;
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}
