//! How long a connection may take to send the head of a request, at the cost of two counts for each.
//!
//! A deadline for every head would be a look at the clock and a timer, set and taken back for every request, though hardly one
//! is ever late. So the requests of a connection are counted as they come and as they are answered, and the counts are
//! looked at now and then: if nothing has come for long enough while nothing was being answered, the client is late.
//!
//! Holds: a head is late after the patience there is, and half of it more at most; a request in work never is.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use hyper::Version;
use mayfly_engine::clock::pause;

/// Looks at the counts within the patience there is.
const LOOKS: u32 = 2;

/// The requests of one connection.
#[derive(Debug, Default)]
pub struct Heads {
    came: AtomicU64,
    /// Of those, after which the next one is awaited.
    answered: AtomicU64,
}

impl Heads {
    /// Counts a head that has come.
    pub fn came(&self) {
        self.came.fetch_add(1, Relaxed);
    }

    /// Counts an answer, after which the next head is to come in time. In HTTP/2 heads come as they like, and who has gone is
    /// found out by asking.
    pub fn next_is_awaited(&self, version: Version) {
        if version < Version::HTTP_2 {
            self.answered.fetch_add(1, Relaxed);
        }
    }

    /// Waits until a head is late.
    pub async fn late(&self, patience: Duration) {
        let (mut seen, mut quiet) = (None, 0);
        loop {
            let counts = (self.came.load(Relaxed), self.answered.load(Relaxed));
            let is_awaited = counts.0 == counts.1;
            quiet = if is_awaited && seen == Some(counts) { quiet + 1 } else { 0 };
            if quiet == LOOKS {
                return;
            }
            seen = Some(counts);
            pause(patience / LOOKS).await;
        }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the runtime's clock, which these tests move by hand")]
mod tests {
    use tokio::time::{Instant, timeout};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);

    /// How long it takes from the last request until a head is late, if requests come after these seconds each, and each takes
    /// these seconds to be answered.
    async fn late_after(version: Version, requests: &[(u64, u64)]) -> Option<u64> {
        let heads = Heads::default();
        let mut last = Instant::now();
        let client = async {
            for (wait, work) in requests {
                pause(Duration::from_secs(*wait)).await;
                heads.came();
                pause(Duration::from_secs(*work)).await;
                heads.next_is_awaited(version);
                last = Instant::now();
            }
            std::future::pending::<()>().await;
        };
        let late = async {
            tokio::select! {
                () = heads.late(PATIENCE) => {}
                () = client => {}
            }
        };
        timeout(PATIENCE * 1000, late).await.ok().map(|()| last.elapsed().as_secs())
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_head_that_does_not_come_is_late() {
        assert_eq!(late_after(Version::HTTP_11, &[]).await, Some(30));
        assert_eq!(
            late_after(Version::HTTP_11, &[(29, 0), (29, 0), (1, 0), (29, 29), (29, 0)]).await,
            Some(34)
        );
        // One that is worked on is not.
        assert_eq!(late_after(Version::HTTP_11, &[(1, 1000)]).await, Some(34));
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_late_after_the_patience_and_half_of_it_at_most() {
        for wait in 0..30 {
            let late = late_after(Version::HTTP_11, &[(wait, 7), (wait, 0)]).await.unwrap();
            assert!((30..=45).contains(&late), "{wait}: {late}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn in_http_2_only_the_first_is() {
        assert_eq!(late_after(Version::HTTP_2, &[]).await, Some(30));
        assert_eq!(late_after(Version::HTTP_2, &[(29, 0)]).await, None);
    }
}
