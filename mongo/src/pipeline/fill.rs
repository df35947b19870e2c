//! `$fill`: gaps filled with a value, the last one, or a line.

use std::sync::Arc;

use bson::RawDocumentBuf;

use super::window::{SetWindowFields, sorted_by};
use super::window_functions::{Column, linear_fill, locf};
use super::{Parsed, Place, Stage, StageDefinition, each, options};
use crate::error::{FAILED_TO_PARSE, MISSING_FIELD, Result, TYPE_MISMATCH, bail};
use crate::expression::{Expression, Names, Scope, parse_expression, split_path};
use crate::projection::Projection;
use crate::sort::SortPattern;
use crate::values::{Ref, field, fields, items, put};

pub(super) const STAGES: &[StageDefinition] =
    &[StageDefinition { name: "$fill", help: "gaps filled with a value, the last one, or a line", parse }];

fn parse(name: &str, operand: Ref<'_>, place: Place<'_>) -> Result<Parsed> {
    let object = options(name, operand, &["partitionBy", "partitionByFields", "sortBy", "output"])?;
    let Some(Ref::Document(output)) = field(object, "output") else {
        bail!(MISSING_FIELD, "BSON field '$fill.output' is missing but a required field");
    };
    if fields(output).next().is_none() {
        bail!(6050203, "$fill requires an 'output' with at least one field");
    }
    let pattern = match field(object, "sortBy") {
        Some(Ref::Document(pattern)) => Some(SortPattern::parse(pattern)?),
        Some(_) => {
            bail!(TYPE_MISMATCH, "BSON field '$fill.sortBy' is the wrong type, expected type 'object'")
        }
        None => None,
    };
    let (mut outputs, mut values): (Vec<(Vec<String>, Column)>, _) = (Vec::new(), RawDocumentBuf::new());
    for (path, specification) in fields(output) {
        let Ref::Document(specification) = specification else {
            bail!(6050202, "Each output of $fill must be an object with a 'method' or a 'value'");
        };
        match (field(specification, "method"), field(specification, "value")) {
            (Some(Ref::String(method)), None) => {
                let own = format!("${path}");
                let input = Arc::new(parse_expression(Ref::String(&own), &mut Scope::new(place.names))?);
                if !["locf", "linear"].contains(&method) {
                    bail!(6050202, "Method must be either 'locf' or 'linear'");
                }
                if method == "linear" && pattern.as_ref().is_none_or(|pattern| pattern.len() != 1) {
                    bail!(
                        605001,
                        "$linearFill must be specified with a top level sortBy expression with exactly one element"
                    );
                }
                let column = match method {
                    "linear" => linear_fill(input),
                    _ => locf(input),
                };
                outputs.push((split_path(path)?, column));
            }
            (None, Some(value)) => {
                // As {$ifNull: [own, value]}.
                let own = format!("${path}");
                let mut filled = RawDocumentBuf::new();
                let mut list = bson::RawArrayBuf::new();
                list.push(own.as_str());
                list.push(value);
                put(&mut filled, "$ifNull", list);
                put(&mut values, path, filled);
            }
            _ => bail!(6050202, "Each output of $fill must have either a 'method' or a 'value'"),
        }
    }
    let mut stages: Vec<Box<dyn Stage>> = Vec::new();
    if !outputs.is_empty() {
        let partition_by = partition(object, place.names)?;
        let sorted_by = sorted_by(pattern.as_ref())?;
        stages.push(Box::new(SetWindowFields { partition_by, pattern, sorted_by, outputs }));
    }
    if fields(&values).next().is_some() {
        let projection = Projection::parse_add(&values, place.names)?;
        if let Parsed::Stage(stage) =
            each(move |document, context| projection.apply(&document, context).map(Some))
        {
            stages.push(stage);
        }
    }
    Ok(Parsed::Stages(stages))
}

fn partition(object: &bson::RawDocument, names: &Names) -> Result<Option<Expression>> {
    match (field(object, "partitionBy"), field(object, "partitionByFields")) {
        (Some(_), Some(_)) => {
            bail!(6050204, "Maximum one of 'partitionBy' and 'partitionByFields' can be specified in '$fill'")
        }
        (Some(by), None) => Expression::parse(by, names).map(Some),
        (None, Some(Ref::Array(list))) => {
            let mut by = RawDocumentBuf::new();
            for (at, item) in items(list).enumerate() {
                let Ref::String(path) = item else {
                    bail!(TYPE_MISMATCH, "'partitionByFields' must hold strings")
                };
                split_path(path)?;
                put(&mut by, &format!("f{at}"), format!("${path}").as_str());
            }
            Expression::parse(Ref::Document(&by), names).map(Some)
        }
        (None, Some(_)) => bail!(FAILED_TO_PARSE, "'partitionByFields' must be an array"),
        (None, None) => Ok(None),
    }
}
