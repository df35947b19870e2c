//! Evaluating expressions.
//!
//! Undefined flows through almost everything: an operator whose operands make no sense gives undefined, not
//! an error. What fails a query as a whole is rare (a scalar subquery with two rows, a function of the user).
//!
//! Holds: no expression is deeper than the parser allows, so the recursion here is bounded.

mod arithmetic;
mod logic;
mod subquery;

pub(crate) use arithmetic::{binary, negate};

use crate::ast::UnaryOp;
use crate::context::Context;
use crate::error::EvalError;
use crate::functions::Function;
use crate::like::Pattern;
use crate::plan::{Bound, LikePattern, Slot};
use crate::value::{Oversize, Value};

/// The values a row has given names to.
pub(crate) struct Env<'v, 'x> {
    slots: Vec<Value<'v>>,
    pub context: &'x Context<'x>,
}

impl<'v, 'x> Env<'v, 'x> {
    pub(crate) fn new(slots: usize, context: &'x Context<'x>) -> Env<'v, 'x> {
        Env { slots: vec![Value::Undefined; slots], context }
    }

    pub(crate) fn get(&self, slot: Slot) -> Value<'v> {
        self.slots.get(slot).cloned().unwrap_or(Value::Undefined)
    }

    pub(crate) fn set(&mut self, slot: Slot, value: Value<'v>) {
        if let Some(place) = self.slots.get_mut(slot) {
            *place = value;
        }
    }
}

/// The value of an expression in a row.
pub(crate) fn eval<'v>(bound: &'v Bound, env: &mut Env<'v, '_>) -> Result<Value<'v>, EvalError> {
    Ok(match bound {
        Bound::Constant(value) => value.borrow(),
        Bound::Slot(slot) => env.get(*slot),
        Bound::Member(of, name) => member(of, name, env)?,
        Bound::Index(of, index) => {
            let of = eval(of, env)?;
            match eval(index, env)? {
                Value::String(name) => of.property(&name),
                index => match index.as_i64().map(usize::try_from) {
                    Some(Ok(index)) => of.item(index),
                    _ => Value::Undefined,
                },
            }
        }
        Bound::Array(items) => checked(Value::array(eval_all(items, env)?))?,
        Bound::Object(members) => {
            let mut evaluated = Vec::with_capacity(members.len());
            for (name, value) in members {
                evaluated.push((name.as_str(), eval(value, env)?));
            }
            checked(Value::object(evaluated))?
        }
        Bound::Unary(UnaryOp::Not, operand) => logic::not(eval(operand, env)?.as_bool()).into(),
        Bound::Unary(operator, operand) => arithmetic::unary(*operator, &eval(operand, env)?),
        Bound::Binary(operator, a, b) => {
            let a = eval(a, env)?;
            let b = eval(b, env)?;
            checked(arithmetic::binary(*operator, &a, &b))?
        }
        Bound::And(operands) => logic::all(operands, |operand| eval(operand, env))?.into(),
        Bound::Or(operands) => logic::any(operands, |operand| Ok(eval(operand, env)?.as_bool()))?.into(),
        Bound::Coalesce(a, b) => match eval(a, env)? {
            Value::Undefined => eval(b, env)?,
            value => value,
        },
        Bound::Conditional(three) => {
            let [condition, then, otherwise] = &**three;
            let branch = if eval(condition, env)?.is_true() { then } else { otherwise };
            eval(branch, env)?
        }
        Bound::Between { negated, operands } => {
            let [value, low, high] = &**operands;
            let value = eval(value, env)?;
            let is_between = logic::between(&value, &eval(low, env)?, &eval(high, env)?);
            logic::not_if(*negated, is_between).into()
        }
        Bound::In { negated, value, list } => {
            let value = eval(value, env)?;
            let is_in =
                logic::any(list, |item| Ok(crate::value::compare::equals(&value, &eval(item, env)?)))?;
            logic::not_if(*negated, is_in).into()
        }
        Bound::Like { negated, value, pattern } => {
            let value = eval(value, env)?;
            logic::not_if(*negated, like(&value, pattern, env)?).into()
        }
        Bound::Call { function, args } => checked(call(function, args, env)?)?,
        Bound::FullText { function, args, language } => {
            let args = eval_all(args, env)?;
            function.call_in(*language, env.context, &args)?
        }
        Bound::VectorDistance { function, args, path } => {
            vector_distance(function, args, path.as_deref(), env)?
        }
        Bound::Let { slot, parts } => {
            let [value, body] = &**parts;
            let value = eval(value, env)?;
            env.set(*slot, value);
            eval(body, env)?
        }
        Bound::Udf { name } => {
            return Err(EvalError::Unsupported { feature: format!("The user-defined function udf.{name}") });
        }
        Bound::Subquery(kind, block) => checked(subquery::eval(*kind, block, env)?)?,
    })
}

/// Lets a value through that was built here, if it is not too large or too deep.
fn checked(value: Value<'_>) -> Result<Value<'_>, EvalError> {
    /// Eight times the largest document.
    const VALUE_BYTES_MAX: usize = 16 << 20;
    match value.check_size(VALUE_BYTES_MAX) {
        Ok(()) => Ok(value),
        Err(Oversize::TooLarge) => {
            Err(EvalError::failed(format!("The query builds a value larger than {VALUE_BYTES_MAX} bytes.")))
        }
        Err(Oversize::TooDeep) => Err(EvalError::failed("The query builds a value that nests too deep.")),
    }
}

/// `a.b.c` without a copy of what lies between.
fn member<'v>(of: &'v Bound, name: &str, env: &mut Env<'v, '_>) -> Result<Value<'v>, EvalError> {
    if let Bound::Slot(slot) = of {
        return Ok(env.slots.get(*slot).map_or(Value::Undefined, |value| value.property(name)));
    }
    Ok(eval(of, env)?.property(name))
}

fn eval_all<'v>(bounds: &'v [Bound], env: &mut Env<'v, '_>) -> Result<Vec<Value<'v>>, EvalError> {
    bounds.iter().map(|bound| eval(bound, env)).collect()
}

fn like<'v>(
    value: &Value<'v>,
    pattern: &'v LikePattern,
    env: &mut Env<'v, '_>,
) -> Result<Option<bool>, EvalError> {
    let pattern_value = match pattern {
        LikePattern::Fixed(pattern) => return Ok(value.as_str().map(|text| pattern.matches(text))),
        LikePattern::Computed(bound, escape) => (eval(bound, env)?, *escape),
    };
    Ok(match (value.as_str(), pattern_value) {
        (Some(text), (Value::String(pattern), escape)) => Some(Pattern::new(&pattern, escape).matches(text)),
        _ => None,
    })
}

fn call<'v>(function: &Function, args: &'v [Bound], env: &mut Env<'v, '_>) -> Result<Value<'v>, EvalError> {
    let args = eval_all(args, env)?;
    function.call(env.context, &args)
}

/// Tells the function which distance the container's policy names for the path, unless the query does.
fn vector_distance<'v>(
    function: &Function,
    args: &'v [Bound],
    path: Option<&[String]>,
    env: &mut Env<'v, '_>,
) -> Result<Value<'v>, EvalError> {
    let mut args = eval_all(args, env)?;
    let policy = path.and_then(|path| env.context.settings.distance_function(path));
    if let Some(policy) = policy {
        if args.len() == 2 {
            args.push(Value::Bool(false));
        }
        let options = args.get(3).cloned().unwrap_or(Value::Undefined);
        if !options.property("distanceFunction").is_defined() {
            let given = options.as_object().map(|object| object.iter().collect()).unwrap_or_default();
            let mut members: Vec<_> = given;
            members.push(("distanceFunction".into(), Value::string(policy.to_owned())));
            args.truncate(3);
            args.push(Value::object(members));
        }
    }
    function.call(env.context, &args)
}
