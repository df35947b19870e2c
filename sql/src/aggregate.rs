//! Aggregates: many values into one.
//!
//! Undefined values do not take part. A value that an aggregate cannot work with spoils it: from then on the
//! result is undefined, whatever else comes (see the table in each accumulator).

use std::cmp::Ordering;
use std::collections::HashSet;

use crate::value::compare::order;
use crate::value::key::key_of;
use crate::value::{Kind, Value};

/// Which aggregate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Aggregate {
    /// How many values are defined.
    Count,
    /// How many values are true.
    CountIf,
    /// The sum of numbers.
    Sum,
    /// The mean of numbers.
    Average,
    /// The lowest value.
    Min,
    /// The highest value.
    Max,
    /// All values as an array.
    MakeList,
    /// All different values as an array.
    MakeSet,
}

impl Aggregate {
    /// All of them with the names queries use.
    pub const ALL: &'static [(&'static str, Aggregate)] = &[
        ("COUNT", Aggregate::Count),
        ("COUNTIF", Aggregate::CountIf),
        ("SUM", Aggregate::Sum),
        ("AVG", Aggregate::Average),
        ("MIN", Aggregate::Min),
        ("MAX", Aggregate::Max),
        ("MAKELIST", Aggregate::MakeList),
        ("MAKESET", Aggregate::MakeSet),
    ];

    /// The aggregate of this name, in any case.
    pub fn find(name: &str) -> Option<Aggregate> {
        Aggregate::ALL.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, found)| *found)
    }

    /// The name in query plans.
    pub fn plan_name(self) -> &'static str {
        match self {
            Aggregate::Count => "Count",
            Aggregate::CountIf => "CountIf",
            Aggregate::Sum => "Sum",
            Aggregate::Average => "Average",
            Aggregate::Min => "Min",
            Aggregate::Max => "Max",
            Aggregate::MakeList => "MakeList",
            Aggregate::MakeSet => "MakeSet",
        }
    }
}

/// An aggregate on its way.
#[derive(Debug)]
pub(crate) enum Accumulator {
    /// Counts, or counts only what is true.
    Count { only_true: bool, count: i64 },
    /// Sum or mean; None once something else than a number came.
    Total { mean: bool, count: u64, total: Option<Total> },
    /// The extreme so far; `spoilt` once an array or object came.
    Extreme { wanted: Ordering, best: Option<Value<'static>>, spoilt: bool },
    /// The values, and the keys of those seen if each may occur only once.
    Collect { values: Vec<Value<'static>>, seen: Option<HashSet<Vec<u8>>> },
}

/// A sum: exact as long as only integers come and it fits, then a double.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Total {
    Int(i64),
    Double(f64),
}

impl Accumulator {
    pub(crate) fn new(aggregate: Aggregate) -> Accumulator {
        let total = Some(Total::Int(0));
        match aggregate {
            Aggregate::Count => Accumulator::Count { only_true: false, count: 0 },
            Aggregate::CountIf => Accumulator::Count { only_true: true, count: 0 },
            Aggregate::Sum => Accumulator::Total { mean: false, count: 0, total },
            Aggregate::Average => Accumulator::Total { mean: true, count: 0, total },
            Aggregate::Min => Accumulator::Extreme { wanted: Ordering::Less, best: None, spoilt: false },
            Aggregate::Max => Accumulator::Extreme { wanted: Ordering::Greater, best: None, spoilt: false },
            Aggregate::MakeList => Accumulator::Collect { values: Vec::new(), seen: None },
            Aggregate::MakeSet => Accumulator::Collect { values: Vec::new(), seen: Some(HashSet::new()) },
        }
    }

    /// Takes one more value in. Gives how many bytes it keeps of it.
    pub(crate) fn add(&mut self, value: Value<'_>) -> usize {
        if !value.is_defined() {
            return 0;
        }
        match self {
            Accumulator::Count { only_true, count } => {
                *count += i64::from(!*only_true || value.is_true());
                0
            }
            Accumulator::Total { count, total, .. } => {
                *count += 1;
                *total = total.and_then(|total| total.plus(&value));
                0
            }
            Accumulator::Extreme { wanted, best, spoilt } => {
                *spoilt |= matches!(value.kind(), Kind::Array | Kind::Object);
                let is_better = best.as_ref().is_none_or(|best| order(&value, best) == *wanted);
                if is_better && !*spoilt {
                    *best = Some(value.into_owned());
                }
                0
            }
            Accumulator::Collect { values, seen } => {
                if seen.as_mut().is_some_and(|seen| !seen.insert(key_of(&value))) {
                    return 0;
                }
                let size = value.size();
                values.push(value.into_owned());
                size
            }
        }
    }

    /// Takes a value in so many times.
    pub(crate) fn add_times(&mut self, value: Value<'_>, times: u64) -> usize {
        let once = match self {
            Accumulator::Count { only_true, count } if value.is_defined() => {
                let counts = !*only_true || value.is_true();
                *count += if counts { times as i64 } else { 0 };
                return 0;
            }
            Accumulator::Extreme { .. } | Accumulator::Collect { seen: Some(_), .. } => true,
            _ => false,
        };
        let again = if once { 0 } else { times.saturating_sub(1) };
        let bytes: usize = (0..again).map(|_| self.add(value.clone())).sum();
        bytes + self.add(value)
    }

    pub(crate) fn finish(self) -> Value<'static> {
        match self {
            Accumulator::Count { count, .. } => Value::Int(count),
            Accumulator::Total { mean: false, total, .. } => match total {
                None => Value::Undefined,
                Some(Total::Int(total)) => Value::Int(total),
                Some(Total::Double(total)) => Value::Double(total),
            },
            Accumulator::Total { mean: true, count, total } => match total {
                Some(total) if count > 0 => Value::Double(total.as_f64() / count as f64),
                _ => Value::Undefined,
            },
            Accumulator::Extreme { spoilt: true, .. } => Value::Undefined,
            Accumulator::Extreme { best, .. } => best.unwrap_or(Value::Undefined),
            Accumulator::Collect { values, .. } => Value::array(values),
        }
    }
}

impl Total {
    fn as_f64(self) -> f64 {
        match self {
            Total::Int(total) => total as f64,
            Total::Double(total) => total,
        }
    }

    /// None if the value is not a number.
    fn plus(self, value: &Value<'_>) -> Option<Total> {
        let double = Total::Double(self.as_f64() + value.as_f64()?);
        Some(match (self, value) {
            (Total::Int(total), Value::Int(value)) => total.checked_add(*value).map_or(double, Total::Int),
            _ => double,
        })
    }
}
