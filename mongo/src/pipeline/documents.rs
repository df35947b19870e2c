//! `$documents`: documents written into the pipeline.

use bson::RawDocumentBuf;

use super::{Parsed, Place, StageDefinition};
use crate::context::Context;
use crate::error::{Result, bail};
use crate::expression::Expression;
use crate::values::{Ref, Value, items};

pub(super) const STAGES: &[StageDefinition] =
    &[StageDefinition { name: "$documents", help: "documents written into the pipeline", parse }];

/// An expression that gives an array of documents.
pub(crate) struct Documents(Expression);

fn parse(_: &str, operand: Ref<'_>, place: Place<'_>) -> Result<Parsed> {
    if !place.first {
        bail!(40602, "$documents is only valid as the first stage in a pipeline.");
    }
    Ok(Parsed::Source(Documents(Expression::parse(operand, place.names)?)))
}

impl Documents {
    pub(crate) fn evaluate(&self, context: &Context<'_>) -> Result<Vec<RawDocumentBuf>> {
        let Some(Value::Array(list)) = self.0.evaluate(&RawDocumentBuf::new(), context)? else {
            bail!(5858203, "an array is expected");
        };
        items(&list)
            .map(|item| match item {
                Ref::Document(document) => Ok(document.to_owned()),
                _ => bail!(40228, "'newRoot' expression must evaluate to an object"),
            })
            .collect()
    }
}
