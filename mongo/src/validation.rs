//! Validators: which documents a collection takes.

use bson::{Bson, Document, RawDocument, doc};

use crate::{
    expression::Names,
    failure::{Failure, Result},
    filter::Filter,
    filtering::Surroundings,
    namespace::Collection,
    service::to_raw,
};

/// What a collection demands of its documents.
#[derive(Clone)]
pub struct Validator {
    filter: Filter,
    source: Document,
    /// Documents that were not valid before may stay so.
    moderate: bool,
}

/// Refuses a validator that cannot be one.
pub fn check(validator: &Document) -> Result<()> {
    Filter::parse(&to_raw(validator), &Names::default())?;
    Ok(())
}

impl Validator {
    /// The validator of a collection, if it has one that refuses anything.
    pub fn of(collection: &Collection) -> Result<Option<Self>> {
        let options = collection.options();
        let Ok(source) = options.get_document("validator") else { return Ok(None) };
        let level = options.get_str("validationLevel").unwrap_or("strict");
        if level == "off" || options.get_str("validationAction").ok() == Some("warn") {
            return Ok(None);
        }
        let filter = Filter::parse(&to_raw(source), &Names::default())?;
        Ok(Some(Self { filter, source: source.clone(), moderate: level == "moderate" }))
    }

    /// Refuses a document that is not valid. `before` is what it was, if it was there.
    pub fn admit(
        &self,
        surroundings: &Surroundings,
        before: Option<&RawDocument>,
        after: &RawDocument,
    ) -> Result<()> {
        if surroundings.matches(&self.filter, after)? {
            return Ok(());
        }
        if self.moderate
            && let Some(before) = before
            && !surroundings.matches(&self.filter, before)?
        {
            return Ok(());
        }
        let id = after.get("_id").ok().flatten().map(Bson::try_from).transpose()?.unwrap_or(Bson::Null);
        let operator = self.source.keys().next().cloned().unwrap_or_default();
        let details = doc! { "operatorName": operator, "specifiedAs": self.source.clone() };
        let info = doc! { "failingDocumentId": id, "details": details };
        Err(Failure::new(121, "Document failed validation").field("errInfo", info))
    }
}
