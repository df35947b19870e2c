//! `$bucketAuto`: groups of about equal size, with boundaries from the documents.

use bson::RawDocumentBuf;

use super::bucket::{grouping, output};
use super::group::Field;
use super::{Operator, Parsed, Place, Row, Run, Stage, StageDefinition};
use crate::error::{NOT_IMPLEMENTED, Result, bail};
use crate::expression::{Env, Expression};
use crate::values::{Ref, Value, as_integer, fields, is_number, put, type_name};

pub(super) const STAGES: &[StageDefinition] =
    &[StageDefinition { name: "$bucketAuto", help: "groups of equal size (without `granularity`)", parse }];

struct BucketAuto {
    group_by: Expression,
    buckets: usize,
    fields: Vec<Field>,
}

fn parse(_: &str, operand: Ref<'_>, place: Place<'_>) -> Result<Parsed> {
    let Ref::Document(object) = operand else {
        bail!(
            40240,
            "The argument to $bucketAuto must be an object, but found type: {}.",
            type_name(operand)
        );
    };
    let (mut group_by, mut buckets, mut out) = (None, None, None);
    for (name, value) in fields(object) {
        match name {
            "groupBy" => group_by = Some(grouping(value, place.names, 40239)?),
            "buckets" if !is_number(value) => {
                bail!(
                    40241,
                    "The $bucketAuto 'buckets' field must be a numeric value, but found type: {}.",
                    type_name(value)
                )
            }
            "buckets" => match as_integer(value).filter(|count| i32::try_from(*count).is_ok()) {
                Some(count) if count > 0 => buckets = Some(count as usize),
                Some(_) => bail!(40243, "The $bucketAuto 'buckets' field must be greater than 0"),
                None => {
                    bail!(40242, "The $bucketAuto 'buckets' field must be representable as a 32-bit integer")
                }
            },
            "output" => out = Some(value),
            "granularity" => match value {
                Ref::String(_) => bail!(NOT_IMPLEMENTED, "$bucketAuto with 'granularity' is not supported"),
                _ => bail!(40261, "The $bucketAuto 'granularity' field must be a string"),
            },
            _ => bail!(40245, "Unrecognized option to $bucketAuto: {name}."),
        }
    }
    // An output without fields counts, as no output does.
    let asked = out.filter(|out| out.as_document().is_none_or(|out| !out.is_empty()));
    let fields = output(asked, place.names, 40244)?;
    let (Some(group_by), Some(buckets)) = (group_by, buckets) else {
        bail!(40246, "$bucketAuto requires 'groupBy' and 'buckets' to be specified");
    };
    Ok(Parsed::Stage(Box::new(BucketAuto { group_by, buckets, fields })))
}

impl Stage for BucketAuto {
    fn start<'a>(&'a self, run: Run<'a>) -> Box<dyn Operator + 'a> {
        Box::new(BucketAutoOperator { stage: self, run, held: Vec::new(), bytes: 0 })
    }
}

struct BucketAutoOperator<'a> {
    stage: &'a BucketAuto,
    run: Run<'a>,
    held: Vec<(Value, RawDocumentBuf)>,
    bytes: usize,
}

impl Operator for BucketAutoOperator<'_> {
    fn push(&mut self, row: Row, _: &mut Vec<Row>) -> Result<()> {
        let key = self.stage.group_by.evaluate(&row, self.run.context)?.unwrap_or(Value::Null);
        self.bytes += row.as_bytes().len() + 64;
        self.held.push((key, row.document));
        self.run.check_memory("$bucketAuto", self.bytes)
    }

    fn finish(&mut self, out: &mut Vec<Row>) -> Result<()> {
        let context = self.run.context;
        let same = |a: &Value, b: &Value| context.equal(a.as_raw_bson_ref(), b.as_raw_bson_ref());
        self.held.sort_by(|a, b| context.compare(a.0.as_raw_bson_ref(), b.0.as_raw_bson_ref()));
        // At least so many in each; what is left over goes to the first ones.
        let (count, buckets) = (self.held.len(), self.stage.buckets);
        let size = ((count as f64 / buckets as f64).round() as usize).max(1);
        let mut rest = self.held.as_slice();
        let mut made = Vec::new();
        while !rest.is_empty() {
            let last_bucket = made.len() + 1 == buckets;
            let mut end = if last_bucket { rest.len() } else { size.min(rest.len()) };
            // Equal keys stay together.
            while let (Some((last, _)), Some((next, _))) =
                (end.checked_sub(1).and_then(|at| rest.get(at)), rest.get(end))
            {
                if !same(last, next) {
                    break;
                }
                end += 1;
            }
            let (bucket, after) = rest.split_at(end);
            made.push(bucket);
            rest = after;
        }
        for (at, bucket) in made.iter().enumerate() {
            let (Some((low, _)), Some((high, _))) = (bucket.first(), bucket.last()) else { continue };
            let next = made.get(at + 1).and_then(|next| next.first()).map(|(key, _)| key);
            let mut bounds = RawDocumentBuf::new();
            put(&mut bounds, "min", low.clone());
            put(&mut bounds, "max", next.unwrap_or(high).clone());
            let mut document = RawDocumentBuf::new();
            put(&mut document, "_id", bounds);
            for field in &self.stage.fields {
                let mut accumulator = (field.make)();
                for (_, member) in *bucket {
                    accumulator.add(&mut Env::new(member, context))?;
                }
                put(&mut document, &field.name, accumulator.value(context)?);
            }
            out.push(Row::made(document));
        }
        Ok(())
    }
}
