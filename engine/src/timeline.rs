//! Time as the engine tells it: it never goes back.
//!
//! A machine's clock may be stepped back, and a restart may find it slower than before. A document that was seen to
//! be gone would then come back. So the engine never tells a time above a *horizon* that is stored durably before:
//!
//! ```text
//!   ───── told ──────▶ now        horizon (stored)
//!                      │◀── at most LEAD ──▶│
//! ```
//!
//! After a crash the horizon is the latest time anybody can have been told, and time goes on from there: standing
//! still until the clock has caught up. After a clean shutdown the stored horizon is exact.
//!
//! Nodes that share a store share the horizon. It only goes up there: what one node stored lets all of them tell the time
//! up to it, and none takes it back when it ends. A clock that turns out to be another one than before ([`Clock::epoch`])
//! makes a node go on from the horizon, as after a crash.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use mayfly_storage::{
    Error as StoreError,
    store::{Batch, Expect, Guard, Put, Store},
};
use tokio::sync::Mutex;

use crate::{
    clock::{Clock, Timestamp},
    error::{Error, Result},
    keys::{CATALOG, Family, be_u64},
};

/// How far ahead of now the horizon is set. One small durable write per this much time of use.
pub const LEAD: Duration = Duration::from_secs(1);

pub(crate) struct Timeline {
    clock: Arc<dyn Clock>,
    store: Arc<dyn Store>,
    told: AtomicU64,
    horizon: AtomicU64,
    /// The clock's epoch when it was last known to go on from what was told.
    epoch: AtomicU64,
    renewal: Mutex<()>,
}

impl Timeline {
    /// Goes on from where the store was left.
    pub async fn open(clock: Arc<dyn Clock>, store: Arc<dyn Store>) -> Result<Self> {
        let epoch = AtomicU64::new(clock.epoch());
        let horizon = stored_horizon(&*store).await?;
        let (told, horizon) = (AtomicU64::new(horizon), AtomicU64::new(horizon));
        Ok(Self { clock, store, told, horizon, epoch, renewal: Mutex::new(()) })
    }

    /// The current time, never below one told before.
    pub async fn now(&self) -> Result<Timestamp> {
        match self.clock.certain() {
            Some(clock) => self.tell(clock).await,
            None => self.ask().await,
        }
    }

    /// The current time, asked where the clock stands: no node that goes by it has told a later second before this began.
    pub async fn ask(&self) -> Result<Timestamp> {
        self.tell(self.clock.ask().await).await
    }

    async fn tell(&self, clock: Timestamp) -> Result<Timestamp> {
        // What is rare is boxed: every request would make room for its state.
        if self.clock.epoch() != self.epoch.load(Ordering::Acquire) {
            Box::pin(self.go_on_from_horizon()).await?;
        }
        let told = self.told.load(Ordering::Acquire);
        let now = told.max(clock.0);
        if now > self.horizon.load(Ordering::Acquire) {
            Box::pin(self.renew(now)).await?;
        }
        if now == told {
            // As for most requests: there was another one in this millisecond. To write it again would take it away from all
            // other processors.
            return Ok(Timestamp(now));
        }
        // Only now may it be told: the horizon above it is stored.
        Ok(Timestamp(self.told.fetch_max(now, Ordering::AcqRel).max(now)))
    }

    /// The latest time anybody has been told.
    pub fn told(&self) -> Timestamp {
        Timestamp(self.told.load(Ordering::Acquire))
    }

    /// Moves the horizon on before somebody has to wait for it. Does nothing while nobody asks for the time.
    pub async fn renew_ahead(&self) -> Result<()> {
        let told = self.told.load(Ordering::Acquire);
        let half = LEAD.as_millis() as u64 / 2;
        if told.saturating_add(half) < self.horizon.load(Ordering::Acquire) {
            return Ok(());
        }
        self.renew(self.clock.now().0.max(told).saturating_add(half)).await
    }

    /// Takes note of a time that another writer has used.
    pub fn observe(&self, seconds: u64) {
        self.told.fetch_max(Timestamp::from_seconds(seconds).0, Ordering::AcqRel);
    }

    /// How far the told time is ahead of the clock: after a crash, or after the clock was stepped back.
    pub fn ahead(&self) -> Duration {
        let told = self.told.load(Ordering::Acquire);
        Duration::from_millis(told.saturating_sub(self.clock.now().0))
    }

    /// Another clock than before: nobody may be told less than anybody was.
    async fn go_on_from_horizon(&self) -> Result<()> {
        let epoch = self.clock.epoch();
        let horizon = stored_horizon(&*self.store).await?;
        self.told.fetch_max(horizon, Ordering::AcqRel);
        self.horizon.fetch_max(horizon, Ordering::AcqRel);
        self.epoch.store(epoch, Ordering::Release);
        Ok(())
    }

    /// Stores exactly the time told last, unless others still tell theirs.
    pub async fn close(&self) -> Result<()> {
        if self.store.is_shared() {
            return Ok(());
        }
        let _one = self.renewal.lock().await;
        self.store_horizon(self.told.load(Ordering::Acquire)).await
    }

    async fn renew(&self, now: u64) -> Result<()> {
        let _one = self.renewal.lock().await;
        if now <= self.horizon.load(Ordering::Acquire) {
            return Ok(());
        }
        self.store_horizon(now.saturating_add(LEAD.as_millis() as u64)).await
    }

    /// Raises the shared horizon, or takes over a higher one.
    async fn raise_horizon(&self, horizon: u64) -> Result<()> {
        let key = CATALOG.single(Family::Horizon);
        let mut stored = self.horizon.load(Ordering::Acquire);
        loop {
            let expect = if stored == 0 { Expect::Absent } else { Expect::Version(stored) };
            let guards = vec![Guard { key: key.clone(), expect }];
            let put = Put { key: key.clone(), value: horizon.to_be_bytes().to_vec(), marks: Vec::new() };
            match self.store.commit(Batch { guards, puts: vec![put], ..Batch::default() }).await {
                Ok(_) => {
                    self.horizon.fetch_max(horizon, Ordering::AcqRel);
                    return Ok(());
                }
                Err(StoreError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
            stored = stored_horizon(&*self.store).await?;
            if stored >= horizon {
                self.horizon.fetch_max(stored, Ordering::AcqRel);
                return Ok(());
            }
        }
    }

    async fn store_horizon(&self, horizon: u64) -> Result<()> {
        if self.store.is_shared() {
            return self.raise_horizon(horizon).await;
        }
        let put = Put {
            key: CATALOG.single(Family::Horizon),
            value: horizon.to_be_bytes().to_vec(),
            marks: Vec::new(),
        };
        self.store.commit(Batch { puts: vec![put], ..Batch::default() }).await?;
        self.horizon.store(horizon, Ordering::Release);
        Ok(())
    }

    /// The clock underneath, for sleeping.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }
}

async fn stored_horizon(store: &dyn Store) -> Result<u64> {
    match store.get(&CATALOG.single(Family::Horizon)).await? {
        Some(row) if row.len() == 8 => Ok(be_u64(&row)),
        Some(_) => Err(Error::Corrupt("the time horizon cannot be read")),
        None => Ok(0),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use mayfly_storage::MemoryStore;

    use super::*;
    use crate::clock::Sleep;

    /// A clock that can be replaced by another.
    #[derive(Default)]
    struct Replaceable {
        now: AtomicU64,
        epoch: AtomicU64,
    }

    impl Clock for Replaceable {
        fn now(&self) -> Timestamp {
            Timestamp(self.now.load(Ordering::Acquire))
        }

        fn sleep_until(&self, _: Timestamp) -> Sleep<'_> {
            Box::pin(async {})
        }

        fn epoch(&self) -> u64 {
            self.epoch.load(Ordering::Acquire)
        }
    }

    /// Another clock that is behind: time goes on from the horizon, above all that any node can have told by the old one.
    #[tokio::test]
    async fn another_clock_goes_on_from_the_horizon() {
        let clock = Arc::new(Replaceable::default());
        clock.now.store(100_000, Ordering::Release);
        let timeline = Timeline::open(clock.clone(), Arc::new(MemoryStore::new())).await.unwrap();
        assert_eq!(timeline.now().await.unwrap(), Timestamp(100_000));
        let horizon = 100_000 + LEAD.as_millis() as u64;

        clock.now.store(95_000, Ordering::Release);
        assert_eq!(timeline.now().await.unwrap(), Timestamp(100_000), "the same clock, set back");
        clock.epoch.store(1, Ordering::Release);
        assert_eq!(timeline.now().await.unwrap(), Timestamp(horizon));
        clock.now.store(horizon + 5, Ordering::Release);
        assert_eq!(timeline.now().await.unwrap(), Timestamp(horizon + 5), "and on, once it has caught up");
    }
}
