//! Documents that come along an index, set right where its order is not that of the values.
//!
//! A long value stands in an index by its beginning, so values that begin alike come in any order there; empty arrays stand
//! among the nulls. Such documents come one after the other, though, with none between them whose place is sure: a run of
//! them is held until it ends, and sorted.

use std::collections::VecDeque;

use bson::RawBson;

use crate::{
    failure::{Failure, Result},
    filtering::Surroundings,
    planner::is_in_place,
    query::SORT_BYTES_MAX,
    reader::Found,
    sort::SortPattern,
};

/// The documents of a walk that have come and not been given yet.
#[derive(Default)]
pub struct Runs {
    settled: VecDeque<Found>,
    run: Vec<(Vec<RawBson>, Found)>,
    run_bytes: usize,
}

impl Runs {
    /// The next document whose place is known.
    pub fn take(&mut self) -> Option<Found> {
        self.settled.pop_front()
    }

    /// Takes the next document of the walk. No more than so many are still wanted.
    pub fn add(
        &mut self,
        found: Found,
        sort: &SortPattern,
        surroundings: &Surroundings,
        wanted: Option<usize>,
    ) -> Result<()> {
        let key = surroundings.with(|context| sort.key(&found.document, context))?;
        if key.iter().all(is_in_place) {
            self.settle(sort, surroundings);
            self.settled.push_back(found);
            return Ok(());
        }
        self.run_bytes += found.document.as_bytes().len();
        self.run.push((key, found));
        // Twice as many as are wanted, then only those that are: each is compared a few times at most.
        if let Some(wanted) = wanted
            && self.run.len() > wanted.saturating_mul(2).max(1000)
        {
            self.sort(sort, surroundings);
            self.run.truncate(wanted);
            self.run_bytes = self.run.iter().map(|(_, found)| found.document.as_bytes().len()).sum();
        }
        if self.run_bytes > SORT_BYTES_MAX {
            return Err(Failure::new(292, "Sort exceeded memory limit of 104857600 bytes"));
        }
        Ok(())
    }

    /// The run is over: something else came, or nothing more does.
    pub fn settle(&mut self, sort: &SortPattern, surroundings: &Surroundings) {
        self.sort(sort, surroundings);
        self.settled.extend(self.run.drain(..).map(|(_, found)| found));
        self.run_bytes = 0;
    }

    fn sort(&mut self, sort: &SortPattern, surroundings: &Surroundings) {
        if self.run.len() > 1 {
            surroundings.with(|context| self.run.sort_by(|(a, _), (b, _)| sort.compare(a, b, context)));
        }
    }
}
