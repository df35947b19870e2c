//! Choices: only the branch that is taken is evaluated.

use super::parse::{arguments, object_operand, parse_expression};
use super::{Expr, Operator, Out, Scope, form, function};
use crate::error::{Result, bail};
use crate::values::{Ref, Value, field, fields, is_nullish, is_truthy, items};

pub(super) const OPERATORS: &[Operator] = &[
    form("$and", "all are true", and),
    form("$or", "one is true", or),
    function("$not", "the opposite", (1, 1), |args| Ok(Some(Value::Boolean(!is_truthy(args.at(0)))))),
    form("$cond", "one of two, by a condition", cond),
    form("$ifNull", "the first that is not null or missing", if_null),
    form("$switch", "the branch of the first true case", switch),
];

fn list(name: &str, operand: Ref<'_>, scope: &mut Scope) -> Result<Vec<Expr>> {
    arguments(name, operand, super::ANY, scope)
}

fn truth(value: bool) -> Result<Out> {
    Ok(Some(Value::Boolean(value)))
}

fn and(name: &str, operand: Ref<'_>, scope: &mut Scope) -> Result<Expr> {
    let parts = list(name, operand, scope)?;
    Ok(Expr::form(move |env| {
        for part in &parts {
            if !part.is_true(env)? {
                return truth(false);
            }
        }
        truth(true)
    }))
}

fn or(name: &str, operand: Ref<'_>, scope: &mut Scope) -> Result<Expr> {
    let parts = list(name, operand, scope)?;
    Ok(Expr::form(move |env| {
        for part in &parts {
            if part.is_true(env)? {
                return truth(true);
            }
        }
        truth(false)
    }))
}

fn cond(name: &str, operand: Ref<'_>, scope: &mut Scope) -> Result<Expr> {
    let (condition, yes, no) = match operand {
        Ref::Document(object) => {
            object_operand(name, operand, &["if", "then", "else"], (17080, 17083))?;
            let mut part = |part: &str, code| match field(object, part) {
                Some(value) => parse_expression(value, scope),
                None => bail!(code, "Missing '{part}' parameter to $cond"),
            };
            (part("if", 17080)?, part("then", 17081)?, part("else", 17082)?)
        }
        _ => {
            let mut parts = list(name, operand, scope)?.into_iter();
            match (parts.next(), parts.next(), parts.next(), parts.next()) {
                (Some(condition), Some(yes), Some(no), None) => (condition, yes, no),
                _ => bail!(16020, "Expression $cond takes exactly 3 arguments."),
            }
        }
    };
    Ok(Expr::form(move |env| if condition.is_true(env)? { yes.eval(env) } else { no.eval(env) }))
}

fn if_null(name: &str, operand: Ref<'_>, scope: &mut Scope) -> Result<Expr> {
    let mut parts = list(name, operand, scope)?;
    if parts.len() < 2 {
        bail!(1257300, "$ifNull needs at least two arguments, had: {}", parts.len());
    }
    let last = parts.pop();
    Ok(Expr::form(move |env| {
        for part in &parts {
            let value = part.eval(env)?;
            if !is_nullish(value.as_ref().map(Value::as_raw_bson_ref)) {
                return Ok(value);
            }
        }
        match &last {
            Some(last) => last.eval(env),
            None => Ok(None),
        }
    }))
}

fn switch(_: &str, operand: Ref<'_>, scope: &mut Scope) -> Result<Expr> {
    let Ref::Document(object) = operand else { bail!(40060, "$switch requires an object as an argument") };
    let (mut branches, mut default) = (Vec::new(), None);
    for (name, value) in fields(object) {
        match (name, value) {
            ("branches", Ref::Array(list)) => {
                for item in items(list) {
                    branches.push(branch(item, scope)?);
                }
            }
            ("branches", _) => bail!(40061, "$switch expected an array for 'branches'"),
            ("default", value) => default = Some(parse_expression(value, scope)?),
            _ => bail!(40067, "$switch found an unknown argument: {name}"),
        }
    }
    if branches.is_empty() && default.is_none() {
        bail!(40068, "$switch requires at least one branch");
    }
    Ok(Expr::form(move |env| {
        for (case, then) in &branches {
            if case.is_true(env)? {
                return then.eval(env);
            }
        }
        match &default {
            Some(default) => default.eval(env),
            None => bail!(
                40066,
                "$switch could not find a matching branch for an input, and no default was specified."
            ),
        }
    }))
}

fn branch(item: Ref<'_>, scope: &mut Scope) -> Result<(Expr, Expr)> {
    let Ref::Document(object) = item else { bail!(40062, "$switch expected each branch to be an object") };
    let (mut case, mut then) = (None, None);
    for (name, value) in fields(object) {
        match name {
            "case" => case = Some(parse_expression(value, scope)?),
            "then" => then = Some(parse_expression(value, scope)?),
            _ => bail!(40063, "$switch found an unknown argument to a branch: {name}"),
        }
    }
    match (case, then) {
        (None, _) => bail!(40064, "$switch requires each branch have a 'case' expression"),
        (_, None) => bail!(40065, "$switch requires each branch have a 'then' expression."),
        (Some(case), Some(then)) => Ok((case, then)),
    }
}
