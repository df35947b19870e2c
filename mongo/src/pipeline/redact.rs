//! `$redact`: parts of a document left out by what is in them.

use bson::{RawDocument, RawDocumentBuf};

use super::{Parsed, Place, StageDefinition, each};
use crate::error::{Result, bail};
use crate::expression::{Env, Expression};
use crate::values::{Ref, Value, array, fields, items, put};

pub(super) const STAGES: &[StageDefinition] =
    &[StageDefinition { name: "$redact", help: "parts left out, from the outside in", parse }];

fn parse(_: &str, operand: Ref<'_>, place: Place<'_>) -> Result<Parsed> {
    let expression = Expression::parse(operand, place.names)?;
    Ok(each(move |document, context| {
        let mut env = Env::new(&document, context);
        redacted(&document, &expression, &mut env)
    }))
}

fn redacted<'a>(
    object: &'a RawDocument,
    expression: &Expression,
    env: &mut Env<'a>,
) -> Result<Option<RawDocumentBuf>> {
    let outer = std::mem::replace(&mut env.current, object);
    let decision = expression.eval_in(env);
    let kept = match decision? {
        Some(Value::String(word)) if word == "keep" => Some(object.to_owned()),
        Some(Value::String(word)) if word == "prune" => None,
        Some(Value::String(word)) if word == "descend" => {
            let mut out = RawDocumentBuf::new();
            for (name, value) in fields(object) {
                if let Some(value) = descended(value, expression, env)? {
                    put(&mut out, name, value);
                }
            }
            Some(out)
        }
        _ => bail!(
            17053,
            "$redact's expression should not return anything aside from the variables $$KEEP, $$DESCEND, and $$PRUNE"
        ),
    };
    env.current = outer;
    Ok(kept)
}

fn descended<'a>(value: Ref<'a>, expression: &Expression, env: &mut Env<'a>) -> Result<Option<Value>> {
    match value {
        Ref::Document(inner) => Ok(redacted(inner, expression, env)?.map(Value::Document)),
        Ref::Array(list) => {
            let mut kept = Vec::new();
            for item in items(list) {
                kept.extend(descended(item, expression, env)?);
            }
            Ok(Some(array(kept)))
        }
        other => Ok(Some(other.into())),
    }
}
