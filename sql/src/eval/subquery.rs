//! Subqueries as expressions: rows into one value.

use super::Env;
use crate::ast::SubqueryKind;
use crate::error::EvalError;
use crate::operators::{Flow, correlated};
use crate::plan::Block;
use crate::value::Value;

pub(super) fn eval<'v>(
    kind: SubqueryKind,
    block: &'v Block,
    env: &mut Env<'v, '_>,
) -> Result<Value<'v>, EvalError> {
    Ok(match kind {
        SubqueryKind::Array => {
            let mut rows = Vec::new();
            correlated(block, env, &mut |_, row| {
                rows.push(row);
                Ok(Flow::More)
            })?;
            Value::array(rows)
        }
        SubqueryKind::Exists | SubqueryKind::First => {
            let mut first = Value::Undefined;
            correlated(block, env, &mut |_, row| {
                first = row;
                Ok(Flow::Enough)
            })?;
            if kind == SubqueryKind::Exists { Value::Bool(first.is_defined()) } else { first }
        }
        SubqueryKind::Last => {
            let mut last = Value::Undefined;
            correlated(block, env, &mut |_, row| {
                last = row;
                Ok(Flow::More)
            })?;
            last
        }
        SubqueryKind::All => {
            let mut all = true;
            correlated(block, env, &mut |_, row| {
                all = row.is_true();
                Ok(if all { Flow::More } else { Flow::Enough })
            })?;
            Value::Bool(all)
        }
        SubqueryKind::Scalar => {
            let mut only = Value::Undefined;
            correlated(block, env, &mut |_, row| {
                if only.is_defined() {
                    let message =
                        "The cardinality of a scalar subquery result set cannot be greater than one.";
                    return Err(EvalError::failed(message));
                }
                only = row;
                Ok(Flow::More)
            })?;
            only
        }
    })
}
