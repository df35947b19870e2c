//! `$match`: documents that pass a filter.

use super::{Parsed, Place, StageDefinition, each};
use crate::error::{Result, bail};
use crate::filter::Filter;
use crate::values::Ref;

pub(super) const STAGES: &[StageDefinition] =
    &[StageDefinition { name: "$match", help: "documents that pass a filter", parse }];

fn parse(_: &str, operand: Ref<'_>, place: Place<'_>) -> Result<Parsed> {
    let Ref::Document(filter) = operand else {
        bail!(15959, "the match filter must be an expression in an object")
    };
    let filter = Filter::parse(filter, place.names)?;
    Ok(each(move |document, context| Ok(filter.matches(&document, context)?.then_some(document))))
}
