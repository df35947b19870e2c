//! `$bucket`: documents grouped by boundaries.

use bson::RawDocument;

use super::group::{Field, Group, Key, accumulated};
use super::sorting::Sort;
use super::{Parsed, Place, StageDefinition};
use crate::context::Context;
use crate::error::{Result, bail};
use crate::expression::{Expression, Names};
use crate::sort::SortPattern;
use crate::values::{Ref, Value, fields, items, put};
use bson::RawDocumentBuf;
use mayfly_value::Order;
use mayfly_value::order::type_rank;

pub(super) const STAGES: &[StageDefinition] =
    &[StageDefinition { name: "$bucket", help: "groups between boundaries", parse }];

/// The output of `$bucket` and `$bucketAuto`: a count, unless told otherwise.
pub(super) fn output(value: Option<Ref<'_>>, names: &Names, code: i32) -> Result<Vec<Field>> {
    match value {
        None => {
            let mut sum = RawDocumentBuf::new();
            put(&mut sum, "$sum", 1);
            Ok(vec![accumulated("count", Ref::Document(&sum), names)?])
        }
        Some(Ref::Document(object)) => {
            fields(object).map(|(name, value)| accumulated(name, value, names)).collect()
        }
        Some(_) => bail!(code, "the 'output' field must be an object"),
    }
}

/// An expression and not a constant.
pub(super) fn grouping(value: Ref<'_>, names: &Names, code: i32) -> Result<Expression> {
    match value {
        Ref::Document(object) if fields(object).next().is_some_and(|(name, _)| name.starts_with('$')) => {}
        Ref::String(path) if path.starts_with('$') => {}
        _ => bail!(code, "the 'groupBy' field must be defined as a $-prefixed path or an expression object"),
    }
    Expression::parse(value, names)
}

fn constant(value: Ref<'_>, names: &Names, code: i32) -> Result<Value> {
    let expression = Expression::parse(value, names)?;
    match expression.constant() {
        Some(value) => Ok(value.clone().unwrap_or(Value::Null)),
        None => bail!(code, "the values in $bucket must be constants"),
    }
}

fn parse(_: &str, operand: Ref<'_>, place: Place<'_>) -> Result<Parsed> {
    let Ref::Document(object) = operand else { bail!(40201, "Argument to $bucket stage must be an object") };
    let (mut group_by, mut boundaries, mut default, mut out) = (None, None, None, None);
    for (name, value) in fields(object) {
        match (name, value) {
            ("groupBy", value) => group_by = Some(grouping(value, place.names, 40202)?),
            ("boundaries", Ref::Array(list)) => {
                let values: Vec<_> =
                    items(list).map(|item| constant(item, place.names, 40191)).collect::<Result<_>>()?;
                boundaries = Some(values);
            }
            ("boundaries", _) => bail!(40200, "The $bucket 'boundaries' field must be an array"),
            ("default", value) => default = Some(constant(value, place.names, 40195)?),
            ("output", value) => out = Some(value),
            _ => bail!(40197, "Unrecognized option to $bucket: {name}."),
        }
    }
    let fields = output(out, place.names, 40196)?;
    let (Some(group_by), Some(boundaries)) = (group_by, boundaries) else {
        bail!(40198, "$bucket requires 'groupBy' and 'boundaries' to be specified.");
    };
    check(&boundaries, default.as_ref())?;
    let find = move |document: &RawDocument, context: &Context<'_>| {
        let value = group_by.evaluate(document, context)?.unwrap_or(Value::Null);
        let place = boundaries.partition_point(|bound| {
            context.compare(bound.as_raw_bson_ref(), value.as_raw_bson_ref()).is_le()
        });
        let found = if place < boundaries.len() {
            place.checked_sub(1).and_then(|at| boundaries.get(at))
        } else {
            None
        };
        match found.or(default.as_ref()) {
            Some(bound) => Ok(bound.clone()),
            None => bail!(
                7158303,
                "$bucket could not find a matching branch for an input, and no default was specified."
            ),
        }
    };
    let mut pattern = RawDocumentBuf::new();
    put(&mut pattern, "_id", 1);
    Ok(Parsed::Stages(vec![
        Box::new(Group { key: Key::Function(Box::new(find)), fields }),
        Box::new(Sort { pattern: SortPattern::parse(&pattern)?, limit: None }),
    ]))
}

fn check(boundaries: &[Value], default: Option<&Value>) -> Result<()> {
    if boundaries.len() < 2 {
        bail!(40192, "The $bucket 'boundaries' field must have at least 2 values");
    }
    let compare = |a: &Value, b: &Value| {
        mayfly_value::order::compare(Order::Mongo, a.as_raw_bson_ref(), b.as_raw_bson_ref())
    };
    let rank = |value: &Value| type_rank(Order::Mongo, value.as_raw_bson_ref());
    for pair in boundaries.windows(2) {
        if let [a, b] = pair {
            if rank(a) != rank(b) {
                bail!(40193, "All values in the 'boundaries' option to $bucket must have the same type.");
            }
            if compare(a, b).is_ge() {
                bail!(40194, "The 'boundaries' option to $bucket must be sorted");
            }
        }
    }
    if let (Some(default), Some(first), Some(last)) = (default, boundaries.first(), boundaries.last())
        && compare(default, first).is_ge()
        && compare(default, last).is_lt()
    {
        bail!(
            40199,
            "The $bucket 'default' field must be less than the lowest boundary or greater than or equal to the highest boundary."
        );
    }
    Ok(())
}
