//! ORDER BY.
//!
//! Rows with equal keys keep the order they came in, or the reverse of it if the first key descends, as the
//! service has it. If only the first rows are wanted, no more than about twice as many are kept.

use std::cmp::Ordering;
use std::collections::HashSet;

use super::memory::Memory;
use crate::ast::Direction;
use crate::error::EvalError;
use crate::value::Value;
use crate::value::compare::order;
use crate::value::key::key_of;

/// Rows on the way to their order.
#[derive(Debug)]
pub(crate) struct Sorter {
    directions: Vec<Direction>,
    /// Equal rows only once: the one that sorts first.
    distinct: bool,
    /// How many rows are wanted from the start of the order.
    wanted: Option<usize>,
    rows: Vec<SortRow>,
    arrived: u64,
}

#[derive(Debug)]
struct SortRow {
    keys: Vec<Value<'static>>,
    arrival: u64,
    row: Value<'static>,
    size: usize,
}

impl Sorter {
    pub(crate) fn new(directions: Vec<Direction>, distinct: bool, wanted: Option<u64>) -> Sorter {
        let wanted = wanted.and_then(|wanted| usize::try_from(wanted).ok());
        Sorter { directions, distinct, wanted, rows: Vec::new(), arrived: 0 }
    }

    pub(crate) fn add(
        &mut self,
        keys: Vec<Value<'static>>,
        row: Value<'static>,
        memory: &mut Memory,
    ) -> Result<(), EvalError> {
        /// Below this many rows cutting down is not worth a sort.
        const SLACK: usize = 1024;
        let size = keys.iter().map(Value::size).sum::<usize>() + row.size() + size_of::<SortRow>();
        self.rows.push(SortRow { keys, arrival: self.arrived, row, size });
        self.arrived += 1;
        let is_full = self.wanted.is_some_and(|wanted| self.rows.len() >= wanted.saturating_mul(2) + SLACK);
        match memory.take(size) {
            Ok(()) if is_full => self.cut_down(memory),
            Ok(()) => {}
            // The rows that are not wanted may be what takes the memory.
            Err(_) if self.wanted.is_some() => {
                self.cut_down(memory);
                memory.take(0)?;
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// The rows in order.
    pub(crate) fn finish(mut self, memory: &mut Memory) -> impl Iterator<Item = Value<'static>> {
        self.cut_down(memory);
        self.rows.into_iter().map(|row| row.row)
    }

    /// Sorts, and drops what can no longer be among the first.
    fn cut_down(&mut self, memory: &mut Memory) {
        let directions = std::mem::take(&mut self.directions);
        self.rows.sort_by(|a, b| compare_rows(&directions, a, b));
        self.directions = directions;
        if self.distinct {
            let mut seen = HashSet::new();
            self.rows.retain(|row| {
                let is_new = seen.insert(key_of(&row.row));
                if !is_new {
                    memory.give_back(row.size);
                }
                is_new
            });
        }
        if let Some(wanted) = self.wanted.filter(|wanted| *wanted < self.rows.len()) {
            let dropped: usize = self.rows.drain(wanted..).map(|row| row.size).sum();
            memory.give_back(dropped);
        }
    }
}

fn compare_rows(directions: &[Direction], a: &SortRow, b: &SortRow) -> Ordering {
    let directed = |ordering: Ordering, direction: &Direction| match direction {
        Direction::Ascending => ordering,
        Direction::Descending => ordering.reverse(),
    };
    for ((a, b), direction) in a.keys.iter().zip(&b.keys).zip(directions) {
        let by_key = directed(order(a, b), direction);
        if by_key != Ordering::Equal {
            return by_key;
        }
    }
    directed(a.arrival.cmp(&b.arrival), directions.first().unwrap_or(&Direction::Ascending))
}
