//! Request units as a limit: a container, or a database whose containers share, gets no more per second than it is
//! provisioned with.
//!
//! Each partition key range has a bucket that holds one second's worth of its share and fills evenly. A request is
//! let through while there is anything in the buckets of the ranges it looks at, and what it turns out to cost is
//! taken out afterwards, below zero if need be: so a request larger than a second's worth is possible, and the next
//! one waits for it. What a request costs is what its answer says; there is no second account of it. Purge is no
//! request and pays nothing.
//!
//! Holds: time is the engine's, so a test that stops the clock stops the filling; a request that is refused has
//! changed nothing and costs nothing.

use std::{collections::HashMap, time::Duration};

use mayfly_engine::{Place, Timestamp};
use parking_lot::Mutex;

use crate::{
    call::Call,
    error::ApiError,
    handlers::{is_item_route, offers},
};

/// Buckets kept before full ones are dropped; a full bucket is as good as none.
const BUCKETS_MAX: usize = 10_000;

/// The buckets of everything that has a budget.
#[derive(Debug, Default)]
pub struct Throttle {
    buckets: Mutex<HashMap<(u32, u32), Bucket>>,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    /// Request units left; negative after a request that took more than there was.
    level: f64,
    filled_at: Timestamp,
}

impl Bucket {
    fn full(rate: f64, now: Timestamp) -> Self {
        Self { level: rate, filled_at: now }
    }

    fn fill(&mut self, rate: f64, now: Timestamp) {
        // A request may have read the clock before another one that came here first.
        let passed = now.0.saturating_sub(self.filled_at.0);
        self.level = (self.level + rate * passed as f64 / 1000.0).min(rate);
        self.filled_at = self.filled_at.max(now);
    }
}

/// Which buckets a request draws on.
#[derive(Debug, PartialEq)]
pub struct Budget {
    owner: u32,
    /// Partition key ranges; one budget that several containers share is that of a range 0.
    ranges: Vec<u32>,
    /// Request units per second of each bucket.
    rate: f64,
}

impl Budget {
    /// The budget of a request; none for requests that are not about items, which the service counts elsewhere.
    pub fn of(call: &Call<'_>) -> Result<Option<Self>, ApiError> {
        if !is_item_route(call.address) {
            return Ok(None);
        }
        let name = call.address.container().ok_or_else(ApiError::internal)?;
        let place = call.owner(name)?;
        let Place { database, container } = &*place;
        if let Some(units) = offers::units(call.engine, container.id) {
            let ranges = call.scope(container)?.ranges(container).map(|range| range.id).collect();
            let rate = units / container.ranges().len() as f64;
            return Ok(Some(Self { owner: container.id, ranges, rate }));
        }
        let shared = offers::units(call.engine, database.id);
        Ok(shared.map(|units| Self { owner: database.id, ranges: vec![0], rate: units }))
    }
}

impl Throttle {
    /// Lets a request through, or says when to come again.
    pub fn admit(&self, budget: &Budget, now: Timestamp) -> Result<(), ApiError> {
        let mut buckets = self.buckets.lock();
        let mut wait: f64 = 0.0;
        for range in &budget.ranges {
            let Some(bucket) = buckets.get_mut(&(budget.owner, *range)) else { continue };
            bucket.fill(budget.rate, now);
            if bucket.level <= 0.0 {
                wait = wait.max(1.0 - bucket.level / budget.rate * 1000.0);
            }
        }
        match wait {
            0.0 => Ok(()),
            wait => Err(ApiError::throttled(Duration::from_millis(wait as u64))),
        }
    }

    /// Takes out what a request has cost, the same from each range it looked at.
    pub fn spend(&self, budget: &Budget, charge: f64, now: Timestamp) {
        let mut buckets = self.buckets.lock();
        if buckets.len() > BUCKETS_MAX {
            buckets.retain(|_, bucket| {
                bucket.filled_at.plus(Duration::from_secs(60)) > now || bucket.level < 0.0
            });
        }
        let share = charge / budget.ranges.len().max(1) as f64;
        for range in &budget.ranges {
            let full = Bucket::full(budget.rate, now);
            let bucket = buckets.entry((budget.owner, *range)).or_insert(full);
            bucket.fill(budget.rate, now);
            bucket.level -= share;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait_ms(throttle: &Throttle, budget: &Budget, at_ms: u64) -> Option<u128> {
        let refused = throttle.admit(budget, Timestamp(at_ms)).err()?;
        assert_eq!((refused.status, refused.substatus), (429, 3200));
        Some(refused.retry_after.unwrap().as_millis())
    }

    #[test]
    fn a_bucket_holds_a_second_and_goes_into_debt() {
        let (throttle, budget) = (Throttle::default(), Budget { owner: 1, ranges: vec![0], rate: 400.0 });
        throttle.spend(&budget, 399.0, Timestamp(5_000));
        assert_eq!(wait_ms(&throttle, &budget, 5_000), None);
        throttle.spend(&budget, 201.0, Timestamp(5_000));
        // 200 in debt at 400 a second: half a second, and the millisecond in which there is something again.
        assert_eq!(wait_ms(&throttle, &budget, 5_000), Some(501));
        assert_eq!(wait_ms(&throttle, &budget, 5_250), Some(251));
        assert_eq!(wait_ms(&throttle, &budget, 5_500), Some(1));
        assert_eq!(wait_ms(&throttle, &budget, 5_501), None);
    }

    #[test]
    fn idle_time_is_not_saved_up_beyond_a_second() {
        let (throttle, budget) = (Throttle::default(), Budget { owner: 1, ranges: vec![0], rate: 400.0 });
        throttle.spend(&budget, 1.0, Timestamp(0));
        throttle.spend(&budget, 400.0, Timestamp(3_600_000));
        assert_eq!(wait_ms(&throttle, &budget, 3_600_000), Some(1));
    }

    #[test]
    fn ranges_and_owners_have_buckets_of_their_own() {
        let throttle = Throttle::default();
        let of = |owner, ranges: &[u32]| Budget { owner, ranges: ranges.to_vec(), rate: 100.0 };
        throttle.spend(&of(1, &[0]), 100.0, Timestamp(0));
        assert_eq!(wait_ms(&throttle, &of(1, &[0]), 0), Some(1));
        assert_eq!(wait_ms(&throttle, &of(1, &[1]), 0), None);
        assert_eq!(wait_ms(&throttle, &of(2, &[0]), 0), None);
        // A request over both ranges waits for the one that is empty, and is paid for by both.
        assert_eq!(wait_ms(&throttle, &of(1, &[0, 1]), 0), Some(1));
        throttle.spend(&of(1, &[0, 1]), 200.0, Timestamp(0));
        assert_eq!(wait_ms(&throttle, &of(1, &[1]), 0), Some(1));
        assert_eq!(wait_ms(&throttle, &of(1, &[0]), 0), Some(1001));
    }

    #[test]
    fn a_clock_that_steps_back_fills_nothing() {
        let (throttle, budget) = (Throttle::default(), Budget { owner: 1, ranges: vec![0], rate: 100.0 });
        throttle.spend(&budget, 150.0, Timestamp(1_000));
        assert_eq!(wait_ms(&throttle, &budget, 500), Some(501));
        assert_eq!(wait_ms(&throttle, &budget, 1_000), Some(501));
    }
}
