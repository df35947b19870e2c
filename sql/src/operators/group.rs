//! Groups: rows with equal keys become one.
//!
//! Groups come out in the order in which their first rows came in. A query with aggregates but without
//! GROUP BY has exactly one group, even if there are no rows.

use std::cmp::Ordering;
use std::collections::HashMap;

use super::memory::Memory;
use super::window::{After, Place, RowsLeft, Window, compare_places, place_keys};
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
    /// Only some groups are wanted.
    window: Option<GroupWindow>,
}

/// The groups of one page: the lowest after a place.
#[derive(Debug)]
struct GroupWindow {
    after: Option<Place>,
    wanted: usize,
    /// The lowest group that was dropped: no group from there on is in the page.
    ceiling: Option<Place>,
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
        let mut groups = Groups { plan, places: HashMap::new(), groups: Vec::new(), window: None };
        if !plan.is_explicit {
            groups.open(Vec::new(), Vec::new());
        }
        groups
    }

    /// The groups of a page.
    pub(crate) fn window(plan: &'p Group, window: &Window, left: RowsLeft) -> Groups<'p> {
        let rows = left.limit.map_or(window.rows as u64, |limit| limit.min(window.rows as u64));
        let wanted = usize::try_from(rows.saturating_add(left.offset)).unwrap_or(usize::MAX);
        let after = match &window.after {
            Some(After::Place(place)) => Some(place.clone()),
            _ => None,
        };
        let window = GroupWindow { after, wanted, ceiling: None };
        Groups { window: Some(window), ..Groups::new(plan) }
    }

    fn open(&mut self, key: Vec<u8>, keys: Vec<Value<'static>>) -> usize {
        let place = self.groups.len();
        let accumulators = self.plan.aggregates.iter().map(|call| Accumulator::new(call.aggregate)).collect();
        self.groups.push(OpenGroup { keys, accumulators });
        self.places.insert(key, place);
        place
    }

    /// Adds the row in the slots to its group, so many times.
    pub(crate) fn add<'v>(
        &mut self,
        env: &mut Env<'v, '_>,
        times: u64,
        memory: &mut Memory,
    ) -> Result<(), EvalError>
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
                if self.window.as_ref().is_some_and(|window| !window.admits(&keys)) {
                    return Ok(());
                }
                let size: usize = keys.iter().map(Value::size).sum();
                memory.take(size + key.len() + size_of::<OpenGroup>())?;
                self.cut_down(memory);
                self.open(key, keys.into_iter().map(Value::into_owned).collect())
            }
        };
        let Some(group) = self.groups.get_mut(place) else { return Ok(()) };
        for (call, accumulator) in plan.aggregates.iter().zip(&mut group.accumulators) {
            memory.take(accumulator.add_times(eval(&call.argument, env)?, times))?;
        }
        Ok(())
    }

    /// Drops the groups that cannot be in the page, once there are many.
    fn cut_down(&mut self, memory: &mut Memory) {
        /// Groups beyond the wanted ones that are kept before the highest are dropped.
        const SLACK: usize = 1024;
        let Some(window) = &mut self.window else { return };
        let keep = window.wanted.saturating_mul(2).saturating_add(SLACK);
        if self.groups.len() < keep.saturating_mul(2) {
            return;
        }
        let mut groups: Vec<_> =
            std::mem::take(&mut self.groups).into_iter().map(|group| (group.place(), group)).collect();
        groups.sort_by(|(a, _), (b, _)| compare_places(a, b));
        let dropped = groups.split_off(keep);
        for (_, group) in &dropped {
            let size: usize = group.keys.iter().map(Value::size).sum();
            memory.give_back(size + size_of::<OpenGroup>());
        }
        window.ceiling = dropped.into_iter().next().map(|(place, _)| place);
        self.places.clear();
        for (place, (_, group)) in groups.into_iter().enumerate() {
            let mut key = Vec::new();
            group.keys.iter().for_each(|value| write_key(value, &mut key));
            self.places.insert(key, place);
            self.groups.push(group);
        }
    }

    /// The groups of the page in the order of their places, and where the next page starts, if not after its rows.
    pub(crate) fn finish_window(self) -> (Vec<(Place, FinishedGroup)>, Option<Place>) {
        let mut groups: Vec<_> = self.groups.into_iter().map(|group| (group.place(), group)).collect();
        groups.sort_by(|(a, _), (b, _)| compare_places(a, b));
        let more = self.window.is_some_and(|window| window.ceiling.is_some());
        let next = groups.last().filter(|_| more).map(|(place, _)| place.clone());
        (groups.into_iter().map(|(place, group)| (place, group.finish())).collect(), next)
    }

    pub(crate) fn finish(self) -> impl Iterator<Item = FinishedGroup> {
        self.groups.into_iter().map(OpenGroup::finish)
    }
}

impl GroupWindow {
    fn admits(&self, keys: &[Value<'_>]) -> bool {
        if self.after.is_none() && self.ceiling.is_none() {
            return true;
        }
        let place = Place { keys: place_keys(keys), tie: Vec::new() };
        self.after.as_ref().is_none_or(|after| compare_places(&place, after) == Ordering::Greater)
            && self.ceiling.as_ref().is_none_or(|high| compare_places(&place, high) == Ordering::Less)
    }
}

impl OpenGroup {
    fn place(&self) -> Place {
        Place { keys: place_keys(&self.keys), tie: Vec::new() }
    }

    fn finish(self) -> FinishedGroup {
        let aggregates = self.accumulators.into_iter().map(Accumulator::finish).collect();
        FinishedGroup { keys: self.keys, aggregates }
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
