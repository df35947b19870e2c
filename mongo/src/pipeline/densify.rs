//! `$densify`: documents made for values that are missing in a sequence.

use std::collections::BTreeMap;

use bson::{DateTime, RawDocumentBuf};

use super::unwind::{nested, with_nested};
use super::{Operator, Parsed, Place, Row, Run, Stage, StageDefinition, options};
use crate::calendar::Zone;
use crate::collation::Ordered;
use crate::error::{BAD_VALUE, MISSING_FIELD, Result, TYPE_MISMATCH, bail};
use crate::expression::{Unit, add_unit, split_path};
use crate::number::Number;
use crate::values::{Ref, Value, array, as_double, as_integer, field, is_number, items};

pub(super) const STAGES: &[StageDefinition] =
    &[StageDefinition { name: "$densify", help: "documents for missing values of a sequence", parse }];

/// Most documents that one stage makes.
const MADE_MAX: usize = 500_000;

struct Densify {
    path: Vec<String>,
    partition: Vec<Vec<String>>,
    step: Value,
    unit: Option<Unit>,
    bounds: Bounds,
}

enum Bounds {
    Full,
    Partition,
    Between(Value, Value),
}

fn parse(name: &str, operand: Ref<'_>, _: Place<'_>) -> Result<Parsed> {
    let Ref::Document(_) = operand else {
        bail!(5946802, "The $densify stage specification must be an object")
    };
    let object = options(name, operand, &["field", "partitionByFields", "range"])?;
    let Some(Ref::String(path)) = field(object, "field") else {
        bail!(MISSING_FIELD, "BSON field '$densify.field' is missing but a required field");
    };
    let mut partition = Vec::new();
    match field(object, "partitionByFields") {
        None => {}
        Some(Ref::Array(list)) => {
            for item in items(list) {
                match item {
                    Ref::String(path) => partition.push(split_path(path)?),
                    _ => bail!(TYPE_MISMATCH, "BSON field '$densify.partitionByFields' must hold strings"),
                }
            }
        }
        Some(_) => bail!(TYPE_MISMATCH, "BSON field '$densify.partitionByFields' must be an array"),
    }
    if let Some(Ref::String(densified)) = field(object, "field")
        && partition.iter().any(|path: &Vec<String>| path.join(".") == densified)
    {
        let message = format!(
            "partitionByFields '{densified}' cannot include field '{densified}' that is being densified."
        );
        bail!(8993000, "{message}");
    }
    let Some(Ref::Document(range)) = field(object, "range") else {
        bail!(MISSING_FIELD, "BSON field '$densify.range' is missing but a required field");
    };
    let step = match field(range, "step") {
        Some(step) if is_number(step) && as_double(step).is_some_and(|step| step > 0.0) => Value::from(step),
        Some(step) if is_number(step) => bail!(
            5733401,
            "The step parameter in a range statement must be a strictly positive numeric value"
        ),
        Some(_) => bail!(TYPE_MISMATCH, "'step' must be a number"),
        None => bail!(MISSING_FIELD, "BSON field '$densify.range.step' is missing but a required field"),
    };
    let unit = match field(range, "unit") {
        None => None,
        Some(Ref::String(unit)) => Some(Unit::parse(unit)?),
        Some(_) => bail!(TYPE_MISMATCH, "'unit' must be a string"),
    };
    if unit.is_some() && as_integer(step.as_raw_bson_ref()).is_none() {
        bail!(
            6586400,
            "The step parameter in a range statement must be a whole number when densifying a date range"
        );
    }
    let bounds = match field(range, "bounds") {
        Some(Ref::String("full")) => Bounds::Full,
        Some(Ref::String("partition")) if partition.is_empty() => {
            bail!(
                5733408,
                "One may not specify the bounds as 'partition' without specifying a non-empty array of partitionByFields."
            )
        }
        Some(Ref::String("partition")) => Bounds::Partition,
        Some(Ref::Array(list)) => match items(list).collect::<Vec<_>>().as_slice() {
            [low, high] => {
                for bound in [low, high] {
                    let fits = match bound {
                        Ref::DateTime(_) => unit.is_some(),
                        bound => is_number(*bound) && unit.is_none(),
                    };
                    if !fits {
                        bail!(
                            5733406,
                            "A bounding array must contain either both dates with a unit or both numbers without one"
                        );
                    }
                }
                if Ordered((*low).into(), None) > Ordered((*high).into(), None) {
                    bail!(
                        5733402,
                        "A bounding array must be an ascending array of either two dates or two numbers"
                    );
                }
                let step_fits = unit.is_some() || step.element_type() == low.element_type();
                if low.element_type() != high.element_type() || !step_fits {
                    bail!(5876900, "Upper bound, lower bound, and step must all have the same type");
                }
                Bounds::Between((*low).into(), (*high).into())
            }
            _ => bail!(5733403, "a bounding array in a range statement must have exactly two elements"),
        },
        Some(_) => bail!(5946802, "'bounds' must be 'full', 'partition' or an array"),
        None => bail!(MISSING_FIELD, "BSON field '$densify.range.bounds' is missing but a required field"),
    };
    Ok(Parsed::Stage(Box::new(Densify { path: split_path(path)?, partition, step, unit, bounds })))
}

impl Stage for Densify {
    fn start<'a>(&'a self, run: Run<'a>) -> Box<dyn Operator + 'a> {
        Box::new(DensifyOperator { stage: self, run, parts: BTreeMap::new(), bytes: 0 })
    }
}

type Held = Vec<(Value, Row)>;

struct DensifyOperator<'a> {
    stage: &'a Densify,
    run: Run<'a>,
    /// By the values of the partition's fields.
    parts: BTreeMap<Ordered<'a>, (Vec<Option<Value>>, Held)>,
    bytes: usize,
}

impl Densify {
    fn next(&self, value: &Value, steps: i64) -> Result<Value> {
        match (value, self.unit) {
            (Value::DateTime(date), Some(unit)) => {
                let amount = as_integer(self.step.as_raw_bson_ref()).unwrap_or(1).saturating_mul(steps);
                match add_unit(date.timestamp_millis(), unit, amount, &Zone::UTC) {
                    Some(millis) => Ok(Value::DateTime(DateTime::from_millis(millis))),
                    None => bail!(BAD_VALUE, "$densify left the range of dates"),
                }
            }
            _ => match (Number::of(value.as_raw_bson_ref()), Number::of(self.step.as_raw_bson_ref())) {
                (Some(value), Some(step)) => {
                    Ok(value.add(step.multiply(Number::Long(steps)).narrowed(step)).value())
                }
                _ => bail!(5733201, "$densify needs numbers or dates"),
            },
        }
    }

    /// The values from `low` on, below `high` (or up to it).
    fn sequence(&self, run: Run<'_>, low: &Value, high: &Value, closed: bool) -> Result<Vec<Value>> {
        let mut values = Vec::new();
        for steps in 0.. {
            let value = self.next(low, steps)?;
            let ordering = run.context.compare(value.as_raw_bson_ref(), high.as_raw_bson_ref());
            if ordering.is_gt() || (ordering.is_eq() && !closed) {
                break;
            }
            if values.len() >= MADE_MAX {
                bail!(5897900, "Generated {MADE_MAX} documents in $densify, which is over the limit");
            }
            values.push(value);
        }
        Ok(values)
    }
}

impl Operator for DensifyOperator<'_> {
    fn push(&mut self, row: Row, out: &mut Vec<Row>) -> Result<()> {
        let value = match nested(&row, &self.stage.path) {
            None | Some(Ref::Null | Ref::Undefined) => {
                out.push(row);
                return Ok(());
            }
            Some(Ref::DateTime(_)) if self.stage.unit.is_none() => {
                bail!(6053600, "$densify of dates needs a unit")
            }
            Some(value @ Ref::DateTime(_)) => Value::from(value),
            Some(value) if is_number(value) && self.stage.unit.is_none() => Value::from(value),
            Some(value) if is_number(value) => {
                bail!(6053600, "$densify of numbers takes no unit")
            }
            Some(_) => bail!(5733201, "Densify field type must be numeric or a date with a unit"),
        };
        let key: Vec<Option<Value>> =
            self.stage.partition.iter().map(|path| nested(&row, path).map(Value::from)).collect();
        let ordered = Ordered(
            array(key.iter().map(|value| value.clone().unwrap_or(Value::Undefined))),
            self.run.context.collation,
        );
        self.bytes += row.as_bytes().len() + 64;
        self.run.check_memory("$densify", self.bytes)?;
        self.parts.entry(ordered).or_insert_with(|| (key, Vec::new())).1.push((value, row));
        Ok(())
    }

    fn finish(&mut self, out: &mut Vec<Row>) -> Result<()> {
        let (stage, context) = (self.stage, self.run.context);
        if self.parts.is_empty() && stage.partition.is_empty() && matches!(stage.bounds, Bounds::Between(..))
        {
            // Bounds that are given are filled also where nothing is between them.
            self.parts.insert(Ordered(array(Vec::new()), context.collation), Default::default());
        }
        let compare = |a: &Value, b: &Value| context.compare(a.as_raw_bson_ref(), b.as_raw_bson_ref());
        for (_, held) in self.parts.values_mut() {
            held.sort_by(|a, b| compare(&a.0, &b.0));
        }
        let ends = |held: &Held| Some((held.first()?.0.clone(), held.last()?.0.clone()));
        let full = self.parts.values().filter_map(|(_, held)| ends(held)).reduce(|a, b| {
            let low = if compare(&b.0, &a.0).is_lt() { b.0 } else { a.0 };
            (low, if compare(&b.1, &a.1).is_gt() { b.1 } else { a.1 })
        });
        for (_, (key, held)) in std::mem::take(&mut self.parts) {
            let (low, high, closed) = match &stage.bounds {
                Bounds::Between(low, high) => (low.clone(), high.clone(), false),
                Bounds::Full => match &full {
                    Some((low, high)) => (low.clone(), high.clone(), true),
                    None => continue,
                },
                Bounds::Partition => match ends(&held) {
                    Some((low, high)) => (low, high, true),
                    None => continue,
                },
            };
            let mut made = stage.sequence(self.run, &low, &high, closed)?.into_iter().peekable();
            for (value, row) in held {
                while let Some(missing) = made.next_if(|missing| compare(missing, &value).is_lt()) {
                    out.push(Row::made(self.stage.made(&key, missing)));
                }
                made.next_if(|missing| compare(missing, &value).is_eq());
                out.push(row);
            }
            out.extend(made.map(|missing| Row::made(self.stage.made(&key, missing))));
        }
        Ok(())
    }
}

impl Densify {
    /// A document with the partition's values and the missing one.
    fn made(&self, key: &[Option<Value>], missing: Value) -> RawDocumentBuf {
        let mut document = RawDocumentBuf::new();
        for (path, value) in self.partition.iter().zip(key) {
            if let Some(value) = value {
                document = with_nested(&document, path, Some(value.clone()));
            }
        }
        with_nested(&document, &self.path, Some(missing))
    }
}
