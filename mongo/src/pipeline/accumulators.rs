//! Accumulators: one value of many documents, in `$group`, `$bucket` and windows.

use std::collections::BTreeSet;
use std::sync::Arc;

use bson::RawDocument;

use crate::collation::Ordered;
use crate::context::Context;
use crate::error::{MISSING_FIELD, NOT_IMPLEMENTED, Result, UNKNOWN_FIELD, bail};
use crate::expression::{
    Env, Expr, Names, Scope, count, merge_into, object_of, parse_expression, percentile_of, shares,
    standard_deviation,
};
use crate::number::{Number, Sum};
use crate::sort::SortPattern;
use crate::values::{
    Ref, Value, array, as_double, as_integer, field, fields, is_nullish, items, type_name_opt,
};

/// Collects documents and gives a value.
pub(crate) trait Accumulator {
    fn add(&mut self, env: &mut Env<'_>) -> Result<()>;
    fn value(&self, context: &Context<'_>) -> Result<Value>;
    /// About how much it holds.
    fn bytes(&self) -> usize {
        64
    }
}

/// Makes an accumulator for a new group.
pub(crate) type Maker = Box<dyn Fn() -> Box<dyn Accumulator> + Send + Sync>;

/// An accumulator of the language.
pub struct AccumulatorDefinition {
    /// With its dollar sign.
    pub name: &'static str,
    /// What it gives.
    pub help: &'static str,
    pub(crate) parse: fn(&str, Ref<'_>, &Names) -> Result<Maker>,
}

macro_rules! accumulator {
    ($name:literal, $help:literal, $parse:expr) => {
        AccumulatorDefinition { name: $name, help: $help, parse: $parse }
    };
}

/// All accumulators.
pub const ACCUMULATORS: &[AccumulatorDefinition] = &[
    accumulator!("$sum", "sum of the numbers", |_, operand, names| folded(operand, names, || Summing {
        sum: Sum::default(),
        mean: false
    })),
    accumulator!("$avg", "mean of the numbers", |_, operand, names| folded(operand, names, || Summing {
        sum: Sum::default(),
        mean: true
    })),
    accumulator!("$min", "the smallest", |_, operand, names| folded(operand, names, || Extreme {
        best: None,
        wins: std::cmp::Ordering::is_lt
    })),
    accumulator!("$max", "the largest", |_, operand, names| folded(operand, names, || Extreme {
        best: None,
        wins: std::cmp::Ordering::is_gt
    })),
    accumulator!("$first", "of the first document", |_, operand, names| folded(operand, names, || Edge {
        value: None,
        last: false
    })),
    accumulator!("$last", "of the last document", |_, operand, names| folded(operand, names, || Edge {
        value: None,
        last: true
    })),
    accumulator!("$push", "all values", |_, operand, names| folded(operand, names, List::default)),
    accumulator!("$addToSet", "all different values", |_, operand, names| folded(
        operand,
        names,
        Distinct::default
    )),
    accumulator!("$concatArrays", "items of all arrays", |name, operand, names| {
        check_not_list(name, operand)?;
        folded(operand, names, Concatenated::default)
    }),
    accumulator!("$setUnion", "all different items", |name, operand, names| {
        check_not_list(name, operand)?;
        folded(operand, names, United::default)
    }),
    accumulator!("$mergeObjects", "one object of all", |name, operand, names| folded(
        check_not_list(name, operand).map(|()| operand)?,
        names,
        Merged::default
    )),
    accumulator!("$stdDevPop", "standard deviation of all", |_, operand, names| folded(
        operand,
        names,
        || Deviation { numbers: Vec::new(), sample: false }
    )),
    accumulator!("$stdDevSamp", "standard deviation of a sample", |_, operand, names| folded(
        operand,
        names,
        || { Deviation { numbers: Vec::new(), sample: true } }
    )),
    accumulator!("$count", "how many documents", |_, operand, _| match operand {
        Ref::Document(object) if fields(object).next().is_none() => Ok(Box::new(|| Box::new(Counted(0)))),
        _ => bail!(crate::error::TYPE_MISMATCH, "$count takes no arguments, i.e. $count:{{}}"),
    }),
    accumulator!("$firstN", "of the first documents", first_or_last),
    accumulator!("$lastN", "of the last documents", first_or_last),
    accumulator!("$minN", "the smallest few", smallest_or_largest),
    accumulator!("$maxN", "the largest few", smallest_or_largest),
    accumulator!("$top", "of the first in an order", ranked),
    accumulator!("$topN", "of the first few in an order", ranked),
    accumulator!("$bottom", "of the last in an order", ranked),
    accumulator!("$bottomN", "of the last few in an order", ranked),
    accumulator!("$median", "the middle value", percentile),
    accumulator!("$percentile", "values at shares of the order", percentile),
    accumulator!("$accumulator", "refused: JavaScript is not run", |_, _, _| {
        bail!(NOT_IMPLEMENTED, "$accumulator is not supported: this server does not run JavaScript")
    }),
];

/// Finds an accumulator.
pub(crate) fn find(name: &str) -> Option<&'static AccumulatorDefinition> {
    ACCUMULATORS.iter().find(|definition| definition.name == name)
}

/// Takes the values of one expression.
trait Fold: 'static {
    fn fold(&mut self, value: Option<Value>, context: &Context<'_>) -> Result<()>;
    fn result(&self, context: &Context<'_>) -> Result<Value>;
    fn held(&self) -> usize {
        64
    }
}

struct Folded<F> {
    input: Arc<Expr>,
    fold: F,
}

impl<F: Fold> Accumulator for Folded<F> {
    fn add(&mut self, env: &mut Env<'_>) -> Result<()> {
        let value = self.input.eval(env)?;
        self.fold.fold(value, env.context)
    }

    fn value(&self, context: &Context<'_>) -> Result<Value> {
        self.fold.result(context)
    }

    fn bytes(&self) -> usize {
        self.fold.held()
    }
}

fn folded<F: Fold>(operand: Ref<'_>, names: &Names, make: fn() -> F) -> Result<Maker> {
    let operand = match operand {
        Ref::Array(list) => items(list).next().unwrap_or(operand),
        other => other,
    };
    let input = Arc::new(parse_expression(operand, &mut Scope::new(names))?);
    Ok(Box::new(move || Box::new(Folded { input: input.clone(), fold: make() })))
}

/// What takes an array as its value takes no list of operands.
fn check_not_list(name: &str, operand: Ref<'_>) -> Result<()> {
    match operand {
        Ref::Array(_) => bail!(40237, "The {name} accumulator is a unary operator"),
        _ => Ok(()),
    }
}

struct Summing {
    sum: Sum,
    mean: bool,
}

impl Fold for Summing {
    fn fold(&mut self, value: Option<Value>, _: &Context<'_>) -> Result<()> {
        if let Some(number) = value.as_ref().and_then(|value| Number::of(value.as_raw_bson_ref())) {
            self.sum.add(number);
        }
        Ok(())
    }

    fn result(&self, _: &Context<'_>) -> Result<Value> {
        Ok(if self.mean {
            self.sum.mean().map_or(Value::Null, Number::value)
        } else {
            self.sum.total().value()
        })
    }
}

struct Extreme {
    best: Option<Value>,
    wins: fn(std::cmp::Ordering) -> bool,
}

impl Fold for Extreme {
    fn fold(&mut self, value: Option<Value>, context: &Context<'_>) -> Result<()> {
        let Some(value) = value.filter(|value| !is_nullish(Some(value.as_raw_bson_ref()))) else {
            return Ok(());
        };
        let wins = self
            .best
            .as_ref()
            .is_none_or(|best| (self.wins)(context.compare(value.as_raw_bson_ref(), best.as_raw_bson_ref())));
        if wins {
            self.best = Some(value);
        }
        Ok(())
    }

    fn result(&self, _: &Context<'_>) -> Result<Value> {
        Ok(self.best.clone().unwrap_or(Value::Null))
    }
}

struct Edge {
    value: Option<Value>,
    last: bool,
}

impl Fold for Edge {
    fn fold(&mut self, value: Option<Value>, _: &Context<'_>) -> Result<()> {
        if self.last || self.value.is_none() {
            self.value = Some(value.unwrap_or(Value::Null));
        }
        Ok(())
    }

    fn result(&self, _: &Context<'_>) -> Result<Value> {
        Ok(self.value.clone().unwrap_or(Value::Null))
    }
}

fn size(value: &Value) -> usize {
    16 + match value {
        Value::String(text) => text.len(),
        Value::Document(object) => object.as_bytes().len(),
        Value::Array(list) => list.as_bytes().len(),
        Value::Binary(binary) => binary.bytes.len(),
        _ => 16,
    }
}

#[derive(Default)]
struct List {
    values: Vec<Value>,
    bytes: usize,
}

impl Fold for List {
    fn fold(&mut self, value: Option<Value>, _: &Context<'_>) -> Result<()> {
        if let Some(value) = value {
            self.bytes += size(&value);
            self.values.push(value);
        }
        Ok(())
    }

    fn result(&self, _: &Context<'_>) -> Result<Value> {
        Ok(array(self.values.iter().cloned()))
    }

    fn held(&self) -> usize {
        64 + self.bytes
    }
}

#[derive(Default)]
struct Concatenated(List);

impl Fold for Concatenated {
    fn fold(&mut self, value: Option<Value>, context: &Context<'_>) -> Result<()> {
        match value {
            None => Ok(()),
            Some(Value::Array(list)) => {
                items(&list).try_for_each(|item| self.0.fold(Some(item.into()), context))
            }
            Some(other) => bail!(
                crate::error::TYPE_MISMATCH,
                "$concatArrays requires array inputs, but input is of type {}",
                type_name_opt(Some(other.as_raw_bson_ref()))
            ),
        }
    }

    fn result(&self, context: &Context<'_>) -> Result<Value> {
        self.0.result(context)
    }

    fn held(&self) -> usize {
        self.0.held()
    }
}

/// Values without repetition, in the order in which they came.
#[derive(Default)]
struct Distinct {
    seen: BTreeSet<Ordered<'static>>,
    collated: Vec<Value>,
    bytes: usize,
}

impl Fold for Distinct {
    fn fold(&mut self, value: Option<Value>, context: &Context<'_>) -> Result<()> {
        let Some(value) = value else { return Ok(()) };
        let fresh = match context.collation {
            None => self.seen.insert(Ordered(value.clone(), None)),
            Some(_) => !self
                .collated
                .iter()
                .any(|known| context.equal(known.as_raw_bson_ref(), value.as_raw_bson_ref())),
        };
        if fresh {
            self.bytes += 2 * size(&value);
            self.collated.push(value);
        }
        Ok(())
    }

    fn result(&self, _: &Context<'_>) -> Result<Value> {
        Ok(array(self.collated.iter().cloned()))
    }

    fn held(&self) -> usize {
        64 + self.bytes
    }
}

#[derive(Default)]
struct United(Distinct);

impl Fold for United {
    fn fold(&mut self, value: Option<Value>, context: &Context<'_>) -> Result<()> {
        match value {
            None => Ok(()),
            Some(Value::Array(list)) => {
                items(&list).try_for_each(|item| self.0.fold(Some(item.into()), context))
            }
            Some(other) => bail!(
                crate::error::TYPE_MISMATCH,
                "$setUnion requires array inputs, but input is of type {}",
                type_name_opt(Some(other.as_raw_bson_ref()))
            ),
        }
    }

    fn result(&self, context: &Context<'_>) -> Result<Value> {
        self.0.result(context)
    }

    fn held(&self) -> usize {
        self.0.held()
    }
}

#[derive(Default)]
struct Merged(Vec<(String, Value)>);

impl Fold for Merged {
    fn fold(&mut self, value: Option<Value>, _: &Context<'_>) -> Result<()> {
        let value = value.as_ref().map(Value::as_raw_bson_ref);
        if !is_nullish(value) && !matches!(value, Some(Ref::Document(_))) {
            bail!(5911200, "$mergeObjects only supports objects, but found {}", type_name_opt(value));
        }
        merge_into(&mut self.0, value)
    }

    fn result(&self, _: &Context<'_>) -> Result<Value> {
        Ok(object_of(self.0.clone()))
    }

    fn held(&self) -> usize {
        self.0.iter().map(|(name, value)| name.len() + size(value)).sum()
    }
}

struct Deviation {
    numbers: Vec<f64>,
    sample: bool,
}

impl Fold for Deviation {
    fn fold(&mut self, value: Option<Value>, _: &Context<'_>) -> Result<()> {
        self.numbers.extend(value.and_then(|value| as_double(value.as_raw_bson_ref())));
        Ok(())
    }

    fn result(&self, _: &Context<'_>) -> Result<Value> {
        Ok(standard_deviation(&self.numbers, self.sample).map_or(Value::Null, Value::Double))
    }

    fn held(&self) -> usize {
        8 * self.numbers.len()
    }
}

struct Counted(i64);

impl Accumulator for Counted {
    fn add(&mut self, _: &mut Env<'_>) -> Result<()> {
        self.0 += 1;
        Ok(())
    }

    fn value(&self, _: &Context<'_>) -> Result<Value> {
        Ok(crate::values::integer(self.0))
    }
}

/// The operand of the accumulators that take several arguments.
fn object<'a>(name: &str, operand: Ref<'a>, known: &[&str], code: i32) -> Result<&'a RawDocument> {
    let Ref::Document(object) = operand else { bail!(code, "specification must be an object; found {name}") };
    for (found, _) in fields(object) {
        if !known.contains(&found) {
            bail!(5787901, "Unknown argument to {name} '{found}'");
        }
    }
    Ok(object)
}

/// How many: a constant here.
fn constant_count(name: &str, object: &RawDocument, names: &Names) -> Result<usize> {
    let Some(n) = field(object, "n") else { bail!(5787906, "Missing value for 'n' in {name}") };
    match parse_expression(n, &mut Scope::new(names))? {
        Expr::Constant(Some(n)) if as_integer(n.as_raw_bson_ref()).is_some_and(|n| n <= 0) => {
            bail!(7548606, "'n' must be greater than 0 in {name}")
        }
        Expr::Constant(n) => count(name, n.as_ref().map(Value::as_raw_bson_ref)),
        _ => bail!(NOT_IMPLEMENTED, "{name} with an 'n' that is not a constant is not supported"),
    }
}

fn input(name: &str, object: &RawDocument, names: &Names) -> Result<Arc<Expr>> {
    match field(object, "input") {
        Some(input) => Ok(Arc::new(parse_expression(input, &mut Scope::new(names))?)),
        None => bail!(5787907, "Missing value for 'input' in {name}"),
    }
}

/// Values kept up to a number, the oldest or the newest.
struct FirstOrLast {
    values: std::collections::VecDeque<Value>,
    n: usize,
    last: bool,
}

impl Fold for FirstOrLast {
    fn fold(&mut self, value: Option<Value>, _: &Context<'_>) -> Result<()> {
        let value = value.unwrap_or(Value::Null);
        if self.last {
            self.values.push_back(value);
            if self.values.len() > self.n {
                self.values.pop_front();
            }
        } else if self.values.len() < self.n {
            self.values.push_back(value);
        }
        Ok(())
    }

    fn result(&self, _: &Context<'_>) -> Result<Value> {
        Ok(array(self.values.iter().cloned()))
    }

    fn held(&self) -> usize {
        self.values.iter().map(size).sum()
    }
}

fn first_or_last(name: &str, operand: Ref<'_>, names: &Names) -> Result<Maker> {
    let object = object(name, operand, &["n", "input"], 5787801)?;
    let (n, input, last) =
        (constant_count(name, object, names)?, input(name, object, names)?, name == "$lastN");
    Ok(Box::new(move || {
        let fold = FirstOrLast { values: std::collections::VecDeque::new(), n, last };
        Box::new(Folded { input: input.clone(), fold })
    }))
}

/// The smallest or largest values.
struct FewBest {
    values: Vec<Value>,
    n: usize,
    largest: bool,
}

impl Fold for FewBest {
    fn fold(&mut self, value: Option<Value>, context: &Context<'_>) -> Result<()> {
        let Some(value) = value.filter(|value| !is_nullish(Some(value.as_raw_bson_ref()))) else {
            return Ok(());
        };
        let place = self.values.partition_point(|known| {
            let ordering = context.compare(known.as_raw_bson_ref(), value.as_raw_bson_ref());
            if self.largest { ordering.is_ge() } else { ordering.is_le() }
        });
        if place < self.n {
            self.values.insert(place, value);
            self.values.truncate(self.n);
        }
        Ok(())
    }

    fn result(&self, _: &Context<'_>) -> Result<Value> {
        Ok(array(self.values.iter().cloned()))
    }

    fn held(&self) -> usize {
        self.values.iter().map(size).sum()
    }
}

fn smallest_or_largest(name: &str, operand: Ref<'_>, names: &Names) -> Result<Maker> {
    let object = object(name, operand, &["n", "input"], 5787900)?;
    let (n, input, largest) =
        (constant_count(name, object, names)?, input(name, object, names)?, name == "$maxN");
    Ok(Box::new(move || {
        Box::new(Folded { input: input.clone(), fold: FewBest { values: Vec::new(), n, largest } })
    }))
}

/// Outputs of the first or last documents in an order.
struct Ranked {
    pattern: Arc<SortPattern>,
    output: Arc<Expr>,
    /// None for `$top` and `$bottom`, which give a value and not an array.
    n: Option<usize>,
    bottom: bool,
    held: Vec<(Vec<Value>, Value)>,
}

impl Accumulator for Ranked {
    fn add(&mut self, env: &mut Env<'_>) -> Result<()> {
        let key = self.pattern.key(env.root, env.context)?;
        // Of equals, the one that came first stays.
        let place = self.held.partition_point(|(known, _)| {
            let ordering = self.pattern.compare(known, &key, env.context);
            if self.bottom { ordering.is_lt() } else { ordering.is_le() }
        });
        let n = self.n.unwrap_or(1);
        if !self.bottom && place >= n {
            return Ok(());
        }
        let value = self.output.eval(env)?.unwrap_or(Value::Null);
        self.held.insert(place, (key, value));
        if self.held.len() > n {
            if self.bottom {
                self.held.remove(0);
            } else {
                self.held.pop();
            }
        }
        Ok(())
    }

    fn value(&self, _: &Context<'_>) -> Result<Value> {
        let mut values = self.held.iter().map(|(_, value)| value.clone());
        Ok(match self.n {
            None => values.next().unwrap_or(Value::Null),
            Some(_) => array(values),
        })
    }

    fn bytes(&self) -> usize {
        64 + self.held.iter().map(|(_, value)| 2 * size(value)).sum::<usize>()
    }
}

fn ranked(name: &str, operand: Ref<'_>, names: &Names) -> Result<Maker> {
    let Ref::Document(object) = operand else {
        bail!(5788001, "specification must be an object; found {name}")
    };
    let many = name.ends_with('N');
    for (found, _) in fields(object) {
        let known = ["sortBy", "output"].contains(&found) || (many && found == "n");
        if !known {
            bail!(5788002, "Unknown argument to {name} '{found}'");
        }
    }
    let n = if many {
        if field(object, "n").is_none() {
            bail!(5788003, "Missing value for 'n'");
        }
        Some(constant_count(name, object, names)?)
    } else {
        None
    };
    let Some(output) = field(object, "output") else { bail!(5788004, "Missing value for 'output'") };
    let pattern = match field(object, "sortBy") {
        Some(Ref::Document(pattern)) => Arc::new(SortPattern::parse(pattern)?),
        Some(_) => bail!(5788604, "expected 'sortBy' to already be an object in the arguments to {name}"),
        None => bail!(5788005, "Missing value for 'sortBy'"),
    };
    let output = Arc::new(parse_expression(output, &mut Scope::new(names))?);
    let bottom = name.starts_with("$bottom");
    Ok(Box::new(move || {
        Box::new(Ranked { pattern: pattern.clone(), output: output.clone(), n, bottom, held: Vec::new() })
    }))
}

struct Percentiles {
    numbers: Vec<f64>,
    shares: Arc<[f64]>,
    single: bool,
}

impl Fold for Percentiles {
    fn fold(&mut self, value: Option<Value>, _: &Context<'_>) -> Result<()> {
        let number = value.and_then(|value| as_double(value.as_raw_bson_ref()));
        self.numbers.extend(number.filter(|number| !number.is_nan()));
        Ok(())
    }

    fn result(&self, _: &Context<'_>) -> Result<Value> {
        let mut numbers = self.numbers.clone();
        let mut found = self.shares.iter().map(|share| percentile_of(&mut numbers, *share));
        Ok(if self.single { found.next().unwrap_or(Value::Null) } else { array(found) })
    }

    fn held(&self) -> usize {
        8 * self.numbers.len()
    }
}

fn percentile(name: &str, operand: Ref<'_>, names: &Names) -> Result<Maker> {
    let Ref::Document(object) = operand else {
        bail!(7429703, "specification must be an object; found {name}")
    };
    for (found, _) in fields(object) {
        if !["input", "p", "method"].contains(&found) || (found == "p" && name == "$median") {
            bail!(UNKNOWN_FIELD, "BSON field '{name}.{found}' is an unknown field.");
        }
    }
    let shares: Arc<[f64]> = shares(name, object)?.into();
    let Some(input) = field(object, "input") else {
        bail!(MISSING_FIELD, "BSON field '{name}.input' is missing but a required field")
    };
    let (input, single) = (Arc::new(parse_expression(input, &mut Scope::new(names))?), name == "$median");
    Ok(Box::new(move || {
        let fold = Percentiles { numbers: Vec::new(), shares: shares.clone(), single };
        Box::new(Folded { input: input.clone(), fold })
    }))
}
