//! `min` and `max` of a find: the part of an index that is looked at, as keys that documents are compared with.

use bson::{RawBson, RawDocument};

use crate::{
    call::Call,
    failure::{Failure, Result},
    filtering::Surroundings,
    indexes,
    namespace::Collection,
    service::to_raw,
    sort::SortPattern,
};

/// From a key, which belongs to it, up to a key, which does not.
pub struct IndexBounds {
    pattern: SortPattern,
    low: Option<Vec<RawBson>>,
    high: Option<Vec<RawBson>>,
}

impl IndexBounds {
    /// What a find says, if it says anything.
    pub fn parse(
        call: &Call<'_>,
        collection: Option<&Collection>,
        hint: Option<&str>,
    ) -> Result<Option<Self>> {
        let given = |name: &str| call.document(name).map(|bound| bound.filter(|bound| !bound.is_empty()));
        let (low, high) = (given("min")?, given("max")?);
        if low.is_none() && high.is_none() {
            return Ok(None);
        }
        let Some(hint) = hint else {
            return Err(Failure::new(
                51173,
                "When using min()/max() a hint of which index to use must be provided",
            ));
        };
        let Some(collection) = collection else { return Ok(None) };
        let shown = indexes::shown(collection);
        let index = shown.iter().find(|index| index.get_str("name").ok() == Some(hint));
        let key =
            to_raw(index.and_then(|index| index.get_document("key").ok()).unwrap_or(&bson::Document::new()));
        let bound = |bound: Option<&RawDocument>| -> Result<Option<Vec<RawBson>>> {
            let Some(bound) = bound else { return Ok(None) };
            let fields = bound.iter().collect::<std::result::Result<Vec<_>, _>>()?;
            let names = key.iter().collect::<std::result::Result<Vec<_>, _>>()?;
            if fields.len() != names.len() || fields.iter().zip(&names).any(|(a, b)| a.0 != b.0) {
                let message =
                    "The index specified with hint does not have the fields of min or max in its key";
                return Err(Failure::new(51174, message));
            }
            Ok(Some(fields.into_iter().map(|(_, value)| RawBson::from(value)).collect()))
        };
        let bounds = Self { pattern: SortPattern::parse(&key)?, low: bound(low)?, high: bound(high)? };
        Ok(Some(bounds))
    }

    /// Whether a document's key lies within.
    pub fn admits(&self, document: &RawDocument, surroundings: &Surroundings) -> Result<bool> {
        surroundings.with(|context| {
            let key = self.pattern.key(document, context)?;
            let compare = |bound: &[RawBson]| self.pattern.compare(&key, bound, context);
            Ok(self.low.as_ref().is_none_or(|low| compare(low).is_ge())
                && self.high.as_ref().is_none_or(|high| compare(high).is_lt()))
        })
    }
}
