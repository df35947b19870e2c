//! `$limit`, `$skip`, `$sample`, `$count`: how many documents.

use bson::RawDocumentBuf;

use super::{Operator, Parsed, Place, Row, Run, Stage, StageDefinition, options};
use crate::error::{Result, bail};
use crate::values::{Ref, as_double, as_integer, field, is_number, put, show};

pub(super) const STAGES: &[StageDefinition] = &[
    StageDefinition { name: "$limit", help: "the first documents", parse: parse_limit },
    StageDefinition { name: "$skip", help: "without the first documents", parse: parse_skip },
    StageDefinition { name: "$sample", help: "documents by chance", parse: parse_sample },
    StageDefinition { name: "$count", help: "how many documents", parse: parse_count },
];

fn parse_limit(_: &str, operand: Ref<'_>, _: Place<'_>) -> Result<Parsed> {
    let limit = match as_integer(operand) {
        Some(limit) => limit,
        None => {
            bail!(5107201, "invalid argument to $limit stage: Expected an integer: $limit: {}", show(operand))
        }
    };
    match usize::try_from(limit) {
        Ok(0) => bail!(15958, "the limit must be positive"),
        Ok(limit) => Ok(Parsed::Limit(limit)),
        Err(_) => bail!(
            5107201,
            "invalid argument to $limit stage: Expected a non-negative number in: $limit: {limit}"
        ),
    }
}

fn parse_skip(_: &str, operand: Ref<'_>, _: Place<'_>) -> Result<Parsed> {
    match as_integer(operand).map(usize::try_from) {
        Some(Ok(skip)) => Ok(Parsed::Stage(Box::new(Skip(skip)))),
        _ => bail!(
            5107200,
            "invalid argument to $skip stage: Expected a non-negative number in: $skip: {}",
            show(operand)
        ),
    }
}

/// Passes so many documents on.
pub(super) struct Limit(pub(super) usize);

impl Stage for Limit {
    fn start<'a>(&'a self, _: Run<'a>) -> Box<dyn Operator + 'a> {
        Box::new(LimitOperator(self.0))
    }
}

struct LimitOperator(usize);

impl Operator for LimitOperator {
    fn push(&mut self, row: Row, out: &mut Vec<Row>) -> Result<()> {
        if self.0 > 0 {
            self.0 -= 1;
            out.push(row);
        }
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.0 == 0
    }
}

struct Skip(usize);

impl Stage for Skip {
    fn start<'a>(&'a self, _: Run<'a>) -> Box<dyn Operator + 'a> {
        Box::new(SkipOperator(self.0))
    }
}

struct SkipOperator(usize);

impl Operator for SkipOperator {
    fn push(&mut self, row: Row, out: &mut Vec<Row>) -> Result<()> {
        match self.0.checked_sub(1) {
            Some(left) => self.0 = left,
            None => out.push(row),
        }
        Ok(())
    }
}

fn parse_sample(name: &str, operand: Ref<'_>, _: Place<'_>) -> Result<Parsed> {
    let Ref::Document(_) = operand else { bail!(28745, "the $sample stage specification must be an object") };
    let Ok(object) = options(name, operand, &["size"]) else {
        bail!(28748, "unrecognized option to $sample");
    };
    let size = match field(object, "size") {
        None => bail!(28749, "$sample stage must specify a size"),
        Some(size) if !is_number(size) => bail!(28746, "size argument to $sample must be a number"),
        Some(size) => as_double(size).unwrap_or(0.0),
    };
    if size < 0.0 {
        bail!(28747, "size argument to $sample must not be negative");
    }
    if size < 1.0 {
        bail!(28747, "size argument to $sample must be a positive integer");
    }
    Ok(Parsed::Stage(Box::new(Sample(size as usize))))
}

struct Sample(usize);

impl Stage for Sample {
    fn start<'a>(&'a self, run: Run<'a>) -> Box<dyn Operator + 'a> {
        Box::new(SampleOperator { size: self.0, seen: 0, kept: Vec::new(), bytes: 0, run })
    }
}

/// A reservoir: every document is as likely to stay.
struct SampleOperator<'a> {
    size: usize,
    seen: usize,
    kept: Vec<Row>,
    bytes: usize,
    run: Run<'a>,
}

impl Operator for SampleOperator<'_> {
    fn push(&mut self, row: Row, _: &mut Vec<Row>) -> Result<()> {
        self.seen += 1;
        if self.kept.len() < self.size {
            self.bytes += row.as_bytes().len();
            self.run.check_memory("$sample", self.bytes)?;
            self.kept.push(row);
            return Ok(());
        }
        let place = ((self.run.context.random)() * self.seen as f64) as usize;
        if let Some(kept) = self.kept.get_mut(place) {
            *kept = row;
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Vec<Row>) -> Result<()> {
        // Shuffled, so that the first ones are not those that came first.
        for last in (1..self.kept.len()).rev() {
            let place = ((self.run.context.random)() * (last + 1) as f64) as usize;
            self.kept.swap(last, place.min(last));
        }
        out.append(&mut self.kept);
        Ok(())
    }
}

fn parse_count(_: &str, operand: Ref<'_>, _: Place<'_>) -> Result<Parsed> {
    let Ref::String(name) = operand else { bail!(40156, "the count field must be a non-empty string") };
    if name.is_empty() {
        bail!(40157, "the count field must be a non-empty string");
    }
    if name.starts_with('$') {
        bail!(40158, "the count field cannot be a $-prefixed path");
    }
    if name.contains('\0') {
        bail!(40159, "the count field cannot contain a null byte");
    }
    if name.contains('.') {
        bail!(40160, "the count field cannot contain '.'");
    }
    if name == "_id" {
        bail!(9039800, "the count field cannot be '_id'");
    }
    Ok(Parsed::Stage(Box::new(Count(name.to_string()))))
}

struct Count(String);

impl Stage for Count {
    fn start<'a>(&'a self, _: Run<'a>) -> Box<dyn Operator + 'a> {
        Box::new(CountOperator { name: &self.0, count: 0 })
    }
}

struct CountOperator<'a> {
    name: &'a str,
    count: i64,
}

impl Operator for CountOperator<'_> {
    fn push(&mut self, _: Row, _: &mut Vec<Row>) -> Result<()> {
        self.count += 1;
        Ok(())
    }

    fn finish(&mut self, out: &mut Vec<Row>) -> Result<()> {
        if self.count > 0 {
            let mut document = RawDocumentBuf::new();
            put(&mut document, self.name, crate::values::integer(self.count));
            out.push(Row::made(document));
        }
        Ok(())
    }
}
