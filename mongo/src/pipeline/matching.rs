//! `$match`: documents that pass a filter.

use bson::RawDocument;

use super::{Operator, Parsed, Place, Provenance, Row, Run, Stage, StageDefinition};
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
    // Only whoever reads a collection can ask its index. A pipeline within another has the context of the one around it.
    if filter.mentions_text() && (!place.first || place.depth > 0) {
        bail!(17313, "$match with $text is only allowed as the first pipeline stage");
    }
    if filter.is_by_distance() {
        bail!(
            5626500,
            "$geoNear, $near, and $nearSphere are not allowed in this context, as these operators require sorting \
             geospatial data. If you do not need sort, consider using $geoWithin instead."
        );
    }
    Ok(Parsed::Stage(Box::new(Match(filter))))
}

struct Match(Filter);

impl Stage for Match {
    fn start<'a>(&'a self, run: Run<'a>) -> Box<dyn Operator + 'a> {
        Box::new(MatchOperator { filter: &self.0, run })
    }
}

struct MatchOperator<'a> {
    filter: &'a Filter,
    run: Run<'a>,
}

impl Operator for MatchOperator<'_> {
    fn push(&mut self, row: Row, out: &mut Vec<Row>) -> Result<()> {
        if self.filter.matches(&row, self.run.context)? {
            out.push(row);
        }
        Ok(())
    }

    fn push_ref(&mut self, document: &RawDocument, from: Provenance<'_>, out: &mut Vec<Row>) -> Result<()> {
        if self.filter.matches(document, self.run.context)? {
            out.push(from.row(document.to_owned()));
        }
        Ok(())
    }
}
