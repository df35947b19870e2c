//! One value from all items of an array: totals, averages, extremes.

use super::{Args, Family, Function, PlainRun};
use crate::context::Context;
use crate::value::compare::order;
use crate::value::{Kind, Value};
use mayfly_value::number::compare_doubles;

pub(super) const FUNCTIONS: &[Function] = &[
    total("ARRAY_AVG", "ARRAY_AVG(a)", "The average of the numbers.", array_avg),
    total(
        "ARRAY_MAX",
        "ARRAY_MAX(a)",
        "The greatest item: strings before numbers, booleans, null.",
        array_max,
    ),
    total(
        "ARRAY_MEDIAN",
        "ARRAY_MEDIAN(a)",
        "The number in the middle, or the average of two.",
        array_median,
    ),
    total("ARRAY_MIN", "ARRAY_MIN(a)", "The least item: null before booleans, numbers, strings.", array_min),
    total("ARRAY_SUM", "ARRAY_SUM(a)", "The sum of the numbers.", array_sum),
];

const fn total(name: &'static str, signature: &'static str, help: &'static str, run: PlainRun) -> Function {
    Function::new(name, Family::Array, Args::exactly(1), signature, help, run)
}

/// The numbers of an array of nothing but numbers.
fn numbers(args: &[Value<'_>]) -> Option<Vec<f64>> {
    let [Value::Array(array)] = args else { return None };
    array.iter().map(|item| item.as_f64()).collect()
}

/// Undefined for no items, as AVG of no rows.
fn array_avg<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    let numbers = numbers(args).filter(|numbers| !numbers.is_empty());
    numbers.map(|numbers| numbers.iter().sum::<f64>() / numbers.len() as f64).into()
}

fn array_median<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    let Some(mut numbers) = numbers(args) else { return Value::Undefined };
    numbers.sort_by(|a, b| compare_doubles(*a, *b));
    let upper = numbers.len() / 2;
    let lower = numbers.len().saturating_sub(1) / 2;
    match (numbers.get(lower), numbers.get(upper)) {
        (Some(lower), Some(upper)) => Value::Double((lower + upper) / 2.0),
        _ => Value::Undefined,
    }
}

fn array_max<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    scalars(args).and_then(|items| items.into_iter().max_by(order)).into()
}

fn array_min<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    scalars(args).and_then(|items| items.into_iter().min_by(order)).into()
}

/// The items of an array without arrays and objects in it.
fn scalars<'a>(args: &[Value<'a>]) -> Option<Vec<Value<'a>>> {
    let [Value::Array(array)] = args else { return None };
    let scalar = |item: &Value<'_>| !matches!(item.kind(), Kind::Array | Kind::Object);
    array.iter().map(|item| scalar(&item).then_some(item)).collect()
}

/// Integers stay integers as long as the sum fits; 0 for no items, as SUM of no rows.
fn array_sum<'a>(_: &Context<'_>, args: &[Value<'a>]) -> Value<'a> {
    let [Value::Array(array)] = args else { return Value::Undefined };
    let integers = array.iter().try_fold(0_i64, |sum, item| match item {
        Value::Int(item) => sum.checked_add(item),
        _ => None,
    });
    match integers {
        Some(sum) => Value::Int(sum),
        None => numbers(args).map(|numbers| numbers.iter().sum::<f64>()).into(),
    }
}

#[cfg(test)]
pub(super) const CASES: &[super::testing::Case] = &[
    ("ARRAY_AVG", "[1,2,3,4]", "2.5"),
    ("ARRAY_AVG", "[1.0,2.0,3.3,4.7]", "2.75"),
    ("ARRAY_AVG", "[1,-2.7,3,-4]", "-0.675"),
    ("ARRAY_AVG", r#"["abc",1]"#, "undefined"),
    ("ARRAY_AVG", "[null]", "undefined"),
    ("ARRAY_AVG", "[]", "undefined"),
    ("ARRAY_AVG", "1", "undefined"),
    ("ARRAY_MAX", "[1,2,3,4]", "4"),
    ("ARRAY_MAX", r#"["abc","ABC","aBc","AbC"]"#, r#""abc""#),
    ("ARRAY_MAX", "[true,false]", "true"),
    ("ARRAY_MAX", "[null,null]", "null"),
    ("ARRAY_MAX", r#"[12,"abc",true,false,null]"#, r#""abc""#),
    ("ARRAY_MAX", "[1,[2]]", "undefined"),
    ("ARRAY_MAX", "[1,{}]", "undefined"),
    ("ARRAY_MAX", "[]", "undefined"),
    ("ARRAY_MAX", r#""a""#, "undefined"),
    ("ARRAY_MEDIAN", "[1,2,3,4]", "2.5"),
    ("ARRAY_MEDIAN", "[1.0,2.0,3.3,4.7,7.8]", "3.3"),
    ("ARRAY_MEDIAN", "[1,-2.7,3,-4]", "-0.8500000000000001"),
    ("ARRAY_MEDIAN", r#"[12,"abc"]"#, "undefined"),
    ("ARRAY_MEDIAN", "[]", "undefined"),
    ("ARRAY_MIN", "[1,2,3,4]", "1"),
    ("ARRAY_MIN", r#"["abc","ABC","aBc"]"#, r#""ABC""#),
    ("ARRAY_MIN", r#"[12,"abc",true,false,null]"#, "null"),
    ("ARRAY_MIN", "[true,false]", "false"),
    ("ARRAY_MIN", "[[]]", "undefined"),
    ("ARRAY_MIN", "null", "undefined"),
    ("ARRAY_SUM", "[1,2,3,4]", "10"),
    ("ARRAY_SUM", "[1,0.5]", "1.5"),
    ("ARRAY_SUM", "[]", "0"),
    ("ARRAY_SUM", "[9007199254740993,1]", "9007199254740994"),
    ("ARRAY_SUM", "[9223372036854775807,1]", "9223372036854775808"),
    ("ARRAY_SUM", r#"[1,"2"]"#, "undefined"),
    ("ARRAY_SUM", "{}", "undefined"),
];
