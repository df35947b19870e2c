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

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use mayfly_storage::store::{Batch, Put, Store};
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
    renewal: Mutex<()>,
}

impl Timeline {
    /// Goes on from where the store was left.
    pub async fn open(clock: Arc<dyn Clock>, store: Arc<dyn Store>) -> Result<Self> {
        let horizon = match store.get(&CATALOG.single(Family::Horizon)).await? {
            Some(row) if row.len() == 8 => be_u64(&row),
            Some(_) => return Err(Error::Corrupt("the time horizon cannot be read")),
            None => 0,
        };
        let (told, horizon) = (AtomicU64::new(horizon), AtomicU64::new(horizon));
        Ok(Self { clock, store, told, horizon, renewal: Mutex::new(()) })
    }

    /// The current time, never below one told before.
    pub async fn now(&self) -> Result<Timestamp> {
        let clock = self.clock.now().0;
        let now = self.told.load(Ordering::Acquire).max(clock);
        if now > self.horizon.load(Ordering::Acquire) {
            self.renew(now).await?;
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

    /// Stores exactly the time told last.
    pub async fn close(&self) -> Result<()> {
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

    async fn store_horizon(&self, horizon: u64) -> Result<()> {
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
