//! Sources: nested loops over FROM and JOIN, then the filter.
//!
//! The last source varies fastest. A source whose value is missing, or is not an array where one is iterated,
//! gives no rows, and then neither does the row before it.

use super::{Flow, correlated};
use crate::error::EvalError;
use crate::eval::{Env, eval};
use crate::plan::{Block, Over, Source};
use crate::value::Value;

/// What takes the rows: they are in the slots.
pub(crate) type EachRow<'s, 'v, 'x> = &'s mut dyn FnMut(&mut Env<'v, 'x>) -> Result<Flow, EvalError>;

/// Calls `each` for every row of the sources that passes the filter.
pub(crate) fn rows<'v, 'x>(
    block: &'v Block,
    env: &mut Env<'v, 'x>,
    each: EachRow<'_, 'v, 'x>,
) -> Result<Flow, EvalError> {
    join(&block.sources, env, &mut |env| {
        let passes = match &block.filter {
            Some(filter) => eval(filter, env)?.is_true(),
            None => true,
        };
        if passes { each(env) } else { Ok(Flow::More) }
    })
}

fn join<'v, 'x>(
    sources: &'v [Source],
    env: &mut Env<'v, 'x>,
    each: EachRow<'_, 'v, 'x>,
) -> Result<Flow, EvalError> {
    let Some((source, rest)) = sources.split_first() else {
        return each(env);
    };
    match &source.over {
        Over::Value(bound) => {
            let value = eval(bound, env)?;
            enter(source, value, rest, env, each)
        }
        Over::Rows(block) => correlated(block, env, &mut |env, row| enter(source, row, rest, env, each)),
    }
}

/// Gives the source its value, or each item of it in turn, and goes on with the sources after it.
fn enter<'v, 'x>(
    source: &Source,
    value: Value<'v>,
    rest: &'v [Source],
    env: &mut Env<'v, 'x>,
    each: EachRow<'_, 'v, 'x>,
) -> Result<Flow, EvalError> {
    if !source.iterates {
        if !value.is_defined() {
            return Ok(Flow::More);
        }
        env.set(source.slot, value);
        return join(rest, env, each);
    }
    let Value::Array(array) = value else {
        return Ok(Flow::More);
    };
    for item in array.iter() {
        env.set(source.slot, item);
        if join(rest, env, each)? == Flow::Enough {
            return Ok(Flow::Enough);
        }
    }
    Ok(Flow::More)
}
