//! Operators: how rows flow through a block.
//!
//! - [`source`]: nested loops over FROM and JOIN, and the filter.
//! - [`group`]: GROUP BY and aggregates.
//! - [`distinct`], [`sort`], [`rank`]: removing duplicates and ordering.
//! - [`window`]: a page of rows, without keeping all of them.
//! - [`stage`]: a block that reads documents as they come; [`correlated`]: a block inside an expression.
//!
//! Rows borrow from the documents they come from. Whatever is kept beyond one document (groups, sorted rows,
//! the keys of rows seen) is owned and counted against the query's memory.

pub(crate) mod distinct;
pub(crate) mod group;
pub(crate) mod memory;
pub(crate) mod rank;
pub(crate) mod sort;
pub(crate) mod source;
pub(crate) mod stage;
pub(crate) mod window;

use distinct::Distinct;
use group::Groups;
use memory::Memory;
use source::rows;

use crate::error::EvalError;
use crate::eval::{Env, eval};
use crate::plan::Block;
use crate::value::Value;

/// Whether a consumer of rows wants to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    More,
    Enough,
}

/// What takes the rows of a block.
pub(crate) type Sink<'s, 'v, 'x> = &'s mut dyn FnMut(&mut Env<'v, 'x>, Value<'v>) -> Result<Flow, EvalError>;

/// Runs a subquery for the row its expression is evaluated in.
pub(crate) fn correlated<'v, 'x>(
    block: &'v Block,
    env: &mut Env<'v, 'x>,
    sink: Sink<'_, 'v, 'x>,
) -> Result<Flow, EvalError> {
    let mut memory = Memory::of(env.context);
    let mut distinct = block.distinct.then(Distinct::default);
    let mut emit = |env: &mut Env<'v, 'x>, memory: &mut Memory| {
        let row = eval(&block.project, env)?;
        let is_new = match &mut distinct {
            Some(distinct) if row.is_defined() => distinct.is_new(&row, memory)?,
            _ => row.is_defined(),
        };
        if is_new { sink(env, row) } else { Ok(Flow::More) }
    };
    let Some(group) = &block.group else {
        return rows(block, env, &mut |env| emit(env, &mut memory));
    };
    let mut groups = Groups::new(group);
    rows(block, env, &mut |env| {
        groups.add(env, 1, &mut memory)?;
        Ok(Flow::More)
    })?;
    for found in groups.finish() {
        found.put(group, env);
        if emit(env, &mut memory)? == Flow::Enough {
            return Ok(Flow::Enough);
        }
    }
    Ok(Flow::More)
}
