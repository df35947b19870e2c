//! Groups: rows with equal keys become one.
//!
//! Groups come out in the order in which their first rows came in. A query with aggregates but without
//! GROUP BY has exactly one group, even if there are no rows.

use std::collections::HashMap;

use super::memory::Memory;
use crate::aggregate::Accumulator;
use crate::error::EvalError;
use crate::eval::{Env, eval};
use crate::plan::Group;
use crate::value::Value;
use crate::value::key::write_key;

/// The groups so far.
#[derive(Debug)]
pub(crate) struct Groups<'p> {
    plan: &'p Group,
    places: HashMap<Vec<u8>, usize>,
    groups: Vec<OpenGroup>,
}

#[derive(Debug)]
struct OpenGroup {
    keys: Vec<Value<'static>>,
    accumulators: Vec<Accumulator>,
}

/// A group that has all its rows.
#[derive(Debug)]
pub(crate) struct FinishedGroup {
    keys: Vec<Value<'static>>,
    aggregates: Vec<Value<'static>>,
}

impl<'p> Groups<'p> {
    pub(crate) fn new(plan: &'p Group) -> Groups<'p> {
        let mut groups = Groups { plan, places: HashMap::new(), groups: Vec::new() };
        if !plan.is_explicit {
            groups.open(Vec::new(), Vec::new());
        }
        groups
    }

    fn open(&mut self, key: Vec<u8>, keys: Vec<Value<'static>>) -> usize {
        let place = self.groups.len();
        let accumulators = self.plan.aggregates.iter().map(|call| Accumulator::new(call.aggregate)).collect();
        self.groups.push(OpenGroup { keys, accumulators });
        self.places.insert(key, place);
        place
    }

    /// Adds the row in the slots to its group.
    pub(crate) fn add<'v>(&mut self, env: &mut Env<'v, '_>, memory: &mut Memory) -> Result<(), EvalError>
    where
        'p: 'v,
    {
        let plan = self.plan;
        let mut key = Vec::new();
        let mut keys = Vec::with_capacity(plan.keys.len());
        for (bound, _) in &plan.keys {
            let value = eval(bound, env)?;
            write_key(&value, &mut key);
            keys.push(value);
        }
        let place = match self.places.get(&key) {
            Some(place) => *place,
            None => {
                let size: usize = keys.iter().map(Value::size).sum();
                memory.take(size + key.len() + size_of::<OpenGroup>())?;
                self.open(key, keys.into_iter().map(Value::into_owned).collect())
            }
        };
        let Some(group) = self.groups.get_mut(place) else { return Ok(()) };
        for (call, accumulator) in plan.aggregates.iter().zip(&mut group.accumulators) {
            memory.take(accumulator.add(eval(&call.argument, env)?))?;
        }
        Ok(())
    }

    pub(crate) fn finish(self) -> impl Iterator<Item = FinishedGroup> {
        self.groups.into_iter().map(|group| FinishedGroup {
            keys: group.keys,
            aggregates: group.accumulators.into_iter().map(Accumulator::finish).collect(),
        })
    }
}

impl FinishedGroup {
    /// Puts the keys and aggregates into their slots.
    pub(crate) fn put(self, plan: &Group, env: &mut Env<'_, '_>) {
        for ((_, slot), key) in plan.keys.iter().zip(self.keys) {
            env.set(*slot, key);
        }
        for (call, value) in plan.aggregates.iter().zip(self.aggregates) {
            env.set(call.slot, value);
        }
    }
}
