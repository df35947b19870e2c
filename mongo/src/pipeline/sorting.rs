//! `$sort`: documents in order, or the first few of them.

use super::{Operator, Parsed, Place, Row, Run, Stage, StageDefinition};
use crate::error::{Result, bail};
use crate::sort::SortPattern;
use crate::values::{Ref, Value, fields};

pub(super) const STAGES: &[StageDefinition] =
    &[StageDefinition { name: "$sort", help: "in order, within the memory limit", parse }];

fn parse(_: &str, operand: Ref<'_>, _: Place<'_>) -> Result<Parsed> {
    let Ref::Document(pattern) = operand else {
        bail!(15973, "the $sort key specification must be an object")
    };
    if fields(pattern).next().is_none() {
        bail!(15976, "$sort stage must have at least one sort key");
    }
    Ok(Parsed::Sort(Sort { pattern: SortPattern::parse(pattern)?, limit: None }))
}

/// An order, and how many documents of it matter.
pub(crate) struct Sort {
    pub(crate) pattern: SortPattern,
    pub(crate) limit: Option<usize>,
}

impl Stage for Sort {
    fn start<'a>(&'a self, run: Run<'a>) -> Box<dyn Operator + 'a> {
        Box::new(SortOperator { sort: self, run, held: Vec::new(), bytes: 0 })
    }
}

struct SortOperator<'a> {
    sort: &'a Sort,
    run: Run<'a>,
    held: Vec<(Vec<Value>, Row)>,
    bytes: usize,
}

impl SortOperator<'_> {
    fn order(&mut self) {
        let (pattern, context) = (&self.sort.pattern, self.run.context);
        self.held.sort_by(|a, b| pattern.compare(&a.0, &b.0, context));
    }
}

/// Beyond twice the limit and this many, those that cannot win are dropped.
const SLACK: usize = 256;

impl Operator for SortOperator<'_> {
    fn push(&mut self, row: Row, _: &mut Vec<Row>) -> Result<()> {
        let key = self.sort.pattern.key(&row, self.run.context)?;
        self.bytes += 2 * row.as_bytes().len();
        self.held.push((key, row));
        if let Some(limit) = self.sort.limit
            && self.held.len() > limit.saturating_mul(2).saturating_add(SLACK)
        {
            self.order();
            self.held.truncate(limit);
            self.bytes = self.held.iter().map(|(_, row)| 2 * row.as_bytes().len()).sum();
        }
        self.run.check_memory("$sort", self.bytes)
    }

    fn finish(&mut self, out: &mut Vec<Row>) -> Result<()> {
        self.order();
        let limit = self.sort.limit.unwrap_or(usize::MAX);
        out.extend(self.held.drain(..).take(limit).map(|(_, row)| row));
        Ok(())
    }
}
